"""What calls cost. A price that nobody gave is unknown, which is never the same as nothing.

Rates are set by the user (`prices` in the config file), in currency units per million tokens, because they change more often
than programs do. A model behind a loopback address costs nothing per token.
"""

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from taiwa.kernel.records import digest, value
from taiwa.kernel.values import Usage

__all__ = ["FREE", "Rates", "money", "price_list"]

NANO_PER_MILLION = 1000
"""Billionths of a unit that one token costs at a rate of one unit per million tokens."""


@value
class Rates:
    """Currency units per million tokens; a cached rate that is not given equals the input rate. Written as decimal text."""

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    currency: str = "USD"

    @property
    def id(self) -> str:
        """Names these rates on a bill."""
        return digest(self)[:12]

    def cost(self, usage: Usage) -> int:
        """The cost of a call in billionths of the currency unit."""
        fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        total = (
            max(fresh, 0) * Decimal(self.input)
            + usage.cache_read_tokens * Decimal(self.cache_read or self.input)
            + usage.cache_write_tokens * Decimal(self.cache_write or self.input)
            + usage.output_tokens * Decimal(self.output)
        )
        return int((total * NANO_PER_MILLION).to_integral_value())


FREE = Rates("0", "0")


def price_list(prices: Mapping[str, Mapping[str, object]], model: str, *, local: bool = False) -> Rates | None:
    """Find the rates of a model: its own name first, then the longest pattern (`openai:gpt-*`) that fits."""
    fitting = [pattern for pattern in prices if fnmatchcase(model, pattern)]
    if not fitting:
        return FREE if local else None
    chosen = prices[model if model in prices else max(fitting, key=len)]
    given = {name: str(rate) for name, rate in chosen.items()}
    return Rates(
        given.get("input", "0"),
        given.get("output", "0"),
        given.get("cache_read", ""),
        given.get("cache_write", ""),
        given.get("currency", "USD"),
    )


def money(cost_nano: int | None, currency: str = "USD") -> str:
    """Write a cost for people.

    >>> money(1_234_000), money(0), money(None)
    ('0.001234 USD', '0 USD', 'unknown')
    """
    if cost_nano is None:
        return "unknown"
    text = f"{Decimal(cost_nano) / 10**9:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {currency}"
