"""The table of prices: dated, with its source, and not used once it is old."""

import json
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError, InputError
from taiwa.kernel.messages import Usage
from taiwa.kernel.usage_limits import FREE, Prices
from taiwa.models.price_table import (
    MAX_AGE_DAYS,
    PriceTable,
    fetch_table,
    load_table,
    parse_table,
    save_table,
    usable_table,
)
from taiwa.models.providers import find_prices

DAY = date(2026, 1, 31)
TABLE = PriceTable(
    "a list", DAY, {"openai:gpt-a": Prices("1.25", "10"), "gemini:b": Prices("1", "2", max_input=200_000)}
)
LITELLM = {
    "sample_spec": {"litellm_provider": "one of them", "mode": "chat", "input_cost_per_token": 0},
    "gpt-a": {
        "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
    },
    "gemini/b": {
        "litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06,
        "input_cost_per_token_above_200k_tokens": 2e-06,
    },
    "images": {"litellm_provider": "openai", "mode": "image_generation", "input_cost_per_token": 1e-06},
    "half": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06},
    "else/c": {"litellm_provider": "else", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
}  # fmt: skip


def test_a_table_is_written_and_read_again(tmp_path: Path) -> None:
    save_table(TABLE, tmp_path / "prices.json")

    assert load_table(tmp_path / "prices.json") == TABLE
    assert load_table(tmp_path / "none.json") is None


def test_a_list_of_litellm_is_read_under_the_names_of_models_here() -> None:
    found = parse_table(json.dumps(LITELLM).encode(), "litellm", DAY)

    assert found.prices == {
        "openai:gpt-a": Prices("1.25", "10", cache_read="0.125"),
        "gemini:b": Prices("1", "2", max_input=200_000),
    }


def test_the_price_of_an_input_beyond_the_first_tier_is_unknown() -> None:
    prices = TABLE.prices["gemini:b"]

    assert prices.cost(Usage(200_000, 0)) == 200_000_000
    assert prices.cost(Usage(200_001, 0)) is None


@pytest.mark.parametrize(("age", "used"), [(0, True), (MAX_AGE_DAYS, True), (MAX_AGE_DAYS + 1, False)])
def test_an_old_table_is_not_used(age: int, used: bool, tmp_path: Path) -> None:
    save_table(TABLE, tmp_path / "prices.json")

    assert (usable_table(tmp_path / "prices.json", DAY + timedelta(days=age)) is not None) == used


def test_prices_of_the_settings_precede_those_of_the_table() -> None:
    own = {"openai:*": {"input": Decimal(3), "output": Decimal(4)}}

    assert find_prices(own, "openai:gpt-a", table=TABLE) == Prices("3", "4")
    assert find_prices({}, "openai:gpt-a", table=TABLE) == Prices("1.25", "10")
    assert find_prices({}, "ollama:gpt-a", local=True, table=TABLE) == FREE
    assert find_prices({}, "openai:gpt-z", table=TABLE) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not json", "is not JSON"),
        (b"[]", "is not a table of prices"),
        (b"{}", "states no date of its prices; give it: --date"),
        (b'{"prices": {}, "date": "yesterday"}', "states no date"),
        (b'{"prices": {"a": {"input": 1}}, "date": "2026-01-31"}', "the prices of 'a' must have the numbers input and output"),
        (b'{"prices": {"a": {"input": "x", "output": 1}}, "date": "2026-01-31"}', "must have the numbers"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_table(data, "prices.json")


def test_a_list_without_any_price_is_refused() -> None:
    with pytest.raises(InputError, match="has no price of a model"):
        parse_table(b'{"a": {"mode": "chat"}}', "prices.json", DAY)


def test_a_damaged_table_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text("{")

    with pytest.raises(
        ConfigError, match=r"cannot read the table of prices: .* is not JSON; replace it: taiwa prices update"
    ):
        load_table(tmp_path / "prices.json")


def test_an_address_that_does_not_answer_is_one_line() -> None:
    with pytest.raises(
        ConfigError, match=r"http://127.0.0.1:9/p.json cannot be reached .*; name a file or another address"
    ):
        fetch_table("http://127.0.0.1:9/p.json", DAY)
