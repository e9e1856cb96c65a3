"""Decode responses: bytes of server-sent events or of one JSON object to chunks; ids of tool calls.

A codec provides an `EventReader`, which reads the events of its protocol into a `ResponseBuilder`; `StreamDecoder` does the
rest. The `EventReader` of each codec finds the calls of tools, and `ToolCallBuilder` assembles their pieces; calls in the text of an
answer are found by `taiwa.flows.solve.tool_call_formats`.
"""

import re
from collections.abc import Callable, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from json import JSONDecoder, dumps
from math import isfinite
from operator import itemgetter
from types import NoneType
from typing import NamedTuple, Protocol

from taiwa.kernel.errors import ModelError, ProtocolError
from taiwa.kernel.messages import (
    Chunk,
    Decoding,
    FinishReason,
    StreamEnd,
    TextDelta,
    Thinking,
    ThinkingDelta,
    TokenLogprob,
    ToolCall,
    ToolResult,
    Usage,
)
from taiwa.kernel.serialization import Json, count_at, parse_json
from taiwa.kernel.text import END_TOKEN, SurrogateJoiner, join_surrogates
from taiwa.models.http_api.errors import error_in_response, protocol_error
from taiwa.models.http_api.provider_interface import Server

LARGEST_EVENT_BYTES = 16 * 2**20
LARGEST_RESPONSE_BYTES = 64 * 2**20
MOST_PARTS = 1_000
"""The most calls, or parts of an answer, that a response may have: what looks for one of them looks at all."""
MOST_NAME_CHARS = 1_000
MOST_CHARS = 4 * 2**20
"""The longest text, and the longest arguments of a call, of a response: they are compressed, parsed and kept at once."""
MOST_CHECKED_CHARS = 16 * 2**20
"""How much of the arguments of one call is parsed to learn whether they are complete."""
HEAD_BYTES = 500
"""The beginning of a response that an error quotes."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BEFORE_RESPONSE = b" \t\r\n" + BYTE_ORDER_MARK
EVENT_STARTS = (b":", b"d", b"e", b"i", b"r")
"""The first byte of a stream: a comment, or one of the fields data, event, error, id, retry."""


# --- server-sent events -----------------------------------------------------------------------------------------------


class Event(NamedTuple):
    """One event: its joined data lines, and its name (`""` is the default, `message`)."""

    data: str
    name: str = ""


class SseReader:
    """Parses bytes into events; lines end in LF, CRLF or CR, comments and unknown fields are skipped.

    Complete lines are decoded, so a character may be split between two pieces.
    """

    __slots__ = ("_after_cr", "_data", "_name", "_partial", "_size", "_start")

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        """The pieces of an incomplete line."""
        self._size = 0
        self._after_cr = False
        self._start = True
        self._data: list[str] = []
        self._name = ""

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that the next bytes complete.

        Raises:
            ProtocolError: an event is larger than 16 MiB.
        """
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines, newline, rest = data.rpartition(b"\n")
        events: list[Event] = []
        if newline:
            self._read_lines(b"".join((*self._partial, lines)), events)
            self._partial.clear()
        self._partial.append(rest)
        self._size += len(rest)
        self._check_size()
        return events

    def close(self) -> list[Event]:
        """Return the event that the end of the bytes completes: some servers omit the last empty line."""
        events: list[Event] = []
        self._read_lines(b"".join((*self._partial, b"\n")), events)
        self._partial.clear()
        return events

    def _read_lines(self, lines: bytes, events: list[Event]) -> None:
        if self._start:
            lines = lines.removeprefix(BYTE_ORDER_MARK)
            self._start = False
        for line in lines.decode("utf-8", "replace").split("\n"):
            if not line:
                if self._data:
                    events.append(Event("\n".join(self._data), self._name))
                self._data, self._name, self._size = [], "", 0
                continue
            self._size += len(line)
            self._check_size()
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif name == "event":
                self._name = value.removeprefix(" ")
            elif name == "error":  # not in the standard: a failure in mid-stream by llama.cpp
                self._data.append(value.removeprefix(" "))
                self._name = "error"

    def _check_size(self) -> None:
        if self._size > LARGEST_EVENT_BYTES:
            raise ProtocolError(f"an event of the answer is larger than {LARGEST_EVENT_BYTES // 2**20} MiB")


# --- one response -----------------------------------------------------------------------------------------------------


