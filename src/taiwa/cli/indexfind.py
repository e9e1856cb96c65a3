"""`taiwa find`: the passages that fit a question best, with what was found in them marked."""

import sys
from typing import TYPE_CHECKING

import click

from taiwa.cli.indexing import as_whom, chosen, named_in, open_library
from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import console, emit, plain, say_line, tell
from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.kernel.values import Passage

__all__ = ["Cut", "cut", "find", "place_of", "print_passages"]

Marks = tuple[tuple[int, int], ...]
LINES = 3
NARROWEST = 40
SMALL = 0.1
LONGEST_TOLD = 80
"""Characters of a question that are said again."""
BEFORE = 0.2
"""How much of an excerpt stands before what was found."""


@click.command()
@click.argument("query")
@named_in
@as_whom
@click.option("-k", "k", type=click.IntRange(1, 1000), default=5, show_default=True, help="At most so many passages.")
@flags("json", "store")
def find(shared: Flags, query: str, places: tuple[str, ...], who: tuple[str, ...], k: int) -> None:
    """Find the passages that fit QUERY best. No model is asked.

    \b
    taiwa find "days of leave" --in ~/handbook
    taiwa find 有給休暇の申請 --in handbook -k 3
    taiwa find "travel expenses" --json | jq .path
    """
    if not query.strip():
        raise InputError("give at least one word to look for")
    from taiwa.retrieval import ScopedRetriever

    with open_library(shared) as library:
        indexes = chosen(library, places, shared.settings())
        within = ScopedRetriever(indexes, who)
        found = within.find(query, k)
        analyzer = indexes[0].analyzer
        terms = frozenset(term for index in indexes for term in index.analyzer.asked(query))
    for trouble in within.troubles:
        tell(trouble, "yellow")
    marked = [(passage, analyzer.marks(passage.text, terms)) for passage in found]
    if shared.as_json:
        emit([_row(passage, marks) for passage, marks in marked])
    elif not found:
        tell(f"no passage that may be seen holds a word of {_short(query)!r}")
    else:
        print_passages(marked)


def print_passages(marked: "list[tuple[Passage, Marks]]") -> None:
    """Print passages: score and place in one line, then an excerpt."""
    width = max(console().width - 4, NARROWEST) if sys.stdout.isatty() else 96
    for number, (passage, marks) in enumerate(marked, start=1):
        if number > 1:
            say_line("")
        say_line(f"{number}. {place_of(passage)}  {score_of(passage)}", "bold")
        _print_excerpt(cut(passage.text, marks, width * LINES), width)


def score_of(passage: "Passage") -> str:
    """A score as it is shown; those of two rankings that were fused are small."""
    return f"{passage.score:.2f}" if passage.score >= SMALL else f"{passage.score:.4f}"


def place_of(passage: "Passage") -> str:
    """Where a passage stands: its path, headings and page.

    >>> from taiwa.kernel.values import Passage
    >>> place_of(Passage("a.pdf", "", heading=("Leave", "Sick"), page=3))
    'a.pdf › Leave › Sick, page 3'
    """
    page = f", page {passage.page}" if passage.page else ""
    return " › ".join((passage.source, *passage.heading)) + page


class Cut:
    """Some of a text on one line, and where it is marked."""

    def __init__(self, text: str, marks: Marks) -> None:
        self.text = text
        self.marks = marks

    def bracketed(self) -> str:
        """The text with its marks in brackets, for where there are no colours."""
        text = self.text
        for start, end in reversed(self.marks):
            text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
        return text


def cut(text: str, marks: Marks, cells: int) -> Cut:
    """Cut out the part that holds most of what was found, at most so many cells wide; a wide character takes two.

    >>> cut("一二三四五六七八九十", ((5, 6),), 9).bracketed()
    '…五[六]七…'
    """
    from rich.cells import cell_len

    line = "".join(" " if sign.isspace() else sign for sign in plain(text))
    if cell_len(line) <= cells:
        return Cut(line, marks)
    start = _begin(marks, len(line), cells)
    while start and cell_len(line[start:]) < cells - 2:
        start -= 1
    end, room = start, cells - 2
    while end < len(line) and (room := room - cell_len(line[end])) >= 0:
        end += 1
    before, after = "…" if start else "", "…" if end < len(line) else ""
    shift = len(before) - start
    inside = (
        (max(first, start) + shift, min(last, end) + shift) for first, last in marks if first < end and last > start
    )
    return Cut(before + line[start:end] + after, tuple(inside))


def _begin(marks: Marks, length: int, cells: int) -> int:
    """Where the part begins that holds most of what is marked, with a little before it."""
    if not marks:
        return 0
    reach = cells // 2
    best = max(marks, key=lambda mark: sum(end - start for start, end in marks if mark[0] <= start < mark[0] + reach))
    return max(min(best[0] - int(cells * BEFORE / 2) - 1, length - 1), 0)


def _print_excerpt(part: Cut, width: int) -> None:
    from rich.text import Text

    colours = sys.stdout.isatty()
    shown = Text(part.text if colours else part.bracketed())
    for start, end in part.marks if colours else ():
        shown.stylize("bold yellow", start, end)
    for line in shown.wrap(console(), width):
        line.rstrip()
        if colours:
            console().print(Text("   ") + line)
        else:
            say_line(f"   {line.plain}")


def _row(passage: "Passage", marks: Marks) -> Json:
    places: list[Json] = [[start, end] for start, end in marks]
    return {
        "path": passage.source, "score": round(passage.score, 4), "title": passage.title,
        "heading": list[Json](passage.heading), "page": passage.page or None, "start": passage.start,
        "end": passage.start + len(passage.text), "id": passage.id, "text": passage.text, "marks": places,
    }  # fmt: skip


def _short(query: str) -> str:
    return query if len(query) <= LONGEST_TOLD else f"{query[: LONGEST_TOLD - 1]}…"
