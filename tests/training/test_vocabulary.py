"""The tokenizer trainer: elements and digits stay whole and single, pieces come of what is frequent, and it is kept as it is."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.tokenizer import BYTES, Tokens
from training.builtin.vocabulary import ELEMENTS, SPECIAL, train, write

TEXTS = [
    f"How many grams of NaOH are {number} moles? <<molar_mass: NaOH>> 39.997 g/mol\nラテを{number}つお願いします。"
    for number in range(1, 60)
]
SIZE = 700


@pytest.fixture(scope="module")
def tokens() -> Tokens:
    return train(TEXTS, SIZE)


def test_the_table_is_no_larger_than_asked_and_begins_with_bytes_and_special_tokens(tokens: Tokens) -> None:
    assert BYTES + len(SPECIAL) < len(tokens) <= SIZE
    assert list(tokens.special) == list(SPECIAL)
    assert tokens.special[SPECIAL[0]] == BYTES


def test_digits_are_single_tokens_always(tokens: Tokens) -> None:
    assert len(tokens.encode("39997")) == 5
    assert not any(any(sign.isdigit() for sign in piece) for piece in tokens.pieces)


def test_every_element_is_one_token_within_a_formula(tokens: Tokens) -> None:
    letters = [each for each in ELEMENTS if len(each) > 1]
    assert all(each in tokens.pieces for each in letters)
    assert [tokens.decode([token]) for token in tokens.encode("NaOHgCl2")] == ["Na", "O", "Hg", "Cl", "2"]


def test_what_is_frequent_is_one_token(tokens: Tokens) -> None:
    assert len(tokens.encode(" moles")) == 1
    assert len(tokens.encode(" umbrella")) > 2


def test_what_was_drawn_is_shorter_in_tokens_than_in_bytes(tokens: Tokens) -> None:
    assert sum(len(tokens.encode(text)) for text in TEXTS) < sum(len(text.encode()) for text in TEXTS) / 2


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_comes_back(text: str) -> None:
    tokens = trained()
    assert tokens.decode(tokens.encode(text)) == text


def test_the_same_texts_give_the_same_table(tokens: Tokens) -> None:
    assert train(TEXTS, SIZE).pieces == tokens.pieces


def test_a_table_is_kept_and_read_again(tokens: Tokens, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    write(tokens, path)
    table = json.loads(path.read_text("utf-8"))
    assert Tokens(table["special"], table["pieces"]).encode(TEXTS[0]) == tokens.encode(TEXTS[0])


KEPT: list[Tokens] = []


def trained() -> Tokens:
    """One table for all examples of a property."""
    if not KEPT:
        KEPT.append(train(TEXTS, SIZE))
    return KEPT[0]
