"""The two faces of a model as one, and the peers that they talk to."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import pytest

from taiwa.kernel.messages import Request, Response, collect_response
from taiwa.models.http_api.client import Clock, HttpModel
from tests.peers.faults import FaultServer

T = TypeVar("T")


class Face(Protocol):
    """How a test talks to a model, blocking or asynchronous."""

    def ask(self, model: HttpModel, request: Request) -> Response:
        """Return the whole answer."""
        ...

    def begin(self, model: HttpModel, request: Request, then: Callable[[], T]) -> T:
        """Read the first chunk, close the iterator, and return what `then` finds while model and loop still live."""
        ...


class Blocking:
    def ask(self, model: HttpModel, request: Request) -> Response:
        return collect_response(model.stream(request))

    def begin(self, model: HttpModel, request: Request, then: Callable[[], T]) -> T:
        chunks = model.stream(request)
        next(chunks)
        chunks.close()
        return then()


class Asynchronous:
    def ask(self, model: HttpModel, request: Request) -> Response:
        async def whole() -> Response:
            return collect_response([chunk async for chunk in model.astream(request)])

        return asyncio.run(whole())

    def begin(self, model: HttpModel, request: Request, then: Callable[[], T]) -> T:
        async def some() -> T:
            chunks = model.astream(request)
            await anext(chunks)
            await chunks.aclose()
            return await asyncio.to_thread(then)

        return asyncio.run(some())


@pytest.fixture(params=[Blocking, Asynchronous])
def face(request: pytest.FixtureRequest) -> Face:
    """Each test that takes it runs once per face."""
    made: Face = request.param()
    return made


@dataclass
class Sleeps:
    """Sleeps of no length, written down."""

    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def clock(self) -> Clock:
        return Clock(sleep=self.sleep, random=lambda: 0.0)


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture(scope="session")
def fault_server() -> Iterator[FaultServer]:
    """The one server of a run; use `faults`."""
    with FaultServer() as server:
        yield server


@pytest.fixture
def faults(fault_server: FaultServer) -> FaultServer:
    """The server that misbehaves on command, with nothing seen yet."""
    fault_server.plays()
    return fault_server
