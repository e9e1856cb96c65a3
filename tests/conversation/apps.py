"""Small apps and conversations for tests."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from taiwa.conversation.app import ALL, App, AppSource, Example, ReplyMode, WindowPolicy
from taiwa.conversation.history import Conversation, Node, add_turn, apply_nodes, begin
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.serialization import Json, canonical, record, restore

TOPICS = StateField("topics", "list[str]", reduce="union", description="what the talk is about")
DICTIONARY = StateField("dictionary", "dict[str, str | null]", reduce="table")
MOOD = StateField("mood", "str")
TURNS = StateField("turns", reduce="turn_count")


def app(
    *fields: StateField,
    reply: ReplyMode = "text+delta",
    window: WindowPolicy = ALL,
    body: str = "You are a friend.",
    examples: tuple[Example, ...] = (),
    **more: Any,
) -> App:
    """An app whose file is a digest of what it is made of."""
    source = f"{body} {fields} {reply} {window} {examples} {more}"
    return App(AppSource("test", source), body, fields, window=window, reply=reply, examples=examples, **more)


def talked(of: App, *turns: tuple[str, str, Json]) -> Conversation:
    """A conversation after some turns."""
    conversation = begin(of)
    for user, answer, delta in turns:
        conversation = add_turn(conversation, user, answer, delta)
    return conversation


def stored(node: Node) -> Node:
    """A node as it comes back from a store or an export: its JSON has the canonical order of keys."""
    return restore(json.loads(canonical(record(node))))


def named(nodes: Iterable[Node]) -> Iterator[tuple[str, Node]]:
    """Nodes of a store with their names."""
    return ((node.hash, node) for node in map(stored, nodes))


def reloaded(conversation: Conversation) -> Conversation:
    """The same place, reached by following the stored nodes; `conversation` must hold all its nodes as fresh."""
    root, *rest = conversation.new_nodes
    apps = {conversation.app.hash: conversation.app}
    start = begin(apps[root.app])
    assert start.tip == root.hash
    return apply_nodes(start, named(rest), apps.__getitem__)


def asked(conversation: Conversation, text: str = "next") -> str:
    """The next request, in the order in which it would be sent."""
    return repr(turn_request(conversation, text))


def initial_state(fields: Iterable[StateField]) -> dict[str, Json]:
    return {field.name: field.start for field in fields}
