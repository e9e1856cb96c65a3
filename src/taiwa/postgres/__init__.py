"""A PostgreSQL server, whatever is kept there: addressed, opened, migrated and spoken to as a SQLite file is."""

from taiwa.postgres.address import Server, is_server
from taiwa.postgres.connection import Connection
from taiwa.postgres.kind import Kind, Migration

__all__ = ["Connection", "Kind", "Migration", "Server", "is_server"]
