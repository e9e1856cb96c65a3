"""What a run may spend and what it has spent. One ledger is shared by all strands of a run."""

import json
import time
from collections.abc import Callable
from typing import TypeAlias

from taiwa.kernel.errors import ConfigError, LimitError, TaiwaError
from taiwa.kernel.messages import Request, Response, Text, Thinking, Usage
from taiwa.kernel.records import record, value

__all__ = ["Price", "RunUsage", "UsageLedger", "UsageLimits", "max_output_tokens"]


Price: TypeAlias = Callable[[str, Usage], int | None]
"""The cost of a call in billionths of the currency unit, from the model's name and usage; None = not known."""


@value(tag="usage-limits")
class UsageLimits:
    """No program outruns these; None means no bound. `cost` is in billionths of the currency unit."""

    requests: int | None = 50
    tool_calls: int | None = 50
    output_tokens: int | None = None
    cost: int | None = None
    seconds: float | None = None


@value(tag="run-usage")
class RunUsage:
    """A bill. `cost` None means that some price or usage is not known; `calls_without_usage` counts calls without usage.

    Of those that were cut, `estimated` holds what they used at most, and `max_cost` is what all calls cost at most; None
    where not even that is known.
    """

    requests: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    calls_without_usage: int = 0
    cost: int | None = 0
    seconds: float = 0.0
    estimated: Usage = Usage()
    max_cost: int | None = 0

    def __add__(self, other: "RunUsage") -> "RunUsage":
        return RunUsage(
            self.requests + other.requests,
            self.tool_calls + other.tool_calls,
            self.usage + other.usage,
            self.calls_without_usage + other.calls_without_usage,
            _sum(self.cost, other.cost),
            self.seconds + other.seconds,
            self.estimated + other.estimated,
            _sum(self.max_cost, other.max_cost),
        )


class UsageLedger:
    """Keeps the bill of one run and says when a limit is reached."""

    __slots__ = (
        "_clock",
        "_model",
        "_price",
        "_started",
        "calls_without_usage",
        "cost",
        "estimated",
        "limits",
        "max_cost",
        "requests",
        "tool_calls",
        "usage",
    )

    def __init__(
        self,
        limits: UsageLimits,
        model: str = "",
        price: Price | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.requests = 0
        self.tool_calls = 0
        self.usage = Usage()
        self.calls_without_usage = 0
        self.cost: int | None = 0
        self.estimated = Usage()
        self.max_cost: int | None = 0
        self._model = model
        self._price = price
        self._clock = clock
        self._started = clock()

    @property
    def spent(self) -> RunUsage:
        """The bill so far."""
        elapsed = self._clock() - self._started
        known = (self.requests, self.tool_calls, self.usage, self.calls_without_usage, self.cost)
        return RunUsage(*known, elapsed, self.estimated, self.max_cost)

    def now(self) -> float:
        """The clock of this run, in seconds."""
        return self._clock()

    def remaining(self) -> float | None:
        """Seconds left, or None when time is not bounded."""
        bound = self.limits.seconds
        return None if bound is None else self._started + bound - self._clock()

    def late(self) -> LimitError | None:
        """The error of a run whose time is over."""
        left = self.remaining()
        if left is None or left > 0:
            return None
        bound = self.limits.seconds or 0.0
        return LimitError("seconds", round(bound - left, 3), bound)

    def refuse_request(self) -> TaiwaError | None:
        """Say why no further model call may start, or count it as started."""
        limits = self.limits
        if limits.requests is not None and self.requests >= limits.requests:
            return LimitError("requests", self.requests, limits.requests)
        written = self.usage.output_tokens + self.estimated.output_tokens
        if limits.output_tokens is not None and written >= limits.output_tokens:
            return LimitError("output_tokens", written, limits.output_tokens)
        refusal: TaiwaError | None = self.late() if limits.seconds is not None else None
        if limits.cost is not None:
            refusal = refusal or self._refuse_cost(limits.cost)
        if refusal is None:
            self.requests += 1
        return refusal

    def _refuse_cost(self, bound: int) -> TaiwaError | None:
        if self._price is None or self._price(self._model, Usage()) is None:
            return ConfigError(f"no price is known for {self._model}, so a cost limit cannot hold; set one in `prices`")
        if self.max_cost is None:
            return ConfigError(
                f"{self._model} did not report the usage of a call, so a cost limit cannot hold any longer"
            )
        return LimitError("cost", self.max_cost / 1e9, bound / 1e9) if self.max_cost >= bound else None

    def refuse_tool_call(self) -> TaiwaError | None:
        """Say why no further tool call may start, or count it as started."""
        bound = self.limits.tool_calls
        if bound is not None and self.tool_calls >= bound:
            return LimitError("tool_calls", self.tool_calls, bound)
        refusal = self.late()
        if refusal is None:
            self.tool_calls += 1
        return refusal

    def charge(self, response: Response) -> None:
        """Put a response on the bill."""
        if response.usage is None:
            self.charge_unknown(response.at_most)
            return
        self.usage = self.usage + response.usage
        price = self._quote(response.usage)
        self.cost, self.max_cost = _sum(self.cost, price), _sum(self.max_cost, price)

    def charge_unknown(self, at_most: Usage | None = None) -> None:
        """Put a call on the bill whose usage nobody will tell; `at_most` is what is known of it all the same."""
        self.calls_without_usage += 1
        self.cost = None
        self.estimated = self.estimated + (at_most or Usage())
        self.max_cost = _sum(self.max_cost, None if at_most is None else self._quote(at_most))

    def _quote(self, usage: Usage) -> int | None:
        return None if self._price is None else self._price(self._model, usage)


def max_output_tokens(request: Request, response: Response) -> Usage:
    """More tokens than a request and what was received of its answer can be: a token is at least one byte of them.

    Reasoning that a server hides altogether is not in it.
    """
    sent = json.dumps(record(request), ensure_ascii=False)
    received = "".join(part.text for part in response.message.parts if isinstance(part, (Text, Thinking)))
    return Usage(_bytes(sent), _bytes(received))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
