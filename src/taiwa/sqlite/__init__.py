"""One SQLite file, whatever it holds: opened, locked, migrated and spoken to in one way."""

from taiwa.sqlite.connection import Clock, Connection, Row, now_us
from taiwa.sqlite.kind import Kind, Migration

__all__ = ["Clock", "Connection", "Kind", "Migration", "Row", "now_us"]
