"""Quotations: where the words that somebody quotes stand in a text, whatever happened to widths, spaces, quotes and marks."""

import re
from collections.abc import Iterator
from unicodedata import normalize

from taiwa.kernel.text import CONTROL

__all__ = ["TAG", "clean_untrusted", "find_quotation"]


CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with what may be composed with it."""

SAME = str.maketrans({
    **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‐‑‒–—―−", "-"), "…": "...",
})  # fmt: skip

DROPPED = frozenset("*`\u00ad")
"""Marks of emphasis and code, which who quotes leaves out."""

WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff]")

SPACING = frozenset("|")
"""The border of a cell counts as white space."""

WORDLIKE = re.compile(r"\w")

FIGURES = "〇一二三四五六七八九十百千万億萬亿"

LETTER = "(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff])\\w)"

INSIDE = re.compile(f".*(?:{LETTER}\0{LETTER}|[{FIGURES}]\0[{FIGURES}]|\\d[.,]\0\\d|\\d\0[.,]\\d).*", re.DOTALL)
"""A place within a word of a script with spaces, or within a number."""

TARGET = r"\((?P<to>(?:[^()\s]|\([^()]*\))*)(?:[^()]|\([^()]*\))*\)"

IMAGE = re.compile(rf"!\[(?P<words>[^\]\[]*)\](?:{TARGET}|\[[^\]]*\])")

LINK = re.compile(rf"(?<!!)\[(?P<words>[^\]\[]*)\]{TARGET}")

ADDRESS = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|www\.|data:|javascript:|mailto:)[^\s<>\"'）」』】\])]*", re.IGNORECASE
)

NUMBERED = re.compile(r"[\[【［]\s*(?:\d{1,3}(?:\s*[,、，-]\s*\d{1,3})*)\s*[\]】］]")

TAG = re.compile(r"<(?=[a-zA-Z/!|])")

REMOVED = "[…]"

ENDS = ".,;:!?。、，；：！？"

AROUND = f" {ENDS}'\"「」『』"


def find_quotation(words: str, text: str) -> tuple[int, int] | None:
    """Return where a text holds some words, as (start, end) of what is written there; None where it does not.

    Characters are compared as compatible forms (NFKC) without case. White space counts as one space, and between Japanese or
    Chinese characters not at all; curly quotes are straight, dashes alike, and marks of emphasis are passed over, as is the
    punctuation at both ends of the words. A part of a word or of a number is no quotation: `5 days` does not stand in `25 days`.

    >>> find_quotation("twenty  “days”", 'up to **twenty**\\n"days" a year')
    (8, 22)
    """
    wanted = "".join(sign for sign, _ in _folded(words)).strip(AROUND)
    if not WORDLIKE.search(wanted):
        return None
    folded = list(_folded(text))
    whole = "".join(sign for sign, _ in folded)
    at = whole.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_parts(whole, at) or _parts(whole, end)):
            return folded[at][1][0], folded[end - 1][1][1]
        at = whole.find(wanted, at + 1)
    return None


def _parts(text: str, at: int) -> bool:
    """Whether a place lies within a word or a number."""
    return INSIDE.fullmatch(text[max(at - 2, 0) : at] + "\0" + text[at : at + 2]) is not None


def _folded(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each character of the folded text with where it stands in the text as written."""
    last, space = "", None
    for cluster in CLUSTER.finditer(text):
        if cluster[0] in DROPPED or CONTROL.match(cluster[0]):
            continue
        for sign in normalize("NFKC", cluster[0]).translate(SAME).casefold():
            if sign.isspace() or sign in SPACING:
                space = space or cluster.span()
                continue
            if space and not (WIDE.match(last) or WIDE.match(sign)):
                yield " ", space
            last, space = sign, None
            yield sign, cluster.span()


def clean_untrusted(text: str, sources: str = "") -> str:
    """Make what a model wrote of documents safe to show: one line, no image, no tag, no number that looks like a citation of
    ours, nothing that is not seen, and no address that does not stand in the sources as well.

    >>> clean_untrusted("See ![x](https://a.example/?q=1) [here](https://b.example) [2] now", "go to https://b.example")
    'See x here (https://b.example) now'
    """
    line = " ".join(CONTROL.sub("", text).split())
    line = IMAGE.sub(lambda found: found["words"], line)
    line = LINK.sub(lambda found: f"{found['words']} ({found['to']})" if found["to"] else found["words"], line)
    line = ADDRESS.sub(lambda found: found[0] if found[0].rstrip(ENDS) in sources else REMOVED, line)
    return " ".join(TAG.sub("‹", NUMBERED.sub("", line)).split())
