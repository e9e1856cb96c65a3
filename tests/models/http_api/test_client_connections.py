import asyncio

from taiwa.models.http_api.client import Connections
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
