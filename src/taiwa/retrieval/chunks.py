"""Chunks: the parts of a document that are indexed and found."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise

from taiwa.kernel.text import SENTENCE_END
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.tables import tables_in
from taiwa.retrieval.types import Chunk, Heading, ParsedDocument, UnreadableError

ROOM = 1_000
"""The maximum size of a chunk; a character of a script without spaces counts as two and a half."""
WIDE = re.compile(f"[{DENSE}\u3000-\u3002\uff01-\uff0f]")
EXTRA = 1.5
PARAGRAPH = re.compile(r"\n[ \t\u3000]*\n\s*")
LINE = re.compile(r"\n\s*")
GAP = re.compile(r"\s+")
LONGEST_PATH = 6
LONGEST_HEADING = 120
MOST_CHUNKS = 200_000


def split_into_chunks(reading: ParsedDocument, room: int = ROOM) -> tuple[Chunk, ...]:
    """Split a document into chunks of at most `room` units.

    Raises:
        UnreadableError: there are more than `MOST_CHUNKS`.
    """
    chunks: list[Chunk] = []
    path: list[Heading] = []
    page = following = 0
    tables = tables_in(reading.text)
    begins = [begin for begin, _, _ in tables]
    starts = {0, *reading.pages, *(each.start for each in reading.headings), len(reading.text)}
    for start, end in pairwise(sorted(starts)):
        while page < len(reading.pages) and reading.pages[page] <= start:
            page += 1
        while following < len(reading.headings) and reading.headings[following].start <= start:
            heading = reading.headings[following]
            path = [above for above in path if above.level < heading.level] + [heading]
            following += 1
        words = tuple(each.words[:LONGEST_HEADING] for each in path if each.words)[-LONGEST_PATH:]
        for first, last in _packed(reading.text, start, end, room):
            at = bisect_right(begins, first - 1) - 1
            columns = (
                (tables[at][2],) if at >= 0 and first < tables[at][1] else ()
            )  # it continues with the rows of a table
            chunks.append(Chunk(reading.text[first:last], first, words + columns, page))
            if len(chunks) > MOST_CHUNKS:
                raise UnreadableError(f"more than {MOST_CHUNKS:,} sections")
    return tuple(chunks)


def _packed(text: str, start: int, end: int, room: int) -> Iterator[tuple[int, int]]:
    """Merge neighbours as long as they fit."""
    first = last = -1
    size = 0.0
    for begin, stop in _parts(text, start, end, room, (PARAGRAPH, LINE, SENTENCE_END, GAP)):
        more = _size(text, last if first >= 0 else begin, stop)
        if first >= 0 and size + more <= room:
            last, size = stop, size + more
            continue
        if first >= 0:
            yield first, last
        first, last, size = begin, stop, _size(text, begin, stop)
    if first >= 0:
        yield first, last


def _parts(
    text: str, start: int, end: int, room: int, borders: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[int, int]]:
    """Split at the first kind of boundary, oversized parts at the next kind, and finally anywhere."""
    start, end = _trimmed(text, start, end)
    if start >= end:
        return
    if _size(text, start, end) <= room:
        yield start, end
    elif borders:
        cuts = (border.end() for border in borders[0].finditer(text, start, end))
        for first, last in pairwise(chain((start,), cuts, (end,))):
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
