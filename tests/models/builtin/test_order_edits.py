"""Replies that say what a guest's words mean for an order, and what changes by them."""

import pytest

from taiwa.models.builtin.order_app import MAX_NEW_LINES, Order, OrderLine
from taiwa.models.builtin.order_edits import meant_replies, settle
from taiwa.models.builtin.order_reply import find_changes, read_reply

ORDER = Order((OrderLine(1, "latte", "grande", 18, ("oat milk", "iced")), OrderLine(3, "ham sandwich", "", 1)))
LATTES = "18 grande lattes (oat milk, iced)"


def meant(said: str, order: Order = ORDER) -> str:
    """The cheapest reply."""
    return next(iter(meant_replies(order, said)))


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("three more of the lattes", "Now: 21 grande lattes (oat milk, iced). Anything else?"),
        ("make the lattes venti", "Now: 18 venti lattes (oat milk, iced). Anything else?"),
        ("the lattes without oat milk", "Now: 18 grande lattes (iced). Anything else?"),
        ("make the lattes with almond milk instead", "Now: 18 grande lattes (almond milk, iced). Anything else?"),
        ("two ham sandwiches", "2 ham sandwiches. Anything else?"),
        ("make the ham sandwich two", "Now: 2 ham sandwiches. Anything else?"),
        ("Wipe it all please", "The order is cancelled."),
        ("Perfect, thank you very much!", "You are welcome!"),
        ("ありがとうございます!", "どういたしまして!"),
        ("ok bye", "Goodbye!"),
        ("じゃあまたね", "またお越しください!"),
        ("Combien coûtent les gâteaux ?", "I speak English and Japanese. What would you like?"),
        (
            "ハムサンドイッチをあと二つ追加してお願いできます",
            "ハムサンド3つに変更しました。ほかにはいかがですか?",
        ),
        ("never mind the ham sandwich", "Taken off: 1 ham sandwich. Anything else?"),
        ("undo that", "All right. What shall I change?"),
        ("undo that and add a bagel", "All right. What shall I change?"),
        ("undo the ham sandwich", "Taken off: 1 ham sandwich. Anything else?"),
        ("change item 3 to a bagel", "Now: 1 bagel. Anything else?"),
        ("cancel all of it", "The order is cancelled."),
        ("make the tea large", "There is no tea on your order. Anything else?"),
        (
            "one of the lattes decaf",
            "Now: 17 grande lattes (oat milk, iced) and 1 grande latte (oat milk, iced, decaf). Anything else?",
        ),
        (
            "no ham sandwich and make the lattes tall",
            "Taken off: 1 ham sandwich. Now: 18 tall lattes (oat milk, iced). Anything else?",
        ),
        ("a bagel, that's all", "1 bagel. The total is "),
        (
            "一つ目にキャラメルシロップを2つ追加で",
            "グランデのラテ18杯(オーツミルク、アイス、キャラメルシロップ2)に変更しました。ほかにはいかがですか?",
        ),
        ("ハムサンドをやめます", "ハムサンド1つを取り消しました。ほかにはいかがですか?"),
        ("把拿铁换成大杯", "Now: 18 large lattes (oat milk, iced). Anything else?"),
        ("把第二个改成一个", "Now: 1 ham sandwich. Anything else?"),
        ("不要拿铁,要绿茶", "Now: 18 green teas. Anything else?"),
        ("cancel that order", "The order is cancelled."),
        ("i changed my mind about the lattes, no", f"Taken off: {LATTES}. Anything else?"),
        ("remove the lattes from my order", f"Taken off: {LATTES}. Anything else?"),
        ("forget the ham sandwich and give me a bagel", "Now: 1 bagel. Anything else?"),
        ("forget the ham sandwich and add a bagel", "Taken off: 1 ham sandwich. 1 bagel. Anything else?"),
        ("not that one, a bagel", "Now: 1 bagel. Anything else?"),
        ("same again", "Now: 2 ham sandwiches. Anything else?"),
        ("take 3 of the ham sandwich and not one", "Now: 3 ham sandwiches. Anything else?"),
        ("there should be half a dozen of those lattes", "Now: 6 grande lattes (oat milk, iced). Anything else?"),
        ("another one, and a bagel", "Now: 2 ham sandwiches. 1 bagel. Anything else?"),
        ("one more thing, a bagel", "1 bagel. Anything else?"),
        ("no thanks, that's all", "The total is "),
        ("place my order please", "The total is "),
        ("同じのおかわり", "ハムサンド2つに変更しました。ほかにはいかがですか?"),
        ("注文を確定してください", "合計は"),
        ("ハムサンド、半分に切ってお願いします", "ハムサンド1つ(半分にカット)に変更しました。ほかにはいかがですか?"),
        ("ハムサンドを二つ追加でお願いします", "ハムサンド3つに変更しました。ほかにはいかがですか?"),
        ("半分に切ったハムサンドを一つ", "ハムサンド1つ(半分にカット)ですね。ほかにはいかがですか?"),
        ("ハムサンド、二十個にして", "ハムサンド20個に変更しました。ほかにはいかがですか?"),
        ("ハムサンドはなしで、ベーグルをください", "ベーグル1つに変更しました。ほかにはいかがですか?"),
        ("ハムサンドをやめてベーグルに変更してください", "ベーグル1つに変更しました。ほかにはいかがですか?"),
        ("スコーン、ラージに変更してください", "ご注文にスコーンはありません。ほかにはいかがですか?"),
        ("ハムサンドを一つ追加してください", "ハムサンド2つに変更しました。ほかにはいかがですか?"),
        ("同じもので温めてお願いします", "ハムサンド1つ(温め)ですね。ほかにはいかがですか?"),
        ("同じのを、でもバターを追加して", "ハムサンド1つ(バター)ですね。ほかにはいかがですか?"),
    ],
)
def test_the_cheapest_reading_says_what_is_meant(said: str, reply: str) -> None:
    assert meant(said) == reply


