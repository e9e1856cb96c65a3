"""The panels beside the transcript: the content and the template of each, for a position in a conversation.

The state panel shows values and their changes in a turn, the provenance of a value, and the differences of two states.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from taiwa.conversation.app import App
from taiwa.conversation.history import advance
from taiwa.conversation.state import Change, Missing, StatePath, diff_states, format_path, get_path, parse_path
from taiwa.i18n import gettext_noop
from taiwa.kernel.errors import NotFoundError
from taiwa.kernel.serialization import Json
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.log import show
from taiwa.operations.markdown_html import visible
from taiwa.operations.request_preview import request_text
from taiwa.operations.result_json import to_json
from taiwa.operations.state_values import format_value
from taiwa.operations.traces import trace
from taiwa.server.page.branches import branch_map
from taiwa.server.page.text import pretty
from taiwa.server.page.transcript import common_node, place_of_passage, restored_answer
from taiwa.sessions.replay import recorded_requests
from taiwa.sessions.repository import HistoryEntry, Repository, value_changes
from taiwa.store import CallRecord, CostLine

MOST_NAMES = 200
MOST_TURNS = 200
"""Turns in a bill."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a page shows: a session, the end of the branch in its transcript, the selected node, and the open panel ("": the one
    that fits the app).
    """

    session: str
    tip: str
    at: str
    panel: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: `values` returns the data for its template, `panels/ID.html`, at a position."""

    id: str
    title: str
    values: Callable[[Repository, Place], Mapping[str, Any]]


def _state(repository: Repository, place: Place) -> Mapping[str, Any]:
    path = [(name, node.kind == "turn") for name, node in repository.store.nodes.path(place.tip) if node.kind != "root"]
    names = [name for name, _ in path]
    behind = names.index(place.at) if place.at in names else len(names)
    return {
        "steps": max(len(path), 1),
        "step": max(len(path) - 1 - behind, 0),
        "number": sum(is_turn for _, is_turn in path[behind:]) or repository.checkout(place.at).count,
        "state": state_view(repository, place.at),
    }


def _branches(repository: Repository, place: Place) -> Mapping[str, Any]:
    drawn = branch_map(repository, place.session, place.tip, place.at)
    return {
        "map": drawn,
        "branches": [row for row in drawn.ends if not row.on_path],
        "names": [ref.name for ref in repository.store.refs.list()[:MOST_NAMES] if ref.name != place.session],
    }


def _turn(repository: Repository, place: Place) -> Mapping[str, Any]:
    shown, turn = show(repository, place.at), find_ask_turn(repository, place.at)
    found: dict[str, Any] = to_json(turn) if turn else {}
    return {
        "decision": None if turn is None else turn.result,
        "passages": _placed(found.get("passages", ()), shown.conversation.app),
        "near_misses": _placed(found.get("near_misses", ()), shown.conversation.app),
        "number": shown.conversation.count,
        "calls": [(call, answer_text(call)) for call in shown.calls],
    }


def _placed(passages: Iterable[dict[str, Any]], app: App) -> list[dict[str, Any]]:
    """Return passages found for an app, with links; `index` is "" if unknown."""
    places = ((each, *place_of_passage(app, each["path"])) for each in passages)
    return [{"page": 0, "cited": False, **each, "index": index, "path": path} for each, index, path in places]


def steps_of(repository: Repository, at: str) -> Mapping[str, Any]:
    """Return the steps of a turn in order, and each request as it was sent."""
    traced, app = cast("dict[str, Any]", to_json(trace(repository, at))), repository.checkout(at).app
    for step in traced["steps"]:
        step["passages"] = _placed(step.get("passages", ()), app)
    return {
        "steps": traced["steps"],
        "requests": [request_text(request) for request in recorded_requests(repository, at)],
    }


def _bill(repository: Repository, place: Place) -> Mapping[str, Any]:
    costs = repository.store.costs
    turns: list[tuple[str, int, CostLine]] = []
    count = repository.checkout(place.tip).count
    for name, node in repository.store.nodes.path(place.tip):
        line = repository.store.runs.bill_of(name)
        if line is not None:
            turns.append((name, count, line))
        count -= node.kind == "turn"
        if len(turns) == MOST_TURNS:
            break
    return {
        "turn_lines": turns[::-1],
        "session_line": next(iter(costs("session", place.session)), None),
        "model_lines": costs("model"),
        "day_lines": costs("day")[::-1],
    }


PANELS: tuple[Panel, ...] = (
    Panel("state", gettext_noop("State"), _state),
    Panel("tree", gettext_noop("Branches"), _branches),
    Panel("turn", gettext_noop("Turn"), _turn),
    Panel("bill", gettext_noop("Bill"), _bill),
)


def fitting_panels(app: App) -> tuple[Panel, ...]:
    """Return the panels that have something to show for an app, the most telling one first; that of a turn shows the sources of
    an app that searches documents.
    """
    state, tree, turn, bill = PANELS
    turn = replace(turn, title=gettext_noop("Sources")) if app.documents is not None else turn
    return (*((state,) if app.fields else ()), *((turn, tree) if app.documents is not None else (tree, turn)), bill)


