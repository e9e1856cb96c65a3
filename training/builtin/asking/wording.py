"""Word lists with alternatives: `[a|b]` is one of both, `{x}` a place that is filled in later."""

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
"""Words as they stand, or alternatives, each a row of nodes."""


@cache
def listed(language: str, name: str) -> tuple[str, ...]:
    """The lines of a section of a language's file."""
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
    """One line of a section, divided at its semicolons, with its alternatives still open."""
    return fields(random.choice(listed(language, name)))


@cache
def fields(line: str) -> tuple[str, ...]:
    """The parts of a line between ` ; `."""
    return tuple(part.strip() for part in f"{line} ".split(" ; "))


def expand(random: Random, text: str) -> str:
    """Choose among the alternatives; places stay.

    >>> expand(Random(1), "[how|in what way] do I get {x}")
    'how do I get {x}'
    """
    return LOOSE.sub("", " ".join("".join(_chosen(random, _parsed(text))).split()))


def fill(text: str, slots: Mapping[str, str]) -> str:
    """Fill in the places that are named; what is filled in is not looked through again."""
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
    """Read alternatives up to their bracket or the end."""
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
