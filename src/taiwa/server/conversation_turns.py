"""Turns of the store's own conversations, for the page and for programs: their position, the runs to follow, and rewriting."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_urlsafe

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, Node, add_turn, change_app, edit_state, summarize_window
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import InputError, NotFoundError, StoreError
from taiwa.kernel.messages import Message, Text, Usage
from taiwa.kernel.serialization import Json, items_at
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import currency_units
from taiwa.kernel.wording import Wording
from taiwa.operations.resent_history import REPEATED_SECONDS, Completion
from taiwa.server.api_types import Estimate, TurnEstimate
from taiwa.server.http_responses import ApiError
from taiwa.server.repeats import attempt_of
from taiwa.server.runs import EventLog, LiveRun, RunEvent, Runs, Take
from taiwa.server.served import ServedModels
from taiwa.server.shared_store import RemoteRun, Sharing
from taiwa.sessions.commit_turn import CommitTarget, PricedModel, TurnInput, TurnOptions, has_moved_since
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import AsyncSession
from taiwa.store.runs import Run, UnfinishedRun

MOST_KEPT = 256
"""Ended runs whose events can still be followed."""
LOOK_SECONDS = 1.0
"""Seconds between polls of conversations that other programs may change."""
MOST_LONG_KEPT = 16
"""The same of long conversations: a request may have 32 MB."""


LOCKED = ApiError(
    409, "another request is being answered in this conversation; send this one after it",
    "conflict_error", "conversation_locked", retry_after=1,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn of a conversation: a text at its end, after `parent`, or replacing a turn.

    `edit` is the number of the replaced turn, -1 for the last one, on the branch that ends at `parent`; `texts` are the texts of
    the turns that follow it. Without `attachments`, a replaced turn keeps its own. If the conversation is not at `expected`,
    nothing is done. The model must begin the answer with `prefix`. A turn of the same `attempt` is not made again.
    """

    text: str
    parent: str = ""
    edit: int = 0
    reason: str = "turn"
    texts: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] | None = None
    expected: str = ""
    prefix: str = ""
    attempt: str = ""


@dataclass(slots=True)
class FollowedRun:
    """The runs of one request in sequence, under an identifier for its caller."""

    id: str
    caller: str
    session: str
    log: EventLog[LiveRun] = field(default_factory=EventLog[LiveRun])
    cancelled: bool = False
    client: str = ""
    """The program and the protocol that started it; "" for the page and the server's own API."""

    @property
    def runs(self) -> Sequence[LiveRun]:
        """The runs so far."""
        return self.log.events

    @property
    def ended(self) -> bool:
        """Whether no more runs come."""
        return self.log.done

    @property
    def text(self) -> str:
        """The first text of the user."""
        return self.runs[0].completions[0].text

    async def follow(self, *, take: Take | None = None) -> AsyncIterator[RunEvent]:
        """Yield the events of all its runs, from the first one, as `LiveRun.follow`."""
        async for run in self.log.follow():
            async for event in run.follow(take=take):
                yield event

    async def stop(self) -> None:
        """End the run now; the turn is committed with the text so far."""
        self.finish()

    def finish(self) -> None:
        """As `stop`."""
        self.cancelled = True
        for run in self.runs:
            run.finish()