def test_a_change_is_that_of_the_line_that_is_named_by_its_place() -> None:
    ((_, changes), *_) = meant_replies(ORDER, "make the second one large").values()

    assert changes == {3: OrderLine(3, "ham sandwich", "large", 1)}


@pytest.mark.parametrize("said", ["make the lattes venti", "one of the lattes decaf", "two teas and a bagel"])
def test_the_changes_are_among_those_that_can_be_read_from_the_reply(said: str) -> None:
    for reply, (_, changes) in meant_replies(ORDER, said).items():
        assert changes in find_changes(ORDER, read_reply(reply))


def test_it_is_asked_which_of_two_lines_is_meant() -> None:
    order = Order((OrderLine(1, "latte", "", 1), OrderLine(2, "latte", "", 1, ("iced",))))

    assert meant("make the latte large", order) == "Which one: 1 latte or 1 latte (iced)?"
    assert meant("make both lattes large", order) == "Now: 1 large latte and 1 large latte (iced). Anything else?"


def test_more_new_lines_than_a_reply_has_are_not_meant() -> None:
    dishes = "latte tea bagel mocha muffin cookie scone brownie waffle pretzel danish cola water".split()

    assert len(dishes) > MAX_NEW_LINES
    assert all(
        len(changes) <= MAX_NEW_LINES
        for _, changes in meant_replies(Order(), ", ".join(f"a {each}" for each in dishes)).values()
    )


@pytest.mark.parametrize(
    ("said", "written", "settled"),
    [
        ("what did i order", "So far: 1 tea. Anything else?", f"So far: {LATTES} and 1 ham sandwich. Anything else?"),
        ("how much is a mocha", "Hojicha: 2.6 dollars. Anything else?", "Mocha: 4.6 dollars. Anything else?"),
        ("do you have scones", "Yes, tea: 2.6 dollars. Anything else?", "Yes, scone: 2.8 dollars. Anything else?"),
        ("ラテはいくらですか", "モカは4.6ドルです。ほかには?", "ラテは4.2ドルです。ほかには?"),
        ("mochas or lattes?", "Mocha: 4.6 dollars. Anything else?", "Mocha: 4.6 dollars. Anything else?"),
        ("hello", "Hello! Anything else?", "Hello! Anything else?"),
    ],
)
def test_the_program_fills_in_what_it_knows(said: str, written: str, settled: str) -> None:
    assert settle(ORDER, said, written) == settled


