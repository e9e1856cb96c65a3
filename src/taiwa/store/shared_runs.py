"""What the servers of one store know of each other: who serves it, and the runs of one that others can follow and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from taiwa.kernel.records import Json
from taiwa.sql import Database
from taiwa.store.nodes import decoding, pack, unpack

MOST_ENDED = 256
"""Ended runs of an owner whose events can still be followed."""


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A run of a server. `is_lost` says that its process has ended, or left it to another one."""

    number: int
    owner: str
    id: str
    session: str
    ended: bool
    is_lost: bool


class SharedRuns:
    """The runs of one owner that servers share.

    A run belongs to a process. What marks a process as living is what marks it for `Runs`: its lock, which the database frees
    when the process or its machine is gone. Then another server may claim the run.
    """

    def __init__(self, db: Database, owner: str) -> None:
        self._db = db
        self._owner = owner

    def begin(self, name: str, session: str) -> None:
        """Share a run of this process under an id."""
        insert = "INSERT INTO shared_run(owner, id, session, process, stop, ended) VALUES(?, ?, ?, ?, 0, 0)"
        self._db.insert(insert, self._owner, name, session, self._db.owner())

    def append(self, name: str, start: int, events: Sequence[Json]) -> None:
        """Write the next events of a run, of which `start` were written before."""
        insert = """INSERT INTO shared_event(run, start, until, body)
            SELECT seq, ?, ?, ? FROM shared_run WHERE owner = ? AND id = ? AND process = ?"""
        until, body = start + len(events), pack(list(events))
        self._db.run(insert, start, until, body, self._owner, name, self._db.owner())

    def find(self, name: str) -> SharedRun | None:
        """Return the run of an id; None where this owner has none, or it ended long ago."""
        where = "WHERE owner = ? AND id = ?"
        return next(iter(self._select(where, self._owner, name)), None)

    def of_session(self, session: str) -> SharedRun | None:
        """Return the run that writes in a session now."""
        found = self._select("WHERE owner = ? AND session = ? AND ended = 0", self._owner, session)
        return next((run for run in found if not run.is_lost), None)

    def events(self, run: SharedRun, start: int) -> list[Json]:
        """Return the events of a run from a position on."""
        select = "SELECT start, body FROM shared_event WHERE run = ? AND until > ? ORDER BY until"
        found: list[Json] = []
        for first, body in self._db.rows(select, run.number, start):
            with decoding("shared event"):
                found += cast("list[Json]", unpack(body))[max(0, start - first) :]
        return found

    def end(self, name: str) -> None:
        """End a run of this process; the oldest ended ones are forgotten."""
        update = "UPDATE shared_run SET ended = 1 WHERE owner = ? AND id = ? AND process = ?"
        self._db.run(update, self._owner, name, self._db.owner())
        old = "SELECT seq FROM shared_run WHERE owner = ? AND ended = 1 ORDER BY seq DESC LIMIT 1000 OFFSET ?"
        self._db.run(f"DELETE FROM shared_run WHERE seq IN ({old})", self._owner, MOST_ENDED)  # noqa: S608

    def release(self, name: str) -> None:
        """Leave a run of this process to another server."""
        update = "UPDATE shared_run SET process = 0 WHERE owner = ? AND id = ? AND process = ?"
        self._db.run(update, self._owner, name, self._db.owner())

    def stop(self, name: str) -> None:
        """Ask the process of a run to end it."""
        self._db.run("UPDATE shared_run SET stop = 1 WHERE owner = ? AND id = ?", self._owner, name)

    def claim(self, run: SharedRun) -> bool:
        """Take over a run whose process has ended, with no events; False where another server was first."""
        with self._db.transaction():
            self._db.lock(f"shared run {run.number}")
            process = self._db.one("SELECT process FROM shared_run WHERE seq = ? AND ended = 0", run.number)
            if process is None or self._db.is_alive(process):
                return False
            self._db.run("UPDATE shared_run SET process = ? WHERE seq = ?", self._db.owner(), run.number)
            self._db.run("DELETE FROM shared_event WHERE run = ?", run.number)
            return True

    # Of all owners: what a server asks for itself.

    def lost(self) -> tuple[SharedRun, ...]:
        """Return the runs of all owners whose process has ended before them, the oldest first."""
        return tuple(run for run in self._select("WHERE ended = 0") if run.is_lost)

    def stopped(self) -> tuple[SharedRun, ...]:
        """Return the runs of this process, of all owners, that are to end."""
        return self._select("WHERE process = ? AND stop = 1 AND ended = 0", self._db.owner())

    def serve(self) -> int | None:
        """Note that this process serves the store; return the number of another one that does, None where there is none.

        Where the database is a file, this process serves it only if there is no other.
        """
        own = self._db.owner()
        with self._db.transaction():
            self._db.lock("server")
            processes = [int(process) for (process,) in self._db.rows("SELECT process FROM server")]
            others = [process for process in processes if process != own and self._db.is_alive(process)]
            for process in set(processes) - set(others):
                self._db.run("DELETE FROM server WHERE process = ?", process)
            if not others or self.is_shared:
                self._db.run("INSERT INTO server(process) VALUES(?)", own)
        return others[0] if others else None

    def leave(self) -> None:
        """Note that this process serves the store no longer."""
        self._db.run("DELETE FROM server WHERE process = ?", self._db.owner())

    @property
    def is_shared(self) -> bool:
        """Whether several servers may serve the store: it is not a file."""
        return self._db.dialect == "postgres"

    def _select(self, where: str, *values: object) -> tuple[SharedRun, ...]:
        select = f"SELECT seq, owner, id, session, ended, process FROM shared_run {where} ORDER BY seq"  # noqa: S608
        return tuple(
            SharedRun(seq, owner, name, session, bool(ended), not ended and not self._db.is_alive(process))
            for seq, owner, name, session, ended, process in self._db.rows(select, *values)
        )
