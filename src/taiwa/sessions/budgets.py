"""Budgets and rates that a store holds for all runs: of a conversation, a caller and a day, checked before anything is sent."""

from dataclasses import dataclass, replace

from taiwa.kernel.errors import LimitError, RateLimitError
from taiwa.kernel.text import plural
from taiwa.store import Store
from taiwa.store.runs import SpendingLimit

DAY, MINUTE = 86_400_000_000, 60_000_000
"""In microseconds."""


class BudgetError(LimitError):
    """The daily budget is spent, or would be by the next call; `retry_after` is the number of seconds to the next day (UTC)."""

    tag = "budget"
    details = (*LimitError.details, "retry_after")

    def __init__(self, spent: int, bound: int, retry_after: int, needed: int = 0) -> None:
        super().__init__("cost per day", spent / 1e9, bound / 1e9, needed / 1e9)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one owner of a store.

    - `max_cost`: per day (UTC), in billionths of the currency unit. `rate`: answers per minute.
    """

    store: Store
    max_cost: int | None = None
    rate: int | None = None

    def check(self) -> None:
        """Check that another answer may be begun.

        Raises:
            RateLimitError: the rate of the last minute is reached. BudgetError: the daily budget is spent.
        """
        now = self.store.now()
        if self.rate is not None:
            first = self.store.runs.begun_before_last(self.rate, now - MINUTE) if self.rate else now
            if first is not None:
                wait = min(max(first + MINUTE - now, 0), MINUTE) / 1e6
                raise RateLimitError(
                    f"this key may begin {plural(self.rate, 'answer')} in a minute; wait", retry_after=wait
                )
        if self.max_cost is not None and (spent := self.store.runs.spent_since(start_of_day(now))) >= self.max_cost:
            raise BudgetError(spent, self.max_cost, _seconds_left(now))

    def left(self) -> tuple[int, float] | None:
        """Return how many answers may be begun now, and the seconds until none counts any more; None without a rate.

        Answers that were begun later than now, because the clock was set back, count for a minute from now on.
        """
        if self.rate is None:
            return None
        now = self.store.now()
        count, last = self.store.runs.begun_since(now - MINUTE)
        if last is not None and last > now:
            self.store.runs.set_back(now)
            last = now
        return max(self.rate - count, 0), 0.0 if last is None else max((last + MINUTE - now) / 1e6, 0.0)

    def admit(self) -> None:
        """Check as `check`, within the transaction that begins a run, so that concurrent runs see each other.

        Raises:
            RateLimitError, BudgetError: as `check`.
        """
        self.store.runs.lock()
        self.check()


@dataclass(frozen=True, slots=True)
class StoredBudget:
    """The limits on cost that the store checks for the calls of a run: of its conversation, of its owner's day, and of the day
    of all owners. A call that was abandoned keeps its reservation, because its cost is not known.
    """

    store: Store
    run: int
    limits: tuple[SpendingLimit, ...]

    def reserve(self, least: int, most: int) -> int | LimitError:
        """Reserve what is left for a call; see `Budget.reserve`."""
        now = self.store.now()
        found = self.store.runs.reserve(self.run, least, most, self._limits(now))
        if isinstance(found, int):
            return found
        spent, bound = found.spent, found.limit.bound
        if found.limit.scope == "conversation":
            return LimitError("cost of the conversation", spent / 1e9, bound / 1e9, least / 1e9)
        return BudgetError(spent, bound, _seconds_left(now), least)

    def settle(self, reserved: int, cost: int | None) -> bool:
        """Give back a reservation if the cost of the call is known; see `Budget.settle`."""
        if cost is None:
            return False
        self.store.runs.give_back(self.run, reserved)
        return cost > reserved and self.store.runs.exceeded(self.run, self._limits(self.store.now()))

    def _limits(self, now: int) -> tuple[SpendingLimit, ...]:
        day = start_of_day(now)
        return tuple(limit if limit.scope == "conversation" else replace(limit, since_us=day) for limit in self.limits)


def start_of_day(now: int) -> int:
    """Return the start of the day of a time (UTC), in microseconds since 1970."""
    return now - now % DAY


def _seconds_left(now: int) -> int:
    return (DAY - now % DAY) // 1_000_000 + 1
