"""All indexes of a server, by name."""

from taiwa.postgres import Connection, Server
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.local.tabled import TableShelves
from taiwa.retrieve.server.schema import LIBRARY
from taiwa.retrieve.server.shelf import ServerShelf
from taiwa.sqlite import Clock, now_us

__all__ = ["ServerShelves"]


class ServerShelves(TableShelves[ServerShelf]):
    """Indexes in one database of a PostgreSQL server."""

    def __init__(self, server: Server, *, clock: Clock = now_us) -> None:
        self._server = Connection(server, LIBRARY, clock=clock)
        super().__init__(self._server)

    def __repr__(self) -> str:
        return f"ServerShelves({str(self._server.server)!r})"

    def _shelf(self, seq: int, named: tuple[str, str], analyzer: Analyzer) -> ServerShelf:
        return ServerShelf(self._server, seq, named, analyzer)
