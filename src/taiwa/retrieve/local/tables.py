"""What is asked of the tables of one index, and what is written there."""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from taiwa.kernel.errors import StoreError
from taiwa.kernel.values import Passage
from taiwa.retrieve.values import Audience, Batch, Document, Feedback, Known, Listed
from taiwa.sqlite import Database, Row

__all__ = ["FOUND", "Held", "State", "Tables", "held", "passage_id"]

KNOWN = "digest, size, modified_ns, reader, clauses, problem, document.at_us, access"
PAGE = 2_000
FOUND = """
SELECT passage.seq, document.audience, document.path, document.title, document.seq, document.digest,
    passage.start, passage.page, passage.heading, passage.text
FROM passage JOIN document ON document.seq = passage.document WHERE shelf = ? AND """


class State(NamedTuple):
    """Which transaction was the last."""

    generation: int
    stamp: str


class Held(NamedTuple):
    """A passage as the tables hold it."""

    seq: int
    audience: int
    passage: Passage


class Tables:
    """The rows of one index."""

    def __init__(self, db: Database, shelf: int) -> None:
        self._db = db
        self._shelf = shelf

    def state(self) -> State:
        """Return which transaction was the last.

        Raises:
            StoreError: the index was dropped meanwhile.
        """
        row = self._db.row("SELECT generation, stamp FROM shelf WHERE seq = ?", self._shelf)
        if row is None:
            raise StoreError("the index is no longer there: it was dropped meanwhile")
        return State(row[0], row[1].hex())

    def had(self, generation: int, stamp: str) -> bool:
        """Whether there was such a transaction."""
        kept = self._db.one("SELECT stamp FROM change WHERE shelf = ? AND generation = ?", self._shelf, generation)
        return kept is not None and kept.hex() == stamp

    def known(self) -> dict[str, Known]:
        """Return what is known of every file."""
        select = f"SELECT path, {KNOWN} FROM document JOIN audience ON audience.seq = audience WHERE document.shelf = ?"  # noqa: S608
        return {row[0]: _known(row[1:]) for row in self._db.rows(select, self._shelf)}

    def commit(self, batch: Batch) -> None:
        """Do what a batch says in one transaction."""
        with self._db.transaction():
            generation, stamp, now = self.state().generation + 1, secrets.token_bytes(8), self._db.clock()
            for document in batch.documents:
                self._put(document, generation, now)
            for path, known in batch.touched:
                self._touch(path, known, generation)
            for path in batch.gone:
                self._remove(path, generation)
            self._db.run("INSERT INTO change VALUES(?, ?, ?)", self._shelf, generation, stamp)
            self._db.run(
                "UPDATE shelf SET generation = ?, stamp = ?, at_us = ? WHERE seq = ?",
                generation, stamp, now, self._shelf,
            )  # fmt: skip

    def audiences(self) -> dict[int, Audience]:
        """Return every audience that a document has."""
        rows = self._db.rows("SELECT seq, clauses FROM audience WHERE shelf = ?", self._shelf)
        return {seq: _clauses(clauses) for seq, clauses in rows}

    def passages(self, scores: Mapping[int, float]) -> dict[int, Held]:
        """Return those of the passages that are still there, with their scores."""
        marks = ", ".join("?" * len(scores))
        rows = self._db.rows(f"{FOUND} passage.seq IN ({marks})", self._shelf, *scores)
        return {row[0]: held(row, scores[row[0]]) for row in rows}

    def passage(self, document: int, version: str, start: int) -> Held | None:
        """Return the passage of a place in a version of a document."""
        row = self._db.row(f"{FOUND} document.seq = ? AND start = ?", self._shelf, document, start)
        return held(row) if row is not None and row[5].hex().startswith(version) else None

    def gone_since(self, generation: int) -> list[int]:
        """Return the documents that were deleted or changed after a transaction."""
        select = """
            SELECT document FROM gone WHERE shelf = ? AND generation > ?
            UNION SELECT seq FROM document WHERE shelf = ? AND generation > ?"""
        return [seq for (seq,) in self._db.rows(select, self._shelf, generation, self._shelf, generation)]

    def texts_since(self, generation: int) -> Iterator[Row]:
        """Give (passage, document, audience, title, heading, text) of what was put after a transaction, page by page."""
        select = """
            SELECT passage.seq, document.seq, audience, title, heading, text
            FROM document JOIN passage ON passage.document = document.seq
            WHERE shelf = ? AND generation > ? AND passage.seq > ? ORDER BY passage.seq LIMIT ?"""
        last = 0
        while rows := self._db.rows(select, self._shelf, generation, last, PAGE):
            yield from rows
            last = rows[-1][0]

    def counted(self) -> dict[int, int]:
        """Count the passages of each audience."""
        select = "SELECT audience, sum(passages) FROM document WHERE shelf = ? GROUP BY audience"
        return dict(cast("list[tuple[int, int]]", self._db.rows(select, self._shelf)))

    def listed(self) -> list[tuple[int, Listed]]:
        """Return every document with the number of its audience, by path."""
        select = f"""
            SELECT audience, path, title, passages, characters,
                (SELECT count(*) FROM version WHERE document = document.seq), {KNOWN}
            FROM document JOIN audience ON audience.seq = audience WHERE document.shelf = ? ORDER BY path"""  # noqa: S608
        rows = self._db.rows(select, self._shelf)
        return [(row[0], Listed(row[1], row[2], _known(row[6:]), row[3], row[4], row[5])) for row in rows]

    def of(self, path: str) -> tuple[Passage, ...]:
        """Return the passages of a document, in its order."""
        rows = self._db.rows(f"{FOUND} document.path = ? ORDER BY passage.start, passage.seq", self._shelf, path)
        return tuple(held(row).passage for row in rows)

    def tell(self, feedback: Feedback) -> None:
        """Keep what was said of a passage."""
        self._db.run(
            "INSERT INTO feedback(shelf, query, passage, good, person, at_us) VALUES(?, ?, ?, ?, ?, ?)",
            self._shelf, feedback.query, feedback.passage, feedback.good, feedback.person, feedback.at_us or self._db.clock(),
        )  # fmt: skip

    def told(self) -> tuple[Feedback, ...]:
        """Return all feedback."""
        select = "SELECT query, passage, good, person, at_us FROM feedback WHERE shelf = ? ORDER BY seq"
        return tuple(
            Feedback(query, passage, bool(good), person, at)
            for query, passage, good, person, at in self._db.rows(select, self._shelf)
        )

    def _put(self, document: Document, generation: int, now: int) -> None:
        known = document.known
        audience = self.audience(known.audience)
        self._db.run(
            """INSERT INTO document(shelf, path, title, digest, size, modified_ns, reader, audience, access, problem,
                passages, characters, generation, at_us) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT(shelf, path) DO UPDATE SET title = excluded.title, digest = excluded.digest,
                size = excluded.size, modified_ns = excluded.modified_ns, reader = excluded.reader,
                audience = excluded.audience, access = excluded.access, problem = excluded.problem, passages = excluded.passages,
                characters = excluded.characters, generation = excluded.generation, at_us = excluded.at_us""",
            self._shelf, document.path, document.title, bytes.fromhex(known.digest), known.size, known.modified_ns,
            known.reader, audience, None if known.access is None else json.dumps(known.access, ensure_ascii=False),
            known.problem, len(document.pieces), sum(len(each.text) for each in document.pieces), generation, now,
        )  # fmt: skip
        seq = self._db.one("SELECT seq FROM document WHERE shelf = ? AND path = ?", self._shelf, document.path)
        self._db.run("DELETE FROM passage WHERE document = ?", seq)
        last = self._db.one("SELECT digest FROM version WHERE document = ? ORDER BY seq DESC LIMIT 1", seq)
        if known.digest and last != bytes.fromhex(known.digest):
            self._db.run(
                "INSERT INTO version(document, digest, size, at_us) VALUES(?, ?, ?, ?)",
                seq, bytes.fromhex(known.digest), known.size, now,
            )  # fmt: skip
        for piece in document.pieces:
            self._db.run(
                "INSERT INTO passage(document, start, page, heading, text) VALUES(?, ?, ?, ?, ?)",
                seq, piece.start, piece.page, json.dumps(piece.heading, ensure_ascii=False), piece.text,
            )  # fmt: skip

    def _touch(self, path: str, known: Known, generation: int) -> None:
        """Facts of a file whose text is the same; where somebody else may see it now, it counts as changed."""
        audience = self.audience(known.audience)
        self._db.run(
            """UPDATE document SET generation = CASE audience WHEN ? THEN generation ELSE ? END,
                audience = ?, size = ?, modified_ns = ?, at_us = ? WHERE shelf = ? AND path = ?""",
            audience, generation, audience, known.size, known.modified_ns, self._db.clock(), self._shelf, path,
        )  # fmt: skip

    def _remove(self, path: str, generation: int) -> None:
        seq = self._db.one("SELECT seq FROM document WHERE shelf = ? AND path = ?", self._shelf, path)
        if seq is not None:
            self._db.run("INSERT INTO gone VALUES(?, ?, ?)", self._shelf, seq, generation)
            self._db.run("DELETE FROM document WHERE seq = ?", seq)

    def audience(self, audience: Audience) -> int:
        """Return the row of an audience, a new one where there is none."""
        clauses = json.dumps([sorted(clause) for clause in audience], ensure_ascii=False)
        select = "SELECT seq FROM audience WHERE shelf = ? AND clauses = ?"
        seq: int | None = self._db.one(select, self._shelf, clauses)
        if seq is None:
            seq = self._db.insert("INSERT INTO audience(shelf, clauses) VALUES(?, ?)", self._shelf, clauses)
            assert seq is not None
        return seq


def passage_id(document: int, digest: bytes, start: int) -> str:
    """Name a passage for good: its document, the version, and where it begins."""
    return f"{document}-{digest.hex()[:12]}-{start}"


def held(row: Row, score: float = 0.0) -> Held:
    """Read a row of `FOUND`."""
    seq, audience, path, title, document, digest, start, page, heading, text = row
    words = cast("list[str]", json.loads(heading)) if heading != "[]" else ()
    return Held(
        seq, audience, Passage(path, text, score, start, tuple(words), page, title, passage_id(document, digest, start))
    )


def _known(row: Iterable[Any]) -> Known:
    digest, size, modified_ns, reader, clauses, problem, at_us, access = row
    own = None if access is None else tuple(json.loads(access))
    return Known(digest.hex(), size, modified_ns, reader, _clauses(clauses), problem, at_us, own)


def _clauses(text: str) -> Audience:
    return tuple(tuple(clause) for clause in json.loads(text))
