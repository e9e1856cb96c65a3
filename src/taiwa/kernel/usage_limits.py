"""Prices, usage limits and the usage of a run. One ledger is shared by all strands of a run.

An unknown price is `None`, never zero.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from taiwa.kernel.errors import ConfigError, InputError, LimitError, TaiwaError
from taiwa.kernel.messages import Request, Response, Text, Thinking, Usage
from taiwa.kernel.serialization import digest, record, value

Price: TypeAlias = Callable[[str, Usage], int | None]
"""The cost of a call in billionths of the currency unit, from the model's name and usage; None if the price is unknown."""


def currency_units(nano: int | None) -> Decimal | None:
    """Convert a cost from billionths of the currency unit to units; None if it is unknown."""
    return None if nano is None else Decimal(nano) / 10**9


def format_cost(cost_nano: int | None) -> str:
    """Write a cost for display.

    >>> format_cost(1_234_000), format_cost(0), format_cost(None)
    ('0.001234 USD', '0 USD', 'unknown')
    """
    cost = currency_units(cost_nano)
    if cost is None:
        return "unknown"
    text = f"{cost:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} USD"


NANO_PER_MILLION = 1000
"""The cost of one token, in billionths of a unit, at a rate of one unit per million tokens."""


def check_number(name: str, number: object, *, is_whole: bool = False) -> None:
    """Check that an argument is a number, zero or more, or the text of one.

    Raises:
        InputError: it is not.
    """
    try:
        found = Decimal(str(number))
    except InvalidOperation:
        found = Decimal("NaN")
    fits = isinstance(number, int) or not is_whole
    if isinstance(number, bool) or not fits or not found.is_finite() or found < 0:
        raise InputError(f"{name} must be a {'whole ' if is_whole else ''}number, zero or more, got {number!r}")


@value(tag="prices")
class Prices:
    """Currency units per million tokens, as decimal text; an empty cache rate equals the input rate.

    Raises:
        InputError: a rate is not a number, or negative.
    """

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    currency: str = "USD"

    def __init__(
        self,
        input: str,  # noqa: A002  (the word for it)
        output: str,
        cache_read: str = "",
        cache_write: str = "",
        currency: str = "USD",
    ) -> None:
        # Checked here, because the first cost is computed only after the first call was paid for.
        rates = {"input": input, "output": output, "cache_read": cache_read, "cache_write": cache_write}
        for name, rate in rates.items():
            if rate != "" or name in ("input", "output"):
                check_number(name, rate)
            object.__setattr__(self, name, str(rate))
        object.__setattr__(self, "currency", currency)

    @property
    def id(self) -> str:
        """The name of these prices in the records of costs."""
        return digest(self)[:12]

    def cost(self, usage: Usage) -> int:
        """Return the cost of a call in billionths of the currency unit."""
        fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        total = (
            max(fresh, 0) * Decimal(self.input)
            + usage.cache_read_tokens * Decimal(self.cache_read or self.input)
            + usage.cache_write_tokens * Decimal(self.cache_write or self.input)
            + usage.output_tokens * Decimal(self.output)
        )
        return int((total * NANO_PER_MILLION).to_integral_value())


FREE = Prices("0", "0")


