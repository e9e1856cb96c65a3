"""Budgets of a day and rates of a minute: judged by the store, before a call, and for calls at the same time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Semaphore

import pytest

from taiwa.apps.catalog import load_app
from taiwa.kernel.errors import ConfigError, ConflictError, InputError, LimitError, RateLimitError
from taiwa.kernel.messages import Request, Response, Usage, assistant
from taiwa.kernel.usage_limits import ANSWER_TOKENS, Prices, SharedBudget, UsageLimits
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions.budgets import DAY, MINUTE, BudgetError, Quota
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import Session
from taiwa.store import Store

RATES = Prices("1", "1")
DEAR = Response(assistant("Tea."), usage=Usage(400_000, 100_000))
"""Half a unit."""


class Clock:
    """Noon of a day, until it is set."""

    def __init__(self) -> None:
        self.now = 20_000 * DAY + DAY // 2

    def __call__(self) -> int:
        return self.now


def repository(
    clock: Clock, *, max_cost: float | None = None, rate: int | None = None, owner: str = "ann"
) -> Repository:
    made = Repository(Store.open(":memory:", owner=owner, clock=clock))
    bound = None if max_cost is None else int(max_cost * 10**9)
    made.quota = Quota(made.store, bound, rate)
    return made


def session(repository: Repository, model: ScriptedModel, rates: Prices | None = RATES) -> Session:
    return Session(repository, "", repository.start(load_app("plain")), PricedModel(model, rates))


def test_a_spent_budget_is_refused_before_a_call_until_the_next_day() -> None:
    clock, model = Clock(), scripted_model(DEAR, DEAR, DEAR)
    here = repository(clock, max_cost=1)
    session(here, model).say("one")
    session(here, model).say("two")
    with pytest.raises(BudgetError, match="the limit on cost per day is reached: 1 of 1") as refused:
        session(here, model).say("three")
    assert refused.value.retry_after == 12 * 3600 + 1
    assert len(model.requests) == 2
    clock.now += DAY // 2
    session(here, model).say("three")
    assert len(model.requests) == 3


@pytest.mark.parametrize("jump", [-1, -MINUTE, -DAY // 2 - 1, -DAY, -40 * DAY, -20_000 * DAY, DAY // 3])
def test_a_clock_that_jumps_renews_neither_a_budget_nor_a_rate_within_the_day(jump: int) -> None:
    clock, model = Clock(), scripted_model(DEAR, DEAR, DEAR, DEAR)
    rated, budgeted = repository(clock, rate=2), repository(clock, max_cost=1)
    for here in (rated, budgeted):
        session(here, model).say("one")
        session(here, model).say("two")
    clock.now += jump
    with pytest.raises(BudgetError):
        session(budgeted, model).say("three")
    if jump < 0:
        with pytest.raises(RateLimitError):
            session(rated, model).say("three")
    assert len(model.requests) == 4


@pytest.mark.parametrize("jump", [-1, -60 * MINUTE, -20_000 * DAY])
def test_after_a_clock_was_set_back_a_rate_waits_for_a_minute(jump: int) -> None:
    clock, model = Clock(), scripted_model(DEAR, DEAR, DEAR)
    here = repository(clock, rate=2)
    session(here, model).say("one")
    session(here, model).say("two")
    clock.now += jump
    with pytest.raises(RateLimitError) as refused:
        session(here, model).say("three")
    assert here.quota is not None
    assert (refused.value.retry_after, here.quota.left()) == (60.0, (0, 60.0))
    clock.now += MINUTE
    session(here, model).say("three")
    assert len(model.requests) == 3


def test_a_call_that_does_not_fit_into_the_budget_is_not_made() -> None:
    model = scripted_model(DEAR)
    here = repository(Clock(), max_cost=30 / 1e6)
    with pytest.raises(BudgetError, match=r"would be exceeded: 0 of 0\.00003 is used, and the next call may need"):
        session(here, model).say("one")
    assert model.requests == []
    assert here.store.runs.open_runs() == ()


def test_an_answer_gets_at_most_what_the_budget_leaves() -> None:
    model = scripted_model("1", "2")
    for budget in (1.0, 2_000 / 1e6):
        session(repository(Clock(), max_cost=budget), model).say("one")
    most = [request.sampling.max_tokens for request in model.requests]
    assert most[0] == ANSWER_TOKENS
    assert 1_800 < (most[1] or 0) < 2_000


def test_what_a_call_has_reserved_is_free_again_behind_its_answer() -> None:
    cheap = Response(assistant("Tea."), usage=Usage(10, 10))
    model = scripted_model(*[cheap] * 20)
    here = repository(Clock(), max_cost=2 * ANSWER_TOKENS / 1e6)
    for number in range(20):
        session(here, model).say(str(number))
    assert here.store.runs.spent_since(0) == 20 * 20 * 1000


def test_of_calls_at_the_same_time_only_those_are_made_that_fit_into_the_budget(place: str) -> None:
    decided, all_decided = Semaphore(0), Event()

    def answer(_: Request) -> Response:
        decided.release()
        assert all_decided.wait(300)  # what is reserved stays reserved until each of them was begun or refused
        return Response(assistant("Tea."), usage=Usage(0, ANSWER_TOKENS))

    model = scripted_model(*[answer] * 8)
    stores = [Store.open(place, owner="ann") for _ in range(2)]
    places = [Repository(store) for store in stores]
    for each in places:
        each.quota = Quota(each.store, int(3.001 * (ANSWER_TOKENS + 500) * 1000))
    together = Barrier(8)

    def one(number: int) -> bool:
        together.wait(300)
        try:
            session(places[number % 2], model).say(str(number))
        except (BudgetError, ConflictError):  # or a name that another one took first
            decided.release()
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        begun = [pool.submit(one, number) for number in range(8)]
        assert all(decided.acquire(timeout=300) for _ in begun)
        all_decided.set()
        made = sum(each.result() for each in begun)
    assert 1 <= made <= 4  # the last one with what the others left
    assert len(model.requests) == made
    assert all(request.sampling.max_tokens for request in model.requests)
    for store in stores:
        store.close()


def test_calls_of_unknown_cost_count_as_what_they_reserved() -> None:
    unknown = Response(assistant("Tea."), usage=None)
    model = scripted_model(unknown, unknown, unknown)
    here = repository(Clock(), max_cost=1.5 * ANSWER_TOKENS / 1e6)
    session(here, model).say("one")
    assert here.store.runs.spent_since(0) > ANSWER_TOKENS * 1000
    session(here, model).say("two")
    with pytest.raises(BudgetError):
        session(here, model).say("three")
    assert here.store.runs.spent_since(0) <= 1.5 * ANSWER_TOKENS * 1000


def test_an_answer_that_its_client_abandons_counts_as_what_it_reserved() -> None:
    clock, model = Clock(), scripted_model(*["A long story about tea."] * 9)
    here = repository(clock, max_cost=1.5 * ANSWER_TOKENS / 1e6)

    def hang_up() -> None:
        with session(here, model).stream("one") as events:
            next(events)
        for run in here.store.runs.open_runs():
            here.store.runs.end(run.id, "abandoned")

    hang_up()
    assert here.store.runs.spent_since(0) > ANSWER_TOKENS * 1000
    hang_up()
    with pytest.raises(BudgetError):
        hang_up()
    assert len(model.requests) == 2
    clock.now += DAY
    hang_up()
    assert len(model.requests) == 3


def test_deleting_a_conversation_gives_neither_its_budget_nor_its_rate_back() -> None:
    clock = Clock()
    here = repository(clock, max_cost=0.9, rate=2)
    for _ in range(2):
        opened = session(here, scripted_model(DEAR))
        opened.say("one")
        here.store.delete_session(opened.name)
    assert here.store.runs.spent_since(0) == 10**9
    assert here.store.costs("session") == ()
    with pytest.raises(RateLimitError):
        session(here, scripted_model(DEAR)).say("two")
    clock.now += MINUTE
    with pytest.raises(BudgetError):
        session(here, scripted_model(DEAR)).say("two")
    clock.now += DAY
    session(here, scripted_model(DEAR)).say("two")


def test_a_call_that_was_refused_gives_its_reservation_back() -> None:
    here = repository(Clock(), max_cost=1)
    with pytest.raises(RateLimitError):
        session(here, scripted_model(RateLimitError("slow down"))).say("one")
    assert here.store.runs.spent_since(0) == 0


def test_a_conversation_has_a_limit_of_its_own_however_often_it_is_opened() -> None:
    model = scripted_model(*[DEAR] * 5)
    here = Repository(Store.open(":memory:"))
    options = TurnOptions(limits=UsageLimits(conversation_cost=900_000_000))

    def say(name: str) -> None:
        start = here.at(name) if here.store.refs.has(name) else here.start(load_app("plain"))
        Session(here, name, start, PricedModel(model, RATES), options=options).say("one")

    say("a")
    say("a")
    with pytest.raises(LimitError, match=r"the limit on cost of the conversation is reached: 1 of 0\.9"):
        say("a")
    say("b")
    assert len(model.requests) == 3


def test_the_day_of_a_store_counts_all_owners() -> None:
    here = repository(Clock(), max_cost=5)
    other = Repository(here.store.owned_by("ben"))
    for each in (here, other):
        each.limits = UsageLimits(None, None, day_cost=900_000_000)
        session(each, scripted_model(DEAR)).say("one")
    with pytest.raises(BudgetError, match=r"cost per day is reached: 1 of 0\.9"):
        session(here, scripted_model(DEAR)).say("two")


def test_all_runs_of_a_process_may_share_one_budget() -> None:
    here, budget = repository(Clock()), SharedBudget(900_000_000)
    here.budget = budget
    session(here, scripted_model(DEAR)).say("one")
    session(here, scripted_model(DEAR)).say("two")
    with pytest.raises(LimitError, match=r"the limit on cost is reached: 1 of 0\.9"):
        session(here, scripted_model(DEAR)).say("three")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the text is empty"), (" \n", "the text is empty"), ("x" * 2_000_001, "2,000,001 characters"),
        ("half \ud83d", "half a character"),
    ],
)  # fmt: skip
def test_a_text_that_is_refused_leaves_no_run_and_does_not_count(text: str, complaint: str) -> None:
    here, model = repository(Clock(), rate=1), scripted_model("Hello.")
    for _ in range(3):
        with pytest.raises(InputError, match=complaint):
            session(here, model).say(text)
    assert session(here, model).say("Hi").text == "Hello."
    assert here.store.runs.run(1).status == "done"  # the first run of the store


def test_a_model_of_unknown_price_is_not_called_for_a_budget() -> None:
    model = scripted_model(DEAR)
    with pytest.raises(ConfigError, match="the price of scripted is unknown"):
        session(repository(Clock(), max_cost=1), model, None).say("one")
    assert model.requests == []


def test_a_rate_counts_the_answers_that_were_begun_in_the_last_minute() -> None:
    clock, model = Clock(), scripted_model("1", "2", "3")
    here = repository(clock, rate=2)
    session(here, model).say("one")
    clock.now += MINUTE // 2
    session(here, model).say("two")
    with pytest.raises(RateLimitError) as refused:
        session(here, model).say("three")
    assert refused.value.retry_after == 30
    clock.now += MINUTE // 2
    session(here, model).say("three")
    assert len(model.requests) == 3


def test_what_another_caller_spent_is_its_own() -> None:
    clock = Clock()
    here = repository(clock, max_cost=0.51, rate=1)
    other = Repository(here.store.owned_by("ben"))
    other.quota = Quota(other.store, 510_000_000, 1)
    for each in (here, other):
        session(each, scripted_model(DEAR)).say("one")
    assert [each.store.runs.spent_since(0) for each in (here, other)] == [500_000_000] * 2
