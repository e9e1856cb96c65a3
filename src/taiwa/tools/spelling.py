"""What a formula in the wrong letter case was meant to be: `h2o`, `NaCL`, `cacl2`."""

import re

from taiwa.tools.elements import elements

__all__ = ["meant"]

MAX_CHARS = 24
LONGEST_WORD = 4
MAX_PROPOSALS = 3
MAX_STEPS = 2_000
WORD = re.compile(r"[A-Za-z]+")


def meant(text: str) -> tuple[str, ...]:
    """Propose right spellings, those nearest to the text first; none where the text is long, or a word rather than a formula.

    >>> meant("h2o"), meant("NaCL")
    (('H2O',), ('NaCl',))
    """
    words = WORD.findall(text)
    if (
        len(text) > MAX_CHARS
        or " " in text
        or not words
        or (len(words) == 1 and len(text) > LONGEST_WORD and text.isalpha())
    ):
        return ()
    partial = [""]
    steps = 0
    for piece in re.findall(r"[A-Za-z]+|[^A-Za-z]+", text):
        ways = _split(piece) if piece[0].isalpha() else [piece]
        partial = [start + way for start in partial for way in ways][:MAX_STEPS]
        steps += len(partial)
        if steps > MAX_STEPS:
            return ()
    found = [each for each in partial if each != text]
    found.sort(key=lambda each: (sum(a != b for a, b in zip(each, text, strict=True)), sum(map(str.isupper, each))))
    return tuple(found[:MAX_PROPOSALS])


def _split(letters: str) -> list[str]:
    """Every way to write these letters as symbols."""
    ways: list[list[str]] = [[""]]
    for end in range(1, len(letters) + 1):
        here: list[str] = []
        for length in (1, 2):
            symbol = letters[end - length : end].capitalize() if end >= length else ""
            if symbol in elements() and len(symbol) == length:
                here += [start + symbol for start in ways[end - length]]
        ways.append(here[:200])
    return ways[-1]
