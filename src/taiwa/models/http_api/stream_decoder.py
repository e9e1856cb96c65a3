"""SSE and JSON bytes → chunks; ids of tool calls."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from taiwa.kernel.errors import ModelError, ProtocolError
from taiwa.kernel.messages import (
    Chunk,
    FinishReason,
    StreamEnd,
    TextDelta,
    ThinkingDelta,
    TokenLogprob,
    ToolCall,
    ToolResult,
    Usage,
)
from taiwa.kernel.records import Json, item_at
from taiwa.kernel.text import SurrogateJoiner, join_surrogates
from taiwa.models.http_api.errors import Server, inside, not_in_protocol
from taiwa.models.http_api.provider_interface import parse

__all__ = ["CallIds", "EchoFilter", "Event", "ResponseBuilder", "SseReader", "StreamDecoder", "ToolCallBuilder"]


LARGEST_EVENT_BYTES = 16 * 2**20

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its data lines joined, and its name (`""` stands for the default, `message`)."""

    data: str
    name: str = ""


class SseReader:
    """Turns bytes into events; lines end in LF, CRLF or CR, comments and unknown fields are skipped.

    Lines are found in the bytes and decoded whole, so a character that is cut between two pieces stays whole.
    """

    __slots__ = ("_after_cr", "_data", "_name", "_parts", "_size", "_start")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._start = True
        self._data: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes and give out the events that they complete.

        Raises:
            ProtocolError: an event is larger than 16 MiB.
        """
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        events: list[Event] = []
        for line in data.splitlines(keepends=True):
            self._grow(len(line))
            self._parts.append(line)
            if line.endswith((b"\n", b"\r")):
                self._line(b"".join(self._parts).rstrip(b"\r\n"), events)
                self._parts.clear()
        self._after_cr = data.endswith(b"\r")
        return events

    def close(self) -> list[Event]:
        """Give out the event that the end of the bytes completes: servers forget the last empty line."""
        events: list[Event] = []
        if self._parts:
            self._line(b"".join(self._parts), events)
            self._parts.clear()
        self._line(b"", events)
        return events

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST_EVENT_BYTES:
            raise ProtocolError(f"an event of the answer is larger than {LARGEST_EVENT_BYTES // 2**20} MiB")

    def _line(self, line: bytes, events: list[Event]) -> None:
        if self._start:
            line = line.removeprefix(BYTE_ORDER_MARK)
            self._start = False
        if not line:
            if self._data:
                events.append(Event("\n".join(self._data), self._name))
            self._data, self._name, self._size = [], "", 0
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif field == b"error":
            # Not in the standard: llama.cpp writes a failure in mid-stream so.
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
            self._name = "error"


LARGEST_ANSWER_BYTES = 64 * 2**20

HEAD_BYTES = 500

BEFORE_ANSWER = b" \t\r\n\xef\xbb\xbf"

EVENT_STARTS = (b":", b"d", b"e", b"i", b"r")
"""First signs of a stream: a comment, or one of the fields data, event, error, id, retry."""


class EchoFilter:
    """Takes the prefix of a request off the start of an answer where the server repeats it.

    A server may have trimmed the white space at the end of the prefix. Text that only begins like the prefix is the
    model's own and stays.
    """

    __slots__ = ("_held", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next words and give out those that are surely the model's own."""
        if not self._prefix:
            return text
        self._held += text
        if self._prefix.startswith(self._held) and self._held != self._prefix:
            return ""
        return self.close()

    def close(self) -> str:
        """Give out what was held back, without the repeated prefix."""
        held, prefix = self._held, self._prefix
        self._held = self._prefix = ""
        trimmed = prefix.rstrip()
        for echo in (prefix, trimmed):
            if echo and held.startswith(echo):
                return held[len(echo) :]
        return held


