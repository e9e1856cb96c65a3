"""A model call is priced before it is made: what cannot fit is not sent, and an honest server never exceeds a limit of cost."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.approval import ApprovalRequest
from taiwa.kernel.effects import Complete, Program, gather, perform
from taiwa.kernel.errors import ApprovalRequiredError, LimitError, ModelError, OverloadedError
from taiwa.kernel.execution import Journal, RunResult, replay
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    FailedAttempt,
    Notice,
    Request,
    Response,
    Sampling,
    StreamEnd,
    TextDelta,
    Usage,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import (
    ANSWER_TOKENS,
    Billing,
    Prices,
    RunUsage,
    SharedBudget,
    UsageLimits,
    estimate_input,
)
from tests.kernel.fakes import Double, Drive

UNIT = 10**9
DEAR = Prices("1000", "2000")


def price(_: str, usage: Usage) -> int:
    return DEAR.cost(usage)


def written(tokens: int | None = None, text: str = "Count.") -> Program[Response]:
    return (yield from perform(Complete(Request((user(text),), sampling=Sampling(max_tokens=tokens)))))


def cost_of(spent: object) -> int:
    """The known cost of a run."""
    assert isinstance(spent, RunUsage)
    assert spent.cost is not None
    return spent.cost


@dataclass
class Writer:
    """A model that would write `tokens` tokens, writes at most `max_tokens`, and counts its input as the ledger estimates it."""

    tokens: int = 1_000
    reported: Callable[[Usage], Usage | None] = lambda usage: usage
    attempts: int = 0
    most: int | None = None
    hold: Callable[[], object] = lambda: None
    name: str = "writer"
    capabilities: frozenset[Capability] = frozenset()
    asked: list[Request] = field(default_factory=list[Request])
    open_now: int = 0
    open_most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def stream(self, request: Request) -> Iterator[Chunk]:
        """Answer in one chunk."""
        with self.lock:
            self.asked.append(request)
            self.open_now += 1
            self.open_most = max(self.open_most, self.open_now)
        try:
            yield from self._chunks(request)
        finally:
            with self.lock:
                self.open_now -= 1

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        """As `stream`."""
        for chunk in self.stream(request):
            yield chunk

    def _chunks(self, request: Request) -> Iterator[Chunk]:
        most = request.sampling.max_tokens
        if self.most is not None and (most or 0) > self.most:
            raise ModelError(f"max_tokens: {most} > {self.most}, which is the maximum", status=400)
        for _ in range(self.attempts):
            yield FailedAttempt()
        yield TextDelta("one two")
        self.hold()
        tokens = self.tokens if most is None else min(self.tokens, most)
        usage = self.reported(Usage(estimate_input(request), tokens))
        yield StreamEnd("length" if tokens < self.tokens else "stop", usage=usage, model=self.name)


def test_a_call_that_cannot_fit_is_refused_before_it_is_made(drive: Drive) -> None:
    model = Writer()

    with pytest.raises(
        LimitError, match=r"on cost would be exceeded: 0 of 0\.01 is used, and the next call may need"
    ) as caught:
        drive.run(
            written(text="word " * 9_000), model=model, limits=UsageLimits(cost=UNIT // 100), billing=Billing(price)
        )

    assert model.asked == []
    assert caught.value.needed > 9


def test_max_tokens_is_lowered_to_what_is_left_and_the_cut_is_told(drive: Drive) -> None:
    model, journal = Writer(), Journal()

    streamed = drive.stream(written(900), journal, model=model, limits=UsageLimits(cost=UNIT), billing=Billing(price))

    (asked,) = model.asked
    expected = (UNIT - (DEAR.cost(Usage(estimate_input(asked))) or 0)) // 2_000_000
    assert asked.sampling.max_tokens == pytest.approx(expected, abs=2)
    (notice,) = (event for event in streamed if isinstance(event, Notice))
    assert notice.text == f"the answer was cut at {asked.sampling.max_tokens} tokens: a limit left no more"
    assert isinstance(streamed[-1], RunResult)
    assert 0 < cost_of(streamed[-1].spent) <= UNIT
    assert replay(written(900), journal).text == "one two"  # the journal holds the request of the program


def test_an_answer_without_a_maximum_gets_one_only_if_it_is_paid_for(drive: Drive) -> None:
    paid, free = Writer(), Writer()

    drive.run(written(), model=paid, limits=UsageLimits(cost=10**6 * UNIT), billing=Billing(price))
    drive.run(written(), model=free, limits=UsageLimits(cost=UNIT), billing=Billing(lambda _, __: 0))

    assert [each.sampling.max_tokens for each in (*paid.asked, *free.asked)] == [ANSWER_TOKENS, None]


def test_a_maximum_of_our_own_that_a_server_refuses_is_halved(drive: Drive) -> None:
    model = Writer(most=5_000)

    def twice() -> Program[str]:
        yield from written()
        return (yield from written()).text

    limits = UsageLimits(cost=10**6 * UNIT, requests=2)
    assert drive.run(twice(), model=model, limits=limits, billing=Billing(price)) == "one two"
    assert [each.sampling.max_tokens for each in model.asked] == [16_384, 8_192, 4_096, 4_096]


def test_a_maximum_of_the_user_that_a_server_refuses_is_an_error(drive: Drive) -> None:
    model = Writer(most=5_000)

    with pytest.raises(ModelError, match="max_tokens: 6000 > 5000"):
        drive.run(written(6_000), model=model, limits=UsageLimits(cost=10**6 * UNIT), billing=Billing(price))

    assert len(model.asked) == 1


def test_parallel_calls_that_fit_only_one_after_the_other_wait(drive: Drive) -> None:
    model = Writer(tokens=10)
    limits = UsageLimits(cost=UNIT)

    answers = drive.run(
        gather([written(400), written(400), written(400)]), model=model, limits=limits, billing=Billing(price)
    )

    assert len(answers) == 3
    assert model.open_most == 1


def test_of_parallel_calls_only_those_are_made_that_fit(drive: Drive) -> None:
    model = Writer(tokens=400)

    def modest() -> Program[str]:
        try:
            return (yield from written(400)).text
        except LimitError as error:
            return str(error.which)

    done = drive.run_result(
        gather([modest() for _ in range(4)]), model=model, limits=UsageLimits(cost=2 * UNIT), billing=Billing(price)
    )

    assert done.value.count("cost") == 1
    assert cost_of(done.spent) <= 2 * UNIT


def test_a_server_that_counts_more_is_told_and_counted(drive: Drive) -> None:
    model = Writer(tokens=100, reported=lambda usage: Usage(usage.input_tokens * 2, usage.output_tokens))
    limits = UsageLimits(cost=UNIT)

    streamed = drive.stream(written(900), model=model, limits=limits, billing=Billing(price))
    streamed += drive.stream(
        written(), model=Writer(tokens=5_000, reported=lambda _: Usage(1, 5_000)), limits=limits, billing=Billing(price)
    )

    (notice,) = (event for event in streamed if isinstance(event, Notice))
    assert notice.level == "warning"
    assert notice.text.startswith("the cost limit is exceeded: the call cost 10.001 USD instead of at most ")
    assert "5,000 output tokens" in notice.text


def test_an_input_that_is_written_to_a_cache_is_priced_as_that(drive: Drive) -> None:
    cached = Prices("1000", "2000", cache_write="4000")
    model = Writer(reported=lambda usage: Usage(usage.input_tokens, usage.output_tokens, 0, usage.input_tokens))

    spent = drive.run_result(
        written(), model=model, limits=UsageLimits(cost=UNIT), billing=Billing(lambda _, usage: cached.cost(usage))
    ).spent

    assert 0 < cost_of(spent) <= UNIT


def test_of_several_budgets_each_reserves_what_the_smallest_leaves(drive: Drive) -> None:
    wide, narrow = SharedBudget(100 * UNIT), SharedBudget(UNIT)
    held: list[int] = []
    model = Writer(hold=lambda: held.extend((wide.used, narrow.used)))

    drive.run(written(), model=model, billing=Billing(price, [wide, narrow]))

    assert held[0] == held[1] <= UNIT


def test_a_warning_that_is_not_streamed_is_logged(drive: Drive, caplog: pytest.LogCaptureFixture) -> None:
    model = Writer(tokens=5_000, reported=lambda _: Usage(1, 5_000))

    drive.run(written(), model=model, limits=UsageLimits(cost=UNIT), billing=Billing(price))

    (record,) = caplog.records
    assert record.name == "taiwa.limits"
    assert record.getMessage().startswith("the cost limit is exceeded")


def test_a_call_without_reported_usage_counts_as_what_it_reserved(drive: Drive) -> None:
    model = Writer(reported=lambda _: None)

    def endless() -> Program[None]:
        while True:
            yield from written(100)

    with pytest.raises(LimitError, match="the limit on cost") as caught:
        drive.run(endless(), model=model, limits=UsageLimits(cost=UNIT), billing=Billing(price))

    assert [each.sampling.max_tokens for each in model.asked][:3] == [100, 100, 100]
    spent = caught.value.spent
    assert isinstance(spent, RunUsage)
    assert spent.cost is None
    assert spent.max_cost is not None
    assert spent.max_cost <= UNIT


def test_each_attempt_that_may_have_been_charged_is_reserved(drive: Drive) -> None:
    model = Writer(attempts=9)

    with pytest.raises(LimitError, match="the limit on cost"):
        drive.run(written(100), model=model, limits=UsageLimits(cost=UNIT), billing=Billing(price))


def test_one_call_may_be_limited_by_itself(drive: Drive) -> None:
    model = Writer()

    def twice() -> Program[None]:
        yield from written(900)
        yield from written(900)

    done = drive.run_result(twice(), model=model, limits=UsageLimits(call_cost=UNIT), billing=Billing(price))

    assert UNIT < cost_of(done.spent) <= 2 * UNIT
    with pytest.raises(LimitError, match="limit on cost of a call would be exceeded"):
        drive.run(written(), model=model, limits=UsageLimits(call_cost=UNIT // 1000), billing=Billing(price))


def test_output_tokens_are_reserved_as_well(drive: Drive) -> None:
    model = Writer(tokens=70)

    with pytest.raises(LimitError, match="limit on output tokens is reached: 100 of 100"):
        drive.run(gather([written() for _ in range(3)]), model=model, limits=UsageLimits(output_tokens=100))

    assert [each.sampling.max_tokens for each in model.asked] == [100, 30]


def test_runs_share_a_budget_and_what_failed_is_given_back(drive: Drive) -> None:
    budget = SharedBudget(UNIT)

    def failing() -> Program[str]:
        try:
            return (yield from written(100)).text
        except ModelError:
            return "failed"

    assert drive.run(failing(), model=Writer(most=1), billing=Billing(price, [budget])) == "failed"
    assert budget.used == 0
    for _ in range(2):
        drive.run(written(200), model=Writer(), billing=Billing(price, [budget]))
    with pytest.raises(LimitError, match="the limit on cost"):
        drive.run(gather([written(200), written(200)]), model=Writer(), billing=Billing(price, [budget]))
    assert UNIT // 2 < budget.used <= UNIT


def test_a_call_that_is_cancelled_keeps_its_reservation() -> None:
    budget, begun, over = SharedBudget(UNIT), threading.Event(), threading.Event()
    model = Writer(hold=lambda: (begun.set(), over.wait(300)))

    def fail(_: Double) -> int:
        begun.wait(300)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Runtime(model, handlers={Double: fail}, billing=Billing(price, [budget])).run(
            gather([written(100), perform(Double(1))])
        )
    over.set()

    assert budget.used == DEAR.cost(Usage(estimate_input(model.asked[0]), 100))


def test_an_overloaded_server_costs_nothing(drive: Drive) -> None:
    budget = SharedBudget(UNIT)

    class Down(Writer):
        def _chunks(self, request: Request) -> Iterator[Chunk]:
            raise OverloadedError("down", status=503)

    with pytest.raises(OverloadedError):
        drive.run(written(), model=Down(), billing=Billing(price, [budget]))
    assert budget.used == 0


def undecided(_: object) -> int:
    """Answer as a tool whose call nothing decides on."""
    raise ApprovalRequiredError("undecided", calls=(ApprovalRequest("delete", {}),))


def test_a_call_that_needs_approval_lets_waiting_model_calls_end_first(drive: Drive) -> None:
    budget, model, journal = SharedBudget(UNIT), Writer(tokens=10), Journal()
    program = gather([written(400), perform(Double(1)), written(400)])

    with pytest.raises(ApprovalRequiredError):
        drive.run(program, journal, model=model, handlers={Double: undecided}, billing=Billing(price, [budget]))

    assert (len(journal.entries), model.open_most) == (2, 1)
    assert budget.used == sum(DEAR.cost(Usage(estimate_input(each), 10)) or 0 for each in model.asked)


def test_a_model_call_that_needs_approval_reserves_nothing_while_it_waits(drive: Drive) -> None:
    budget = SharedBudget(UNIT)

    with pytest.raises(ApprovalRequiredError) as caught:
        drive.run(
            gather([written(400), written(400)]), handlers={Complete: undecided}, billing=Billing(price, [budget])
        )

    assert (len(caught.value.calls), budget.used) == (2, 0)


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.none() | st.integers(1, 3_000)), min_size=1, max_size=6),
    st.integers(0, 10 * UNIT),
    st.booleans(),
)
def test_no_honest_server_exceeds_a_limit_of_cost(
    calls: list[tuple[int, int | None]], bound: int, together: bool
) -> None:
    sizes = iter(calls)

    def honest(most: int | None) -> Program[int]:
        try:
            return len((yield from written(most)).text)
        except LimitError:
            return 0

    def one_by_one() -> Program[tuple[int, ...]]:
        found: list[int] = []
        for _, most in calls:
            found += yield from gather([honest(most)])
        return tuple(found)

    model = Writer()
    model.hold = lambda: setattr(model, "tokens", next(sizes)[0])
    program = gather([honest(most) for _, most in calls]) if together else one_by_one()
    try:
        spent = (
            Runtime(model, limits=UsageLimits(cost=bound), billing=Billing(price), width=1).run_result(program).spent
        )
    except LimitError as error:
        spent = error.spent

    assert cost_of(spent) <= bound
