"""Text as words for searching, and the places where they were found.

Scripts that put no spaces between words (Han, kana, Thai …; Hangul too, for its particles) are cut into overlapping pairs of
characters, so a Japanese word of two characters is found; all others into words, which a query finds by their beginning.
"""

import re
import unicodedata

__all__ = ["fold", "index_text"]

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
LONGEST = 40
"""Characters of a word; a longer one is no word but a blob, and is kept in pieces."""
SPACED = re.compile(rf"[^\W_{DENSE}]{{1,{LONGEST}}}")
PACKED = re.compile(f"[{DENSE}]+")


def fold(text: str) -> str:
    """Make what differs only by width, case or composition equal."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def index_text(*texts: str | None) -> str:
    """Return the words of a turn, each once and in no order, separated by spaces."""
    words: set[str] = set()
    for text in texts:
        if text:
            folded = fold(text)
            words.update(SPACED.findall(folded))
            if not folded.isascii():
                words.update(_pairs(folded))
    return " ".join(words)


def _pairs(folded: str) -> set[str]:
    return {run[place : place + 2] for run in PACKED.findall(folded) for place in range(len(run))}
