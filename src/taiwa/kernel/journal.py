"""What a program asked and was answered, in order, one list per strand.

A strand is one line of a program: the root is `()`, the j-th program of a gather that was the i-th effect of strand `s`
is `(*s, i, j)`. A journal that is written as it happens lets a run be resumed after a crash without asking again.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from taiwa.kernel.effects import CallTool, Complete, Effect
from taiwa.kernel.errors import Plain, TaiwaError, restore_error
from taiwa.kernel.records import Json, digest, record, restore, tag_of

__all__ = ["Entry", "Journal", "Strand"]

Strand: TypeAlias = tuple[int, ...]


class Entry:
    """One effect and its answer or error. Where both are there, the answer is the part that came before the error.

    An entry of this run holds its effect; one read from a store holds only the effect's digest.
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
        """Say whether this is the entry of that effect."""
        if self.effect is not None:
            return self.effect == effect
        return self.key == Entry(self.strand, self.index, effect).key

    def record(self) -> dict[str, Json]:
        """Write the entry as plain data.

        Raises:
            InputError: the effect or its answer cannot be recorded.
        """
        return {
            "strand": list(self.strand),
            "index": self.index,
            "key": self.key,
            "answer": record(self.answer),
            "error": record(_written(self.error)),
        }

    @classmethod
    def revive(cls, data: dict[str, Any]) -> "Entry":
        """Read an entry back from its record."""
        error = None if data["error"] is None else restore_error(restore(data["error"]))
        return cls(tuple(data["strand"]), data["index"], data["key"], restore(data["answer"]), error)


def _written(error: object) -> "dict[str, Plain] | None":
    """An error that is none of ours comes back as a plain `TaiwaError`: its class cannot be known to exist later."""
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
        """All entries, each strand's in its order."""
        return tuple(self._entries.values())

    def find(self, strand: Strand, index: int) -> Entry | None:
        """Return what was recorded at that place."""
        return self._entries.get((strand, index)) if self._entries else None

    def append(self, entry: Entry) -> None:
        """Add an entry; it is in the sink before this returns."""
        self._entries[entry.strand, entry.index] = entry
        if self.sink is not None:
            self.sink(entry)

    def refuse(self, strand: Strand, index: int, refusal: TaiwaError) -> None:
        """Remember that a limit refused the effect there; nothing was asked, so the sink does not hear of it."""
        self._refusals[strand, index] = refusal

    def refusal(self, strand: Strand, index: int) -> TaiwaError | None:
        """Return why the effect at that place was refused, if it was."""
        return self._refusals.get((strand, index))

    def requests(self) -> tuple[Complete, ...]:
        """The model calls of this run, for tests and laws."""
        return tuple(entry.effect for entry in self.entries if isinstance(entry.effect, Complete))

    def calls(self) -> tuple[CallTool, ...]:
        """The tool calls of this run."""
        return tuple(entry.effect for entry in self.entries if isinstance(entry.effect, CallTool))
