"""Finding passages that fit a query: in memory, or in indexes of folders of documents."""

from typing import TYPE_CHECKING

from taiwa.retrieve.memory import InMemory, terms

if TYPE_CHECKING:
    from taiwa.retrieve.evidence import Evidence
    from taiwa.retrieve.index import Index, Library, Within

__all__ = ["Evidence", "InMemory", "Index", "Library", "Within", "terms"]

LATER = {"Evidence": "evidence", "Index": "index", "Library": "index", "Within": "index"}


def __getattr__(name: str) -> object:
    """Load what reads documents when it is asked for: flows that search in memory need none of it."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"taiwa.retrieve.{LATER[name]}"), name)
