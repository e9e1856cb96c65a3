"""A cost limit of a batch holds for its rows together, which share what is left."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.kernel.errors import LimitError
from taiwa.kernel.messages import Request, Response, Usage, assistant
from taiwa.kernel.usage_limits import Prices, UsageLimits, estimate_input
from taiwa.models.scripted import function_model
from taiwa.sessions.batch import BatchInput, BatchRow, TurnBatch
from taiwa.sessions.commit_turn import PricedModel, TurnOptions
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from taiwa.structured import OutputType

UNIT = 10**9
RATES = Prices("1000", "1000")


@dataclass
class Order:
    cups: int


def writes(tokens: Callable[[Request], int], text: str = '{"cups": 2}') -> Callable[[Request], Response]:
    """Answer with as many tokens as an honest server would, of those that the text needs."""

    def answer(request: Request) -> Response:
        written = min(tokens(request), request.sampling.max_tokens or 10**9)
        return Response(assistant(text), usage=Usage(estimate_input(request), written))

    return answer


def job(answer: Callable[[Request], Response], cost: int, width: int = 4) -> TurnBatch:
    repository = Repository(Store.open(":memory:"))
    priced = PricedModel(function_model(answer), RATES)
    options = TurnOptions(limits=UsageLimits(cost=cost))
    app = load_app("extract").with_params({}).with_options(AnswerOptions(schema=OutputType(Order).json_schema))
    return TurnBatch(repository, priced, options, opened=lambda _: app, width=width)


async def drained(batch: TurnBatch, count: int) -> tuple[list[BatchRow], LimitError | None]:
    rows: list[BatchRow] = []
    try:
        async for row in batch.rows(BatchInput(at, f"{at} cups") for at in range(count)):
            rows.append(row)  # noqa: PERF401  (those before the error are kept)
    except LimitError as error:
        return rows, error
    return rows, None


def test_parallel_rows_cost_together_no_more_than_the_limit() -> None:
    batch = job(writes(lambda _: 100), 3 * UNIT)

    rows, error = asyncio.run(drained(batch, 40))

    assert error is not None
    assert error.bound == 3
    assert error.amount * UNIT == batch.spent.cost
    assert 3 <= len(rows) < 40
    assert all(row.turn.value == {"cups": 2} for row in rows)
    assert 2 * UNIT < (batch.spent.cost or 0) <= 3 * UNIT


def test_a_row_for_which_its_share_was_too_little_goes_on_alone_without_repeating_its_calls() -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        last = request.messages[-1].text
        asked.append(last)
        is_long = "3 cups" in "".join(message.text for message in request.messages)
        if is_long and len(request.messages) < 3:
            return writes(lambda _: 1_000, '{"cups": "three"}')(request)
        return writes(lambda _: 100)(request)

    batch = job(answer, 7 * UNIT)
    rows, error = asyncio.run(drained(batch, 6))

    assert error is None
    assert [row.turn.value for row in rows] == [{"cups": 2}] * 6
    assert len(asked) == 7
    assert (batch.spent.cost or 0) <= 7 * UNIT


def test_a_text_that_is_refused_begins_no_run() -> None:
    repository = Repository(Store.open(":memory:"))
    priced = PricedModel(function_model(lambda _: "Tea."))
    batch = TurnBatch(repository, priced, TurnOptions(), opened=lambda _: load_app("plain"))

    async def rows() -> list[BatchRow]:
        return [row async for row in batch.rows([BatchInput(0, "x" * 2_000_001), BatchInput(1, "Tea?")])]

    refused, answered = asyncio.run(rows())

    assert refused.error == {
        "type": "input",
        "message": "the text has 2,000,001 characters; at most 2,000,000 are allowed in one turn",
    }
    assert answered.answer == "Tea."
    assert repository.store.runs.run(1).status == "done"  # the first one is that of the second row
