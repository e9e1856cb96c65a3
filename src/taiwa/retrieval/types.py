"""Chunks of documents, their audiences, what is known of each file, and the protocols of a backend.

`Index` and `Library` are written over the two protocols; every backend passes `tests/retrieval/test_conformance.py`. What the
principals may not see is excluded before anything is ranked or counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Passage
from taiwa.kernel.records import value
from taiwa.retrieval.analyzer import Analyzer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Principals: TypeAlias = frozenset[str]
"""The names that a question is asked for: `frozenset({"user:ann", "group:hr"})`; empty for an unknown user."""
Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Who may see a document: of every group of names, one must be among the principals. Without groups it is public."""

PUBLIC: Audience = ()
ENOUGH = 20
"""The minimum number of questions of a check."""


def may_see(audience: Audience, principals: Iterable[str]) -> bool:
    """Report whether the principals may see a document with this audience.

    >>> may_see((("group:hr", "user:ann"),), {"user:ann"}), may_see((("group:hr",), ("user:ann",)), {"user:ann"})
    (True, False)
    """
    names = frozenset(principals)
    return all(not names.isdisjoint(clause) for clause in audience)


@value
class Chunk:
    """A part of a document: `text` stands in it from character `start` on; `page` counts from 1, 0 where there are no pages."""

    text: str
    start: int
    heading: tuple[str, ...] = ()
    page: int = 0


@value
class FileFacts:
    """What an index knows of a file, enough to detect a change.

    `digest` is the SHA-256 of its bytes, `reader` the name and version of its reader, `problem` why it could not be
    read, or ""; `at_us` the time of that. `access` is its own access list, `audience` the result of that and of the rules of
    its folder.
    """

    digest: str
    size: int
    modified_ns: int
    reader: str
    audience: Audience = PUBLIC
    problem: str = ""
    at_us: int = 0
    access: tuple[str, ...] | None = None


@value
class Document:
    """A file: its path below the folder, with `/`, its title, its facts, and its chunks."""

    path: str
    title: str
    known: FileFacts
    chunks: tuple[Chunk, ...] = ()


@value
class Batch:
    """The changes of one transaction: new or changed documents, new facts of files with the same text, deleted files."""

    documents: tuple[Document, ...] = ()
    touched: tuple[tuple[str, FileFacts], ...] = ()
    gone: tuple[str, ...] = ()


@value
class DocumentListing:
    """A document in a listing."""

    path: str
    title: str
    known: FileFacts
    passages: int
    characters: int
    versions: int


@value
class IndexSummary:
    """An index in a listing, restricted to what the principals may see."""

    name: str
    root: str
    analyzer: str
    documents: int
    passages: int
    characters: int
    problems: int
    at_us: int


@value
class TermCounts:
    """Counts over the passages that the principals may see: all of them, and the holders of each term."""

    passages: int
    holders: Mapping[str, int]


@value(tag="passage-feedback")
class PassageFeedback:
    """A user's judgement of a passage that was found for a query."""

    query: str
    passage: str
    good: bool
    user: str = ""
    at_us: int = 0


@value
class Gain:
    """What fusion changes in nDCG@10; `low` and `high` are a 95 % interval (paired bootstrap).

    `of` is the source of the questions: `people`, or `sentences` of the documents themselves.
    """

    questions: int
    words: float
    fused: float
    low: float
    high: float
    of: str = "people"

    @property
    def helps(self) -> bool:
        """Whether the gain is significant."""
        return self.questions >= ENOUGH and self.low > 0


@value
class EmbedderChoice:
    """The embedder of an index.

    `place` is the location that the user gave, `model` its permanent name, and `probe` the vector of a fixed sentence where
    nothing else distinguishes models; `always` fuses regardless of any check.
    """

    place: str
    model: str
    probe: tuple[float, ...] = ()
    always: bool = False


Vector: TypeAlias = "NDArray[np.float32]"
"""A vector of length 1."""


class IndexBackend(Protocol):
    """The storage of one index."""

    @property
    def name(self) -> str:
        """The name of the index."""
        ...

    @property
    def root(self) -> str:
        """The folder of its documents; empty where documents come from elsewhere."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer of its texts and of queries."""
        ...

    def known(self) -> Mapping[str, FileFacts]:
        """Return what is known of every file, by path."""
        ...

    def write_lock(self, wait: float) -> AbstractContextManager[None]:
        """Hold the lock of the only writer, until the context or the process ends.

        Raises:
            ConflictError: another process held it for `wait` seconds.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Apply a batch, all or nothing. From then on deleted or restricted passages are not found."""
        ...

    def update_derived(self) -> None:
        """Update derived data, which the next search would otherwise have to wait for."""
        ...

    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that contain any of the terms, best first by BM25 weighted per term.

        Every score is above zero.
        """
        ...

    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""
        ...

    def passage(self, id: str, principals: Principals) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if that version still exists and the principals may see it.

        Ids are unique within a library.
        """
        ...

    def documents(self, principals: Principals | None) -> tuple[DocumentListing, ...]:
        """List documents by path; None stands for the owner of the index, who may see all."""
        ...

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document in order, for the owner of the index."""
        ...

    def summary(self, principals: Principals | None) -> IndexSummary:
        """Summarize what the principals may see of the index."""
        ...

    def add_feedback(self, feedback: PassageFeedback) -> None:
        """Store a user's judgement of a passage."""
        ...

    def feedback(self) -> tuple[PassageFeedback, ...]:
        """Return all feedback, oldest first."""
        ...

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        ...

    def put_vectors(self, model: str, vectors: "Sequence[tuple[str, Vector]]") -> None:
        """Store the vectors of passages, by their ids; deleted passages are skipped."""
        ...

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        ...

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        ...

    def nearest(self, model: str, vector: "Vector", k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages with the nearest vectors, best first; the score is the cosine."""
        ...

    def store_gain(self, model: str, gain: Gain) -> None:
        """Store the result of a check of a model."""
        ...

    def gain(self, model: str) -> Gain | None:
        """Return the result of the last check of a model."""
        ...

    def embedder_choice(self) -> EmbedderChoice | None:
        """Return the embedder of the index, or None."""
        ...

    def set_embedder(self, meaning: EmbedderChoice | None) -> None:
        """Set the embedder of the index; None searches by words alone."""
        ...


class LibraryBackend(Protocol):
    """The storage of indexes by name."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all indexes, sorted."""
        ...

    def open(self, name: str) -> IndexBackend:
        """Return an index.

        Raises:
            InputError: no index has that name.
        """
        ...

    def create(self, name: str, root: str, analyzer: Analyzer) -> IndexBackend:
        """Return a new, empty index.

        Raises:
            ConflictError: an index of that name exists.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete an index with its content.

        Raises:
            InputError: no index has that name.
        """
        ...

    def close(self) -> None:
        """Close the library."""
        ...


@value(tag="heading")
class Heading:
    """A heading: where its section begins in the text, its level (1 is outermost), and its words."""

    start: int
    level: int
    words: str


@value(tag="parsed-document")
class ParsedDocument:
    """The text of a document, its title, its headings in order, and where each page begins.

    `access` is its own access list, None without one.
    """

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    access: tuple[str, ...] | None = None


class UnreadableError(InputError):
    """A file that cannot be read; the message is short enough for a row of a report."""

    tag = "unreadable"


def lines_of(text: str) -> list[int]:
    """Return where each line begins, and where the text ends."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts
