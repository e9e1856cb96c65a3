"""What the page shows of a store, as plain values for its templates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from taiwa.conversation.history import Node
from taiwa.conversation.state_paths import Change, StatePath, diff_states, format_path
from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.inspect import format_value
from taiwa.operations.markdown_html import to_html, visible
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.store import CallRecord

TITLE_LENGTH = 60
ROW_HEIGHT, LANE_WIDTH = 28, 18
"""Of the map of branches, in CSS pixels."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """A node of the transcript.

    `siblings` are the nodes that begin the branches at this place, itself included; `elsewhere` counts the turns that
    follow on the other ones.
    """

    hash: str
    kind: str
    number: int
    user: str
    answer: str
    changes: tuple[Change, ...]
    siblings: tuple[str, ...] = ()
    elsewhere: int = 0
    model: str = ""
    cost: Decimal | None = None

    @property
    def position(self) -> int:
        """The place among the siblings, from 1."""
        return self.siblings.index(self.hash) + 1 if self.hash in self.siblings else 1

    @property
    def answer_html(self) -> str:
        """The answer, rendered."""
        return to_html(self.answer)


@dataclass(frozen=True, slots=True)
class ValueView:
    """A value of the state: its path, its text where it has no parts, and how the selected turn changed it."""

    key: str
    path: str
    text: str
    change: str = ""
    parts: "tuple[ValueView, ...]" = ()


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A node in the map of branches, at a row and a lane; `parent_row` is None at the root."""

    hash: str
    kind: str
    label: str
    row: int
    lane: int
    depth: int
    names: tuple[str, ...]
    on_path: bool
    parent_row: int | None
    parent_lane: int


@dataclass(frozen=True, slots=True)
class BranchMap:
    """All branches of a conversation."""

    rows: tuple[BranchRow, ...]
    lanes: int

    @property
    def width(self) -> int:
        """In CSS pixels."""
        return self.lanes * LANE_WIDTH

    @property
    def height(self) -> int:
        """In CSS pixels."""
        return len(self.rows) * ROW_HEIGHT

    @staticmethod
    def x(lane: int) -> int:
        """The middle of a lane."""
        return lane * LANE_WIDTH + LANE_WIDTH // 2

    @staticmethod
    def y(row: int) -> int:
        """The middle of a row."""
        return row * ROW_HEIGHT + ROW_HEIGHT // 2


