"""One HTTP chunk for all that arrived together.

Servers put every few characters of a streamed answer into a chunk of its own, and the transport takes 13 µs to unpack one,
a third of what a whole turn costs. Where chunks end means nothing (RFC 9112, section 7.1), so those that arrived together
are made one before the transport sees them. All judging stays with the transport: what is not plainly a chunked answer
passes as it came, and what is broken is passed on broken.
"""

import re
from collections.abc import Callable

__all__ = ["Reframe"]

ASKING = (b"POST ", b"GET ")
HEAD_END = re.compile(rb"\n\r?\n")
CHUNKED = re.compile(
    rb"HTTP/1\.1 20[0-3] [^\n]*\n(?:[^\n]+\n)*?transfer-encoding:[ \t]*chunked[ \t]*\r?\n", re.IGNORECASE
)
SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}\r\n")
LONGEST_SIZE_BYTES = 17
NO_SIZE = b"\r\n"
"""Stands where a chunk does not end as it must: no transport takes it for the size of the next one."""
LARGEST_HEAD_BYTES = 2**16


class Reframe:
    """The bytes of one connection, from the server to the transport."""

    __slots__ = ("_end", "_held", "_left", "_pass_on")

    def __init__(self) -> None:
        self._pass_on: Callable[[bytes], bytes] = bytes
        self._held = b""
        self._left = 0
        self._end = b""

    def begin(self, request: bytes) -> None:
        """A request is sent: what comes next is the head of its answer."""
        self._pass_on = self._head if request.startswith(ASKING) else bytes
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return what the transport is to see of them; nothing while half a size line is held."""
        return self._pass_on(data)

    def _head(self, data: bytes) -> bytes:
        start = max(len(self._held) - 2, 0)
        self._held += data
        found = HEAD_END.search(self._held, start)
        if found is None:
            if len(self._held) > LARGEST_HEAD_BYTES:
                self._pass_on = bytes
            return data
        head, rest = self._held[: found.end()], self._held[found.end() :]
        if CHUNKED.match(head) is None:
            self._pass_on = bytes
            return data
        self._pass_on, self._held, self._left, self._end = self._body, b"", 0, b""
        return data[: len(data) - len(rest)] + self._body(rest)

    def _body(self, data: bytes) -> bytes:
        data, self._held = self._held + data, b""
        said: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                said.append(data[at : at + self._left])
                at += len(said[-1])
                self._left -= len(said[-1])
                self._end = b"" if self._left else b"\r\n"
            elif self._end:
                came = data[at : at + len(self._end)]
                if not self._end.startswith(came):
                    return self._rest(said, NO_SIZE + data[at:])
                self._end = self._end[len(came) :]
                at += len(came)
            elif size := SIZE.match(data, at):
                start, length = size.end(), int(size[0], 16)
                if not length:
                    return self._rest(said, data[at:])
                if data[start + length : start + length + 2] == b"\r\n":  # the common case: a whole chunk
                    said.append(data[start : start + length])
                    at = start + length + 2
                else:
                    self._left, at = length, start
            elif b"\n" in data[at:] or len(data) - at >= LONGEST_SIZE_BYTES:
                return self._rest(said, data[at:])
            else:
                self._held = data[at:]
                break
        return _chunk(said)

    def _rest(self, said: list[bytes], data: bytes) -> bytes:
        """The last chunk, or what is none: it and all that follows pass as they come."""
        self._pass_on = bytes
        return _chunk(said) + data


def _chunk(said: list[bytes]) -> bytes:
    """All that was said as one chunk; nothing where nothing was."""
    data = b"".join(said)
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
