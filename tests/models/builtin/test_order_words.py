"""What guests call the things on the menu: wordings, slips of the fingers, and numbers that count something."""

import pytest

from taiwa.models.builtin.order_words import asks_to_undo, find_counts, find_meanings, sentences, shown


def names(text: str) -> set[str]:
    return {name for meanings in find_meanings(text) for _, name in meanings}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("two grande caffe lattes", {"latte", "grande"}),
        ("a mocah and a bagle", {"mocha", "bagel"}),
        ("an orange juice", {"orange juice"}),
        ("ラージの抹茶オレを二つ", {"large", "matcha latte"}),
        ("把拿铁换成冰的", {"latte", "iced"}),
        ("two sugars and three chairs", {"sugar"}),
        ("i don't want to skip this", set[str]()),
        ("", set[str]()),
    ],
)
def test_wordings_are_found_with_slips_and_the_longest_first(text: str, found: set[str]) -> None:
    assert names(text) == found


def test_a_word_may_mean_several_things() -> None:
    (meanings,) = find_meanings("caramel almond")[1:]

    assert {("options", "almond milk"), ("options", "almond syrup")} <= meanings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("three lattes and a dozen bagels", {1, 3, 12}),
        ("cut in half, 2% milk, the second one", set[int]()),
        ("ラテをみっつ、二つ目", {3}),
        ("zwei kaffee", {2}),
    ],
)
def test_numbers_that_count_nothing_are_left_out(text: str, found: set[int]) -> None:
    assert find_counts(text) - {1} == found - {1}


def test_the_desk_has_a_word_in_japanese_for_everything() -> None:
    assert shown("dishes")["latte"] == "ラテ"
    assert all(word for kind in ("dishes", "sizes", "options") for word in shown(kind).values())
    assert "Anything else?" in sentences()


@pytest.mark.parametrize(
    "text",
    [
        "undo", "Undo that!", "could you undo that, please?", "sorry, undo the last change", "revert it", "Go back one step.",
        "取り消して", "さっきの変更を取り消してください。", "元に戻してください", "一つ前に戻して", "やっぱり取り消しで", "撤销", "请撤销刚才的操作", "撤回吧",
        "把刚才的更改撤销",
    ],
)  # fmt: skip
def test_words_that_take_back_the_last_change_are_known(text: str) -> None:
    assert asks_to_undo(text)


@pytest.mark.parametrize(
    "text",
    [
        "undo the latte", "undo the last one", "undo those", "i want to undo my order", "注文を取り消して", "ラテを取り消して",
        "それを取り消して", "全部取り消してください", "取消拿铁", "",
    ],
)  # fmt: skip
def test_words_that_name_what_is_taken_off_undo_no_change(text: str) -> None:
    assert not asks_to_undo(text)
