"""Stored extraction: one text, or a batch whose rows are paid for once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from taiwa.flows.extract import (
    DEFAULT_REPAIR,
    Attempt,
    ExtractError,
    ModeChoice,
    PromptStyle,
    RepairPolicy,
    TypedAnswer,
    extract,
)
from taiwa.kernel import execution
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, LimitError, TaiwaError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.journal import Journal
from taiwa.kernel.messages import Request, Sampling, system, user
from taiwa.kernel.records import Json, digest, record, restore, value
from taiwa.kernel.runtime import AnyModel
from taiwa.kernel.usage_limits import RunUsage
from taiwa.sessions.batch import BatchInput, ParallelBatch, RowProgram, usage_of
from taiwa.sessions.commit_turn import PricedModel, TurnOptions, run_outside_sessions
from taiwa.sessions.repository import Repository
from taiwa.structured import OutputType


@dataclass(frozen=True, slots=True)
class ExtractRun:
    """The options of an extraction."""

    output_type: OutputType[Any]
    repair: RepairPolicy = DEFAULT_REPAIR
    mode: ModeChoice = "auto"
    style: PromptStyle = "plain"
    system: str = ""
    sampling: Sampling = Sampling()

    def program(self, text: str, attachments: Sequence[Attachment] = ()) -> Program[TypedAnswer[Any]]:
        """Return the program that extracts from a text and attachments.

        Raises:
            InputError: the text is empty without attachments.
        """
        if not text.strip() and not attachments:
            raise InputError("the text is empty")
        prompt = (*((system(self.system),) if self.system else ()), user(text, attachments))
        return extract(
            self.output_type, prompt, repair=self.repair, mode=self.mode, style=self.style, sampling=self.sampling
        )

    @property
    def options(self) -> dict[str, Json]:
        """All that an answer depends on beside the text and the model."""
        options: dict[str, Json] = {
            "type": digest(self.output_type.schema()),
            "repair": record(self.repair),
            "mode": self.mode,
        }
        more: dict[str, Json] = {
            "style": "" if self.style == "plain" else self.style,
            "system": self.system,
            "sampling": None if self.sampling == Sampling() else record(self.sampling),
        }
        return options | {name: part for name, part in more.items() if part}


def first_request(typing: ExtractRun, text: str, model: AnyModel, attachments: Sequence[Attachment] = ()) -> Request:
    """Return the request that an extraction sends first; nothing is sent.

    Raises:
        InputError: the text is empty without attachments.
    """
    return execution.first_request(typing.program(text, attachments), model.capabilities)


@value(tag="typed-row")
class TypedRow:
    """The result of a row: its value as JSON or its error, its attempts, and its usage."""

    input: BatchInput
    value: Json = None
    attempts: tuple[Attempt, ...] = ()
    spent: RunUsage = RunUsage()
    error: Json = None
    reused: bool = False


def extract_one(
    repository: Repository,
    priced_model: PricedModel,
    options: TurnOptions,
    typing: ExtractRun,
    text: str,
    attachments: Sequence[Attachment] = (),
) -> RunResult[TypedAnswer[Any]]:
    """Extract from one text and its attachments; its calls are stored as they are answered, even if it fails.

    Raises:
        ExtractError: no attempt could be parsed.
    """
    program = typing.program(text, attachments)
    events = list(run_outside_sessions(repository, priced_model, options, program, text, typing.options))
    return next(event for event in events if isinstance(event, RunResult))


@dataclass
class ExtractBatch(ParallelBatch[TypedAnswer[Any], TypedRow]):
    """A batch of extractions. With `resume`, rows that were answered before are not repeated."""

    typing: ExtractRun = field(kw_only=True)

    def row_program(self, row_input: BatchInput) -> RowProgram[TypedAnswer[Any]]:
        """Return the program of a row."""
        if row_input.params is not None:
            raise InputError("a row of texts must not have params")
        options = self.typing.options
        # Named by the rendered type, because the prompt may change while the schema stays the same.
        name = row_input.key(digest(self.typing.output_type.render()), self.priced_model.model.name, options)
        return RowProgram(name, self.typing.program(row_input.text, row_input.attachments), None, options)

    def to_row(self, row_input: BatchInput, done: RunResult[TypedAnswer[Any]]) -> TypedRow:
        """Return the row of a value."""
        return TypedRow(row_input, self.typing.output_type.dump(done.value.value), done.value.attempts, done.spent)

    def to_failed_row(self, row_input: BatchInput, error: TaiwaError) -> TypedRow:
        """Return the row of an error, with its attempts."""
        failure: dict[str, Json] = {"type": error.tag, "message": error.message}
        tries: Sequence[Attempt] = ()
        if isinstance(error, ExtractError):
            failure |= {"diagnostics": list(error.diagnostics), "best": error.best}
            tries = error.tries
        return TypedRow(row_input, None, tuple(tries), usage_of(error.spent), failure)

    async def _run(self, program: RowProgram[TypedAnswer[Any]], journal: Journal) -> RunResult[TypedAnswer[Any]]:
        """Raise the limit that ended a repair, so that the row resumes with a higher limit."""
        try:
            return await super()._run(program, journal)
        except ExtractError as error:
            if isinstance(error.__cause__, LimitError):
                error.__cause__.spent = error.spent
                raise error.__cause__ from None
            raise

    def row_to_json(self, row: TypedRow) -> Json:
        """Return what is stored of a row: its value, attempts and usage."""
        return {"value": row.value, "attempts": record(row.attempts), "spent": record(row.spent)}

    def row_from_json(self, row_input: BatchInput, data: dict[str, Json]) -> TypedRow:
        """Rebuild a row from what is stored of it."""
        spent, attempts = restore(data.get("spent")), cast("tuple[Attempt, ...]", restore(data.get("attempts")))
        return TypedRow(row_input, data.get("value"), attempts, usage_of(spent), reused=True)