class FollowedRuns:
    """The runs that can be followed by identifier: those of this server, and those of other servers on its store."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._runs: dict[str, FollowedRun] = {}
        """Other threads read a copy of them."""
        self._starting: set[tuple[str, str]] = set()
        self._ended: deque[str] = deque()
        self._ended_long: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, dict[asyncio.Event, object]] = {}
        """What each follower of a caller saw last of the store."""
        self.version = 0
        """The number of runs that were started or ended."""
        self.stopping = False

    async def get(self, name: str, caller: str) -> FollowedRun | RemoteRun:
        """Return a run of a caller.

        Raises:
            ApiError: it does not exist, or belongs to another caller.
        """
        found = self._runs.get(name)
        if found is not None and found.caller == caller:
            return found
        remote = await self._sharing.find(name, caller)
        if remote is None:
            raise ApiError(404, "the run does not exist, or ended long ago", code="run_not_found")
        return remote

    def open(self, caller: str) -> list[FollowedRun]:
        """Return the active runs of a caller."""
        return [run for run in tuple(self._runs.values()) if run.caller == caller and not run.ended]

    def of(self, session: str, caller: str) -> list[FollowedRun]:
        """Return the runs of a session that can be followed, oldest first."""
        return [run for run in tuple(self._runs.values()) if run.session == session and run.caller == caller]

    async def wait(self, caller: str, version: int, seen: object, look: Callable[[], object]) -> None:
        """Wait until a run of a caller is started or ended after a version, `look` finds another value than was seen, or the server stops.

        One look serves all connections of a caller, of which there may be a thousand.
        """
        if self.version != version or self.stopping:
            return
        if caller not in self._waiting:
            self._waiting[caller] = {}
            task = asyncio.create_task(self._look(caller, look))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        changed = asyncio.Event()
        self._waiting[caller][changed] = seen
        try:
            await changed.wait()
        finally:
            self._waiting.get(caller, {}).pop(changed, None)

    async def _look(self, caller: str, look: Callable[[], object]) -> None:
        """Wake the followers of a caller that saw something else, as long as there are some."""
        try:
            await asyncio.sleep(LOOK_SECONDS)
            while self._waiting[caller]:
                with suppress(StoreError):  # it is looked again
                    found = await asyncio.to_thread(look)
                    for changed, seen in self._waiting[caller].items():
                        if seen != found:
                            changed.set()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for changed in self._waiting.pop(caller):
                changed.set()

    def stop(self) -> None:
        """Wake up all followers, because the server stops."""
        self.stopping = True
        for caller in self._waiting:
            self._wake(caller)

    def _wake(self, caller: str) -> None:
        self.version += 1
        for changed in self._waiting.get(caller, ()):
            changed.set()

    @asynccontextmanager
    async def only(self, session: str, caller: str) -> AsyncGenerator[None]:
        """Start a run of a session inside the block, if it has none.

        Raises:
            ApiError: another request is being answered in it.
        """
        key = caller, session
        if key in self._starting:
            raise LOCKED
        self._starting.add(key)
        try:
            if await asyncio.to_thread(self.of_session, session, caller) is not None:
                raise LOCKED
            yield
        finally:
            self._starting.discard(key)

    def of_session(self, session: str, caller: str) -> FollowedRun | RemoteRun | None:
        """Return the active run of a session; this may block."""
        found = (run for run in self.open(caller) if run.session == session)
        return next(found, None) or self._sharing.of_session(session, caller)

    async def start(self, runs: Runs, caller: str, session: AsyncSession, request: TurnRequest) -> FollowedRun:
        """Start a turn and the turns after it; they run whether or not their events are read.

        Raises:
            ApiError: too many runs are active, or the server is stopping. InputError: the position or the text is invalid.
        """
        turn_input = await asyncio.to_thread(place, session, request)
        turn_input.check()
        turn_input = replace(turn_input, attempt=request.attempt)
        return await self._follow(runs, caller, Completion(session, turn_input, request.attempt), request.texts)

    async def resume(self, runs: Runs, caller: str, session: AsyncSession) -> FollowedRun:
        """Complete the interrupted turn of a session, as `start`.

        Raises:
            ApiError: too many runs are active, or the server is stopping.
        """
        return await self._follow(runs, caller, Completion(session), ())

    async def _follow(self, runs: Runs, caller: str, completion: Completion, texts: Sequence[str]) -> FollowedRun:
        followed = self._begin(caller, runs.start(caller, [completion]), runs, texts)
        await self._sharing.share(caller, followed.id, followed.session, followed, followed.finish)
        return followed

    def watch(self, caller: str, run: LiveRun, runs: Runs, client: str) -> None:
        """Make a run that a client of the server started available to followers."""
        self._begin(caller, run, runs, ()).client = client

    def _begin(self, caller: str, run: LiveRun, runs: Runs, texts: Sequence[str]) -> FollowedRun:
        session = run.completions[0].session
        followed = FollowedRun(token_urlsafe(12), caller, session.name)
        followed.log.add(run)
        self._runs[followed.id] = followed
        self._wake(caller)
        if texts:
            task = asyncio.create_task(self._perform(runs, session, followed, texts))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            run.when_done = partial(self._end, followed)
        return followed

    def _end(self, followed: FollowedRun) -> None:
        followed.log.end()
        session = followed.runs[-1].completions[0].session
        ended, most = self._ended, MOST_KEPT
        if not session.repository.remembers(session.conversation):
            ended, most = self._ended_long, MOST_LONG_KEPT
        ended.append(followed.id)
        if len(ended) > most:
            del self._runs[ended.popleft()]
        self._wake(followed.caller)

    async def _perform(self, runs: Runs, session: AsyncSession, followed: FollowedRun, texts: Sequence[str]) -> None:
        try:
            await followed.runs[0].end()
            attempt = followed.runs[0].completions[0].repeats
            for number, text in enumerate(texts, 1):
                if followed.cancelled or isinstance(followed.runs[-1].last, ApiError):
                    break
                name = attempt_of(attempt, number)
                turn_input = TurnInput(session.conversation, text, attempt=name)
                followed.log.add(runs.start(followed.caller, [Completion(session, turn_input, name)]))
                await followed.runs[-1].end()
        except ApiError:
            pass  # no capacity, or the server stops: the turns so far remain
        finally:
            self._end(followed)


def place(session: AsyncSession, request: TurnRequest) -> TurnInput:
    """Return the position of a turn.

    Raises:
        InputError: the position does not exist. ApiError: the conversation has moved.
    """
    if session.repository.quota is not None:
        session.repository.quota.check()
    tip, text, files = session.conversation.tip, request.text, request.attachments
    store, moved = session.repository.store, request.expected not in ("", tip)
    if not (moved and request.attempt and store.runs.repeated(request.attempt, REPEATED_SECONDS)):
        check_tip(session.name, tip, request.expected)  # a repeat finds its own turn there
    branch = session.repository.at(request.parent) if request.parent else session.conversation
    if request.edit:
        on_branch = AsyncSession(
            session.repository, session.name, branch, session.priced_model, options=session.options
        )
        turn_input = on_branch.edit_input(text, request.edit, files, request.reason, request.prefix)
        return replace(turn_input, target=replace(turn_input.target, replaces=tip))
    if branch.tip != tip:
        return TurnInput(branch, text, CommitTarget("branch", tip), files or (), prefix=request.prefix)
    return TurnInput(session.conversation, text, attachments=files or (), prefix=request.prefix)


def check_tip(session: str, tip: str, expected: str) -> None:
    """Check that a conversation is at the node that its reader expects ("": any).

    Raises:
        ApiError: it has moved.
    """
    if expected not in ("", tip):
        raise ApiError(409, f"{session!r} has moved on meanwhile; read it, and try again", "conflict_error", "moved")


def texts_after(repository: Repository, tip: str, turn: int) -> tuple[str, ...]:
    """Return the user's texts in the turns after a turn of a history, by its number."""
    texts = [node.user or "" for _, node in repository.store.nodes.path(tip) if node.kind == "turn"][::-1]
    return tuple(texts[turn if turn > 0 else len(texts) + turn + 1 :])


