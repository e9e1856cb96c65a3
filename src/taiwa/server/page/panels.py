"""The panels beside the transcript: what each shows for a place of a conversation, and which template draws it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from taiwa.conversation.app import App
from taiwa.i18n import gettext_noop
from taiwa.kernel.errors import CorruptError
from taiwa.kernel.messages import Response
from taiwa.kernel.serialization import restore
from taiwa.operations.documents import find_ask_turn
from taiwa.operations.inspect import show, trace
from taiwa.operations.markdown_html import visible
from taiwa.operations.result_json import to_json
from taiwa.operations.say import request_text
from taiwa.server.page.branches import branch_map
from taiwa.server.page.state_view import state_view
from taiwa.server.page.text import pretty
from taiwa.server.page.views import place_of_passage
from taiwa.sessions.replay import recorded_requests
from taiwa.sessions.repository import Repository
from taiwa.store import CallRecord, CostLine

MOST_NAMES = 200
MOST_TURNS = 200
"""Turns of a bill."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a page shows: a session, the end of the branch in its transcript, the selected node, and the open panel."""

    session: str
    tip: str
    at: str
    panel: str = "state"


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: `values` returns what its template, `panels/ID.html`, shows for a place."""

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
    """Return passages that were found for an app, with the places where they open; `index` is "" if it is not known."""
    places = ((each, *place_of_passage(app, each["path"])) for each in passages)
    return [{"page": 0, "cited": False, **each, "index": index, "path": path} for each, index, path in places]


def steps_of(repository: Repository, at: str) -> Mapping[str, Any]:
    """Return what happened in a turn: its steps in their order, and each request as it was sent."""
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


def answer_text(call: CallRecord) -> str:
    """Write the answer of a call: the text of a model with the calls that it asked for, or a record."""
    try:
        answer = restore(call.answer) if call.answer is not None and call.error is None else None
    except CorruptError:
        answer = None
    if not isinstance(answer, Response):
        return pretty(call.error or call.answer)
    thoughts = [part.text for part in answer.message.thinking]
    calls = [f"{each.name} {each.arguments}" for each in answer.message.tool_calls]
    return visible("\n\n".join(text for text in (*thoughts, answer.text, *calls) if text))
