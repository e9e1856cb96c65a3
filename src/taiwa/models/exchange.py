"""One call as a program without I/O: it wishes to send, to read, to wait and to give out, and both faces obey.

All rules live here: what is tried again, when, how long each wait may take, how large an answer may be, and what an
error may say. A face (blocking or asynchronous) performs the wishes and throws what the network did back in.
"""

import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Self, TypeAlias, TypeVar

from taiwa.kernel.errors import ModelError, ProtocolError
from taiwa.kernel.values import Chunk, Finished
from taiwa.models.broken import Broken, Place, Stage, error_of
from taiwa.models.failures import quoted, wait_asked
from taiwa.models.letter import Letter
from taiwa.models.retry import Retry
from taiwa.models.secret import conceal, hide_bytes

__all__ = ["Flow", "Give", "Head", "Open", "Patience", "Read", "Terms", "Timeouts", "Wait", "ask", "fetch"]

LARGEST_ANSWER_BYTES = 64 * 2**20
LARGEST_COMPLAINT_BYTES = 2**20
COMPLAINT_SECONDS = 10.0
READABLE = ("json", "event-stream", "text/plain", "octet-stream")
DRAIN_SECONDS = 0.5
"""How long the last bytes after the end of an answer are waited for, so that the connection can be used again."""

