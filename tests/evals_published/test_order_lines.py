"""When two lines of an order are the same, and which line was heard for which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.ordering.order_lines import OrderLine, compared_words, match_lines, merge_lines, order_lines
from evals.ordering.orders import compare_orders

LATTE, SCONE = OrderLine(("latte",)), OrderLine(("scone",))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("blueberry muffin", "Muffin, Blueberry"),
        ("blueberry muffin", "BLUEBERRY MUFFINS"),
        ("latte", "caffè latte"),
        ("coffee", "café"),
        ("lemon poppyseed muffin", "muffin with lemon and poppy seeds"),
        ("nonfat milk", "fat-free milk"),
        ("nonfat milk", "skinny"),
        ("soy milk", "soy"),
        ("2 vanilla syrup", "two pumps of vanilla syrup"),
        ("double", "doppio"),
        ("cut in half", "sliced in half"),
        ("to go", "takeaway"),
        ("cookie", "cookies"),
        ("strawberry jam", "strawberries jam"),
        ("sandwich", "sandwiches"),
        ("espresso shot", "1 espresso shot"),
        ("抹茶ラテ", "抹茶ラテ"),
    ],
)
def test_words_that_say_the_same_count_as_the_same(one: str, other: str) -> None:
    assert compared_words(one) == compared_words(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("latte", "latte macchiato"),
        ("iced latte", "latte"),
        ("tall", "grande"),
        ("", "grande"),
        ("2 sugar", "sugar"),
        ("milk", "soy"),
        ("light ice", "iced"),
        ("抹茶ラテ", "ラテ"),
        ("coffee cake", "cake"),
    ],
)
def test_words_that_say_something_else_do_not(one: str, other: str) -> None:
    assert compared_words(one) != compared_words(other)


@given(st.text(max_size=60))
def test_any_text_has_words_and_the_same_ones_again(text: str) -> None:
    found = compared_words(text)
    assert found == tuple(sorted(found))
    assert found == compared_words(f"  {text}!")


def test_lines_of_a_state_are_read_whatever_stands_there() -> None:
    line = {"name": "latte", "size": "tall", "quantity": 2, "options": ["iced"]}
    assert order_lines({"1": line, "2": None}) == order_lines([line]) == (OrderLine(("latte",), 2, "tall", ("iced",)),)
    assert order_lines(None) == ()


def test_what_is_alike_is_one_line() -> None:
    twice = merge_lines((LATTE, OrderLine(("Lattes",), 2), OrderLine(("latte",), 1, "tall")))
    assert [(line.quantity, line.size) for line in twice] == [(3, ""), (1, "tall")]


def test_each_line_is_given_once_and_the_best_one_first() -> None:
    wanted = (OrderLine(("latte",), 1, "tall"), OrderLine(("latte",), 1, "grande", ("iced",)), SCONE)
    heard = (OrderLine(("latte",), 1, "grande", ("iced",)), OrderLine(("latte",), 1, "short"))

    tall, grande, scone = match_lines(wanted, heard)

    assert tall is not None
    assert (tall.quantity, tall.size, tall.options) == (True, False, True)
    assert grande is not None
    assert grande.whole
    assert scone is None


def test_any_name_of_the_key_is_right() -> None:
    assert match_lines((OrderLine(("scone", "plain scone")),), (OrderLine(("plain scone",)),))[0] is not None


def test_a_request_is_wholly_right_only_without_a_line_too_many() -> None:
    assert compare_orders((LATTE,), (LATTE,))["whole"] is True
    assert compare_orders((LATTE,), (LATTE, SCONE))["whole"] is False
    assert compare_orders((), ())["whole"] is True
    assert compare_orders((), (SCONE,))["whole"] is False


DISHES = st.lists(
    st.builds(
        OrderLine,
        st.sampled_from([("latte",), ("scone",), ("tea",)]),
        st.integers(1, 2),
        st.sampled_from(["", "tall"]),
        st.sampled_from([(), ("iced",)]),
    ),
    max_size=5,
)


@given(DISHES, DISHES)
def test_no_line_counts_twice_and_order_does_not_count(wanted: list[OrderLine], heard: list[OrderLine]) -> None:
    found = compare_orders(tuple(wanted), tuple(heard))
    counts = {name: number for name, number in found.items() if isinstance(number, int)}
    assert counts["counted"] <= counts["named"] <= min(counts["wanted"], counts["written"])
    assert max(counts["sizes"], counts["options"]) <= counts["counted"]
    assert {name: found[name] for name in ("counted", "named", "whole")} == {
        name: compare_orders(tuple(reversed(wanted)), tuple(reversed(heard)))[name]
        for name in ("counted", "named", "whole")
    }


@given(DISHES)
def test_an_order_that_was_heard_as_it_was_said_is_wholly_right(wanted: list[OrderLine]) -> None:
    found = compare_orders(tuple(wanted), tuple(reversed(wanted)))
    assert found["whole"] is True
    assert found["counted"] == found["wanted"] == found["sizes"] == found["options"]
