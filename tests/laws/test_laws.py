"""The law suite: it holds for what is ours, and it catches what breaks a law."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import pytest

from taiwa.apps.catalog import BUILT_IN as BUILT_IN_APPS
from taiwa.conversation import reducers
from taiwa.conversation.app import App, AppSource
from taiwa.conversation.history import Conversation, add_turn
from taiwa.conversation.reducers import Reducer, known_reducers
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import turn_request
from taiwa.kernel.effects import Program, Step
from taiwa.kernel.messages import Request
from taiwa.kernel.serialization import Json
from tests.laws import properties
from tests.laws.properties import Law, LawResult, check_law, field_laws, reducer_laws
from tests.laws.subjects import check_laws


def broken(results: tuple[LawResult, ...]) -> dict[str, str]:
    """The laws that do not hold, with their counterexamples."""
    return {result.law: result.counterexample for result in results if not result.ok}


@pytest.mark.slow
def test_every_law_holds_for_what_is_ours(capfd: pytest.CaptureFixture[str]) -> None:
    results = check_laws(examples=5, seed=1)

    assert broken(results) == {}
    assert all(result.examples >= 1 for result in results)
    subjects = {result.subject for result in results}
    assert {"programs", "sample (json)", "union of list[str]", "last(2) of list[int]"} <= subjects
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", sorted(path.stem for path in BUILT_IN_APPS.iterdir()))
def test_the_apps_that_come_along_keep_every_law(name: str) -> None:
    results = check_laws([name], examples=3)

    assert broken(results) == {}
    assert any("(" in result.subject and name in result.subject for result in results)


def law_of(laws: Iterable[Law], name: str, examples: int = 40) -> LawResult:
    """Try the first law of that name."""
    return check_law(next(law for law in laws if law.name == name), examples, seed=3)


def near(held: Any, given: Any, _: int = 0) -> list[str]:
    """Leave out what is a part of an item or has one as its part."""
    kept = list(held)
    for item in given:
        if not any(str(item) in str(other) or str(other) in str(item) for other in kept):
            kept.append(item)
    return kept


def mean(held: Any, given: Any, _: int = 0) -> float:
    return given if held is None else (held + given) / 2


def merge_in_place(held: Any, given: Any, _: int) -> Json:
    held.update(given)
    return held


def halved(held: Any, given: Any, _: int = 0) -> Json:
    whole = [*held, *given]
    return whole[len(whole) // 2 :] if len(whole) > 3 else whole


numbers = count()
BROKEN = [
    (Reducer("near", near, "items", [], ("list",), near), "combine", "were combined to"),
    (Reducer("mean", mean, types=("float",), combine=mean), "combine", "were combined to"),
    (Reducer("halved", halved, "items", [], ("list",), halved), "combine", "were combined to"),
    (Reducer("merge", merge_in_place, "table", {}, ("dict",)), "a step is pure", "changed its state argument"),
    (Reducer("clock", lambda *_: next(numbers)), "a step is pure", "gave another result"),
    (Reducer("words", lambda *_: "many", types=("int",)), "a step keeps the type", "does not fit the type"),
    (Reducer("typed", lambda *_: 1, empty="none", types=("int",)), "a step keeps the type", "the initial value is 'none'"),
    (Reducer("nan", lambda *_: float("nan")), "a step is pure", "not a JSON value"),
    (Reducer("boom", lambda *_: 1 / 0), "a step is pure", "ZeroDivisionError"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "law", "why"), BROKEN, ids=[made.name for made, _, _ in BROKEN])
def test_a_broken_reducer_is_caught_with_an_example(made: Reducer, law: str, why: str) -> None:
    found = law_of(reducer_laws(made), law, examples=100)

    assert not found.ok
    assert why in found.counterexample


def test_a_counterexample_is_small_and_named() -> None:
    found = broken(check_laws([BROKEN[3][0]], examples=50, seed=1))

    assert found["a step is pure"].startswith("origin={}, earlier=[], delta={'a': ")


def test_the_same_seed_finds_the_same() -> None:
    mending = BROKEN[1][0]

    assert check_laws([mending], examples=30, seed=7) == check_laws([mending], examples=30, seed=7)


def test_a_name_may_be_that_of_a_reducer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(known_reducers(), "mean", BROKEN[1][0])

    assert broken(check_laws(["union", "last(4)"], examples=5)) == {}
    assert "combine" in broken(check_laws(["mean"], examples=50))


def test_a_broken_reducer_is_caught_in_the_app_that_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(known_reducers(), "mean", BROKEN[1][0])

    found = law_of(field_laws(StateField("score", "float(0..1)", reduce="mean"), "mine"), "combine")

    assert (found.subject, found.ok) == ("mine.score (mean)", False)


# What a law is worth is shown by a mistake that it catches.


def reducing_bind(first: Step[Json, Any], then: Callable[[Any], Step[Json, Any]]) -> Step[Json, Any]:
    """A bind that reduces the state when it is done, as if each of its steps were a turn."""

    def step(state: Json) -> Program[tuple[Any, Json]]:
        answer, between = yield from first(state)
        last, after = yield from then(answer)(between)
        return last, [after]

    return step


@pytest.mark.parametrize("name", ["right identity", "associativity", "bind is join of map", "puts and gets"])
def test_a_bind_that_reduces_breaks_the_laws_of_programs(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(properties, "bind", reducing_bind)

    assert not law_of(properties.program_laws(), name).ok


def forgetful_bind(first: Step[Json, Any], then: Callable[[Any], Step[Json, Any]]) -> Step[Json, Any]:
    """A bind that goes on from the old state."""

    def step(state: Json) -> Program[tuple[Any, Json]]:
        answer, _ = yield from first(state)
        return (yield from then(answer)(state))

    return step


def test_a_bind_that_forgets_the_state_breaks_the_laws_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "bind", forgetful_bind)

    assert not law_of(properties.program_laws(), "right identity").ok
    assert not law_of(properties.program_laws(), "puts and gets").ok


SAMPLE = App(AppSource("sample", ""), "Talk.", (StateField("topics", "list[str]", reduce="union"),))


def test_a_clock_in_the_head_of_the_prompt_breaks_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from taiwa.kernel.messages import system

    ticks = count()

    def dated(conversation: Conversation, text: str) -> Request:
        request = turn_request(conversation, text)
        return replace(request, messages=(system(f"It is {next(ticks)} o'clock."), *request.messages))

    monkeypatch.setattr(properties, "turn_request", dated)

    assert not law_of(properties.conversation_laws(SAMPLE), "the prompt prefix is stable").ok


def test_a_turn_that_changes_the_state_in_place_breaks_undo_and_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_place(before: Conversation, user: str, answer: str, delta: Json) -> Conversation:
        after = add_turn(before, user, answer, delta)
        before.state.update(after.state)
        return after

    monkeypatch.setattr(properties, "add_turn", in_place)

    assert not law_of(properties.conversation_laws(SAMPLE), "undo after a commit").ok
    assert not law_of(properties.conversation_laws(SAMPLE), "a fork leaves the other branch unchanged").ok


def test_a_clock_in_the_state_breaks_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(known_reducers(), "clock", Reducer("clock", lambda *_: next(numbers)))
    clocks = tuple(
        properties.conversation_laws(App(AppSource("clock", ""), "Talk.", (StateField("now", "any", reduce="clock"),)))
    )

    assert not law_of(clocks, "undo after a commit").ok
    assert not law_of(clocks, "recorded deltas give the recorded states").ok


def test_a_watcher_that_shows_the_delta_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from taiwa.kernel.effects import WatchResult

    class Blunt:
        def feed(self, text: str) -> WatchResult:
            return WatchResult(text)

        def close(self) -> WatchResult:
            return WatchResult()

    monkeypatch.setattr(properties, "reply_watcher", lambda app, layout: Blunt)

    assert not law_of(properties.conversation_laws(SAMPLE), "a reply is parsed back and shown").ok


def test_the_built_in_reducers_are_those_that_the_suite_tries() -> None:
    assert set(reducers.BUILT_IN) <= set(known_reducers())
