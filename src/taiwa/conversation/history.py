"""A conversation as a value: its nodes, how turns, edits and summaries change it, and the window of turns in the prompt.

A history also has a content address, which identifies the conversation of clients that keep no ids and resend the history
with every request. It covers all turns, and ignores what clients change: white space, reasoning, ids of calls, system
messages, and how the text of one role is divided into messages.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from hashlib import blake2b
from itertools import groupby
from json.encoder import encode_basestring
from operator import attrgetter
from types import NoneType
from typing import Literal, TypeAlias, TypeVar, cast

from taiwa.conversation.app import App
from taiwa.conversation.state import State, TurnContext, apply_delta, apply_edit, migrate_state, replace_state
from taiwa.kernel.attachments import Attachment, read_reference
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.messages import Message, Text, Thinking, ToolCall, ToolResult, assistant, result_files
from taiwa.kernel.messages import user as user_message
from taiwa.kernel.serialization import (
    COMPACT,
    DIGEST_BYTES,
    Json,
    canonical,
    digest,
    items_at,
    parse_json,
    restore,
    value,
)

T = TypeVar("T")
NodeKind = Literal["root", "turn", "summary", "edit", "app"]


@value
class AnsweredBy:
    """The model that answered a turn, under the name that the user gave, and the host and port of its server.

    The model is "" if none answered, the host if it has no server.
    """

    model: str = ""
    host: str = ""

    def __str__(self) -> str:
        return f"{self.model} at {self.host}" if self.host and self.host not in self.model else self.model


NO_MODEL = AnsweredBy()
NO_STATE = digest({})
"""The hash of the state of an app that keeps none."""


@value
class TurnParts:
    """The parts of a turn besides its texts and its delta; a node refers to attachments by their hashes.

    - `attachments`: those of the user's message.
    - `thinking`: signed or encrypted reasoning, for the server that it came from.
    - `messages`: those of the turn, the answer last, without attachments of the user and reasoning, if they are more than its two
      texts: calls of a client's tools and their results.
    - `prefix`: the prefilled beginning of its answer.
    - `findings`: what it rests on besides the conversation: its `documents` (the decision, the passages, the claims) and its `calls`
      of tools.
    """

    attachments: tuple[Attachment, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    messages: tuple[Message, ...] = ()
    prefix: str = ""
    findings: Json = None


NO_PARTS = TurnParts()


@value(tag="node")
class Node:
    """A root, a turn, a summary of old turns, an edit of the state, or a change of app.

    `delta` is the state delta of a turn (the whole new object in `environment` mode), the replaced values of an edit, or the
    kept turns of a summary. `state_hash` names the state after this node. Equal texts `by` different models are different turns.
    """

    parent: str | None
    kind: NodeKind
    app: str
    user: str | None = None
    answer: str | None = None
    delta: Json = None
    state_hash: str = ""
    parts: TurnParts = NO_PARTS
    by: AnsweredBy = NO_MODEL
    _hash: str = field(default_factory=str, init=False, repr=False, compare=False)

    @property
    def hash(self) -> str:
        """32 hex characters."""
        if not self._hash:
            object.__setattr__(self, "_hash", digest(self))
        return self._hash

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The attachments of the user's message."""
        return self.parts.attachments

    @property
    def findings(self) -> Json:
        """What a turn rests on besides the conversation."""
        return self.parts.findings

    @property
    def call_files(self) -> tuple[Attachment, ...]:
        """The attachments of the results of tools.

        Raises:
            InputError: a reference to one, which is untrusted, is none.
        """
        found = self.findings
        calls = items_at(found, "calls") if isinstance(found, dict) and "calls" in found else ()
        listed = (file for call in calls for file in items_at(call, "attachments"))
        return (*map(read_reference, listed), *result_files(self.parts.messages))

    @property
    def files(self) -> tuple[Attachment, ...]:
        """All attachments: those of the user's message, and those of the results of tools."""
        return (*self.parts.attachments, *self.call_files)

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the texts of a turn, and its state delta."""
        quoted = "\n".join(f"> {line}" for line in (self.user or "").splitlines())
        delta = "" if self.delta is None else f"```json\n{json.dumps(self.delta, ensure_ascii=False)}\n```"
        return "\n\n".join(filter(None, (quoted, self.answer, delta)))


def _restored(data: Json, kind: type[T], what: str) -> tuple[T, ...]:
    """Rebuild the values of a record, all of one kind: several, one, or none for None."""
    try:
        found: object = () if data is None else restore(data)
    except CorruptError as error:
        raise InputError(error.message) from None
    values = cast("tuple[object, ...]", found) if isinstance(found, tuple) else (found,)
    restored = tuple(each for each in values if isinstance(each, kind))
    if len(restored) < len(values):
        raise InputError(f"the {what} of a node cannot be read")
    return restored


def restore_thinking(data: Json) -> tuple[Thinking, ...]:
    """Rebuild the reasoning of a node from its record.

    Raises:
        InputError: the record holds something else.
    """
    return _restored(data, Thinking, "reasoning")


Apps: TypeAlias = Callable[[str], App]


@value
class PastTurn:
    """A turn as it appears in later prompts."""

    hash: str
    user: str
    answer: str
    delta: Json = None
    parts: TurnParts = NO_PARTS
    kept: tuple[object, ...] = field(default=(), init=False, repr=False, compare=False)
    """The app, the layout and the messages of the last request."""

    @property
    def findings(self) -> Json:
        """What it rests on besides the conversation."""
        return self.parts.findings

    @property
    def files(self) -> tuple[Attachment, ...]:
        """The attachments that later prompts hold."""
        return (*self.parts.attachments, *result_files(self.parts.messages))

    @property
    def said(self) -> str:
        """The answer as later prompts show it: one from documents without the list of its sources."""
        match self.findings:
            case {"documents": {"answer": str(said)}}:
                return said
            case _:
                return self.answer

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """The messages of the turn, the answer last."""
        messages = self.parts.messages or (user_message(self.user), assistant(self.answer))
        answer = Message("assistant", (*self.parts.thinking, *messages[-1].parts))
        return (*attach(messages[:-1], self.parts.attachments), answer)


def attach(messages: tuple[Message, ...], attachments: tuple[Attachment, ...]) -> tuple[Message, ...]:
    """Put attachments before the text of the last message of the user."""
    index = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
    if not attachments or index < 0:
        return messages
    with_files = Message("user", (*attachments, *messages[index].parts))
    return (*messages[:index], with_files, *messages[index + 1 :])


def restore_messages(data: Json) -> tuple[Message, ...]:
    """Rebuild the messages of a node from their record.

    Raises:
        InputError: the record holds something else.
    """
    messages = _restored(data, Message, "messages")
    if not all(_is_part(part) for message in messages for part in message.parts):
        raise InputError("the messages of a node cannot be read")
    return messages


def _is_part(part: object) -> bool:
    match part:
        case Text(str()) | ToolCall(str(), str(), str()) | ToolResult(str(), str(), str()):
            return True
        case _:
            return False


@value
class Conversation:
    """A position in a history.

    `turns` are those in the window; `last_answer` is what the newest turn said, in the window or not. `new_nodes` are not in the
    store yet, oldest first.
    """

    app: App
    tip: str
    state: State
    turns: tuple[PastTurn, ...] = ()
    summary: str = ""
    count: int = 0
    last_answer: str = ""
    new_nodes: tuple[Node, ...] = ()
    _size: int = field(default_factory=int, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"Conversation(app {self.app.name!r}, turn {self.count}, tip {self.tip[:8]})"

    @property
    def stored_tip(self) -> str | None:
        """The newest node that a store has, or None if the conversation is new."""
        return self.new_nodes[0].parent if self.new_nodes else self.tip

    @property
    def size(self) -> int:
        """The characters of its turns, with the bytes of their files."""
        if not self._size:
            texts = sum(len(past.user) + len(past.answer) for past in self.turns)
            object.__setattr__(self, "_size", texts + sum(file.size for file in self.files))
        return self._size

    @property
    def files(self) -> tuple[Attachment, ...]:
        """The attachments of its turns that later prompts hold."""
        with_files = (past for past in self.turns if past.parts.attachments or past.parts.messages)
        return tuple(file for past in with_files for file in past.files)

    def stored(self) -> "Conversation":
        """Return the conversation once a store has its new nodes."""
        here = self
        return Conversation(here.app, here.tip, here.state, here.turns, here.summary, here.count, here.last_answer)

    @property
    def state_hash(self) -> str:
        """The hash of the state."""
        return digest(self.state)


def begin(app: App) -> Conversation:
    """Start a conversation with an app."""
    state = {field.name: field.start for field in app.fields}
    root = Node(None, "root", app.hash, state_hash=digest(state))
    return Conversation(app, root.hash, state, new_nodes=(root,))


def add_turn(
    conversation: Conversation,
    user: str,
    answer: str,
    delta: Json,
    parts: TurnParts = NO_PARTS,
    by: AnsweredBy = NO_MODEL,
) -> Conversation:
    """Add a turn: fold its delta into the state. Messages that are its two texts are dropped from its parts."""
    app, parts = conversation.app.hash, _without_texts(parts, user, answer)
    if parts.findings:
        parts = replace(parts, findings=_ordered(parts.findings))
    return _append(conversation, Node(conversation.tip, "turn", app, user, answer, _ordered(delta), "", parts, by))


def _without_texts(parts: TurnParts, user: str, answer: str) -> TurnParts:
    """Return the parts of a turn without messages that are its two texts."""
    if not _are_texts(parts.messages, user, answer):
        return parts
    return NO_PARTS if parts == TurnParts(messages=parts.messages) else replace(parts, messages=())


def _are_texts(messages: tuple[Message, ...], user: str, answer: str) -> bool:
    """Return whether messages are a text of the user and its answer, and nothing else."""
    if len(messages) != 2 or (messages[0].role, messages[1].role) != ("user", "assistant"):
        return False
    return _is_text(messages[0], user) and _is_text(messages[1], answer)


def _is_text(message: Message, text: str) -> bool:
    part = message.parts[0] if len(message.parts) == 1 else None
    return isinstance(part, Text) and part.text == text and not part.transient


ReceivedTurn: TypeAlias = tuple[str, str, TurnParts]
"""The text of the user, the answer, and the parts of a turn that a client resends."""


def add_turns(conversation: Conversation, received: Iterable[ReceivedTurn]) -> Conversation:
    """Add turns, as `add_turn` does one by one without deltas, and faster for an app without state."""
    if conversation.app.fields:
        for user, answer, parts in received:
            conversation = add_turn(conversation, user, answer, None, parts)
        return conversation
    tip, app = conversation.tip, conversation.app.hash
    turns, nodes = list(conversation.turns), list(conversation.new_nodes)
    for user, answer, parts in received:
        node = Node(tip, "turn", app, user, answer, None, NO_STATE, _without_texts(parts, user, answer))
        tip = node.hash
        nodes.append(node)
        turns.append(past_turn(tip, node))
    added = len(turns) - len(conversation.turns)
    if not added:
        return conversation
    count, last = conversation.count + added, turns[-1].answer
    return Conversation(conversation.app, tip, {}, tuple(turns), conversation.summary, count, last, tuple(nodes))


def summarize_window(conversation: Conversation, kept: Iterable[str], summary: str) -> Conversation:
    """Keep only the turns of these hashes in the window, and a summary of the others."""
    node = Node(conversation.tip, "summary", conversation.app.hash, answer=summary, delta={"kept": list(kept)})
    return _append(conversation, node)


def edit_state(conversation: Conversation, values: State, author: str = "") -> Conversation:
    """Set values of the state outside of a turn: by hand, or by the `author` that is named.

    Raises:
        InputError: a value does not fit its field.
    """
    app, delta = conversation.app.hash, _ordered(values)
    return _append(conversation, Node(conversation.tip, "edit", app, answer=author or None, delta=delta))


def change_app(conversation: Conversation, app: App) -> Conversation:
    """Continue with another app; values that fit its fields are kept."""
    return _append(conversation, Node(conversation.tip, "app", app.hash), app)


def _append(conversation: Conversation, draft: Node, app: App | None = None) -> Conversation:
    app = app or conversation.app
    state = _state_after(conversation, draft, app)
    # The draft is not shared yet; a copy would take as long as its hash.
    object.__setattr__(draft, "state_hash", digest(state) if state else NO_STATE)
    return _at_node(conversation, draft.hash, draft, app, state, (*conversation.new_nodes, draft))


def advance(conversation: Conversation, node: Node, apps: Apps) -> Conversation:
    """Follow one node.

    Raises:
        CorruptError: the node has another parent, or leads to another state than it recorded.
    """
    return apply_nodes(conversation, ((node.hash, node),), apps)


def apply_nodes(conversation: Conversation, steps: Iterable[tuple[str, Node]], apps: Apps) -> Conversation:
    """Follow named nodes of a store, oldest first; only the last state is compared with the recorded one.

    Raises:
        CorruptError: as `advance`.
    """
    node, tip, plain = None, conversation.tip, list[PastTurn]()
    for name, node in steps:
        if node.parent != tip:
            raise CorruptError(f"node {name[:12]} does not follow {tip[:12]}")
        tip = name
        if _is_plain(conversation.app, node):
            plain.append(past_turn(name, node))
            continue
        conversation = _follow(_with_turns(conversation, plain), name, node, apps)
        plain.clear()
    return conversation if node is None else _check_state(_with_turns(conversation, plain), node)


def _is_plain(app: App, node: Node) -> bool:
    """Return whether a node is a turn of an app without state; many of those are applied at once."""
    return node.kind == "turn" and not app.fields and node.app == app.hash and isinstance(node.delta, (NoneType, dict))


def _with_turns(conversation: Conversation, turns: Sequence[PastTurn]) -> Conversation:
    """Add turns of an app that has no state."""
    if not turns:
        return conversation
    added, last, count = (*conversation.turns, *turns), turns[-1], conversation.count + len(turns)
    return replace(conversation, tip=last.hash, state={}, turns=added, count=count, last_answer=last.said)


def _follow(conversation: Conversation, name: str, node: Node, apps: Apps) -> Conversation:
    app = conversation.app if node.app == conversation.app.hash else apps(node.app)
    try:
        state = _state_after(conversation, node, app)
    except InputError as error:
        raise CorruptError(f"node {name[:12]} cannot be followed: {error.message}") from None
    return _at_node(conversation, name, node, app, state, conversation.new_nodes)


def _check_state(conversation: Conversation, node: Node) -> Conversation:
    if conversation.state_hash != node.state_hash:
        name = conversation.tip[:12]
        raise CorruptError(f"node {name} leads to another state than it recorded; run `taiwa fsck`")
    return conversation


def _at_node(
    conversation: Conversation, name: str, node: Node, app: App, state: State, new_nodes: tuple[Node, ...]
) -> Conversation:
    turns, summary, count = conversation.turns, conversation.summary, conversation.count
    last_answer = conversation.last_answer
    if node.kind == "turn":
        turns = (*turns, past_turn(name, node))
        count, last_answer = count + 1, turns[-1].said
    elif node.kind == "summary":
        kept = items_at(node.delta, "kept")
        turns = tuple(past for past in turns if past.hash in kept)
        summary = node.answer or ""
    return Conversation(app, name, state, turns, summary, count, last_answer, new_nodes)


def past_turn(name: str, node: Node) -> PastTurn:
    """Return the turn of a node as it appears in later prompts."""
    return PastTurn(name, node.user or "", node.answer or "", node.delta, node.parts)


def _state_after(conversation: Conversation, node: Node, app: App) -> State:
    state, fields = conversation.state, app.fields
    if node.kind == "app":
        return migrate_state(fields, state)
    if node.kind not in ("turn", "edit"):
        return state
    delta = _object(node.delta)
    if node.kind == "edit":
        return apply_edit(fields, state, delta)
    if not fields:
        return {}
    context = TurnContext(conversation.count + 1, node.user or "", node.answer or "", None)
    return (replace_state if app.reply == "environment" else apply_delta)(fields, state, delta, context)


def _ordered(delta: Json) -> Json:
    """Put keys in canonical order, as a store returns them, so that live and reloaded tables show the same entries."""
    ordered: Json = json.loads(canonical(delta)) if delta else delta
    return ordered


def _object(delta: Json) -> State:
    """Check that a delta is an object or null; an imported node may hold any JSON."""
    if delta is not None and not isinstance(delta, dict):
        raise InputError(f"its delta must be an object, got {type(delta).__name__}")
    return delta or {}


def turns_to_keep(conversation: Conversation) -> tuple[PastTurn, ...] | None:
    """Return the turns to keep when the window is full, else None."""
    policy, turns = conversation.app.window, conversation.turns
    if policy.max_size is None:
        return None
    pinned = {past.hash for past in turns[: policy.keep_first]}
    for past in turns:
        if isinstance(past.delta, dict) and any(past.delta.get(name) is not None for name in policy.keep_setting):
            pinned.add(past.hash)
    others = [past.hash for past in turns if past.hash not in pinned]
    if len(others) < max(policy.max_size, policy.keep + 1):
        return None
    kept = pinned | set(others[len(others) - policy.keep :])
    return tuple(past for past in turns if past.hash in kept)


START = "0" * 2 * DIGEST_BYTES
"""The address of the empty history."""
REASONING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


@value(tag="transcript")
class Transcript:
    """The position of a client's turn: its app, and the address of the history before it."""

    app: str
    address: str = START


