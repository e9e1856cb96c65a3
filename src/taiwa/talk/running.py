"""Running a program against a model that is given by name: `taiwa.run`, `taiwa.stream` and their asynchronous twins."""

from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

from taiwa import settings as configured
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.ledger import Limits
from taiwa.kernel.run import Runtime
from taiwa.kernel.session import Done
from taiwa.kernel.values import Note, TextDelta
from taiwa.talk.opening import open_voice
from taiwa.talk.turn import Speaker, Voice

__all__ = ["arun", "astream", "run", "stream"]

T = TypeVar("T")


def run(program: Program[T], model: str | Speaker | None = None, limits: Limits | None = None) -> T:
    """Run a program to its value; without a model, with the configured one.

    Raises:
        TaiwaError: what the program raised; `spent` holds the bill.
    """
    voice = _voice(model)
    return Runtime(voice.model, limits=limits, price=voice.price).run(program)


def stream(
    program: Program[T], model: str | Speaker | None = None, limits: Limits | None = None
) -> Iterator[TextDelta | Note | Done[T]]:
    """Run a program and give out what it says as it says it, last `Done`."""
    voice = _voice(model)
    return Runtime(voice.model, limits=limits, price=voice.price).stream(program)


async def arun(program: Program[T], model: str | Speaker | None = None, limits: Limits | None = None) -> T:
    """As `run`, on an event loop."""
    voice = _voice(model)
    return await AsyncRuntime(voice.model, limits=limits, price=voice.price).run(program)


def astream(
    program: Program[T], model: str | Speaker | None = None, limits: Limits | None = None
) -> AsyncIterator[TextDelta | Note | Done[T]]:
    """As `stream`, on an event loop."""
    voice = _voice(model)
    return AsyncRuntime(voice.model, limits=limits, price=voice.price).stream(program)


def _voice(model: str | Speaker | None) -> Voice:
    if isinstance(model, str):
        return open_voice(None, configured.load({"model": model}))
    return open_voice(model, configured.load({}))
