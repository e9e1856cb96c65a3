"""Indexes in one SQLite file, with the words of each in a tantivy folder next to it.

SQLite is authoritative: each batch is one transaction. The tantivy index contains terms and numbers, no text; it can be
deleted and rebuilt, and is updated by the first search that finds it outdated: a marker among its documents records which
transaction of the tables it has seen. Its results are looked up in SQLite immediately, so passages deleted or restricted a
moment ago are not shown, even while another process holds tantivy's only writer.
"""

import json
import os
import secrets
import shutil
import sys
import time
import weakref
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from taiwa.extras import require_posix
from taiwa.kernel.errors import ConflictError, CorruptError, InputError, StoreError
from taiwa.kernel.messages import Passage
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import (
    LIBRARY,
    MOST,
    IndexBackend,
    LibraryBackend,
    State,
    access_json,
    passage_terms,
)
from taiwa.retrieval.types import Batch, Document, FileFacts, Principals, TermCounts, may_see, reason_of
from taiwa.sql import Clock, now_us
from taiwa.sql.sqlite import MEMORY, SqliteDatabase

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import tantivy


HEAP = 64_000_000
"""Bytes that are collected before a segment is written."""
LAYOUT = "1"
"""The version of the fields below, part of every marker."""


class IndexMark(NamedTuple):
    """The transaction that an index has seen, and its analyzer."""

    generation: int
    stamp: str
    analyzer: str


class AddedPassage(NamedTuple):
    """A passage to add: its rows and its terms."""

    passage: int
    document: int
    audience: int
    terms: Sequence[str]


def temporary_folder(owner: object) -> Path:
    """Create a temporary folder that is removed with its owner.

    Raises:
        StoreError: no folder for temporary files can be written.
    """
    try:
        folder = Path(mkdtemp(prefix="taiwa-"))
    except OSError as error:
        raise StoreError(f"a temporary folder cannot be made: {reason_of(error)}") from None
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


