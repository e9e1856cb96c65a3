from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.prompt_text import LONGEST, plain

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
    ("text", "read"),
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
def test_means_what_was_written(text: str, read: str) -> None:
    assert plain(text) == read


@given(SIGNS)
def test_stays_as_it_is_once_it_is_plain(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(SIGNS)
def test_holds_no_sign_that_cannot_be_seen(text: str) -> None:
    read = plain(text)
    read.encode()
    assert not any(category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn") for sign in read)
    assert read == " ".join(read.split())


def test_keeps_the_end_of_a_long_text() -> None:
    read = plain("x" * 100_000 + " how many?")
    assert len(read) == LONGEST
    assert read.endswith("xx how many?")


def test_leaves_few_marks_on_one_letter() -> None:
    assert len(plain("a" + "\u0335" * 500)) == 3
