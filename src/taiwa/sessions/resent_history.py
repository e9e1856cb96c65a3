"""Begin a turn where the history stands that a client resends: the state of conversations for clients that keep none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from taiwa.conversation.app import App
from taiwa.conversation.history import (
    START,
    Conversation,
    Transcript,
    add_turn,
    change_app,
    edit_state,
    next_address,
    split_turns,
    summarize_window,
    turn_digest,
)
from taiwa.flows.chat import input_text
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text
from taiwa.kernel.records import Json, value
from taiwa.sessions.commit_turn import TurnInput, branch_name
from taiwa.sessions.repository import Repository
from taiwa.store.server_records import TranscriptEntry

FIRST_LOOKUP = 4
"""How many of the longest prefixes are looked up at once; an unchanged history is found among them."""
CLIENT = "client"
"""The author of a state that a client of the server set."""
FEWEST_TRIMMED = 2
"""How many turns a trimmed history must share with a stored one: one short exchange occurs in many conversations."""


@value
class PlacedTurn:
    """A turn in its place: the session that it continues or begins, and how many resent turns were found in the store."""

    session: str
    turn_input: TurnInput
    matched: int
    adopted: int = 0


def is_relayed(app: App) -> bool:
    """Report whether a turn with this app is one request of the client as it is: without state, tools and look-ups."""
    return app.flow == "chat" and not (app.model_fields or app.tools or app.is_template)


def place_turn(repository: Repository, app: App, messages: Sequence[Message]) -> PlacedTurn:
    """Find the node that a resent history leads to, and describe the turn that follows it.

    The longest prefix of the history that this owner of the store and app have counts, of several nodes the newest. Turns
    behind it are adopted as they are. A history without its beginning is found by its last turns, at least two. All else
    begins anew.

    Raises:
        InputError: nothing is left to answer, or the app does not take the options of the request.
    """
    turns, inputs = split_turns(messages)
    digests = [turn_digest(turn) for turn in turns]
    found = _find_prefix(repository, app, digests) or _find_trimmed(repository, app, turns, digests)
    if found is None:
        return _place(repository, app, repository.start(app), "", START, turns, inputs)
    entry, known, base = found
    session = entry.session if _is_at(repository, entry.session, entry.node) else ""
    placed = _place(repository, app, base, session, entry.address, turns[known:], inputs)
    return replace(placed, matched=known)


def place_after(
    repository: Repository, app: App, node: str, session: str, address: str, messages: Sequence[Message]
) -> PlacedTurn:
    """Describe the turn that follows a node: of the session, if that is its tip, else of a branch.

    `address` is that of the history up to the node, or START where it is not known.

    Raises:
        InputError: as `place_turn`.
    """
    turns, inputs = split_turns(messages)
    session = session if _is_at(repository, session, node) else ""
    base = repository.recent(node)
    if base.count == 0 and session and base.app != app:  # nothing was said yet: any app may begin
        placed = _place(repository, app, repository.start(app), "", START, turns, inputs)
        if not placed.turn_input.base.new_nodes:
            return placed
        turn_input = replace(placed.turn_input, replaces=node, branches=False)
        return replace(placed, session=session, turn_input=turn_input)
    return _place(repository, app, base, session, address, turns, inputs)


def place_in_session(
    repository: Repository,
    app: App,
    session: str,
    messages: Sequence[Message],
    after: str = "",
    state: Mapping[str, Json] | None = None,
) -> PlacedTurn:
    """Describe a turn that a session stays with, wherever the history leads: it goes on, goes back to an earlier node, or begins.

    With `after` the turn follows that node, and only what the history asks last counts. `state` is what the client holds: the fields
    that differ from the state that the session had last are set before the turn.

    Raises:
        InputError: as `place_turn`, or a field of the state does not exist, is computed, or has a value of another type.
    """
    turns, inputs = split_turns(messages)
    at = repository.store.refs.find(session)
    tip = None if at is None else at[2]
    if after:
        address = repository.store.transcripts.address_of(after) or START
        found: tuple[Conversation, str, int] = (repository.checkout(after), address, len(turns))
    else:
        found = _find_in_session(repository, app, session if tip else "", turns)
    base, address, known = found
    base = repository.checkout(tip) if tip is not None and base.tip == tip else base
    held = base.state if tip is None else repository.checkout(tip).state
    edits = {name: each for name, each in (state or {}).items() if name not in held or held[name] != each}
    return _place(
        repository,
        app,
        base,
        session if tip else "",
        address,
        turns[known:],
        inputs,
        name=session,
        tip=tip,
        edits=edits,
    )


def _find_in_session(
    repository: Repository, app: App, session: str, turns: Sequence[tuple[Message, ...]]
) -> tuple[Conversation, str, int]:
    """Return the conversation at the end of the longest known prefix of a history, its address, and its number of turns.

    What the session has counts before what others have.
    """
    digests = [turn_digest(turn) for turn in turns]
    if session:
        if found := _find_prefix(repository, app, digests, session):
            return found[2], found[0].address, found[1]
        own = repository.at(session).turns  # of the page, the command line, or another app
        known = 0
        while known < min(len(own), len(digests)) and turn_digest(own[known].all_messages) == digests[known]:
            known += 1
        if known:
            name = repository.store.refs.tip(session) if known == len(own) else own[known - 1].hash
            address = START
            for digest in digests[:known]:
                address = next_address(address, digest)
            return repository.checkout(name), address, known
    found = _find_prefix(repository, app, digests) or _find_trimmed(repository, app, turns, digests)
    return (repository.start(app), START, 0) if found is None else (found[2], found[0].address, found[1])


def place_compaction(repository: Repository, app: App, messages: Sequence[Message], node: str = "") -> PlacedTurn:
    """Describe the summary of the history up to a node and of the turns behind it, without messages that are not answered.

    It begins a session of its own, so that the conversation itself keeps its turns.
    """
    turns, _ = split_turns(messages)
    base = repository.checkout(node) if node else repository.start(app)
    for turn in turns:
        files, said = detach(turn)
        base = add_turn(
            base, input_text(turn[:-1]), turn[-1].text, None if is_relayed(base.app) else {}, files, messages=said
        )
    base, session = _stored(repository, base, "", "", None)
    turn_input = TurnInput(base, "compact", "compact", branches=not session, may_branch=True, compacts=True)
    return PlacedTurn(session or branch_name(base), turn_input, 0, len(turns))


def _place(
    repository: Repository,
    app: App,
    base: Conversation,
    session: str,
    address: str,
    turns: Sequence[tuple[Message, ...]],
    inputs: tuple[Message, ...],
    *,
    name: str = "",
    tip: str | None = None,
    edits: Mapping[str, Json] | None = None,
) -> PlacedTurn:
    """Describe a turn after some turns that are adopted; without a session it begins one, with a name of its own.

    A session whose `tip` is another node than the base goes back to the base. `edits` are set before the turn.
    """
    if app.answer_options.shapes_reply and not is_relayed(app):
        kind = "searches documents" if app.flow == "ask" else "keeps a state or has tools of its own"
        raise InputError(
            f"the app {app.name!r} {kind}: it takes no tools, response format, stop strings or logprobs of a request"
        )
    answerable = input_text(inputs) or is_relayed(app) or any(message.attachments for message in inputs)
    if not inputs or not answerable:
        raise InputError("the last message must be of the user or a tool")
    is_same = base.app.name == app.name and (app.values == base.app.values or not app.values)
    if (
        is_same and base.app.hash != app.hash and repository.store.nodes.is_trusted(base.app.hash)
    ):  # an import does not replace a served app
        # A conversation keeps the text of its app, and what was set for its answers.
        app = base.app.with_options(replace(base.app.options, request=app.options.request))
    base = base if app.hash == base.app.hash else change_app(base, app)
    adopts = is_relayed(app)  # a turn of an app with a state has a delta, which the client does not know
    for turn in turns:
        address = next_address(address, turn_digest(turn))
        if adopts:
            files, messages = detach(turn)
            base = add_turn(base, input_text(turn[:-1]), turn[-1].text, None, files, messages=messages)
    if edits:
        base = edit_state(base, dict(edits), CLIENT)
    drafted = bool(base.new_nodes)
    base, session = _stored(repository, base, session, name, tip)
    is_there = base.tip == tip or (drafted and not base.new_nodes)  # what precedes the turn has moved the session
    leaves = None if is_there else tip
    files, inputs = detach(inputs)
    turn_input = TurnInput(
        base,
        input_text(inputs),
        "turn" if leaves is None else "edit",
        leaves,
        attachments=files,
        messages=inputs if is_relayed(app) else (),
        branches=not session,
        may_branch=True,
        transcript=Transcript(app.name, address),
    )
    return PlacedTurn(session or name or branch_name(base), turn_input, 0, len(turns) if adopts else 0)


def detach(messages: Sequence[Message]) -> tuple[tuple[Attachment, ...], tuple[Message, ...]]:
    """Return the attachments of messages, and the messages without them.

    Raises:
        InputError: a message other than the last one of the user has attachments.
    """
    last = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    if any(message.attachments for at, message in enumerate(messages) if at != last):
        raise InputError("in a turn of several messages, attachments must be in the last message of the user")
    files = tuple(file for message in messages for file in message.attachments)
    if not files:
        return (), tuple(messages)
    kept = tuple(part for part in messages[last].parts if part not in files) or (Text(""),)
    return files, (*messages[:last], Message("user", kept), *messages[last + 1 :])


def _find_prefix(
    repository: Repository, app: App, digests: Sequence[str], session: str = ""
) -> tuple[TranscriptEntry, int, Conversation] | None:
    addresses, address = list[str](), START
    for digest in digests:
        address = next_address(address, digest)
        addresses.append(address)
    lengths = {address: index for index, address in enumerate(addresses, 1)}
    for tried in (addresses[-FIRST_LOOKUP:], addresses[:-FIRST_LOOKUP]):
        found = repository.store.transcripts.find(app.name, tried, session)
        if found:
            entry = found[max(found, key=lengths.__getitem__)]
            return entry, lengths[entry.address], repository.recent(entry.node)
    return None


def _find_trimmed(
    repository: Repository, app: App, turns: Sequence[Sequence[Message]], digests: Sequence[str]
) -> tuple[TranscriptEntry, int, Conversation] | None:
    """Find a history whose beginning the client has cut; only the turns that it still sends stay in the window."""
    if len(digests) < FEWEST_TRIMMED:
        return None
    for entry in repository.store.transcripts.ending_in(app.name, digests[-1]):
        conversation = repository.checkout(entry.node)
        kept = conversation.turns[-len(digests) :]
        # The oldest turn may have lost its question.
        if len(kept) == len(digests) and all(
            turn_digest(past.all_messages[-1:] if len(turn) == 1 else past.all_messages) == digest
            for past, turn, digest in zip(kept, turns, digests, strict=True)
        ):
            if is_relayed(conversation.app) and len(conversation.turns) > len(kept):
                conversation = summarize_window(conversation, [past.hash for past in kept], "")
            return entry, len(digests), conversation
    return None


def _is_at(repository: Repository, session: str, node: str) -> bool:
    found = repository.store.refs.find(session) if session else None
    return found is not None and found[2] == node


def _stored(
    repository: Repository, base: Conversation, session: str, name: str, tip: str | None
) -> tuple[Conversation, str]:
    """Store what precedes the turn, so that an interrupted turn can be resumed; a lone root is stored with its turn."""
    new = base.new_nodes
    if not new or (len(new) == 1 and new[0].kind == "root"):
        return base, session
    expected = (tip or new[0].parent) if session else None
    session = session or name or branch_name(base)
    return repository.commit(session, base, expected=expected, reason="history of a client"), session
