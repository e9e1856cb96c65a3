"""The tokenizer: any text comes back, digits and elements stand alone, and nothing in a text is a special token."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.tokenizer import BYTES, END, MAX_CACHED_CHARS, Tokens, split_runs

PIECES = (
    " mol",
    " of",
    "mo",
    "mol",
    " moles",
    "Na",
    "Cl",
    "Ca",
    "th",
    " the",
    "お願い",
    "お",
    "ラテ",
    "\n\n",
    "..",
    " <<",
    "é",
)
SPECIAL = (END, "<answer>", "<solve>")
TOKENS = Tokens(SPECIAL, PIECES)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text(
    "0123NaClO()h e<>お願いラテ\n.", max_size=60
)


@given(TEXT)
def test_any_text_comes_back(text: str) -> None:
    assert TOKENS.decode(TOKENS.encode(text)) == text


@given(TEXT, st.integers(0, 99), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_text_in_other_pieces_comes_back_too(text: str, seed: int, share: float) -> None:
    found = TOKENS.encode_randomly(text, Random(seed), share)
    assert TOKENS.decode(found) == text
    if not share:
        assert found == TOKENS.encode(text)


@given(TEXT)
def test_runs_are_the_whole_text(text: str) -> None:
    assert "".join(split_runs(text)) == text


@given(TEXT)
def test_no_text_holds_a_special_token(text: str) -> None:
    special = set(TOKENS.special.values())
    assert not special & {*TOKENS.encode(f"{text}<end><answer>{text}")}
    assert not special & {*TOKENS.encode_randomly(f"<solve>{text}", Random(1), 1.0)}


@given(st.integers(0, 10**12), st.sampled_from(["NaCl", "Ca(OH)2", "a word"]))
def test_digits_stand_alone_wherever_they_stand(number: int, beside: str) -> None:
    found = TOKENS.encode(f"{beside} {number}{beside}")
    written = [TOKENS.decode([token]) for token in found]
    assert [each for each in written if any(sign.isdigit() for sign in each)] == [
        sign for sign in f"{beside}{number}{beside}" if sign.isdigit()
    ]


@pytest.mark.parametrize(
    ("text", "divided"),
    [
        ("NaCl", ["Na", "Cl"]),
        ("2Ca(OH)2", ["2", "Ca", "(", "O", "H", ")", "2"]),
        ("12 mol of NaOH.", ["1", "2", " mol", " of", " ", "Na", "O", "H", "."]),
        ("ラテを2つ", ["ラテを", "2", "つ"]),
        ("a\n\nb", ["a", "\n\n", "b"]),
        ("", []),
    ],
)
def test_no_token_crosses_a_run(text: str, divided: list[str]) -> None:
    assert list(split_runs(text)) == divided


def test_the_longest_piece_is_taken() -> None:
    assert [TOKENS.decode([token]) for token in TOKENS.encode(" moles")] == [" moles"]
    assert [TOKENS.decode([token]) for token in TOKENS.encode(" mold")] == [" mol", "d"]
    assert [TOKENS.decode([token]) for token in TOKENS.encode("お願い")] == ["お願い"]


def test_what_has_no_piece_is_bytes() -> None:
    assert TOKENS.encode("🐈") == tuple("🐈".encode())
    assert all(token < BYTES for token in TOKENS.encode("zqx"))


def test_a_piece_of_one_sign_beats_its_bytes() -> None:
    assert TOKENS.encode("é") == (TOKENS.pieces["é"],)


def test_half_a_letter_is_written_as_something_that_can_be_read() -> None:
    assert TOKENS.decode(TOKENS.encode("a\ud800b")) == "a?b"


def test_a_run_too_long_to_be_kept_is_divided_alike() -> None:
    word = "molesth" * MAX_CACHED_CHARS
    assert TOKENS.decode(TOKENS.encode(word)) == word


def test_special_tokens_write_nothing() -> None:
    assert TOKENS.decode([TOKENS.special["<solve>"], *TOKENS.encode("x"), TOKENS.special[END]]) == "x"
