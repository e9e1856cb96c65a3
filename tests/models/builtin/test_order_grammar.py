"""The grammar of a guest's words: wishes, divisions and corrections, and what orders nothing."""

import pytest

from taiwa.models.builtin.order_app import Order, OrderLine
from taiwa.models.builtin.order_grammar import DEAREST, read_meanings

Told = list[tuple[object, ...]]


def new_lines(said: str) -> Told:
    """The new lines of the cheapest reading: name, size, quantity, options."""
    (_, draft), *_ = read_meanings(Order(), said)
    return [(line.name, line.size, line.quantity, *line.options) for line in draft.new]


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("two large lattes with oat milk and a bagel", [("latte", "large", 2, "oat milk"), ("bagel", "", 1)]),
        ("a no foam latte, extra hot", [("latte", "", 1, "no foam", "extra hot")]),
        ("three two pump vanilla mochas", [("mocha", "", 3, "2 vanilla syrup")]),
        ("um can i get a a dozen bgels please", [("bagel", "", 12)]),
        ("two lattes, one iced and one with oat milk", [("latte", "", 1, "iced"), ("latte", "", 1, "oat milk")]),
        ("two lattes, no wait make that three", [("latte", "", 3)]),
        ("a latte and a tea, all to go", [("latte", "", 1, "to go"), ("tea", "", 1, "to go")]),
        ("a muffin, scratch that, two bagels", [("bagel", "", 2)]),
        ("ラージのラテを二つとベーグル1個ください", [("latte", "large", 2), ("bagel", "", 1)]),
        ("バニラシロップ入りのラテ一つ、砂糖2つで", [("latte", "", 1, "vanilla syrup", "2 sugar")]),
        ("ラテ二つ、一つはアイスで、一つは豆乳で", [("latte", "", 1, "iced"), ("latte", "", 1, "soy milk")]),
        ("deux croissants et un café", [("croissant", "", 2), ("coffee", "", 1)]),
        ("我要两杯拿铁和一个贝果", [("latte", "", 2), ("bagel", "", 1)]),
    ],
)
def test_wishes_are_read_with_all_that_belongs_to_them(said: str, lines: Told) -> None:
    assert new_lines(said) == lines


@pytest.mark.parametrize("said", ["how much is a latte?", "what did i order", "hello", "ラテはいくらですか", "!"])
def test_what_orders_nothing_has_no_meaning(said: str) -> None:
    assert read_meanings(Order(), said) == ()


@pytest.mark.parametrize("said", ["-3 teas", "1/2 bagel", "0 lattes", "ラテを-3個", ""])
def test_a_count_that_cannot_be_ordered_is_noted(said: str) -> None:
    (_, draft), *_ = read_meanings(Order(), said)

    assert draft.odd


def test_a_part_of_a_name_is_no_count() -> None:
    assert new_lines("a 1/3 caf latte") == [("latte", "", 1, "one third caf")]


def test_what_is_not_on_the_menu_is_named() -> None:
    (_, draft), *_ = read_meanings(Order(), "a latte and two bicycles")

    assert draft.lacking == ("bicycles",)


def test_readings_come_in_the_order_of_their_costs_and_are_never_the_same() -> None:
    order = Order((OrderLine(1, "latte", "", 2),))
    found = read_meanings(order, "a latte with caramel and cinnamon, no, the lattes iced")

    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found if cost < DEAREST)
    assert len({draft for _, draft in found}) == len(found)
