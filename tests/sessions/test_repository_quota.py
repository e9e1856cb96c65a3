"""Budgets of a day and rates of a minute: judged by the store, before a call, and for calls at the same time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Semaphore

import pytest

from taiwa.apps.catalog import load_app
from taiwa.kernel.errors import ConfigError, ConflictError, RateLimitError
from taiwa.kernel.messages import Request, Response, Usage, assistant
from taiwa.kernel.usage_limits import Prices
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions.commit_turn import PricedModel
from taiwa.sessions.repository import ANSWER, DAY, MINUTE, BudgetError, Quota, Repository
from taiwa.sessions.session import Session
from taiwa.store import Store
from tests.database import Database

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


def test_a_call_that_may_exceed_the_budget_is_not_made() -> None:
    model = scripted_model(DEAR)
    here = repository(Clock(), max_cost=ANSWER / 1e6)
    with pytest.raises(BudgetError, match=r"0 of 0\.004096"):
        session(here, model).say("one")
    assert model.requests == []
    assert here.store.runs.open_runs() == ()


def test_what_a_call_has_reserved_is_free_again_behind_its_answer() -> None:
    cheap = Response(assistant("Tea."), usage=Usage(10, 10))
    model = scripted_model(*[cheap] * 20)
    here = repository(Clock(), max_cost=2 * ANSWER / 1e6)
    for number in range(20):
        session(here, model).say(str(number))
    assert here.store.runs.spent_since(0) == 20 * 20 * 1000


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of a store that can be opened several times: a file, and a database on a genuine server."""
    if request.param == "file":
        return str(tmp_path / "store.db")
    database: Database = request.getfixturevalue("database")
    return database.url


def test_of_calls_at_the_same_time_only_those_are_made_that_fit_into_the_budget(place: str) -> None:
    decided, all_decided = Semaphore(0), Event()

    def answer(_: Request) -> Response:
        decided.release()
        assert all_decided.wait(300)  # what is reserved stays reserved until each of them was begun or refused
        return Response(assistant("Tea."), usage=Usage(0, ANSWER))

    model = scripted_model(*[answer] * 8)
    stores = [Store.open(place, owner="ann") for _ in range(2)]
    places = [Repository(store) for store in stores]
    for each in places:
        each.quota = Quota(each.store, int(3.5 * (ANSWER + 500) * 1000))
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
    assert 1 <= made <= 3
    assert len(model.requests) == made
    assert stores[0].runs.spent_since(0) == made * ANSWER * 1000
    for store in stores:
        store.close()


def test_a_call_of_unknown_cost_counts_as_what_it_reserved() -> None:
    model = scripted_model(Response(assistant("Tea."), usage=None), DEAR)
    here = repository(Clock(), max_cost=1.5 * ANSWER / 1e6)
    session(here, model).say("one")
    assert here.store.runs.spent_since(0) > ANSWER * 1000
    with pytest.raises(BudgetError):
        session(here, model).say("two")


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
