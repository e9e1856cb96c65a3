"""Prices, usage limits, budgets and the usage of a run. One ledger is shared by all strands of a run.

A model call is priced before it is made: its input is estimated upwards, its output is bounded by `max_tokens`, which is
lowered to what the limits leave. The price is reserved, and replaced by the cost when the answer has ended.

An unknown price is `None`, never zero.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from threading import Lock
from typing import Protocol, TypeAlias

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConfigError, InputError, LimitError, TaiwaError
from taiwa.kernel.messages import Message, Request, Response, Text, Thinking, Usage
from taiwa.kernel.serialization import digest, record, value
from taiwa.kernel.text import most_tokens, plural

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

    They apply to calls of at most `max_input` input tokens, 0 for any; the price of a longer call is unknown.

    Raises:
        InputError: a rate is not a number, or negative.
    """

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    currency: str = "USD"
    max_input: int = 0

    def __init__(
        self,
        input: str,  # noqa: A002  (the word for it)
        output: str,
        cache_read: str = "",
        cache_write: str = "",
        currency: str = "USD",
        max_input: int = 0,
    ) -> None:
        # Checked here, because the first cost is computed only after the first call was paid for.
        rates = {"input": input, "output": output, "cache_read": cache_read, "cache_write": cache_write}
        for name, rate in rates.items():
            if rate != "" or name in ("input", "output"):
                check_number(name, rate)
            object.__setattr__(self, name, str(rate))
        object.__setattr__(self, "currency", currency)
        object.__setattr__(self, "max_input", max_input)

    @property
    def id(self) -> str:
        """The name of these prices in the records of costs."""
        return _id_of(self)

    def cost(self, usage: Usage) -> int | None:
        """Return the cost of a call in billionths of the currency unit; None if its input is longer than the prices apply to."""
        if self.max_input and usage.input_tokens > self.max_input:
            return None
        fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        total = (
            max(fresh, 0) * Decimal(self.input)
            + usage.cache_read_tokens * Decimal(self.cache_read or self.input)
            + usage.cache_write_tokens * Decimal(self.cache_write or self.input)
            + usage.output_tokens * Decimal(self.output)
        )
        return int((total * NANO_PER_MILLION).to_integral_value())


@lru_cache(64)
def _id_of(prices: Prices) -> str:
    return digest(prices)[:12]


FREE = Prices("0", "0")
NO_USAGE = Usage()


@value(tag="usage-limits")
class UsageLimits:
    """The limits of a run; None means no limit. Costs are in billionths of the currency unit.

    `cost` is what the run may cost, or the turns of an opened session together. `call_cost` is what one model call may cost,
    and `conversation_cost` and `day_cost` what the calls of the conversation, and of the day (UTC) in its store, may cost.
    """

    requests: int | None = 50
    tool_calls: int | None = 50
    output_tokens: int | None = None
    cost: int | None = None
    seconds: float | None = None
    call_cost: int | None = None
    conversation_cost: int | None = None
    day_cost: int | None = None

    @lru_cache(maxsize=64)  # noqa: B019  (of values, few in a program)
    def under(self, others: "UsageLimits") -> "UsageLimits":
        """Return these limits, none of them above the other ones.

        >>> UsageLimits(cost=5, day_cost=9).under(UsageLimits(None, None, cost=7, day_cost=8))
        UsageLimits(requests=50, tool_calls=50, output_tokens=None, cost=5, seconds=None, call_cost=None, conversation_cost=None, day_cost=8)
        """
        pairs = ((each.name, getattr(self, each.name), getattr(others, each.name)) for each in fields(self))
        given = ((name, [limit for limit in pair if limit is not None]) for name, *pair in pairs)
        return UsageLimits(**{name: min(limits, default=None) for name, limits in given})


COST_FIELDS = {"": "cost", "/call": "call_cost", "/conversation": "conversation_cost", "/day": "day_cost"}


