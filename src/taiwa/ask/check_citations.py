"""Check citations: whether the words that a model quotes are in the passage, and how far its text is safe to show.

`find_quotation` is the check. It ignores what copying changes (widths, case, white space, quotation marks, dashes, emphasis), and
nothing else: a quotation that is not found supports no claim.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize

from taiwa.kernel.text import CONTROL

CLUSTER = re.compile("[\\S\\s][\u0300-\u036f\u3099\u309a\uff9e\uff9f]*")
"""A character with the combining marks behind it."""

SAME = str.maketrans({
    **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‐‑‒–—―−", "-"), "…": "...",
})  # fmt: skip

DROPPED = frozenset("*`\u00ad")
"""Marks of emphasis and code, and soft hyphens: quotations omit them."""

TABLE_BORDER = "|"
"""The border of a table cell counts as white space."""

WIDE = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff]")

WORDLIKE = re.compile(r"\w")

NUMERALS = "〇一二三四五六七八九十百千万億萬亿"

LETTER = "(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff])\\w)"

INSIDE = re.compile(f".*(?:{LETTER}\0{LETTER}|[{NUMERALS}]\0[{NUMERALS}]|\\d[.,]\0\\d|\\d\0[.,]\\d).*", re.DOTALL)
"""A position (the zero character) within a word of a script with spaces, or within a number."""

TARGET = r"\((?P<to>(?:[^()\s]|\([^()]*\))*)(?:[^()]|\([^()]*\))*\)"

IMAGE = re.compile(rf"!\[(?P<words>[^\]\[]*)\](?:{TARGET}|\[[^\]]*\])")

LINK = re.compile(rf"(?<!!)\[(?P<words>[^\]\[]*)\]{TARGET}")

URL = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]{1,20}://|www\.|data:|javascript:|mailto:)[^\s<>\"'）」』】\])]*", re.IGNORECASE
)

CITATION_NUMBER = re.compile(r"[\[【［]\s*(?:\d{1,3}(?:\s*[,、，-]\s*\d{1,3})*)\s*[\]】］]")

TAG = re.compile(r"<(?=[a-zA-Z/!|])")

REMOVED = "[…]"

PUNCTUATION = ".,;:!?。、，；：！？"

QUOTATION_ENDS = f" {PUNCTUATION}'\"「」『』"


def find_quotation(words: str, text: str) -> tuple[int, int] | None:
    """Return the offsets (start, end) of quoted words in a text; None if the text does not contain them.

    Characters are compared in their compatibility form (NFKC) without case. White space counts as one space, and between
    Japanese or Chinese characters as none; quotation marks are straight, all dashes alike, marks of emphasis and the punctuation
    at both ends of the words are ignored. A part of a word, of a number or of a combining sequence is not a quotation: `5 days`
    is not in `25 days`.

    >>> find_quotation("twenty  “days”", 'up to **twenty**\\n"days" a year')
    (8, 22)
    """
    wanted = "".join(character for character, _ in _normalized(words)).strip(QUOTATION_ENDS)
    if not WORDLIKE.search(wanted):
        return None
    characters = list(_normalized(text))
    whole = "".join(character for character, _ in characters)
    spans = [span for _, span in characters]
    start = whole.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not any(_is_inside(whole, spans, at) for at in (start, end)):
            return spans[start][0], spans[end - 1][1]
        start = whole.find(wanted, start + 1)
    return None


def _is_inside(text: str, spans: list[tuple[int, int]], at: int) -> bool:
    """Whether a position is within a combining sequence, a word or a number."""
    if 0 < at < len(spans) and spans[at - 1] == spans[at]:
        return True
    return INSIDE.fullmatch(text[max(at - 2, 0) : at] + "\0" + text[at : at + 2]) is not None


def _normalized(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each character of the normalized text with the span of its cluster in the text as written."""
    last, space = "", None
    for cluster in CLUSTER.finditer(text):
        if cluster[0] in DROPPED or CONTROL.match(cluster[0]):
            continue
        for character in normalize("NFKC", cluster[0]).translate(SAME).casefold():
            if character.isspace() or character == TABLE_BORDER:
                space = space or cluster.span()
                continue
            if space and not (WIDE.match(last) or WIDE.match(character)):
                yield " ", space
            last, space = character, None
            yield character, cluster.span()


def clean_untrusted(text: str, sources: str = "") -> str:
    """Make a model's text about documents safe to show on one line.

    Images, tags, invisible characters, numbers that look like citations, and URLs that the sources do not contain are removed.

    >>> clean_untrusted("See ![x](https://a.example/?q=1) [here](https://b.example) [2] now", "go to https://b.example")
    'See x here (https://b.example) now'
    """
    line = " ".join(CONTROL.sub("", text).split())
    line = IMAGE.sub(lambda image: image["words"], line)
    line = LINK.sub(lambda link: f"{link['words']} ({link['to']})" if link["to"] else link["words"], line)
    line = URL.sub(lambda url: url[0] if url[0].rstrip(PUNCTUATION) in sources else REMOVED, line)
    return " ".join(TAG.sub("‹", CITATION_NUMBER.sub("", line)).split())
