"""The transcript of a conversation: a window of its turns, each with the branches that begin beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, pairwise

from taiwa.ask.result import AskResult
from taiwa.conversation.app import App
from taiwa.conversation.state_paths import Change, diff_states
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.documents import split_source
from taiwa.operations.markdown_html import to_html, visible
from taiwa.server.page.branches import Forest, forest_of
from taiwa.sessions.repository import HistoryEntry, Repository

LAST_TURNS = 50


@dataclass(frozen=True, slots=True)
class SourceView:
    """A place in a document that an answer cites; `index` is "" where it is not known."""

    number: int
    index: str
    path: str
    heading: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TurnView:
    """A node of the transcript. `changes` are those of its state, without what the program computes itself.

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
    attachments: tuple[Attachment, ...] = ()
    sources: tuple[SourceView, ...] = ()

    @property
    def position(self) -> int:
        """The place among the siblings, from 1."""
        return self.siblings.index(self.hash) + 1 if self.hash in self.siblings else 1

    @property
    def answer_html(self) -> str:
        """The answer, rendered."""
        return to_html(self.answer)


@dataclass(frozen=True, slots=True)
class Transcript:
    """Some nodes of a history, oldest first, and whether there are nodes before and behind them."""

    turns: tuple[TurnView, ...]
    earlier: bool = False
    later: bool = False


def transcript(
    repository: Repository, session: str, tip: str, *, before: str = "", after: str = "", count: int = LAST_TURNS
) -> Transcript:
    """Return a window of a history that ends at `tip`: its last nodes, those `before` a node, or those behind one (`after`)."""
    nodes = repository.store.nodes
    if after:
        names = [name for name, _ in nodes.path(tip, after)]
        end = names[-count] if len(names) > count else tip
        entries = tuple(repository.walk(end, nodes.get(after).parent))
        earlier, later = True, end != tip
    else:
        end = (nodes.get(before).parent or before) if before else tip
        path = tuple(islice(nodes.path(end), count + 1))
        entries = tuple(repository.walk(end, path[-1][1].parent))
        earlier, later = path[-1][1].parent is not None, bool(before)
    return Transcript(_views(repository, session, entries), earlier, later)


def _views(repository: Repository, session: str, entries: Sequence[HistoryEntry]) -> tuple[TurnView, ...]:
    """Return all entries but the first one, with what changed since the one before."""
    forest = forest_of(repository, session)
    pairs = pairwise(entries)
    return tuple(_turn(repository, forest, entry, before.after.state) for before, entry in pairs)


def _turn(repository: Repository, forest: Forest, entry: HistoryEntry, before: Mapping[str, Json]) -> TurnView:
    node, computed = entry.node, {field.name for field in entry.after.app.fields if field.computed}
    siblings = tuple(forest.children.get(node.parent or "", ()))
    bill = repository.store.runs.bill_of(entry.hash) if node.kind == "turn" else None
    return TurnView(
        hash=entry.hash,
        kind=node.kind,
        number=entry.after.count,
        user=visible(node.user or ""),
        answer=node.answer or "",
        changes=tuple(
            each for each in diff_states(dict(before), dict(entry.after.state)) if each.path[0] not in computed
        ),
        siblings=siblings,
        elsewhere=sum(forest.turns_below(each) for each in siblings if each != entry.hash),
        model="" if bill is None else bill.name,
        cost=None if bill is None else currency_units(bill.cost_nano),
        attachments=node.attachments,
        sources=_sources(node.delta, entry.after.app),
    )


def _sources(delta: Json, app: App) -> tuple[SourceView, ...]:
    found = AskResult.from_delta(delta)
    return tuple(
        SourceView(each.number, *place_of_passage(app, each.source), each.heading, each.start, each.end)
        for each in (found.citations if found else ())
    )


def place_of_passage(app: App, source: str) -> tuple[str, str]:
    """Return the index and the path of a passage, which has both in its source where several indexes are searched."""
    searched = app.values.get("in")
    return split_source(source, [str(each) for each in searched] if isinstance(searched, list) else [])


def common_node(repository: Repository, one: str, other: str) -> str:
    """Return the last node that two histories share, "" where they share none."""
    seen = {name for name, _ in repository.store.nodes.path(one)}
    return next((name for name, _ in repository.store.nodes.path(other) if name in seen), "")
