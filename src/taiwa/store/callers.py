"""The named callers of a server: the hash of their key, and what they may spend and see."""

import json
from dataclasses import dataclass
from hashlib import sha256

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.sql import Database
from taiwa.sql.base import SqlRow

SELECT = "SELECT name, max_cost, rate, principals, at_us FROM caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller. `max_cost` is what it may spend in a day (UTC), in billionths of the currency unit, and `rate` how many answers it may
    begin in a minute; None means no limit. `principals` are those for whom it searches documents.
    """

    name: str
    max_cost: int | None = None
    rate: int | None = None
    principals: tuple[str, ...] = ()
    at_us: int = 0


class Callers:
    """The callers of a store; those of one with a key, which is stored as its hash."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, caller: Caller, key: str) -> None:
        """Store a caller with its key.

        Raises:
            ConflictError: there is one of that name.
        """
        columns = "name, max_cost, rate, principals, at_us, key"
        insert = f"INSERT INTO caller({columns}) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(name) DO NOTHING"
        principals = json.dumps(caller.principals, ensure_ascii=False)
        values = (caller.name, caller.max_cost, caller.rate, principals, self._db.clock(), hash_key(key))
        if self._db.insert(insert, *values) is None:
            raise ConflictError(
                f"the caller {caller.name!r} has a key already; revoke it first, or choose another name"
            )

    def list(self) -> tuple[Caller, ...]:
        """Return the callers, sorted by name."""
        return tuple(map(_caller, self._db.rows(f"{SELECT} ORDER BY name")))

    def find(self, key: str) -> Caller | None:
        """Return the caller of a key; None where no caller has it."""
        row = self._db.row(f"{SELECT} WHERE key = ?", hash_key(key))
        return None if row is None else _caller(row)

    def get(self, name: str) -> Caller | None:
        """Return the caller of a name; None where there is none."""
        row = self._db.row(f"{SELECT} WHERE name = ?", name)
        return None if row is None else _caller(row)

    def revoke(self, name: str) -> None:
        """Delete a caller, whose key opens nothing from now on; its conversations stay, and are its own again under that name.

        Raises:
            InputError: the name is unknown.
        """
        if not self._db.run("DELETE FROM caller WHERE name = ?", name):
            known = ", ".join(each.name for each in self.list()[:8])
            raise InputError(f"the caller {name!r} has no key{f'; callers: {known}' if known else ''}")


def hash_key(key: str) -> bytes:
    """Return what is stored of a key."""
    return sha256(key.encode("utf-8", "replace")).digest()


def _caller(row: SqlRow) -> Caller:
    name, max_cost, rate, principals, at = row
    return Caller(name, max_cost, rate, tuple(json.loads(principals)), at)
