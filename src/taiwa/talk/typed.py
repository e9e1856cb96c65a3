"""Typed answers that are journaled: one at a time, or a batch whose rows are paid for once."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from taiwa.flows import asking
from taiwa.flows.extract import Extracted, ExtractError, extract, plain_json
from taiwa.flows.modes import Choice
from taiwa.flows.repair import ONCE, Attempt, Repair
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, LimitError, StoreError, TaiwaError
from taiwa.kernel.journal import Journal
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, digest, record, revive, value
from taiwa.kernel.run import Runtime
from taiwa.kernel.session import Done
from taiwa.kernel.values import Request
from taiwa.shape import Shape
from taiwa.store import item_key
from taiwa.talk.desk import Desk
from taiwa.talk.rows import Given
from taiwa.talk.sidebyside import Asking, SideBySide
from taiwa.talk.turn import Speaker, TurnOptions, Voice, sink

__all__ = ["Typed", "TypedRow", "Typing", "extract_one", "first_request"]


@dataclass(frozen=True, slots=True)
class Typing:
    """What is extracted, and how."""

    shape: Shape[Any]
    repair: Repair = ONCE
    mode: Choice = "auto"

    def program(self, text: str) -> Program[Extracted[Any]]:
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


def first_request(typing: Typing, text: str, model: Speaker) -> Request:
    """Give the request that an extraction sends first; nothing is sent.

    Raises:
        InputError: the text is empty.
    """
    return asking.first_request(typing.program(text), model.abilities)


@value(tag="typed-row")
class TypedRow:
    """What came of a row: its value as JSON, or its error; the attempts that it took, and its bill."""

    given: Given
    value: Json = None
    attempts: tuple[Attempt, ...] = ()
    spent: Spent = Spent()
    error: Json = None
    kept: bool = False


def extract_one(desk: Desk, voice: Voice, options: TurnOptions, typing: Typing, text: str) -> Done[Extracted[Any]]:
    """Extract from one text; its calls are written down as they are answered, whatever becomes of it.

    Raises:
        ExtractError: no attempt could be read.
    """
    program, runs = typing.program(text), desk.store.runs
    run = runs.begin("", None, None, text, typing.options)
    runtime = Runtime(voice.model, limits=options.limits, price=voice.price)
    try:
        events = list(runtime.stream(program, Journal((), sink(desk, run, voice))))
    except TaiwaError as error:
        with suppress(StoreError):
            runs.fail(run, error)
        raise
    except BaseException:
        runs.abandon(run)
        raise
    runs.complete(run)
    return next(event for event in events if isinstance(event, Done))


@dataclass
class Typed(SideBySide[Extracted[Any], TypedRow]):
    """A batch of texts of which each gives a value. With `resume`, one that was there before is not asked for again."""

    typing: Typing = field(kw_only=True)

    def asking(self, given: Given) -> Asking[Extracted[Any]]:
        """Say what a row asks for."""
        if given.params is not None:
            raise InputError("a row of texts has no params")
        options = self.typing.options
        # What a model is shown may change while the schema stays, and the answers with it.
        name = item_key(given.text, digest(self.typing.shape.render()), self.voice.model.name, options)
        return Asking(name, self.typing.program(given.text), None, options)

    def answered(self, given: Given, done: Done[Extracted[Any]]) -> TypedRow:
        """Make a row of a value."""
        return TypedRow(given, plain_json(self.typing.shape, done.value.value), done.value.attempts, done.spent)

    def failed(self, given: Given, error: TaiwaError) -> TypedRow:
        """Make a row of its error, with all that was tried."""
        told: dict[str, Json] = {"type": error.tag, "message": error.message}
        tries: Sequence[Attempt] = ()
        if isinstance(error, ExtractError):
            told |= {"diagnostics": list(error.diagnostics), "best": error.best}
            tries = error.tries
        spent = error.spent if isinstance(error.spent, Spent) else Spent()
        return TypedRow(given, None, tuple(tries), spent, told)

    async def _asked(self, asking: Asking[Extracted[Any]], journal: Journal) -> Done[Extracted[Any]]:
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

    def restored(self, given: Given, held: dict[str, Json]) -> TypedRow:
        """Make a row again of what was kept of it."""
        spent, attempts = revive(held.get("spent")), cast("tuple[Attempt, ...]", revive(held.get("attempts")))
        return TypedRow(
            given, held.get("value"), attempts,
            spent if isinstance(spent, Spent) else Spent(), kept=True,
        )  # fmt: skip
