"""Replies of the order desk: the lines that they name, the delta that follows, and what speaks against them."""

import pytest

from taiwa.models.builtin.order_app import DELTA_LINE, Order, OrderLine
from taiwa.models.builtin.order_reply import (
    HARD,
    ask_back,
    faults,
    find_changes,
    likeliest_changes,
    read_reply,
    sum_of,
    weigh,
    write_delta,
)

LATTES = OrderLine(1, "latte", "grande", 2, ("oat milk", "iced"))
BAGEL = OrderLine(2, "bagel", "", 1)
ORDER = Order((LATTES, BAGEL))


def delta(reply: str, said: str = "", order: Order = ORDER) -> str | None:
    changes = likeliest_changes(order, said, reply)
    return None if changes is None else write_delta(order, read_reply(reply), changes)


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        ("2 large teas (no ice, 2 sugar). Anything else?", [("tea", "large", 2, ("no ice", "2 sugar"))]),
        (
            "1 ham and cheese sandwich and 1 cake. Anything else?",
            [("ham and cheese sandwich", "", 1, ()), ("cake", "", 1, ())],
        ),
        ("ラージのお茶2つ(氷なし、砂糖2)ですね。ほかにはいかがですか?", [("tea", "large", 2, ("no ice", "2 sugar"))]),
        ("モカ12杯(バニラシロップ3、蓋なし)ですね。", [("mocha", "", 12, ("3 vanilla syrup", "no lid"))]),
        ("You are welcome!", []),
    ],
)
def test_new_lines_are_read_in_both_languages(reply: str, lines: list[tuple[object, ...]]) -> None:
    assert [(line.name, line.size, line.quantity, line.options) for line in read_reply(reply).new] == lines


@pytest.mark.parametrize(
    ("reply", "written"),
    [
        ("1 tea. Anything else?", '{"items":{"3":{"name":"tea","quantity":1,"options":[]}}}'),
        ("Taken off: 1 bagel. Anything else?", '{"items":{"2":null}}'),
        ("ベーグル1つを取り消しました。ほかにはいかがですか?", '{"items":{"2":null}}'),
        ("Now: 3 bagels. Anything else?", '{"items":{"2":{"name":"bagel","quantity":3,"options":[]}}}'),
        ("The order is cancelled.", '{"items":{"1":null,"2":null},"status":"cancelled"}'),
        ("The total is ", '{"status":"confirmed"}'),
        ("Anything else?", "{}"),
    ],
)
def test_the_delta_follows_from_the_reply(reply: str, written: str) -> None:
    assert delta(reply) == written


def test_a_change_opens_an_order_that_was_confirmed() -> None:
    assert delta("Taken off: 1 bagel. Anything else?", order=Order((LATTES, BAGEL), "confirmed")) == (
        '{"items":{"2":null},"status":"open"}'
    )


def test_one_of_several_that_becomes_another_is_a_line_of_its_own() -> None:
    reply = read_reply(
        "Now: 1 grande latte (oat milk, iced) and 1 grande latte (oat milk, iced, decaf). Anything else?"
    )

    (changes,) = find_changes(ORDER, reply)

    assert [(number, line and line.quantity) for number, line in changes.items()] == [(1, 1), (3, 1)]


def test_the_guest_decides_which_line_becomes_another_dish() -> None:
    reply = "Now: 1 mocha. Anything else?"

    assert delta(reply, "A mocha instead of the bagel") == '{"items":{"2":{"name":"mocha","quantity":1,"options":[]}}}'
    assert delta(reply, "A mocha, not the lattes") == '{"items":{"1":{"name":"mocha","quantity":1,"options":[]}}}'


@pytest.mark.parametrize(
    "reply", ["Taken off: 2 bagels. Anything else?", "Taken off: 1 bagel, 1 bagel and 1 bagel. Anything else?"]
)
def test_a_line_that_is_not_on_the_order_cannot_be_taken_off(reply: str) -> None:
    assert delta(reply) is None
    assert weigh(ORDER, "No bagel", reply) >= 4


