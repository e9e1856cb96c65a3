"""Streams of events: each part in its place, sent at once where nothing waits, and no more than one where the reader does not read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import wraps

import pytest
from starlette.types import Message

from taiwa.kernel.messages import TextDelta
from taiwa.server.http_responses import WRITE, EventStream, SendNow, wait_connected
from taiwa.server.runs import LiveRun, RunEvent


def on_a_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run an asynchronous test."""

    @wraps(test)
    def run(**given: object) -> None:
        asyncio.run(test(**given))

    return run


class Reader:
    """What uvicorn is to an application: it takes parts while it is open, and makes those who send wait while it is not."""

    def __init__(self) -> None:
        self.open, self.left = asyncio.Event(), asyncio.Event()
        self.open.set()
        self.parts: list[bytes] = []
        self.begun = 0

    async def send(self, message: Message) -> None:
        self.begun += 1
        await self.open.wait()
        if message["type"] == "http.response.body":
            self.parts.append(message["body"])

    def write(self, part: bytes) -> bool:
        if self.open.is_set():
            self.parts.append(part)
        return self.open.is_set()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}


class Leaving(Reader):
    """A reader that leaves in the moment in which what it waits for is there."""

    async def end(self) -> AsyncGenerator[bytes]:
        yield b"all"
        await self.last()

    async def last(self) -> None:
        self.left.set()
        await asyncio.sleep(0)


def publish(run: LiveRun, *texts: str) -> None:
    for text in texts:
        run._publish(0, TextDelta(text))


async def settle() -> None:
    """Let every task do what it can do now."""
    for _ in range(20):
        await asyncio.sleep(0)


def stream_of(run: LiveRun) -> EventStream:
    async def events(send_now: SendNow) -> AsyncGenerator[bytes]:
        def write(each: RunEvent) -> bytes:
            assert isinstance(each.event, TextDelta)
            return each.event.text.encode()

        async for each in run.follow(take=lambda index, event: send_now(write(RunEvent(index, event)))):
            yield write(each)

    return EventStream(events)


@on_a_loop
async def test_pieces_are_sent_in_the_moment_in_which_they_come() -> None:
    run, reader = LiveRun([]), Reader()
    reading = asyncio.create_task(stream_of(run)({WRITE: reader.write}, reader.receive, reader.send))
    await settle()

    publish(run, "a", "b")

    assert reader.parts == [b"a", b"b"]
    run.ended = 0.0
    run._wake()
    await reading
    assert reader.parts == [b"a", b"b", b""]


@on_a_loop
async def test_a_reader_that_does_not_read_makes_one_part_wait_and_gets_all_in_order_later() -> None:
    run, reader = LiveRun([]), Reader()
    reading = asyncio.create_task(stream_of(run)({WRITE: reader.write}, reader.receive, reader.send))
    await settle()
    publish(run, "a")
    begun = reader.begun
    reader.open.clear()

    publish(run, *(str(number) for number in range(1_000)))
    await settle()

    assert reader.parts == [b"a"]
    assert reader.begun == begun + 1  # the others wait in the run, whose events they are
    reader.open.set()
    run.ended = 0.0
    run._wake()
    await reading
    assert reader.parts == [b"a", *(str(number).encode() for number in range(1_000)), b""]


@pytest.mark.parametrize("reads", [True, False])
@on_a_loop
async def test_a_reader_that_leaves_ends_the_stream_and_is_reported(reads: bool) -> None:
    run, reader, left = LiveRun([]), Reader(), list[bool]()
    stream = stream_of(run)
    stream._on_leave = lambda: left.append(True)
    reading = asyncio.create_task(stream({WRITE: reader.write}, reader.receive, reader.send))
    await settle()
    if not reads:
        reader.open.clear()
    publish(run, "a", "b")

    reader.left.set()
    await reading

    assert left == [True]
    assert run._readers == []


@on_a_loop
async def test_two_readers_follow_one_run_each_at_its_pace() -> None:
    run, fast, slow = LiveRun([]), Reader(), Reader()
    readings = [
        asyncio.create_task(stream_of(run)({WRITE: each.write}, each.receive, each.send)) for each in (fast, slow)
    ]
    await settle()
    slow.open.clear()

    publish(run, "a", "b", "c")
    await settle()

    assert fast.parts == [b"a", b"b", b"c"]
    assert slow.parts == []
    slow.open.set()
    run.ended = 0.0
    run._wake()
    await asyncio.gather(*readings)
    assert slow.parts == fast.parts == [b"a", b"b", b"c", b""]


@on_a_loop
async def test_a_reader_that_leaves_at_the_end_cancels_nothing_afterwards() -> None:
    for wait in (
        lambda reader: EventStream(reader.end())({}, reader.receive, reader.send),
        lambda reader: wait_connected(reader.receive, reader.last(), lambda: None),
    ):
        await wait(Leaving())

        await settle()

        here = asyncio.current_task()
        assert here is not None
        assert not here.cancelling()
