"""Random regular expressions, and texts that have a chance to match them."""

import re

from hypothesis import strategies as st

ALPHABET = 'abé文\n 0_"\\'
ATOMS = [
    "a",
    "b",
    "é",
    "文",
    ".",
    r"\d",
    r"\w",
    r"\s",
    r"\W",
    "[ab]",
    "[^a]",
    "[a-é]",
    r"[\d文]",
    r"\n",
    '"',
    r"\\",
    "(?i:É)",
]

texts = st.text(ALPHABET, max_size=7)


def patterns() -> st.SearchStrategy[str]:
    """Patterns that Python's `re` takes as well and that are small enough for any automaton."""
    return st.recursive(st.sampled_from(ATOMS), _larger, max_leaves=8)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    times = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, times).map(lambda two: f"({two[0]}){two[1]}"),
        inner.map(lambda one: f"(|{one})"),
    )


def matches(pattern: str, text: str) -> bool:
    """What Python's `re` says."""
    return re.fullmatch(pattern, text, re.ASCII if "(?i" not in pattern else 0) is not None
