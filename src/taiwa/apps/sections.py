"""An app file cut into its parts: front matter, instructions, the text for folds, examples.

Front matter stands between a line `---` at the very start and the next line `---`. Below it, only the two lines `## fold` and
`## example`, exactly so, begin a part of their own; every other heading belongs to the instructions, and so does everything
in a code fence. In an example, whose texts are indented, such a line always ends it.
"""

import re
from dataclasses import dataclass

from taiwa.apps.faults import Faults
from taiwa.yamlfile import Location

__all__ = ["Block", "Parts", "divide"]

RULE = re.compile(r"---[ \t]*")
HEADING = re.compile(r"## (fold|example)[ \t]*")
NEAR_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]*(fold|example)[ \t]*:?[ \t]*", re.IGNORECASE)
FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file; `line` is the number of the first."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of an app file; without front matter `front` is None."""

    front: Block | None
    body: Block
    folds: tuple[Block, ...] = ()
    examples: tuple[Block, ...] = ()


def divide(text: str, faults: Faults) -> Parts:
    """Cut a file, whose line ends are all `\\n`, into its parts."""
    lines = text.split("\n")
    if not RULE.fullmatch(lines[0]):
        faults.error(
            Location(1), "no front matter", "begin the file with a line `---`, then `taiwa: 1`, then a line `---`"
        )
        return Parts(None, Block(text, 1))
    close = next((at for at, line in enumerate(lines) if at and RULE.fullmatch(line)), None)
    if close is None:
        faults.error(Location(1), "the front matter is not closed", "end it with a line `---`")
        return Parts(None, Block("", len(lines)))
    front = Block("\n".join(lines[1:close]), 2)
    blocks = _blocks(lines, close + 1, faults)
    folds = tuple(block for kind, block in blocks if kind == "fold")
    examples = tuple(block for kind, block in blocks if kind == "example")
    return Parts(front, blocks[0][1], folds, examples)


def _blocks(lines: list[str], start: int, faults: Faults) -> list[tuple[str, Block]]:
    """The parts below the front matter, the instructions first, each with its kind."""
    cuts = [(start, "")]
    fence, opened = "", 0
    for at in range(start, len(lines)):
        line = lines[at]
        heading = HEADING.fullmatch(line)
        if cuts[-1][1] != "example":
            fence, opened = _fence(line, at, fence, opened)
            if fence:
                continue
        if heading:
            cuts.append((at + 1, heading[1]))
        elif NEAR_HEADING.fullmatch(line) and cuts[-1][1] != "example":
            word = line.strip(" \t#:").lower()
            faults.warn(
                Location(at + 1),
                f"the line {line.strip()!r} stays part of the text above",
                f"to begin a part, write `## {word}`",
            )
    if fence:
        faults.warn(Location(opened + 1), "this code fence is never closed, so no heading below it counts", "close it")
    ends = [at - 1 for at, _ in cuts[1:]] + [len(lines)]
    return [(kind, Block("\n".join(lines[at:end]), at + 1)) for (at, kind), end in zip(cuts, ends, strict=True)]


def _fence(line: str, at: int, fence: str, opened: int) -> tuple[str, int]:
    """The code fence that is open after a line, and where it was opened."""
    found = FENCE.fullmatch(line)
    if not found:
        return fence, opened
    if not fence:
        return found[1], at
    closes = found[1].startswith(fence) and not found[2].strip()
    return ("", at) if closes else (fence, opened)
