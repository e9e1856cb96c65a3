"""Retrieval of passages for a query: in memory, or in indexes of folders of documents."""

from taiwa.kernel.messages import Evidence
from taiwa.retrieval.index import Index, InMemoryRetriever, Library, ScopedRetriever, terms

__all__ = ["Evidence", "InMemoryRetriever", "Index", "Library", "ScopedRetriever", "terms"]
