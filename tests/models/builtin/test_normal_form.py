from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.tokenizer import MAX_CHARS, normalize_text

SIGNS = st.text(
    st.one_of(
        st.characters(),
        st.characters(min_codepoint=0x2000, max_codepoint=0x33FF),
        st.characters(min_codepoint=0x300, max_codepoint=0x36F),
        st.sampled_from("H2Oa1 \t²³⁻½·×→"),
    ),
    max_size=40,
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("SO₄²⁻ and Ca²⁺", "SO4^2- and Ca^2+"),
        ("2·10⁻³ mol", "2·10^-3 mol"),
        ("½ cup, 2½ cups", "1/2 cup, 2 1/2 cups"),
        ("CuSO4•5H2O ⇌ CuSO4 + 5 H2O", "CuSO4·5H2O -> CuSO4 + 5 H2O"),
        ("ラテを２つ、ｱｲｽで。", "ラテを2つ、アイスで。"),
        ("①３つ", "(1)3つ"),
        ("“it’s” 3 × 4 − 1", '"it\'s" 3 x 4 - 1'),
        ("a\u200b\u202eb\x00c\r\n\td", "ab c d"),
        ("\ud83d half", "half"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_a_normalized_text_has_the_same_meaning(text: str, normal: str) -> None:
    assert normalize_text(text) == normal


@given(SIGNS)
def test_normalizing_is_idempotent(text: str) -> None:
    assert normalize_text(normalize_text(text)) == normalize_text(text)


@given(SIGNS)
def test_a_normalized_text_has_only_visible_characters(text: str) -> None:
    normal = normalize_text(text)
    normal.encode()
    assert not any(category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn") for sign in normal)
    assert normal == " ".join(normal.split())


def test_the_end_of_a_long_text_is_kept() -> None:
    normal = normalize_text("x" * 100_000 + " how many?")
    assert len(normal) == MAX_CHARS
    assert normal.endswith("xx how many?")


def test_accents_on_one_letter_are_limited() -> None:
    assert len(normalize_text("a" + "\u0335" * 500)) == 3
