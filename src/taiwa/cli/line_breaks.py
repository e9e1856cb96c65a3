"""Line breaks on a terminal: between words, and in Japanese and Chinese between characters (kinsoku).

A line does not begin with a closing bracket, a full stop, a small kana or the like, and does not end with an opening bracket.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

OPENING = "（［｛〈《「『【〔〖〘〚"
CLOSING = "、。，．・：；？！）］｝〉》」』】〕〗〙〛…‥ー々ヽヾゝゞ％〜ぁぃぅぇぉっゃゅょゎゕゖァィゥェォッャュョヮヵヶ"
WIDE = "\u2e80-\u2fff\u3001-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
UNIT = re.compile(rf"[{OPENING}]*(?:[{WIDE}]|[^\s{WIDE}]+)[{CLOSING}]*\s*|\s+")
"""An unbreakable unit: a word or a wide character, with adjacent brackets and stops, and the following spaces."""


def break_offsets(text: str, width: int) -> Iterator[int]:
    """Yield the positions at which to break a line, so that each part has at most `width` cells; a longer word is cut.

    >>> list(break_offsets("長い文です。次の文", 10))
    [4]
    """
    used = 0
    for unit in UNIT.finditer(text):
        cells, whole = cell_len(unit[0].rstrip()), cell_len(unit[0])
        if used and used + cells > width:
            yield unit.start()
            used = 0
        if cells > width:
            at = unit.start()
            *pieces, last = chop_cells(unit[0].rstrip(), width)
            for piece in pieces:
                at += len(piece)
                yield at
            used, whole = 0, cell_len(last) + whole - cells
        used += whole


def wrap(text: Text, width: int) -> list[Text]:
    """Break a text into lines of at most `width` cells, without spaces at their ends."""
    lines: list[Text] = []
    for line in text.split(allow_blank=True):
        for part in line.divide(break_offsets(line.plain, width)):
            part.rstrip()
            lines.append(part)
    return lines


class Wrapped:
    """A text that breaks its lines by these rules."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        del console
        for line in wrap(self.text, options.max_width):
            line.no_wrap, line.overflow = True, "ignore"
            yield line
