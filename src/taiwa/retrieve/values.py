"""What an index is made of: pieces of documents, who may see them, and what became of each file."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from taiwa.kernel.records import value

__all__ = [
    "ENOUGH",
    "EVERYBODY",
    "Audience",
    "Batch",
    "Counts",
    "Document",
    "Feedback",
    "Gain",
    "Known",
    "Listed",
    "Meaning",
    "Piece",
    "Summary",
    "Who",
    "may_see",
]

Who: TypeAlias = frozenset[str]
"""Whom a question is asked for: `frozenset({"user:ann", "group:hr"})`; empty is somebody unknown."""
Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Who may see a document: of every group of names, one must be among the names of who asks. No group: everybody."""

EVERYBODY: Audience = ()
ENOUGH = 20
"""Questions that a check needs at least."""


def may_see(audience: Audience, who: Iterable[str]) -> bool:
    """Say whether somebody with these names may see what has this audience.

    >>> may_see((("group:hr", "user:ann"),), {"user:ann"}), may_see((("group:hr",), ("user:ann",)), {"user:ann"})
    (True, False)
    """
    names = frozenset(who)
    return all(not names.isdisjoint(clause) for clause in audience)


@value
class Piece:
    """What a document is cut into: `text` is the document's from `start` on; `page` counts from 1, 0 is no page."""

    text: str
    start: int
    heading: tuple[str, ...] = ()
    page: int = 0


@value
class Known:
    """What an index knows of a file: enough to see that it changed.

    `digest` is the SHA-256 of its bytes, `reader` the name and version of what read it, `problem` why it could not be
    read, or nothing; `at_us` when that was. `access` is what it says itself of who may see it, `audience` what that and
    the rules of its folder come to.
    """

    digest: str
    size: int
    modified_ns: int
    reader: str
    audience: Audience = EVERYBODY
    problem: str = ""
    at_us: int = 0
    access: tuple[str, ...] | None = None


@value
class Document:
    """A file that was read: its path below the folder, with `/`, its title, what is known of it, and its pieces."""

    path: str
    title: str
    known: Known
    pieces: tuple[Piece, ...] = ()


@value
class Batch:
    """What one transaction does: documents new or changed, facts of files whose text is the same, files that are gone."""

    documents: tuple[Document, ...] = ()
    touched: tuple[tuple[str, Known], ...] = ()
    gone: tuple[str, ...] = ()


@value
class Listed:
    """A document in a listing."""

    path: str
    title: str
    known: Known
    passages: int
    characters: int
    versions: int


@value
class Summary:
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
class Counts:
    """Facts of the passages that somebody may see: how many there are, and how many hold each of some terms."""

    passages: int
    holders: Mapping[str, int]


@value(tag="passage-feedback")
class Feedback:
    """What a person said of a passage that was found for a query."""

    query: str
    passage: str
    good: bool
    person: str = ""
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
class Meaning:
    """By which embedder an index is asked by meaning too.

    `place` is where a person said it is, `model` its name for good, and `probe` the vector of a fixed sentence where nothing
    else tells one model from another; `always` fuses whatever a check has found.
    """

    place: str
    model: str
    probe: tuple[float, ...] = ()
    always: bool = False
