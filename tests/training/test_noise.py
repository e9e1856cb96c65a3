"""Noise: what people type in a hurry, and what it must leave alone."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.steps import lines_run
from training.builtin.noise import kanji, noisy, noisy_ja, number_ja, number_words

TEXT = "A cyclist rides 36 metres in 9 seconds, while Zorplin holds 2.5 moles of NaOH and 3 g of Ba. What is its speed?"
JAPANESE = "コーヒーのラージを二つと、チーズケーキを1つお願いします。"


def test_a_seed_gives_the_same_texts_again():
    first, second = ([noisy(random, TEXT, 0.5) for _ in range(50)] for random in (Random(4), Random(4)))
    assert first == second
    assert len(set(first)) > 40


def test_numbers_formulas_and_kept_words_stay():
    random = Random(1)
    for _ in range(500):
        text = noisy(random, TEXT, 0.8, keep=("Zorplin",))
        assert re.findall(r"\d[\d.]*\d|\d", text) == ["36", "9", "2.5", "3"]
        assert all(word in text for word in ("Zorplin", "NaOH", "Ba"))


def test_without_a_level_nothing_happens():
    random = Random(1)
    assert {noisy(random, TEXT, 0) for _ in range(50)} == {TEXT}
    assert {noisy_ja(random, JAPANESE, 0) for _ in range(50)} == {JAPANESE}


def test_white_space_stays_single():
    random = Random(2)
    for _ in range(500):
        text = noisy(random, TEXT, 0.9)
        assert text == " ".join(text.split())


@given(st.text(max_size=60), st.integers(0, 1_000))
def test_any_text_gets_through(text: str, seed: int):
    noisy(Random(seed), text, 1.0)
    noisy_ja(Random(seed), text, 1.0)


def test_a_sentence_takes_little_work():
    random = Random(3)
    assert max(lines_run(noisy, random, TEXT) for _ in range(100)) < 2_000


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1, {"one", "a single"}),
        (2, {"two", "a couple of"}),
        (6, {"six", "half a dozen"}),
        (12, {"twelve", "a dozen"}),
        (25, {"twenty-five", "twenty five"}),
        (100, {"one hundred", "a hundred"}),
        (106, {"one hundred and six", "one hundred six"}),
        (12_000, {"twelve thousand"}),
    ],
)
def test_numbers_in_words(number: int, written: set[str]):
    random = Random(5)
    assert {number_words(random, number, digits=0) for _ in range(200)} == written


def test_numbers_in_digits():
    random = Random(5)
    assert {number_words(random, 12_500, digits=1) for _ in range(50)} == {"12500", "12,500"}
    assert number_words(random, 0, digits=0) == "0"


def test_japanese_counts():
    random = Random(6)
    assert {number_ja(random, 2) for _ in range(100)} == {"二つ", "ふたつ", "2つ"}
    assert {number_ja(random, 12) for _ in range(100)} == {"十二個", "12個"}
    assert {number_ja(random, 3, "杯", wide=True) for _ in range(100)} == {"三杯", "3杯", "３杯"}
    assert [kanji(number) for number in (9, 10, 21, 105, 9_999)] == ["九", "十", "二十一", "百五", "九千九百九十九"]


def test_kept_japanese_words_stay():
    random = Random(7)
    texts = {
        noisy_ja(random, JAPANESE, 0.8, keep=("コーヒー", "チーズケーキ", "二つ", "1つ", "ラージ")) for _ in range(300)
    }
    assert len(texts) > 50
    assert all("コーヒー" in text and "チーズケーキ" in text and "1" in text for text in texts)
