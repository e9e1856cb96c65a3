"""Finding passages that fit a query."""

from taiwa.retrieve.memory import InMemory, terms

__all__ = ["InMemory", "terms"]
