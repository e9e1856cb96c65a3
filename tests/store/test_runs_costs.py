"""A bill holds everything that was paid for, and never takes what is not known for nothing."""

import pytest

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.effects import CallTool
from taiwa.kernel.errors import RateLimitError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import ToolResult, Usage
from taiwa.store import Axis, CostLine, Store
from tests.store.turns import APP, answered, begin, turn

DAY_US = 86_400_000_000


def test_failed_lost_and_abandoned_turns_are_on_the_bill(store: Store) -> None:
    tip = begin(store)
    runs = [store.runs.begin("main", tip, APP.hash, "x") for _ in range(4)]
    for run in runs:
        store.runs.sink(run, price=lambda _, usage: usage.output_tokens)(answered("x", "y"))
    store.commit("main", [turn(tip, "x")], expected=tip, run=runs[0])
    store.runs.end(runs[1], "failed", RateLimitError("slow down"))
    store.runs.end(runs[2], "abandoned")
    store.runs.end(runs[3], "conflict")

    (line,) = store.costs("app")

    assert line == CostLine("chat", 4, 0, 0, Usage(400, 80, 160, 0, 20), 0, 0, 80)
    assert line.cost_nano == 80


def test_an_unknown_price_or_usage_makes_the_sum_unknown_and_is_counted(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")
    store.runs.sink(run, model="m", price=lambda *_: 5)(answered("x", "priced"))
    store.runs.sink(run, model="m", price=lambda *_: None)(answered("x", "unpriced", place=1))
    store.runs.sink(run, model="m", price=lambda *_: 5)(answered("x", "calls_without_usage", usage=None, place=2))

    (line,) = store.costs("model")

    assert (line.requests, line.unpriced, line.calls_without_usage) == (3, 1, 1)
    assert line.cost_nano is None
    assert line.known_nano == 5


def test_a_request_without_an_answer_costs_nothing_and_is_counted(store: Store) -> None:
    begin(store)
    run = store.runs.begin("main", None, APP.hash, "x")
    asked = answered("x", "").effect
    assert asked is not None
    store.runs.sink(run, model="m", price=lambda *_: 5)(Entry((), 0, asked, None, RateLimitError("slow down")))
    store.runs.sink(run, model="m")(Entry((), 1, CallTool("clock", {}), ToolResult("noon")))

    (line,) = store.costs("session")

    assert line == CostLine("main", 1, 1, 1, Usage(), 0, 0, 0)
    assert line.cost_nano == 0


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("app", ["chat", "code"]),
        ("model", ["m", "n"]),
        ("day", ["1970-01-01", "1970-01-02"]),
        ("session", ["one", "two"]),
    ],
)
def test_costs_are_added_up_by_each_axis(by: Axis, names: list[str]) -> None:
    now = [0]
    with Store.open(":memory:", clock=lambda: now[0]) as store:
        for number, (ref, model) in enumerate([("one", "m"), ("two", "n")]):
            app = AppSource("code", "source") if number else APP
            tip = store.commit(ref, [Node(None, "root", app.hash)], expected=None, apps=[app])
            run = store.runs.begin(ref, tip, app.hash, "x")
            now[0] = number * DAY_US
            store.runs.sink(run, model=model)(answered("x", "y"))

        assert [(line.name, line.requests) for line in store.costs(by)] == [(name, 1) for name in names]


def test_sessions_and_models_of_one_app_have_their_own_lines(store: Store) -> None:
    tip = begin(store)
    for ref, model in (("one", "m"), ("two", "n")):
        run = store.runs.begin(ref, tip, APP.hash, "x")
        store.runs.sink(run, model=model)(answered("x", "y"))

    assert [line.name for line in store.costs("session")] == ["one", "two"]
    assert [line.name for line in store.costs("model")] == ["m", "n"]
    assert [line.name for line in store.costs("app")] == ["chat"]


def test_the_costs_of_one_session_are_its_own(store: Store) -> None:
    tip = begin(store)
    for ref in ("one", "two"):
        run = store.runs.begin(ref, tip, APP.hash, "x")
        store.runs.sink(run, model="m")(answered("x", "y"))
        store.runs.count_request(run, "m")
        store.runs.count_request(run, "m")  # sent, and never answered

    assert store.costs("model", "two") == store.costs("model", "one")
    assert store.costs("session", "two") == tuple(line for line in store.costs("session") if line.name == "two")
    assert [(line.requests, line.calls_without_usage) for line in store.costs("session", "two")] == [(2, 1)]
    assert store.costs("session", "three") == ()


def test_the_costs_of_collected_nodes_stay(store: Store) -> None:
    tip = begin(store)
    run = store.runs.begin("main", tip, APP.hash, "x")
    store.runs.sink(run)(answered("x", "y"))
    store.commit("main", [turn(tip, "x")], expected=tip, run=run)
    store.refs.delete("main")

    assert store.gc(0).nodes == 2
    assert store.costs("app")[0].requests == 1
    assert store.costs("session")[0].name == "main"
