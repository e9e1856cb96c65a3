"""Our key to the coffee-shop requests: what it names is on the menu, and its ids are those of the shared requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from taiwa.models.builtin import order_app
from taiwa.models.builtin.order_app import COUNTED, MEASURES, PLAIN, SIZES
from training.builtin import samples
from training.builtin.desk.menu import MENU

KEY = Path(samples.__file__).with_name("keys") / "coffee_shop.yaml"


@pytest.fixture(scope="module")
def requests() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(KEY.read_text("utf-8"))["requests"]
    return found


def items(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for reading in (request, *request.get("also", ())):
        yield from reading.get("items", ())


def known(option: str) -> bool:
    measure, _, name = option.partition(" ")
    return option in PLAIN or option in COUNTED or (name in COUNTED and (measure in MEASURES or measure.isdigit()))


def test_what_the_key_names_is_on_the_menu(requests: dict[str, Any]) -> None:
    for request in requests.values():
        for item in items(request):
            assert item["name"] in MENU
            assert item.get("size", "tall") in SIZES
            assert all(map(known, item["options"]))
            assert set(item) <= {"name", "size", "quantity", "options"}


def test_a_duplicate_names_a_request_of_the_key(requests: dict[str, Any]) -> None:
    for request in requests.values():
        assert ("items" in request) != ("duplicate" in request)
        assert request.get("duplicate", "coffeeShop-input-4") in requests


def test_its_ids_are_those_of_the_shared_requests(requests: dict[str, Any], shared_data: Path) -> None:
    lines = [json.loads(line) for line in (shared_data / "typechat_inputs.jsonl").read_text("utf-8").splitlines()]
    asked = {line["id"] for line in lines if line["domain"] == "coffeeShop"}

    assert asked <= set(requests) <= {line["id"] for line in lines}
    assert not any(line["input"] in KEY.read_text("utf-8") for line in lines if line["id"] in requests)


def test_the_menu_that_is_drawn_from_is_that_of_the_app() -> None:
    text = " ".join(order_app.MENU_TEXT.split())

    assert {dish.name: dish.price for dish in MENU.values()} == order_app.MENU
    assert all(f"{dish.name} {dish.japanese}" in text for dish in MENU.values())
