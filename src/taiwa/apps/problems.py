"""Problems of files that users write: location, message and hint."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from taiwa.kernel.errors import InputError
from taiwa.yamlfile import Location

MAX_PROBLEMS = 200

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a file; an app with a problem of level `error` cannot be opened."""

    line: int
    column: int
    message: str
    hint: str = ""
    level: Literal["error", "warning"] = "error"

    def format(self, where: str) -> str:
        """Return the problem as one line.

        >>> Problem(3, 1, "unknown key 'stat'", "did you mean 'state'?").format("a.md")
        "a.md:3: unknown key 'stat'; did you mean 'state'?"
        """
        place = f"{where}:{self.line}" if self.line else where
        return f"{place}: {self.message}{self.hint and f'; {self.hint}'}"


@dataclass(slots=True)
class Problems:
    """The problems of one file."""

    found: list[Problem] = field(default_factory=list[Problem])

    def error(self, at: Location, message: str, hint: str = "") -> None:
        """Add a problem that prevents opening."""
        self._add(Problem(at.line, at.column, message, hint))

    def warn(self, at: Location, message: str, hint: str = "") -> None:
        """Add a probable mistake."""
        self._add(Problem(at.line, at.column, message, hint, "warning"))

    def _add(self, problem: Problem) -> None:
        if len(self.found) < MAX_PROBLEMS and problem not in self.found:
            self.found.append(problem)

    @property
    def fatal(self) -> bool:
        """Whether one of them is an error."""
        return any(problem.level == "error" for problem in self.found)

    def sorted(self) -> tuple[Problem, ...]:
        """Return them in the order of the file."""
        return tuple(sorted(self.found, key=lambda problem: (problem.line, problem.column)))


def suggest(word: str, names: tuple[str, ...], kind: str) -> str:
    """Suggest the most similar name, or list all names.

    >>> suggest("stat", ("state", "keep"), "keys"), suggest("zzz", ("state", "keep"), "keys")
    ("did you mean 'state'?", 'the keys are state, keep')
    """
    near = get_close_matches(word[:SHOWN_CHARS], names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the {kind} are {', '.join(names)}" if names else f"there are no {kind}"


def quoted(text: str) -> str:
    """Quote a text on one line, shortened."""
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…")


def read_bounded(path: Path, most: int, too_large: str, *, where: str = "") -> tuple[bytes, str]:
    """Return the bytes and the text of a UTF-8 file; `where` names it in errors instead of its path.

    Raises:
        InputError: it cannot be read, is not UTF-8, or has more than `most` bytes (`too_large` is that message).
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
