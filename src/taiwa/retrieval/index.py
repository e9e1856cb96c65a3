"""Indexes and libraries as a program uses them: search, filters, dialogue-weighted queries, evidence, rank fusion, and a retriever
in memory.
"""

import math
import operator
import re
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import pstdev
from typing import Any, NamedTuple, TypeAlias

from taiwa.kernel.attachments import path_kind, real_path
from taiwa.kernel.errors import ConfigError, ConflictError, InputError, StoreError
from taiwa.kernel.messages import Evidence, Found, Message, Passage, reciprocal_ranks
from taiwa.kernel.serialization import Json, is_number
from taiwa.kernel.text import terms
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.backend import IndexBackend, LibraryBackend
from taiwa.retrieval.ingest import Progress, RefreshReport, RuleListing, list_rules, refresh
from taiwa.retrieval.types import DocumentListing, IndexSummary, Principals, TermCounts
from taiwa.sql import PostgresUrl, is_postgres_url


class InMemoryRetriever:
    """A retriever over the given passages.

    The score is the fraction of the query that a passage contains, 0 to 1, weighted by inverse document frequency. Of two
    passages with the same score, the shorter comes first.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple((passage, frozenset(terms(passage.text))) for passage in passages)
        self._holders = Counter(term for _, own in self._passages for term in own)

    def __repr__(self) -> str:
        return f"InMemoryRetriever({len(self._passages)} passages)"

    def find(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the query, best first."""
        weights = {term: math.log1p(len(self._passages) / (1 + self._holders[term])) for term in terms(query)}
        whole = math.fsum(weights.values())
        hits: list[tuple[float, int, Passage]] = []
        for passage, own in self._passages:
            if shared := math.fsum(weight for term, weight in weights.items() if term in own):
                hits.append((-shared / whole, len(own), replace(passage, score=shared / whole)))
        hits.sort(key=lambda hit: hit[:2])
        return tuple(passage for _, _, passage in hits[: max(k, 0)])


CATCH_UP_SECONDS = 1.0
"""How long a search waits for the writer lock of an index whose folder has changed."""
FUSION_DEPTH = 50
"""Number of passages of each ranking to fuse."""


LOOKED_AT = 10
COVERING = 5
SATURATION = 2.2
"""The maximum factor of a term's frequency in BM25 with k1 = 1.2."""


HIRAGANA = re.compile("[\u3041-\u309f]")


def judge(
    analyzer: Analyzer,
    weights: Mapping[str, float],
    passages: Sequence[Passage],
    counts: TermCounts,
    points: tuple[str, ...] = (),
) -> Evidence:
    """Measure the evidence on a weighted question in the best passages.

    An unknown pair of characters with hiragana does not count for the coverage: it is the end of one word and the beginning of another.
    """
    rare = {term: weight * _idf(counts, term) for term, weight in weights.items()}
    mass = math.fsum(rare.values())
    unknown = tuple(term for term in weights if not counts.holders.get(term))
    if not passages or mass <= 0:
        return Evidence(counts.passages, len(passages), unknown=unknown, unresolved_references=points)
    ideal = SATURATION * mass
    texts = ("\n".join((each.title, *each.heading, "", each.text)) for each in passages[:COVERING])
    covered = [frozenset(analyzer.terms(text)) for text in texts]
    words = math.fsum(weight for term, weight in rare.items() if term not in unknown or not HIRAGANA.search(term))
    coverage = max(math.fsum(rare[term] for term in rare if term in terms) for terms in covered) / (words or mass)
    scores = [passage.score for passage in passages[:LOOKED_AT]]
    top, spread = min(scores[0] / ideal, 1.0), min(pstdev(scores) / ideal, 1.0)
    return Evidence(counts.passages, len(passages), min(coverage, 1.0), top, spread, unknown, points)


def _idf(counts: TermCounts, term: str) -> float:
    holders = counts.holders.get(term, 0)
    return math.log1p((counts.passages - holders + 0.5) / (holders + 0.5))


