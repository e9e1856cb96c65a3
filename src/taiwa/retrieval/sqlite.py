"""Indexes in one SQLite file, with the words of each in a folder of tantivy's beside it.

SQLite is the truth: each batch is one transaction. The tantivy index is updated by the first search that finds it outdated. Its
results are looked up in SQLite at once, so what was deleted or restricted a moment ago is not shown even while another process
holds tantivy's only writer. Vectors are int8 in SQLite and in memory while in use; comparing all of them takes 20 ms for 100,000
vectors of 384 dimensions.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.kernel.messages import Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.embedding import numpy
from taiwa.retrieval.tables import FOUND, LIBRARY, SqlIndexBackend, SqlLibraryBackend, State, stored_passage
from taiwa.retrieval.tantivy_index import AddedPassage, IndexMark, ScoredPassage, TantivyIndex
from taiwa.retrieval.types import Batch, Principals, TermCounts, Vector, may_see
from taiwa.sql import Clock, now_us
from taiwa.sql.sqlite import SqliteDatabase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from taiwa.retrieval.types import Vector

LOOK_AGAIN = 0.05


@contextmanager
def file_lock(path: Path, wait: float, what: str) -> Generator[None]:
    """Lock a file between processes; the system releases the lock when the process ends. `what` names it in errors.

    Raises:
        ConflictError: another process file_lock it for `wait` seconds.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ConflictError(f"another process is indexing {what}; wait until it has finished") from None
                time.sleep(LOOK_AGAIN)
        yield
    finally:
        os.close(file)


TOGETHER = 8_192


class _LoadedVectors(NamedTuple):
    state: State
    passages: "NDArray[np.int64]"
    audiences: "NDArray[np.int64]"
    scales: "NDArray[np.float32]"
    cells: "NDArray[np.int8]"


