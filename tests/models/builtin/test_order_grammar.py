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
        ("two mochas, one with whipped cream", [("mocha", "", 1), ("mocha", "", 1, "whipped cream")]),
        ("three lattes, one iced and a bagel", [("latte", "", 2), ("latte", "", 1, "iced"), ("bagel", "", 1)]),
        ("我要一杯美式和两块曲奇", [("americano", "", 1), ("cookie", "", 2)]),
        ("チーズケーキも一つ追加で", [("cheesecake", "", 1)]),
        ("a latte and a tea, all to go", [("latte", "", 1, "to go"), ("tea", "", 1, "to go")]),
        ("a muffin, scratch that, two bagels", [("bagel", "", 2)]),
        ("ラージのラテを二つとベーグル1個ください", [("latte", "large", 2), ("bagel", "", 1)]),
        ("バニラシロップ入りのラテ一つ、砂糖2つで", [("latte", "", 1, "vanilla syrup", "2 sugar")]),
        ("ラテ二つ、一つはアイスで、一つは豆乳で", [("latte", "", 1, "iced"), ("latte", "", 1, "soy milk")]),
        ("deux croissants et un café", [("croissant", "", 2), ("coffee", "", 1)]),
        ("我要两杯拿铁和一个贝果", [("latte", "", 2), ("bagel", "", 1)]),
        ("a single espresso and a single latte", [("espresso", "single", 1), ("latte", "", 1)]),
        ("a scone x2 with two portions of jam, a tea", [("scone", "", 2, "2 jam"), ("tea", "", 1)]),
        ("three mochas with 3 pumps of vanilla and a tea", [("mocha", "", 3, "3 vanilla syrup"), ("tea", "", 1)]),
        ("a coffee with two sugars plus non-fat milk", [("coffee", "", 1, "2 sugar", "nonfat milk")]),
        ("a no butter croissant", [("croissant", "", 1, "no butter")]),
        ("well as that, one danish", [("danish", "", 1)]),
        ("we need one scone need one scone and a tea", [("scone", "", 1), ("tea", "", 1)]),
        ("ラテ二つ、じゃなくて、スコーンを三つにします", [("scone", "", 3)]),
        ("追加で、2個、ベーグル", [("bagel", "", 2)]),
        ("two teas and a cola, all, with lemon", [("tea", "", 2, "lemon"), ("cola", "", 1, "lemon")]),
        ("3 teas, one two percent milk and two whole milk", [("tea", "", 1, "2% milk"), ("tea", "", 2, "whole milk")]),
        ("カプチノーを二つ", [("cappuccino", "", 2)]),
        ("ブルベリーマフィンを三つ", [("blueberry muffin", "", 3)]),
    ],
)
def test_wishes_are_read_with_all_that_belongs_to_them(said: str, lines: Told) -> None:
    assert new_lines(said) == lines


@pytest.mark.parametrize(
    "said",
    [
        "how much is a latte?",
        "how er much is a coke",
        "what did i order",
        "say it back to me",
        "hello",
        "ラテはいくらですか",
        "!",
    ],
)
def test_what_orders_nothing_has_no_meaning(said: str) -> None:
    assert read_meanings(Order(), said) == ()


@pytest.mark.parametrize("said", ["-3 teas", "1/2 bagel", "0 lattes", "ラテを-3個", ""])
def test_a_count_that_cannot_be_ordered_is_noted(said: str) -> None:
    (_, draft), *_ = read_meanings(Order(), said)

    assert draft.odd


def test_a_part_of_a_name_is_no_count() -> None:
    assert new_lines("a 1/3 caf latte") == [("latte", "", 1, "one third caf")]


@pytest.mark.parametrize(
    ("said", "lacking"),
    [
        ("a latte and two bicycles", ("bicycles",)),
        ("a garden hose and two chairs", ("garden hose", "chairs")),
        ("a big dror", ("dror",)),
        ("バイク一つ、ついでに傘二つ", ("バイク", "傘")),
        ("お好み焼き二個と新聞3個にします", ("お好み焼き", "新聞")),
        ("ホットドッグ3つ、ついでにサンドイッチ", ("ホットドッグ",)),
    ],
)
def test_what_is_not_on_the_menu_is_named_as_it_was_said(said: str, lacking: tuple[str, ...]) -> None:
    (_, draft), *_ = read_meanings(Order(), said)

    assert draft.lacking == lacking


def test_readings_come_in_the_order_of_their_costs_and_are_never_the_same() -> None:
    order = Order((OrderLine(1, "latte", "", 2),))
    found = read_meanings(order, "a latte with caramel and cinnamon, no, the lattes iced")

    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found if cost < DEAREST)
    assert len({draft for _, draft in found}) == len(found)
