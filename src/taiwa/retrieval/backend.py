"""The backends of an index and of a library: their interface, and the tables that SQLite and PostgreSQL share.

Every backend passes `tests/retrieval/test_conformance.py`. Passages that the principals may not see are excluded before
ranking and counting.

`generation` counts the transactions of an index, and `stamp` is random for each: derived data records the transaction it has
seen, so a database restored from a backup is distinguished from its own future. Numbers of documents and passages are never
used again, so derived data cannot take a new row for an old one.

Vectors are int8 in the tables and in memory while in use; comparing all of them takes 20 ms for 100,000 vectors of 384 dimensions.
"""

import json
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.kernel.messages import Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.types import (
    Audience,
    Batch,
    DocumentListing,
    EmbedderChoice,
    FileFacts,
    IndexSummary,
    Principals,
    TermCounts,
    Vector,
)
from taiwa.sql import Database, DatabaseSpec, Migration, SqlRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIGRATION = Migration(
    both=(
        # `tallied` and `untallied` count the rows of sums that PostgreSQL keeps beside. The owner "" is the command line; a name is
        # unique among all owners.
        """CREATE TABLE doc_index(
            seq {pk},
            name {text} NOT NULL UNIQUE,
            root {text} NOT NULL,
            analyzer {text} NOT NULL,
            generation {int} NOT NULL,
            stamp {blob} NOT NULL,
            tallied {int} NOT NULL DEFAULT 0,
            untallied {int} NOT NULL DEFAULT 0,
            at_us {int} NOT NULL,
            owner {text} NOT NULL DEFAULT ''){strict}""",
        # The names in an audience are sorted JSON: equal audiences are one row.
        """CREATE TABLE audience(
            seq {pk},
            doc_index {int} NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            clauses {text} NOT NULL,
            UNIQUE(doc_index, clauses)){strict}""",
        """CREATE TABLE document(
            seq {pk},
            doc_index {int} NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            path {text} NOT NULL,
            title {text} NOT NULL,
            digest {blob} NOT NULL,
            size {int} NOT NULL,
            modified_ns {int} NOT NULL,
            reader {text} NOT NULL,
            audience {int} NOT NULL REFERENCES audience(seq),
            access {text},
            problem {text} NOT NULL,
            passages {int} NOT NULL,
            characters {int} NOT NULL,
            terms {int} NOT NULL DEFAULT 0,
            generation {int} NOT NULL DEFAULT 0,
            at_us {int} NOT NULL,
            UNIQUE(doc_index, path)){strict}""",
        "CREATE INDEX document_audience ON document(audience)",
        """CREATE TABLE passage(
            seq {pk},
            document {int} NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
            start {int} NOT NULL,
            page {int} NOT NULL,
            heading {text} NOT NULL,
            text {text} NOT NULL){strict}""",
        "CREATE INDEX passage_document ON passage(document)",
        """CREATE TABLE embedder(
            doc_index {int} PRIMARY KEY REFERENCES doc_index(seq) ON DELETE CASCADE,
            body {text} NOT NULL){strict}""",
        # A vector is int8 cells and the value of one unit.
        """CREATE TABLE vector(
            passage {int} NOT NULL REFERENCES passage(seq) ON DELETE CASCADE,
            model {text} NOT NULL,
            scale REAL NOT NULL,
            cells {blob} NOT NULL,
            PRIMARY KEY(passage, model)){strict}""",
    ),
    sqlite=(
        "CREATE INDEX document_generation ON document(doc_index, generation)",
        """CREATE TABLE gone(
            doc_index INTEGER NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            document INTEGER NOT NULL,
            generation INTEGER NOT NULL) STRICT""",
        "CREATE INDEX gone_generation ON gone(doc_index, generation)",
        """CREATE TABLE change(
            doc_index INTEGER NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            generation INTEGER NOT NULL,
            stamp BLOB NOT NULL,
            PRIMARY KEY(doc_index, generation)) STRICT, WITHOUT ROWID""",
    ),
    # A term is a number. Of a passage `words` has each of its terms once: as an array, for GIN, and as bytes for scoring, four
    # for each with one that counts its occurrences. `tally` counts the holders of a term by audience, as sums to be added up,
    # so that counts reveal nothing that the principals may not see.
    postgres=(
        # A cycle would need two billion terms.
        """CREATE TABLE term(
            seq integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            doc_index bigint NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            text text COLLATE "C" NOT NULL,
            UNIQUE(doc_index, text))""",
        """CREATE TABLE words(
            passage bigint PRIMARY KEY REFERENCES passage(seq) ON DELETE CASCADE,
            audience bigint NOT NULL,
            length bigint NOT NULL,
            terms integer[] NOT NULL,
            numbers bytea NOT NULL,
            counts bytea NOT NULL)""",
        # Every search reads many of them, so they are stored uncompressed in their rows.
        "ALTER TABLE words ALTER COLUMN numbers SET STORAGE MAIN, ALTER COLUMN counts SET STORAGE MAIN",
        "ALTER TABLE words SET (toast_tuple_target = 8160)",
        "CREATE INDEX words_terms ON words USING gin(terms)",
        """CREATE TABLE tally(
            doc_index bigint NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            term integer NOT NULL,
            audience bigint NOT NULL,
            holders bigint NOT NULL)""",
        "CREATE INDEX tally_term ON tally(term)",
        "CREATE INDEX tally_index ON tally(doc_index)",
    ),
)
LIBRARY = DatabaseSpec(
    "library",
    schema="taiwa_library",
    application_id=0x74776978,  # `twix`
    first_format=3,
    migrations=(MIGRATION,),
    created_by="`taiwa index FOLDER` creates one",
    repair="delete it with the folder beside it, and index again",
    # The planner underestimates the cost of comparing arrays, and would compare those of every passage instead of using GIN.
    settings=("enable_seqscan = off",),
)

