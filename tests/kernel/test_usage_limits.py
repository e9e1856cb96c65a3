"""Usage limits hold whatever a program catches, and all strands share them."""

import asyncio
import threading
from contextlib import nullcontext

import pytest

from taiwa.kernel.effects import Complete, Program, gather, perform
from taiwa.kernel.errors import ConfigError, LimitError
from taiwa.kernel.execution import Execution, Journal, RunResult, replay
from taiwa.kernel.messages import Request, Response, ToolResult, Usage, assistant, user
from taiwa.kernel.usage_limits import Billing, Price, RunUsage, UsageLedger, UsageLimits
from taiwa.models.scripted import scripted_model
from tests.kernel.fakes import Clock, Double, Drive, Echo, ask, call
from tests.kernel.test_streaming import CutAt


def asking(times: int) -> Program[int]:
    for _ in range(times):
        yield from ask("more")
    return times


def stubborn(asked: list[str]) -> Program[str]:
    """Ask for ever and catch every refusal."""
    while True:
        try:
            yield from ask("more")
        except LimitError as error:
            asked.append(str(error))


def test_requests_up_to_the_limit_are_answered(drive: Drive) -> None:
    assert drive.run(asking(3), model=Echo(), limits=UsageLimits(requests=3)) == 3


def test_one_request_more_is_refused_and_not_sent(drive: Drive) -> None:
    model = Echo()

    with pytest.raises(LimitError) as caught:
        drive.run(asking(4), model=model, limits=UsageLimits(requests=3))

    assert (caught.value.which, caught.value.amount, caught.value.bound) == ("requests", 3, 3)
    assert len(model.asked) == 3


def test_tool_calls_are_limited(drive: Drive) -> None:
    def program() -> Program[str]:
        for _ in range(3):
            yield from call("any")
        return "done"

    handlers = {type(call("x").send(None)): lambda _: ToolResult("")}
    with pytest.raises(LimitError, match="limit on tool calls is reached: 2 of 2"):
        drive.run(program(), handlers=handlers, limits=UsageLimits(tool_calls=2))


def test_output_tokens_are_limited_by_what_was_answered_so_far(drive: Drive) -> None:
    model = Echo(usage=Usage(1, 40))

    with pytest.raises(LimitError, match="limit on output tokens is reached: 120 of 100"):
        drive.run(asking(9), model=model, limits=UsageLimits(output_tokens=100))

    assert len(model.asked) == 3


def per_token(_: str, usage: Usage) -> int:
    return usage.output_tokens * 1_000_000_000


def test_cost_is_limited_by_what_was_paid_so_far(drive: Drive) -> None:
    model = Echo(usage=Usage(1, 20))

    with pytest.raises(LimitError, match="limit on cost is reached: 40 of 40"):
        drive.run(asking(9), model=model, limits=UsageLimits(cost=40_000_000_000), billing=Billing(per_token))

    assert len(model.asked) == 2


@pytest.mark.parametrize("price", [None, lambda _, __: None])
def test_a_cost_limit_without_a_price_refuses_every_call(drive: Drive, price: Price | None) -> None:
    model = Echo()

    with pytest.raises(ConfigError, match="the price of echo is unknown"):
        drive.run(asking(1), model=model, limits=UsageLimits(cost=1), billing=Billing(price))

    assert model.asked == []


@pytest.mark.parametrize(
    ("limit", "asked"), [(UsageLimits(cost=10**6), 3), (UsageLimits(cost=40), 2), (UsageLimits(output_tokens=20), 2)]
)
def test_an_answer_that_was_cut_counts_for_a_limit_as_what_it_used_at_most(
    drive: Drive, limit: UsageLimits, asked: int
) -> None:
    def program() -> Program[None]:
        for _ in range(3):
            yield from perform(Complete(Request((user("0123456789 and"),)), lambda: CutAt("and")))

    model = Echo(usage=None)

    with nullcontext() if asked == 3 else pytest.raises(LimitError):
        drive.run(program(), model=model, limits=limit, billing=Billing(lambda _, usage: usage.output_tokens))

    assert len(model.asked) == asked


def test_usage_that_is_not_reported_is_counted_as_unknown_never_as_nothing(drive: Drive) -> None:
    with pytest.raises(LimitError) as caught:
        drive.run(asking(3), model=Echo(usage=None), limits=UsageLimits(requests=2), billing=Billing(per_token))

    spent = caught.value.spent
    assert isinstance(spent, RunUsage)
    assert (spent.calls_without_usage, spent.cost, spent.usage) == (2, None, Usage())


def test_seconds_are_limited_before_an_effect(drive: Drive) -> None:
    clock = Clock()

    def tick(_: Double) -> int:
        clock.seconds += 4
        return 0

    def program() -> Program[int]:
        for _ in range(9):
            yield from perform(Double(1))
        return 9

    with pytest.raises(LimitError, match="limit on seconds is reached: 12 of 10"):
        drive.run(program(), clock=clock, handlers={Double: tick}, limits=UsageLimits(seconds=10))


def test_the_time_limit_cuts_an_answer_and_records_its_part(drive: Drive) -> None:
    clock = Clock()

    def tick() -> None:
        clock.seconds += 4

    model, journal = Echo(chunk=2, on_chunk=tick), Journal()

    with pytest.raises(LimitError, match="seconds"):
        drive.run(ask("0123456789"), journal, clock=clock, model=model, limits=UsageLimits(seconds=10))

    (entry,) = journal.entries
    assert isinstance(entry.answer, Response)
    assert entry.answer.text == "01234567"
    assert model.closed == ["0123456789"]


def test_seconds_left_are_no_limit_when_none_was_set() -> None:
    ledger = UsageLedger(UsageLimits(), clock=Clock())

    assert (ledger.remaining(), ledger.time_error()) == (None, None)


