"""What calls cost, and that a price nobody gave is never taken for nothing."""

from decimal import Decimal

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Usage
from taiwa.kernel.usage_limits import FREE, Prices
from taiwa.models.providers import find_prices

PRICES = {
    "openai:gpt-x": {"input": Decimal("0.25"), "output": Decimal(2), "cache_read": Decimal("0.025")},
    "openai:*": {"input": Decimal(1), "output": Decimal(4)},
    "openai:gpt-*": {"input": Decimal(3), "output": Decimal(9), "currency": "EUR"},
}


@pytest.mark.parametrize(
    ("model", "rates"),
    [
        ("openai:gpt-x", Prices("0.25", "2", "0.025")),
        ("openai:gpt-y", Prices("3", "9", currency="EUR")),
        ("openai:o9", Prices("1", "4")),
        ("mine:qwen", None),
    ],
)
def test_the_longest_pattern_that_fits_gives_the_price(model: str, rates: Prices | None) -> None:
    assert find_prices(PRICES, model) == rates


def test_a_model_on_this_machine_costs_nothing_unless_it_has_a_price() -> None:
    assert find_prices(PRICES, "mine:qwen", local=True) == FREE
    assert find_prices({"mine:*": {"input": Decimal(1), "output": Decimal(1)}}, "mine:qwen", local=True) != FREE


def test_a_model_behind_a_relay_on_this_machine_costs_what_its_provider_takes() -> None:
    assert find_prices({}, "openai:gpt-x", local=True) is None
    assert find_prices(PRICES, "openai:gpt-x", local=True) == find_prices(PRICES, "openai:gpt-x")


def test_cached_tokens_have_their_own_price_and_are_part_of_the_input() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=100, cache_read_tokens=800)

    assert Prices("1", "4", "0.1").cost(usage) == (200 + 80 + 400) * 1_000
    assert Prices("1", "4").cost(usage) == (1_000 + 400) * 1_000


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"input": Decimal(1)}, "lacks 'output'"),
        ({"output": Decimal(1)}, "lacks 'input'"),
        ({"input": "cheap", "output": Decimal(1)}, "prices.m.input must be a number"),
        ({"input": Decimal(1), "output": Decimal(1), "cache_read": "half"}, "prices.m.cache_read must be a number"),
    ],
)
def test_half_a_price_is_refused(given: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        find_prices({"m": given}, "m")
