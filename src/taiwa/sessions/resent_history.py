"""Begin a turn where the history stands that a client resends: the state of conversations for clients that keep none."""

from collections.abc import Sequence

from taiwa.conversation.app import App
from taiwa.conversation.history import Conversation, add_turn, change_app, summarize_window
from taiwa.conversation.transcript import START, Transcript, next_address, split_turns, turn_digest
from taiwa.flows.chat import input_text
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text
from taiwa.kernel.records import value
from taiwa.sessions.durable_turn import TurnInput, branch_name
from taiwa.sessions.repository import Repository
from taiwa.store.transcripts import TranscriptEntry

FIRST_LOOKUP = 4
"""How many of the longest prefixes are looked up at once; an unchanged history is found among them."""
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

    The longest prefix of the history that this owner of the store and app have counts, of several nodes the newest. Turns behind it are
    adopted as they are. A history without its beginning is found by its last turns, at least two. All else begins anew.

    Raises:
        InputError: nothing is left to answer, or the app does not take the options of the request.
    """
    if app.request.shapes_reply and not is_relayed(app):
        kind = "searches documents" if app.flow == "ask" else "keeps a state or has tools of its own"
        raise InputError(
            f"the app {app.name!r} {kind}: it takes no tools, response format, stop strings or logprobs of a request"
        )
    turns, inputs = split_turns(messages)
    answerable = input_text(inputs) or is_relayed(app) or any(message.attachments for message in inputs)
    if not inputs or not answerable:
        raise InputError("the last message must be of the user or a tool: there is nothing to answer")
    digests = [turn_digest(turn) for turn in turns]
    found = _find_prefix(repository, app, digests) or _find_trimmed(repository, app, turns, digests)
    if found is None:
        base, session, address, known = repository.start(app), "", START, 0
    else:
        entry, known, base = found
        session = entry.session if _is_at(repository, entry) else ""
        address = entry.address
        own = base.app.with_request(app.request)
        own = own if app.values == base.app.values or not app.values else app
        base = base if own.hash == base.app.hash else change_app(base, own)
    adopts = is_relayed(base.app)  # a turn of an app with a state has a delta, which the client does not know
    for turn, digest in zip(turns[known:], digests[known:], strict=True):
        address = next_address(address, digest)
        if adopts:
            files, messages = detach(turn)
            base = add_turn(base, input_text(turn[:-1]), turn[-1].text, None, files, messages=messages)
    base, session = _stored(repository, base, session)
    transcript = Transcript(app.name, address)
    files, inputs = detach(inputs)
    branches = not session
    turn_input = TurnInput(
        base,
        input_text(inputs),
        attachments=files,
        messages=inputs if is_relayed(base.app) else (),
        branches=branches,
        may_branch=True,
        transcript=transcript,
    )
    adopted = len(turns) - known if adopts else 0
    return PlacedTurn(session or branch_name(base), turn_input, known, adopted)


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
    repository: Repository, app: App, digests: Sequence[str]
) -> tuple[TranscriptEntry, int, Conversation] | None:
    addresses, address = list[str](), START
    for digest in digests:
        address = next_address(address, digest)
        addresses.append(address)
    lengths = {address: index for index, address in enumerate(addresses, 1)}
    for tried in (addresses[-FIRST_LOOKUP:], addresses[:-FIRST_LOOKUP]):
        found = repository.store.transcripts.find(app.name, tried)
        if found:
            entry = found[max(found, key=lengths.__getitem__)]
            return entry, lengths[entry.address], repository.checkout(entry.node)
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


def _is_at(repository: Repository, entry: TranscriptEntry) -> bool:
    refs = repository.store.refs
    return refs.has(entry.session) and refs.tip(entry.session) == entry.node


def _stored(repository: Repository, base: Conversation, session: str) -> tuple[Conversation, str]:
    """Store what precedes the turn, so that an interrupted turn can be resumed; a lone root is stored with its turn."""
    new = base.new_nodes
    if not new or (len(new) == 1 and new[0].kind == "root"):
        return base, session
    expected = new[0].parent if session else None
    session = session or branch_name(base)
    return repository.commit(session, base, expected=expected, reason="history of a client"), session
