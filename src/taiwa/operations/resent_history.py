"""Answer a request of a client that resends its history: match the history to stored nodes, and begin the next turn there."""

from asyncio import to_thread
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeAlias

from taiwa.apps.catalog import load_unchanged
from taiwa.conversation.app import NO_OPTIONS, AnswerOptions, App, UnknownTurns
from taiwa.conversation.history import (
    START,
    Conversation,
    Node,
    PastTurn,
    ReceivedTurn,
    Transcript,
    TurnParts,
    add_turn,
    add_turns,
    change_app,
    edit_state,
    next_address,
    past_turn,
    split_turns,
    summarize_window,
    turn_digest,
)
from taiwa.conversation.turn_prompt import turn_request
from taiwa.flows.turn import input_text, named_turns
from taiwa.kernel.async_runtime import Stop
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConflictError, InputError, NotFoundError
from taiwa.kernel.execution import Observer
from taiwa.kernel.messages import Message, Text, TextDelta, ToolCall, ToolResult
from taiwa.kernel.serialization import Json, digest_and_size, record, value
from taiwa.kernel.text import estimate_tokens, plural
from taiwa.kernel.wording import Wording
from taiwa.operations.documents import open_library
from taiwa.operations.request_preview import request_tokens
from taiwa.sessions.commit_turn import (
    CommitTarget,
    PricedModel,
    Resent,
    TurnInput,
    TurnOptions,
    TurnResult,
    branch_name,
)
from taiwa.sessions.repository import LONGEST_OPTIONS, Repository
from taiwa.sessions.session import AsyncSession
from taiwa.store import Run
from taiwa.store.refs import BY_CLIENT
from taiwa.store.server_records import TranscriptEntry

# --- the place of a resent history ------------------------------------------------------------------------------------
# The history is matched to stored nodes by the digests of its turns, so clients that keep no state have conversations, too. The
# table is `transcript`.

MOST_RECORDED = 16
"""The most unknown turns of a history whose state is recorded, the last ones: each takes up to two calls of the turn's limit."""
CLIENT = "client"
"""The author of a state set by a client of the server."""
FEWEST_TRIMMED = 2
"""Minimum number of turns that a trimmed history must share with a stored one, because one short exchange occurs in many
conversations."""


REPEATED_SECONDS = 600.0
"""How long after its last call a turn is found by the attempt that a request repeats."""


class UnknownTurnsError(ConflictError):
    """A resent history has turns that are not stored, and is to be refused then."""


@value
class PlacedTurn:
    """A turn with its place: the session that it continues or begins."""

    session: str
    turn_input: TurnInput

    def completion(self, repository: Repository, priced_model: PricedModel, turns: TurnOptions) -> "Completion":
        """Open the session that performs the turn.

        Raises:
            InputError: the text is too long, or not valid Unicode.
        """
        self.turn_input.check()
        session = AsyncSession(repository, self.session, self.turn_input.base, priced_model, options=turns)
        return Completion(session, self.turn_input)


def is_relayed(app: App) -> bool:
    """Return whether a turn with this app is one unmodified request of the client: without state, tools and searches."""
    return not (app.documents or app.model_fields or app.tools or app.is_template or app.answer)


