"""What calls cost. A price that nobody gave is unknown, which is never the same as nothing.

Rates are set by the user (`prices` in the config file), in currency units per million tokens, because they change more often
than programs do. A model behind a loopback address costs nothing per token.
"""

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Usage
from taiwa.kernel.records import digest, value

__all__ = ["FREE", "Prices", "find_prices", "format_cost"]


NANO_PER_MILLION = 1000
"""Billionths of a unit that one token costs at a rate of one unit per million tokens."""


@value(tag="prices")
class Prices:
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


FREE = Prices("0", "0")

RATES = frozenset({"input", "output", "cache_read", "cache_write"})


def find_prices(prices: Mapping[str, Mapping[str, object]], model: str, *, local: bool = False) -> Prices | None:
    """Find the rates of a model: its own name first, then the longest pattern (`openai:gpt-*`) that fits.

    Raises:
        ConfigError: the price of input or of output is missing, or one is no number.
    """
    fitting = [pattern for pattern in prices if fnmatchcase(model, pattern)]
    if not fitting:
        return FREE if local else None
    name = model if model in prices else max(fitting, key=len)
    given = {key: str(rate) for key, rate in prices[name].items()}
    for key in ("input", "output"):
        if key not in given:
            raise ConfigError(f"prices.{name} says nothing of {key!r}, and what is not known is not nothing: add it")
    for key in RATES.intersection(given):
        if not isinstance(prices[name][key], (Decimal, int, float)):
            raise ConfigError(f"prices.{name}.{key} must be a number such as 0.25, not {given[key][:40]!r}")
    more = {key: given[key] for key in ("cache_read", "cache_write", "currency") if key in given}
    return Prices(given["input"], given["output"], **more)


def format_cost(cost_nano: int | None, currency: str = "USD") -> str:
    """Write a cost for people.

    >>> format_cost(1_234_000), format_cost(0), format_cost(None)
    ('0.001234 USD', '0 USD', 'unknown')
    """
    if cost_nano is None:
        return "unknown"
    text = f"{Decimal(cost_nano) / 10**9:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {currency}"
