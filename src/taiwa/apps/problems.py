"""Problem with place and remedy."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from taiwa.kernel.errors import InputError
from taiwa.yamlfile import Location

__all__ = ["Problem", "Problems", "bounded", "quoted", "suggest"]


MOST_FAULTS = 200

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; an app with a fault of level `error` cannot be opened."""

    line: int
    column: int
    message: str
    mend: str = ""
    level: Literal["error", "warning"] = "error"

    def told(self, where: str) -> str:
        """Say it on one line.

        >>> Problem(3, 1, "unknown key 'stat'", "did you mean 'state'?").told("a.md")
        "a.md:3: unknown key 'stat'; did you mean 'state'?"
        """
        place = f"{where}:{self.line}" if self.line else where
        return f"{place}: {self.message}{self.mend and f'; {self.mend}'}"


@dataclass(slots=True)
class Problems:
    """Collects the faults of one file."""

    found: list[Problem] = field(default_factory=list[Problem])

    def error(self, at: Location, message: str, mend: str = "") -> None:
        """Note something that keeps the app from being opened."""
        self._add(Problem(at.line, at.column, message, mend))

    def warn(self, at: Location, message: str, mend: str = "") -> None:
        """Note something that is probably a slip."""
        self._add(Problem(at.line, at.column, message, mend, "warning"))

    def _add(self, fault: Problem) -> None:
        if len(self.found) < MOST_FAULTS and fault not in self.found:
            self.found.append(fault)

    @property
    def fatal(self) -> bool:
        """Whether any is an error."""
        return any(fault.level == "error" for fault in self.found)

    def sorted(self) -> tuple[Problem, ...]:
        """All of them from the top of the file to its end."""
        return tuple(sorted(self.found, key=lambda fault: (fault.line, fault.column)))


def suggest(word: str, names: tuple[str, ...], kind: str) -> str:
    """Name the nearest of some names, or all of them.

    >>> suggest("stat", ("state", "keep"), "keys"), suggest("zzz", ("state", "keep"), "keys")
    ("did you mean 'state'?", 'the keys are state, keep')
    """
    near = get_close_matches(word[:SHOWN_CHARS], names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the {kind} are {', '.join(names)}" if names else f"there are no {kind}"


def quoted(text: str) -> str:
    """Show somebody's text on one line, cut to a readable length."""
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def bounded(path: Path, most: int, too_large: str, *, where: str = "") -> tuple[bytes, str]:
    """Read the bytes of a UTF-8 file, and the text that they are; `where` is what errors call it, if not by its path.

    Raises:
        InputError: it cannot be read, is not UTF-8, or has more than `most` bytes, of which `too_large` speaks.
    """
    where = where or str(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    except OSError as error:
        raise InputError(f"{where}: {error.strerror}") from None
    if len(raw) > most:
        raise InputError(f"{where} {too_large}")
    try:
        return raw, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}:{raw.count(10, 0, error.start) + 1}: not UTF-8 at byte {error.start:,}") from None
