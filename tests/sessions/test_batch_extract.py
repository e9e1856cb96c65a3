"""Batches of extractions: journaled as they run, and never paid for twice."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions, App
from taiwa.kernel.errors import LimitError
from taiwa.kernel.messages import Request, Usage
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Prices, UsageLimits
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.sessions import batch
from taiwa.sessions.batch import BatchInput, BatchRow, TurnBatch
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from taiwa.structured import OutputType
from tests.database import Database


@dataclass
class Order:
    cups: int


GOOD, BAD = '{"cups": 2}', '{"cups": "two"}'
RATES = Prices("1000", "1000")


class StoppedError(BaseException):
    """What ends a process, here."""


def stop(_: Request) -> str:
    raise StoppedError


@pytest.fixture
def repository() -> Repository:
    return Repository(Store.open(":memory:"))


def app_of(annotation: type) -> App:
    options = AnswerOptions(schema=OutputType[object](annotation).json_schema)
    return load_app("extract").with_params({}).with_options(options)


ORDERS = app_of(Order)


def batch_of(
    repository: Repository, model: ScriptedModel, app: App = ORDERS, cost: int | None = None, *, resume: bool = False
) -> TurnBatch:
    options = TurnOptions(limits=UsageLimits(cost=cost))
    return TurnBatch(
        repository, PricedModel(model, RATES), options,
        opened=lambda params: app if params is None else app.with_params(cast("dict[str, Json]", params)),
        width=2, resume=resume,
    )  # fmt: skip


def rows(
    repository: Repository,
    model: ScriptedModel,
    given: Iterable[str],
    *,
    resume: bool = False,
    app: App = ORDERS,
) -> list[BatchRow]:
    async def drained() -> list[BatchRow]:
        job = batch_of(repository, model, app, resume=resume)
        return [row async for row in job.rows(BatchInput(at, text) for at, text in enumerate(given))]

    return asyncio.run(drained())


def by_text(request: Request) -> str:
    return f'{{"cups": {request.messages[-1].text}}}'


def test_rows_come_in_their_order_with_their_bill(repository: Repository) -> None:
    found = rows(repository, scripted_model(*[by_text] * 5, usage=Usage(1, 1)), "12345")

    assert [row.turn.value for row in found] == [{"cups": n} for n in range(1, 6)]
    assert {row.turn.reply.findings.attempts[0].mode for row in found} == {"native"}


def test_a_reused_row_is_rebuilt_without_a_call(repository: Repository) -> None:
    first = rows(repository, scripted_model(BAD, GOOD), ["2"])
    second = rows(repository, scripted_model(), ["2"], resume=True)

    assert second[0].reused
    assert (second[0].turn.reply, second[0].turn.spent) == (first[0].turn.reply, first[0].turn.spent)


def test_two_workers_on_different_machines_share_the_rows_of_a_batch(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "POLL_SECONDS", 0.01)
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return by_text(request)

    async def work(store: Store) -> list[object]:
        job = batch_of(Repository(store), scripted_model(*[answer] * 9), resume=True)
        return [row.turn.value async for row in job.rows(BatchInput(at, text) for at, text in enumerate("123456789"))]

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

    assert found[0].turn.value == {"cups": 2}
    assert [each.text for each in found[0].turn.reply.findings.attempts] == [BAD, GOOD]
    assert len(model.requests) == 1


def test_a_row_whose_repair_met_the_cost_limit_resumes_with_a_higher_one(repository: Repository) -> None:
    async def drained(model: ScriptedModel, cost: int) -> list[BatchRow]:
        job = batch_of(repository, model, cost=cost, resume=True)
        return [row async for row in job.rows([BatchInput(0, "2")])]

    with pytest.raises(LimitError, match="cost"):
        asyncio.run(drained(scripted_model(BAD, GOOD, usage=Usage(1, 900)), 1_000_000_000))
    model = scripted_model(GOOD, usage=Usage(1, 1))

    (row,) = asyncio.run(drained(model, 10_000_000_000))
    assert [each.text for each in row.turn.reply.findings.attempts] == [BAD, GOOD]
    assert len(model.requests) == 1


def test_the_rendered_type_is_part_of_the_key_of_a_row(repository: Repository) -> None:
    @dataclass
    class Order:
        """Now with a word of explanation."""

        cups: int

    rows(repository, scripted_model(GOOD), ["2"])
    model = scripted_model(GOOD)

    rows(repository, model, ["2"], resume=True, app=app_of(Order))

    assert len(model.requests) == 1


def test_a_row_with_an_unknown_param_is_a_row_with_an_error(repository: Repository) -> None:
    async def drained() -> list[BatchRow]:
        job = batch_of(repository, scripted_model())
        return [row async for row in job.rows([BatchInput(0, "2", params={"x": 1})])]

    (row,) = asyncio.run(drained())
    assert isinstance(row.error, dict)
    assert "the app 'extract' has no parameter 'x'" in str(row.error["message"])
