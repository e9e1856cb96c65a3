"""From the bytes of one answer to chunks: what every protocol's decoder shares."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from taiwa.kernel.errors import ModelError, ProtocolError
from taiwa.kernel.records import Json
from taiwa.kernel.values import Chunk, Finish, Finished, Likelihood, TextDelta, ThoughtDelta, ToolCall, Usage
from taiwa.models.http_api.errors import Server, inside, not_in_protocol
from taiwa.models.loose import SurrogateJoiner, item_at, mend, parse
from taiwa.models.sse import Event, EventReader

__all__ = ["AnswerDecoder", "Echo", "Reader", "Slot", "Speech"]

LARGEST_ANSWER_BYTES = 64 * 2**20
HEAD_BYTES = 500
BEFORE_ANSWER = b" \t\r\n\xef\xbb\xbf"
EVENT_STARTS = (b":", b"d", b"e", b"i", b"r")
"""First signs of a stream: a comment, or one of the fields data, event, error, id, retry."""


class Echo:
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
class Slot:
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
        arguments = mend("".join(self.pieces))
        return ToolCall(mend(self.name), arguments if arguments.strip() else "{}", mend(self.id) or f"call_{index}")


class Speech:
    """One answer in the making: words, thoughts and calls go in, chunks come out."""

    def __init__(self, prefix: str = "") -> None:
        self.slots: list[Slot] = []
        self.likelihoods: list[Likelihood] = []
        self.finish: Finish | None = None
        self.stop: str | None = None
        self.usage: Usage | None = None
        self.model = ""
        self.done = False
        self._out: list[Chunk] = []
        self._echo = Echo(prefix)
        self._words = SurrogateJoiner()
        self._thoughts = SurrogateJoiner()

    def say(self, text: str) -> None:
        """Add words to the answer."""
        self._utter(self._words.feed(self._echo.feed(text)))

    def think(self, text: str) -> None:
        """Add words to the hidden reasoning."""
        if whole := self._thoughts.feed(text):
            self._out.append(ThoughtDelta(whole))

    def conclude(self) -> None:
        """End the answer; what comes later is ignored."""
        if self.done:
            return
        self.done = True
        if left := self._thoughts.close():
            self._out.append(ThoughtDelta(left))
        self._utter(self._words.feed(self._echo.close()) + self._words.close())
        calls = tuple(slot.call(index) for index, slot in enumerate(self.slots) if slot.name)
        finish = self.finish or "stop"
        if finish in ("stop", "tool_calls"):
            # Servers disagree on what a reply with calls is called; the calls themselves decide.
            finish = "tool_calls" if calls else "stop"
        stop = mend(self.stop) if self.stop is not None else None
        self._out.append(Finished(finish, stop, self.usage, mend(self.model), calls, tuple(self.likelihoods)))

    def take(self) -> list[Chunk]:
        """Give out the chunks that are ready."""
        out, self._out = self._out, []
        return out

    def _utter(self, text: str) -> None:
        if text:
            self._out.append(TextDelta(text))


class Reader(Protocol):
    """What a protocol knows: how to read one event of a stream, and an answer in one piece, into a `Speech`."""

    def event(self, data: Json) -> None:
        """Read one event of a stream."""
        ...

    def whole(self, data: Json) -> None:
        """Read an answer in one piece."""
        ...


class AnswerDecoder:
    """Decodes an answer as a stream of events or as one JSON object.

    The first sign tells which: servers send one although the other was asked for, and under either content type.
    """

    def __init__(self, reader: Reader, speech: Speech, server: Server, content_type: str) -> None:
        self._reader = reader
        self._speech = speech
        self._server = server
        self._page = "html" in content_type.lower()
        self._events = EventReader()
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
