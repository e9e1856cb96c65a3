"""Running a program against a model that is given by name: `taiwa.run`, `taiwa.stream` and their asynchronous twins."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from taiwa import settings as configured
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Effect, Program
from taiwa.kernel.ledger import Limits
from taiwa.kernel.protocols import Tool
from taiwa.kernel.run import Runtime
from taiwa.kernel.runtime import Handler
from taiwa.kernel.session import Done
from taiwa.kernel.values import Note, TextDelta
from taiwa.talk.opening import open_voice
from taiwa.talk.turn import Speaker, Voice

__all__ = ["arun", "astream", "run", "stream"]

T = TypeVar("T")
Handlers: TypeAlias = Mapping[type[Effect[Any]], Handler]
NOBODY: Handlers = MappingProxyType({})


def run(
    program: Program[T],
    model: str | Speaker | None = None,
    limits: Limits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> T:
    """Run a program to its value; without a model, with the configured one.

    Raises:
        TaiwaError: what the program raised; `spent` holds the bill.
    """
    voice = _voice(model)
    return Runtime(voice.model, tools=tools, handlers=handlers, limits=limits, price=voice.price).run(program)


def stream(
    program: Program[T],
    model: str | Speaker | None = None,
    limits: Limits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> Iterator[TextDelta | Note | Done[T]]:
    """Run a program and give out what it says as it says it, last `Done`."""
    voice = _voice(model)
    return Runtime(voice.model, tools=tools, handlers=handlers, limits=limits, price=voice.price).stream(program)


async def arun(
    program: Program[T],
    model: str | Speaker | None = None,
    limits: Limits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> T:
    """As `run`, on an event loop."""
    voice = _voice(model)
    runtime = AsyncRuntime(voice.model, tools=tools, handlers=handlers, limits=limits, price=voice.price)
    return await runtime.run(program)


def astream(
    program: Program[T],
    model: str | Speaker | None = None,
    limits: Limits | None = None,
    *,
    tools: Iterable[Tool] = (),
    handlers: Handlers = NOBODY,
) -> AsyncIterator[TextDelta | Note | Done[T]]:
    """As `stream`, on an event loop."""
    voice = _voice(model)
    runtime = AsyncRuntime(voice.model, tools=tools, handlers=handlers, limits=limits, price=voice.price)
    return runtime.stream(program)


def _voice(model: str | Speaker | None) -> Voice:
    if isinstance(model, str):
        return open_voice(None, configured.load({"model": model}))
    return open_voice(model, configured.load({}))