@pytest.mark.parametrize(
    "said",
    [
        "remove the lattes and the ham sandwich", "take off the first one and the ham sandwich", "that and the lattes can go",
        "remove the ham sandwich and the grande lattes",
        "ラテとハムサンドを削除してください", "一つ目とハムサンドはいりません", "ラテと最後のを取り消して",
    ],
)  # fmt: skip
def test_two_lines_are_taken_off_by_one_verb(said: str) -> None:
    (_, changes), *_ = meant_replies(ORDER, said).values()

    assert changes == {1: None, 3: None}


@pytest.mark.parametrize("said", ["no latte after all", "we don't need my latte after all"])
def test_the_only_line_is_taken_off_and_the_order_stays(said: str) -> None:
    order = Order((OrderLine(1, "latte", "", 1),))

    assert meant(said, order) == "Taken off: 1 latte. Nothing is ordered now. What would you like?"


BEFORE = Order((OrderLine(1, "latte", "grande", 2, ("oat milk", "iced")), OrderLine(2, "bagel", "", 1)))


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        (
            "undo that",
            "Taken off: 1 ham sandwich. Now: 2 grande lattes (oat milk, iced). 1 bagel. Anything else?",
        ),
        (
            "取り消してください",
            "ハムサンド1つを取り消しました。グランデのラテ2つ(オーツミルク、アイス)に変更しました。ベーグル1つですね。ほかにはいかがですか?",
        ),
    ],
)
def test_what_was_changed_last_is_undone_as_a_whole(said: str, reply: str) -> None:
    (found, (_, changes)), *others = meant_replies(ORDER, said, BEFORE).items()

    assert (found, others) == (reply, [])
    assert changes == {1: BEFORE.lines[0], 2: BEFORE.lines[1], 3: None}


def test_an_order_that_is_undone_from_its_beginning_is_empty() -> None:
    reply, (_, changes) = next(iter(meant_replies(ORDER, "undo that", Order()).items()))

    assert reply.endswith("Nothing is ordered now. What would you like?")
    assert changes == {1: None, 3: None}


def test_where_no_line_changed_it_is_asked_what_to_undo() -> None:
    assert meant_replies(ORDER, "undo that", ORDER) == {"All right. What shall I change?": (0.0, {})}


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("i don't need the one with a lid", "Taken off: 1 latte (lid). Anything else?"),
        ("the one for here with lemon", "Now: 1 tea (for here, lemon). Anything else?"),
        ("switch the one for here to a venti", "Now: 1 venti tea (for here). Anything else?"),
    ],
)
def test_a_line_is_named_by_what_sets_it_apart(said: str, reply: str) -> None:
    order = Order(
        (
            OrderLine(1, "latte", "", 1, ("lid",)),
            OrderLine(2, "tea", "", 1, ("for here",)),
            OrderLine(3, "bagel", "", 1),
        )
    )

    assert meant(said, order) == reply


@pytest.mark.parametrize(
    "said",
    [
        "don't remove the lattes",
        "put the latte back",
        "I want the sandwich back",
        "ラテは取り消さないで",
        "不要取消拿铁",
    ],
)
def test_words_that_keep_a_line_take_nothing_off(said: str) -> None:
    replies = meant_replies(ORDER, said)

    assert [changes for _, changes in replies.values()] == [{}]


def test_a_text_too_long_to_be_read_has_no_meaning() -> None:
    assert not meant_replies(ORDER, "two lattes, " * 100)


