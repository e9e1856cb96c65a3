"""Chunks of documents, principals may see them, what is known of each file, and the protocols of a backend.

`Index` and `Library` are written over the two protocols; every backend passes `tests/retrieval/test_conformance.py`. What the
principals may not see is excluded before anything is ranked or counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value
from taiwa.kernel.values import Passage
from taiwa.retrieval.analyzer import Analyzer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ENOUGH",
    "PUBLIC",
    "Audience",
    "Batch",
    "Chunk",
    "Document",
    "DocumentListing",
    "EmbedderChoice",
    "FileFacts",
    "Gain",
    "Heading",
    "IndexBackend",
    "IndexSummary",
    "LibraryBackend",
    "ParsedDocument",
    "PassageFeedback",
    "Principals",
    "TermCounts",
    "UnreadableError",
    "Vector",
    "lines_of",
    "may_see",
]

Principals: TypeAlias = frozenset[str]
"""Whom a question is asked for: `frozenset({"user:ann", "group:hr"})`; empty is somebody unknown."""
Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Principals may see a document: of every group of names, one must be among the names of principals asks. No group: everybody."""

PUBLIC: Audience = ()
ENOUGH = 20
"""Questions that a check needs at least."""


def may_see(audience: Audience, principals: Iterable[str]) -> bool:
    """Say whether somebody with these names may see what has this audience.

    >>> may_see((("group:hr", "user:ann"),), {"user:ann"}), may_see((("group:hr",), ("user:ann",)), {"user:ann"})
    (True, False)
    """
    names = frozenset(principals)
    return all(not names.isdisjoint(clause) for clause in audience)


@value
class Chunk:
    """What a document is cut into: `text` is the document's from `start` on; `page` counts from 1, 0 is no page."""

    text: str
    start: int
    heading: tuple[str, ...] = ()
    page: int = 0