def test_when_time_is_over_all_that_is_under_way_fails() -> None:
    clock = Clock()
    session = Execution(gather([ask("a"), ask("b")]), UsageLedger(UsageLimits(seconds=1), clock=clock))
    first, second = session.take_pending()

    clock.seconds = 2
    session.expire()

    assert session.done
    assert not first.active
    assert not second.active
    with pytest.raises(LimitError, match="limit on seconds is reached: 2 of 1"):
        session.result()


def test_time_that_is_not_over_ends_nothing() -> None:
    session = Execution(ask("a"), UsageLedger(UsageLimits(seconds=1), clock=Clock()))

    session.expire()

    assert not session.done


def test_a_first_refusal_may_be_answered_by_plain_words(drive: Drive) -> None:
    def program() -> Program[str]:
        answers = 0
        try:
            while True:
                yield from ask("more")
                answers += 1
        except LimitError:
            return f"after {answers} answers: enough"

    journal = Journal()

    assert drive.run(program(), journal, model=Echo(), limits=UsageLimits(requests=2)) == "after 2 answers: enough"
    assert replay(program(), journal) == "after 2 answers: enough"


def test_a_program_that_swallows_a_refusal_and_asks_again_is_ended(drive: Drive) -> None:
    caught: list[str] = []

    with pytest.raises(LimitError, match="requests"):
        drive.run(stubborn(caught), model=Echo(), limits=UsageLimits(requests=2))

    assert caught == ["the limit on requests is reached: 2 of 2"]


def test_a_program_that_asks_again_through_a_gather_is_ended_too(drive: Drive) -> None:
    refusals: list[str] = []

    def program() -> Program[str]:
        while True:
            try:
                yield from gather([ask("a"), ask("b")])
            except LimitError as error:
                refusals.append(str(error))

    with pytest.raises(LimitError, match="requests"):
        drive.run(program(), model=Echo(), limits=UsageLimits(requests=3))

    assert len(refusals) == 1


def test_a_program_that_asks_again_through_nested_gathers_is_ended_too(drive: Drive) -> None:
    def nested(depth: int) -> Program[object]:
        while True:
            try:
                if depth == 0:
                    yield from ask("more")
                else:
                    yield from gather([nested(depth - 1), nested(depth - 1)])
            except LimitError:
                pass

    with pytest.raises(LimitError, match="requests"):
        drive.run(nested(3), model=Echo(), limits=UsageLimits(requests=20))


def test_each_program_of_a_gather_may_answer_a_refusal(drive: Drive) -> None:
    def modest(text: str) -> Program[str]:
        try:
            return (yield from ask(text))
        except LimitError:
            return "nothing"

    journal = Journal()
    answers = drive.run(
        gather([modest(text) for text in "abcd"]), journal, model=Echo(), limits=UsageLimits(requests=2)
    )

    assert answers == ("a!", "b!", "nothing", "nothing")
    assert replay(gather([modest(text) for text in "abcd"]), journal) == answers


def test_programs_of_a_gather_share_one_limit(drive: Drive) -> None:
    model = Echo()

    with pytest.raises(LimitError, match="limit on requests is reached: 5 of 5"):
        drive.run(gather([asking(3) for _ in range(4)]), model=model, limits=UsageLimits(requests=5))

    assert len(model.asked) <= 5


def test_a_request_that_failed_counts(drive: Drive) -> None:
    model = scripted_model(ValueError("down"), "never")

    def program() -> Program[str]:
        try:
            return (yield from ask("a"))
        except ValueError:
            return (yield from ask("b"))

    with pytest.raises(LimitError):
        drive.run(program(), model=model, limits=UsageLimits(requests=1))


def test_the_bill_of_a_resumed_run_holds_what_was_paid_before(drive: Drive) -> None:
    first = Journal()
    drive.run(asking(2), first, model=Echo(usage=Usage(5, 7)))

    with pytest.raises(LimitError, match="output tokens is reached: 14 of 14"):
        drive.run(asking(3), Journal(first.entries), model=Echo(), limits=UsageLimits(output_tokens=14))


def test_a_prefix_of_the_answer_that_came_before_an_error_is_on_the_bill(drive: Drive) -> None:
    journal = Journal()

    with pytest.raises(ValueError, match="fail") as caught:
        drive.run(perform(Complete(Request((user("fail"),)))), journal, model=Echo())

    assert caught.type is ValueError
    (entry,) = journal.entries
    assert entry.answer == Response(assistant("fail!"), "interrupted")
    assert entry.error is caught.value


def test_a_call_that_was_stopped_in_its_middle_is_on_the_bill_as_unknown(drive: Drive) -> None:
    def program() -> Program[str]:
        try:
            yield from gather([ask("a long answer"), perform(Double(1))])
        except ZeroDivisionError:
            return "caught"
        return "missed"

    begun, over = threading.Event(), threading.Event()

    def linger() -> None:
        begun.set()
        if drive.kind == "blocking":
            over.wait(300)

    def fail(_: Double) -> int:
        begun.wait(300)
        raise ZeroDivisionError

    async def fail_later(_: Double) -> int:
        for _step in range(3):
            await asyncio.sleep(0)
        raise ZeroDivisionError

    handlers = {Double: fail if drive.kind == "blocking" else fail_later}
    streamed = drive.stream(
        program(), model=Echo(chunk=1, on_chunk=linger), handlers=handlers, billing=Billing(per_token)
    )
    over.set()

    assert isinstance(streamed[-1], RunResult)
    assert streamed[-1].value == "caught"
    assert (streamed[-1].spent.requests, streamed[-1].spent.calls_without_usage, streamed[-1].spent.cost) == (
        1,
        1,
        None,
    )
