"""Reading documents: from the bytes of a file to text with headings and pages, and from there to pieces."""

from taiwa.retrieve.reading.reading import Heading, Reading, UnreadableError
from taiwa.retrieve.reading.split import split

__all__ = ["Heading", "Reading", "UnreadableError", "split"]
