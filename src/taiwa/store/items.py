"""The rows of batches: what was asked once with the same app, model and parameters is not paid for again."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from taiwa.kernel.errors import StoreError, TaiwaError
from taiwa.kernel.records import Json, digest, record
from taiwa.store.bodies import key, pack, plain, short, unpack
from taiwa.store.connection import Connection

__all__ = ["Item", "Items", "Progress", "item_key"]

Progress: TypeAlias = Literal["open", "done", "failed"]

BEGIN = """
INSERT INTO item(key, status, attempts, cost_nano, pid, token, at_us) VALUES(?, 'open', 1, 0, ?, ?, ?)
ON CONFLICT(key) DO UPDATE SET status = 'open', attempts = item.attempts + 1, pid = excluded.pid, token = excluded.token,
    at_us = excluded.at_us
WHERE item.status <> 'done'"""
# What two processes paid is paid twice; the first result stays. NULL (not known) plus anything is NULL.
END = """
UPDATE item SET cost_nano = cost_nano + ?, at_us = ?,
    result = CASE status WHEN 'done' THEN result ELSE ? END, status = CASE status WHEN 'done' THEN 'done' ELSE ? END
WHERE key = ?"""


@dataclass(frozen=True, slots=True)
class Item:
    """One row: how far it is, how often it was tried, what that cost (None: not known), its result or error."""

    status: Progress
    attempts: int
    cost_nano: int | None
    result: Json


def item_key(prompt: str, app: str, model: str, params: Json) -> str:
    """Name a row by all that its answer depends on; `app` is a hash."""
    return digest({"prompt": prompt, "app": app, "model": model, "params": params})


class Items:
    """The rows of all batches. Several processes may work on one batch: who takes a row has it until they end or are gone."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def get(self, name: str) -> Item | None:
        """Return a row, if it was ever begun."""
        row = self._db.row("SELECT status, attempts, cost_nano, result FROM item WHERE key = ?", key(name))
        if row is None:
            return None
        status, attempts, cost, result = row
        return Item(status, attempts, cost, None if result is None else unpack(result))

    def begin(self, name: str) -> Item:
        """Count an attempt and return the row; one that is done stays done, and its result is there to be used."""
        with self._db.transaction():
            self._db.run(BEGIN, key(name), *self._db.owner(), self._db.clock())
            found = self.get(name)
        assert found is not None
        return found

    def take(self, name: str) -> Item | None:
        """As `begin`, or None while another program that is there has begun the row and not ended it."""
        with self._db.transaction():
            self._db.hold(f"item {name}")
            row = self._db.row("SELECT pid, token FROM item WHERE key = ? AND status = 'open'", key(name))
            if row is not None and row != self._db.owner() and self._db.is_alive(*row):
                return None
            return self.begin(name)

    def release(self, name: str) -> None:
        """Let go of a row that was stopped half-way, so that others may take it."""
        self._db.run("UPDATE item SET pid = 0, token = '' WHERE key = ? AND status = 'open'", key(name))

    def finish(self, name: str, result: Json, cost_nano: int | None = None) -> None:
        """Keep the result of a row; the cost is added to that of earlier attempts."""
        self._end(name, "done", pack(plain(result)), cost_nano)

    def fail(self, name: str, error: TaiwaError, cost_nano: int | None = None) -> None:
        """Keep the error of a row, as `error.record()`."""
        self._end(name, "failed", pack(record(error.record())), cost_nano)

    def _end(self, name: str, status: Progress, result: bytes, cost: int | None) -> None:
        if not self._db.run(END, cost, self._db.clock(), result, status, key(name)):
            raise StoreError(f"the row {short(name)} was not begun")

    def clear(self) -> int:
        """Delete all rows, results included, and return how many there were."""
        return self._db.run("DELETE FROM item")
