"""Runs a flow with either driver, and again from its journal as a store would keep it: the same value and no model call."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from taiwa.flows.solve.loops import TRANSCRIPT_CODES
from taiwa.kernel.async_runtime import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.execution import Entry, Journal, RunResult, replay
from taiwa.kernel.messages import Notice, TextDelta
from taiwa.kernel.runtime import Retriever, Runtime, Tool
from taiwa.models.scripted import ScriptedModel, scripted_model

T = TypeVar("T")
Events: TypeAlias = list[TextDelta | Notice | RunResult[T]]


@dataclass(frozen=True)
class Driven(Generic[T]):
    """What came of a run: its value, its journal, and what a person saw of it.

    `transcript` is what was shown with the marked parts of a rationale in their places.
    """

    value: T
    journal: Journal
    shown: str
    notes: tuple[Notice, ...]
    transcript: str = ""


@dataclass(frozen=True)
class Drive:
    """Runs a program, which is given as what makes it, because a generator runs once."""

    driver: Literal["blocking", "asynchronous"]

    def __call__(
        self,
        program: Callable[[], Program[T]],
        model: ScriptedModel | None = None,
        *,
        tools: Iterable[Tool] = (),
        retriever: Retriever | None = None,
    ) -> Driven[T]:
        model = scripted_model() if model is None else model
        journal = Journal()
        events: Events[T] = []
        error: TaiwaError | None = None
        try:
            if self.driver == "blocking":
                events.extend(Runtime(model, tools=tools, retriever=retriever).stream(program(), journal))
            else:
                asyncio.run(collect(AsyncRuntime(model, tools=tools, retriever=retriever), program(), journal, events))
        except TaiwaError as raised:
            error = raised
        asked = len(model.requests)
        value = next((event.value for event in events if isinstance(event, RunResult)), None)
        for kept in (journal, stored(journal)):
            assert outcome(program, kept) == (value, error and error.record())
        assert len(model.requests) == asked == len(journal.requests())
        if error is not None:
            raise error
        shown = "".join(event.text for event in events if isinstance(event, TextDelta))
        notes = tuple(event for event in events if isinstance(event, Notice))
        return Driven(cast("T", value), journal, shown, notes, transcript(events))


def transcript(events: Iterable[TextDelta | Notice | RunResult[Any]]) -> str:
    """The words and the marked notes, as they came."""
    seen = (event for event in events if isinstance(event, TextDelta) or getattr(event, "code", "") in TRANSCRIPT_CODES)
    return "".join(event.text for event in seen if isinstance(event, (TextDelta, Notice)))


async def collect(runtime: AsyncRuntime, program: Program[T], journal: Journal, events: Events[T]) -> None:
    async for event in runtime.stream(program, journal):
        events.append(event)


def outcome(program: Callable[[], Program[T]], journal: Journal) -> tuple[T | None, dict[str, Any] | None]:
    """The value of a replay, or the error that it ends in."""
    try:
        return replay(program(), journal), None
    except TaiwaError as error:
        return None, cast("dict[str, Any]", error.record())


def stored(journal: Journal) -> Journal:
    """The journal as it comes back from JSON, in which an effect is only its digest."""
    rows = json.loads(json.dumps([entry.record() for entry in journal.entries]))
    return Journal(Entry.restore(row) for row in rows)
