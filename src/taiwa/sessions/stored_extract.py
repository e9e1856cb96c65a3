"""Typed answers that are journaled: one at a time, or a batch whose rows are paid for once."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from taiwa.flows.extract import ExtractError, Extraction, extract, plain_json
from taiwa.flows.output_modes import Choice
from taiwa.flows.retry_invalid_output import DEFAULT_REPAIR, Attempt, RepairPolicy
from taiwa.kernel import execution
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.messages import Request
from taiwa.kernel.records import Json, digest, record, restore, value
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import RunUsage
from taiwa.sessions.batch import BatchInput, ParallelBatch, RowProgram
from taiwa.sessions.checkout import Repository
from taiwa.sessions.durable_turn import AnyModel, PricedModel, TurnOptions, sink
from taiwa.store import item_key
from taiwa.structured import OutputType

__all__ = ["ExtractBatch", "ExtractRun", "TypedRow", "extract_one", "first_request"]


@dataclass(frozen=True, slots=True)
class ExtractRun:
    """What is extracted, and how."""

    shape: OutputType[Any]
    repair: RepairPolicy = DEFAULT_REPAIR
    mode: Choice = "auto"

    def program(self, text: str) -> Program[Extraction[Any]]:
        """Extract it from a text.

        Raises:
            InputError: the text is empty.
        """
        if not text.strip():
            raise InputError("there is nothing to extract from: the text is empty")
        return extract(self.shape, text, repair=self.repair, mode=self.mode)

    @property
    def options(self) -> dict[str, Json]:
        """All that an answer depends on beside the text and the model."""
        return {"type": digest(self.shape.schema()), "repair": record(self.repair), "mode": self.mode}


def first_request(typing: ExtractRun, text: str, model: AnyModel) -> Request:
    """Give the request that an extraction sends first; nothing is sent.

    Raises:
        InputError: the text is empty.
    """
    return execution.first_request(typing.program(text), model.capabilities)


@value(tag="typed-row")
class TypedRow:
    """What came of a row: its value as JSON, or its error; the attempts that it took, and its bill."""

    given: BatchInput
    value: Json = None
    attempts: tuple[Attempt, ...] = ()
    spent: RunUsage = RunUsage()
    error: Json = None
    kept: bool = False


def extract_one(
    repository: Repository, priced_model: PricedModel, options: TurnOptions, typing: ExtractRun, text: str
) -> RunResult[Extraction[Any]]:
    """Extract from one text; its calls are written down as they are answered, whatever becomes of it.

    Raises:
        ExtractError: no attempt could be read.
    """
    program, runs = typing.program(text), repository.store.runs
    run = runs.begin("", None, None, text, typing.options)
    runtime = Runtime(priced_model.model, limits=options.limits, price=priced_model.price)
    try:
        events = list(runtime.stream(program, Journal((), sink(repository, run, priced_model))))
    except TaiwaError as error:
        with suppress(StoreError):
            runs.fail(run, error)
        raise
    except BaseException:
        runs.abandon(run)
        raise
    runs.complete(run)
    return next(event for event in events if isinstance(event, RunResult))


@dataclass
class ExtractBatch(ParallelBatch[Extraction[Any], TypedRow]):
    """A batch of texts of which each gives a value. With `resume`, one that was there before is not asked for again."""

    typing: ExtractRun = field(kw_only=True)

    def asking(self, given: BatchInput) -> RowProgram[Extraction[Any]]:
        """Say what a row asks for."""
        if given.params is not None:
            raise InputError("a row of texts has no params")
        options = self.typing.options
        # What a model is shown may change while the schema stays, and the answers with it.
        name = item_key(given.text, digest(self.typing.shape.render()), self.priced_model.model.name, options)
        return RowProgram(name, self.typing.program(given.text), None, options)

    def answered(self, given: BatchInput, done: RunResult[Extraction[Any]]) -> TypedRow:
        """Make a row of a value."""
        return TypedRow(given, plain_json(self.typing.shape, done.value.value), done.value.attempts, done.spent)

    def failed(self, given: BatchInput, error: TaiwaError) -> TypedRow:
        """Make a row of its error, with all that was tried."""
        told: dict[str, Json] = {"type": error.tag, "message": error.message}
        tries: Sequence[Attempt] = ()
        if isinstance(error, ExtractError):
            told |= {"diagnostics": list(error.diagnostics), "best": error.best}
            tries = error.tries
        spent = error.spent if isinstance(error.spent, RunUsage) else RunUsage()
        return TypedRow(given, None, tuple(tries), spent, told)

    async def _asked(self, asking: RowProgram[Extraction[Any]], journal: Journal) -> RunResult[Extraction[Any]]:
        """A limit that ended a repair is told as such: with a higher one the row goes on where it was."""
        try:
            return await super()._asked(asking, journal)
        except ExtractError as error:
            if isinstance(error.__cause__, LimitError):
                error.__cause__.spent = error.spent
                raise error.__cause__ from None
            raise

    def recorded(self, row: TypedRow) -> Json:
        """Give what is kept of a row: its value, its attempts, its bill."""
        return {"value": row.value, "attempts": record(row.attempts), "spent": record(row.spent)}

    def restored(self, given: BatchInput, held: dict[str, Json]) -> TypedRow:
        """Make a row again of what was kept of it."""
        spent, attempts = restore(held.get("spent")), cast("tuple[Attempt, ...]", restore(held.get("attempts")))
        return TypedRow(
            given, held.get("value"), attempts,
            spent if isinstance(spent, RunUsage) else RunUsage(), kept=True,
        )  # fmt: skip
