"""TCP for httpcore2 by the streams of asyncio; those of anyio, which it has itself, cost as much as all else of a call."""

import asyncio
import builtins
import select
from asyncio.staggered import staggered_race
from collections.abc import Iterable
from functools import partial
from socket import SOCK_STREAM
from typing import Any

import httpcore2

STAGGER_SECONDS = 0.25
"""How long an address of a host is tried alone."""


class Network(httpcore2.AsyncNetworkBackend):
    """The network as a running event loop of asyncio sees it, without TLS."""

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None,  # noqa: ASYNC109  (the interface of httpcore2)
        local_address: str | None = None, socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> "Stream":  # fmt: skip
        """Connect to the address of a host that answers first."""
        try:
            async with asyncio.timeout(timeout):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
                tries = [partial(_connect, str(address[0]), port) for *_, address in found]
                opened: Stream | None
                opened, _, faults = await staggered_race(tries, STAGGER_SECONDS)
        except builtins.TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        except OSError as error:
            raise httpcore2.ConnectError from error
        if opened is None:
            raise httpcore2.ConnectError from ExceptionGroup(host, [each for each in faults if each is not None])
        return opened


async def _connect(host: str, port: int) -> "Stream":
    loop, reader = asyncio.get_running_loop(), Reader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_connection(lambda: protocol, host, port)
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class Reader(asyncio.StreamReader):
    """A reader that knows how many of the bytes that arrived were not read yet."""

    unread = 0

    def feed_data(self, data: Any) -> None:  # noqa: ANN401  (bytes, or a view of some)
        """Take bytes that arrived."""
        self.unread += len(data)
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        """Return what arrives next, b"" at the end."""
        data = await super().read(n)
        self.unread -= len(data)
        return data


class Stream(httpcore2.AsyncNetworkStream):
    """A connection; who reads from it has a timeout of its own."""

    def __init__(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002
        """Return what arrives next, b"" at the end."""
        return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Write bytes, and wait while the server takes no more."""
        self._writer.write(buffer)
        if not self._writer.transport.get_write_buffer_size():
            return
        try:
            async with asyncio.timeout(timeout):
                await self._writer.drain()
        except OSError as error:
            timed_out = isinstance(error, builtins.TimeoutError)
            raise (httpcore2.WriteTimeout if timed_out else httpcore2.WriteError) from error

    async def aclose(self) -> None:
        """Close the connection without waiting for what was not sent."""
        self._writer.close()
        self._writer.transport.abort()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        """Return what is known of the connection; `is_readable` of an idle one says that it cannot be used again: bytes of no call
        arrived, or its end did, of which the system knows before the event loop does.
        """
        if info != "is_readable":
            return self._writer.get_extra_info(info)
        if self._writer.is_closing() or self._reader.unread or self._reader.at_eof():
            return True
        socket = self._writer.get_extra_info("socket")
        if not hasattr(select, "poll"):  # on Windows
            return bool(select.select([socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        return bool(poll.poll(0))