def check_reply_options(app: App) -> None:
    """Check that the turns of an app can follow the options of its answers.

    Raises:
        InputError: they shape a reply that the app has a format for.
    """
    if app.answer_options.parts.shape_reply and not is_relayed(app):
        kind = "searches documents" if app.documents else Wording("keeps a state or has tools of its own")
        raise InputError(Wording(
            "the app {app!r} {kind}: it takes no response format, stop strings or logprobs of a request, and a request cannot require calls of its tools",
            app=app.name, kind=kind,
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and the session that continues if this is its tip; a turn that `stays` becomes no branch."""

    node: str
    session: str
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Thread:
    """A fixed session for a turn, wherever the history of its client leads.

    - `after`: the node that the turn follows, "" for the one that the history leads to.
    - `state`: the client's state; its changes are applied before the turn.
    """

    session: str
    after: str = ""
    state: Mapping[str, Json] | None = None


class ResentHistory:
    """A resent history, divided into turns and what is to be answered, for a turn of an app that follows it.

    A relayed one may end with a text of the assistant: the model writes after that. `unknown` says what to do with turns that are not
    stored if the app has state; None leaves that to the app.
    """

    def __init__(
        self, repository: Repository, app: App, messages: Sequence[Message], unknown: UnknownTurns | None = None
    ) -> None:
        self._repository, self._app, self._messages, self._unknown = repository, app, messages, unknown
        turns, inputs = split_turns(messages)
        if not (inputs or not turns or messages[-1].tool_calls) and is_relayed(app):
            turns, inputs = turns[:-1], turns[-1]
        self._turns, self._inputs = turns, inputs

    @cached_property
    def _digests(self) -> list[str]:
        return [turn_digest(turn) for turn in self._turns]

    @cached_property
    def _addresses(self) -> list[str]:
        return _addresses(self._digests)

    def place(self) -> PlacedTurn:
        """Find the node that the history leads to, and describe the turn that follows it.

        The longest prefix of the history stored for this owner and app counts, and the newest among several nodes. Later turns
        are stored as received. A trimmed history is found by its last turns, at least two. Any other history starts a new root.

        Raises:
            InputError: nothing is left to answer, or the app does not support the options of the request.
            UnknownTurnsError: there are unknown turns, and the history is to be refused then.
        """
        _check_results(self._messages)
        address = self._addresses[-1]
        found = self._find_prefix() or self._find_trimmed()
        if found is None:
            return self._placed(self._repository.start(self._app), "", address)
        entry, known, base = found
        session = entry.session if self._repository.store.refs.find_tip(entry.session) == entry.node else ""
        return self._placed(base, session, address if known < len(self._turns) else entry.address, known)

    def place_after(self, place: Place) -> PlacedTurn:
        """Describe the turn that follows a node, where the history begins: of the session, if that is its tip, else of a branch.

        Raises:
            InputError, UnknownTurnsError: as `place`.
        """
        repository, node = self._repository, place.node
        address = _addresses(self._digests, repository.store.transcripts.address_of(node) or START)[-1]
        session = place.session if repository.store.refs.find_tip(place.session) == node else ""
        base = repository.recent(node)
        _check_results(self._messages, base.turns)
        if base.count == 0 and session and base.app != self._app:  # no turn yet: any app may begin
            placed = self._placed(repository.start(self._app), "", self._addresses[-1])
            target = replace(placed.turn_input.target, replaces=node, branches=False)
            turn_input = replace(placed.turn_input, target=target)
            return replace(placed, session=session, turn_input=turn_input)
        return self._placed(base, session, address)

    def place_in(self, thread: Thread) -> PlacedTurn:
        """Describe a turn that stays in a session, wherever the history leads: it continues, goes back to an earlier node, or
        begins.

        With `after` only the last message of the history counts. Fields of the client's state that differ from the last state of
        the session are set before the turn.

        Raises:
            InputError: as `place`, or a field of the state does not exist, is computed, or has a value of another type.
            UnknownTurnsError: as `place`.
        """
        repository, after = self._repository, thread.after
        _check_results(self._messages, repository.checkout(after).turns if after else ())
        tip = repository.store.refs.find_tip(thread.session)
        session = thread.session if tip else ""
        if after:
            address = repository.store.transcripts.address_of(after) or START
            base, known = repository.checkout(after), len(self._turns)
        else:
            base, address, known = self._find_in_session(session)
        address = _addresses(self._digests[known:], address)[-1]
        base = repository.checkout(tip) if tip is not None and base.tip == tip else base
        held = base.state if tip is None else repository.checkout(tip).state
        edits = {name: each for name, each in (thread.state or {}).items() if name not in held or held[name] != each}
        return self._placed(base, session, address, known, name=thread.session, tip=tip, edits=edits)

    def _placed(
        self, base: Conversation, session: str, address: str, known: int = 0,
        *, name: str = "", tip: str | None = None, edits: Mapping[str, Json] | None = None,
    ) -> PlacedTurn:  # fmt: skip
        """Describe a turn after the turns behind the `known` ones; without a session it starts one with a new name.

        A session whose `tip` is not the base goes back to the base. `edits` are set before the turn. `address` is that of the history with
        the turns, also with those that are not stored, so that the next request of the client finds this node.
        """
        app, turns, inputs = self._app, self._turns[known:], self._inputs
        check_reply_options(app)
        answerable = input_text(inputs) or is_relayed(app) or any(message.attachments for message in inputs)
        if not inputs or not answerable:
            raise InputError("the last message must be of the user or a tool")
        is_same = base.app.name == app.name and (app.values == base.app.values or not app.values)
        # An import does not replace a served app.
        if is_same and base.app.hash != app.hash and self._repository.store.nodes.is_trusted(base.app.hash):
            # A conversation keeps the text of its app and the options of its answers.
            app = base.app.with_options(replace(base.app.options, request=app.options.request))
        base = base if app.hash == base.app.hash else change_app(base, app)
        unknown = self._unknown or app.unknown_turns
        adopts = is_relayed(app)  # a turn of an app with state has a delta, which the client does not know
        if adopts:
            base = add_turns(base, map(_received, turns))
        left_out = () if adopts else turns if unknown != "record" else turns[:-MOST_RECORDED]
        warnings = _unknown_turns(left_out)
        if warnings and unknown == "refuse":
            raise UnknownTurnsError(warnings[0])
        recorded = () if adopts else tuple(map(_past_turn, turns[len(left_out) :]))
        if edits:
            base = edit_state(base, dict(edits), CLIENT)
        leaves = None if base.tip == tip or base.new_nodes else tip
        files, inputs = detach(inputs)
        replaces = tip if base.tip != tip else None
        turn_input = TurnInput(
            base,
            input_text(inputs),
            CommitTarget("turn" if leaves is None else "edit", replaces, branches=not session, may_branch=True),
            attachments=files,
            messages=inputs if is_relayed(app) else (),
            resent=Resent(Transcript(app.name, address), recorded, warnings),
        )
        return PlacedTurn(session or name or branch_name(base), turn_input)

    def _find_in_session(self, session: str) -> tuple[Conversation, str, int]:
        """Return the conversation at the end of the longest known prefix of the history, its address, and its number of turns.

        Nodes of the session take precedence over others.
        """
        repository, digests = self._repository, self._digests
        if session:
            if found := self._find_prefix(session):
                return found[2], found[0].address, found[1]
            own = repository.at(session).turns  # of the page, the command line, or another app
            known = 0
            while known < min(len(own), len(digests)) and turn_digest(own[known].all_messages) == digests[known]:
                known += 1
            if known:
                name = repository.store.refs.tip(session) if known == len(own) else own[known - 1].hash
                return repository.checkout(name), self._addresses[known], known
        found = self._find_prefix() or self._find_trimmed()
        return (repository.start(self._app), START, 0) if found is None else (found[2], found[0].address, found[1])

    def _find_prefix(self, session: str = "") -> tuple[TranscriptEntry, int, Conversation] | None:
        """Find the longest stored prefix of the history, and its number of turns."""
        entry = self._repository.store.transcripts.find_last(self._app.name, self._addresses[1:], session)
        if entry is None:
            return None
        return entry, self._addresses.index(entry.address), self._repository.recent(entry.node)

    def _find_trimmed(self) -> tuple[TranscriptEntry, int, Conversation] | None:
        """Find a history whose start the client has trimmed; only the turns that it still sends stay in the window."""
        repository, count = self._repository, len(self._turns)
        if count < FEWEST_TRIMMED:
            return None
        sent = list(zip(self._turns, self._digests, strict=True))
        for entry, found in repository.store.transcripts.ending_in(self._app.name, self._digests[-1], count):
            # A checkout reads the whole history, which mostly differs where the client has edited it.
            if found == count and not _is_sent(repository.store.nodes.first_turn(entry.node), *sent[0]):
                continue
            if not _may_end_in(repository, entry.node, sent):
                continue
            conversation = repository.checkout(entry.node)
            kept = conversation.turns[-count:]
            if len(kept) == count and all(_is_sent(past, *each) for past, each in zip(kept, sent, strict=True)):
                if is_relayed(conversation.app) and len(conversation.turns) > len(kept):
                    conversation = summarize_window(conversation, [past.hash for past in kept], "")
                return entry, count, conversation
        return None


def _check_results(messages: Iterable[Message], earlier: Sequence[PastTurn] = ()) -> None:
    """Check that each result of a call follows its call, in the messages or in earlier turns.

    Raises:
        InputError: one does not.
    """
    calls = (each for turn in earlier for said in turn.all_messages for each in said.tool_calls)
    known: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                known.add(part.id)
            elif isinstance(part, ToolResult):
                call = part.call
                if not (known & {call, ""} if call else known):  # in some protocols, calls have no id
                    known |= {each.id for each in calls}
                if not (known & {call, ""} if call else known):
                    raise InputError(
                        f"the result of the tool call {call[:64]!r} does not follow its call; "
                        "send the message of the assistant that made the call before it"
                    )


def place_compaction(repository: Repository, app: App, messages: Sequence[Message], node: str = "") -> PlacedTurn:
    """Describe the summary of the history up to a node and of the turns after it, without unanswered messages.

    It starts a new session, so that the conversation itself keeps its turns.
    """
    turns, _ = split_turns(messages)
    base = repository.checkout(node) if node else repository.start(app)
    for turn in turns:
        files, said = detach(turn)
        delta: Json = None if is_relayed(base.app) else {}
        base = add_turn(base, input_text(turn[:-1]), turn[-1].text, delta, TurnParts(files, messages=said))
    turn_input = TurnInput(base, "compact", CommitTarget("compact", branches=True, may_branch=True, compacts=True))
    return PlacedTurn(branch_name(base), turn_input)


def _received(turn: Sequence[Message]) -> ReceivedTurn:
    files, said = detach(turn)
    return input_text(turn[:-1]), turn[-1].text, TurnParts(files, messages=said)


def _past_turn(turn: tuple[Message, ...]) -> PastTurn:
    files, said = detach(turn)
    return PastTurn("", input_text(said[:-1]), said[-1].text, parts=TurnParts(files))


def _unknown_turns(turns: Sequence[Sequence[Message]]) -> tuple[str, ...]:
    """Return a warning that names turns of a history that are not stored, so the state of an app lacks them."""
    texts = [input_text(turn[:-1]) or turn[-1].text for turn in turns]
    if not texts:
        return ()
    return (
        f"neither the state nor the prompt contains {plural(len(texts), 'resent turn')} that this store does not have, "
        f"such as edited ones: {named_turns(texts)}",
    )


def detach(messages: Sequence[Message]) -> tuple[tuple[Attachment, ...], tuple[Message, ...]]:
    """Return the attachments of a turn of `split_turns`, and its messages without them."""
    files = tuple(part for message in messages for part in message.parts if isinstance(part, Attachment))
    if not files:
        return (), tuple(messages)
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    kept = tuple(part for part in messages[last].parts if part not in files) or (Text(""),)
    return files, (*messages[:last], Message("user", kept), *messages[last + 1 :])


def _addresses(digests: Iterable[str], start: str = START) -> list[str]:
    """Return the addresses of a history, from the start to its end, by the digests of its turns."""
    return list(accumulate(digests, next_address, initial=start))


Sent: TypeAlias = tuple[Sequence[Message], str]
"""The messages of a resent turn, and its digest."""


def _may_end_in(repository: Repository, node: str, sent: Sequence[Sent]) -> bool:
    """Return whether the turns up to a node, read from the newest one, may be the resent ones."""
    wanted = reversed(sent)
    for _, found in repository.store.nodes.path(node):
        if found.kind == "summary":  # the window has other turns
            return True
        if found.kind == "turn":
            each = next(wanted, None)
            if each is None:
                return True
            if not _is_sent(found, *each):
                return False
    return next(wanted, None) is None


def _is_sent(found: Node | PastTurn | None, turn: Sequence[Message], digest: str) -> bool:
    """Return whether a stored turn is a resent one; the oldest may have lost its question."""
    if found is None:
        return False
    messages = (past_turn("", found) if isinstance(found, Node) else found).all_messages
    return turn_digest(messages[-1:] if len(turn) == 1 else messages) == digest


# --- the turn ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """A request of a client: its app with parameters, the messages without the leading system text, and its options.

    - `request`: what the client sets for the answer; see `AnswerOptions.request`.
    - `prefix`: the beginning of the answer, which the model continues.
    - `unknown`: what to do with turns of the history that are not stored; None leaves that to the app.
    """

    app: str
    messages: tuple[Message, ...]
    params: Mapping[str, Json] = field(default_factory=dict[str, Json])
    request: AnswerOptions = NO_OPTIONS
    prefix: str = ""
    unknown: UnknownTurns | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A turn to be performed by its session: a new one, or without `turn_input` the interrupted one of the session."""

    session: AsyncSession
    turn_input: TurnInput | None = None
    repeats: str = ""
    """The attempt that this may repeat, of a request to a server that was killed meanwhile."""
    seconds: float = REPEATED_SECONDS
    """How long ago the last call of that attempt may have ended."""

    @property
    def text(self) -> str:
        """The user's text; "" for an interrupted turn, which the store has."""
        return "" if self.turn_input is None else self.turn_input.text

    def by_client(self, client: str, attempt: str = "", seconds: float = 0.0) -> "Completion":
        """Return the same turn, with the program and the protocol of its client in the log of the session, and its attempt, which it
        repeats if there are `seconds`.
        """
        if self.turn_input is None:
            return self
        target = replace(self.turn_input.target, reason=f"{BY_CLIENT}{client}")
        turn_input = replace(self.turn_input, target=target, attempt=attempt)
        return Completion(self.session, turn_input, attempt if seconds else "", seconds)

    async def perform(self, observer: Observer, stop: Stop | None = None) -> TurnResult:
        """Perform the turn, as `AsyncSession.perform`.

        Raises:
            InputError: the session has no interrupted turn. ConflictError: another server answers the request.
        """
        turn_input = self.turn_input
        if self.repeats and (found := await to_thread(self._earlier)) is not None:
            if isinstance(found, TurnResult):
                observer(TextDelta(found.continuation))
                return found
            self.session.name, turn_input = found.ref, None
        result = await self.session.perform(turn_input, observer, stop)
        if result is None:
            raise InputError(f"the session {self.session.name!r} has no interrupted turn")
        return result

    def _earlier(self) -> TurnResult | Run | None:
        """Return the turn of the attempt, stored or interrupted; None if it left none here."""
        from taiwa.sessions.replay import stored_result

        repository = self.session.repository
        store, expected = repository.store, self.turn_input and self.turn_input.expected
        # What is resumed by its name is that of its session: an equal request of another one is not the same.
        limits = (self.seconds,) if self.turn_input else (None, self.session.name)
        found = store.runs.repeated(self.repeats, *limits)
        if found is None or (expected and found[0].ref != self.session.name):
            return None
        run, node = found
        if node:
            return stored_result(repository, run, node)
        if all(each.id != run.id for each in store.runs.open_runs(run.ref)):
            raise ConflictError("another server answers this request; repeat it later")
        return run


def before_last_turn(repository: Repository, place: Place) -> tuple[Place, tuple[Message, ...]]:
    """Return the place before the last turn of a place, and the messages of that turn: a relayed model writes after its answer."""
    last = repository.recent(place.node).turns[-1]
    return Place(repository.store.nodes.get(last.hash).parent or place.node, place.session), last.all_messages


def begin_completion(
    repository: Repository,
    priced_model: PricedModel,
    options: CompletionOptions,
    turns: TurnOptions,
    after: Place | Thread | None = None,
) -> Completion:
    """Find the place of a turn in the store, and open the session that performs it; nothing is sent yet.

    With a `Place` the turn follows it, and the messages are those after it. A turn of a `Thread`, or of a place that `stays`, stays in its
    session: if another program moves that, the turn fails.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown, or there is nothing to answer.
        LimitError, RateLimitError: the quota of the caller is used up.
        UnknownTurnsError: the history has turns that are not stored, and is to be refused then.
    """
    history = ResentHistory(repository, _begin(repository, options), options.messages, options.unknown)
    if after is None:
        placed = history.place()
    else:
        placed = history.place_in(after) if isinstance(after, Thread) else history.place_after(after)
    if options.prefix:
        placed = replace(placed, turn_input=replace(placed.turn_input, prefix=options.prefix))
    if isinstance(after, Thread) or (after is not None and after.stays):  # the answer names its session
        target = replace(placed.turn_input.target, stays=True)
        placed = replace(placed, turn_input=replace(placed.turn_input, target=target))
    return placed.completion(repository, priced_model, turns)


def begin_compaction(
    repository: Repository,
    priced_model: PricedModel,
    options: CompletionOptions,
    turns: TurnOptions,
    after: Place | None,
) -> Completion:
    """Find the history that a summary will replace, as `begin_completion`; unanswered messages are left out.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
        LimitError, RateLimitError: the quota of the caller is used up.
    """
    app = _begin(repository, options)
    placed = place_compaction(repository, app, options.messages, "" if after is None else after.node)
    return placed.completion(repository, priced_model, turns)


def _begin(repository: Repository, options: CompletionOptions) -> App:
    """Check the quota, and open the app of a request."""
    if repository.quota is not None:
        repository.quota.check()
    app = _open_app(options, repository)
    repository.trust(app.hash)  # the operator of the server serves it
    return app


def estimate_input(repository: Repository, options: CompletionOptions, after: Place | None = None) -> int:
    """Estimate the tokens of the request that a turn would send; nothing is sent or stored.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
    """
    app = _open_app(options, repository)
    base = repository.start(app) if after is None else change_app(repository.checkout(after.node), app)
    request = turn_request(base, "", inputs=options.messages)
    tools = sum(estimate_tokens(str(record(tool))) for tool in request.tools)
    return request_tokens(request) + tools


GRANTED = ("in", "as", "user")
"""Parameters of an app that searches documents: which documents, for whom, and whose profile."""


def served_app(app: App, params: Mapping[str, Json], repository: Repository) -> App:
    """Return a served app with the parameters of a request.

    If its file names no indexes and no principals, a request may choose among its caller's indexes; if it names no user,
    among the caller's persons.

    Raises:
        InputError: a parameter is missing, unknown or of another type, or grants access.
    """
    if app.documents is not None:
        closed = closed_params(app)
        refused = next((name for name in GRANTED if name in params and name in closed), None)
        if refused is not None:
            raise InputError(
                f"a request may not set {refused!r} of the app {app.name!r}, which decides what is searched for whom; "
                "serve an app file with a default of its own"
            )
        _check_indexes(params.get("in"), repository)
        if (name := params.get("user")) and isinstance(name, str) and repository.store.users.get(name) is None:
            raise repository.store.users.unknown(name)
    return app.with_params(params)


def is_relayed_app(options: CompletionOptions, repository: Repository) -> bool:
    """Return whether the app of a request relays it unchanged: without its own state, tools and searches.

    Raises:
        ConfigError: the app is not found or has an error.
        InputError: a parameter is missing or unknown.
    """
    return is_relayed(_open_app(options, repository))


def closed_params(app: App) -> frozenset[str]:
    """Return the parameters of an app that searches documents that a request may not set, because the file decides them."""
    own = {param.name for param in app.params if param.name in GRANTED and param.default not in (None, "", [])}
    return frozenset({"as", *own, *(("in",) if "as" in own else ())})


def _check_indexes(names: Json, repository: Repository) -> None:
    """Check that the indexes of a request belong to its caller; folders are refused."""
    if not names or repository.settings is None:
        return
    with open_library(repository.settings, creating=False) as library:
        known = library.names() if repository.scope is None else repository.scope.names(library)
    from taiwa.sessions.ask_resources import BUNDLED_HANDBOOK

    known = (*known, BUNDLED_HANDBOOK)
    unknown = next((name for name in (names if isinstance(names, list) else [names]) if name not in known), None)
    if unknown is not None:
        listed = f"choose from {', '.join(known[:8])}"
        raise NotFoundError(f"index {str(unknown)[:80]!r} not found; {listed}")


def _open_app(options: CompletionOptions, repository: Repository) -> App:
    app, given = served_app(load_unchanged(options.app), options.params, repository), options.request
    # An answer without calls is valid; many clients offer tools always.
    if given.parts.tool_choice in ("auto", "none") and not is_relayed(app):
        given = replace(given, parts=replace(given.parts, client_tools=()))
    name, size = digest_and_size(given)
    with_request = _with_request if size <= LONGEST_OPTIONS else _with_request.__wrapped__
    return with_request(app, _RequestOptions(name, given))


@dataclass(frozen=True, slots=True)
class _RequestOptions:
    """The options of a request, which are equal if their digests are."""

    digest: str
    options: AnswerOptions = field(compare=False)


@lru_cache(maxsize=64)
def _with_request(app: App, request: _RequestOptions) -> App:
    """Return an app with the options of a request; those of one client are mostly the same, with long tools."""
    return app.with_options(AnswerOptions(request=request.options))


def split_prefix(messages: Sequence[Message]) -> tuple[tuple[Message, ...], str]:
    """Split off the beginning of the answer: a last message of the assistant that is only text (prefill)."""
    last = messages[-1] if len(messages) > 1 else None
    if (
        last is None
        or last.role != "assistant"
        or not last.text
        or any(not isinstance(part, Text) for part in last.parts)
    ):
        return tuple(messages), ""
    return tuple(messages[:-1]), last.text


def split_system(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """Return the text of the leading system messages of a history, and the messages after them."""
    count = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    return "\n\n".join(message.text for message in messages[:count]), tuple(messages[count:])