def split_turns(messages: Sequence[Message]) -> tuple[tuple[tuple[Message, ...], ...], tuple[Message, ...]]:
    """Divide a history into its turns, each with its answer last, and the unanswered messages.

    The attachments of a turn move to its last message of the user, where nodes keep them.
    """
    has_files = any(isinstance(part, Attachment) for message in messages for part in message.parts)
    turns: list[tuple[Message, ...]] = []
    begun: list[Message] = []
    for message in messages:
        begun.append(message)
        if message.role == "assistant":
            turns.append(_with_files_last(tuple(begun)) if has_files else tuple(begun))
            begun = []
    return tuple(turns), _with_files_last(tuple(begun)) if has_files else tuple(begun)


def _with_files_last(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    of_user = [message for message in messages if message.role == "user"]
    files = tuple(file for message in of_user[:-1] for file in message.attachments)
    if not files:
        return messages
    kept: list[Message] = []
    for message in messages:
        if message.attachments and message is not of_user[-1]:
            parts = tuple(part for part in message.parts if part not in files and part != Text(""))
            kept += [Message("user", parts)] if parts else []
        else:
            kept.append(message)
    return attach(tuple(kept), files)


def turn_digest(messages: Iterable[Message]) -> str:
    """Return the digest of a turn, 32 hex characters; equal for turns that differ only in what clients change."""
    messages = tuple(messages)
    written = _normal_texts(messages)
    if written is None:
        groups = (_normal(role, group) for role, group in groupby(messages, attrgetter("role")) if role != "system")
        written = list(filter(None, groups))
    return _hashed(f"[{','.join(written)}]")


def next_address(address: str, digest: str) -> str:
    """Return the address of a history with one more turn, by the digest of the turn."""
    return _hashed(address + digest)


def _hashed(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).hexdigest()


def _normal_texts(messages: Iterable[Message]) -> list[str] | None:
    """Normalise messages of one text each, the common case, as `_normal` does; None for others."""
    said = list[tuple[str, str]]()
    for message in messages:
        role, parts = message.role, message.parts
        if role == "system" or len(parts) != 1 or not isinstance(part := parts[0], Text):
            return None
        if said and said[-1][0] == role:
            said[-1] = role, f"{said[-1][1]} {part.text}"
        else:
            said.append((role, part.text))
    return [f'["{role}",{text},[],[],[]]' for role, each in said if (text := _normal_text(role, each)) != EMPTY]


def _normal(role: str, messages: Iterable[Message]) -> str:
    """Write the relevant parts of the messages of one role as compact JSON; "" if there are none."""
    texts, calls, results, files = list[str](), list[object](), list[str](), list[str]()
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text):
                texts.append(part.text)
            elif isinstance(part, ToolCall):
                calls.append([part.name, _normal_json(part.arguments)])
            elif isinstance(part, ToolResult):
                results.append(_collapsed(part.text))
            elif isinstance(part, Attachment):
                files.append(part.sha256)
    text = _normal_text(role, " ".join(texts))
    if calls or results or files:
        return f'["{role}",{text},{COMPACT.encode(calls)},{COMPACT.encode(results)},{COMPACT.encode(sorted(files))}]'
    return "" if text == EMPTY else f'["{role}",{text},[],[],[]]'


EMPTY = '""'
ESCAPED = bytes([*range(32), *b'"\\'])
"""What JSON escapes of ASCII: all of its white space but the blank, too."""


def _normal_text(role: str, text: str) -> str:
    """Write the relevant part of a text as JSON; most texts need no change, and checking this takes a quarter of the time."""
    if role == "assistant" and "<think>" in text:
        text = REASONING.sub("", text)
    text = text.strip()
    if "  " in text:
        return encode_basestring(_collapsed(text))
    if text.isascii() and len(text.encode().translate(None, ESCAPED)) == len(text):
        return f'"{text}"'
    return encode_basestring(text if text.isprintable() else _collapsed(text))


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _normal_json(text: str) -> object:
    try:
        return json.dumps(parse_json(text), sort_keys=True)
    except ValueError:
        return _collapsed(text)
