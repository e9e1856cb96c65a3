"""When a call may be tried again and how long each of its waits may take, without I/O: tests need no clock."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from taiwa.kernel.errors import ModelError, OverloadedError, RateLimitError, TimeoutError

TRANSIENT = (RateLimitError, OverloadedError, TimeoutError)
PERMANENT_STATUSES = frozenset({501, 505, 507, 508, 510, 511})
"""Statuses of the 5xx class that another attempt does not change."""
JITTER = 0.1
"""How far a wait that the server asked for is stretched at most, so that clients do not all come back at one moment."""
CLOCK_TOLERANCE = 0.01
"""Seconds by which a timer may fire before its moment."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one call: seconds to connect, to the first byte, between two bytes, and in total with retries; and bytes."""

    connect: float = 10.0
    first_byte: float = 300.0
    between: float = 120.0
    total: float = 600.0
    response_bytes: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in seconds, a way to sleep, and random numbers from [0, 1); tests pass their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` attempts; waits double from `base` to `cap` seconds.

    A wait that the server asks for is respected whatever its length, as long as the deadline of the call allows it.
    """

    attempts: int = 3
    base: float = 0.5
    cap: float = 30.0

    def decide(
        self, error: ModelError, attempt: int, left: float, random: float, asked: float | None = None
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        `attempt` counts the attempts so far, `left` is the rest of the time of the call in seconds, `random` is drawn from
        [0, 1), `asked` is the wait that the server asked for (a `RateLimitError` carries its own).
        """
        if attempt >= self.attempts or not isinstance(error, TRANSIENT) or error.status in PERMANENT_STATUSES:
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            asked = error.retry_after
        if asked is not None:
            wait = asked * (1 + JITTER * random)
        else:
            # half of the wait is fixed: full jitter may call again at once, which does not relieve a busy server
            wait = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60)) * (0.5 + random / 2)
        return wait if wait < left else None


class Deadline:
    """The moments at which a call and its current attempt must end."""

    __slots__ = ("_end", "_first_byte", "_limits", "_now")

    def __init__(self, limits: RequestLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._end = now() + limits.total
        self._first_byte = self._end

    def begin_attempt(self) -> dict[str, float]:
        """Start the time to the first byte; return the timeouts of the operations of this attempt, in seconds.

        Both body reads and the wait for the headers have the same one, because the transport takes only one per response.
        """
        self._first_byte = min(self._now() + self._limits.first_byte, self._end)
        left = max(self.left, 0.0)
        read = min(max(self._limits.first_byte, self._limits.between), left)
        return {"connect": min(self._limits.connect, left), "read": read, "write": read}

    @property
    def left(self) -> float:
        """Seconds until the call must end; negative when that has passed."""
        return self._end - self._now()

    @property
    def is_over(self) -> bool:
        """Whether the time of the whole call is used up."""
        return self.left <= CLOCK_TOLERANCE

    def until_first_byte(self) -> float:
        """Seconds that a wait for the first byte of a response may take now."""
        return self._first_byte - self._now()

    def until_next_byte(self) -> float:
        """Seconds that a wait for a further byte may take now."""
        return min(self._limits.between, self.left)
