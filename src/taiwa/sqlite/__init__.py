"""One SQLite file, whatever it holds: opened, locked, migrated and spoken to in one way."""

from taiwa.sqlite.connection import Connection, now_us
from taiwa.sqlite.database import Clock, Database, Row
from taiwa.sqlite.kind import Kind, Migration

__all__ = ["Clock", "Connection", "Database", "Kind", "Migration", "Row", "now_us"]
