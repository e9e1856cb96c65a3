"""Markdown: its headings by the grammar of CommonMark, and the data at its head. The text stays as it was written."""

import re
from functools import cache
from typing import TYPE_CHECKING

from taiwa.retrieve.access import own_access
from taiwa.retrieve.reading.reading import Heading, Reading, lines_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["NAME", "markdown"]

NAME = "markdown-1"
FRONT = re.compile(r"---[ \t]*\n(?P<yaml>.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
TITLE = re.compile(r"^title:[ \t]*(?P<quote>[\"']?)(?P<words>.+?)(?P=quote)[ \t]*$", re.MULTILINE)
LINK = re.compile(r"!?\[(?P<words>[^\]\[]*)\](?:\([^()]*\)|\[[^\]]*\])")
MARKS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)|\s*\{#[^}]*\}\s*$")


def markdown(text: str) -> Reading:
    """Read Markdown; front matter gives the title and `access:`, and is no part of what is found.

    Raises:
        UnreadableError: what the front matter says of access cannot be understood.
    """
    front = FRONT.match(text)
    begin = front.end() if front else 0
    yaml = (front["yaml"] or "") if front else ""
    body = text[begin:]
    starts = lines_of(body)
    headings: list[Heading] = []
    tokens = _parser().parse(body)
    for at, token in enumerate(tokens):
        # Only headings of the document itself: one within a quotation or a list opens no section.
        if token.type == "heading_open" and token.level == 0 and token.map:
            headings.append(Heading(begin + starts[token.map[0]], int(token.tag[1]), _plain(tokens[at + 1].content)))
    named = TITLE.search(yaml)
    title = named["words"] if named else next((each.words for each in headings if each.level == 1), "")
    # Blanks in place of the front matter keep every offset true.
    return Reading(" " * begin + body, title, tuple(headings), access=own_access(yaml))


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # Without the inner grammar: only where blocks begin is asked for, and it is where parsers get slow.
    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])


def _plain(words: str) -> str:
    """The words of a heading without their dress."""
    return " ".join(MARKS.sub("", LINK.sub(lambda found: found["words"], words)).split())
