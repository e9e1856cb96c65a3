"""From a text to pieces: by headings and pages, then paragraphs, then sentences, up to a bounded size.

Pieces are cut out and never rewritten: each is `text[start:end]`, they stand in order and do not overlap, and nothing but
white space lies between them.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from taiwa.retrieve.analyzer import DENSE
from taiwa.retrieve.reading.reading import Heading, Reading
from taiwa.retrieve.values import Piece

__all__ = ["SPLIT", "split"]

SPLIT = "split-1"
"""Kept with every document: pieces that another version cut are cut again."""
ROOM = 1_000
"""The size of a piece at most; a character of a script without spaces counts for two and a half."""
WIDE = re.compile(f"[{DENSE}\u3000-\u3002\uff01-\uff0f]")
EXTRA = 1.5
PARAGRAPH = re.compile(r"\n[ \t\u3000]*\n\s*")
LINE = re.compile(r"\n\s*")
SENTENCE = re.compile(r"(?<=[。！？｡])[」』）〉》】”’\"')]*\s*|(?<=[.!?])[\"')\]”’]*\s+")
GAP = re.compile(r"\s+")
LONGEST_PATH = 6
LONGEST_HEADING = 120


def split(reading: Reading, room: int = ROOM) -> tuple[Piece, ...]:
    """Cut a document into pieces of at most `room`."""
    pieces: list[Piece] = []
    path: list[Heading] = []
    following = list(reading.headings)
    page = 0
    for start, end in pairwise(sorted({0, *reading.pages, *(each.start for each in following), len(reading.text)})):
        while page < len(reading.pages) and reading.pages[page] <= start:
            page += 1
        while following and following[0].start <= start:
            heading = following.pop(0)
            path = [above for above in path if above.level < heading.level] + [heading]
        words = tuple(each.words[:LONGEST_HEADING] for each in path if each.words)[-LONGEST_PATH:]
        for first, last in _packed(reading.text, start, end, room):
            pieces.append(Piece(reading.text[first:last], first, words, page))
    return tuple(pieces)


def _packed(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Put neighbours together as long as they fit."""
    first = last = -1
    for begin, stop in _parts(text, start, end, room, (PARAGRAPH, LINE, SENTENCE, GAP)):
        if first >= 0 and _size(text, first, stop) <= room:
            last = stop
            continue
        if first >= 0:
            yield first, last
        first, last = begin, stop
    if first >= 0:
        yield first, last


def _parts(
    text: str, start: int, end: int, room: int, borders: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    """Cut at the first kind of border, what is still too large at the next, and at last anywhere."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    if _size(text, start, end) <= room:
        yield start, end
    elif borders:
        cuts = [found.end() for found in borders[0].finditer(text, start, end)]
        for first, last in pairwise([start, *cuts, end]):
            yield from _parts(text, first, last, room, borders[1:])
    else:
        step = max(int(room / (1 + EXTRA)), 1)
        for first in range(start, end, step):
            yield from _parts(text, first, min(first + step, end), room + step * 2, ())


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _size(text: str, start: int, end: int) -> float:
    if end - start > 4 * ROOM:
        return float(end - start)
    return end - start + EXTRA * len(WIDE.findall(text, start, end))
