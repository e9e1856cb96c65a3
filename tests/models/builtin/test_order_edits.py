"""Replies that make the edits which a guest's words may mean."""

import pytest

from taiwa.models.builtin.order_app import Order, OrderLine
from taiwa.models.builtin.order_edits import MOST_EDITS, edited_replies

ORDER = Order((OrderLine(1, "latte", "grande", 18, ("oat milk", "iced")), OrderLine(2, "ham sandwich", "", 1)))


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("three more of the lattes", "Now: 21 grande lattes (oat milk, iced). Anything else?"),
        ("make the lattes venti", "Now: 18 venti lattes (oat milk, iced). Anything else?"),
        ("the lattes without oat milk", "Now: 18 grande lattes (iced). Anything else?"),
        ("the lattes with almond milk instead", "Now: 18 grande lattes (almond milk, iced). Anything else?"),
        ("two ham sandwiches", "Now: 2 ham sandwiches. Anything else?"),
        ("never mind the ham sandwich", "Taken off: 1 ham sandwich. Anything else?"),
        (
            "one of the lattes decaf",
            "Now: 17 grande lattes (oat milk, iced) and 1 grande latte (oat milk, iced, decaf). Anything else?",
        ),
        (
            "no ham sandwich and make the lattes tall",
            "Taken off: 1 ham sandwich. Now: 18 tall lattes (oat milk, iced). Anything else?",
        ),
        (
            "一つ目にキャラメルシロップを2つ",
            "グランデのラテ18杯(オーツミルク、アイス、キャラメルシロップ2)に変更しました。ほかにはいかがですか?",
        ),
        ("ハムサンドをやめます", "ハムサンド1つを取り消しました。ほかにはいかがですか?"),
    ],
)
def test_the_edit_that_is_meant_is_among_a_few(said: str, reply: str) -> None:
    found = list(edited_replies(ORDER, said))

    assert reply in found
    assert len(found) <= MOST_EDITS


def test_an_order_without_lines_has_no_edits() -> None:
    assert list(edited_replies(Order(), "make it large")) == []


def test_many_lines_are_not_edited_at_once() -> None:
    lines = tuple(OrderLine(number, "latte", "", number) for number in range(1, 9))

    assert list(edited_replies(Order(lines), "make all lattes large")) == []
