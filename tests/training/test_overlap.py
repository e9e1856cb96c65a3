"""Runs that a draw shares with a text it must not have seen: eight words, twenty characters, whatever their signs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.builtin.overlap import CHARACTERS, WORDS, Overlap
from training.builtin.samples import Sample, Span

KEPT = "The old ferryman counted nine grey herons before breakfast on Tuesday."
JAPANESE = "昨日の夕方に駅前の小さな喫茶店で友達と長い話をしました。"


def shared(prompt: str, *texts: str) -> tuple[str, ...]:
    return Overlap(texts).shared(Sample("solve", "", prompt, (Span("1"),)))


def test_eight_words_in_a_row_are_found_without_case_and_signs() -> None:
    assert shared("Ferryman: counted NINE grey-herons; before BREAKFAST, on, I think, Monday", KEPT) == (
        "ferryman counted nine grey herons before breakfast on",
    )


def test_seven_words_are_no_run() -> None:
    assert shared("ferryman counted nine grey herons before breakfast at noon", KEPT) == ()


def test_twenty_characters_of_japanese_are_found_whatever_stands_between() -> None:
    begun = JAPANESE[:12] + "、 " + JAPANESE[12 : CHARACTERS + 1]
    assert len(shared(begun, JAPANESE)) == 2
    assert shared(JAPANESE[: CHARACTERS - 1], JAPANESE) == ()


def test_answers_are_looked_through_too() -> None:
    sample = Sample("solve", "", "Nothing.", (Span("Did "), Span(KEPT)))
    assert Overlap([KEPT]).shared(sample)


def test_numbers_alone_are_no_run() -> None:
    numbers = "1 2 3 4 5 6 7 8 9"
    assert shared(numbers, numbers) == ()
    assert shared(f"{numbers} g", f"{numbers} g") == ("3 4 5 6 7 8 9 g",)


def test_full_width_letters_are_letters() -> None:
    wide = "".join(chr(ord(sign) + 0xFEE0) if "a" <= sign <= "z" else sign for sign in KEPT.lower())
    assert shared(wide, KEPT)


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=20), st.integers(0, 20))
def test_a_run_is_found_exactly_where_eight_words_stand_in_both(words: list[str], start: int) -> None:
    piece = words[start : start + WORDS]
    found = shared(f"so {', '.join(piece)}!", " ".join(words))
    assert bool(found) == (len(piece) == WORDS)


def test_a_folder_gives_every_text_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    rows = [{"a": {"b": ["x", KEPT]}, "n": 3}, ["y", {"z": JAPANESE}]]
    (tmp_path / "more" / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n\n" for row in rows))

    found = Overlap.of_folders(tmp_path)

    assert len(found) == len(Overlap([KEPT, JAPANESE])) > 10
    assert found.shared(Sample("desk", "", JAPANESE, ()))
    assert len(Overlap.of_folders(tmp_path / "nowhere")) == 0


@pytest.mark.parametrize("prompt", ["", "…", "one two", "\N{ZERO WIDTH SPACE}" * 30])
def test_little_or_nothing_shares_nothing(prompt: str) -> None:
    assert shared(prompt, KEPT, JAPANESE, prompt) == ()