def interrupted_turn(repository: Repository, session: str) -> Run | None:
    """Return the interrupted turn of a session that can be resumed: the last one, unless the session has moved since."""
    runs = repository.store.runs.open_runs(session)
    return runs[-1] if runs and not has_moved_since(repository, runs[-1]) else None


def unfinished_turn(repository: Repository, session: str) -> UnfinishedRun | None:
    """Return the last turn of a session if it failed or was interrupted, and the session has not moved since."""
    found = repository.store.runs.unfinished(session)
    return None if found is None or has_moved_since(repository, found.run) else found


def repeat_request(repository: Repository, session: str, expected: str, prefix: str) -> TurnRequest:
    """Return the turn of `unfinished_turn` as a request, with its place and its attachments.

    Raises:
        ApiError: the session has none.
    """
    found = unfinished_turn(repository, session)
    if found is None:
        raise ApiError(409, f"{session!r} has no unfinished turn", "conflict_error", "conflict")
    run, options = found.run, found.run.options if isinstance(found.run.options, dict) else {}
    files = tuple(map(read_reference, items_at(options, "attachments")))
    return TurnRequest(
        run.text, run.base or "", attachments=files, expected=expected, prefix=prefix or str(options.get("prefix", ""))
    )


def session_of_run(
    repository: Repository, name: str, run: Run, priced_model: PricedModel, turns: TurnOptions
) -> AsyncSession:
    """Open a session at the place of one of its interrupted turns, to resume it."""
    base = repository.start(repository.app(run.app or "")) if run.base is None else repository.checkout(run.base)
    return AsyncSession(repository, name, base, priced_model, options=turns)


def open_conversation(
    served: ServedModels, repository: Repository, turns: TurnOptions, name: str, model: str = ""
) -> AsyncSession:
    """Open a conversation with the model of its last answer, the given model, or that of its app.

    Raises:
        InputError: it does not exist.
        ConfigError: the model is unknown, or its key is missing.
    """
    conversation = repository.at(repository.session(name))
    last = model or repository.last_model(conversation.tip, name)
    priced_model = served.open_for(conversation.app, last)
    return AsyncSession(repository, name, conversation, priced_model, options=turns)


