"""Templates with alternatives: `[a|b]` chooses one, and `{x}` is a placeholder."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeAlias

__all__ = ["expand", "fill", "listed", "pick"]

LOOSE = re.compile(r" (?=[?.,!])")
FOLDER = Path(__file__).parent / "words"
Node: TypeAlias = "str | tuple[tuple[Node, ...], ...]"
"""Literal text, or alternatives, each a sequence of nodes."""


@cache
def listed(language: str, name: str) -> tuple[str, ...]:
    """Return the lines of a section in a language's file."""
    lines: list[str] = []
    inside = False
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and "|" not in line:
            inside = line == f"[{name}]"
        elif inside and line.strip() and not line.startswith("#"):
            lines.append(line.strip())
    if not lines:
        raise LookupError(f"{language}.txt has no section {name}")
    return tuple(lines)


def pick(random: Random, language: str, name: str) -> tuple[str, ...]:
    """Return a random line of a section, split at its semicolons, with alternatives unexpanded."""
    return fields(random.choice(listed(language, name)))


@cache
def fields(line: str) -> tuple[str, ...]:
    """Split a line at ` ; `."""
    return tuple(part.strip() for part in f"{line} ".split(" ; "))


def expand(random: Random, text: str) -> str:
    """Choose among the alternatives and leave placeholders unchanged.

    >>> expand(Random(1), "[how|in what way] do I get {x}")
    'how do I get {x}'
    """
    return LOOSE.sub("", " ".join("".join(_chosen(random, _parsed(text))).split()))


def fill(text: str, slots: Mapping[str, str]) -> str:
    """Fill in the named placeholders. Inserted text is not expanded again."""
    pieces = text.split("{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, closed, rest = piece.partition("}")
        filled.append(slots[name] + rest if closed and name in slots else "{" + piece)
    return "".join(filled)


def _chosen(random: Random, nodes: tuple[Node, ...]) -> list[str]:
    written: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            written.append(node)
        else:
            written += _chosen(random, node[int(random.random() * len(node))])
    return written


@cache
def _parsed(text: str) -> tuple[Node, ...]:
    rows, _ = _rows(text, 0)
    return rows[0] if len(rows) == 1 else (rows,)


def _rows(text: str, at: int) -> tuple[tuple[tuple[Node, ...], ...], int]:
    """Parse alternatives up to the closing bracket or the end of the text."""
    rows: list[tuple[Node, ...]] = []
    row: list[Node] = []
    plain = ""
    while at < len(text):
        sign = text[at]
        at += 1
        if sign in "[|]" and plain:
            row.append(plain)
            plain = ""
        if sign == "[":
            inner, at = _rows(text, at)
            row.append(inner)
        elif sign == "|":
            rows.append(tuple(row))
            row = []
        elif sign == "]":
            return (*rows, tuple(row)), at
        else:
            plain += sign
    return (*rows, (*row, plain) if plain else tuple(row)), at
