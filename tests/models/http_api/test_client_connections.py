import asyncio
import time

from taiwa.models.http_api.client import KEPT_SECONDS, Connections
from taiwa.models.http_api.provider_interface import parse_base_url

LOCAL = parse_base_url("http://127.0.0.1:1/v1")


def test_a_call_takes_the_connection_that_was_used_last_and_those_that_are_idle_for_long_are_closed() -> None:
    async def run() -> None:
        connections = Connections(LOCAL)
        first, second = await connections.take(), await connections.take()
        assert second is not first
        for each in (first, second):
            async with each:
                pass
        assert await connections.take() is second

        first.used = time.monotonic() - KEPT_SECONDS - 1
        third = await connections.take()
        assert third not in (first, second)
        async with second:
            pass
        assert await connections.take() is second
        await connections.aclose()

    asyncio.run(run())
