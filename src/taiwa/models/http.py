"""A model behind HTTP, blocking and asynchronous.

Both faces obey the same program of wishes (`exchange.py`); the transport is imported at the first call.
"""

import asyncio
import os
import random
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import TYPE_CHECKING, Self

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.values import Ability, Chunk, Request
from taiwa.models.exchange import Terms, Timeouts, ask, fetch
from taiwa.models.letter import Letter, address_of, get, post
from taiwa.models.pool import Pool
from taiwa.models.retry import Retry
from taiwa.models.secret import Secret
from taiwa.models.wire import Call, Hold, Target

if TYPE_CHECKING:
    from taiwa.models.keeping import Keeping
    from taiwa.models.lines import AsyncShards, SyncShards

__all__ = ["HttpModel", "Pool", "Retry", "Timeouts", "Timing"]


@dataclass(frozen=True, slots=True)
class Timing:
    """The clock, the two ways to sleep and the source of chance; tests bring their own."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    async_sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


@dataclass(eq=False)
class HttpModel:
    """The model that a target names, over HTTP; one object serves all threads and event loops of a process.

    Connections are kept for later calls; those of an event loop end with it, the others with `close` or the object.

    Raises:
        ConfigError: the base URL or the key cannot be used.
    """

    target: Target
    key: InitVar[str | Secret | None] = None
    _: KW_ONLY
    timeouts: Timeouts = field(default_factory=Timeouts)
    retry: Retry = field(default_factory=Retry)
    pool: Pool = field(default_factory=Pool)
    timing: Timing = field(default_factory=Timing, repr=False)

    def __post_init__(self, key: str | Secret | None) -> None:
        if self.target.inside:
            raise ConfigError(f"{self.target.name} runs in this process: there is no server to ask")
        self._address = address_of(self.target.base_url)
        self._key = Secret(key, self.target.key_name or "the key") if isinstance(key, str) else key
        self._terms = Terms(self.timeouts, self.retry, self.timing.clock, self.timing.random)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._shards: SyncShards | None = None
        self._loops: dict[asyncio.AbstractEventLoop, tuple[AsyncShards, AsyncGenerator[None]]] = {}

    @property
    def name(self) -> str:
        """The name a person gave it."""
        return self.target.name

    @property
    def abilities(self) -> frozenset[Ability]:
        """What its server can do."""
        return self.target.abilities

    def holding(self, hold: Hold) -> "HttpModel":
        """The same model, with another way to treat what its server's decoder does not hold; it has connections of its own."""
        from taiwa.models.openai import held_so

        target = held_so(self.target, hold)
        return HttpModel(
            target, self._key, timeouts=self.timeouts, retry=self.retry, pool=self.pool, timing=self.timing
        )

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `Finished`; closing the iterator closes the connection at once.

        Raises:
            ModelError: the call failed.
            ConfigError: a header cannot be sent.
        """
        from taiwa.models import lines

        call = self.target.codec.encode(request)
        flow = ask(post(self.target, call, self._key, request), self._terms)
        with closing(lines.Line(self._blocking(), self.timing.sleep)) as line:
            chunks = lines.perform(flow, line)
            keeping = _keeping(call, request)
            yield from chunks if keeping is None else map(keeping.seen, chunks)

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """As `stream`; cancelling the task closes the connection at once."""
        from taiwa.models import lines

        call = self.target.codec.encode(request)
        keeping = _keeping(call, request)
        flow = ask(post(self.target, call, self._key, request), self._terms)
        async with (
            aclosing(lines.AsyncLine(await self._looped(), self.timing.async_sleep)) as line,
            aclosing(lines.aperform(flow, line)) as chunks,
        ):
            async for chunk in chunks:
                yield chunk if keeping is None else keeping.seen(chunk)

    def fetch(self, path: str) -> bytes:
        """Return a document of the server, such as its list of models (`models`).

        Raises:
            ModelError: the call failed.
        """
        return self._whole(get(self.target, path, self._key))

    def send(self, call: Call) -> bytes:
        """Return the answer to a call as it comes, for what no request can ask for.

        Raises:
            ModelError: the call failed.
        """
        return self._whole(post(self.target, call, self._key))

    def _whole(self, letter: Letter) -> bytes:
        from taiwa.models import lines

        with closing(lines.Line(self._blocking(), self.timing.sleep)) as line:
            steps = lines.perform(fetch(letter, self._terms), line)
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    body: bytes = end.value
                    return body

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the kept connections of the blocking face; a later call opens new ones."""
        with self._lock:
            shards, self._shards = self._shards, None
        if shards is not None:
            _close(shards)

    async def aclose(self) -> None:
        """Close all kept connections of this event loop and of the blocking face."""
        self.close()
        _, keeper = self._loops.pop(asyncio.get_running_loop(), (None, None))
        if keeper is not None:
            await keeper.aclose()

    def _blocking(self) -> "SyncShards":
        from taiwa.models import lines

        self._after_fork()
        with self._lock:
            if self._shards is None:
                self._shards = lines.shards(self._address, self.pool)
                weakref.finalize(self, _close, self._shards)
            return self._shards

    async def _looped(self) -> "AsyncShards":
        from taiwa.models import lines

        self._after_fork()
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            shards = lines.async_shards(self._address, self.pool)
            keeper = lines.kept(shards)
            await anext(keeper)
            with self._lock:
                for old in [old for old in self._loops if old.is_closed()]:
                    del self._loops[old]
                self._loops[loop] = shards, keeper
        return self._loops[loop][0]

    def _after_fork(self) -> None:
        """Leave the connections to the process that opened them: two writers on one socket garble both."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = threading.Lock()
            self._shards = None
            self._loops = {}


def _keeping(call: Call, request: Request) -> "Keeping | None":
    if call.enforcement is None:
        return None
    from taiwa.models.keeping import Keeping

    return Keeping(call.enforcement, request)


def _close(shards: "SyncShards") -> None:
    for pool in shards.clear():
        pool.close()