class SqliteVectors:
    """The vectors of one index, by model."""

    def __init__(self, db: SqliteDatabase, index: int) -> None:
        self._db = db
        self._index = index
        self._held: dict[str, _LoadedVectors] = {}

    def missing(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return passages without a vector of a model."""
        without = "NOT EXISTS(SELECT 1 FROM vector WHERE vector.passage = passage.seq AND model = ?)"
        rows = self._db.rows(f"{FOUND} {without} ORDER BY passage.seq LIMIT ?", self._index, model, k)
        return tuple(stored_passage(row).passage for row in rows)

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
    ) -> list[ScoredPassage]:
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
        return [ScoredPassage(int(kept.passages[at]), float(scores[at])) for at in best if scores[at] > 0]

    def keep(self, model: str) -> None:
        """Delete the vectors of every other model."""
        own = "SELECT passage.seq FROM passage JOIN document ON document.seq = passage.document WHERE doc_index = ?"
        self._db.run(f"DELETE FROM vector WHERE model <> ? AND passage IN ({own})", model, self._index)  # noqa: S608
        self._held.clear()

    def _loaded(self, model: str, state: State) -> _LoadedVectors:
        np = numpy("a search by meaning")
        found = self._held.get(model)
        if found is None or found.state != state or len(found.passages) != self.count(model):
            rows = self._db.rows(
                "SELECT passage.seq, audience, scale, cells FROM vector JOIN passage ON passage.seq = vector.passage"
                " JOIN document ON document.seq = passage.document WHERE doc_index = ? AND model = ?",
                self._index, model,
            )  # fmt: skip
            cells = np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(len(rows), -1 if rows else 0)
            numbers = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
            scales = np.array([row[2] for row in rows], np.float32)
            found = self._held[model] = _LoadedVectors(state, numbers[:, 0], numbers[:, 1], scales, cells)
        return found

    def count(self, model: str) -> int:
        """Count the vectors of a model."""
        counted = (
            "SELECT count(*) FROM vector JOIN passage ON passage.seq = vector.passage JOIN document"
            " ON document.seq = passage.document WHERE doc_index = ? AND model = ?"
        )
        return int(self._db.one(counted, self._index, model))


PATIENCE = 5.0
"""Seconds that a search waits for another process that updates the index; then it uses the index as it is."""
MOST = 10_000
"""Maximum number of passages examined for one query."""


class SqliteIndexBackend(SqlIndexBackend):
    """One index: rows in SQLite, words in a folder of tantivy's."""

    def __init__(self, db: SqliteDatabase, folder: Path, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        self._vectors = SqliteVectors(db, seq)
        super().__init__(db, seq, named, analyzer, self._vectors)
        self._folder = folder
        self._words = TantivyIndex(folder)
        self._seen: State | None = None
        self._audiences: dict[frozenset[str], frozenset[int] | None] = {}

    def close(self) -> None:
        """Close the tantivy index."""
        self._words.close()
        self._seen = None

    def write_lock(self, wait: float) -> AbstractContextManager[None]:
        """Hold the lock of the only writer.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """
        return file_lock(self._folder.with_name(f"{self.seq}.lock"), wait, f"{self.name!r}")

    def commit(self, batch: Batch) -> None:
        """Apply a batch, all or nothing."""
        self._tables.commit(batch)

    def update_derived(self) -> None:
        """Update the tantivy index.

        Raises:
            ConflictError: another process is doing so.
        """
        state = self._tables.state()
        if state == self._seen:
            return
        mark = self._words.mark()
        if mark is None or mark[:2] != state or mark.analyzer != self.analyzer.name:
            # The other may just have done it.
            with self._db.transaction(write=False):
                state = self._tables.state()
                since = self._since(mark)
                seen = IndexMark(*state, self.analyzer.name)
                gone = self._tables.gone_since(since) if since is not None else ()
                self._words.change(seen, gone, self._added(since or 0), rebuild=since is None)
        self._see(state)

    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first."""
        self._up_to_date()
        wanted = asked = max(min(k, MOST), 0)
        visible = self._seen_by(principals)
        while asked:
            found = self._words.search(weights, asked, visible)
            shown = self._shown(found, principals)
            # Fewer than found only while the words are older than the rows.
            if len(shown) >= wanted or len(found) < asked or asked >= MOST:
                return shown[:wanted]
            asked = min(asked * 4, MOST)
        return ()

    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""
        self._up_to_date()
        visible = self._seen_by(principals)
        counted = self._tables.counted()
        passages = sum(count for audience, count in counted.items() if visible is None or audience in visible)
        holders = self._words.holders(dict.fromkeys(terms), visible) if passages else dict.fromkeys(terms, 0)
        return TermCounts(passages, holders)

    def nearest(self, model: str, vector: Vector, k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first."""
        found = self._vectors.nearest(model, vector, min(k, MOST), self._seen_by(principals), self._tables.state())
        return self._shown(found, principals)

    def _up_to_date(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.update_derived()
                return
            except ConflictError:
                if time.monotonic() > deadline and self._words.mark() is not None:
                    return
                time.sleep(0.05)

    def _since(self, mark: IndexMark | None) -> int | None:
        """Return the transaction that the index has seen; None where it must be built again."""
        if mark is None or mark.analyzer != self.analyzer.name or not self._tables.had(mark.generation, mark.stamp):
            return None
        return mark.generation

    def _added(self, generation: int) -> Iterator[AddedPassage]:
        headings: tuple[str, list[str]] = ("", [])
        for seq, document, audience, title, heading, text in self._tables.texts_since(generation):
            above = f"{title}\n{heading}"
            if headings[0] != above:
                headings = (above, self.analyzer.terms(above))
            yield AddedPassage(seq, document, audience, headings[1] + self.analyzer.terms(text))

    def _see(self, state: State) -> None:
        if state != self._seen:
            self._audiences.clear()
            self._seen = state

    def _seen_by(self, principals: Principals) -> frozenset[int] | None:
        """Return the audiences that include the principals; None when these are all."""
        if self._tables.state() != self._seen:
            self._audiences.clear()
        if principals not in self._audiences:
            every = self._tables.audiences()
            visible = frozenset(seq for seq, audience in every.items() if may_see(audience, principals))
            if len(self._audiences) >= 1_000:
                self._audiences.clear()
            self._audiences[principals] = None if len(visible) == len(every) else visible
        return self._audiences[principals]

    def _shown(self, found: Sequence[ScoredPassage], principals: Principals) -> tuple[Passage, ...]:
        """Return the passages of hits; those deleted or restricted since the index was written are left out."""
        rows = self._tables.passages({each.passage: each.score for each in found if each.score > 0}) if found else {}
        visible: Collection[int] | None = self._seen_by(principals)
        held = (rows[each.passage] for each in found if each.passage in rows)
        return tuple(each.passage for each in held if visible is None or each.audience in visible)


class SqliteLibraryBackend(SqlLibraryBackend[SqliteIndexBackend]):
    """Indexes in one SQLite file; the words of each stand in a folder beside it."""

    def __init__(self, path: str | Path, *, clock: Clock = now_us) -> None:
        self._file = SqliteDatabase(path, LIBRARY, clock=clock)
        if self._file.path is None:
            raise InputError("a library is a file, since its words stand beside it: name one")
        super().__init__(self._file)
        self._folder = self._file.path.with_suffix(".words")

    def __repr__(self) -> str:
        return f"SqliteLibraryBackend({str(self._file.path)!r})"

    def _open_backend(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> SqliteIndexBackend:
        return SqliteIndexBackend(self._file, self._folder / str(seq), seq, named, analyzer)

    def _begin(self, seq: int, stamp: bytes) -> None:
        self._db.run("INSERT INTO change VALUES(?, 0, ?)", seq, stamp)

    def _gone(self, backend: SqliteIndexBackend) -> None:
        shutil.rmtree(self._folder / str(backend.seq), ignore_errors=True)
