"""Indexes on a PostgreSQL server, for many machines and users at once."""

from taiwa.retrieve.server.shelves import ServerShelves

__all__ = ["ServerShelves"]
