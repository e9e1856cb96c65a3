"""SQL databases: one protocol over a SQLite file and a PostgreSQL schema; `sql.sqlite` and `sql.postgres` implement it."""

from taiwa.sql.base import Clock, Database, DatabaseSpec, Migration, PostgresUrl, SqlRow, is_postgres_url, now_us

__all__ = ["Clock", "Database", "DatabaseSpec", "Migration", "PostgresUrl", "SqlRow", "is_postgres_url", "now_us"]