def test_a_sum_is_that_of_the_order_after_its_changes() -> None:
    (changes,) = find_changes(ORDER, read_reply("Taken off: 2 grande lattes (oat milk, iced). 3 teas. The total is "))

    assert sum_of(ORDER, changes) == "1*2.8+3*2.6"


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Three more bagels", "Now: 4 bagels. Anything else?"),
        ("the bagel toasted, please", "Now: 1 bagel (toasted). Anything else?"),
        ("make the first one decaf", "Now: 2 grande lattes (oat milk, iced, decaf). Anything else?"),
        ("ベーグルをやめます", "ベーグル1つを取り消しました。ほかにはいかがですか?"),
        ("two tall mochas with almnod milk", "2 tall mochas (almond milk). Anything else?"),
        ("one spaceship", "Sorry, we have no spaceship. Anything else?"),
        ("一个可乐", "1 cola. Anything else?"),
    ],
)
def test_nothing_speaks_against_a_right_reply(said: str, reply: str) -> None:
    assert list(faults(ORDER, said, reply)) == []


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Three more bagels", "Now: 3 bagels. Anything else?"),
        ("the bagel toasted, please", "Now: 1 bagel. Anything else?"),
        ("the bagel toasted, please", "Now: 1 bagel (sliced). Anything else?"),
        ("make the first one decaf", "Now: 1 bagel (decaf). Anything else?"),
        ("make the first one decaf", "Now: 2 grande lattes (oat milk, iced, decaf, decaf). Anything else?"),
        ("make the first one decaf", "Now: 2 venti lattes (oat milk, iced, decaf). Anything else?"),
        ("ベーグルをやめます", "Taken off: 1 bagel. Anything else?"),
        ("ベーグルをやめます", "ご注文にベーグルはありません。ほかにはいかがですか?"),
        ("is the bagel good?", "Taken off: 1 bagel. Anything else?"),
        ("two tall mochas", "1 tall mocha. Anything else?"),
        ("two tall mochas", "2 tall teas. Anything else?"),
        ("two tall mochas and a cake", "2 tall mochas. Anything else?"),
        ("one spaceship", "Sorry, we have no rocket. Anything else?"),
        ("a latte", "1 latte of the house. Anything else?"),
        ("make the latte hot", "Which one: 1 bagel or 1 bagel? Anything else?"),
    ],
)
def test_something_speaks_against_a_wrong_one(said: str, reply: str) -> None:
    assert list(faults(ORDER, said, reply))


def test_nothing_can_be_summed_where_nothing_is_ordered() -> None:
    assert weigh(Order(), "that is all", "The total is ") >= 4


def test_it_is_asked_back_in_the_language_of_the_guest() -> None:
    assert ask_back(ORDER, "それを変更") != ask_back(ORDER, "change it")
    assert DELTA_LINE not in ask_back(ORDER, "change it")


def test_it_is_a_fault_to_choose_between_lines_that_the_guest_does_not_tell_apart() -> None:
    order = Order((OrderLine(1, "bagel", "", 2), OrderLine(2, "bagel", "", 1, ("butter",))))

    assert weigh(order, "make the bagel large", "Now: 1 large bagel (butter). Anything else?")
    assert not weigh(order, "make the bagel large", "Which one: 2 bagels or 1 bagel (butter)?")
    assert not weigh(order, "make the second one large", "Now: 1 large bagel (butter). Anything else?")


def test_many_lines_of_a_dish_are_changed_in_their_order() -> None:
    lines = tuple(OrderLine(number, "latte", "", number) for number in range(1, 17))
    reply = f"Now: {', '.join(f'{line.quantity} lattes (iced)' for line in lines[1:])}. Anything else?"

    changes = find_changes(Order(lines), read_reply(reply))

    assert [list(each) for each in changes] == [[*range(2, 17)]]


@pytest.mark.parametrize(
    ("said", "text", "why"),
    [
        ("最初のをアイスにして", "ご注文をキャンセルしました。", "nothing was called off"),
        ("make the bagel iced", "Now: 1 bagel (iced). Anything else?", "an iced bagel"),
        ("make one iced", "Now: 1 latte and 1 latte. Anything else?", "one change twice"),
    ],
)
def test_a_reply_that_no_words_ask_for_is_faulty(said: str, text: str, why: str) -> None:
    order = Order((OrderLine(1, "latte", "", 2), OrderLine(2, "bagel", "", 1)))

    assert (why, HARD) in [*faults(order, said, text)]
