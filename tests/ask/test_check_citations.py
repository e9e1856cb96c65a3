"""Quotations are found in spite of widths, spaces, quotation marks and emphasis, and absent words are not."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taiwa.ask.check_citations import clean_untrusted, find_quotation

ALPHABET = "ab 12がﾞｶ。、\n*|“\"'’—-ß①ﬁÅ\u0301\u200b"


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("ten days", "has **ten** days.", "ten** days"),
        ("Ten Days.", "ｔｅｎ　ｄａｙｓ、", "ｔｅｎ　ｄａｙｓ"),
        ("年に五日", "一年に\n五日です", "年に\n五日"),
        ("ガギ", "ｶﾞｷﾞ", "ｶﾞｷﾞ"),
        ("“it's” – so", '"it’s" — so', 'it’s" — so'),
        ("3年 16日", "| 3年 | 16日 |", "3年 | 16日"),
        ("Ångström", "A\u030angstro\u0308m", "A\u030angstro\u0308m"),
        ("a b", "a\u200b \u00a0\n b", "a\u200b \u00a0\n b"),
        ("straße", "STRASSE", "STRASSE"),
    ],
)
def test_words_are_found_in_spite_of_widths_and_marks(words: str, text: str, found: str) -> None:
    place = find_quotation(words, text)

    assert place is not None
    assert text[slice(*place)] == found


@pytest.mark.parametrize(
    ("words", "text"), [("ten days", "tendays"), ("days ten", "ten days"), ("", "a"), ("—", "a — b")]
)
def test_absent_words_are_not_found(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@pytest.mark.parametrize(
    ("words", "text"),
    [("\u03011", "11111\u03011"), ("\u0301a", "a1\u0301a"), ("\u0301 x", "①\u0301 x"), ("平", "㍻です")],
)
def test_words_cut_in_the_middle_of_a_combining_sequence_are_not_a_quotation(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@given(st.text(ALPHABET, max_size=30), st.integers(0, 30), st.integers(0, 30))
@example("11111\u0301", 5, 2)
@example("a1\u0301a", 2, 2)
def test_a_part_that_was_found_is_found_again(text: str, start: int, size: int) -> None:
    part = text[start : start + size]
    place = find_quotation(part, text)
    if place is not None:
        assert 0 <= place[0] < place[1] <= len(text)
        assert find_quotation(text[slice(*place)], text) is not None


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_cleaning_is_idempotent(text: str) -> None:
    shown = clean_untrusted(text, "")

    assert clean_untrusted(shown, "") == shown
    assert "\n" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("5 days", "There are 25 days."),
        ("500 yen", "Up to 1,500 yen."),
        ("1", "Up to 1,500 yen."),
        ("5 km", "It is 2.5 km."),
        ("you can", "You cannot carry it over."),
        ("able to", "You are unable to."),
        ("五日前", "十五日前までに申請する。"),
        ("3万円", "13万円まで。"),
    ],
)
def test_a_part_of_a_word_or_a_number_is_not_a_quotation(words: str, text: str) -> None:
    assert find_quotation(words, text) is None


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("5 days", "25 days, then 5 days.", "5 days"),
        ("休暇", "年次有給休暇制度", "休暇"),
        ("API鍵", "このAPI鍵は", "API鍵"),
        ("1,500", "Up to 1,500.", "1,500"),
        ("25日", "毎月25日です", "25日"),
        ("연차", "연차휴가", "연차"),
        ("500円", "料金は500円。", "500円"),
        ("day 3", "On day 3. On day 4", "day 3"),
    ],
)
def test_a_whole_word_is_a_quotation_anywhere(words: str, text: str, found: str) -> None:
    start, end = find_quotation(words, text) or (0, 0)

    assert text[start:end] == found