class TantivyIndex:
    """The words of one index, in a separate folder.

    Reading locks files too, so a read-only folder is copied to a temporary one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._copied_from = folder if folder.exists() and not os.access(folder, os.W_OK) else None
        self._opened: tantivy.Index | None = None
        self._searcher: tantivy.Searcher | None = None

    def close(self) -> None:
        """Close the files."""
        self._opened = self._searcher = None

    def mark(self) -> IndexMark | None:
        """Reload the index and return its marker; None if it is missing or unreadable."""
        try:
            opened = self._open(fresh=False)
            if opened is None:
                return None
            opened.reload()
            self._searcher = opened.searcher()
            hits = self._searcher.search(_term(opened.schema, "kind", "marker"), 1, count=False).hits
            if not hits:
                return None
            layout, generation, stamp, analyzer = self._searcher.doc(hits[0][1])["marker"][0].split(" ", 3)
        except (ValueError, OSError, KeyError, IndexError):
            self.close()
            return None
        return IndexMark(int(generation), stamp, analyzer) if layout == LAYOUT else None

    def change(self, mark: IndexMark, gone: Iterable[int], added: Iterable[AddedPassage], *, rebuild: bool) -> None:
        """Delete documents, add passages and set the marker, all or nothing; `rebuild` begins with an empty index.

        Raises:
            ConflictError: another process is doing the same.
        """
        if rebuild:
            self.close()
        opened = self._writable(rebuild)
        writer = self._writer(opened)
        try:
            if rebuild:
                writer.delete_all_documents()
            for document in gone:
                writer.delete_documents_by_term("document", document)
            for passage in added:
                writer.add_document(_document(passage))
            # The marker is a document, so that it is committed with the passages that it describes, or not at all.
            writer.delete_documents_by_term("kind", "marker")
            import tantivy

            marker = " ".join((LAYOUT, str(mark.generation), mark.stamp, mark.analyzer))
            writer.add_document(tantivy.Document(kind="marker", marker=marker))
            writer.commit()
            writer.wait_merging_threads()
        except ValueError as error:
            raise StoreError(f"the words of the index {self.folder} cannot be written: {error}") from error
        self.mark()

    def search(self, weights: Mapping[str, float], k: int, audiences: Collection[int] | None) -> dict[int, float]:
        """Return the k best passages by BM25 (k1 1.2, b 0.75), with their scores; `audiences` may be seen, None is all."""
        opened, searcher = self._ready()
        if not weights or k < 1 or searcher is None:
            return {}
        import tantivy

        boosted, should = tantivy.Query.boost_query, tantivy.Occur.Should
        terms = ((_term(opened.schema, "text", each), weight) for each, weight in weights.items())
        parts = [(should, one if weight == 1.0 else boosted(one, weight)) for one, weight in terms]
        query = self._seen(opened, tantivy.Query.boolean_query(parts), audiences)
        hits = searcher.search(query, k, count=False).hits
        numbers = searcher.fast_field_values("passage", [address for _, address in hits])
        return {int(number or 0): float(hit[0] or 0.0) for hit, number in zip(hits, numbers, strict=True)}

    def holders(self, terms: Iterable[str], audiences: Collection[int] | None) -> dict[str, int]:
        """Count the passages that hold each term and may be seen."""
        opened, searcher = self._ready()
        if searcher is None:
            return {}
        # A term's own count would include deleted documents that are not purged yet.
        queries = {term: self._seen(opened, _term(opened.schema, "text", term), audiences) for term in terms}
        return {term: _count(searcher, query) for term, query in queries.items()}

    @staticmethod
    def _seen(opened: "tantivy.Index", query: "tantivy.Query", audiences: Collection[int] | None) -> "tantivy.Query":
        if audiences is None:
            return query
        import tantivy

        must = tantivy.Occur.Must
        seen = tantivy.Query.term_set_query(opened.schema, "audience", list(audiences))
        return tantivy.Query.boolean_query([(must, tantivy.Query.const_score_query(seen, 0.0)), (must, query)])

    def _ready(self) -> "tuple[tantivy.Index, tantivy.Searcher | None]":
        if self._opened is None:
            raise CorruptError(f"the index {self.folder} does not exist; index again")
        return self._opened, self._searcher

    def _open(self, *, fresh: bool) -> "tantivy.Index | None":
        self._copy_once()
        if self._opened is None:
            import tantivy

            if not fresh and not tantivy.Index.exists(str(self.folder)):
                return None
            self._opened = tantivy.Index(_schema(), path=str(self.folder))
        return self._opened

    def _copy_once(self) -> None:
        if self._copied_from is not None:
            source, self._copied_from = self._copied_from, None
            self.folder = temporary_folder(self) / "words"
            try:
                shutil.copytree(source, self.folder, copy_function=shutil.copyfile)
            except OSError as error:
                raise StoreError(f"the words of the index {source} cannot be copied: {error}") from None

    def _writable(self, rebuild: bool) -> "tantivy.Index":
        try:
            self._copy_once()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                opened = self._open(fresh=True)
            except ValueError:
                # Another schema, or truncated files: discard them.
                if not rebuild:
                    raise
                shutil.rmtree(self.folder)
                self.folder.mkdir(mode=0o700)
                opened = self._open(fresh=True)
        except (ValueError, OSError) as error:
            raise StoreError(f"the words of the index {self.folder} cannot be opened: {error}") from error
        assert opened is not None
        return opened

    def _writer(self, opened: "tantivy.Index") -> "tantivy.IndexWriter":
        try:
            return opened.writer(HEAP, 1)
        except ValueError as error:
            if "lock" in str(error).lower():
                raise ConflictError("another process is updating the index; try again") from error
            raise StoreError(f"the words of the index {self.folder} cannot be written: {error}") from error


def _schema() -> "tantivy.Schema":
    import tantivy

    building = tantivy.SchemaBuilder()
    building.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    building.add_unsigned_field("passage", fast=True)
    building.add_unsigned_field("document", indexed=True)
    building.add_unsigned_field("audience", indexed=True)
    building.add_text_field("kind", tokenizer_name="raw", index_option="basic")
    building.add_text_field("marker", stored=True, tokenizer_name="raw", index_option="basic")
    return building.build()


def _document(passage: AddedPassage) -> "tantivy.Document":
    import tantivy

    document = tantivy.Document()
    document.add_text("text", " ".join(passage.terms))
    document.add_unsigned("passage", passage.passage)
    document.add_unsigned("document", passage.document)
    document.add_unsigned("audience", passage.audience)
    return document


def _count(searcher: "tantivy.Searcher", query: "tantivy.Query") -> int:
    # The stub of `SearchResult` lacks its count.
    return int(getattr(searcher.search(query, 1), "count", 0) or 0)


def _term(schema: "tantivy.Schema", field: str, value: str) -> "tantivy.Query":
    import tantivy

    return tantivy.Query.term_query(schema, field, value, "freq" if field == "text" else "basic")


LOOK_AGAIN = 0.05


@contextmanager
def file_lock(path: Path, wait: float, what: str) -> Generator[None]:
    """Lock a file between processes; the system releases the lock when the process ends. `what` names it in errors.

    Raises:
        ConflictError: another process held it for `wait` seconds.
        StoreError: its folder cannot be written.
        ConfigError: the system has no locks of files.
    """
    require_posix("an index of documents")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{what} cannot be written: {reason_of(error)}") from None
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


PATIENCE = 5.0
"""Seconds that a search waits for another process that updates the index; then it uses the index as it is."""
TEXTS_AT_ONCE = 2_000


class SqliteIndexBackend(IndexBackend):
    """One index: rows in SQLite, words in a folder of tantivy's."""

    def __init__(self, db: SqliteDatabase, folder: Path, seq: int, named: tuple[str, str], analyzer: Analyzer) -> None:
        super().__init__(db, seq, named, analyzer)
        self._folder = folder
        self._words = TantivyIndex(folder)
        self._words_state: State | None = None

    def close(self) -> None:
        """Close the tantivy index."""
        self._words.close()
        self._words_state = None

    def write_lock(self, wait: float) -> AbstractContextManager[None]:
        """Hold the lock of the only writer.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """
        return file_lock(self._folder.with_name(f"{self.seq}.lock"), wait, f"{self.name!r}")

    # --- writing ------------------------------------------------------------------------------------------------------

    def commit(self, batch: Batch) -> None:
        """Apply a batch, all or nothing."""
        with self._db.transaction():
            generation, stamp, now = self._state().generation + 1, secrets.token_bytes(8), self._db.clock()
            for document in batch.documents:
                self._put(document, generation, now)
            moved = [self._touch(path, known, generation) for path, known in batch.touched]
            for path in batch.gone:
                self._remove(path, generation)
            if not (batch.documents or batch.gone or any(moved)):
                return  # no searched data has changed: derived data stays unchanged
            self._db.run("INSERT INTO change VALUES(?, ?, ?)", self.seq, generation, stamp)
            self._db.run(
                "UPDATE doc_index SET generation = ?, stamp = ?, at_us = ? WHERE seq = ?",
                generation, stamp, now, self.seq,
            )  # fmt: skip

    def _put(self, document: Document, generation: int, now: int) -> None:
        known = document.known
        audience = self._audience_row(known.audience)
        self._db.run(
            """INSERT INTO document(doc_index, path, title, digest, size, modified_ns, reader, audience, access, problem,
                passages, characters, generation, at_us) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT(doc_index, path) DO UPDATE SET title = excluded.title, digest = excluded.digest,
                size = excluded.size, modified_ns = excluded.modified_ns, reader = excluded.reader,
                audience = excluded.audience, access = excluded.access, problem = excluded.problem, passages = excluded.passages,
                characters = excluded.characters, generation = excluded.generation, at_us = excluded.at_us""",
            self.seq, document.path, document.title, bytes.fromhex(known.digest), known.size, known.modified_ns,
            known.reader, audience, access_json(known), known.problem, len(document.chunks), sum(len(each.text) for each in document.chunks), generation, now,
        )  # fmt: skip
        seq = self._db.one("SELECT seq FROM document WHERE doc_index = ? AND path = ?", self.seq, document.path)
        self._db.run("DELETE FROM passage WHERE document = ?", seq)
        for chunk in document.chunks:
            self._db.run(
                "INSERT INTO passage(document, start, page, heading, text) VALUES(?, ?, ?, ?, ?)",
                seq, chunk.start, chunk.page, json.dumps(chunk.heading, ensure_ascii=False), chunk.text,
            )  # fmt: skip

    def _touch(self, path: str, known: FileFacts, generation: int) -> bool:
        """Update the facts of a file with unchanged text; return whether its audience, and thus the file, changed."""
        audience = self._audience_row(known.audience)
        select = "SELECT audience FROM document WHERE doc_index = ? AND path = ?"
        before: int | None = self._db.one(select, self.seq, path)
        self._db.run(
            """UPDATE document SET generation = CASE audience WHEN ? THEN generation ELSE ? END,
                audience = ?, size = ?, modified_ns = ?, at_us = ? WHERE doc_index = ? AND path = ?""",
            audience, generation, audience, known.size, known.modified_ns, self._db.clock(), self.seq, path,
        )  # fmt: skip
        return before != audience

    def _remove(self, path: str, generation: int) -> None:
        seq = self._db.one("SELECT seq FROM document WHERE doc_index = ? AND path = ?", self.seq, path)
        if seq is not None:
            self._db.run("INSERT INTO gone VALUES(?, ?, ?)", self.seq, seq, generation)
            self._db.run("DELETE FROM document WHERE seq = ?", seq)

    def update_derived(self) -> None:
        """Update the tantivy index.

        Raises:
            ConflictError: another process is doing so.
        """
        state = self._state()
        if state == self._words_state:
            return
        mark = self._words.mark()
        if mark is None or mark[:2] != state or mark.analyzer != self.analyzer.name:
            # The other process may just have done it.
            with self._db.transaction(write=False):
                state = self._state()
                since = self._since(mark)
                gone = self._gone_since(since) if since is not None else ()
                added = self._added_since(since or 0)
                self._words.change(IndexMark(*state, self.analyzer.name), gone, added, rebuild=since is None)
        self._words_state = state

    def _since(self, mark: IndexMark | None) -> int | None:
        """Return the transaction that the index has seen; None if it must be rebuilt."""
        if mark is None or mark.analyzer != self.analyzer.name:
            return None
        select = "SELECT stamp FROM change WHERE doc_index = ? AND generation = ?"
        stamp = self._db.one(select, self.seq, mark.generation)
        return mark.generation if stamp is not None and stamp.hex() == mark.stamp else None

    def _gone_since(self, generation: int) -> list[int]:
        """Return the documents that were deleted or changed after a transaction."""
        select = """
            SELECT document FROM gone WHERE doc_index = ? AND generation > ?
            UNION SELECT seq FROM document WHERE doc_index = ? AND generation > ?"""
        return [seq for (seq,) in self._db.rows(select, self.seq, generation, self.seq, generation)]

    def _added_since(self, generation: int) -> Iterator[AddedPassage]:
        """Yield the passages stored after a transaction, read page by page."""
        select = """
            SELECT passage.seq, document.seq, audience, title, heading, text
            FROM document JOIN passage ON passage.document = document.seq
            WHERE doc_index = ? AND generation > ? AND passage.seq > ? ORDER BY passage.seq LIMIT ?"""
        last = 0
        while rows := self._db.rows(select, self.seq, generation, last, TEXTS_AT_ONCE):
            for seq, document, audience, *texts in rows:
                yield AddedPassage(seq, document, audience, passage_terms(self.analyzer, *texts))
            last = rows[-1][0]

    # --- searching ----------------------------------------------------------------------------------------------------

    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first."""
        self._wait_for_words()
        wanted = depth = max(min(k, MOST), 0)
        visible = self._visible_audiences(principals)
        while depth:
            hits = self._words.search(weights, depth, visible)
            passages = self._visible_passages(hits, principals)
            # Fewer than the hits only if the words are older than the rows.
            if len(passages) >= wanted or len(hits) < depth or depth >= MOST:
                return passages[:wanted]
            depth = min(depth * 4, MOST)
        return ()

    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""
        self._wait_for_words()
        visible = self._visible_audiences(principals)
        select = "SELECT audience, sum(passages) FROM document WHERE doc_index = ? GROUP BY audience"
        rows = self._db.rows(select, self.seq)
        passages = sum(count for audience, count in rows if visible is None or audience in visible)
        holders = self._words.holders(dict.fromkeys(terms), visible) if passages else dict.fromkeys(terms, 0)
        return TermCounts(passages, holders)

    def _wait_for_words(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.update_derived()
                return
            except ConflictError:
                if time.monotonic() > deadline and self._words.mark() is not None:
                    return
                time.sleep(LOOK_AGAIN)

    def _visible_audiences(self, principals: Principals) -> frozenset[int] | None:
        """Return the audiences that include the principals; None when these are all."""
        cache: dict[Principals, frozenset[int] | None] = self._cache_of_state()
        if principals not in cache:
            audiences = self._audiences()
            visible = frozenset(seq for seq, audience in audiences.items() if may_see(audience, principals))
            cache[principals] = None if len(visible) == len(audiences) else visible
        return cache[principals]


class SqliteLibraryBackend(LibraryBackend[SqliteIndexBackend]):
    """Indexes in one SQLite file; the words of each are in a folder next to it."""

    def __init__(self, path: str | Path, *, readonly: bool = False, clock: Clock = now_us) -> None:
        if str(path) == MEMORY:
            raise InputError("a library must be a file, because its words are stored next to it; name a file")
        is_missing = readonly and not Path(path).expanduser().exists()
        self._file = SqliteDatabase(MEMORY if is_missing else path, LIBRARY, readonly=readonly, clock=clock)
        super().__init__(self._file)
        self._folder = temporary_folder(self) if self._file.path is None else self._file.path.with_suffix(".words")

    def __repr__(self) -> str:
        return f"SqliteLibraryBackend({str(self._file.path)!r})"

    def _open_backend(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> SqliteIndexBackend:
        return SqliteIndexBackend(self._file, self._folder / str(seq), seq, named, analyzer)

    def _begin(self, seq: int, stamp: bytes) -> None:
        self._db.run("INSERT INTO change VALUES(?, 0, ?)", seq, stamp)

    def _gone(self, backend: SqliteIndexBackend) -> None:
        shutil.rmtree(self._folder / str(backend.seq), ignore_errors=True)
