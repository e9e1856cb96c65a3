import asyncio
import time

from taiwa.models.http_api.client import KEPT_SECONDS, POOL_CALLS, Connections
from taiwa.models.http_api.provider_interface import parse_base_url

LOCAL = parse_base_url("http://127.0.0.1:1/v1")


def test_calls_take_the_first_pool_with_room_and_pools_that_are_idle_for_long_are_closed() -> None:
    async def run() -> None:
        connections = Connections(LOCAL)
        first = await connections.pool()
        for _ in range(POOL_CALLS):
            assert await connections.pool() is first
            first.__enter__()
        second = await connections.pool()
        with second:
            assert second is not first
            assert await connections.pool() is second
        first.__exit__()
        assert await connections.pool() is first

        first.__enter__()
        second.used = time.monotonic() - KEPT_SECONDS - 1
        assert await connections.pool() is not second
        await connections.aclose()

    asyncio.run(run())
