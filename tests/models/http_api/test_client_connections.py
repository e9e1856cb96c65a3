import asyncio
import select

import pytest

from taiwa.models.http_api.client import Connections
from taiwa.models.http_api.network import Network
from taiwa.models.http_api.provider_interface import parse_base_url

LOCAL = parse_base_url("http://127.0.0.1:1/v1")


class Fake:
    """A connection whose state a test sets."""

    completed = True
    expired = False
    closed = False

    def is_available(self) -> bool:
        return self.completed

    def has_expired(self) -> bool:
        return self.expired

    async def aclose(self) -> None:
        self.closed = True


def test_a_call_takes_the_connection_that_was_used_last_and_those_that_are_idle_for_long_are_closed() -> None:
    async def run() -> None:
        connections = Connections(LOCAL)
        connections._open = Fake  # type: ignore[assignment]
        first, second = await connections.take(), await connections.take()
        assert second is not first
        for each in (first, second):
            await connections.give_back(each)
        assert await connections.take() is second

        await connections.give_back(second)
        first.expired = True  # type: ignore[attr-defined]
        assert await connections.take() is second
        assert first.closed  # type: ignore[attr-defined]
        second.completed = False  # type: ignore[attr-defined]
        await connections.give_back(second)
        assert second.closed  # type: ignore[attr-defined]
        third = await connections.take()
        assert third not in (first, second)
        await connections.aclose()
        assert third.closed  # type: ignore[attr-defined]

    asyncio.run(run())


def test_closed_connections_are_not_taken_again() -> None:
    async def run() -> None:
        connections = Connections(LOCAL)
        connections._open = Fake  # type: ignore[assignment]
        first = await connections.take()
        await connections.give_back(first)
        await connections.aclose()
        second = await connections.take()
        assert second is not first
        await connections.aclose()
        assert second.closed  # type: ignore[attr-defined]

    asyncio.run(run())


@pytest.mark.parametrize("stray", [b"\r\n", b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"])
@pytest.mark.parametrize("polls", [True, False])
def test_a_connection_on_which_bytes_of_no_call_arrived_is_not_used_again(
    stray: bytes, polls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not polls:  # as on Windows
        monkeypatch.delattr(select, "poll")

    async def run() -> None:
        ended = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(1))
            await reader.readexactly(1)
            writer.write(stray)
            await reader.read()
            writer.close()
            ended.set()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            stream = await Network().connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1], 5)
            await stream.write(b"?")
            assert await stream.read(10) == b"?"
            assert not stream.get_extra_info("is_readable")
            await stream.write(b"!")
            async with asyncio.timeout(10):
                while not stream._reader.unread:  # noqa: ASYNC110  (the class under test has no event)
                    await asyncio.sleep(0)
            assert stream.get_extra_info("is_readable")
            await stream.aclose()
            await ended.wait()

    asyncio.run(run())
