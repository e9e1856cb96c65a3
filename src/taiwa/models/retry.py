"""Which failed calls are tried again, and after what wait: pure, so that tests need no clock."""

from dataclasses import dataclass

from taiwa.kernel.errors import (
    ModelError,
    OverloadedError,
    RateLimitError,
    TimeoutError,
)

__all__ = ["Retry"]

PASSING = (RateLimitError, OverloadedError, TimeoutError)
NEVER = frozenset({501, 505, 507, 508, 510, 511})
"""Answers of the 5xx class that will be the same tomorrow."""
SPREAD = 0.1
"""How far a wait that the server asked for is stretched at most, so that not all clients come back in one moment."""


@dataclass(frozen=True, slots=True)
class Retry:
    """At most `attempts` calls in all; waits double from `base` up to `cap` seconds.

    A wait that the server asks for is obeyed whatever its length, as long as the call's deadline allows it.
    """

    attempts: int = 3
    base: float = 0.5
    cap: float = 30.0

    def decide(
        self, error: ModelError, attempt: int, left: float, random: float, asked: float | None = None
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up.

        `attempt` counts the calls made so far, `left` is what remains of the call's time, `random` is drawn from
        [0, 1), `asked` is the wait that the server asked for (a `RateLimitError` brings its own).
        """
        if attempt >= self.attempts or not isinstance(error, PASSING) or error.status in NEVER:
            return None
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            asked = error.retry_after
        if asked is not None:
            wait = asked * (1 + SPREAD * random)
        else:
            # half of the wait is fixed: full jitter may call again at once, which is no relief to a busy server
            wait = min(self.cap, self.base * 2.0 ** min(attempt - 1, 60)) * (0.5 + random / 2)
        return wait if wait < left else None