TICK = 0.01
"""How much too early a clock may end a wait."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that a call may take: to connect, to the first byte, between two bytes, and in all, retries included."""

    connect: float = 10.0
    first_byte: float = 300.0
    between: float = 120.0
    total: float = 600.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What a call is made under: its time limits, its retries, a clock and a source of chance."""

    timeouts: Timeouts
    retry: Retry
    clock: Callable[[], float]
    random: Callable[[], float]


class Patience(float):
    """The seconds that the next wait may take, worked out at the moment the wait begins.

    A float, because that is what transports take for a timeout; they hand it down unread to our sockets, which ask
    `left`. So every single wait ends when the call's time does.
    """

    each: float
    until: float
    clock: Callable[[], float]

    def __new__(cls, each: float, until: float, clock: Callable[[], float]) -> Self:
        """Allow `each` seconds per wait, and none after the moment `until`."""
        made = super().__new__(cls, each)
        made.each, made.until, made.clock = each, until, clock
        return made

    @property
    def left(self) -> float:
        """Seconds from now; zero or less means that time is up."""
        return min(self.each, self.until - self.clock())


@dataclass(frozen=True, slots=True)
class Open:
    """Send the letter and return the `Head` of the answer."""

    letter: Letter
    connect: Patience
    read: Patience


@dataclass(frozen=True, slots=True)
class Read:
    """Return the next bytes of the answer, none at its end."""


READ = Read()


@dataclass(frozen=True, slots=True)
class Wait:
    """Close the connection of a failed attempt and sleep."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Give:
    """Give chunks to whoever asked."""

    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer; header names are lower-case."""

    status: int
    headers: Mapping[str, str]


Flow: TypeAlias = Generator[Open | Read | Wait | Give, Head | bytes | None, T]
"""A call in the making: `Open` is answered by a Head, `Read` by bytes, the others by None."""


def ask(letter: Letter, terms: Terms) -> Flow[None]:
    """Send a request to a model and give out its answer as chunks.

    Raises:
        ModelError: the call failed for good.
    """
    return _again(letter, terms, _Attempt.chunks)


def fetch(letter: Letter, terms: Terms) -> Flow[bytes]:
    """Send a request for a small document and return its bytes.

    Raises:
        ModelError: the call failed for good.
    """
    return _again(letter, terms, _Attempt.whole)


def _again(letter: Letter, terms: Terms, steps: Callable[["_Attempt"], Flow[T]]) -> Flow[T]:
    """Try until an attempt succeeds, words were given out, or the policy says no."""
    deadline = terms.clock() + terms.timeouts.total
    for made in count(1):
        attempt = _Attempt(letter, terms, deadline)
        try:
            return (yield from steps(attempt))
        except ModelError as error:
            wait = attempt.wait(error, made)
            if wait is None:
                if made > 1:
                    error.message += f" (tried {made} times)"
                conceal(error, letter.secrets)
                error.request = letter.request.digest if letter.request else ""
                raise
        yield Wait(wait)
    raise AssertionError("count() does not end")


class _Attempt:
    """One try of a call: how far it came, and how long it may still take."""

    def __init__(self, letter: Letter, terms: Terms, deadline: float) -> None:
        self._letter = letter
        self._terms = terms
        self._deadline = deadline
        self._stage: Stage = "open"
        self._once = False
        self._end: Finished | None = None
        self._headers: Mapping[str, str] = {}
        self._size = 0
        self._inflate: Callable[[bytes, int], bytes] | None = None
        self._patience = Patience(inf, min(terms.clock() + terms.timeouts.first_byte, deadline), terms.clock)

    def wait(self, error: ModelError, made: int) -> float | None:
        """Return the seconds to wait before the next attempt, or None: give up."""
        if self._once or self._stage == "given" or self._headers.get("x-should-retry") == "false":
            return None
        left = self._deadline - self._terms.clock()
        return self._terms.retry.decide(error, made, left, self._terms.random(), wait_asked(self._headers))

    def chunks(self) -> Flow[None]:
        """Give out the chunks of an answer."""
        head = yield from self._open()
        request = self._letter.request
        decoder = self._letter.codec.decoder(head.headers.get("content-type", ""), request.prefix if request else "")
        try:
            while self._end is None and (data := (yield from self._read())):
                if chunks := decoder.feed(data):
                    yield from self._give(chunks)
                    decoder.feed(b"")  # a failure that stood behind these words is raised now, not after the next wait
            if self._end is None:
                yield from self._give(decoder.close())
        except Broken as broken:
            try:
                rest = decoder.close()  # an answer that is complete counts, even if its connection then breaks
            except ModelError:
                raise self._error(broken) from None
            yield from self._give(rest)
        else:
            yield from self._drain()
        if self._end is not None:
            yield Give((self._end,))

    def whole(self) -> Flow[bytes]:
        """Return the bytes of an answer."""
        yield from self._open()
        pieces: list[bytes] = []
        try:
            while data := (yield from self._read()):
                pieces.append(data)
        except Broken as broken:
            raise self._error(broken) from None
        return b"".join(pieces)

    def _open(self) -> Flow[Head]:
        limits = self._terms.timeouts
        connect = Patience(limits.connect, self._deadline, self._terms.clock)
        try:
            head = yield Open(self._letter, connect, self._patience)
        except Broken as broken:
            raise self._error(broken) from None
        assert isinstance(head, Head)
        self._headers = head.headers
        if not 200 <= head.status < 300:
            raise (yield from self._complaint(head))
        kind = head.headers.get("content-type", "").lower()
        if kind and not any(word in kind for word in READABLE):
            raise self._not_an_answer(f"sends {quoted(kind, 60)} instead of an answer")
        coding = head.headers.get("content-encoding", "identity").lower()
        if coding != "identity":
            if coding not in ("gzip", "x-gzip", "deflate"):
                raise self._not_an_answer(
                    f"sends its answer packed ({quoted(coding, 60)}), though nobody asked for that"
                )
            self._inflate = zlib.decompressobj(wbits=47).decompress  # 32 + 15: it finds out which of the two it is
        return head

    def _read(self) -> Flow[bytes]:
        """Return the next bytes of the answer, unpacked; none at its end."""
        while True:
            data = yield READ
            assert isinstance(data, bytes)
            if not data:
                return b""
            if self._stage == "open":
                self._stage = "answer"
                self._patience.each, self._patience.until = self._terms.timeouts.between, self._deadline
            if self._inflate is not None:
                data = self._unpacked(self._inflate, data)
            self._size += len(data)
            if self._size > LARGEST_ANSWER_BYTES:
                raise self._not_an_answer(f"sends more than {LARGEST_ANSWER_BYTES // 2**20} MiB")
            if data:
                return data

    def _unpacked(self, inflate: Callable[[bytes, int], bytes], data: bytes) -> bytes:
        """Unpack no more than may still come: a small answer may unpack to gigabytes."""
        try:
            return inflate(data, LARGEST_ANSWER_BYTES + 1 - self._size)
        except zlib.error:
            raise self._not_an_answer("sends its answer packed, and broken") from None

    def _give(self, chunks: list[Chunk]) -> Flow[None]:
        """Give chunks out; the end is held back until the connection is free, as nobody reads on after it."""
        if chunks:
            self._stage = "given"
            last = chunks[-1]
            if isinstance(last, Finished):
                self._end = last
            yield Give(tuple(chunks if self._end is None else chunks[:-1]))

    def _drain(self) -> Flow[None]:
        """Read to the end of the answer, so that its connection can be used again; what comes there is not wanted."""
        self._patience.until = min(self._terms.clock() + DRAIN_SECONDS, self._deadline)
        try:
            while (yield READ):
                pass
        except Broken:
            pass

    def _complaint(self, head: Head) -> Flow[ModelError]:
        """Read what a server says when it refuses, as far as it comes."""
        clock = self._terms.clock
        self._patience.until = min(clock() + COMPLAINT_SECONDS, self._deadline)
        body = b""
        try:
            while len(body) < LARGEST_COMPLAINT_BYTES:
                data = yield READ
                assert isinstance(data, bytes)
                if not data:
                    break
                body += data
        except Broken:
            pass  # the status says enough
        if head.headers.get("content-encoding", "identity") != "identity":
            body = b""
        letter = self._letter
        return letter.codec.failure(head.status, head.headers, hide_bytes(body, letter.secrets))

    def _error(self, broken: Broken) -> ModelError:
        late = self._terms.clock() >= self._deadline - TICK
        error, again = error_of(broken.cause, self._stage, self._place, late=late)
        self._once = not again
        return error

    def _not_an_answer(self, what: str) -> ProtocolError:
        place = self._place
        return ProtocolError(
            f"{place.host} {what}; check that {place.url} leads to a model server (mostly it ends in /v1)"
        )

    @property
    def _place(self) -> Place:
        limits = self._terms.timeouts
        address = self._letter.address
        return Place(address.authority, address.text, limits.connect, limits.first_byte, limits.between, limits.total)
