"""The journal of a run: its effects and their answers, in order for each strand.

A strand is one sequence of effects: the root is `()`, the j-th program of a gather that was the i-th effect of strand `s`
is `(*s, i, j)`. A journal that is written during the run lets it resume after a crash without repeating calls.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from taiwa.kernel.effects import Complete, Effect
from taiwa.kernel.errors import Plain, TaiwaError, restore_error
from taiwa.kernel.records import Json, digest, record, restore, tag_of

Strand: TypeAlias = tuple[int, ...]


class Entry:
    """One effect and its answer or error; with both, the answer is the part that arrived before the error.

    An entry of this run holds its effect, one from a store only the digest of the effect.
    """

    __slots__ = ("_key", "answer", "effect", "error", "index", "seconds", "strand")

    def __init__(
        self, strand: Strand, index: int, effect: "Effect[Any] | str", answer: object = None, error: object = None
    ) -> None:
        self.strand = strand
        self.index = index
        self.effect = None if isinstance(effect, str) else effect
        self._key = effect if isinstance(effect, str) else ""
        self.answer = answer
        self.error = error
        self.seconds = 0.0

    @property
    def key(self) -> str:
        """The digest of the effect."""
        if not self._key and self.effect is not None:
            self._key = self.effect.request.digest if isinstance(self.effect, Complete) else digest(self.effect)
        return self._key

    @property
    def kind(self) -> str:
        """The tag of the effect."""
        return tag_of(type(self.effect)) or "effect"

    def answers(self, effect: Effect[Any]) -> bool:
        """Say whether this is the entry of an effect."""
        if self.effect is not None:
            return self.effect == effect
        return self.key == Entry(self.strand, self.index, effect).key

    def record(self) -> dict[str, Json]:
        """Return the entry as plain data.

        Raises:
            InputError: the effect or its answer cannot be recorded.
        """
        return {
            "strand": list(self.strand),
            "index": self.index,
            "key": self.key,
            "answer": record(self.answer),
            "error": record(_error_record(self.error)),
        }

    @classmethod
    def restore(cls, data: dict[str, Any]) -> "Entry":
        """Rebuild an entry from its record."""
        error = None if data["error"] is None else restore_error(restore(data["error"]))
        return cls(tuple(data["strand"]), data["index"], data["key"], restore(data["answer"]), error)


def _error_record(error: object) -> "dict[str, Plain] | None":
    """Record an error; one of another library becomes a plain `TaiwaError`, because its class may not exist later."""
    if error is None or isinstance(error, TaiwaError):
        return None if error is None else error.record()
    return {"type": TaiwaError.tag, "message": f"{type(error).__name__}: {error}"}


class Journal:
    """The entries of one run. `sink` is called with each new entry before the program goes on."""

    __slots__ = ("_entries", "_refusals", "sink")

    def __init__(self, entries: Iterable[Entry] = (), sink: Callable[[Entry], None] | None = None) -> None:
        self._entries = {(entry.strand, entry.index): entry for entry in entries}
        self._refusals: dict[tuple[Strand, int], TaiwaError] = {}
        self.sink = sink

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in order within each strand."""
        return tuple(self._entries.values())

    def find(self, strand: Strand, index: int) -> Entry | None:
        """Return the entry at a position, or None."""
        return self._entries.get((strand, index)) if self._entries else None

    def append(self, entry: Entry) -> None:
        """Add an entry and pass it to the sink."""
        self._entries[entry.strand, entry.index] = entry
        if self.sink is not None:
            self.sink(entry)

    def refuse(self, strand: Strand, index: int, refusal: TaiwaError) -> None:
        """Record that a limit refused the effect at a position; refusals are not passed to the sink."""
        self._refusals[strand, index] = refusal

    def refusal(self, strand: Strand, index: int) -> TaiwaError | None:
        """Return the error with which the effect at a position was refused, or None."""
        return self._refusals.get((strand, index))

    def requests(self) -> tuple[Complete, ...]:
        """Return the model calls of this run, for tests and laws."""
        return tuple(entry.effect for entry in self.entries if isinstance(entry.effect, Complete))
