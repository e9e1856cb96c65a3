"""The tables of a library, one list for SQLite and PostgreSQL, their statements, and what both backends share.

`generation` counts the transactions of an index, and `stamp` is random for each: what was derived from the tables records which
one it has seen, so a database restored from a backup is distinguished from its own future. Numbers of documents and passages are
never used again, so derived data cannot take a new row for an old one.
"""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

from taiwa.kernel.errors import ConflictError, InputError, StoreError
from taiwa.kernel.messages import Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.types import (
    Audience,
    Batch,
    Document,
    DocumentListing,
    EmbedderChoice,
    FileFacts,
    Gain,
    IndexSummary,
    PassageFeedback,
    Principals,
    Vector,
)
from taiwa.sql import Database, DatabaseSpec, Migration, SqlRow

if TYPE_CHECKING:
    from taiwa.sql import Database, DatabaseSpec, Migration

MIGRATION = Migration(
    both=(
        # `tallied` and `untallied` count the rows of sums that PostgreSQL keeps beside.
        """CREATE TABLE doc_index(
            seq {pk},
            name {text} NOT NULL UNIQUE,
            root {text} NOT NULL,
            analyzer {text} NOT NULL,
            generation {int} NOT NULL,
            stamp {blob} NOT NULL,
            tallied {int} NOT NULL DEFAULT 0,
            untallied {int} NOT NULL DEFAULT 0,
            at_us {int} NOT NULL){strict}""",
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
        """CREATE TABLE version(
            seq {pk},
            document {int} NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
            digest {blob} NOT NULL,
            size {int} NOT NULL,
            at_us {int} NOT NULL){strict}""",
        "CREATE INDEX version_document ON version(document)",
        """CREATE TABLE passage(
            seq {pk},
            document {int} NOT NULL REFERENCES document(seq) ON DELETE CASCADE,
            start {int} NOT NULL,
            page {int} NOT NULL,
            heading {text} NOT NULL,
            text {text} NOT NULL){strict}""",
        "CREATE INDEX passage_document ON passage(document)",
        """CREATE TABLE feedback(
            seq {pk},
            doc_index {int} NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            query {text} NOT NULL,
            passage {text} NOT NULL,
            good {int} NOT NULL,
            user_name {text} NOT NULL,
            at_us {int} NOT NULL){strict}""",
        "CREATE INDEX feedback_index ON feedback(doc_index)",
        """CREATE TABLE gain(
            doc_index {int} NOT NULL REFERENCES doc_index(seq) ON DELETE CASCADE,
            model {text} NOT NULL,
            body {text} NOT NULL,
            PRIMARY KEY(doc_index, model)){keyed}""",
        """CREATE TABLE embedder(
            doc_index {int} PRIMARY KEY REFERENCES doc_index(seq) ON DELETE CASCADE,
            body {text} NOT NULL){strict}""",
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
        # A vector is int8 cells and the value of one unit.
        """CREATE TABLE vector(
            passage INTEGER NOT NULL REFERENCES passage(seq) ON DELETE CASCADE,
            model TEXT NOT NULL,
            scale REAL NOT NULL,
            cells BLOB NOT NULL,
            PRIMARY KEY(passage, model)) STRICT, WITHOUT ROWID""",
    ),
    # A term is a number. Of a passage `words` has each of its terms once: as an array, for GIN, and as bytes for scoring, four
    # for each with one that counts its occurrences. `tally` counts the holders of a term by audience, as sums to be added up,
    # so that counts reveal nothing that the principals may not see. Vectors stand in `embedding`, which the first one creates.
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
        # Every search reads many of them, so they are not compressed and stand in their rows.
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
    unreleased_id=0x7461696C,
    migrations=(MIGRATION,),
    created_by="`taiwa index FOLDER` creates one",
    repair="delete it with the folder beside it, and index again",
    # The planner takes it for cheap to compare arrays, and would compare those of every passage instead of asking GIN.
    settings=("enable_seqscan = off",),
)

FACTS = "digest, size, modified_ns, reader, clauses, problem, document.at_us, access"
PAGE = 2_000
FOUND = """
SELECT passage.seq, document.audience, document.path, document.title, document.seq, document.digest,
    passage.start, passage.page, passage.heading, passage.text
FROM passage JOIN document ON document.seq = passage.document WHERE doc_index = ? AND """


