"""Text protocols: how a call of a tool stands in what a model writes, and how its result stands behind it.

A protocol is a pure value that knows text and events; it does no I/O. `decode` reads a finished transcript as events, and
`encode` writes it back, byte for byte.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol as Structure
from typing import TypeAlias

from taiwa.flows.fence import Fence
from taiwa.flows.gsm import Gsm
from taiwa.flows.inline import Inline
from taiwa.flows.react import ReAct
from taiwa.flows.scanning import Scanner, Trigger
from taiwa.flows.tagged import Tagged
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolSpec

__all__ = [
    "PROTOCOLS",
    "Call",
    "Event",
    "Protocol",
    "Result",
    "Said",
    "Scanner",
    "Trigger",
    "decode",
    "encode",
    "protocol",
]


class Protocol(Structure):
    """How calls and results are written in a text."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that a server may be asked to stop at; whoever asks puts the one that was met back before scanning."""
        ...

    @property
    def close(self) -> str:
        """What an `open` call lacks; a server that stopped there may not say so."""
        ...

    def instructions(self, tools: Sequence[ToolSpec], *, guarded: bool = True) -> str:
        """Say how calls are written, and which tools there are; `guarded` forbids the model to write results itself."""
        ...

    def scanner(self, names: Iterable[str]) -> Scanner:
        """Find calls of the tools of these names, and calls that are plainly meant for a tool that is not there."""
        ...

    def arguments(self, spec: ToolSpec, text: str) -> dict[str, Json]:
        """Read a call's input.

        Raises:
            ToolError: it does not give what the tool needs.
        """
        ...

    def call(self, name: str, text: str, after: str = "", mark: str = "") -> str:
        """Write a call as it stands in a worked example, behind the text `after`."""
        ...

    def splice(self, result: str, mark: str = "") -> str:
        """Write a result as it stands right behind the trigger with that mark: escaped, cut, on one line."""
        ...

    def recorded(self, text: str, start: int) -> int:
        """Say where the result ends that begins at `start` of a finished transcript; `start` itself if none is marked."""
        ...


@value(tag="text-segment")
class Said:
    """Words that are neither a call nor a result."""

    text: str


@value(tag="call-text")
class Call:
    """A call as it was written."""

    text: str
    name: str
    input: str
    final: bool = False


@value(tag="result-text")
class Result:
    """What stands behind a call as its result."""

    text: str


Event: TypeAlias = Said | Call | Result
PROTOCOLS: Mapping[str, Callable[[], Protocol]] = MappingProxyType(
    {"tagged": Tagged, "inline": Inline, "gsm": Gsm, "react": ReAct, "fence": Fence}
)
"""The protocols by name."""


def protocol(name: str) -> Protocol:
    """Find a protocol.

    >>> protocol("tagged")
    Tagged()

    Raises:
        InputError: there is none of that name.
    """
    made = PROTOCOLS.get(name)
    if made is None:
        raise InputError(f"there is no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return made()


def decode(text: str, protocol: Protocol, names: Iterable[str]) -> tuple[Event, ...]:
    """Read a finished transcript: what was said, called and given.

    >>> [type(each).__name__ for each in decode("It is <<calculator: 1+1>> 2.", Tagged(), ["calculator"])]
    ['Said', 'Call', 'Said']
    """
    scanner, events, at, start = protocol.scanner(names), list[Event](), 0, 0
    while call := scanner.feed(text[at:]):
        at += call.end
        first = max(at - call.size, start)
        end = protocol.recorded(text, at)
        written = Said(text[start:first]), Call(text[first:at], call.name, call.input, call.final), Result(text[at:end])
        events += (event for event in written if event.text)
        scanner.skip(text[at:end])
        at = start = end
    if text[start:]:
        events.append(Said(text[start:]))
    return tuple(events)


def encode(events: Iterable[Event]) -> str:
    """Write a transcript again: the inverse of `decode`, byte for byte."""
    return "".join(event.text for event in events)
