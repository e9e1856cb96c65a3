"""Template files: `== name` begins a section, and each line below it is a template."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from training.builtin.quantities.telling import Ask, Teller

__all__ = ["Said", "wordings"]

FOLDER = Path(__file__).parent / "said"
HEAD = "== "
FACTS = ("facts", "more", "last")


class Said:
    """Return the sections of a file by name. A case has sections `CASE facts`, `CASE wh`, `CASE np` and so on."""

    def __init__(self, sections: Mapping[str, tuple[str, ...]]) -> None:
        self._sections = sections

    def __getitem__(self, section: str) -> tuple[str, ...]:
        return self._sections[section]

    def pick(self, teller: Teller, section: str) -> str:
        """Return a random line of a section."""
        return teller.random.choice(self._sections[section])

    def ask(self, teller: Teller, case: str, *, loose: bool = True) -> Ask:
        """Return a question about a case: a line of its `facts`, then `more` and `last`, and all ways to ask."""
        known = self._sections
        facts = [teller.random.choice(known[part]) for each in FACTS if (part := f"{case} {each}") in known]
        wh, np, whole = (known.get(f"{case} {each}", ()) for each in ("wh", "np", "whole"))
        return Ask(facts, wh, np, whole, loose=loose)


@cache
def wordings(name: str, folder: Path = FOLDER) -> Said:
    """Parse the sections of a file."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in (folder / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith(HEAD):
            lines = sections.setdefault(line.removeprefix(HEAD), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return Said({section: tuple(lines) for section, lines in sections.items()})
