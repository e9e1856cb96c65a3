"""Server-sent events, read as they arrive (WHATWG HTML, section 9.2.6), wherever the bytes are cut."""

from typing import NamedTuple

from taiwa.kernel.errors import ProtocolError

__all__ = ["Event", "EventReader"]

LARGEST_EVENT_BYTES = 16 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its data lines joined, and its name (`""` stands for the default, `message`)."""

    data: str
    name: str = ""


class EventReader:
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
