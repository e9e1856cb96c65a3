from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.models.inprocess.generator import splice_tokens

WORDS = ("1", "2", "3", "12", "123", "23", " ", "  ", " a", "a", "ab", "b", "文", "文b", "\n", "\n\n")
MADE = Vocabulary(
    (*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS), b"<end>"), 256 + len(WORDS)
)
END = MADE.end[0]
texts = st.text("12 ab文\n", max_size=12)


def spell(token: int) -> bytes:
    return b"" if token in MADE.special else MADE.tokens[token]


def written(tokens: list[int]) -> bytes:
    return b"".join(map(spell, tokens))


@given(texts, texts)
def test_behind_the_tokenizers_own_tokens_a_text_is_divided_as_one(before: str, text: str) -> None:
    assert written(splice_tokens(MADE.encode(before), text, spell, MADE.encode)) == (before + text).encode()


@given(st.lists(st.sampled_from(range(256, 256 + len(WORDS))), max_size=8), texts)
def test_tokens_that_a_model_drew_stay_up_to_the_border(drawn: list[int], text: str) -> None:
    found = splice_tokens(drawn, text, spell, MADE.encode)

    assert written(found) == written(drawn) + text.encode()
    # The longest word has two characters more than one can share with what comes: what lies further back stays.
    assert common_prefix(found, drawn) >= len(drawn) - 3


def test_a_token_that_grows_with_what_comes_is_taken_back() -> None:
    one, two = (MADE.tokens.index(word) for word in (b"a", b"12"))

    found = splice_tokens([one, two], "3 a", spell, MADE.encode)

    assert [MADE.tokens[token] for token in found] == [b"a", b"123", b" a"]


def test_a_division_of_the_models_own_is_not_mended() -> None:
    drawn = [MADE.tokens.index(word) for word in (b"1", b"2", b"a")]

    assert splice_tokens(drawn, " a", spell, MADE.encode)[:3] == drawn


def test_a_special_token_never_grows() -> None:
    assert splice_tokens([END], "12", spell, MADE.encode) == [END, MADE.tokens.index(b"12")]


def test_half_a_character_is_put_together_with_its_other_half() -> None:
    half = "文".encode()[:2]
    found = splice_tokens([*half], "a", spell, MADE.encode)

    assert written(found) == half + b"a"
