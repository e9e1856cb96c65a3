"""Wordings that stand in files of their own: `== name` begins a section, and each line below is one of its templates."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

__all__ = ["wordings"]

FOLDER = Path(__file__).parent / "said"
HEAD = "== "


@cache
def wordings(name: str) -> Mapping[str, tuple[str, ...]]:
    """The sections of a file, by their names."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith(HEAD):
            lines = sections.setdefault(line.removeprefix(HEAD), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return MappingProxyType({section: tuple(lines) for section, lines in sections.items()})