class State(NamedTuple):
    """The last transaction of an index."""

    generation: int
    stamp: str


class Held(NamedTuple):
    """A passage with the rows of itself and of its audience."""

    seq: int
    audience: int
    passage: Passage


class Tables:
    """The rows of one index."""

    def __init__(self, db: Database, index: int) -> None:
        self._db = db
        self._index = index

    def state(self) -> State:
        """Return the last transaction.

        Raises:
            StoreError: the index was deleted meanwhile.
        """
        row = self._db.row("SELECT generation, stamp FROM doc_index WHERE seq = ?", self._index)
        if row is None:
            raise StoreError("the index does not exist any more: it was deleted meanwhile")
        return State(row[0], row[1].hex())

    def had(self, generation: int, stamp: str) -> bool:
        """Report whether the index has had this transaction."""
        kept = self._db.one("SELECT stamp FROM change WHERE doc_index = ? AND generation = ?", self._index, generation)
        return kept is not None and kept.hex() == stamp

    def known(self) -> dict[str, FileFacts]:
        """Return what is known of every file."""
        select = (
            f"SELECT path, {FACTS} FROM document JOIN audience ON audience.seq = audience WHERE document.doc_index = ?"  # noqa: S608
        )
        return {row[0]: _file_facts(row[1:]) for row in self._db.rows(select, self._index)}

    def commit(self, batch: Batch) -> None:
        """Apply a batch in one transaction."""
        with self._db.transaction():
            generation, stamp, now = self.state().generation + 1, secrets.token_bytes(8), self._db.clock()
            for document in batch.documents:
                self._put(document, generation, now)
            for path, known in batch.touched:
                self._touch(path, known, generation)
            for path in batch.gone:
                self._remove(path, generation)
            self._db.run("INSERT INTO change VALUES(?, ?, ?)", self._index, generation, stamp)
            self._db.run(
                "UPDATE doc_index SET generation = ?, stamp = ?, at_us = ? WHERE seq = ?",
                generation, stamp, now, self._index,
            )  # fmt: skip

    def audiences(self) -> dict[int, Audience]:
        """Return every audience that a document has."""
        rows = self._db.rows("SELECT seq, clauses FROM audience WHERE doc_index = ?", self._index)
        return {seq: _clauses(clauses) for seq, clauses in rows}

    def passages(self, scores: Mapping[int, float]) -> dict[int, Held]:
        """Return those of the passages that are still there, with their scores."""
        marks = ", ".join("?" * len(scores))
        rows = self._db.rows(f"{FOUND} passage.seq IN ({marks})", self._index, *scores)
        return {row[0]: stored_passage(row, scores[row[0]]) for row in rows}

    def passage(self, document: int, version: str, start: int) -> Held | None:
        """Return the passage of a place in a version of a document."""
        row = self._db.row(f"{FOUND} document.seq = ? AND start = ?", self._index, document, start)
        return stored_passage(row) if row is not None and row[5].hex().startswith(version) else None

    def gone_since(self, generation: int) -> list[int]:
        """Return the documents that were deleted or changed after a transaction."""
        select = """
            SELECT document FROM gone WHERE doc_index = ? AND generation > ?
            UNION SELECT seq FROM document WHERE doc_index = ? AND generation > ?"""
        return [seq for (seq,) in self._db.rows(select, self._index, generation, self._index, generation)]

    def texts_since(self, generation: int) -> Iterator[SqlRow]:
        """Give (passage, document, audience, title, heading, text) of what was put after a transaction, page by page."""
        select = """
            SELECT passage.seq, document.seq, audience, title, heading, text
            FROM document JOIN passage ON passage.document = document.seq
            WHERE doc_index = ? AND generation > ? AND passage.seq > ? ORDER BY passage.seq LIMIT ?"""
        last = 0
        while rows := self._db.rows(select, self._index, generation, last, PAGE):
            yield from rows
            last = rows[-1][0]

    def counted(self) -> dict[int, int]:
        """Count the passages of each audience."""
        select = "SELECT audience, sum(passages) FROM document WHERE doc_index = ? GROUP BY audience"
        return dict(cast("list[tuple[int, int]]", self._db.rows(select, self._index)))

    def listed(self) -> list[tuple[int, DocumentListing]]:
        """Return every document with the number of its audience, by path."""
        select = f"""
            SELECT audience, path, title, passages, characters,
                (SELECT count(*) FROM version WHERE document = document.seq), {FACTS}
            FROM document JOIN audience ON audience.seq = audience WHERE document.doc_index = ? ORDER BY path"""  # noqa: S608
        rows = self._db.rows(select, self._index)
        return [(row[0], DocumentListing(row[1], row[2], _file_facts(row[6:]), row[3], row[4], row[5])) for row in rows]

    def of(self, path: str) -> tuple[Passage, ...]:
        """Return the passages of a document, in its order."""
        rows = self._db.rows(f"{FOUND} document.path = ? ORDER BY passage.start, passage.seq", self._index, path)
        return tuple(stored_passage(row).passage for row in rows)

    def add_feedback(self, feedback: PassageFeedback) -> None:
        """Store a user's judgement of a passage."""
        self._db.run(
            "INSERT INTO feedback(doc_index, query, passage, good, user_name, at_us) VALUES(?, ?, ?, ?, ?, ?)",
            self._index, feedback.query, feedback.passage, feedback.good, feedback.user, feedback.at_us or self._db.clock(),
        )  # fmt: skip

    def feedback(self) -> tuple[PassageFeedback, ...]:
        """Return all feedback."""
        select = "SELECT query, passage, good, user_name, at_us FROM feedback WHERE doc_index = ? ORDER BY seq"
        return tuple(
            PassageFeedback(query, passage, bool(good), person, at)
            for query, passage, good, person, at in self._db.rows(select, self._index)
        )

    def store_gain(self, model: str, gain: Gain) -> None:
        """Store the result of a check of a model."""
        body = json.dumps([gain.questions, gain.words, gain.fused, gain.low, gain.high, gain.of])
        self._db.run(JUDGED, self._index, model, body)

    def gain(self, model: str) -> Gain | None:
        """Return the result of the last check of a model."""
        body = self._db.one("SELECT body FROM gain WHERE doc_index = ? AND model = ?", self._index, model)
        return None if body is None else Gain(*json.loads(body))

    def embedder_choice(self) -> EmbedderChoice | None:
        """Return the embedder of the index, or None."""
        body = self._db.one("SELECT body FROM embedder WHERE doc_index = ?", self._index)
        if body is None:
            return None
        place, model, probe, always = json.loads(body)
        return EmbedderChoice(place, model, tuple(probe), always)

    def set_embedder(self, meaning: EmbedderChoice | None) -> None:
        """Set the embedder of the index; None searches by words alone."""
        if meaning is None:
            self._db.run("DELETE FROM embedder WHERE doc_index = ?", self._index)
            return
        body = json.dumps([meaning.place, meaning.model, meaning.probe, meaning.always], ensure_ascii=False)
        self._db.run(CHOSEN, self._index, body)

    def _put(self, document: Document, generation: int, now: int) -> None:
        known = document.known
        audience = self.audience(known.audience)
        self._db.run(
            """INSERT INTO document(doc_index, path, title, digest, size, modified_ns, reader, audience, access, problem,
                passages, characters, generation, at_us) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT(doc_index, path) DO UPDATE SET title = excluded.title, digest = excluded.digest,
                size = excluded.size, modified_ns = excluded.modified_ns, reader = excluded.reader,
                audience = excluded.audience, access = excluded.access, problem = excluded.problem, passages = excluded.passages,
                characters = excluded.characters, generation = excluded.generation, at_us = excluded.at_us""",
            self._index, document.path, document.title, bytes.fromhex(known.digest), known.size, known.modified_ns,
            known.reader, audience, None if known.access is None else json.dumps(known.access, ensure_ascii=False),
            known.problem, len(document.chunks), sum(len(each.text) for each in document.chunks), generation, now,
        )  # fmt: skip
        seq = self._db.one("SELECT seq FROM document WHERE doc_index = ? AND path = ?", self._index, document.path)
        self._db.run("DELETE FROM passage WHERE document = ?", seq)
        last = self._db.one("SELECT digest FROM version WHERE document = ? ORDER BY seq DESC LIMIT 1", seq)
        if known.digest and last != bytes.fromhex(known.digest):
            self._db.run(
                "INSERT INTO version(document, digest, size, at_us) VALUES(?, ?, ?, ?)",
                seq, bytes.fromhex(known.digest), known.size, now,
            )  # fmt: skip
        for chunk in document.chunks:
            self._db.run(
                "INSERT INTO passage(document, start, page, heading, text) VALUES(?, ?, ?, ?, ?)",
                seq, chunk.start, chunk.page, json.dumps(chunk.heading, ensure_ascii=False), chunk.text,
            )  # fmt: skip

    def _touch(self, path: str, known: FileFacts, generation: int) -> None:
        """Facts of a file whose text is the same; where its audience changed, it counts as changed."""
        audience = self.audience(known.audience)
        self._db.run(
            """UPDATE document SET generation = CASE audience WHEN ? THEN generation ELSE ? END,
                audience = ?, size = ?, modified_ns = ?, at_us = ? WHERE doc_index = ? AND path = ?""",
            audience, generation, audience, known.size, known.modified_ns, self._db.clock(), self._index, path,
        )  # fmt: skip

    def _remove(self, path: str, generation: int) -> None:
        seq = self._db.one("SELECT seq FROM document WHERE doc_index = ? AND path = ?", self._index, path)
        if seq is not None:
            self._db.run("INSERT INTO gone VALUES(?, ?, ?)", self._index, seq, generation)
            self._db.run("DELETE FROM document WHERE seq = ?", seq)

    def audience(self, audience: Audience) -> int:
        """Return the row of an audience, created where necessary."""
        clauses = json.dumps([sorted(clause) for clause in audience], ensure_ascii=False)
        select = "SELECT seq FROM audience WHERE doc_index = ? AND clauses = ?"
        seq: int | None = self._db.one(select, self._index, clauses)
        if seq is None:
            seq = self._db.insert("INSERT INTO audience(doc_index, clauses) VALUES(?, ?)", self._index, clauses)
            assert seq is not None
        return seq


