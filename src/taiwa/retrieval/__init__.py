"""Retrieval of passages for a query: in memory, or in indexes of folders of documents."""

from taiwa.retrieval.index import Evidence, Index, InMemoryRetriever, Library, ScopedRetriever, terms

__all__ = ["Evidence", "InMemoryRetriever", "Index", "Library", "ScopedRetriever", "terms"]