@value(tag="usage-limits")
class UsageLimits:
    """The limits of a run; None means no limit. `cost` is in billionths of the currency unit."""

    requests: int | None = 50
    tool_calls: int | None = 50
    output_tokens: int | None = None
    cost: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a call or a conversation; None means no limit.

    - `cost`: in the currency unit of the prices, best as text or Decimal: `"0.05"`.
    - `calls`: model calls; `tool_calls`: tool calls.
    - `tokens`: tokens that the model writes.
    - `seconds`: wall-clock time.

    >>> Limits(cost="0.05", calls=3).usage_limits.cost
    50000000

    Raises:
        InputError: a limit is not a number, or negative.
    """

    cost: Decimal | str | float | None = None
    calls: int | None = 50
    tokens: int | None = None
    seconds: float | None = None
    tool_calls: int | None = 50

    def __post_init__(self) -> None:
        for name in ("cost", "calls", "tokens", "seconds", "tool_calls"):
            number = getattr(self, name)
            if number is not None:
                check_number(name, number, is_whole=name in ("calls", "tokens", "tool_calls"))

    @property
    def usage_limits(self) -> UsageLimits:
        """The limits as a ledger counts them, with the cost in billionths."""
        cost = None if self.cost is None else int(Decimal(str(self.cost)) * 10**9)
        return UsageLimits(self.calls, self.tool_calls, self.tokens, cost, self.seconds)


@value(tag="run-usage")
class RunUsage:
    """The usage of a run. `cost` is None if a price or a usage is unknown; `calls_without_usage` counts such calls.

    `estimated` bounds the usage of calls that were cut, and `max_cost` the cost of all calls; None if no bound is known.
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
    """Counts the usage of one run and refuses calls beyond its limits."""

    def __init__(
        self,
        limits: UsageLimits,
        model: str = "",
        price: Price | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        names: frozenset[str] = frozenset(),
    ) -> None:
        self.limits = limits
        self._counted = RunUsage()
        self._model = model
        self._names = names
        self._price = price
        self._clock = clock
        self._started = clock()

    @property
    def spent(self) -> RunUsage:
        """The usage so far."""
        return replace(self._counted, seconds=self._clock() - self._started)

    def add(self, usage: RunUsage) -> None:
        """Count more usage."""
        self._counted += usage

    def now(self) -> float:
        """Return the time of the clock of this run, in seconds."""
        return self._clock()

    def remaining(self) -> float | None:
        """Return the seconds left, or None without a time limit."""
        bound = self.limits.seconds
        return None if bound is None else self._started + bound - self._clock()

    def time_error(self) -> LimitError | None:
        """Return the error of a run that has reached its time limit."""
        left = self.remaining()
        if left is None or left > 0:
            return None
        bound = self.limits.seconds or 0.0
        return LimitError("seconds", round(bound - left, 3), bound)

    def start_request(self) -> TaiwaError | None:
        """Count a model call, or return the error of the limit that forbids it."""
        limits, counted = self.limits, self._counted
        if limits.requests is not None and counted.requests >= limits.requests:
            return LimitError("requests", counted.requests, limits.requests)
        written = counted.usage.output_tokens + counted.estimated.output_tokens
        if limits.output_tokens is not None and written >= limits.output_tokens:
            return LimitError("output_tokens", written, limits.output_tokens)
        error: TaiwaError | None = self.time_error() if limits.seconds is not None else None
        if limits.cost is not None:
            error = error or self._cost_error(limits.cost)
        if error is None:
            self.add(RunUsage(requests=1))
        return error

    def _cost_error(self, bound: int) -> TaiwaError | None:
        unpriced = next((name for name in (self._model, *self._names) if self._quote(Usage(), name) is None), None)
        if unpriced is not None:
            return ConfigError(
                f"the price of {unpriced} is unknown, so the cost limit cannot be checked; set it in `prices`"
            )
        most = self._counted.max_cost
        if most is None:
            return ConfigError(
                f"{self._model} did not report the usage of a call, so the cost limit can no longer be checked"
            )
        return LimitError("cost", most / 1e9, bound / 1e9) if most >= bound else None

    def start_tool_call(self) -> TaiwaError | None:
        """Count a tool call, or return the error of the limit that forbids it."""
        bound, made = self.limits.tool_calls, self._counted.tool_calls
        if bound is not None and made >= bound:
            return LimitError("tool_calls", made, bound)
        error = self.time_error()
        if error is None:
            self.add(RunUsage(tool_calls=1))
        return error

    def charge(self, response: Response) -> None:
        """Add the usage of a response."""
        if response.usage is None:
            self.charge_unknown(response.max_usage)
            return
        price = self._quote(response.usage, response.model)
        self.add(RunUsage(usage=response.usage, cost=price, max_cost=price))

    def charge_unknown(self, bound: Usage | None = None) -> None:
        """Add a call of unknown usage, at most `bound` if that is known."""
        most = None if bound is None else self._quote(bound)
        self.add(RunUsage(calls_without_usage=1, cost=None, estimated=bound or Usage(), max_cost=most))

    def _quote(self, usage: Usage, model: str = "") -> int | None:
        """Return the cost of a usage; a response of an unknown model is priced as the model of the run."""
        return None if self._price is None else self._price(model if model in self._names else self._model, usage)


def max_usage(request: Request, response: Response) -> Usage:
    """Bound the tokens of a request and of the received part of its answer by their bytes: a token has at least one.

    Images and PDFs are bounded by the maximum that providers count; see `Attachment.max_tokens`. Reasoning that the server
    does not return is not included.
    """
    received = "".join(part.text for part in response.message.parts if isinstance(part, (Text, Thinking)))
    return Usage(_max_input_tokens(request), _bytes(received))


def max_attempt_usage(request: Request) -> Usage | None:
    """Bound the tokens of an attempt without a received part; None if the request does not limit its answer."""
    most = request.sampling.max_tokens
    return None if most is None else Usage(_max_input_tokens(request), most)


def _max_input_tokens(request: Request) -> int:
    attached = sum(each.max_tokens for message in request.messages for each in message.attachments)
    return _bytes(json.dumps(record(request), ensure_ascii=False)) + attached


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
