"""Errors that a client must report, whatever it calls them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused(words: str = "as you wish") -> Iterator[None]:
    """Check that a block fails with some words of the server."""
    try:
        yield
    except Exception as error:
        if words not in str(error):
            raise
    else:
        raise AssertionError("nothing was refused")
