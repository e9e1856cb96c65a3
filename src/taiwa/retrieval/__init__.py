"""Retrieval of passages for a query: in memory, or in indexes of folders of documents."""

from taiwa.kernel.messages import Evidence
from taiwa.kernel.text import terms
from taiwa.retrieval.index import Index, InMemoryRetriever, Library, ScopedRetriever

__all__ = ["Evidence", "InMemoryRetriever", "Index", "Library", "ScopedRetriever", "terms"]
