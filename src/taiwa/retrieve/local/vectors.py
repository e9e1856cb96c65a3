"""Vectors of passages: a byte for each number in SQLite, all of them in memory while they are asked for.

Looking at every vector takes 20 ms for 100,000 of 384 numbers, and leaves nobody out; what may not be seen is left out first.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from taiwa.kernel.errors import InputError
from taiwa.kernel.values import Passage
from taiwa.retrieve.dense.embedder import numpy
from taiwa.retrieve.local.tables import FOUND, State, held
from taiwa.retrieve.local.words import Scored
from taiwa.sqlite import Connection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from taiwa.retrieve.seam import Vector

__all__ = ["LocalVectors"]

TOGETHER = 8_192


class _Held(NamedTuple):
    state: State
    passages: "NDArray[np.int64]"
    audiences: "NDArray[np.int64]"
    scales: "NDArray[np.float32]"
    cells: "NDArray[np.int8]"


class LocalVectors:
    """The vectors of one index, by model."""

    def __init__(self, db: Connection, shelf: int) -> None:
        self._db = db
        self._shelf = shelf
        self._held: dict[str, _Held] = {}

    def missing(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return passages without a vector of a model."""
        without = "NOT EXISTS(SELECT 1 FROM vector WHERE vector.passage = passage.seq AND model = ?)"
        rows = self._db.rows(f"{FOUND} {without} ORDER BY passage.seq LIMIT ?", self._shelf, model, k)
        return tuple(held(row).passage for row in rows)

    def put(self, model: str, vectors: "Sequence[tuple[int, Vector]]") -> None:
        """Keep vectors by the numbers of their passages, in one transaction."""
        np = numpy("a search by meaning")
        self._held.pop(model, None)
        with self._db.transaction():
            for passage, vector in vectors:
                scale = float(np.abs(vector).max()) / 127 or 1.0
                cells = np.round(vector / scale).astype(np.int8).tobytes()
                self._db.run(
                    "INSERT INTO vector(passage, model, scale, cells) SELECT seq, ?, ?, ? FROM passage WHERE seq = ?"
                    " ON CONFLICT(passage, model) DO UPDATE SET scale = excluded.scale, cells = excluded.cells",
                    model, scale, cells, passage,
                )  # fmt: skip

    def nearest(
        self, model: str, vector: "Vector", k: int, audiences: Collection[int] | None, state: State
    ) -> list[Scored]:
        """Return the k nearest passages of the audiences; None is all."""
        np = numpy("a search by meaning")
        kept = self._loaded(model, state)
        if not len(kept.passages) or k < 1:
            return []
        if kept.cells.shape[1] != len(vector):
            raise InputError(
                f"a vector of {len(vector)} numbers is asked of {model!r}, whose have {kept.cells.shape[1]}"
            )
        parts = [
            kept.cells[start : start + TOGETHER].astype(np.float32) @ vector
            for start in range(0, len(kept.passages), TOGETHER)
        ]
        scores = np.concatenate(parts) * kept.scales
        if audiences is not None:
            scores = np.where(np.isin(kept.audiences, list(audiences)), scores, -np.inf)
        best = np.argpartition(-scores, min(k, len(scores)) - 1)[:k]
        best = best[np.argsort(-scores[best], kind="stable")]
        return [Scored(int(kept.passages[at]), float(scores[at])) for at in best if scores[at] > 0]

    def keep(self, model: str) -> None:
        """Delete the vectors of every other model."""
        own = "SELECT passage.seq FROM passage JOIN document ON document.seq = passage.document WHERE shelf = ?"
        self._db.run(f"DELETE FROM vector WHERE model <> ? AND passage IN ({own})", model, self._shelf)  # noqa: S608
        self._held.clear()

    def _loaded(self, model: str, state: State) -> _Held:
        np = numpy("a search by meaning")
        found = self._held.get(model)
        if found is None or found.state != state or len(found.passages) != self.count(model):
            rows = self._db.rows(
                "SELECT passage.seq, audience, scale, cells FROM vector JOIN passage ON passage.seq = vector.passage"
                " JOIN document ON document.seq = passage.document WHERE shelf = ? AND model = ?",
                self._shelf, model,
            )  # fmt: skip
            cells = np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(len(rows), -1 if rows else 0)
            numbers = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
            scales = np.array([row[2] for row in rows], np.float32)
            found = self._held[model] = _Held(state, numbers[:, 0], numbers[:, 1], scales, cells)
        return found

    def count(self, model: str) -> int:
        """Count the vectors of a model."""
        counted = (
            "SELECT count(*) FROM vector JOIN passage ON passage.seq = vector.passage JOIN document"
            " ON document.seq = passage.document WHERE shelf = ? AND model = ?"
        )
        return int(self._db.one(counted, self._shelf, model))