class EchoFilter:
    """Removes the prefix of a request from the start of an answer if the server repeats it.

    A server may have stripped the white space at the end of the prefix. A text that only starts like the prefix is part of
    the answer.
    """

    __slots__ = ("_pending", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._pending = ""

    def feed(self, text: str) -> str:
        """Return the text that is known to be part of the answer."""
        if not self._prefix:
            return text
        self._pending += text
        if self._prefix.startswith(self._pending) and self._pending != self._prefix:
            return ""
        return self.close()

    def close(self) -> str:
        """Return the pending text, without the repeated prefix."""
        text, prefix = self._pending, self._prefix
        self._pending = self._prefix = ""
        for echo in (prefix, prefix.rstrip()):
            if echo and text.startswith(echo):
                return text[len(echo) :]
        return text


@dataclass(slots=True)
class ToolCallBuilder:
    """A tool call, of which some fragments have arrived."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    """The fragments of the arguments, from the first with more than white space."""
    has_preview: bool = False
    """Whether the arguments are those of the start of the call, which fragments replace."""
    _size: int = 0
    _checked: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are valid JSON, so that nothing can follow."""
        self._checked += self._size
        if self._checked > MOST_CHECKED_CHARS:
            return False
        try:
            parse_json("".join(self.pieces))
        except ValueError:
            return False
        return True

    def add_name(self, name: str) -> None:
        """Add a fragment of the name, or the name so far."""
        self.name = (name if name.startswith(self.name) else self.name + name)[:MOST_NAME_CHARS]

    def set_preview(self, arguments: Json) -> None:
        """Set the arguments of the start of the call."""
        if (text := _as_text(arguments)).strip():
            self.pieces[:], self._size, self.has_preview = [text], len(text), True

    def add_arguments(self, arguments: Json) -> None:
        """Add a fragment of the arguments, or, as some servers send it, the arguments so far; an object is complete."""
        piece = _as_text(arguments)
        # Only a longer text is compared with what is known: the work grows with what arrives.
        if (piece and self.has_preview) or (
            self.pieces and len(piece) > self._size and piece.startswith("".join(self.pieces))
        ):
            self.pieces.clear()
            self._size, self.has_preview = 0, False
        if self.pieces or piece.strip():
            self.pieces.append(piece)
            self._size += len(piece)
            check_length(self._size)

    def build(self) -> list[ToolCall]:
        """Build the call: several if several objects of arguments arrived under its id."""
        found = _objects("".join(self.pieces)) or ["{}"]
        return [ToolCall(join_surrogates(self.name), join_surrogates(each), join_surrogates(self.id)) for each in found]


def _as_text(arguments: Json) -> str:
    """Return arguments, or a fragment of them, as text: some servers send an object."""
    if isinstance(arguments, dict):
        return dumps(arguments, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else ""


def _objects(text: str) -> list[str]:
    """Split arguments into the JSON objects that follow each other; a text of another form stays whole.

    `{}` and `null` before another object are placeholders, `null` alone has no arguments, and an object that is repeated is the same
    call.

    >>> _objects('{}{"a": 1}{"a": 2}{"a":2}'), _objects('{"a": 1'), _objects(" "), _objects("null")
    (['{"a": 1}', '{"a": 2}'], ['{"a": 1'], [], [])
    """
    if text.strip() in ("", "null"):
        return []
    decoder, at, parts = JSONDecoder(), 0, list[tuple[str, str]]()
    while at < len(text):
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [text]
        if not isinstance(value, dict | NoneType):
            return [text]
        parts.append((dumps(value), text[at:end]))
        at = end + len(text[end:]) - len(text[end:].lstrip())
    filled = [next(same)[1] for value, same in groupby(parts, itemgetter(0)) if value not in ("{}", "null")]
    return filled if len(parts) > 1 and filled else [text]


MAX_HELD_CHARS = 64
HELD_BACK = re.compile(r"\r\Z|(?<![ \t`'\"(])\n*<(?:[|｜][^<>\n]{0,40}>?\s*|end_of_turn>\s*|e[a-z_]{0,10})?\Z")
"""The end of a text that more of it decides: half a line break, or what may become `END_TOKEN`."""


class ResponseBuilder:
    """Builds one response: text, thinking and tool calls are added, chunks are taken."""

    def __init__(self, prefix: str = "") -> None:
        self.calls: list[ToolCallBuilder] = []
        self.logprobs: list[TokenLogprob] = []
        self.thinking: list[Thinking] = []
        self.finish: FinishReason | None = None
        self.stop: str | None = None
        self.usage: Usage | None = None
        self.model = ""
        self.fingerprint = ""
        self.annotations: list[Json] = []
        self.refuses = False
        """Whether the text is a refusal of the model."""
        self.done = False
        self._has_begun = False
        self._out: list[Chunk] = []
        self._pieces: list[str] = []
        """Text that is not in a chunk yet: text that arrives together becomes one chunk."""
        self._held = ""
        self._length = 0
        self._echo = EchoFilter(prefix)
        self._text = SurrogateJoiner()
        self._thinking = SurrogateJoiner()

    @property
    def is_empty(self) -> bool:
        """Whether nothing of a response has arrived, not even its head."""
        return not (self._has_begun or self.calls or self.thinking or self.finish or self.usage or self.model)

    @property
    def is_cancelled(self) -> bool:
        """Whether the response was interrupted before anything of its content arrived."""
        return self.done and self.finish == "interrupted" and not (self._has_begun or self.calls or self.refuses)

    def add_text(self, text: str) -> None:
        """Add to the text of the answer."""
        self._has_begun = self._has_begun or bool(text)
        self._add(text)

    def begin_call(self, id_: str = "", name: str = "") -> ToolCallBuilder:
        """Begin a call of a tool.

        Raises:
            ProtocolError: there are more than 1,000.
        """
        self.calls.append(ToolCallBuilder(id_, name[:MOST_NAME_CHARS]))
        check_parts(self.calls)
        return self.calls[-1]

    def add_refusal(self, text: str) -> None:
        """Add to the text of an answer that refuses."""
        self._flush()
        self.refuses = True
        self._add(text)

    def add_thinking(self, text: str) -> None:
        """Add to the reasoning of the model."""
        self._has_begun = True
        self._flush()
        self._length += len(text)
        check_length(self._length)
        if whole := self._thinking.feed(text):
            self._out.append(ThinkingDelta(whole))

    def end_thinking(self, text: str, data: dict[str, Json], origin: str) -> None:
        """End a signed block of reasoning, whose text was added before."""
        self._flush()
        block = Thinking(join_surrogates(text), _with_whole_characters(data), origin)
        self._out.append(ThinkingDelta("", block))

    def keep_thinking(self, text: str, data: dict[str, Json], origin: str) -> None:
        """Keep a block of reasoning that its server wants back."""
        self.thinking.append(Thinking(join_surrogates(text), _with_whole_characters(data), origin))

    def end(self) -> None:
        """End the response; what follows is ignored."""
        if self.done:
            return
        self.done = True
        self._flush()
        if left := self._thinking.close():
            self._out.append(ThinkingDelta(left))
        left = self._held + self._text.feed(self._echo.close()) + self._text.close()
        if left := END_TOKEN.sub("", left):
            self._out.append(TextDelta(left, self.refuses))
        calls = tuple(call for builder in self.calls if builder.name for call in builder.build())
        finish = self.finish or "stop"
        if finish in ("stop", "tool_calls"):
            # Servers disagree on the finish reason of a response with calls.
            finish = "tool_calls" if calls else "stop"
        stop = None if self.stop is None else join_surrogates(self.stop)
        extra: dict[str, Json] = {"annotations": self.annotations, "system_fingerprint": self.fingerprint}
        extra = {name: _with_whole_characters(part) for name, part in extra.items() if part}
        self._out.append(
            StreamEnd(
                finish, stop, self.usage, join_surrogates(self.model), calls, Decoding(tuple(self.logprobs)),
                thinking=tuple(self.thinking), extra=extra or None,
            )
        )  # fmt: skip

    def take_chunks(self) -> list[Chunk]:
        """Return the chunks that are ready, each once."""
        self._flush()
        out, self._out = self._out, []
        return out

    def _add(self, text: str) -> None:
        self._length += len(text)
        check_length(self._length)
        self._pieces.append(text)

    def _flush(self) -> None:
        text = self._held + self._text.feed(self._echo.feed("".join(self._pieces)))
        self._pieces.clear()
        # The two characters of a line break stay in one chunk, and a token that ends the answer is no part of it.
        held = HELD_BACK.search(text, max(len(text) - MAX_HELD_CHARS, 0))
        self._held = held[0] if held else ""
        if text := text.removesuffix(self._held):
            self._out.append(TextDelta(text, self.refuses))


def check_length(length: int) -> None:
    """Raise a `ProtocolError` if a text of a response is too long."""
    if length > MOST_CHARS:
        raise ProtocolError(f"an answer has more than {MOST_CHARS:,} characters")


def check_parts(parts: Sized) -> None:
    """Raise a `ProtocolError` if a response has too many parts."""
    if len(parts) > MOST_PARTS:
        raise ProtocolError(f"an answer has more than {MOST_PARTS:,} calls or parts")


def _with_whole_characters(data: Json) -> Json:
    """Return a server's JSON without lone surrogates and infinite numbers, so that it can be recorded and sent."""
    if isinstance(data, str):
        return join_surrogates(data)
    if isinstance(data, float) and not isfinite(data):
        return None
    if isinstance(data, list):
        return [_with_whole_characters(part) for part in data]
    if isinstance(data, dict):
        return {join_surrogates(name): _with_whole_characters(part) for name, part in data.items()}
    return data


def read_usage(data: Json, *paths: str) -> Usage | None:
    """Read a usage report by the paths of its counts, in the order of `Usage`; of several paths (`|`), the first with a count.

    None without a number of input tokens: a partial usage would be taken for a complete one.

    >>> read_usage({"in": 7, "out": 2, "details": {"cached": 3}}, "in", "out", "cached|details.cached")
    Usage(input_tokens=7, output_tokens=2, cache_read_tokens=3, cache_write_tokens=0, reasoning_tokens=0)
    """
    counts = [[count_at(data, *path.split(".")) for path in each.split("|")] for each in paths]
    return (
        None if all(count is None for count in counts[0]) else Usage(*(next(filter(None, each), 0) for each in counts))
    )


def _is_error(data: Json) -> bool:
    """Whether an object reports a failure: in a member, or by its own type, as vLLM does."""
    return isinstance(data, dict) and bool(data.get("error") or data.get("object") == "error")


class EventReader(Protocol):
    """The part of a decoder that knows a protocol: reads events, or a response of one piece, into a `ResponseBuilder`."""

    def read_event(self, data: Json) -> None:
        """Read one event of a stream."""

    def read_whole(self, data: Json) -> None:
        """Read a response of one piece."""


def _separate(event: Event) -> list[Event]:
    """Divide events that a relay has not divided by an empty line."""
    lines = event.data.split("\n")
    is_each_whole = len(lines) > 1 and all(line.startswith("{") or line == "[DONE]" for line in lines)
    return [Event(line, event.name) for line in lines] if is_each_whole else [event]


class StreamDecoder:
    """Decodes a response as a stream of events or as one JSON object.

    The first byte decides, because servers send either form under either content type.
    """

    def __init__(self, reader: EventReader, response: ResponseBuilder, server: Server, content_type: str) -> None:
        self._reader = reader
        self._response = response
        self._server = server
        self._is_html = "html" in content_type.lower()
        self._events = SseReader()
        self._head: bytes = b""
        self._body: list[bytes] | None = None
        self._size = 0
        self._is_stream = False
        self._failure: ModelError | None = None

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks that the next bytes complete; chunks before a failure come first, the next call raises it.

        Raises:
            ModelError: the server reports a failure inside its response, or violates its protocol.
        """
        return self._run(partial(self._feed, data)) if data or self._failure is not None else []

    def close(self) -> list[Chunk]:
        """Return the remaining chunks at the end of the bytes.

        Raises:
            ProtocolError: the response is incomplete.
        """
        chunks = self._run(self._close)
        if self._failure is not None:
            raise self._failure
        return chunks

    def _run(self, step: Callable[[], None]) -> list[Chunk]:
        if self._failure is not None:
            raise self._failure
        try:
            step()
        except ModelError as error:
            chunks = self._response.take_chunks()
            if not chunks:
                raise
            self._failure = error
            return chunks
        if self._response.is_cancelled:
            raise protocol_error("cancelled its answer before the first word", "", self._server, "try again")
        return self._response.take_chunks()

    def _feed(self, data: bytes) -> None:
        if not self._is_stream and self._body is None:
            data = self._sniff(data)
        if self._is_stream:
            self._read(self._events.feed(data))
        elif self._body is not None:
            self._size += len(data)
            if self._size > LARGEST_RESPONSE_BYTES:
                raise protocol_error(f"sent more than {LARGEST_RESPONSE_BYTES // 2**20} MiB", "", self._server)
            self._body.append(data)

    def _close(self) -> None:
        if self._body is not None:
            self._whole(b"".join(self._body))
        elif not self._response.done:
            self._end_of_stream()

    def _sniff(self, data: bytes) -> bytes:
        """Detect the kind of the response; return the bytes to read, none while it is unknown."""
        head = self._head + data
        first = head.lstrip(BEFORE_RESPONSE)[:1]
        if not first:
            self._head = head[-1:]
            return b""
        self._head = head[:HEAD_BYTES]
        if first == b"<" or self._is_html:
            raise protocol_error("sent a web page instead of a response", self._head_text(), self._server)
        self._is_stream = first in EVENT_STARTS
        self._body = None if self._is_stream else []
        return head

    def _head_text(self) -> str:
        return self._head.decode("utf-8", "replace")

    def _read(self, events: list[Event]) -> None:
        for event in chain.from_iterable(map(_separate, events)):
            if self._response.done:
                return
            data = event.data.strip()
            if data == "[DONE]":
                if self._response.is_empty:
                    advice = "name its protocol by ?wire= behind the name of the model, or correct its base URL"
                    raise protocol_error("sent no event of this protocol", self._head_text(), self._server, advice)
                self._response.end()
                return
            # Every protocol sends objects; relays keep a connection open with empty events, `ping`, numbers or their own words.
            if data.startswith("{") or event.name == "error":
                self._reader.read_event(self._parse(event))

    def _parse(self, event: Event) -> Json:
        try:
            data = parse_json(event.data)
        except ValueError:
            raise protocol_error("sent an event that is not JSON", event.data, self._server) from None
        if event.name == "error" or _is_error(data):
            raise error_in_response(data, self._server)
        if event.name and isinstance(data, dict):  # relays leave out one of the two
            data.setdefault("type", event.name)
        return data

    def _whole(self, body: bytes) -> None:
        try:
            data = parse_json(body)
        except ValueError:
            raise protocol_error("sent an answer that is not whole JSON", self._head_text(), self._server) from None
        if _is_error(data):
            raise error_in_response(data, self._server)
        self._reader.read_whole(data)
        self._response.end()

    def _end_of_stream(self) -> None:
        """Read the last event; after the finish reason, an error or a missing end is ignored."""
        with suppress(ProtocolError):  # half an event: reported below, if the response is incomplete
            self._read(self._events.close())
        if self._response.finish is None and not self._response.done:
            if not self._head:
                raise protocol_error("sent an empty answer", "", self._server)
            raise protocol_error("broke off in the middle of its answer", self._head_text(), self._server, "try again")
        self._response.end()


class CallIds:
    """Assigns each call of a conversation an id that the protocol accepts, and each result the id of its call.

    An id is kept if it matches the pattern `valid` and is new; otherwise `form` makes one from the position of the call in the
    conversation. It is therefore the same in every later request, as a prefix cache needs.
    """

    def __init__(self, valid: str, form: str) -> None:
        self._valid = re.compile(valid)
        self._form = form
        self._count = 0
        self._used: set[str] = set()
        self._open: list[tuple[ToolCall, str]] = []
        """The calls that have no result yet, and their ids on the wire."""

    def of_call(self, call: ToolCall) -> str:
        """Return the id of the next call."""
        wire_id = call.id
        position = self._count
        while wire_id in self._used or self._valid.fullmatch(wire_id) is None:
            wire_id = self._form.format(position)
            position += 1
        self._count += 1
        self._used.add(wire_id)
        self._open.append((call, wire_id))
        return wire_id

    def of_result(self, result: ToolResult) -> str:
        """Return the id of a result's call: the named one, else of those without an id, or of all, the first one of its tool, else
        the first one.
        """
        calls = [each for each in self._open if result.call and each[0].id == result.call]
        if not calls:
            others = [each for each in self._open if not (result.call and each[0].id)]
            calls = [each for each in others if each[0].name == result.name] or others
        if not calls:
            return result.call or self._form.format(self._count)
        first = calls[0]
        self._open.remove(first)
        return first[1]
