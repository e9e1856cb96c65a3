"""The table of prices: an optional file next to the config file, with its date and source, that prices of the settings precede.

taiwa includes no prices. `update` fetches a table, by default the one that the LiteLLM project maintains, or reads a file. A
table that is older than `MAX_AGE_DAYS` is not used, so that no cost is computed from prices that may have changed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import cast

from taiwa.kernel.attachments import MAX_BYTES, read_regular
from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import Prices
from taiwa.yamlfile import write_private

SOURCE = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
MAX_AGE_DAYS = 30
MAX_TABLE_BYTES = 32 << 20
MILLION = 10**6
PROVIDERS = ("openai", "anthropic", "gemini", "mistral", "deepseek", "groq", "openrouter", "cerebras")
"""The providers whose models a table of LiteLLM prices under the names that they have here."""
MODES = frozenset({"chat", "completion", "responses"})
RATES = {
    "input": "input_cost_per_token", "output": "output_cost_per_token", "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}  # fmt: skip
TIER = "input_cost_per_token_above_"
"""Begins the name of a rate for long inputs: `…_above_200k_tokens`."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Prices by name of a model, their date, and where they come from."""

    source: str
    day: date
    prices: Mapping[str, Prices] = field(default_factory=dict[str, Prices])

    def age(self, today: date) -> int:
        """Return the days since its date."""
        return (today - self.day).days

    def is_outdated(self, today: date) -> bool:
        """Report whether the prices may have changed since."""
        return self.age(today) > MAX_AGE_DAYS

    def find(self, model: str) -> Prices | None:
        """Return the prices of a model; None if the table lacks it."""
        return self.prices.get(model)

    def to_json(self) -> dict[str, Json]:
        """Return the table as its file has it."""
        prices: dict[str, Json] = {name: rates_of(each) for name, each in sorted(self.prices.items())}
        return {"source": self.source, "date": self.day.isoformat(), "currency": "USD", "prices": prices}


def rates_of(prices: Prices) -> dict[str, Json]:
    """Return the rates of prices that are set, per million tokens."""
    rates: dict[str, Json] = {name: getattr(prices, name) for name in RATES if getattr(prices, name)}
    return rates | ({"max_input": prices.max_input} if prices.max_input else {})


def load_table(path: Path) -> PriceTable | None:
    """Read the table at a path; None if there is none.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return None
    return _load(path, changed)


@lru_cache(maxsize=4)
def _load(path: Path, _changed: int) -> PriceTable:
    try:
        return parse_table(read_regular(path, MAX_BYTES), str(path))
    except (OSError, InputError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.message
        raise ConfigError(f"cannot read the table of prices: {reason}; replace it: taiwa prices update") from None


def usable_table(path: Path, today: date | None = None) -> PriceTable | None:
    """Read the table at a path; None if there is none, or it is outdated.

    Raises:
        ConfigError: it cannot be read.
    """
    found = load_table(path)
    return None if found is None or found.is_outdated(today or utc_today()) else found


def utc_today() -> date:
    """Return the date (UTC)."""
    return datetime.now(UTC).date()


def fetch_table(url: str, day: date) -> PriceTable:
    """Fetch a table from an address; its prices are those of `day` if it states no date.

    Raises:
        ConfigError: the address does not answer. InputError: see `parse_table`.
    """
    from taiwa.models.weights.sources import SourceError, read_url

    data = bytearray()
    try:
        for chunk in read_url(url, {}, 0):
            data += chunk
            if len(data) > MAX_TABLE_BYTES:
                raise ConfigError(f"{url} sends more than {MAX_TABLE_BYTES:,} bytes, which is not a table of prices")
    except SourceError as error:
        raise ConfigError(f"{url} {error}; name a file or another address: taiwa prices update FILE") from None
    return parse_table(bytes(data), url, day)


def save_table(table: PriceTable, path: Path) -> None:
    """Replace the table at a path.

    Raises:
        ConfigError: it cannot be written.
    """
    write_private(path, json.dumps(table.to_json(), ensure_ascii=False, indent=1))


def parse_table(data: bytes, source: str, day: date | None = None) -> PriceTable:
    """Read a table in our format, which states its date, or in that of LiteLLM, whose date is `day`.

    Raises:
        InputError: it is neither, states no price, or has no date.
    """
    try:
        found = json.loads(data, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise InputError(f"{source} is not JSON") from None
    if not isinstance(found, dict):
        raise InputError(f"{source} is not a table of prices: expected an object by names of models")
    table = cast("dict[str, object]", found)
    if "prices" in table and isinstance(table["prices"], dict):
        return _read_own(table, source, day)
    if day is None:
        raise InputError(f"{source} states no date of its prices; give it: --date YYYY-MM-DD")
    prices = dict(filter(None, (_of_litellm(name, entry) for name, entry in table.items())))
    if not prices:
        raise InputError(f"{source} has no price of a model; expected a file of taiwa prices or of LiteLLM")
    return PriceTable(source, day, prices)


def _read_own(table: dict[str, object], source: str, day: date | None) -> PriceTable:
    try:
        stated = date.fromisoformat(str(table.get("date", "")))
    except ValueError:
        if day is None:
            raise InputError(f"{source} states no date of its prices; give it: --date YYYY-MM-DD") from None
        stated = day
    prices: dict[str, Prices] = {}
    for name, entry in cast("dict[str, object]", table["prices"]).items():
        rates = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        try:
            given = {rate: str(rates[rate]) for rate in RATES if rate in rates}
            most = rates.get("max_input", 0)
            prices[name] = Prices(**given, max_input=most if isinstance(most, int) else 0)
        except (InputError, TypeError):
            raise InputError(f"{source}: the prices of {name!r} must have the numbers input and output") from None
    return PriceTable(str(table.get("source") or source), stated, prices)


def _of_litellm(name: str, entry: object) -> tuple[str, Prices] | None:
    """Return the name and the prices of an entry; None if it is of another provider, or not priced by tokens of text."""
    found = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    provider = str(found.get("litellm_provider", ""))
    if provider not in PROVIDERS or found.get("mode") not in MODES:
        return None
    try:
        rates = {rate: _per_million(found[key]) for rate, key in RATES.items() if found.get(key) is not None}
        prices = Prices(**rates, max_input=_first_tier(found))
    except (InputError, TypeError, InvalidOperation):
        return None
    return f"{provider}:{name.removeprefix(f'{provider}/')}", prices


def _per_million(rate: object) -> str:
    number = Decimal(str(rate)) * MILLION
    return f"{number.normalize():f}"


def _first_tier(entry: Mapping[str, object]) -> int:
    """Return the input tokens up to which the rates apply, 0 for any number."""
    bounds = (key.removeprefix(TIER).removesuffix("_tokens") for key in entry if key.startswith(TIER))
    thousands = [int(bound.removesuffix("k")) for bound in bounds if bound.removesuffix("k").isdecimal()]
    return min(thousands, default=0) * 1000