FACTS = "digest, size, modified_ns, reader, clauses, problem, document.at_us, access"
MOST_PRINCIPALS = 1_000
"""Sets of principals whose audiences are remembered."""
MOST = 10_000
"""Maximum number of passages examined for one query."""
MULTIPLIED_TOGETHER = 8_192
"""Number of vectors multiplied at once."""
OWN_VECTORS = (
    "FROM vector JOIN passage ON passage.seq = vector.passage JOIN document ON document.seq = passage.document"
    " WHERE doc_index = ? AND model = ?"
)
PASSAGES = """
SELECT passage.seq, document.audience, document.path, document.title, document.seq, document.digest,
    passage.start, passage.page, passage.heading, passage.text
FROM passage JOIN document ON document.seq = passage.document WHERE doc_index = ? AND """


class State(NamedTuple):
    """The last transaction of an index."""

    generation: int
    stamp: str


class StoredPassage(NamedTuple):
    """A passage with the rows of itself and of its audience."""

    seq: int
    audience: int
    passage: Passage


class _LoadedVectors(NamedTuple):
    state: State
    passages: "NDArray[np.int64]"
    audiences: "NDArray[np.int64]"
    scales: "NDArray[np.float32]"
    cells: "NDArray[np.int8]"


class IndexBackend(ABC):
    """One index.

    `root` is the folder of its documents, empty if they come from elsewhere; `analyzer` is used for texts and queries.
    """

    def __init__(self, db: Database, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        self.seq = seq
        self.name, self.root = named
        self.analyzer = analyzer
        self._db = db
        self._cache: dict[Principals, Any] = {}
        self._cached_at: State | None = None
        self._loaded_vectors: dict[str, _LoadedVectors] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Release resources other than the tables."""

    @abstractmethod
    def write_lock(self, wait: float) -> AbstractContextManager[None]:
        """Hold the lock of the only writer, until the context or the process ends.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """

    @abstractmethod
    def commit(self, batch: Batch) -> None:
        """Apply a batch, all or nothing. From then on deleted or restricted passages are not found.

        Raises:
            StoreError: the index was deleted meanwhile.
        """

    @abstractmethod
    def update_derived(self) -> None:
        """Update derived data, so that the next search need not wait for it."""

    @abstractmethod
    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that contain any of the terms, best first by BM25 weighted per term.

        Every score is above zero.
        """

    @abstractmethod
    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""

    @abstractmethod
    def _visible_audiences(self, principals: Principals) -> Collection[int] | None:
        """Return the audiences that include the principals; None if all do."""

    def known(self) -> Mapping[str, FileFacts]:
        """Return the facts of every file, by path."""
        select = (
            f"SELECT path, {FACTS} FROM document JOIN audience ON audience.seq = audience WHERE document.doc_index = ?"  # noqa: S608
        )
        return {row[0]: _file_facts(row[1:]) for row in self._db.rows(select, self.seq)}

    def passage(self, id: str, principals: Principals | None) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if that version still exists and the principals may see it; None is the owner of the index.

        Ids are unique within a library.
        """
        stored = self._stored(id)
        if stored is None:
            return None
        visible = None if principals is None else self._visible_audiences(principals)
        return stored.passage if visible is None or stored.audience in visible else None

    def documents(self, principals: Principals | None) -> tuple[DocumentListing, ...]:
        """List documents by path; None stands for the owner of the index, who may see all."""
        visible = None if principals is None else self._visible_audiences(principals)
        select = f"""
            SELECT audience, path, title, passages, characters, {FACTS}
            FROM document JOIN audience ON audience.seq = audience WHERE document.doc_index = ? ORDER BY path"""  # noqa: S608
        rows = (row for row in self._db.rows(select, self.seq) if visible is None or row[0] in visible)
        return tuple(DocumentListing(row[1], row[2], _file_facts(row[5:]), row[3], row[4]) for row in rows)

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document in order, for the owner of the index."""
        rows = self._db.rows(f"{PASSAGES} document.path = ? ORDER BY passage.start, passage.seq", self.seq, path)
        return tuple(stored_passage(row).passage for row in rows)

    def summary(self, principals: Principals | None) -> IndexSummary:
        """Summarize what the principals may see of the index."""
        listed = self.documents(principals)
        at: int = self._db.one("SELECT at_us FROM doc_index WHERE seq = ?", self.seq) or 0
        return IndexSummary(
            self.name, self.root, self.analyzer.name, sum(not each.known.problem for each in listed),
            sum(each.passages for each in listed), sum(each.characters for each in listed),
            sum(bool(each.known.problem) for each in listed), at,
        )  # fmt: skip

    def embedder_choice(self) -> EmbedderChoice | None:
        """Return the embedder of the index, or None."""
        body = self._db.one("SELECT body FROM embedder WHERE doc_index = ?", self.seq)
        if body is None:
            return None
        place, model, probe = json.loads(body)
        return EmbedderChoice(place, model, tuple(probe))

    def set_embedder(self, meaning: EmbedderChoice | None) -> None:
        """Set the embedder of the index; None searches by words alone."""
        if meaning is None:
            self._db.run("DELETE FROM embedder WHERE doc_index = ?", self.seq)
            return
        self._db.run(
            "INSERT INTO embedder(doc_index, body) VALUES(?, ?) ON CONFLICT(doc_index) DO UPDATE SET body = excluded.body",
            self.seq, json.dumps([meaning.place, meaning.model, meaning.probe], ensure_ascii=False),
        )  # fmt: skip

    def _state(self) -> State:
        """Return the last transaction.

        Raises:
            StoreError: the index was deleted meanwhile.
        """
        row = self._db.row("SELECT generation, stamp FROM doc_index WHERE seq = ?", self.seq)
        if row is None:
            raise StoreError("the index does not exist any more: it was deleted meanwhile")
        return State(row[0], row[1].hex())

    def _cache_of_state(self) -> dict[Principals, Any]:
        """Return the data derived for principals since the last transaction."""
        state = self._state()
        if state != self._cached_at or len(self._cache) >= MOST_PRINCIPALS:
            self._cache, self._cached_at = {}, state
        return self._cache

    def _audiences(self) -> dict[int, Audience]:
        """Return every audience that a document has."""
        rows = self._db.rows("SELECT seq, clauses FROM audience WHERE doc_index = ?", self.seq)
        return {seq: _clauses(clauses) for seq, clauses in rows}

    def _audience_row(self, audience: Audience) -> int:
        """Return the row of an audience, created if necessary."""
        clauses = json.dumps([sorted(clause) for clause in audience], ensure_ascii=False)
        select = "SELECT seq FROM audience WHERE doc_index = ? AND clauses = ?"
        seq: int | None = self._db.one(select, self.seq, clauses)
        if seq is None:
            seq = self._db.insert("INSERT INTO audience(doc_index, clauses) VALUES(?, ?)", self.seq, clauses)
            assert seq is not None
        return seq

    def _scored(self, scores: Mapping[int, float]) -> list[StoredPassage]:
        """Return the passages that still exist, with their scores, in the given order."""
        if not scores:
            return []
        marks = ", ".join("?" * len(scores))
        rows = {row[0]: row for row in self._db.rows(f"{PASSAGES} passage.seq IN ({marks})", self.seq, *scores)}
        return [stored_passage(rows[seq], score) for seq, score in scores.items() if seq in rows]

    def _stored(self, name: str) -> StoredPassage | None:
        """Return the passage of an id, if that version exists."""
        parts = PASSAGE_ID.fullmatch(name)
        if parts is None:
            return None
        select = f"{PASSAGES} document.seq = ? AND start = ?"
        row = self._db.row(select, self.seq, int(parts["document"]), int(parts["start"]))
        return stored_passage(row) if row is not None and row[5].hex().startswith(parts["version"]) else None

    def _visible_passages(self, scores: Mapping[int, float], principals: Principals) -> tuple[Passage, ...]:
        """Return the passages of hits; those deleted or restricted since the index was written are left out."""
        stored = self._scored({seq: score for seq, score in scores.items() if score > 0})
        visible = self._visible_audiences(principals)
        return tuple(each.passage for each in stored if visible is None or each.audience in visible)

    # --- vectors ------------------------------------------------------------------------------------------------------

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        without = "NOT EXISTS(SELECT 1 FROM vector WHERE vector.passage = passage.seq AND model = ?)"
        rows = self._db.rows(f"{PASSAGES} {without} ORDER BY passage.seq LIMIT ?", self.seq, model, k)
        return tuple(stored_passage(row).passage for row in rows)

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, Vector]]) -> None:
        """Store the vectors of passages, in one transaction, by their ids; deleted passages are skipped."""
        import numpy as np

        self._loaded_vectors.pop(model, None)
        with self._db.transaction():
            for name, vector in vectors:
                if (stored := self._stored(name)) is None:
                    continue
                scale = float(np.abs(vector).max()) / 127 or 1.0
                cells = np.round(vector / scale).astype(np.int8).tobytes()
                self._db.run(
                    "INSERT INTO vector(passage, model, scale, cells) VALUES(?, ?, ?, ?)"
                    " ON CONFLICT(passage, model) DO UPDATE SET scale = excluded.scale, cells = excluded.cells",
                    stored.seq, model, scale, cells,
                )  # fmt: skip

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        return int(self._db.one(f"SELECT count(*) {OWN_VECTORS}", self.seq, model))

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        own = "SELECT passage.seq FROM passage JOIN document ON document.seq = passage.document WHERE doc_index = ?"
        self._db.run(f"DELETE FROM vector WHERE model <> ? AND passage IN ({own})", model, self.seq)  # noqa: S608
        self._loaded_vectors.clear()

    def nearest(self, model: str, vector: Vector, k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first; the score is the cosine."""
        import numpy as np

        k = min(k, MOST)
        loaded = self._vectors_of(model)
        if not len(loaded.passages) or k < 1:
            return ()
        length = loaded.cells.shape[1]
        if length != len(vector):
            raise InputError(f"the vectors of {model!r} have {length} numbers, not {len(vector)}")
        starts = range(0, len(loaded.passages), MULTIPLIED_TOGETHER)
        parts = [loaded.cells[at : at + MULTIPLIED_TOGETHER].astype(np.float32) @ vector for at in starts]
        scores = np.concatenate(parts) * loaded.scales
        audiences = self._visible_audiences(principals)
        if audiences is not None:
            scores = np.where(np.isin(loaded.audiences, list(audiences)), scores, -np.inf)
        best = np.argpartition(-scores, min(k, len(scores)) - 1)[:k]
        best = best[np.argsort(-scores[best], kind="stable")]
        return self._visible_passages({int(loaded.passages[at]): float(scores[at]) for at in best}, principals)

    def _vectors_of(self, model: str) -> _LoadedVectors:
        import numpy as np

        state, loaded = self._state(), self._loaded_vectors.get(model)
        if loaded is None or loaded.state != state or len(loaded.passages) != self.vectors(model):
            rows = self._db.rows(f"SELECT passage.seq, audience, scale, cells {OWN_VECTORS}", self.seq, model)
            cells = np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(len(rows), -1 if rows else 0)
            numbers = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
            scales = np.array([row[2] for row in rows], np.float32)
            loaded = self._loaded_vectors[model] = _LoadedVectors(state, numbers[:, 0], numbers[:, 1], scales, cells)
        return loaded


PASSAGE_ID = re.compile(r"(?P<document>[0-9]{1,18})-(?P<version>[^-]{12})-(?P<start>[0-9]{1,18})")
"""The document, the beginning of its digest, and where the passage starts."""


def stored_passage(row: SqlRow, score: float = 0.0) -> StoredPassage:
    """Read a row of `PASSAGES`."""
    seq, audience, path, title, document, digest, start, page, heading, text = row
    words = tuple(json.loads(heading)) if heading != "[]" else ()
    name = f"{document}-{digest.hex()[:12]}-{start}"
    return StoredPassage(seq, audience, Passage(path, text, score, start, words, page, title, name))


@lru_cache(maxsize=16)
def _heading_terms(analyzer: Analyzer, headings: str) -> list[str]:
    return analyzer.terms(headings)


def passage_terms(analyzer: Analyzer, title: str, heading: str, text: str) -> list[str]:
    """Return the terms of a passage, including those of its document's title and of its headings."""
    return _heading_terms(analyzer, f"{title}\n{heading}") + analyzer.terms(text)


def access_json(known: FileFacts) -> str | None:
    """Return the stored form of a file's access list."""
    return None if known.access is None else json.dumps(known.access, ensure_ascii=False)


def _file_facts(row: Iterable[Any]) -> FileFacts:
    digest, size, modified_ns, reader, clauses, problem, at_us, access = row
    own = None if access is None else tuple(json.loads(access))
    return FileFacts(digest.hex(), size, modified_ns, reader, _clauses(clauses), problem, at_us, own)


def _clauses(text: str) -> Audience:
    return tuple(tuple(clause) for clause in json.loads(text))


S = TypeVar("S", bound=IndexBackend)


class LibraryBackend(ABC, Generic[S]):
    """All indexes of one database, by name."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._open: dict[int, S] = {}

    @abstractmethod
    def _open_backend(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> S:
        """Open the index of a row."""

    def _begin(self, seq: int, stamp: bytes) -> None:
        """Write the initial rows of a new index."""

    def _gone(self, backend: S) -> None:
        """Delete data of an index outside its rows."""

    def names(self, owner: str | None = "") -> tuple[str, ...]:
        """Return the names of the indexes of an owner; None stands for all."""
        rows = self._db.rows("SELECT name, owner FROM doc_index ORDER BY name")
        return tuple(name for name, whose in rows if owner in (None, whose))

    def open(self, name: str) -> S:
        """Return an index.

        Raises:
            InputError: no index has that name.
        """
        row = self._db.row("SELECT seq, root, analyzer FROM doc_index WHERE name = ?", name)
        if row is None:
            there = f"indexes: {', '.join(self.names())}" if self.names() else "create one with `taiwa index FOLDER`"
            raise InputError(f"index {name!r} not found; {there}")
        seq, root, analyzer = row
        if seq not in self._open:
            self._open[seq] = self._open_backend(seq, (name, root), Analyzer.named(analyzer))
        return self._open[seq]

    def create(self, name: str, root: str, analyzer: Analyzer, owner: str = "") -> S:
        """Return a new, empty index of an owner.

        Raises:
            ConflictError: an index of that name exists.
        """
        with self._db.transaction():
            stamp = secrets.token_bytes(8)
            seq = self._db.insert(
                "INSERT INTO doc_index(name, root, analyzer, generation, stamp, at_us, owner) VALUES(?, ?, ?, 0, ?, ?, ?)"
                " ON CONFLICT(name) DO NOTHING",
                name, root, analyzer.name, stamp, self._db.clock(), owner,
            )  # fmt: skip
            if seq is None:
                raise ConflictError(f"index {name!r} already exists; choose another name")
            self._begin(seq, stamp)
            self._db.run("INSERT INTO audience(doc_index, clauses) VALUES(?, '[]')", seq)
        return self.open(name)

    def drop(self, name: str) -> None:
        """Delete an index with its content.

        Raises:
            InputError: no index has that name.
            ConflictError: another process is indexing there.
        """
        backend = self.open(name)
        with backend.write_lock(0.0):
            self._db.run("DELETE FROM doc_index WHERE seq = ?", backend.seq)
            backend.close()
            del self._open[backend.seq]
            self._gone(backend)
        self._db.vacuum()

    def close(self) -> None:
        """Close the database."""
        for backend in self._open.values():
            backend.close()
        self._open.clear()
        self._db.close()
