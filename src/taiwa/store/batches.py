"""The rows of batches: the result of each, and which process works on it."""

from typing import Literal, TypeAlias

from taiwa.kernel.errors import StoreError, TaiwaError
from taiwa.kernel.serialization import Json, digest, record, value
from taiwa.sql import Database
from taiwa.store.nodes import check_json, hash_to_bytes, pack, short_hash, unpack

BatchStatus: TypeAlias = Literal["open", "done", "failed"]

BEGIN = """
INSERT INTO batch_item(owner, key, status, pid, at_us) VALUES(?, ?, 'open', ?, ?)
ON CONFLICT(key) DO UPDATE SET status = 'open', pid = excluded.pid, at_us = excluded.at_us
WHERE batch_item.status <> 'done'"""
# Of a row that two processes answered, the first result stays.
END = """
UPDATE batch_item SET at_us = ?, result = CASE status WHEN 'done' THEN result ELSE ? END,
    status = CASE status WHEN 'done' THEN 'done' ELSE ? END
WHERE key = ?"""


@value
class BatchItem:
    """One row: its status, and its result or error."""

    status: BatchStatus
    result: Json


def item_key(prompt: str, app: str, model: str, params: Json) -> str:
    """Return the key of a row: a digest of everything that its answer depends on; `app` is a hash."""
    return digest({"prompt": prompt, "app": app, "model": model, "params": params})


class Batches:
    """The rows of all batches of one owner.

    Several processes may work on one batch: a row belongs to the process that took it until it ends.
    """

    def __init__(self, db: Database, owner: str = "") -> None:
        self._db = db
        self._owner = owner

    def _stored(self, key: str) -> bytes:
        """Return the key of a row in the table, which is specific to the owner."""
        return hash_to_bytes(digest({"owner": self._owner, "key": key}) if self._owner else key)

    def get(self, key: str) -> BatchItem | None:
        """Return a row, or None if it was never begun."""
        row = self._db.row("SELECT status, result FROM batch_item WHERE key = ?", self._stored(key))
        return None if row is None else BatchItem(row[0], None if row[1] is None else unpack(row[1]))

    def begin(self, key: str) -> BatchItem:
        """Open a row and return it; a finished one keeps its result."""
        with self._db.transaction():
            self._db.run(BEGIN, self._owner, self._stored(key), self._db.owner(), self._db.clock())
            item = self.get(key)
        assert item is not None
        return item

    def take(self, key: str) -> BatchItem | None:
        """Begin a row, or return None while another living process works on it."""
        with self._db.transaction():
            self._db.lock(f"item {key}")
            owner = self._db.one("SELECT pid FROM batch_item WHERE key = ? AND status = 'open'", self._stored(key)) or 0
            other_works = owner != self._db.owner() and self._db.is_alive(owner)
            return None if other_works else self.begin(key)

    def release(self, key: str) -> None:
        """Release an interrupted row, so that another process may take it."""
        update = "UPDATE batch_item SET pid = 0 WHERE key = ? AND status = 'open'"
        self._db.run(update, self._stored(key))

    def finish(self, key: str, result: Json) -> None:
        """Store the result of a row."""
        self._end(key, "done", pack(check_json(result), in_order=True))

    def fail(self, key: str, error: TaiwaError) -> None:
        """Store the error of a row, as `error.record()`."""
        self._end(key, "failed", pack(record(error.record())))

    def _end(self, key: str, status: BatchStatus, result: bytes) -> None:
        if not self._db.run(END, self._db.clock(), result, status, self._stored(key)):
            raise StoreError(f"batch row {short_hash(key)} was not begun")

    def clear(self) -> int:
        """Delete all rows with their results, and return their number."""
        return self._db.run("DELETE FROM batch_item WHERE owner = ?", self._owner)