CAFE = Order(
    (
        OrderLine(1, "chai latte", "small", 2, ("soy milk", "espresso shot")),
        OrderLine(2, "green tea", "", 1),
        OrderLine(3, "blueberry muffin", "", 4),
    )
)


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("make the second one iced", "Now: 1 green tea (iced). Anything else?"),
        ("remove the muffin", "Taken off: 4 blueberry muffins. Anything else?"),
        ("change the tea to a mocha", "Now: 1 mocha. Anything else?"),
        ("take off the extra shot", "Now: 2 small chai lattes (soy milk). Anything else?"),
        ("only two blueberry muffins", "Now: 2 blueberry muffins. Anything else?"),
        ("swap the chai lattes for smoothies", "Now: 2 smoothies. Anything else?"),
        (
            "最初のをアイスにして",
            "スモールのチャイラテ2つ(豆乳、エスプレッソショット、アイス)に変更しました。ほかにはいかがですか?",
        ),
    ],
)
def test_a_change_is_of_the_line_that_it_can_be_meant_of(said: str, reply: str) -> None:
    assert meant(said, CAFE) == reply


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("make the third one iced", "All right. What shall I change?"),
        ("make the muffins iced", "All right. What shall I change?"),
        ("三つ目をアイスに", "かしこまりました。何を変更しますか?"),
    ],
)
def test_what_is_eaten_is_not_made_iced(said: str, reply: str) -> None:
    assert meant(said, CAFE) == reply


def test_a_pronoun_is_of_the_line_that_the_change_suits() -> None:
    order = Order((OrderLine(1, "latte", "", 2), OrderLine(2, "carrot cake", "", 1)))

    assert meant("make them large", order) == "Now: 2 large lattes. Anything else?"
    assert meant("make one iced", order) == "Now: 1 latte and 1 latte (iced). Anything else?"
    assert meant("一つはアイスにしてください", order).startswith("ラテ1つとラテ1つ(アイス)に変更しました。")


def test_a_bare_count_is_of_the_only_line() -> None:
    assert meant("やっぱり3つにして", Order((OrderLine(1, "smoothie", "", 4),))).startswith(
        "スムージー3つに変更しました。"
    )


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Wait, let's start over.", "The order is cancelled."),
        ("最初からやり直したいです", "ご注文をキャンセルしました。"),
        ("Change the milk to soy, please", "Now: 3 large lattes (soy milk, vanilla syrup). Anything else?"),
        ("with almond milk instead", "Now: 3 large lattes (almond milk, vanilla syrup). Anything else?"),
        (
            "オーツミルクを豆乳に変えてください",
            "ラージのラテ3つ(豆乳、バニラシロップ)に変更しました。ほかにはいかがですか?",
        ),
        ("take two lattes off", "Now: 1 large latte (oat milk, vanilla syrup). Anything else?"),
        ("one latte less, please", "Now: 2 large lattes (oat milk, vanilla syrup). Anything else?"),
        ("remove 3 lattes", "Taken off: 3 large lattes (oat milk, vanilla syrup). Anything else?"),
        ("no wait, I meant bagels", "Now: 2 bagels. Anything else?"),
        ("I meant 5 bagels", "Now: 5 bagels. Anything else?"),
    ],
)
def test_a_text_that_is_one_short_correction_leaves_no_choice(said: str, reply: str) -> None:
    order = Order((
        OrderLine(1, "latte", "large", 3, ("oat milk", "vanilla syrup")),
        OrderLine(2, "muffin", "", 2),
    ))  # fmt: skip

    assert list(meant_replies(order, said)) == [reply]


@pytest.mark.parametrize(
    "said",
    [
        "take one latte, please",  # an order
        "remove four lattes",  # there are three
        "actually only one",  # of which line?
        "I meant the muffin",  # which is on the order
        "change the milk to large",  # a size
        "with oat milk instead",  # nothing changes
    ],
)
def test_a_correction_that_may_mean_something_else_stays_open(said: str) -> None:
    order = Order((OrderLine(1, "latte", "large", 3, ("oat milk",)), OrderLine(2, "muffin", "", 2)))

    assert all(cost > 0 for cost, _ in meant_replies(order, said).values())


def test_a_bare_number_corrects_the_only_line() -> None:
    order = Order((OrderLine(1, "latte", "", 3),))

    assert list(meant_replies(order, "actually just two")) == ["Now: 2 lattes. Anything else?"]
    assert list(meant_replies(order, "やっぱり一つだけでいいです")) == ["ラテ1つに変更しました。ほかにはいかがですか?"]
