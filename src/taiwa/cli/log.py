"""Listing conversations and turns, showing one whole, finding words in all."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from taiwa.cli.look import asked, call_line, shown
from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.conversation.node import Node
    from taiwa.store import Excerpt
    from taiwa.talk.desk import Desk

__all__ = ["log", "print_log", "search", "show"]

EXCERPT = 60


@click.command()
@click.argument("revision", required=False, default="")
@click.option("--tree", is_flag=True, help="Show all conversations as branches of one tree.")
@click.option("-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest last.")
@flags("json", "store")
def log(shared: Flags, revision: str, tree: bool, limit: int) -> None:
    """List all conversations, or the turns of one.

    \b
    taiwa log                all conversations, the latest first
    taiwa log chat-1         its turns
    taiwa log chat-1~3 -n 5  the five turns up to that place
    taiwa log --tree         branches
    """
    desk = shared.desk()
    if tree:
        _tree(desk, shared)
    elif revision:
        print_log(desk, revision, limit, as_json=shared.as_json)
    else:
        _sessions(desk, shared, limit)


def _sessions(desk: "Desk", shared: Flags, limit: int) -> None:
    refs = desk.store.refs.list()[:limit]
    if shared.as_json:
        emit(
            [
                {"session": ref.name, "node": ref.tip, "app": ref.app, "turns": ref.turns, "at": when(ref.at_us)}
                for ref in refs
            ]
        )
        return
    if not refs:
        tell("there is no conversation yet: begin one with `taiwa chat` or `taiwa say`")
        return
    rows = [(ref.name, ref.app, str(ref.turns), ref.tip[:12], when(ref.at_us)) for ref in refs]
    table(("session", "app", "turns", "node", "last"), rows, frozenset({2}))


def print_log(desk: "Desk", revision: str, limit: int, *, as_json: bool = False) -> None:
    """List the turns up to a revision."""
    tip = desk.store.resolve(revision)
    path = list(desk.store.nodes.path(tip))
    number = sum(1 for _, node in path if node.kind == "turn")
    rows: list[tuple[int, str, Node]] = []
    for name, node in path[:limit]:
        rows.append((number, name, node))
        number -= node.kind == "turn"
    if as_json:
        emit([_node(name, node, turn) for turn, name, node in reversed(rows)])
        return
    lines = [(str(turn), name[:12], node.kind, _words(node)) for turn, name, node in reversed(rows)]
    table(("turn", "node", "kind", "what was said"), lines, frozenset({0}))


def _tree(desk: "Desk", shared: Flags) -> None:
    """All histories that sessions name, as one forest: a node with one successor goes on, with more it branches."""
    names: dict[str, list[str]] = {}
    for ref in desk.store.refs.list():
        names.setdefault(ref.tip, []).append(ref.name)
    children: dict[str | None, dict[str, Node]] = {}
    for tip in reversed(names):
        for name, node in desk.store.nodes.path(tip):
            known = children.setdefault(node.parent, {})
            if name in known:
                break
            known[name] = node
    if shared.as_json:
        emit([_node(name, node, None) for kin in children.values() for name, node in kin.items()])
        return
    stack = [(name, node, "", "") for name, node in reversed(children.get(None, {}).items())]
    while stack:
        name, node, lead, stem = stack.pop()
        said = _words(node) or desk.app(node.app).name
        label = f"  ← {', '.join(names[name])}" if name in names else ""
        say_line(f"{lead}{name[:12]} {node.kind:4} {said}{label}")
        stack += _branches(children.get(name, {}), stem)


def _branches(kin: "dict[str, Node]", stem: str) -> "list[tuple[str, Node, str, str]]":
    """The successors of a node, the first one last, each with what is drawn before it and before what follows it."""
    if len(kin) < 2:
        return [(name, node, stem, stem) for name, node in kin.items()]
    signs = [("├─ ", "│  ")] * (len(kin) - 1) + [("└─ ", "   ")]
    rows = [
        (name, node, stem + here, stem + below) for (name, node), (here, below) in zip(kin.items(), signs, strict=True)
    ]
    return rows[::-1]


@click.command()
@click.argument("revision", required=False, default="")
@flags("json", "store")
def show(shared: Flags, revision: str) -> None:
    """Show the turn at REVISION whole: texts, delta, state, calls and cost.

    \b
    taiwa show             the last turn of the latest conversation
    taiwa show chat-1~2    two turns earlier
    taiwa show 3f9a12      by the beginning of its hash
    """
    desk = shared.desk()
    name = desk.store.resolve(revision)
    node, here, calls = desk.store.nodes.get(name), desk.checkout(name), asked(desk.store.runs.calls(name))
    if shared.as_json:
        paid: list[Json] = [
            {
                "kind": call.kind, "model": call.model, "ms": call.ms,
                "input_tokens": None if call.usage is None else call.usage.input_tokens,
                "output_tokens": None if call.usage is None else call.usage.output_tokens,
                "cost": None if call.cost_nano is None else call.cost_nano / 1e9,
            }
            for call in calls
        ]  # fmt: skip
        more: dict[str, Json] = {"state": here.state, "calls": paid}
        emit(_node(name, node, here.count) | more)
        return
    say_line(f"{name}  {node.kind}, turn {here.count}, app {here.app.name}", "bold")
    if node.user is not None:
        say_line(f"\nyou: {node.user}")
    if node.answer is not None:
        say_line(f"\n{here.app.name}: {node.answer}")
    if node.delta:
        say_line(f"\ndelta: {shown(node.delta)}")
    for field, held in here.state.items():
        say_line(f"  {field}: {shown(held)}")
    for call in calls:
        say_line(f"call: {call_line(call)}", "dim")


@click.command()
@click.argument("text")
@click.option("-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@flags("json", "store")
def search(shared: Flags, text: str, limit: int) -> None:
    """Find the newest turns that hold all the words of TEXT, in any language.

    \b
    taiwa search 会議
    taiwa search "apple pie" -n 5
    """
    hits = shared.desk().store.search(text, limit)
    if shared.as_json:
        emit([{"node": hit.hash, "sessions": list[Json](hit.refs), "excerpt": hit.excerpt.text} for hit in hits])
        return
    if not hits:
        tell(f"no turn holds {text!r}")
        return
    table(("node", "session", "text"), [(hit.hash[:12], ", ".join(hit.refs[:3]), _marked(hit.excerpt)) for hit in hits])


def _marked(excerpt: "Excerpt") -> str:
    """An excerpt with what was found in brackets."""
    text = excerpt.text
    for start, end in reversed(excerpt.marks):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


def when(at_us: int) -> str:
    """A time for people: local, to the minute."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _words(node: "Node") -> str:
    said = node.user if node.kind == "turn" else shown(node.delta) if node.kind == "edit" else node.answer
    line = " ".join((said or "").split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"


def _node(name: str, node: "Node", turn: int | None) -> dict[str, Json]:
    return {
        "node": name, "parent": node.parent, "kind": node.kind, "turn": turn, "app": node.app,
        "user": node.user, "answer": node.answer, "delta": node.delta, "state_hash": node.state_hash,
    }  # fmt: skip