def format_cost_limits(limits: UsageLimits) -> str:
    """Write limits on cost as the setting `max_cost`.

    >>> format_cost_limits(UsageLimits(cost=50_000_000, day_cost=2 * 10**9))
    '0.05, 2/day'
    """
    costs = ((per, currency_units(getattr(limits, name))) for per, name in COST_FIELDS.items())
    return ", ".join(f"{cost.normalize():f}{per}" for per, cost in costs if cost is not None)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a call or a conversation; None means no limit.

    - `cost`: of a call of the client, or of the turns of an opened session together; in the currency unit of the prices,
      best as text or Decimal: `"0.05"`. `call_cost`: of one model call. `conversation_cost`: of all turns of a
      conversation. `day_cost`: of everything in the store in a day (UTC).
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
    call_cost: Decimal | str | float | None = None
    conversation_cost: Decimal | str | float | None = None
    day_cost: Decimal | str | float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            number = getattr(self, each.name)
            if number is not None:
                check_number(each.name, number, is_whole=each.name in ("calls", "tokens", "tool_calls"))

    @property
    def usage_limits(self) -> UsageLimits:
        """The limits as a ledger counts them, with costs in billionths."""
        costs = (self.cost, self.call_cost, self.conversation_cost, self.day_cost)
        run, call, conversation, day = (None if cost is None else int(Decimal(str(cost)) * 10**9) for cost in costs)
        return UsageLimits(self.calls, self.tool_calls, self.tokens, run, self.seconds, call, conversation, day)


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

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows: the bill on one line."""
        tokens = f"{self.usage.input_tokens:,} in + {self.usage.output_tokens:,} out tokens"
        if self.calls_without_usage:
            tokens += f" ({plural(self.calls_without_usage, 'call')} not reported)"
        return f"{plural(self.requests, 'call')} · {tokens} · cost {format_cost(self.cost)} · {self.seconds:.2f} s"


def usage_of(error: BaseException) -> RunUsage:
    """Return the usage of the run that an error ended; an empty one if it has none."""
    spent = getattr(error, "spent", None)
    return spent if isinstance(spent, RunUsage) else RunUsage()


def check_cost(spent: RunUsage, limit: int | None) -> None:
    """Check that several runs may go on under a limit on their cost.

    Raises:
        LimitError: the limit is reached.
        ConfigError: what they have cost is unknown.
    """
    if limit is None:
        return
    if spent.max_cost is None:
        raise ConfigError("the cost of a call is unknown, so the cost limit can no longer be checked")
    if spent.max_cost >= limit:
        raise LimitError("cost", spent.max_cost / 1e9, limit / 1e9)


ANSWER_TOKENS = 16_384
"""The most tokens of an answer under a limit of cost or of output tokens, if its request sets no maximum."""
LEAST_ANSWER_TOKENS = 16
"""An answer for which a limit of cost leaves fewer tokens is not requested."""


class Budget(Protocol):
    """Money that runs share; amounts are in billionths of the currency unit."""

    def reserve(self, least: int, most: int) -> int | LimitError:
        """Reserve what is left for a call, at least `least` and at most `most`; return the amount, or why there is too little."""

    def settle(self, reserved: int, cost: int | None) -> bool:
        """Replace a reservation by the cost of its call; if that is unknown, the reservation stays. Return whether the budget
        is exceeded.
        """


class SharedBudget:
    """The budget of several runs of this process.

    >>> budget = SharedBudget(100)
    >>> budget.reserve(10, 80), budget.reserve(10, 80), budget.settle(80, 30), budget.reserve(10, 80)
    (80, 20, False, 50)
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._lock = Lock()
        self._used = 0

    @property
    def used(self) -> int:
        """The cost of the calls so far, and what is reserved for others."""
        return self._used

    def reserve(self, least: int, most: int) -> int | LimitError:
        """As `Budget.reserve`."""
        with self._lock:
            left = self.bound - self._used
            if left < least:
                return LimitError("cost", self._used / 1e9, self.bound / 1e9, least / 1e9)
            reserved = min(most, left)
            self._used += reserved
            return reserved

    def settle(self, reserved: int, cost: int | None) -> bool:
        """As `Budget.settle`."""
        with self._lock:
            self._used += 0 if cost is None else cost - reserved
            return self._used > self.bound


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is reserved for a model call that the limits admit.

    `usage` and `cost` bound the call if it `is_limited`; `granted` is what each budget has reserved. `sets_tokens` says that
    the request had no maximum of its own, `is_lowered` that a limit left less than it asked for.
    """

    usage: Usage = NO_USAGE
    cost: int = 0
    granted: tuple[int, ...] = ()
    is_limited: bool = False
    sets_tokens: bool = False
    is_lowered: bool = False

    @property
    def max_tokens(self) -> int | None:
        """The maximum that the limits set for the answer; None if the request keeps its own."""
        return self.usage.output_tokens if self.sets_tokens or self.is_lowered else None

    def most_usage(self, request: Request) -> Usage | None:
        """Return a bound on the usage of the call; None if it is unlimited."""
        return self.usage if self.is_limited else max_attempt_usage(request)


@dataclass(frozen=True, slots=True)
class Billing:
    """What the calls of a run cost. `budgets` are shared with other runs; the limit on cost includes `earlier_cost`, that of earlier runs."""

    price: Price | None = None
    budgets: Iterable[Budget] = ()
    earlier_cost: int = 0


NO_BILLING = Billing()


class UsageLedger:
    """Counts the usage of one run, reserves what its calls may cost, and refuses calls beyond its limits."""

    def __init__(
        self,
        limits: UsageLimits,
        model: str = "",
        billing: Billing = NO_BILLING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self._counted = RunUsage()
        self._model = model
        self._price, self._budgets, self._earlier_cost = billing.price, tuple(billing.budgets), billing.earlier_cost
        self._clock = clock
        self._started = clock()
        self._open = 0
        self._reserved_tokens = 0
        self._reserved_cost = 0
        self._most_tokens = ANSWER_TOKENS

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

    def start_request(self, request: Request) -> Reservation | TaiwaError | None:
        """Count a model call and reserve what it may cost; return the error of the limit that forbids it.

        None means that the call must wait until another one of this run has ended, which may leave enough for it.
        """
        admitted = self._request_error() or self._admit(request)
        if isinstance(admitted, Reservation):
            self.add(RunUsage(requests=1))
            self._hold(admitted)
        return admitted

    def _request_error(self) -> LimitError | None:
        bound, made = self.limits.requests, self._counted.requests
        return self.time_error() if bound is None or made < bound else LimitError("requests", made, bound)

    def _admit(self, request: Request) -> Reservation | TaiwaError | None:
        limits_cost = self.limits.cost is not None or self.limits.call_cost is not None or bool(self._budgets)
        if not limits_cost and self.limits.output_tokens is None:
            return Reservation()
        own = request.sampling.max_tokens
        wanted = own or self._most_tokens
        tokens = wanted if self.limits.output_tokens is None else self._tokens_left(wanted, self.limits.output_tokens)
        if not isinstance(tokens, int):
            return tokens
        usage = Usage(estimate_input(request))
        granted: tuple[int, ...] = ()
        sets_tokens = own is None
        if limits_cost:
            # A model whose answers cost nothing, as one on this machine, needs no maximum for its cost.
            sets_tokens = own is None and self._quote(Usage(0, 10**6)) != 0
            reserved = self._reserve(usage.input_tokens, tokens)
            if not isinstance(reserved, tuple):
                return reserved
            tokens, granted = reserved
        usage = replace(usage, output_tokens=tokens)
        cost = self._most_price(usage.input_tokens, tokens) or 0
        return Reservation(usage, cost, granted, True, sets_tokens, tokens < wanted)

    def _tokens_left(self, wanted: int, bound: int) -> int | LimitError | None:
        written = self._counted.usage.output_tokens + self._counted.estimated.output_tokens
        left = bound - written - self._reserved_tokens
        # An open call may leave more than was reserved for it.
        if left < wanted and self._open:
            return None
        return LimitError("output_tokens", written, bound) if left <= 0 else min(left, wanted)

    def _reserve(self, read: int, wanted: int) -> tuple[int, tuple[int, ...]] | TaiwaError | None:
        """Return the output tokens that the limits of cost leave, with what the budgets have reserved for them."""
        least = min(wanted, LEAST_ANSWER_TOKENS)
        least_cost, most_cost = (self._most_price(read, tokens) for tokens in (least, wanted))
        counted = self._counted.max_cost
        if least_cost is None or most_cost is None:
            return ConfigError(
                f"the price of {self._model} is unknown, so the cost limit cannot be checked; set it in `prices`, or fetch a "
                "table: taiwa prices update"
            )
        if counted is None:  # a call of a resumed run that was made without a limit
            return ConfigError(
                f"{self._model} did not report the usage of a call, so the cost limit can no longer be checked"
            )
        cost = most_cost
        if (bound := self.limits.cost) is not None:
            used = self._earlier_cost + counted + self._reserved_cost
            # An open call mostly gives a part of its reservation back, so this one waits before it is cut or refused.
            if used + most_cost > bound and self._open:
                return None
            if used + least_cost > bound:
                return LimitError("cost", used / 1e9, bound / 1e9, least_cost / 1e9)
            cost = min(cost, bound - used)
        if (bound := self.limits.call_cost) is not None:
            if least_cost > bound:
                return LimitError("cost of a call", 0, bound / 1e9, least_cost / 1e9)
            cost = min(cost, bound)
        granted: list[int] = []
        for budget in self._budgets:
            # Beside open calls all or nothing: what they give back may be enough for an answer of full length.
            reserved = budget.reserve(cost if self._open else least_cost, cost)
            if isinstance(reserved, LimitError):
                self._give_back(granted)
                return None if self._open else reserved
            granted.append(reserved)
            cost = reserved
        for number, budget in enumerate(self._budgets):
            if granted[number] > cost:  # another one has less left
                budget.settle(granted[number] - cost, 0)
                granted[number] = cost
        return self._affordable(read, wanted, cost), tuple(granted)

    def _affordable(self, read: int, wanted: int, cost: int) -> int:
        """Return how many output tokens a call may have for a cost, at most `wanted`."""
        # By bisection, since a price may be any function of the tokens that does not fall.
        low, high = 0, wanted
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if (self._most_price(read, middle) or 0) <= cost else (low, middle - 1)
        return low

    def _hold(self, reservation: Reservation) -> None:
        self._open += 1
        self._reserved_tokens += reservation.usage.output_tokens
        self._reserved_cost += reservation.cost

    def _release(self, reservation: Reservation) -> None:
        self._open -= 1
        self._reserved_tokens -= reservation.usage.output_tokens
        self._reserved_cost -= reservation.cost

    def _give_back(self, granted: Iterable[int]) -> None:
        for budget, reserved in zip(self._budgets, granted, strict=False):
            budget.settle(reserved, 0)

    def shrink(self, reservation: Reservation) -> Reservation | None:
        """Halve the maximum that a server refused though the request had none of its own; None if it cannot be halved."""
        tokens = reservation.usage.output_tokens // 2
        if not reservation.sets_tokens or tokens < LEAST_ANSWER_TOKENS:
            return None
        # Later calls of this run would be refused in the same way.
        self._most_tokens = min(self._most_tokens, tokens)
        self._reserved_tokens -= reservation.usage.output_tokens - tokens
        return replace(reservation, usage=replace(reservation.usage, output_tokens=tokens))

    def repeat_request(self, reservation: Reservation, request: Request) -> Reservation | TaiwaError:
        """Count an attempt that may have been charged, and reserve the same for the next one."""
        self.settle_unknown(reservation, request)
        bound, cost = self.limits.cost, reservation.cost
        error = self._request_error()
        if error is None and bound is not None:
            used = self._earlier_cost + (self._counted.max_cost or 0) + self._reserved_cost
            error = LimitError("cost", used / 1e9, bound / 1e9, cost / 1e9) if used + cost > bound else None
        granted: list[int] = []
        for budget in self._budgets if error is None else ():
            reserved = budget.reserve(cost, cost)
            if isinstance(reserved, LimitError):
                self._give_back(granted)
                error = reserved
                break
            granted.append(reserved)
        if error is not None:
            return error
        again = replace(reservation, granted=tuple(granted))
        self.add(RunUsage(requests=1))
        self._hold(again)
        return again

    def start_tool_call(self) -> TaiwaError | None:
        """Count a tool call, or return the error of the limit that forbids it."""
        bound, made = self.limits.tool_calls, self._counted.tool_calls
        if bound is not None and made >= bound:
            return LimitError("tool_calls", made, bound)
        error = self.time_error()
        if error is None:
            self.add(RunUsage(tool_calls=1))
        return error

    def charge(self, response: Response) -> int | None:
        """Add the usage of a response; return its cost, None if it is unknown."""
        if response.usage is None:
            bound = response.max_usage
            most = None if bound is None else self._quote(bound)
            self.add(RunUsage(calls_without_usage=1, cost=None, estimated=bound or Usage(), max_cost=most))
            return None
        price = self._quote(response.usage)
        self.add(RunUsage(usage=response.usage, cost=price, max_cost=price))
        return price

    def settle(self, reservation: Reservation, response: Response) -> str:
        """Replace the reservation of a call by its usage; return a warning, or "".

        A usage that the server did not report counts as what was reserved, if no other bound is known.
        """
        self._release(reservation)
        # If it counted as nothing, a server that reports no usage would lift every limit.
        if response.usage is None and response.max_usage is None and reservation.is_limited:
            response = replace(response, max_usage=reservation.usage)
        cost = self.charge(response)
        exceeded = [budget.settle(each, cost) for budget, each in zip(self._budgets, reservation.granted, strict=True)]
        if not reservation.is_limited or cost is None or response.usage is None:
            return ""
        bound, most = self.limits.cost, self._counted.max_cost
        is_over = any(exceeded) or (bound is not None and most is not None and self._earlier_cost + most > bound)
        if cost > reservation.cost and (is_over or cost > (self.limits.call_cost or cost)):
            used, expected = response.usage, reservation.usage
            return (
                f"the cost limit is exceeded: the call cost {format_cost(cost)} instead of at most "
                f"{format_cost(reservation.cost)}, because the server counted {used.input_tokens:,} input and "
                f"{used.output_tokens:,} output tokens instead of at most {expected.input_tokens:,} and "
                f"{expected.output_tokens:,}"
            )
        if response.finish == "length" and (reservation.is_lowered or reservation.sets_tokens):
            why = (
                "a limit left no more" if reservation.is_lowered else "the most under a limit; set max_tokens for more"
            )
            return f"the answer was cut at {reservation.usage.output_tokens:,} tokens: {why}"
        return ""

    def settle_unknown(self, reservation: Reservation, request: Request) -> None:
        """Count a call whose usage is unknown as what was reserved; without limits, as what its request allows."""
        self.settle(
            reservation, Response(Message("assistant", ()), "interrupted", max_usage=reservation.most_usage(request))
        )

    def cancel(self, reservation: Reservation) -> None:
        """Give back the reservation of a call that was not charged."""
        self._release(reservation)
        self._give_back(reservation.granted)

    def _most_price(self, read: int, written: int) -> int | None:
        """Return the highest price of a call: writing its input to a cache may cost more than reading it."""
        costs = [self._quote(Usage(read, written, cache_write_tokens=cached)) for cached in (0, read)]
        return None if None in costs else max(cost for cost in costs if cost is not None)

    def _quote(self, usage: Usage) -> int | None:
        """Return the cost of a usage."""
        return None if self._price is None else self._price(self._model, usage)


FRAME_TOKENS = 20
"""Tokens that a chat template may add for a message, a tool or a schema."""


def estimate_input(request: Request) -> int:
    """Estimate the input tokens of a request upwards; see `most_tokens`.

    Images and PDFs count as the maximum that providers count.
    """
    texts = [request.prefix, *(_plain(tool) for tool in request.tools)]
    texts += [] if request.constraint is None else [_plain(request.constraint)]
    attached = 0
    for message in request.messages:
        for part in message.parts:
            attached += sum(each.max_tokens for each in getattr(part, "attachments", ()))
            if isinstance(part, Attachment) and part.kind is not None:
                attached += part.max_tokens
            elif isinstance(part, Attachment):
                texts.append(part.text)
            else:
                texts.append(part.text if isinstance(part, Text) else _plain(part))
    return attached + sum(map(most_tokens, texts)) + FRAME_TOKENS * (len(texts) + len(request.messages))


def _plain(part: object) -> str:
    return json.dumps(record(part), ensure_ascii=False)


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
    attached = sum(each.max_tokens for each in request.files)
    return _bytes(json.dumps(record(request), ensure_ascii=False)) + attached


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
