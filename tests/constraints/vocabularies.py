"""Small vocabularies for tests."""

from collections.abc import Iterable

from hypothesis import strategies as st

from taiwa.constraints.vocabulary import Vocabulary

BYTES = Vocabulary.of_bytes()
END = "<end>"


def vocabulary(*texts: str | bytes) -> Vocabulary:
    """Tokens that write these texts, after token 0, which ends a text."""
    written = (text.encode() if isinstance(text, str) else text for text in texts)
    return Vocabulary((END.encode(), *written), end=0)


def spelled(made: Vocabulary, texts: Iterable[str]) -> list[int]:
    """The tokens of these texts."""
    return [made.tokens.index(text.encode()) for text in texts]


def with_bytes(*texts: str) -> Vocabulary:
    """Every byte, these texts, and an end."""
    return Vocabulary((*BYTES.tokens, *(text.encode() for text in texts)), end=256)


pieces = st.lists(st.text('abé文"\\ 0', min_size=1, max_size=3), max_size=6)
