"""`Node`, `Conversation`, `advance`, window."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeAlias

from taiwa.conversation.app import App
from taiwa.conversation.state import (
    State,
    TurnContext,
    apply_delta,
    apply_edit,
    initial,
    migrate_state,
    replace_state,
    state_hash,
)
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json, canonical, digest, value

__all__ = [
    "Conversation",
    "Node",
    "NodeKind",
    "PastTurn",
    "add_turn",
    "advance",
    "apply_nodes",
    "begin",
    "change_app",
    "edit_state",
    "summarize_window",
    "turns_to_keep",
]


NodeKind = Literal["root", "turn", "summary", "edit", "app"]


@value(tag="node")
class Node:
    """A root, a turn, a fold of old turns, a person's edit of the state, or a change of app.

    `delta` is what the reducers folded into the state: the model's delta of a turn, the whole new object in `environment`
    mode, the replaced values of an edit, the kept turns of a fold. `state_hash` names the state after this node.
    """

    parent: str | None
    kind: NodeKind
    app: str
    user: str | None = None
    answer: str | None = None
    delta: Json = None
    state_hash: str = ""

    @property
    def hash(self) -> str:
        """32 hex characters."""
        return digest(self)


Apps: TypeAlias = Callable[[str], App]


@value(tag="past-turn")
class PastTurn:
    """A turn as later prompts see it."""

    hash: str
    user: str
    answer: str
    delta: Json = None


@value
class Conversation:
    """A place in a history. `turns` are those the window holds; `fresh` are nodes that no store has yet, oldest first."""

    app: App
    tip: str
    state: State
    turns: tuple[PastTurn, ...] = ()
    summary: str = ""
    count: int = 0
    fresh: tuple[Node, ...] = ()

    @property
    def state_hash(self) -> str:
        """The name of the state."""
        return state_hash(self.state)


def begin(app: App) -> Conversation:
    """Start a conversation with an app."""
    state = initial(app.fields)
    root = Node(None, "root", app.hash, state_hash=state_hash(state))
    return Conversation(app, root.hash, state, fresh=(root,))


def add_turn(conversation: Conversation, user: str, answer: str, delta: Json) -> Conversation:
    """Commit a turn: fold its delta into the state."""
    return _grown(conversation, Node(conversation.tip, "turn", conversation.app.hash, user, answer, _ordered(delta)))


def summarize_window(conversation: Conversation, kept: Iterable[str], summary: str) -> Conversation:
    """Commit a fold: keep only the turns of these hashes in the window and a summary of the others."""
    node = Node(conversation.tip, "summary", conversation.app.hash, answer=summary, delta={"kept": list(kept)})
    return _grown(conversation, node)


def edit_state(conversation: Conversation, values: State) -> Conversation:
    """Commit a person's edit of the state.

    Raises:
        InputError: the values do not fit the fields.
    """
    return _grown(conversation, Node(conversation.tip, "edit", conversation.app.hash, delta=_ordered(values)))


def change_app(conversation: Conversation, app: App) -> Conversation:
    """Commit a change of app; values that still fit stay."""
    return _grown(conversation, Node(conversation.tip, "app", app.hash), app)


def _grown(conversation: Conversation, draft: Node, app: App | None = None) -> Conversation:
    app = app or conversation.app
    state = _state_after(conversation, draft, app)
    node = replace(draft, state_hash=state_hash(state))
    return replace(_placed(conversation, (node.hash, node), app, state), fresh=(*conversation.fresh, node))


def advance(conversation: Conversation, node: Node, apps: Apps) -> Conversation:
    """Follow one node.

    Raises:
        CorruptError: the node belongs elsewhere, or leads to another state than it recorded.
    """
    return _checked(_moved(conversation, (node.hash, node), apps), node)


def apply_nodes(conversation: Conversation, steps: Iterable[tuple[str, Node]], apps: Apps) -> Conversation:
    """Follow nodes of a store with their names, oldest first; the state that they lead to must be the recorded one.

    Raises:
        CorruptError: as `advance`.
    """
    node = None
    for name, node in steps:
        conversation = _moved(conversation, (name, node), apps)
    return conversation if node is None else _checked(conversation, node)


def _moved(conversation: Conversation, step: tuple[str, Node], apps: Apps) -> Conversation:
    name, node = step
    if node.parent != conversation.tip:
        raise CorruptError(f"node {name[:12]} does not follow {conversation.tip[:12]}")
    app = conversation.app if node.app == conversation.app.hash else apps(node.app)
    try:
        state = _state_after(conversation, node, app)
    except InputError as error:
        raise CorruptError(f"node {name[:12]} cannot be followed: {error.message}") from None
    return _placed(conversation, step, app, state)


def _checked(conversation: Conversation, node: Node) -> Conversation:
    if conversation.state_hash != node.state_hash:
        name = conversation.tip[:12]
        raise CorruptError(f"node {name} leads to another state than it recorded; `taiwa fsck` tells more")
    return conversation


def _placed(conversation: Conversation, step: tuple[str, Node], app: App, state: State) -> Conversation:
    name, node = step
    turns, summary, count = conversation.turns, conversation.summary, conversation.count
    if node.kind == "turn":
        turns = (*turns, PastTurn(name, node.user or "", node.answer or "", node.delta))
        count += 1
    elif node.kind == "summary":
        kept = frozenset(_kept(node.delta))
        turns = tuple(past for past in turns if past.hash in kept)
        summary = node.answer or ""
    return Conversation(app, name, state, turns, summary, count, conversation.fresh)


def _state_after(conversation: Conversation, node: Node, app: App) -> State:
    state, fields = conversation.state, app.fields
    if node.kind == "turn":
        delta = _table(node.delta)
        moment = TurnContext(conversation.count + 1, node.user or "", node.answer or "", None)
        move = replace_state if app.reply == "environment" else apply_delta
        return move(fields, state, delta, moment)
    if node.kind == "edit":
        return apply_edit(fields, state, _table(node.delta))
    return migrate_state(fields, state) if node.kind == "app" else state


def _ordered(delta: Json) -> Json:
    """Put keys in the order in which a store gives them back: a table shows its newest entries last, live and reloaded."""
    ordered: Json = json.loads(canonical(delta))
    return ordered


def _table(delta: Json) -> State:
    """A delta is a table, or nothing; an imported node may hold anything."""
    if delta is not None and not isinstance(delta, dict):
        raise InputError(f"its delta is no table but a {type(delta).__name__}")
    return delta or {}


def _kept(delta: Json) -> list[str]:
    kept = delta.get("kept") if isinstance(delta, dict) else None
    return [str(item) for item in kept] if isinstance(kept, list) else []


def turns_to_keep(conversation: Conversation) -> tuple[PastTurn, ...] | None:
    """The turns to keep when the window is full, or None while it may grow."""
    keep, turns = conversation.app.keep, conversation.turns
    pinned = {past.hash for past in turns[: keep.first]} | {past.hash for past in turns if _sets(past, keep.setting)}
    free = [past.hash for past in turns if past.hash not in pinned]
    if keep.grow is None or len(free) < max(keep.grow, keep.to + 1):
        return None
    staying = pinned | set(free[len(free) - keep.to :])
    return tuple(past for past in turns if past.hash in staying)


def _sets(past: PastTurn, names: tuple[str, ...]) -> bool:
    return isinstance(past.delta, dict) and any(past.delta.get(name) is not None for name in names)
