"""What is wrong in an app file, where, and how to mend it."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from taiwa.yamlfile import Location

__all__ = ["Fault", "Faults", "nearest", "quoted"]

MOST_FAULTS = 200
SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong; an app with a fault of level `error` cannot be opened."""

    line: int
    column: int
    message: str
    mend: str = ""
    level: Literal["error", "warning"] = "error"

    def told(self, where: str) -> str:
        """Say it on one line.

        >>> Fault(3, 1, "unknown key 'stat'", "did you mean 'state'?").told("a.md")
        "a.md:3: unknown key 'stat'; did you mean 'state'?"
        """
        place = f"{where}:{self.line}" if self.line else where
        return f"{place}: {self.message}{self.mend and f'; {self.mend}'}"


@dataclass(slots=True)
class Faults:
    """Collects the faults of one file."""

    found: list[Fault] = field(default_factory=list[Fault])

    def error(self, at: Location, message: str, mend: str = "") -> None:
        """Note something that keeps the app from being opened."""
        self._add(Fault(at.line, at.column, message, mend))

    def warn(self, at: Location, message: str, mend: str = "") -> None:
        """Note something that is probably a slip."""
        self._add(Fault(at.line, at.column, message, mend, "warning"))

    def _add(self, fault: Fault) -> None:
        if len(self.found) < MOST_FAULTS and fault not in self.found:
            self.found.append(fault)

    @property
    def fatal(self) -> bool:
        """Whether any is an error."""
        return any(fault.level == "error" for fault in self.found)

    def sorted(self) -> tuple[Fault, ...]:
        """All of them from the top of the file to its end."""
        return tuple(sorted(self.found, key=lambda fault: (fault.line, fault.column)))


def nearest(word: str, names: tuple[str, ...], kind: str) -> str:
    """Name the nearest of some names, or all of them.

    >>> nearest("stat", ("state", "keep"), "keys"), nearest("zzz", ("state", "keep"), "keys")
    ("did you mean 'state'?", 'the keys are state, keep')
    """
    near = get_close_matches(word[:SHOWN_CHARS], names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the {kind} are {', '.join(names)}" if names else f"there are no {kind}"


def quoted(text: str) -> str:
    """Show somebody's text on one line, cut to a readable length."""
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")