@value
class FileFacts:
    """What an index knows of a file: enough to see that it changed.

    `digest` is the SHA-256 of its bytes, `reader` the name and version of what read it, `problem` why it could not be
    read, or nothing; `at_us` when that was. `access` is what it says itself of principals may see it, `audience` what that and
    the rules of its folder come to.
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
    """A file that was read: its path below the folder, with `/`, its title, what is known of it, and its chunks."""

    path: str
    title: str
    known: FileFacts
    chunks: tuple[Chunk, ...] = ()


@value
class Batch:
    """What one transaction does: documents new or changed, facts of files whose text is the same, files that are gone."""

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
    """An index in a listing, as far as somebody may see it."""

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
    """Facts of the passages that somebody may see: how many there are, and how many hold each of some terms."""

    passages: int
    holders: Mapping[str, int]


@value
class PassageFeedback:
    """What a person said of a passage that was found for a query."""

    query: str
    passage: str
    good: bool
    user: str = ""
    at_us: int = 0


@value
class Gain:
    """What fusing changes, in nDCG@10 over so many questions; `low` and `high` hold 95 of 100 draws (paired bootstrap).

    `of` says whose questions they were: `people`, or `sentences` of the documents themselves.
    """

    questions: int
    words: float
    fused: float
    low: float
    high: float
    of: str = "people"

    @property
    def helps(self) -> bool:
        """Whether a gain is beyond chance."""
        return self.questions >= ENOUGH and self.low > 0


@value
class EmbedderChoice:
    """By which embedder an index is asked by meaning too.

    `place` is where a person said it is, `model` its name for good, and `probe` the vector of a fixed sentence where nothing
    else tells one model from another; `always` fuses whatever a check has found.
    """

    place: str
    model: str
    probe: tuple[float, ...] = ()
    always: bool = False


Vector: TypeAlias = "NDArray[np.float32]"
"""A vector of length 1."""


class IndexBackend(Protocol):
    """Where one index is kept."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def root(self) -> str:
        """The folder that it is made from; empty where documents come from elsewhere."""
        ...

    @property
    def analyzer(self) -> Analyzer:
        """What turns its texts, and the questions to it, into terms."""
        ...

    def known(self) -> Mapping[str, FileFacts]:
        """Return what is known of every file, by path."""
        ...

    def writing(self, wait: float) -> AbstractContextManager[None]:
        """Be the only one principals indexes, until the context ends or the process dies.

        Raises:
            ConflictError: another process indexes here and did not end within `wait` seconds.
        """
        ...

    def commit(self, batch: Batch) -> None:
        """Do what a batch says, all or nothing. From then on nobody finds what is gone or was closed to them."""
        ...

    def settle(self) -> None:
        """Make everything committed quick to find; whoever asks first would otherwise wait for it."""
        ...

    def search(self, weights: Mapping[str, float], k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages that hold any of the terms, best first by BM25 with each term's weight.

        Every score is above zero.
        """
        ...

    def counts(self, terms: Sequence[str], principals: Principals) -> TermCounts:
        """Count passages and the holders of terms."""
        ...

    def passage(self, id: str, principals: Principals) -> Passage | None:  # noqa: A002  (the field of a passage)
        """Return the passage of an id, if it is still there, in that version, and may be seen.

        No two passages of one place have one id, in whatever indexes they are.
        """
        ...

    def documents(self, principals: Principals | None) -> tuple[DocumentListing, ...]:
        """List documents by path; None is the keeper of the index, principals may see all."""
        ...

    def passages(self, path: str) -> tuple[Passage, ...]:
        """Return all passages of a document, in its order, for the keeper of the index."""
        ...

    def summary(self, principals: Principals | None) -> IndexSummary:
        """Describe the index as far as somebody may see it."""
        ...

    def tell(self, feedback: PassageFeedback) -> None:
        """Keep what a person said of a passage."""
        ...

    def told(self) -> tuple[PassageFeedback, ...]:
        """Return all feedback, oldest first."""
        ...

    def without_vectors(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return at most k passages that have no vector of a model yet."""
        ...

    def put_vectors(self, model: str, vectors: "Sequence[tuple[str, Vector]]") -> None:
        """Keep the vectors of passages, by their ids; a passage that is gone meanwhile is passed over."""
        ...

    def vectors(self, model: str) -> int:
        """Count the passages that have a vector of a model."""
        ...

    def keep_vectors(self, model: str) -> None:
        """Delete the vectors of every other model."""
        ...

    def nearest(self, model: str, vector: "Vector", k: int, principals: Principals) -> tuple[Passage, ...]:
        """Return at most k passages whose vectors are nearest, best first, the score being the cosine."""
        ...

    def judge(self, model: str, gain: Gain) -> None:
        """Keep what a check of a model found."""
        ...

    def gain(self, model: str) -> Gain | None:
        """Return what the last check of a model found."""
        ...

    def meaning(self) -> EmbedderChoice | None:
        """Return by which embedder the index is asked by meaning too."""
        ...

    def choose(self, meaning: EmbedderChoice | None) -> None:
        """Ask by this embedder from now on, or by words alone."""
        ...


class LibraryBackend(Protocol):
    """A place that keeps indexes by name."""

    def names(self) -> tuple[str, ...]:
        """Name every index, in the order of the alphabet."""
        ...

    def open(self, name: str) -> IndexBackend:
        """Return an index.

        Raises:
            InputError: there is none of that name.
        """
        ...

    def create(self, name: str, root: str, analyzer: Analyzer) -> IndexBackend:
        """Return a new, empty index.

        Raises:
            ConflictError: there is one of that name.
        """
        ...

    def drop(self, name: str) -> None:
        """Delete an index and all that it holds.

        Raises:
            InputError: there is none of that name.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


@value
class Heading:
    """A heading: where its section begins in the text, how deep it is (1 is outermost), and its words."""

    start: int
    level: int
    words: str


@value
class ParsedDocument:
    """The text of a document, its title, its headings in order, and where each page begins; no pages, no numbers.

    `access` is what the document itself says of principals may see it; None where it says nothing.
    """

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    access: tuple[str, ...] | None = None


class UnreadableError(InputError):
    """A file that cannot be read; the message says why, in a few words for a row of a report."""


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