@dataclass(slots=True)
class ToolCallBuilder:
    """A tool call in the making."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])

    @property
    def whole(self) -> bool:
        """Whether the arguments read as JSON, so that nothing can follow."""
        try:
            parse("".join(self.pieces))
        except ValueError:
            return False
        return True

    def call(self, index: int) -> ToolCall:
        """Make the call; one without an id gets a stable one from its place."""
        arguments = join_surrogates("".join(self.pieces))
        return ToolCall(
            join_surrogates(self.name),
            arguments if arguments.strip() else "{}",
            join_surrogates(self.id) or f"call_{index}",
        )


class ResponseBuilder:
    """One answer in the making: words, thoughts and calls go in, chunks come out."""

    def __init__(self, prefix: str = "") -> None:
        self.slots: list[ToolCallBuilder] = []
        self.logprobs: list[TokenLogprob] = []
        self.finish: FinishReason | None = None
        self.stop: str | None = None
        self.usage: Usage | None = None
        self.model = ""
        self.done = False
        self._out: list[Chunk] = []
        self._echo = EchoFilter(prefix)
        self._words = SurrogateJoiner()
        self._thoughts = SurrogateJoiner()

    def say(self, text: str) -> None:
        """Add words to the answer."""
        self._utter(self._words.feed(self._echo.feed(text)))

    def think(self, text: str) -> None:
        """Add words to the hidden reasoning."""
        if whole := self._thoughts.feed(text):
            self._out.append(ThinkingDelta(whole))

    def conclude(self) -> None:
        """End the answer; what comes later is ignored."""
        if self.done:
            return
        self.done = True
        if left := self._thoughts.close():
            self._out.append(ThinkingDelta(left))
        self._utter(self._words.feed(self._echo.close()) + self._words.close())
        calls = tuple(slot.call(index) for index, slot in enumerate(self.slots) if slot.name)
        finish = self.finish or "stop"
        if finish in ("stop", "tool_calls"):
            # Servers disagree on what a reply with calls is called; the calls themselves decide.
            finish = "tool_calls" if calls else "stop"
        stop = join_surrogates(self.stop) if self.stop is not None else None
        self._out.append(StreamEnd(finish, stop, self.usage, join_surrogates(self.model), calls, tuple(self.logprobs)))

    def take(self) -> list[Chunk]:
        """Give out the chunks that are ready."""
        out, self._out = self._out, []
        return out

    def _utter(self, text: str) -> None:
        if text:
            self._out.append(TextDelta(text))


class EventReader(Protocol):
    """What a protocol knows: how to read one event of a stream, and an answer in one piece, into a `ResponseBuilder`."""

    def event(self, data: Json) -> None:
        """Read one event of a stream."""
        ...

    def whole(self, data: Json) -> None:
        """Read an answer in one piece."""
        ...


class StreamDecoder:
    """Decodes an answer as a stream of events or as one JSON object.

    The first sign tells which: servers send one although the other was asked for, and under either content type.
    """

    def __init__(self, reader: EventReader, speech: ResponseBuilder, server: Server, content_type: str) -> None:
        self._reader = reader
        self._speech = speech
        self._server = server
        self._page = "html" in content_type.lower()
        self._events = SseReader()
        self._head: bytes = b""
        self._body: list[bytes] | None = None
        self._size = 0
        self._streams = False
        self._failed: ModelError | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        """Take the next bytes. What was said before a failure is given out first, the failure with the next call.

        Raises:
            ModelError: the server reports a failure inside its answer, or breaks its protocol.
        """
        if not data and self._failed is None:
            return []
        return self._guarded(lambda: self._feed(data))

    def close(self) -> list[Chunk]:
        """End of bytes.

        Raises:
            ProtocolError: the answer ends in the middle.
        """
        chunks = self._guarded(self._close)
        if self._failed is not None:
            raise self._failed
        return chunks

    def _guarded(self, act: Callable[[], None]) -> list[Chunk]:
        if self._failed is not None:
            raise self._failed
        try:
            act()
        except ModelError as error:
            chunks = self._speech.take()
            if not chunks:
                raise
            self._failed = error
            return chunks
        return self._speech.take()

    def _feed(self, data: bytes) -> None:
        if not self._streams and self._body is None:
            data = self._sniff(data)
        if self._streams:
            self._read(self._events.feed(data))
        elif self._body is not None:
            self._size += len(data)
            if self._size > LARGEST_ANSWER_BYTES:
                raise not_in_protocol(f"sends more than {LARGEST_ANSWER_BYTES // 2**20} MiB", "", self._server)
            self._body.append(data)

    def _close(self) -> None:
        if self._body is not None:
            self._whole(b"".join(self._body))
        elif not self._speech.done:
            self._end_of_stream()

    def _sniff(self, data: bytes) -> bytes:
        """Find out which kind of answer it is; return the bytes to read, none while that is open."""
        head = self._head + data
        first = head.lstrip(BEFORE_ANSWER)[:1]
        if not first:
            self._head = head[-1:]
            return b""
        self._head = head[:HEAD_BYTES]
        if first == b"<" or self._page:
            raise not_in_protocol("sends a web page instead of an answer", self._said(), self._server)
        if first in EVENT_STARTS:
            self._streams = True
        else:
            self._body = []
        return head

    def _said(self) -> str:
        return self._head.decode("utf-8", "replace")

    def _read(self, events: list[Event]) -> None:
        for event in events:
            if self._speech.done:
                return
            if event.data.strip() == "[DONE]":
                self._speech.conclude()
                return
            self._reader.event(self._parsed(event))

    def _parsed(self, event: Event) -> Json:
        try:
            data = parse(event.data)
        except ValueError:
            raise not_in_protocol("sends an event that is not JSON", event.data, self._server) from None
        if item_at(data, "error") or event.name == "error":
            raise inside(data, self._server)
        return data

    def _whole(self, body: bytes) -> None:
        try:
            data = parse(body)
        except ValueError:
            raise not_in_protocol("sends something that is not whole JSON", self._said(), self._server) from None
        if item_at(data, "error"):
            raise inside(data, self._server)
        self._reader.whole(data)
        self._speech.conclude()

    def _end_of_stream(self) -> None:
        """Read the last event; once the end was announced, what is broken or missing after it does no harm."""
        # Half an event is no more than an answer that ends in the middle.
        with suppress(ProtocolError):
            self._read(self._events.close())
        if self._speech.finish is None and not self._speech.done:
            what = "ends its answer in the middle" if self._head else "sends an empty answer"
            raise not_in_protocol(what, self._said(), self._server)
        self._speech.conclude()


class _Open(NamedTuple):
    id: str
    name: str
    wire: str


class CallIds:
    """Gives each call of a conversation an id that the wire takes, and each result the id of its call.

    An id is kept when the wire takes it and no earlier call has it; otherwise it comes from the call's place in the
    conversation. So it is the same in every later request, which a prefix cache needs.
    """

    def __init__(self, valid: str, form: str) -> None:
        self._valid = re.compile(valid)
        self._form = form
        self._count = 0
        self._used: set[str] = set()
        self._open: list[_Open] = []

    def of_call(self, call: ToolCall) -> str:
        """The id of the next call."""
        wire = call.id
        place = self._count
        while wire in self._used or self._valid.fullmatch(wire) is None:
            wire = self._form.format(place)
            place += 1
        self._count += 1
        self._used.add(wire)
        self._open.append(_Open(call.id, call.name, wire))
        return wire

    def of_result(self, result: ToolResult) -> str:
        """The id of the call that this result answers: the one it names, else the first open one of its tool, else the first."""
        if result.call:
            fitting = [call for call in self._open if call.id == result.call]
        else:
            fitting = [call for call in self._open if call.name == result.name] or self._open
        if not fitting:
            return result.call or self._form.format(self._count)
        answered = fitting[0]
        self._open.remove(answered)
        return answered.wire
