"""The branches of a conversation: the forest of its nodes, and their map."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from taiwa.conversation.history import Node
from taiwa.operations.markdown_html import visible
from taiwa.sessions.repository import Repository

TITLE_LENGTH = 60
ROW_HEIGHT, LANE_WIDTH = 28, 18
"""Dimensions of the branch map, in CSS pixels."""
SMALL_MAP = 40
"""Up to this number of nodes, all are on the map."""
SHORTEST_GAP = 4
"""Consecutive turns, without a branch or a name, that are drawn as one."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of a conversation with their children, in the order of storage."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    children: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def turns_below(self, name: str) -> int:
        """Count the turns from a node on all branches, including the node."""
        count, waiting = 0, [name]
        while waiting:
            here = waiting.pop()
            count += self.nodes[here].kind == "turn"
            waiting += self.children.get(here, ())
        return count


def forest_of(repository: Repository, session: str) -> Forest:
    """Return all branches of a session: everything that its name has referred to, and the sessions that continue it or that it continues.

    Conversations that only begin with the same texts share nodes, and are not branches of each other.
    """
    forest = Forest()
    for name in _family(repository, session):
        _grow(forest, repository, name)
    for children in forest.children.values():
        if len(children) > 1:
            children.sort(key=repository.store.nodes.seq)
    return forest


def _family(repository: Repository, session: str) -> tuple[str, ...]:
    """Return a session, and those that were begun behind one of its turns, or behind whose turns it was begun."""
    store = repository.store
    tips = {ref.name: ref.tip for ref in store.refs.list()}
    links: dict[str, list[str]] = {}
    for name, of, node in store.refs.continued():
        for other in [of] if of in tips else _through(repository, tips, node):
            links.setdefault(name, []).append(other)
            links.setdefault(other, []).append(name)
    found = [session]
    for name in found:
        found += [each for each in dict.fromkeys(links.get(name, ())) if each not in found]
    return tuple(found)


def _through(repository: Repository, tips: Mapping[str, str], node: str) -> list[str]:
    """Return the sessions that go through a node."""
    below = {name for name, _ in repository.store.nodes.descendants(node)}
    return [name for name, tip in tips.items() if tip in below]


def _grow(forest: Forest, repository: Repository, session: str) -> None:
    """Add every history that the name of a session has referred to."""
    tips = [tip for move in repository.store.refs.reflog(session) for tip in (move.new, move.old) if tip]
    for tip in dict.fromkeys(tips):
        if tip in forest.nodes:
            continue
        for name, node in repository.store.nodes.path(tip):
            if name in forest.nodes:
                break
            forest.nodes[name] = node
            if node.parent is not None:
                forest.children.setdefault(node.parent, []).append(name)


def leaf(repository: Repository, session: str, name: str) -> str:
    """Return the end of the branch that continues a node, following the newest child at each fork."""
    children = forest_of(repository, session).children
    while name in children:
        name = children[name][-1]
    return name


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A node in the branch map, at a row and a lane; `parent` is the row above it, None at a root.

    `depth` counts the forks above it, from 1. If `hidden` is not 0, the row represents that many consecutive turns, of which the
    node is the last.
    """

    hash: str
    node: Node
    row: int
    lane: int
    depth: int
    names: tuple[str, ...]
    on_path: bool
    parent: "BranchRow | None"
    hidden: int = 0

    @property
    def label(self) -> str:
        """The beginning of what the user said."""
        return " ".join(visible(self.node.user or "").split())[:TITLE_LENGTH]


@dataclass(frozen=True, slots=True)
class BranchMap:
    """All branches of a conversation."""

    rows: tuple[BranchRow, ...]
    lanes: int

    @property
    def width(self) -> int:
        """The width in CSS pixels."""
        return self.lanes * LANE_WIDTH

    @property
    def height(self) -> int:
        """The height in CSS pixels."""
        return len(self.rows) * ROW_HEIGHT

    @property
    def ends(self) -> tuple[BranchRow, ...]:
        """The ends of the branches."""
        inner = {row.parent.row for row in self.rows if row.parent is not None}
        return tuple(row for row in self.rows if row.row not in inner)

    @staticmethod
    def x(lane: int) -> int:
        """Return the centre of a lane."""
        return lane * LANE_WIDTH + LANE_WIDTH // 2

    @staticmethod
    def y(row: int) -> int:
        """Return the centre of a row."""
        return row * ROW_HEIGHT + ROW_HEIGHT // 2


def branch_map(repository: Repository, session: str, tip: str, at: str = "") -> BranchMap:
    """Lay out all branches of a session: a node below its parent, the first child in the same lane, others beside it.

    In a long conversation consecutive turns are drawn as one, except for the selected one (`at`), forks, ends and names.
    """
    path = {name for name, _ in repository.store.nodes.path(tip)}
    forest = forest_of(repository, session)
    names: dict[str, list[str]] = {}
    for ref in repository.store.refs.list():
        names.setdefault(ref.tip, []).append(ref.name)
    small = len(forest.nodes) <= SMALL_MAP

    def only_child(name: str) -> str | None:
        children = forest.children.get(name, [])
        return children[0] if len(children) == 1 else None

    def is_plain(name: str) -> bool:
        """Return whether a row can be merged: one of many consecutive turns."""
        node = forest.nodes[name]
        parent = node.parent
        alone = parent is not None and only_child(parent) is not None and only_child(name) is not None
        return alone and name not in names and name not in (at, tip) and node.kind == "turn"

    roots = [name for name, node in forest.nodes.items() if node.parent is None]
    rows: list[BranchRow] = []
    placed: dict[str, BranchRow] = {}
    lanes = 1
    waiting = [(name, -1 if index else 0) for index, name in enumerate(roots)][::-1]
    while waiting:
        name, lane = waiting.pop()
        parent = placed.get(forest.nodes[name].parent or "")
        beside = lane < 0
        if beside:
            lane, lanes = lanes, lanes + 1
        run = [name]
        while not small and is_plain(run[-1]) and (following := only_child(run[-1])) and is_plain(following):
            run.append(following)
        if len(run) < SHORTEST_GAP:
            run = [name]
        name = run[-1]
        row = BranchRow(
            hash=name,
            node=forest.nodes[name],
            row=len(rows),
            lane=lane,
            depth=(parent.depth if parent else 1) + beside,
            names=tuple(names.get(name, ())),
            on_path=name in path,
            parent=parent,
            hidden=len(run) if len(run) > 1 else 0,
        )
        placed[name] = row
        rows.append(row)
        first, *others = forest.children.get(name, [None])
        waiting += [(each, -1) for each in reversed(others) if each is not None]
        if first is not None:
            waiting.append((first, lane))
    return BranchMap(tuple(rows), lanes)
