"""The store's file: a connection that knows the tables of conversations."""

from pathlib import Path

from taiwa.sqlite.connection import Clock, Row, now_us
from taiwa.sqlite.connection import Connection as AnyConnection
from taiwa.store.schema import STORE

__all__ = ["Clock", "Connection", "Row", "now_us"]


class Connection(AnyConnection):
    """An open store."""

    def __init__(self, path: str | Path, *, readonly: bool = False, clock: Clock = now_us) -> None:
        super().__init__(path, STORE, readonly=readonly, clock=clock)