NO_PRINCIPALS: Principals = frozenset()
"""An unknown user, who sees public documents."""
LONGEST_NAME = 100
MAX_NAMES = 1_000
Fits: TypeAlias = Callable[[str, str], bool]
"""Whether a document, given by its index and its path, is to be searched."""
FILTERED_DEPTH = 10_000
"""The number of best passages among which matching documents are searched."""


class NearPassages(NamedTuple):
    """Passages by semantic similarity, and the name of the embedding model."""

    model: str
    passages: tuple[Passage, ...]


class Index:
    """One index: a retriever over the passages of a folder's documents.

    `trouble` is why the last search used words alone although the index has an embedder.
    """

    trouble: str = ""

    def __init__(self, backend: IndexBackend) -> None:
        self.backend = backend
        self.name, self.root, self.analyzer = backend.name, backend.root, backend.analyzer
        """The name of the index, its folder, and the analyzer of texts and questions."""

    def __repr__(self) -> str:
        return f"Index({self.name!r})"

    def find(
        self, query: str, k: int = 5, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that `principals` may see, best first.

        Passages share a term with the question, or are similar in meaning if embeddings are used. Earlier turns of a
        dialogue count too, with decreasing weight.
        """
        near = self.near(query, max(FUSION_DEPTH, k), principals, history) if k > 0 else None
        if near is None:
            return self.by_words(query, k, principals, history)
        return reciprocal_ranks((self.by_words(query, max(FUSION_DEPTH, k), principals, history), near.passages), k)

    def by_words(
        self, query: str, k: int = 5, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> tuple[Passage, ...]:
        """Return at most k passages that share a term with the question, without embeddings."""
        return self.backend.search(self.analyzer.weigh(query, history), k, frozenset(principals))

    def near(
        self, query: str, k: int, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> "NearPassages | None":
        """Return passages that are similar to the question in meaning; None if only words are used."""
        del query, k, principals, history
        return None

    def evidence(
        self, query: str, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> Evidence:
        """Measure the evidence on a question."""
        return self.measured(query, LOOKED_AT, frozenset(principals), history)[1]

    def measured(
        self, query: str, k: int, principals: Principals, history: Sequence[Message], fits: Fits | None = None
    ) -> tuple[tuple[Passage, ...], Evidence]:
        """Return at most k passages of matching documents that share a term with the question, and the evidence on it in them."""
        references = self.analyzer.unresolved_references(query, history)
        weights = self.analyzer.weigh(query, history)
        counts = self.backend.counts(tuple(weights), principals)
        found = self.backend.search(weights, max(k, LOOKED_AT), principals)
        if fits is not None:
            found = tuple(each for each in found if fits(self.name, each.source))
        return found[: max(k, 0)], judge(self.analyzer, weights, found[:LOOKED_AT], counts, references)

    def passage(self, id: str, principals: Iterable[str] = NO_PRINCIPALS) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, if that version still exists and `principals` may see it."""
        return self.backend.passage(id, frozenset(principals))

    def refresh(self, wait: float = 0.0, progress: Progress | None = None) -> RefreshReport:
        """Read what changed in the folder.

        Raises:
            ConflictError: another process held the writer lock for `wait` seconds.
            InputError: the folder does not exist, or the index has none.
            ConfigError: the access rules are invalid.
        """
        return refresh(self.backend, wait, progress)

    def catch_up(self, progress: Progress | None = None) -> str:
        """Read changes in the folder before a search; return why the index could not be updated, or "".

        Raises:
            ConfigError: the access rules are invalid, and the index cannot be closed because it cannot be written.
        """
        if not self.root:
            return ""
        try:
            self.refresh(CATCH_UP_SECONDS, progress)
        except ConflictError:
            why = "another process is indexing its folder"
        except ConfigError as error:
            return f"{self.name}: closed to everyone until its access rules can be read: {error.message}"
        except (InputError, StoreError) as error:
            if isinstance(error, StoreError) and Path(self.root).exists():
                # An index that cannot be written cannot be closed either, so invalid rules must end the search.
                list_rules(self.root)
            why = error.message
        else:
            return ""
        return f"{self.name}: searched as it was indexed before, since {why}"

    def rules(self) -> tuple[RuleListing, ...]:
        """List the current access rules of the folder; none without a folder.

        Raises:
            ConfigError: the access rules are invalid.
            InputError: the folder does not exist.
        """
        return list_rules(self.root) if self.root else ()

    def documents(self, principals: Iterable[str] | None = NO_PRINCIPALS) -> tuple[DocumentListing, ...]:
        """List documents by path; None stands for the owner of the index, who may see all."""
        return self.backend.documents(None if principals is None else frozenset(principals))

    def summary(self, principals: Iterable[str] | None = NO_PRINCIPALS) -> IndexSummary:
        """Summarize what the principals may see of the index."""
        return self.backend.summary(None if principals is None else frozenset(principals))


class ScopedRetriever:
    """A retriever over several indexes, with fixed principals and history; `fits` restricts their documents."""

    def __init__(
        self,
        indexes: Iterable[Index],
        principals: Iterable[str] = NO_PRINCIPALS,
        history: Sequence[Message] = (),
        fits: Fits | None = None,
    ) -> None:
        self.indexes = tuple(indexes)
        self.principals = frozenset(principals)
        self.history = tuple(history)
        self.fits = fits

    def after(self, history: Sequence[Message]) -> "ScopedRetriever":
        """Return the same retriever with another history."""
        return ScopedRetriever(self.indexes, self.principals, history, self.fits)

    def find(self, query: str, k: int = 5) -> tuple[Passage, ...]:
        """Return at most k passages, best first. The source of a passage names its index if there are several."""
        return self.find_with_evidence(query, k).passages

    def find_with_evidence(self, query: str, k: int = 5) -> Found:
        """As `find`, with the evidence on the question; that of the index with the most evidence counts.

        Passages without vectors keep their full-text rank in the vector ranking, so they gain and lose nothing.
        """
        depth = max(k, FUSION_DEPTH if self.fits is None else FILTERED_DEPTH)
        near = [index.near(query, depth, self.principals, self.history) if k > 0 else None for index in self.indexes]
        # Ranks are fused, or documents left out, only after this, so more than k must be found before.
        deep = k if self.fits is None and all(each is None for each in near) else depth
        words: list[tuple[Passage, bool]] = []
        by_model: dict[str, list[Passage]] = {}
        measured: list[Evidence] = []
        for index, by_meaning in zip(self.indexes, near, strict=True):
            found, evidence = index.measured(query, deep, self.principals, self.history, self.fits)
            measured.append(evidence)
            words += ((each, by_meaning is None) for each in self._named(index, found))
            if by_meaning is not None:
                fits = self.fits
                close = [each for each in by_meaning.passages if fits is None or fits(index.name, each.source)]
                by_model.setdefault(by_meaning.model, []).extend(self._named(index, close))
        words.sort(key=lambda each: -each[0].score)
        most = max(measured, key=lambda each: (each.top, each.coverage), default=Evidence())
        if not by_model:
            return Found(tuple(passage for passage, _ in words[: max(k, 0)]), most)
        meanings = [sorted(passages, key=lambda passage: -passage.score) for passages in by_model.values()]
        alone = [passage if wordy else None for passage, wordy in words]
        return Found(reciprocal_ranks(([passage for passage, _ in words], alone, *meanings), k), most)

    @property
    def troubles(self) -> tuple[str, ...]:
        """Why the last search used only words although the index has an embedder."""
        return tuple(dict.fromkeys(index.trouble for index in self.indexes if index.trouble))

    def _named(self, index: Index, passages: Iterable[Passage]) -> Iterable[Passage]:
        if len(self.indexes) == 1:
            return passages
        return (replace(each, source=f"{index.name}/{each.source}") for each in passages)

    def passage(self, id: str) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return a passage by its id, from whichever index has it."""
        passages = (index.passage(id, self.principals) for index in self.indexes)
        return next((passage for passage in passages if passage is not None), None)


class Library:
    """All indexes of a library."""

    def __init__(self, backend: LibraryBackend[Any]) -> None:
        self._backend = backend

    @classmethod
    def open(cls, place: str | Path | PostgresUrl, *, readonly: bool = False) -> "Library":
        """Open the library of a file, created on first use, or of a PostgreSQL server.

        With `readonly` nothing is written, and the location may be read-only; a missing file is an empty library.

        Raises:
            InputError: the URL of the server is invalid.
        """
        if isinstance(place, PostgresUrl) or is_postgres_url(place):
            from taiwa.retrieval.postgres import PostgresLibraryBackend

            return cls(PostgresLibraryBackend(_server(place), readonly=readonly))
        from taiwa.retrieval.sqlite import SqliteLibraryBackend

        return cls(SqliteLibraryBackend(place, readonly=readonly))

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the library."""
        self._backend.close()

    def names(self, owner: str | None = "") -> tuple[str, ...]:
        """Return the names of an owner's indexes: "" is the command line, callers of a server have their own; None is all."""
        return self._backend.names(owner)

    def index(self, name: str) -> Index:
        """Return an index.

        Raises:
            InputError: no index has that name.
        """
        return Index(self._backend.open(name))

    def find_by_folder(self, folder: str | Path) -> Index | None:
        """Return the index of a folder, if there is one."""
        root = str(real_path(folder))
        return next((index for index in map(self.index, self.names(None)) if index.root == root), None)

    def create(self, folder: str | Path, name: str = "", language: str = "english", owner: str = "") -> Index:
        """Return a new, empty index of a folder or a file; `refresh` fills it. Words are stemmed for the language.

        Raises:
            InputError: the folder does not exist, or the name is invalid.
            ConflictError: an index of that name exists.
        """
        root = real_path(folder)
        if not path_kind(root):
            raise InputError(f"folder {folder} not found")
        return self.create_empty(_checked(name or root.name or "root"), str(root), language, owner)

    def of_folder(self, folder: str | Path, language: str = "english") -> Index:
        """Return the index of a folder or a file; a new, empty one under a free name if it has none.

        Raises:
            InputError: the folder does not exist.
            ConflictError: `MAX_NAMES` indexes have its name.
        """
        known, taken = self.find_by_folder(folder), self.names(None)
        base = real_path(folder).name or "root"
        for free in (base, *(f"{base}-{number}" for number in range(2, MAX_NAMES))):
            if known is not None:
                return known
            if free not in taken:
                with suppress(ConflictError):
                    return self.create(folder, free, language)
                known = self.find_by_folder(folder)  # another process took the name first, perhaps for this folder
        raise ConflictError(f"{MAX_NAMES} indexes are named like {base!r}; choose another name")

    def create_empty(self, name: str, root: str = "", language: str = "english", owner: str = "") -> Index:
        """Return a new index without a folder, whose documents come from elsewhere.

        Raises:
            ConflictError: an index of that name exists.
        """
        return Index(self._backend.create(_checked(name), root, Analyzer(language), owner))

    def drop(self, name: str) -> None:
        """Delete an index; the documents themselves stay unchanged.

        Raises:
            InputError: no index has that name.
        """
        self._backend.drop(name)

    def scoped(
        self, names: Iterable[str] = (), principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> ScopedRetriever:
        """Return the retriever over some indexes, or over all."""
        return ScopedRetriever([self.index(name) for name in (tuple(names) or self.names())], principals, history)


def _checked(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable() or "/" in name:
        form = f"one line of at most {LONGEST_NAME} characters, without `/`"
        raise InputError(f"an index cannot be called {name!r}: {form}")
    return name.strip()


def _server(place: object) -> PostgresUrl:
    try:
        return place if isinstance(place, PostgresUrl) else PostgresUrl.parse(str(place))
    except ValueError as error:
        raise InputError(f"the library {error}") from None


@dataclass(frozen=True, slots=True)
class IndexScope:
    """The indexes of one caller.

    - `owner`: the owner of its own indexes; "" is the command line.
    - `served`: names of further indexes; None stands for all of the command line, for its owner only.
    - `uploads`: the folder of uploaded documents. `principals`: for whom documents are searched, in addition to those that
      an app names.
    """

    owner: str = ""
    served: tuple[str, ...] | None = None
    uploads: str = ""
    principals: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether this is the scope of the command line."""
        return not self.owner and self.served is None

    def names(self, library: Library) -> tuple[str, ...]:
        """Return the names of the indexes."""
        own = library.names(self.owner)
        if self.served is None:
            return own
        there = set(library.names(None))
        uploaded = (name for name in own if self.has_uploads(library.index(name).root))
        return tuple(dict.fromkeys([*(name for name in self.served if name in there), *uploaded]))

    def has_uploads(self, root: str) -> bool:
        """Whether a folder contains uploaded documents."""
        return bool(self.uploads and root) and Path(root).is_relative_to(self.uploads)


# --- filters ----------------------------------------------------------------------------------------------------------
# The ids and attributes of documents on the server, and filters over attributes: comparisons, `and` and `or`.

UPLOADED = re.compile(r"[^/]*/(file-[0-9a-f]{24})/(.*)", re.DOTALL)
"""The index, the id and the name of a file that was attached to a vector store."""


def file_of(source: str, index: str) -> tuple[str, str]:
    """Return the id of a document and its path; if `index` is empty, the source begins with the name of its index.

    A file uploaded separately is in a folder named after its id, which it keeps.

    >>> file_of("guide.md", "shop"), file_of("shop/guide.md", "")
    (('file-c2hvcC9ndWlkZS5tZA', 'guide.md'), ('file-c2hvcC9ndWlkZS5tZA', 'guide.md'))
    """
    whole = f"{index}/{source}" if index else source
    if found := UPLOADED.match(whole):
        return found[1], found[2]
    return f"file-{urlsafe_b64encode(whole.encode()).decode().rstrip('=')}", whole.partition("/")[2]


ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
COMPARISONS = ("eq", "ne", *ORDERS, "in", "nin")


def fits(filters: Json, attributes: Mapping[str, Json]) -> bool:
    """Return whether attributes match a filter; texts and numbers are not comparable with each other.

    >>> fits({"type": "gte", "key": "year", "value": 2024}, {"year": 2025})
    True
    >>> fits({"type": "and", "filters": [{"type": "ne", "key": "draft", "value": True}]}, {"draft": 1})
    True
    """
    if not isinstance(filters, dict):
        return False
    kind, inner, wanted = filters.get("type"), filters.get("filters"), filters.get("value")
    if kind in ("and", "or") and isinstance(inner, list):
        return (all if kind == "and" else any)(fits(each, attributes) for each in inner)
    found = attributes.get(str(filters.get("key")))
    if kind in ("eq", "ne"):
        return _same(found, wanted) == (kind == "eq")
    if kind in ("in", "nin"):
        return any(_same(found, each) for each in (wanted if isinstance(wanted, list) else ())) == (kind == "in")
    alike = (is_number(found) and is_number(wanted)) or (isinstance(found, str) and isinstance(wanted, str))
    return alike and kind in ORDERS and ORDERS[str(kind)](found, wanted)


def _same(one: Json, other: Json) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def documents_that_fit(
    filters: Json, attributes: Callable[[str], Mapping[str, Mapping[str, Json]]]
) -> Callable[[str, str], bool]:
    """Return a test of whether a document (index, path) matches; `attributes` are those of an index, by document id."""
    known = cache(attributes)

    @cache  # a document has many passages
    def fits_document(index: str, path: str) -> bool:
        return fits(filters, known(index).get(file_of(path, index)[0], {}))

    return fits_document
