"""The pace of the calls to a model: how many at a time, and how many requests and tokens in a minute."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

MINUTE = 60.0
LOOK_SECONDS = 1.0
"""How long a call waits at most before it looks again: an answer that was shorter than expected makes room earlier."""
FIRST_ANSWER = 256
"""Tokens expected of an answer before one has ended."""


@dataclass(frozen=True, slots=True)
class PaceLimits:
    """Limits of the calls to one model; None means no limit."""

    concurrency: int | None = None
    requests: int | None = None
    tokens: int | None = None


@dataclass(eq=False, slots=True)
class PacedCall:
    """A request that was sent, and the tokens that it has, as far as they are known."""

    at: float
    tokens: float


class Pace:
    """Lets calls of all threads and event loops begin so that no minute has more requests and tokens than its limits.

    The tokens of an open call are those of its input, estimated, and the mean of the answers so far.
    """

    def __init__(self, limits: PaceLimits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._open = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = deque()
        self._sent: deque[PacedCall] = deque()
        self._answer = float(FIRST_ANSWER)

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Wait for one of the places of concurrent calls, and hold it."""
        while not self._take():
            loop, freed = asyncio.get_running_loop(), asyncio.Event()
            with self._lock:
                self._waiting.append((loop, freed))
            if self._take():  # one became free before this call was in the queue
                self._forget(freed)
                break
            try:
                await freed.wait()
            except asyncio.CancelledError:
                self._forget(freed)
                self._wake()  # it may have been this one's turn
                raise
        try:
            yield
        finally:
            with self._lock:
                self._open -= 1
            self._wake()

    def _take(self) -> bool:
        with self._lock:
            most = self.limits.concurrency
            if most is not None and self._open >= most:
                return False
            self._open += 1
            return True

    def _forget(self, freed: asyncio.Event) -> None:
        with self._lock:
            self._waiting = deque(each for each in self._waiting if each[1] is not freed)

    def _wake(self) -> None:
        """Wake the first call that waits for a place and whose event loop still runs."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                loop, freed = self._waiting.popleft()
            if not loop.is_closed():
                loop.call_soon_threadsafe(freed.set)
                return

    def start(self, read: int, now: float) -> PacedCall | float:
        """Start a call that reads this number of tokens, or return the seconds after which to try again."""
        limits = self.limits
        with self._lock:
            while self._sent and self._sent[0].at <= now - MINUTE:
                self._sent.popleft()
            tokens = read + self._answer
            wait = 0.0
            if limits.requests is not None and len(self._sent) >= limits.requests:
                # Free once the oldest of the last N calls is a minute old.
                wait = self._sent[-limits.requests].at + MINUTE - now
            if limits.tokens is not None and self._sent:
                wait = max(wait, self._until_free(tokens, limits.tokens, now))
            if wait > 0:
                return wait
            call = PacedCall(now, tokens)
            self._sent.append(call)
            return call

    def _until_free(self, tokens: float, most: int, now: float) -> float:
        """Return the seconds until the tokens fit into a minute; a call of more than fit waits for an empty one."""
        used, until = sum(each.tokens for each in self._sent), 0.0
        for each in self._sent:
            if used + tokens <= most:
                return until
            used -= each.tokens
            until = each.at + MINUTE - now
        return until

    def settle(self, call: PacedCall, read: int, written: int) -> None:
        """Count the tokens that a call had in place of those expected."""
        with self._lock:
            call.tokens = read + written
            # A mean that follows the last few answers.
            self._answer += (written - self._answer) / 4
