"""Question templates: each line with choices expands to hundreds of wordings.

`[a|b|]` chooses one part, `<name>` inserts a shared part, and `{slot}` is a placeholder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeAlias

__all__ = ["Wording", "wordings"]

FILE = Path(__file__).parent / "wordings.txt"
SLOT = re.compile(r"\{(\w+)\}")
SPACES = re.compile(r"\s+")
Piece: TypeAlias = "str | tuple[Sequence_, ...]"
Sequence_: TypeAlias = "tuple[Piece, ...]"


@dataclass(frozen=True, slots=True)
class Wording:
    """One line of the template file."""

    parts: Sequence_

    def write(self, random: Random, slots: Mapping[str, str]) -> str:
        """Choose among the parts and fill in the slots."""
        chosen: list[str] = []
        _choose(random, self.parts, chosen)
        text = SPACES.sub(" ", "".join(chosen)).strip()
        text = re.sub(r" (?=[,.?!;:])", "", text)
        filled = SLOT.sub(lambda found: slots[found[1]], text)
        return filled[:1].upper() + filled[1:]

    def slots(self) -> frozenset[str]:
        """Return the slots that the line may contain."""
        return frozenset(SLOT.findall(str(self.parts)))


@cache
def wordings(section: str) -> tuple[Wording, ...]:
    """Return the lines of a section."""
    return _sections()[section]


def _choose(random: Random, parts: Sequence_, chosen: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            chosen.append(part)
        else:
            _choose(random, random.choice(part), chosen)


@cache
def _sections() -> Mapping[str, tuple[Wording, ...]]:
    names: dict[str, str] = {}
    found: dict[str, list[Wording]] = {}
    section: list[Wording] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            section = found.setdefault(line[3:].strip(), [])
        elif line.startswith("<"):
            name, _, text = line.partition("= ")
            names[name.strip()] = f"[{text}]"
        elif line and not line.startswith("#"):
            section.append(Wording(_Reader(_spelt_out(line, names)).sequence()))
    return {name: tuple(lines) for name, lines in found.items()}


def _spelt_out(line: str, names: Mapping[str, str]) -> str:
    while (found := re.search(r"<\w+>", line)) is not None:
        line = line.replace(found[0], names[found[0]])
    return line


class _Reader:
    """A parser of the brackets of a line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def sequence(self) -> Sequence_:
        parts: list[Piece] = []
        while self._at < len(self._text) and self._text[self._at] not in "|]":
            if self._text[self._at] == "[":
                parts.append(self._choice())
            else:
                end = next((at for at in range(self._at, len(self._text)) if self._text[at] in "[|]"), len(self._text))
                parts.append(self._text[self._at : end])
                self._at = end
        return tuple(parts)

    def _choice(self) -> tuple[Sequence_, ...]:
        options: list[Sequence_] = []
        while True:
            self._at += 1
            options.append(self.sequence())
            if self._text[self._at] == "]":
                self._at += 1
                return tuple(options)
