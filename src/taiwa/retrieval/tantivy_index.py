"""The lexical half of a SQLite index: a tantivy index that can be deleted and built again.

It contains terms and numbers, no text. A marker among its documents records which transaction of the tables it has seen; tantivy
commits both together, so the marker never claims more than is there.
"""

import os
import shutil
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, NamedTuple

from taiwa.kernel.errors import ConflictError, CorruptError, StoreError

if TYPE_CHECKING:
    import tantivy

HEAP = 64_000_000
"""Bytes that are collected before a segment is written."""
LAYOUT = "1"
"""Part of every marker: the version of the fields below."""


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


class ScoredPassage(NamedTuple):
    """A hit."""

    passage: int
    score: float


def temporary_folder(owner: object) -> Path:
    """Make a temporary folder that is removed with its owner.

    Raises:
        StoreError: no folder for temporary files can be written.
    """
    try:
        folder = Path(mkdtemp(prefix="taiwa-"))
    except OSError as error:
        raise StoreError(
            f"a temporary folder cannot be made: {(error.strerror or 'the system refuses').lower()}"
        ) from None
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return folder


class TantivyIndex:
    """The words of one index, in a folder of their own.

    Reading locks files too: a folder that cannot be written is copied to a temporary one.
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
            writer.delete_documents_by_term("kind", "marker")
            import tantivy

            marker = " ".join((LAYOUT, str(mark.generation), mark.stamp, mark.analyzer))
            writer.add_document(tantivy.Document(kind="marker", marker=marker))
            writer.commit()
            writer.wait_merging_threads()
        except ValueError as error:
            raise StoreError(f"the words of the index {self.folder} cannot be written: {error}") from error
        self.mark()

    def search(self, weights: Mapping[str, float], k: int, audiences: Collection[int] | None) -> list[ScoredPassage]:
        """Return the k best passages by BM25 (k1 1.2, b 0.75); `audiences` are those that may be seen, None is all."""
        opened, searcher = self._ready()
        if not weights or k < 1 or searcher is None:
            return []
        import tantivy

        schema, should = opened.schema, tantivy.Occur.Should
        term, boosted = tantivy.Query.term_query, tantivy.Query.boost_query
        parts = [
            (should, one if weight == 1.0 else boosted(one, weight))
            for one, weight in ((term(schema, "text", each, "freq"), weight) for each, weight in weights.items())
        ]
        query = self._seen(opened, tantivy.Query.boolean_query(parts), audiences)
        hits = searcher.search(query, k, count=False).hits
        numbers = searcher.fast_field_values("passage", [address for _, address in hits])
        return [
            ScoredPassage(int(number or 0), float(score or 0.0))
            for (score, _), number in zip(hits, numbers, strict=True)
        ]

    def holders(self, terms: Iterable[str], audiences: Collection[int] | None) -> dict[str, int]:
        """Count the passages that hold each term and may be seen."""
        opened, searcher = self._ready()
        if searcher is None:
            return {}
        # A term's own count would include what was deleted and not yet swept out.
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
                # Another schema, or files that were cut short: nothing in them is needed.
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
    # The stub of `SearchResult` leaves its count out.
    return int(getattr(searcher.search(query, 1), "count", 0) or 0)


def _term(schema: "tantivy.Schema", field: str, value: str) -> "tantivy.Query":
    import tantivy

    return tantivy.Query.term_query(schema, field, value, "freq" if field == "text" else "basic")