def passage_id(document: int, digest: bytes, start: int) -> str:
    """Return the id of a passage: its document, the version, and its start."""
    return f"{document}-{digest.hex()[:12]}-{start}"


def stored_passage(row: SqlRow, score: float = 0.0) -> Held:
    """Read a row of `FOUND`."""
    seq, audience, path, title, document, digest, start, page, heading, text = row
    words = cast("list[str]", json.loads(heading)) if heading != "[]" else ()
    return Held(
        seq, audience, Passage(path, text, score, start, tuple(words), page, title, passage_id(document, digest, start))
    )


def _file_facts(row: Iterable[Any]) -> FileFacts:
    digest, size, modified_ns, reader, clauses, problem, at_us, access = row
    own = None if access is None else tuple(json.loads(access))
    return FileFacts(digest.hex(), size, modified_ns, reader, _clauses(clauses), problem, at_us, own)


def _clauses(text: str) -> Audience:
    return tuple(tuple(clause) for clause in json.loads(text))


JUDGED = "INSERT INTO gain(doc_index, model, body) VALUES(?, ?, ?) ON CONFLICT(doc_index, model) DO UPDATE SET body = excluded.body"
CHOSEN = "INSERT INTO embedder(doc_index, body) VALUES(?, ?) ON CONFLICT(doc_index) DO UPDATE SET body = excluded.body"


