"""What calls cost. An unknown price is `None`, never zero.

Prices are set by the user (`prices` in the config file), in currency units per million tokens, because they change more often
than programs do. A model behind a loopback address costs nothing per token.
"""

from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Usage
from taiwa.kernel.records import digest, value
from taiwa.kernel.usage_limits import currency_units
from taiwa.models.http_api.provider_interface import split_options

NANO_PER_MILLION = 1000
"""Billionths of a unit that one token costs at a rate of one unit per million tokens."""
RATES = ("input", "output", "cache_read", "cache_write")


@value(tag="prices")
class Prices:
    """Currency units per million tokens, as decimal text; an empty cache rate equals the input rate."""

    input: str
    output: str
    cache_read: str = ""
    cache_write: str = ""
    currency: str = "USD"

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


def find_prices(prices: Mapping[str, Mapping[str, object]], model: str, *, local: bool = False) -> Prices | None:
    """Find the prices of a model: under its own name, else under the longest pattern (`openai:gpt-*`) that matches it.

    Raises:
        ConfigError: the price of input or of output is missing, or a price is not a number.
    """
    model, _ = split_options(model)
    matching = [pattern for pattern in prices if pattern == model or fnmatchcase(model, pattern)]
    if not matching:
        return FREE if local else None
    name = model if model in prices else max(matching, key=len)
    entry = prices[name]
    for key in ("input", "output"):
        if key not in entry:
            raise ConfigError(f"prices.{name} lacks {key!r}; add it, because an unknown price is not zero")
    for key in RATES:
        if key in entry and not isinstance(entry[key], (Decimal, int, float)):
            raise ConfigError(f"prices.{name}.{key} must be a number such as 0.25, got {str(entry[key])[:40]!r}")
    return Prices(**{key: str(entry[key]) for key in (*RATES, "currency") if key in entry})


def format_cost(cost_nano: int | None, currency: str = "USD") -> str:
    """Write a cost for display.

    >>> format_cost(1_234_000), format_cost(0), format_cost(None)
    ('0.001234 USD', '0 USD', 'unknown')
    """
    cost = currency_units(cost_nano)
    if cost is None:
        return "unknown"
    text = f"{cost:f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {currency}"
