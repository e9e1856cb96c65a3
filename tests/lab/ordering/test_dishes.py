"""When two lines of an order are the same, and which line was heard for which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.lab.ordering.dishes import Dish, dishes_of, match, merged, words_of
from taiwa.lab.ordering.orders import counted_of

LATTE, SCONE = Dish(("latte",)), Dish(("scone",))


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
    assert words_of(one) == words_of(other)


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
    assert words_of(one) != words_of(other)


@given(st.text(max_size=60))
def test_any_text_has_words_and_the_same_ones_again(text: str) -> None:
    found = words_of(text)
    assert found == tuple(sorted(found))
    assert found == words_of(f"  {text}!")


def test_lines_of_a_state_are_read_whatever_stands_there() -> None:
    line = {"name": "latte", "size": "tall", "quantity": 2, "options": ["iced"]}
    assert dishes_of({"1": line, "2": None}) == dishes_of([line]) == (Dish(("latte",), 2, "tall", ("iced",)),)
    assert dishes_of(None) == ()


def test_what_is_alike_is_one_line() -> None:
    twice = merged((LATTE, Dish(("Lattes",), 2), Dish(("latte",), 1, "tall")))
    assert [(line.quantity, line.size) for line in twice] == [(3, ""), (1, "tall")]


def test_each_line_is_given_once_and_the_best_one_first() -> None:
    wanted = (Dish(("latte",), 1, "tall"), Dish(("latte",), 1, "grande", ("iced",)), SCONE)
    heard = (Dish(("latte",), 1, "grande", ("iced",)), Dish(("latte",), 1, "short"))

    tall, grande, scone = match(wanted, heard)

    assert tall is not None
    assert (tall.quantity, tall.size, tall.options) == (True, False, True)
    assert grande is not None
    assert grande.whole
    assert scone is None


def test_any_name_of_the_key_is_right() -> None:
    assert match((Dish(("scone", "plain scone")),), (Dish(("plain scone",)),))[0] is not None


def test_a_request_is_wholly_right_only_without_a_line_too_many() -> None:
    assert counted_of((LATTE,), (LATTE,))["whole"] is True
    assert counted_of((LATTE,), (LATTE, SCONE))["whole"] is False
    assert counted_of((), ())["whole"] is True
    assert counted_of((), (SCONE,))["whole"] is False


DISHES = st.lists(
    st.builds(
        Dish,
        st.sampled_from([("latte",), ("scone",), ("tea",)]),
        st.integers(1, 2),
        st.sampled_from(["", "tall"]),
        st.sampled_from([(), ("iced",)]),
    ),
    max_size=5,
)


@given(DISHES, DISHES)
def test_no_line_counts_twice_and_order_does_not_count(wanted: list[Dish], heard: list[Dish]) -> None:
    found = counted_of(tuple(wanted), tuple(heard))
    counts = {name: number for name, number in found.items() if isinstance(number, int)}
    assert counts["counted"] <= counts["named"] <= min(counts["wanted"], counts["heard"])
    assert max(counts["sizes"], counts["options"]) <= counts["counted"]
    assert {name: found[name] for name in ("counted", "named", "whole")} == {
        name: counted_of(tuple(reversed(wanted)), tuple(reversed(heard)))[name]
        for name in ("counted", "named", "whole")
    }


@given(DISHES)
def test_an_order_that_was_heard_as_it_was_said_is_wholly_right(wanted: list[Dish]) -> None:
    found = counted_of(tuple(wanted), tuple(reversed(wanted)))
    assert found["whole"] is True
    assert found["counted"] == found["wanted"] == found["sizes"] == found["options"]
