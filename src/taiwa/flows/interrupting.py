"""Watching an answer for its first call, and what is done about an answer that repeats what it continues."""

from copy import copy

from taiwa.flows.scanning import Scanner, Trigger
from taiwa.kernel.effects import Seen

__all__ = ["Interrupt", "unrepeated"]

SHORTEST_REPETITION = 8


class Interrupt:
    """Watches an answer: skips what it repeats of `known`, shows the rest, and cuts it behind the first trigger."""

    __slots__ = ("_at", "_held", "_known", "scanner", "trigger")

    def __init__(self, scanner: Scanner, known: str = "") -> None:
        self.scanner = copy(scanner)
        self.trigger: Trigger | None = None
        self._known = _repetitions(known)
        self._held: str | None = ""
        self._at = 0

    def feed(self, text: str) -> Seen:
        """Show all words that are new, up to the end of the first trigger."""
        if self._held is not None:
            self._held += text
            if any(len(each) > len(self._held) and each.startswith(self._held) for each in self._known):
                return Seen()
            self._at = _repeated(self._held, self._known)
            text, self._held = self._held[self._at :], None
        self.trigger = trigger = self.scanner.feed(text)
        if trigger is not None:
            return Seen(text[: trigger.end], self._at + trigger.end)
        self._at += len(text)
        return Seen(text)

    def close(self) -> Seen:
        """Show what might have become a repetition and did not, up to the end of the first trigger."""
        held, self._held = self._held or "", None
        self.trigger = self.trigger or self.scanner.feed(held)
        return Seen(held if self.trigger is None else held[: self.trigger.end])


def unrepeated(text: str, known: str) -> str:
    """Take off the start of a text what it repeats of the text that it continues: all of it, or its last line."""
    return text[_repeated(text, _repetitions(known)) :]


def _repetitions(known: str) -> tuple[str, ...]:
    whole = known.rstrip()
    return tuple(each for each in (whole, whole.rpartition("\n")[2]) if len(each) >= SHORTEST_REPETITION)


def _repeated(text: str, known: tuple[str, ...]) -> int:
    return max((len(each) for each in known if text.startswith(each)), default=0)
