"""Stored extraction: journaled as it runs, and never paid for twice."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from taiwa.flows.extract import ExtractError, RepairPolicy
from taiwa.kernel.errors import LimitError
from taiwa.kernel.messages import Request, Usage
from taiwa.kernel.usage_limits import Prices, UsageLimits
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions import batch
from taiwa.sessions.batch import BatchInput, ExtractBatch, ExtractRun, TypedRow, extract_one
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from taiwa.structured import OutputType
from tests.database import Database


@dataclass
class Order:
    cups: int


GOOD, BAD = '{"cups": 2}', '{"cups": "two"}'
EXTRACT_RUN = ExtractRun(OutputType(Order))
RATES = Prices("1000", "1000")


class StoppedError(BaseException):
    """What ends a process, here."""


def stop(_: Request) -> str:
    raise StoppedError


@pytest.fixture
def repository() -> Repository:
    return Repository(Store.open(":memory:"))


def rows(
    repository: Repository,
    model: ScriptedModel,
    given: Iterable[str],
    *,
    resume: bool = False,
    extract_run: ExtractRun = EXTRACT_RUN,
) -> list[TypedRow]:
    async def drained() -> list[TypedRow]:
        job = ExtractBatch(
            repository, PricedModel(model, RATES), TurnOptions(), extract_run=extract_run, width=2, resume=resume
        )
        return [row async for row in job.rows(BatchInput(at, text) for at, text in enumerate(given))]

    return asyncio.run(drained())


def by_text(request: Request) -> str:
    return f'{{"cups": {request.messages[-1].text}}}'


def test_rows_come_in_their_order_with_their_bill(repository: Repository) -> None:
    found = rows(repository, scripted_model(*[by_text] * 5, usage=Usage(1, 1)), "12345")

    assert [row.value for row in found] == [{"cups": n} for n in range(1, 6)]
    assert {row.attempts[0].mode for row in found} == {"native"}


def test_a_reused_row_is_rebuilt_without_a_call(repository: Repository) -> None:
    first = rows(repository, scripted_model(BAD, GOOD), ["2"])
    second = rows(repository, scripted_model(), ["2"], resume=True)

    assert second[0].reused
    assert (second[0].value, second[0].attempts, second[0].spent) == (first[0].value, first[0].attempts, first[0].spent)


def test_two_workers_on_different_machines_share_the_rows_of_a_batch(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "POLL_SECONDS", 0.01)
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return by_text(request)

    async def work(store: Store) -> list[object]:
        job = ExtractBatch(
            Repository(store),
            PricedModel(scripted_model(*[answer] * 9)),
            TurnOptions(),
            extract_run=EXTRACT_RUN,
            width=2,
            resume=True,
        )
        return [row.value async for row in job.rows(BatchInput(at, text) for at, text in enumerate("123456789"))]

    async def both() -> list[list[object]]:
        return await asyncio.gather(*map(work, stores))

    stores = [Store.open(database.url), Store.open(database.url)]
    found = asyncio.run(both())

    assert found == [[{"cups": number} for number in range(1, 10)]] * 2
    assert sorted(asked) == list("123456789")
    for store in stores:
        store.close()


def test_a_row_interrupted_in_its_repair_resumes_from_its_paid_calls(repository: Repository) -> None:
    with pytest.raises(StoppedError):
        rows(repository, scripted_model(BAD, stop), ["2"])
    model = scripted_model(GOOD)

    found = rows(repository, model, ["2"], resume=True)

    assert found[0].value == {"cups": 2}
    assert [each.text for each in found[0].attempts] == [BAD, GOOD]
    assert len(model.requests) == 1


def test_a_row_whose_repair_met_the_cost_limit_resumes_with_a_higher_one(repository: Repository) -> None:
    async def drained(model: ScriptedModel, cost: int) -> list[TypedRow]:
        manner = TurnOptions(limits=UsageLimits(cost=cost))
        job = ExtractBatch(repository, PricedModel(model, RATES), manner, extract_run=EXTRACT_RUN, width=1, resume=True)
        return [row async for row in job.rows([BatchInput(0, "2")])]

    with pytest.raises(LimitError, match="cost"):
        asyncio.run(drained(scripted_model(BAD, GOOD, usage=Usage(1, 900)), 1_000_000_000))
    model = scripted_model(GOOD, usage=Usage(1, 1))

    (row,) = asyncio.run(drained(model, 10_000_000_000))
    assert [each.text for each in row.attempts] == [BAD, GOOD]
    assert len(model.requests) == 1


def test_the_rendered_type_is_part_of_the_key_of_a_row(repository: Repository) -> None:
    @dataclass
    class Order:
        """Now with a word of explanation."""

        cups: int

    rows(repository, scripted_model(GOOD), ["2"])
    model = scripted_model(GOOD)

    rows(repository, model, ["2"], resume=True, extract_run=ExtractRun(OutputType(Order)))

    assert len(model.requests) == 1


def test_a_row_with_params_is_a_row_with_an_error(repository: Repository) -> None:
    async def drained() -> list[TypedRow]:
        job = ExtractBatch(repository, PricedModel(scripted_model()), TurnOptions(), extract_run=EXTRACT_RUN)
        return [row async for row in job.rows([BatchInput(0, "2", params={"x": 1})])]

    (row,) = asyncio.run(drained())
    assert isinstance(row.error, dict)
    assert row.error["message"] == "a row of texts must not have params"


def test_one_extraction_is_on_the_bill_whether_it_succeeds_or_not(repository: Repository) -> None:
    priced_model = PricedModel(scripted_model(GOOD, BAD, BAD, usage=Usage(10, 5)), RATES)

    done = extract_one(repository, priced_model, TurnOptions(), EXTRACT_RUN, "Two.")
    with pytest.raises(ExtractError):
        extract_one(repository, priced_model, TurnOptions(), EXTRACT_RUN, "Three.")

    (line,) = repository.store.costs("model")
    assert done.value.value == Order(2)
    assert (line.requests, line.usage) == (3, Usage(30, 15))


def test_the_first_request_can_be_seen_without_being_sent() -> None:
    model = scripted_model()

    request = ExtractRun(OutputType(Order), RepairPolicy(2)).first_request("Two.", model.capabilities)

    assert request.messages[-1].text == "Two."
    assert request.constraint is not None
    assert model.requests == []
