"""Indexes on this machine: one SQLite file is the truth, and tantivy beside it finds words."""

from taiwa.retrieve.local.shelves import LocalShelves

__all__ = ["LocalShelves"]
