"""What reading a document gives: its text, and where its headings and pages begin."""

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value

__all__ = ["Heading", "Reading", "UnreadableError", "lines_of"]


@value(tag="heading")
class Heading:
    """A heading: where its section begins in the text, how deep it is (1 is outermost), and its words."""

    start: int
    level: int
    words: str


@value(tag="parsed-document")
class Reading:
    """The text of a document, its title, its headings in order, and where each page begins; no pages, no numbers.

    `access` is what the document itself says of who may see it; None where it says nothing.
    """

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[int, ...] = ()
    access: tuple[str, ...] | None = None


class UnreadableError(InputError, tag="unreadable"):
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