def answer_text(call: CallRecord) -> str:
    """Format the answer of a call: the text of a model with the calls that it requested, or a record."""
    answer = restored_answer(call)
    if answer is None:
        return pretty(call.error or call.answer)
    thoughts = [part.text for part in answer.message.thinking]
    calls = [f"{each.name} {each.arguments}" for each in answer.message.tool_calls]
    return visible("\n\n".join(text for text in (*thoughts, answer.text, *calls) if text))


@dataclass(frozen=True, slots=True)
class ValueView:
    """A value of the state: its path, its text if it is a leaf, and how the selected turn changed it."""

    key: str
    path: str
    text: str
    change: str = ""
    parts: "tuple[ValueView, ...]" = ()


def state_view(repository: Repository, name: str) -> tuple[ValueView, ...]:
    """Return the state after a node, with the changes that the node made."""
    node = repository.store.nodes.get(name)
    base = repository.checkout(node.parent) if node.parent else None
    before = base.state if base else {}
    reached = advance(base, node, repository.app) if base else repository.checkout(name)
    order = {each.name: index for index, each in enumerate(reached.app.fields)}  # a delta may name them in another one
    after = dict(sorted(reached.state.items(), key=lambda item: order.get(item[0], len(order))))
    changes = {change.path: change for change in diff_states(dict(before), after)}
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


@dataclass(frozen=True, slots=True)
class ValueStep:
    """A node that changed the value at a path of the state, or removed it (`after` is MISSING)."""

    hash: str
    turn: int
    kind: str
    before: "Json | Missing"
    after: "Json | Missing"


@dataclass(frozen=True, slots=True)
class ValueStory:
    """The history of a path of the state: the step that set the value at the selected node, and the turns after it.

    `shown` are the first and last turns with the value in their state, or None; `mentioned` are the nodes and numbers of turns
    whose message or answer contains its text. `by` names the reducer, or the computed field.
    """

    path: str
    steps: tuple[ValueStep, ...]
    origin: ValueStep
    entry: HistoryEntry
    shown: tuple[int, int] | None
    mentioned: tuple[tuple[str, int], ...]
    by: str


def value_story(repository: Repository, path: str, at: str, tip: str) -> ValueStory:
    """Follow a path of the state through a history, and find the node that set its value at a node.

    Raises:
        InputError: the path is invalid, or the state never had a value there.
    """
    where = parse_path(path)
    entries = tuple(repository.walk(tip))
    names = [entry.hash for entry in entries]
    if at not in names:
        entries = tuple(repository.walk(at))
        names = [entry.hash for entry in entries]
    places = {name: index for index, name in enumerate(names)}
    steps = [
        (places[entry.hash], ValueStep(entry.hash, entry.after.count, entry.node.kind, before, after))
        for entry, before, after in value_changes(entries, where)
    ]
    here = places[at]
    found = next(((index, step) for index, step in reversed(steps) if index <= here), None)
    if found is None:
        raise NotFoundError(f"no value at {path}")
    index, origin = found
    until = next((later for later, _ in steps if later > index), len(entries) - 1)
    readers = [entry for entry in entries[index + 1 : until + 1] if entry.node.kind == "turn"]
    text = origin.after if isinstance(origin.after, str) else ""
    mentioned = [
        (each.hash, each.after.count)
        for each in readers
        if len(text) > 1 and text.lower() in f"{each.node.user}\n{each.node.answer}".lower()
    ]
    entry = entries[index]
    field = next((field for field in entry.after.app.fields if field.name == where[0]), None)
    by = "" if field is None else field.reduce
    shown = (readers[0].after.count, readers[-1].after.count) if readers else None
    return ValueStory(path, tuple(step for _, step in steps), origin, entry, shown, tuple(mentioned), by)


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two branches: the turns after their common node, and each value with the first turn at which it
    differs.
    """

    fork: int
    fields: tuple[tuple[Change, int], ...]
    ends: tuple[int, int]
    first: tuple[str, str]
    """The next nodes of both after the common one; "" if a branch ends there."""


def difference(repository: Repository, mine: str, theirs: str) -> Difference:
    """Compare two nodes field by field."""
    common = common_node(repository, mine, theirs)
    base = repository.checkout(common) if common else None
    paths = [tuple(repository.walk(tip, common or None)) for tip in (mine, theirs)]
    ends = [repository.checkout(tip) for tip in (mine, theirs)]
    states = [
        {entry.after.count: dict(entry.after.state) for entry in path} or {end.count: dict(end.state)}
        for path, end in zip(paths, ends, strict=True)
    ]
    fork = base.count if base else 0

    def value(side: int, path: StatePath, turn: int) -> "Json | Missing":
        known = max((count for count in states[side] if count <= turn), default=None)
        state = (dict(base.state) if base else {}) if known is None else states[side][known]
        return get_path(state, path)

    def first(path: StatePath) -> int:
        turns = sorted(set(states[0]) | set(states[1]))
        return next((turn for turn in turns if value(0, path, turn) != value(1, path, turn)), turns[-1])

    changes = diff_states(dict(ends[0].state), dict(ends[1].state))
    starts = (paths[0][0].hash if paths[0] else "", paths[1][0].hash if paths[1] else "")
    return Difference(fork, tuple((each, first(each.path)) for each in changes), (ends[0].count, ends[1].count), starts)
