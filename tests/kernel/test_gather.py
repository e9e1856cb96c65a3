"""Programs side by side: their order, their failures, and how many at a time."""

import asyncio
import threading

import pytest

from taiwa.kernel.effects import Program, gather, notify, perform
from taiwa.kernel.execution import Journal, replay
from taiwa.kernel.usage_limits import UsageLimits
from tests.kernel.fakes import Double, Drive, Echo, ask


def pure(item: str) -> Program[str]:
    return item
    yield


def test_answers_come_in_the_order_of_the_programs(drive: Drive) -> None:
    answers = drive.run(gather(ask(text) for text in "abc"), model=Echo())

    assert answers == ("a!", "b!", "c!")


def test_gathers_may_be_nested(drive: Drive) -> None:
    def group(name: str) -> Program[tuple[str, ...]]:
        return (yield from gather([ask(f"{name}1"), ask(f"{name}2")]))

    assert drive.run(gather([group("a"), group("b")]), model=Echo()) == (("a1!", "a2!"), ("b1!", "b2!"))


def test_nothing_to_gather_is_an_empty_answer(drive: Drive) -> None:
    assert drive.run(gather([])) == ()


def test_programs_without_effects_can_be_gathered(drive: Drive) -> None:
    assert drive.run(gather([pure("a"), ask("b"), pure("c")]), model=Echo()) == ("a", "b!", "c")


def test_a_thousand_programs_run_at_most_four_at_a_time(drive: Drive) -> None:
    four = threading.Barrier(4, timeout=300)
    model = Echo(on_chunk=four.wait) if drive.kind == "blocking" else Echo()
    programs = [ask(str(number)) for number in range(1000)]

    answers = drive.run(gather(programs), model=model, width=4, limits=UsageLimits(requests=None))

    assert answers == tuple(f"{number}!" for number in range(1000))
    assert model.open_most == 4


def test_programs_of_a_gather_really_run_side_by_side(drive: Drive) -> None:
    if drive.kind == "blocking":
        both = threading.Barrier(2, timeout=300)
        assert sorted(
            drive.run(gather([perform(Double(1)), perform(Double(2))]), handlers={Double: lambda _: both.wait()})
        ) == [0, 1]
        return
    arrived: list[int] = []
    all_here = asyncio.Event()

    async def meet(effect: Double) -> int:
        arrived.append(effect.number)
        if len(arrived) == 2:
            all_here.set()
        await all_here.wait()
        return effect.number

    assert drive.run(gather([perform(Double(1)), perform(Double(2))]), handlers={Double: meet}) == (1, 2)


def test_ten_thousand_gathers_in_a_row_do_not_recurse(drive: Drive) -> None:
    def program() -> Program[int]:
        total = 0
        for _ in range(10_000):
            total += len((yield from gather([pure("a"), pure("b")])))
        return total

    assert drive.run(program()) == 20_000


def test_gathers_nested_a_thousand_deep_do_not_recurse(drive: Drive) -> None:
    def nest(depth: int) -> Program[int]:
        if depth == 0:
            yield from ask("deep")
            raise ValueError("at the bottom")
        yield from gather([nest(depth - 1)])
        return depth

    with pytest.raises(ValueError, match="at the bottom"):
        drive.run(nest(1000), model=Echo())


def test_stopping_gathers_nested_two_thousand_deep_does_not_recurse(drive: Drive) -> None:
    closed: list[int] = []

    def nest(depth: int) -> Program[object]:
        try:
            return (yield from gather([nest(depth - 1)]) if depth else ask("a long answer"))
        finally:
            closed.append(depth)

    drive.stream(nest(2000), most=1, model=Echo(chunk=1))

    assert closed == list(range(2001))


def failing(closed: list[str]) -> Program[str]:
    """Three programs, of which the second fails while the others wait."""

    def waiting(name: str) -> Program[str]:
        try:
            yield from ask(f"{name} first")
            return (yield from perform(Double(0)))  # type: ignore[return-value]
        finally:
            closed.append(name)

    try:
        yield from gather([waiting("a"), ask("please fail"), waiting("c")])
    except ValueError as error:
        return f"caught {error}, then {(yield from ask('more'))}"
    return "no failure"


class Stuck:
    """A handler that answers only when the test is over."""

    def __init__(self, drive: Drive) -> None:
        self.over = threading.Event()
        self.handle = self.block if drive.kind == "blocking" else self.wait

    def block(self, _: Double) -> None:
        self.over.wait(300)

    async def wait(self, _: Double) -> None:
        await asyncio.sleep(300)


def test_when_one_fails_the_others_are_stopped_and_the_program_may_go_on(drive: Drive) -> None:
    closed: list[str] = []
    stuck = Stuck(drive)

    said = drive.run(failing(closed), model=Echo(), handlers={Double: stuck.handle})
    stuck.over.set()

    assert said == "caught please fail, then more!"
    assert sorted(closed) == ["a", "c"]


def test_a_failed_gather_can_be_replayed(drive: Drive) -> None:
    journal = Journal()
    stuck = Stuck(drive)
    drive.run(failing([]), journal, model=Echo(), handlers={Double: stuck.handle})
    stuck.over.set()

    assert replay(failing([]), journal) == "caught please fail, then more!"


def test_a_program_that_has_not_begun_is_never_begun_after_a_failure(drive: Drive) -> None:
    begun: list[str] = []

    def late() -> Program[str]:
        begun.append("late")
        return (yield from ask("late"))

    def broken() -> Program[str]:
        raise ValueError("at once")
        yield

    with pytest.raises(ValueError, match="at once"):
        drive.run(gather([broken(), late()]), model=Echo())

    assert begun == []


def test_the_error_of_a_program_that_has_no_effects_is_raised_where_they_were_gathered(drive: Drive) -> None:
    def broken() -> Program[str]:
        yield from notify("about to break")
        raise KeyError("broken")

    def program() -> Program[str]:
        try:
            yield from gather([broken(), ask("x")])
        except KeyError:
            return "caught"
        return "missed"

    assert drive.run(program(), model=Echo()) == "caught"


def test_an_error_in_the_clean_up_of_a_stopped_program_is_not_hidden(drive: Drive) -> None:
    def careless() -> Program[str]:
        try:
            return (yield from ask("wait"))
        finally:
            raise RuntimeError("while cleaning up")

    def broken() -> Program[str]:
        yield from perform(Double(1))
        raise ValueError("first")

    with pytest.raises(RuntimeError, match="while cleaning up"):
        drive.run(gather([careless(), broken()]), model=Echo(), handlers={Double: lambda _: None}, width=1)


def test_effects_yielded_while_a_program_is_cancelled_are_not_performed(drive: Drive) -> None:
    model = Echo()

    def stubborn() -> Program[str]:
        try:
            return (yield from perform(Double(0)))  # type: ignore[return-value]
        finally:
            yield from ask("in the finally block")

    stuck = Stuck(drive)
    with pytest.raises(ValueError, match="please fail"):
        drive.run(gather([stubborn(), ask("please fail")]), model=model, handlers={Double: stuck.handle})
    stuck.over.set()

    assert model.asked == ["please fail"]


def test_the_exit_of_a_handler_is_the_exit_of_the_run(drive: Drive) -> None:
    def leave(_: Double) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        drive.run(gather([perform(Double(1)), perform(Double(2))]), handlers={Double: leave})
