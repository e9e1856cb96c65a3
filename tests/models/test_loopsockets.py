"""The sockets of an event loop: what arrives is kept until it is asked for, and every wait ends in its time."""

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpcore2
import pytest

from taiwa.models.exchange import Patience
from taiwa.models.loopsockets import MOST_KEPT_BYTES, AsyncSockets, Pipe, first_of

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Use = Callable[[httpcore2.AsyncNetworkStream], Awaitable[None]]


def with_server(talk: Talk, use: Use) -> None:
    """Let a socket talk to a server on this machine."""

    async def both() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with suppress(ConnectionError):
                    await talk(reader, writer)
            finally:
                writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            socket = await AsyncSockets().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1])
            await use(socket)
            await socket.aclose()

    asyncio.run(both())


def test_a_request_leaves_in_one_packet() -> None:
    packets: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        packets.append(await reader.read(2**16))
        writer.write(b"yes")

    async def use(socket: httpcore2.AsyncNetworkStream) -> None:
        await socket.write(b"POST / HTTP/1.1\r\n\r\n")
        await socket.write(b"body")
        assert await socket.read(2**16) == b"yes"

    with_server(talk, use)

    assert packets == [b"POST / HTTP/1.1\r\n\r\nbody"]


def test_more_than_fits_is_sent_as_it_is_written() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(5))
        await reader.read()

    async def use(socket: httpcore2.AsyncNetworkStream) -> None:
        await socket.write(b"begin")
        await socket.write(b"x" * 2**17)
        assert await socket.read(5) == b"begin"

    with_server(talk, use)


@pytest.mark.parametrize("what", ["read", "write"])
def test_a_wait_ends_when_the_time_of_its_call_does(what: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    async def use(socket: httpcore2.AsyncNetworkStream) -> None:
        patience = Patience(60.0, time.monotonic() + 0.05, time.monotonic)
        if what == "read":
            with pytest.raises(httpcore2.ReadTimeout):
                await socket.read(1, patience)
        else:
            with pytest.raises(httpcore2.WriteTimeout):
                await socket.write(b"x" * 2**25, patience)

    with_server(talk, use)


def test_what_came_before_the_end_is_read_before_it() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"last words")

    async def use(socket: httpcore2.AsyncNetworkStream) -> None:
        assert await socket.read(4) == b"last"
        assert socket.get_extra_info("is_readable")
        assert [await socket.read(20), await socket.read(20)] == [b" words", b""]

    with_server(talk, use)


def test_nothing_is_written_to_who_has_hung_up() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    async def use(socket: httpcore2.AsyncNetworkStream) -> None:
        assert await socket.read(1) == b""
        with pytest.raises(httpcore2.WriteError):
            await socket.write(b"hello?")

    with_server(talk, use)


class Flow(asyncio.Transport):
    """Remembers whether the loop was asked to stop reading."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


def test_a_server_cannot_fill_the_memory_with_what_nobody_reads() -> None:
    pipe, transport = Pipe(), Flow()
    pipe.connection_made(transport)

    pipe.data_received(b"x" * (MOST_KEPT_BYTES + 1))

    assert not transport.reading
    assert len(pipe.take(2)) == 2
    assert transport.reading


def test_of_several_addresses_that_fail_the_first_says_why() -> None:
    joined = OSError(
        "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1), [Errno 101] Network is unreachable"
    )

    assert isinstance(first_of(joined), ConnectionRefusedError)
    assert first_of(OSError(errno.ENETUNREACH, "x")).errno == errno.ENETUNREACH


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_where_nothing_listens_the_error_says_so(host: str) -> None:
    with pytest.raises(httpcore2.ConnectError) as caught:
        asyncio.run(AsyncSockets().connect_tcp(host, 1))

    assert isinstance(caught.value.__cause__ or caught.value.args[0], OSError)
    assert isinstance(caught.value.args[0], ConnectionRefusedError)
