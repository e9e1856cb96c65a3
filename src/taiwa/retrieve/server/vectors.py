"""Vectors of passages, compared by the server's extension pgvector. Every one is looked at, so nobody is left out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from taiwa.kernel.errors import InputError, StoreError
from taiwa.kernel.values import Passage
from taiwa.postgres import Connection
from taiwa.retrieve.local.tables import FOUND, held
from taiwa.retrieve.server.schema import VECTORS
from taiwa.sqlite import Row

if TYPE_CHECKING:
    from taiwa.retrieve.seam import Vector

__all__ = ["ServerVectors"]

THERE = "SELECT to_regclass('embedding')"
AVAILABLE = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
WHERE = """
SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"""
OWN = "SELECT passage.seq FROM passage JOIN document ON document.seq = passage.document WHERE shelf = ?"
MISSING = "NOT EXISTS(SELECT 1 FROM embedding WHERE embedding.passage = passage.seq AND model = ?)"
PUT = """
INSERT INTO embedding(passage, model, cells) SELECT seq, ?, CAST(? AS {type}) FROM passage WHERE seq = ?
ON CONFLICT(passage, model) DO UPDATE SET cells = excluded.cells"""
NEAREST = """
SELECT passage.seq, document.audience, document.path, document.title, document.seq, document.digest,
    passage.start, passage.page, passage.heading, passage.text,
    -(cells OPERATOR({schema}.<#>) CAST(? AS {schema}.vector)) AS score
FROM embedding JOIN passage ON passage.seq = embedding.passage JOIN document ON document.seq = passage.document
WHERE document.shelf = ? AND model = ? AND document.audience = ANY(CAST(? AS bigint[]))
ORDER BY score DESC, passage.seq LIMIT ?"""


class ServerVectors:
    """The vectors of one index, by model."""

    def __init__(self, db: Connection, shelf: int) -> None:
        self._db = db
        self._shelf = shelf

    def missing(self, model: str, k: int) -> tuple[Passage, ...]:
        """Return passages without a vector of a model."""
        without, values = (MISSING, (model,)) if self._there() else ("true", ())
        rows = self._db.rows(f"{FOUND} {without} ORDER BY passage.seq LIMIT ?", self._shelf, *values, k)
        return tuple(held(row).passage for row in rows)

    def put(self, model: str, vectors: "Sequence[tuple[int, Vector]]") -> None:
        """Keep vectors by the numbers of their passages, in one transaction.

        Raises:
            StoreError: the server has no pgvector.
        """
        if not vectors:
            return
        putting = PUT.format(type=self._made())
        with self._db.transaction():
            for passage, vector in vectors:
                self._db.run(putting, model, _written(vector), passage)

    def nearest(self, model: str, vector: "Vector", k: int, audiences: Sequence[int]) -> list[Row]:
        """Return the rows of the k nearest passages, nearest first; their last column is the cosine."""
        if k < 1 or not self._there():
            return []
        schema = str(self._db.one(WHERE))
        select = f"SELECT {schema}.vector_dims(cells) FROM embedding WHERE model = ? AND passage IN ({OWN}) LIMIT 1"  # noqa: S608
        length = self._db.one(select, model, self._shelf)
        if length is None:
            return []
        if length != len(vector):
            raise InputError(f"a vector of {len(vector)} numbers is asked of {model!r}, whose have {length}")
        rows = self._db.rows(
            NEAREST.format(schema=schema), _written(vector), self._shelf, model, audiences, k
        )  # fmt: skip
        return [row for row in rows if row[-1] > 0]

    def count(self, model: str) -> int:
        """Count the vectors of a model."""
        counted = f"SELECT count(*) FROM embedding WHERE model = ? AND passage IN ({OWN})"  # noqa: S608
        return int(self._db.one(counted, model, self._shelf) or 0) if self._there() else 0

    def keep(self, model: str) -> None:
        """Delete the vectors of every other model."""
        if self._there():
            self._db.run(f"DELETE FROM embedding WHERE model <> ? AND passage IN ({OWN})", model, self._shelf)  # noqa: S608

    def _there(self) -> bool:
        return self._db.one(THERE) is not None

    def _made(self) -> str:
        """Return the type of vectors; the first one makes the extension and the table."""
        if not self._there():
            if self._db.one(AVAILABLE) is None:
                raise StoreError(
                    f"the server {self._db.server} has no pgvector, which vectors need: install it there, or go without them"
                )
            try:
                self._db.run("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            except StoreError as error:
                raise StoreError(
                    f"the extension pgvector cannot be made here: let the database's owner say CREATE EXTENSION vector ({error.message})"
                ) from error
            self._db.run(VECTORS.format(type=f"{self._db.one(WHERE)}.vector"))
        return f"{self._db.one(WHERE)}.vector"


def _written(vector: "Vector") -> str:
    return "[" + ",".join(f"{float(cell):.7g}" for cell in vector) + "]"