LONGEST_NUMBER = 18


class Vectors(Protocol):
    """Where the vectors of an index are kept."""

    def missing(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        ...

    def put(self, model: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Keep the vectors of passages, by their numbers."""
        ...

    def count(self, model: str) -> int:
        """Count the vectors of a model."""
        ...

    def keep(self, model: str) -> None:
        """Delete the vectors of every other model."""
        ...


class SqlIndexBackend(ABC):
    """One index in SQL tables: all that does not depend on how words are searched."""

    def __init__(self, db: Database, seq: int, named: tuple[str, str], analyzer: Analyzer, vectors: Vectors) -> None:
        self.seq = seq
        self.name, self.root = named
        self.analyzer = analyzer
        self._db = db
        self._tables = Tables(db, seq)
        self._kept = vectors

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Release what is open besides the tables."""

    @abstractmethod
    def write_lock(self, wait: float) -> AbstractContextManager[None]:
        """Hold the lock of the only writer.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """

    @abstractmethod
    def _seen_by(self, principals: Principals) -> Collection[int] | None:
        """Return the audiences that include the principals; None when these are all."""

    def known(self) -> Mapping[str, FileFacts]:
        """Return what is known of every file, by path."""
        return self._tables.known()

    def passage(self, id: str, principals: Principals) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if it is still there and may be seen."""
        found = self._placed(id)
        if found is None:
            return None
        visible = self._seen_by(principals)
        return found.passage if visible is None or found.audience in visible else None

    def documents(self, principals: Principals | None) -> tuple[DocumentListing, ...]:
        """List documents by path."""
        visible = None if principals is None else self._seen_by(principals)
        return tuple(each for audience, each in self._tables.listed() if visible is None or audience in visible)

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document, in its order."""
        return self._tables.of(path)

    def summary(self, principals: Principals | None) -> IndexSummary:
        """Summarize what the principals may see of the index."""
        listed = self.documents(principals)
        at: int = self._db.one("SELECT at_us FROM doc_index WHERE seq = ?", self.seq) or 0
        return IndexSummary(
            self.name, self.root, self.analyzer.name, sum(not each.known.problem for each in listed),
            sum(each.passages for each in listed), sum(each.characters for each in listed),
            sum(bool(each.known.problem) for each in listed), at,
        )  # fmt: skip

    def add_feedback(self, feedback: PassageFeedback) -> None:
        """Store a user's judgement of a passage."""
        self._tables.add_feedback(feedback)

    def feedback(self) -> tuple[PassageFeedback, ...]:
        """Return all feedback, oldest first."""
        return self._tables.feedback()

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        return self._kept.missing(model, k)

    def put_vectors(self, model: str, vectors: Sequence[tuple[str, Vector]]) -> None:
        """Store the vectors of passages; deleted passages are skipped."""
        there = ((self._placed(name), vector) for name, vector in vectors)
        self._kept.put(model, [(found.seq, vector) for found, vector in there if found is not None])

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        return self._kept.count(model)

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        self._kept.keep(model)

    def store_gain(self, model: str, gain: Gain) -> None:
        """Store the result of a check of a model."""
        self._tables.store_gain(model, gain)

    def gain(self, model: str) -> Gain | None:
        """Return the result of the last check of a model."""
        return self._tables.gain(model)

    def embedder_choice(self) -> EmbedderChoice | None:
        """Return the embedder of the index, or None."""
        return self._tables.embedder_choice()

    def set_embedder(self, meaning: EmbedderChoice | None) -> None:
        """Set the embedder of the index; None searches by words alone."""
        self._tables.set_embedder(meaning)

    def _placed(self, name: str) -> Held | None:
        """Return the passage of an id, if that version exists."""
        document, version, start = (*name.split("-"), "", "")[:3]
        if not (document.isdecimal() and start.isdecimal()) or name.count("-") != 2 or len(version) != 12:
            return None
        if max(len(document), len(start)) > LONGEST_NUMBER:
            return None
        return self._tables.passage(int(document), version, int(start))


S = TypeVar("S", bound=SqlIndexBackend)


class SqlLibraryBackend(ABC, Generic[S]):
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
        """Delete what an index has besides rows."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all indexes."""
        return tuple(name for (name,) in self._db.rows("SELECT name FROM doc_index ORDER BY name"))

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

    def create(self, name: str, root: str, analyzer: Analyzer) -> S:
        """Return a new, empty index.

        Raises:
            ConflictError: an index of that name exists.
        """
        with self._db.transaction():
            stamp = secrets.token_bytes(8)
            seq = self._db.insert(
                "INSERT INTO doc_index(name, root, analyzer, generation, stamp, at_us) VALUES(?, ?, ?, 0, ?, ?)"
                " ON CONFLICT(name) DO NOTHING",
                name, root, analyzer.name, stamp, self._db.clock(),
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