@dataclass(frozen=True, slots=True)
class _Forest:
    """The nodes of a conversation with their children, in the order in which they were stored."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    children: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def turns_below(self, name: str) -> int:
        """Count the turns from a node on, itself included, on every branch."""
        count, waiting = 0, [name]
        while waiting:
            here = waiting.pop()
            count += self.nodes[here].kind == "turn"
            waiting += self.children.get(here, ())
        return count


def transcript(repository: Repository, session: str, tip: str, last: int = 100) -> tuple[TurnView, ...]:
    """Return the last nodes of a history of a session, oldest first."""
    entries = tuple(repository.walk(tip))
    forest = _forest(repository, session)
    before: Mapping[str, Json] = {}
    views: list[TurnView] = []
    for index, entry in enumerate(entries):
        if entry.node.kind != "root" and index >= len(entries) - last:
            views.append(_turn(repository, forest, entry, before))
        before = entry.after.state
    return tuple(views)


def _turn(repository: Repository, forest: _Forest, entry: HistoryEntry, before: Mapping[str, Json]) -> TurnView:
    node = entry.node
    siblings = tuple(forest.children.get(node.parent or "", ()))
    elsewhere = sum(forest.turns_below(each) for each in siblings if each != entry.hash)
    calls = repository.store.runs.calls(entry.hash) if node.kind == "turn" else ()
    return TurnView(
        hash=entry.hash,
        kind=node.kind,
        number=entry.after.count,
        user=visible(node.user or ""),
        answer=node.answer or "",
        changes=tuple(diff_states(dict(before), dict(entry.after.state))),
        siblings=siblings,
        elsewhere=elsewhere,
        model=next((call.model for call in calls if call.model), ""),
        cost=cost_of(calls),
    )


def cost_of(calls: Sequence[CallRecord]) -> Decimal | None:
    """Add up the costs of calls; None where one is unknown."""
    paid = [call.cost_nano for call in calls if call.model]
    return None if not paid or None in paid else currency_units(sum(nano for nano in paid if nano is not None))


def _forest(repository: Repository, session: str) -> _Forest:
    """Return all branches of a session: what its name has pointed to, and the sessions that share a turn with it."""
    forest = _Forest()
    _grow(forest, repository, session)
    first = [name for name, node in forest.nodes.items() if node.parent and forest.nodes[node.parent].kind == "root"]
    shared = {name for each in first for name, _ in repository.store.nodes.descendants(each)}
    for ref in repository.store.refs.list():
        if ref.tip in shared and ref.name != session:
            _grow(forest, repository, ref.name)
    return forest


def _grow(forest: _Forest, repository: Repository, session: str) -> None:
    """Add every history that the name of a session has pointed to."""
    moves = repository.store.refs.reflog(session)
    for tip in dict.fromkeys(tip for move in reversed(moves) for tip in (move.old, move.new) if tip):
        new: list[tuple[str, Node]] = []
        for name, node in repository.store.nodes.path(tip):
            if name in forest.nodes:
                break
            new.append((name, node))
        for name, node in reversed(new):
            forest.nodes[name] = node
            if node.parent is not None:
                forest.children.setdefault(node.parent, []).append(name)


def leaf(repository: Repository, session: str, name: str) -> str:
    """Return the end of the branch that continues a node: at each fork the child that was made last."""
    children = _forest(repository, session).children
    while name in children:
        name = children[name][-1]
    return name


def state_view(repository: Repository, name: str) -> tuple[ValueView, ...]:
    """Return the state after a node, with what the node changed."""
    node = repository.store.nodes.get(name)
    after = repository.checkout(name).state
    before = repository.checkout(node.parent).state if node.parent else {}
    changes = {change.path: change for change in diff_states(dict(before), dict(after))}
    shown = [_value((key,), value, changes) for key, value in after.items()]
    return (*shown, *(_removed(lost) for lost in changes.values() if lost.kind == "removed" and len(lost.path) == 1))


def _removed(change: Change) -> ValueView:
    return ValueView(visible(str(change.path[-1])), format_path(change.path), _text(change.before), "removed")


def _text(value: Json) -> str:
    return visible(value if isinstance(value, str) else format_value(value))


def _value(path: StatePath, value: Json, changes: Mapping[StatePath, Change], inherited: str = "") -> ValueView:
    change = changes.get(path)
    own = change.kind if change is not None and change.kind != "removed" else inherited
    items: Iterator[tuple[str | int, Json]] = iter(())
    if isinstance(value, dict):
        items = iter(value.items())
    elif isinstance(value, list):
        items = iter(enumerate(value))
    parts = [_value((*path, key), each, changes, own) for key, each in items]
    parts += [_removed(lost) for lost in changes.values() if lost.kind == "removed" and lost.path[:-1] == path]
    text = "" if parts else _text(value)
    return ValueView(visible(str(path[-1])), format_path(path), text, own, tuple(parts))


def branch_map(repository: Repository, session: str, tip: str) -> BranchMap:
    """Lay out all branches of a session: a node below its parent, the first child in its lane, others beside."""
    path = [name for name, _ in repository.store.nodes.path(tip)]
    forest = _forest(repository, session)
    names: dict[str, list[str]] = {}
    for ref in repository.store.refs.list():
        names.setdefault(ref.tip, []).append(ref.name)
    roots = [name for name, node in forest.nodes.items() if node.parent is None]
    rows: list[BranchRow] = []
    placed: dict[str, BranchRow] = {}
    lanes = 1
    waiting = [(name, -1 if index else 0) for index, name in enumerate(roots)][::-1]
    while waiting:
        name, lane = waiting.pop()
        if lane < 0:
            lane, lanes = lanes, lanes + 1
        node = forest.nodes[name]
        parent = placed.get(node.parent or "")
        row = BranchRow(
            hash=name,
            kind=node.kind,
            label=" ".join(visible(node.user or "").split())[:TITLE_LENGTH],
            row=len(rows),
            lane=lane,
            depth=parent.depth + 1 if parent else 1,
            names=tuple(names.get(name, ())),
            on_path=name in path,
            parent_row=parent.row if parent else None,
            parent_lane=parent.lane if parent else 0,
        )
        placed[name] = row
        rows.append(row)
        first, *others = forest.children.get(name, [None])
        waiting += [(each, -1) for each in reversed(others) if each is not None]
        if first is not None:
            waiting.append((first, lane))
    return BranchMap(tuple(rows), lanes)