def begin_conversation(
    served: ServedModels, repository: Repository, turns: TurnOptions, app: App, model: str, name: str = ""
) -> AsyncSession:
    """Create a conversation without turns.

    Raises:
        InputError: the name exists. ConfigError: the model is unknown, or its key is missing.
    """
    repository.trust(app.hash)  # the operator of the server has chosen to serve it
    priced_model = served.open_for(app, model)
    with repository.store.transaction():
        if name and repository.store.refs.has(name):
            raise InputError(f"conversation {name!r} exists already; choose another name")
        name = name or repository.new_name(app)
        conversation = repository.commit(name, repository.start(app), expected=None, reason="begin")
    return AsyncSession(repository, name, conversation, priced_model, options=turns)


def run_to_json(followed: FollowedRun) -> Json:
    """Return a run as JSON: its identifier and its conversation."""
    return {"run": followed.id, "session": followed.session}


def rewrite_turn(repository: Repository, session: str, turn: int, text: str, branch: str = "") -> str:
    """Change the text of a turn by its number, keeping every answer, state delta and edit; return the new end.

    The session continues on a new branch; the old one remains. `branch` is the end of the branch of the turn, by default the end
    of the session.

    Raises:
        InputError: the turn does not exist, or the text is empty.
    """
    if not text.strip():
        raise InputError(Wording("the text is empty"))
    tip = repository.store.refs.tip(session)
    end = branch or tip
    edited = _find_turn(repository, end, turn)
    parent = repository.store.nodes.get(edited).parent
    assert parent is not None, "a turn has a parent"
    here, names = repository.checkout(parent), dict[str, str]()
    for name, node in reversed(tuple(repository.store.nodes.path(end, parent))):
        here = _again(repository, here, _with_text(node, text) if name == edited else node, names)
        names[name] = here.tip
    return repository.commit(session, here, expected=tip, reason="edit").tip


def _find_turn(repository: Repository, end: str, turn: int) -> str:
    turns = [name for name, node in repository.store.nodes.path(end) if node.kind == "turn"]
    if not 1 <= turn <= len(turns):
        raise NotFoundError(f"turn {turn} not found; the conversation has {len(turns)}")
    return turns[-turn]


def _with_text(node: Node, text: str) -> Node:
    """Return a turn with another user text, without reasoning that a server signed for the old one."""
    said = node.parts.messages
    last = max((at for at, message in enumerate(said) if message.role == "user"), default=-1)
    messages = tuple(Message("user", (Text(text),)) if at == last else message for at, message in enumerate(said))
    return replace(node, user=text, parts=replace(node.parts, thinking=(), messages=messages))


def _again(repository: Repository, here: Conversation, node: Node, names: dict[str, str]) -> Conversation:
    """Add a node of another branch; `names` maps the nodes added so far to their new hashes."""
    match node.kind:
        case "turn":
            return add_turn(here, node.user or "", node.answer or "", node.delta, node.parts, node.by)
        case "summary":
            kept = [names.get(str(each), str(each)) for each in items_at(node.delta, "kept")]
            return summarize_window(here, kept, node.answer or "")
        case "edit":
            values = node.delta if isinstance(node.delta, dict) else {}
            return edit_state(here, values, node.answer or "")
        case _:
            return change_app(here, repository.app(node.app))


def estimate_turns(repository: Repository, priced_model: PricedModel, end: str, turn: int) -> TurnEstimate:
    """Estimate the cost of answering a turn again, and with all turns after it, and count those.

    Each is assumed to use as many tokens as before, or if that is unknown, those of its texts.

    Raises:
        InputError: the turn does not exist.
    """
    name = _find_turn(repository, end, turn)
    first = _usage(repository, name, repository.store.nodes.get(name))
    later = [
        _usage(repository, each, node) for each, node in repository.store.nodes.path(end, name) if node.kind == "turn"
    ]
    total = first
    for usage in later:
        total = total + usage
    return {"answer": _priced(priced_model, first), "replay": _priced(priced_model, total), "following": len(later)}


def _usage(repository: Repository, name: str, node: Node) -> Usage:
    bill = repository.store.runs.bill_of(name)
    if bill is not None and (bill.usage.input_tokens or bill.usage.output_tokens):
        return bill.usage
    before = repository.checkout(node.parent or name)
    said = sum(estimate_tokens(f"{past.user}\n{past.answer}") for past in before.turns) + estimate_tokens(
        before.app.body
    )
    return Usage(said + estimate_tokens(node.user or ""), estimate_tokens(node.answer or ""))


def _priced(priced_model: PricedModel, usage: Usage) -> Estimate:
    cost = currency_units(priced_model.price(priced_model.model.name, usage))
    return {"tokens": usage.input_tokens + usage.output_tokens, "cost": None if cost is None else str(cost)}
