"""The conversation as a value: what a turn starts from and what it leaves.

`advance` is the only way from one node to the next; a commit, a checkout and a replay all use it, so they cannot differ.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from taiwa.conversation.app import App
from taiwa.conversation.derive import Moment
from taiwa.conversation.node import Node
from taiwa.conversation.state import State, edited, initial, migrated, replaced, state_hash, stepped
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json, canonical, value

__all__ = ["Conversation", "Past", "adopt", "advance", "begin", "change", "cut", "follow", "take"]

Apps: TypeAlias = Callable[[str], App]


@value(tag="past-turn")
class Past:
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
    turns: tuple[Past, ...] = ()
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


def take(conversation: Conversation, user: str, answer: str, delta: Json) -> Conversation:
    """Commit a turn: fold its delta into the state."""
    return _grown(conversation, Node(conversation.tip, "turn", conversation.app.hash, user, answer, _ordered(delta)))


def cut(conversation: Conversation, kept: Iterable[str], summary: str) -> Conversation:
    """Commit a fold: keep only the turns of these hashes in the window and a summary of the others."""
    node = Node(conversation.tip, "summary", conversation.app.hash, answer=summary, delta={"kept": list(kept)})
    return _grown(conversation, node)


def change(conversation: Conversation, values: State) -> Conversation:
    """Commit a person's edit of the state.

    Raises:
        InputError: the values do not fit the fields.
    """
    return _grown(conversation, Node(conversation.tip, "edit", conversation.app.hash, delta=_ordered(values)))


def adopt(conversation: Conversation, app: App) -> Conversation:
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


def follow(conversation: Conversation, steps: Iterable[tuple[str, Node]], apps: Apps) -> Conversation:
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
        turns = (*turns, Past(name, node.user or "", node.answer or "", node.delta))
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
        moment = Moment(conversation.count + 1, node.user or "", node.answer or "", None)
        move = replaced if app.reply == "environment" else stepped
        return move(fields, state, delta, moment)
    if node.kind == "edit":
        return edited(fields, state, _table(node.delta))
    return migrated(fields, state) if node.kind == "app" else state


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
