"""The laws of programs: a dialogue is a monad, its bill survives a failure, and its journal is enough to run it again."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from taiwa.kernel.effects import Step, bind, join, map, unit
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.journal import Entry, Journal
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.replay import replay
from taiwa.lab.generated import arrows, oracles, phrases, small_values
from taiwa.lab.law import Law, demand
from taiwa.lab.phrases import Arrow, Fail, Phrase, arrow_of, get, put, step_of
from taiwa.lab.playing import Oracle, Played, play

__all__ = ["step_laws"]

SUBJECT = "programs"


def agree(left: Step[Json, Any], right: Step[Json, Any], state: Json, oracle: Callable[[], Oracle]) -> None:
    """See that two steps are the same for a start and an oracle."""
    ours, theirs = play(left(state), oracle()), play(right(state), oracle())
    demand(ours.outcome, theirs.outcome, "they end differently")
    demand(ours.log, theirs.log, "they ask differently")


def left_identity(answer: Json, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Going on from unit(a) with f is f(a)."""
    follow = arrow_of(arrow)
    agree(bind(unit(answer), follow), follow(answer), state, oracle)


def right_identity(phrase: Phrase, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Going on with unit is the same as not going on."""
    agree(bind(step_of(phrase), unit), step_of(phrase), state, oracle)


def associativity(phrase: Phrase, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """It makes no difference which two of three programs are put together first."""
    step, first, second = step_of(phrase), arrow_of(one), arrow_of(two)
    agree(bind(bind(step, first), second), bind(step, lambda answer: bind(first(answer), second)), state, oracle)


def join_of_joins(phrase: Phrase, one: Arrow, two: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Of three layers it makes no difference which two are joined first."""
    first, second = arrow_of(one), arrow_of(two)
    layers = map(step_of(phrase), lambda answer: map(first(answer), second))
    agree(join(map(layers, join)), join(join(layers)), state, oracle)


def join_of_units(phrase: Phrase, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A layer that was only put on is taken off by join, on either side."""
    step = step_of(phrase)
    agree(join(unit(step)), step, state, oracle)
    agree(join(map(step, unit)), step, state, oracle)


def bind_is_join_of_map(phrase: Phrase, arrow: Arrow, state: Json, oracle: Callable[[], Oracle]) -> None:
    """Going on is making a layer and joining it."""
    step, follow = step_of(phrase), arrow_of(arrow)
    agree(bind(step, follow), join(map(step, follow)), state, oracle)


def puts_and_gets(one: Json, two: Json, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A state is what was put last, and reading it changes nothing."""
    agree(bind(put(one), lambda _: put(two)), put(two), state, oracle)
    agree(bind(put(one), lambda _: get), bind(put(one), lambda _: unit(one)), state, oracle)
    agree(bind(get, put), unit(None), state, oracle)


def bill_survives_failure(phrase: Phrase, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A failure ends a program and takes nothing back of what was asked and answered before it."""
    whole = play(step_of(phrase)(state), oracle())
    failed = play(bind(step_of(phrase), lambda _: step_of(Fail("afterwards")))(state), oracle())
    demand(failed.log, whole.log, "the log")
    demand(failed.error is not None, True, "the failure")


def replays(phrase: Phrase, state: Json, oracle: Callable[[], Oracle]) -> None:
    """A journal that was stored gives the same end without a single call."""
    first = play(step_of(phrase)(state), oracle())
    try:
        again = Played(replay(step_of(phrase)(state), Journal(stored(first.journal))), None, ())
    except TaiwaError as error:
        again = Played(None, error, ())
    demand(again.outcome, first.outcome, "the replay ends differently")


def resumes(phrase: Phrase, state: Json, oracle: Callable[[], Oracle]) -> None:
    """From every prefix of its journal a program ends as it did, and asks only for the rest."""
    first = play(step_of(phrase)(state), oracle())
    entries = tuple(stored(first.journal))
    for kept in range(len(entries) + 1):
        again = play(step_of(phrase)(state), oracle(), entries[:kept])
        demand(again.outcome, first.outcome, f"resumed after {kept} answers it ends differently")
        demand(len(again.journal.entries), len(entries), f"resumed after {kept} answers its journal has another length")


def stored(journal: Journal) -> Iterator[Entry]:
    """The entries as they come back from a store."""
    for entry in journal.entries:
        yield Entry.revive(json.loads(canonical(entry.record())))


def step_laws() -> Iterator[Law]:
    """All laws of programs."""
    counting, steady = oracles(counting=True), oracles(counting=False)
    laws: list[tuple[str, tuple[st.SearchStrategy[Any], ...], Callable[..., None]]] = [
        ("left identity", (small_values, arrows, small_values, counting), left_identity),
        ("right identity", (phrases, small_values, counting), right_identity),
        ("associativity", (phrases, arrows, arrows, small_values, counting), associativity),
        ("join of joins", (phrases, arrows, arrows, small_values, counting), join_of_joins),
        ("join of units", (phrases, small_values, counting), join_of_units),
        ("bind is join of map", (phrases, arrows, small_values, counting), bind_is_join_of_map),
        ("puts and gets", (small_values, small_values, small_values, counting), puts_and_gets),
        ("the bill survives a failure", (phrases, small_values, counting), bill_survives_failure),
        ("replay", (phrases, small_values, counting), replays),
        ("resume", (phrases, small_values, steady), resumes),
    ]
    for name, drawn, holds in laws:
        yield Law(name, SUBJECT, st.tuples(*drawn), holds)
