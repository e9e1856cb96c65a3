"""What a caller of a server may spend in a day and begin in a minute, judged by the store before anything is sent."""

from dataclasses import dataclass

from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import ConfigError, LimitError, RateLimitError
from taiwa.kernel.execution import EffectStarted, Event, Observer
from taiwa.kernel.messages import Message, Request, Response, Usage
from taiwa.kernel.usage_limits import Price, max_attempt_usage, max_usage
from taiwa.store import Store

DAY, MINUTE = 86_400_000_000, 60_000_000
"""In microseconds."""
ANSWER = 4_096
"""Tokens of an answer that is reserved for where the request does not limit it."""


class BudgetError(LimitError):
    """The budget of a day is spent, or would be by the next call; `retry_after` are the seconds to the next day (UTC)."""

    tag = "budget"

    def __init__(self, spent: int, bound: int, retry_after: int) -> None:
        super().__init__("cost per day", spent / 1e9, bound / 1e9)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one owner of a store.

    - `max_cost`: of a day (UTC), in billionths of the currency unit. `rate`: answers that may be begun in a minute.
    """

    store: Store
    max_cost: int | None = None
    rate: int | None = None

    def check(self) -> None:
        """Check that another answer may be begun.

        Raises:
            RateLimitError: as many as may be were begun in the last minute.
            BudgetError: the budget of the day is spent.
        """
        now = self.store.now()
        first = now if self.rate == 0 else None
        if self.rate:
            first = self.store.runs.begun_before_last(self.rate, now - MINUTE)
        if first is not None:
            wait = (first + MINUTE - now) / 1e6
            raise RateLimitError(f"this key may begin {self.rate} answers in a minute; wait", retry_after=max(wait, 0))
        if self.max_cost is not None and (spent := self.store.runs.spent_since(start_of_day(now))) >= self.max_cost:
            raise BudgetError(spent, self.max_cost, _seconds_left(now))

    def admit(self) -> None:
        """Check as `check`, within the transaction that begins a run: of two that begin at the same time each sees the other.

        Raises:
            RateLimitError, BudgetError: as `check`.
        """
        self.store.runs.lock()
        self.check()

    def observer(self, run: int, model: str, price: Price) -> Observer:
        """Return the observer that reserves what a call of a run may cost at most, before it is made."""

        def observe(event: Event) -> None:
            if self.max_cost is not None and isinstance(event, EffectStarted) and isinstance(event.effect, Complete):
                self._reserve(run, _most(event.effect.request), model, price, self.max_cost)

        return observe

    def _reserve(self, run: int, usage: Usage, model: str, price: Price, bound: int) -> None:
        most = price(model, usage)
        if most is None:
            raise ConfigError(
                f"the price of {model} is unknown, so the budget of a caller cannot be checked; set it in `prices`"
            )
        now = self.store.now()
        spent = self.store.runs.reserve(run, most, start_of_day(now), bound)
        if spent is not None:
            raise BudgetError(spent, bound, _seconds_left(now))


def _most(request: Request) -> Usage:
    """Bound the tokens of a call; an answer that is not limited counts as `ANSWER` tokens."""
    limited = max_attempt_usage(request)
    nothing = Response(Message("assistant", ()))
    return limited or max_usage(request, nothing) + Usage(0, ANSWER)


def start_of_day(now: int) -> int:
    """Return when the day of a time began (UTC), in microseconds since 1970."""
    return now - now % DAY


def _seconds_left(now: int) -> int:
    return (DAY - now % DAY) // 1_000_000 + 1
