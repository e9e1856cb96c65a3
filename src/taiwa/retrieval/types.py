"""Documents and their chunks, audiences, facts of files, and measurements of an index."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Principals: TypeAlias = frozenset[str]
"""The principals of a question: `frozenset({"user:ann", "group:hr"})`; empty for an unknown user."""
Audience: TypeAlias = tuple[tuple[str, ...], ...]
"""Who may see a document: one name of every group must be among the principals. Without groups it is public."""

PUBLIC: Audience = ()
CLOSED: Audience = ((),)
"""The empty audience."""


def may_see(audience: Audience, principals: Iterable[str]) -> bool:
    """Report whether the principals may see a document with this audience.

    >>> may_see((("group:hr", "user:ann"),), {"user:ann"}), may_see((("group:hr",), ("user:ann",)), {"user:ann"})
    (True, False)
    """
    names = frozenset(principals)
    return all(not names.isdisjoint(clause) for clause in audience)


@value
class Chunk:
    """A part of a document: `text` starts at character `start`; `page` counts from 1, 0 without pages."""

    text: str
    start: int
    heading: tuple[str, ...] = ()
    page: int = 0


@value
class FileFacts:
    """The facts of a file that an index stores to detect changes.

    `digest` is the SHA-256 of its bytes, `reader` the name and version of its reader, `problem` why it could not be
    read, or ""; `at_us` the time of that. `access` is its own access list, `audience` results from it and the rules of its
    folder.
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


@value
class EmbedderChoice:
    """The embedder of an index.

    `place` is the location that the user gave, `model` its permanent name, and `probe` the vector of a fixed sentence if
    nothing else distinguishes models.
    """

    place: str
    model: str
    probe: tuple[float, ...] = ()


Vector: TypeAlias = "NDArray[np.float32]"
"""A vector of length 1."""


@value(tag="heading")
class Heading:
    """A heading: the start of its section in the text, its level (1 is outermost), and its words."""

    start: int
    level: int
    words: str


@value(tag="parsed-document")
class ParsedDocument:
    """The text of a document, its title, its headings in order, and the start of each page.

    `access` is its own access list, None without one; `doubt` says why the text may be a fragment.
    """

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    access: tuple[str, ...] | None = None
    doubt: str = ""


class UnreadableError(InputError):
    """A file that cannot be read; the message is short enough for a row of a report."""

    tag = "unreadable"


def reason_of(error: OSError) -> str:
    """Return the system's message of an error, in lower case."""
    return (error.strerror or "the system refuses").lower()


def lines_of(text: str) -> list[int]:
    """Return the start of each line, and the end of the text."""
    starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]
