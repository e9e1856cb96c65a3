"""Names for nodes, and the log of where each name has been: undo, redo and `name@{n}` are read from it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

from taiwa.kernel.errors import ConflictError, InputError
from taiwa.store.bodies import short, text
from taiwa.store.connection import Connection
from taiwa.store.names import check_name, composed
from taiwa.store.nodes import Nodes

__all__ = ["Logged", "Ref", "Refs", "moved_on"]

ALL = 2**62

BACK = """
WITH RECURSIVE back(seq, steps) AS (
    SELECT CAST(? AS BIGINT), 0
    UNION ALL SELECT node.base, steps + 1 FROM back JOIN node ON node.seq = back.seq
    WHERE steps < ? AND node.base IS NOT NULL)
SELECT seq, steps FROM back ORDER BY steps"""
TOWARDS = """
WITH RECURSIVE back(seq, steps) AS (
    SELECT CAST(? AS BIGINT), 0
    UNION ALL SELECT node.base, steps + 1 FROM back JOIN node ON node.seq = back.seq
    WHERE back.seq <> ? AND node.base IS NOT NULL)
SELECT seq FROM back ORDER BY steps"""
FIND = """
SELECT ref.seq, ref.node, node.hash FROM ref JOIN node ON node.seq = ref.node
WHERE ref.name = ? AND ref.node IS NOT NULL"""
SHOWN = """
SELECT ref.name, node.hash, app.name, node.turns, reflog.at_us
FROM ref JOIN node ON node.seq = ref.node JOIN app ON app.seq = node.app JOIN reflog ON reflog.seq = ref.moved
ORDER BY ref.moved DESC"""


@dataclass(frozen=True, slots=True)
class Ref:
    """A session as a list shows it; `at_us` is the clock at its last move, for showing only."""

    name: str
    tip: str
    app: str
    turns: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Logged:
    """One move of a name: `create commit undo redo move rename delete`, from where, to where, and why."""

    op: str
    old: str | None
    new: str | None
    why: str
    at_us: int


class Refs:
    """The sessions of a store."""

    def __init__(self, db: Connection, nodes: Nodes) -> None:
        self._db = db
        self._nodes = nodes

    def list(self) -> tuple[Ref, ...]:
        """Return all sessions, the one that moved last first."""
        return tuple(Ref(name, tip.hex(), app, turns, at) for name, tip, app, turns, at in self._db.rows(SHOWN))

    def latest(self) -> str | None:
        """Return the name that moved last; neither the clock nor the alphabet is asked."""
        name: str | None = self._db.one("SELECT name FROM ref WHERE node IS NOT NULL ORDER BY moved DESC LIMIT 1")
        return name

    def has(self, name: str) -> bool:
        """Say whether a session has that name."""
        return self.find(name) is not None

    def tip(self, name: str) -> str:
        """Return the node that a name stands for.

        Raises:
            InputError: there is no such name; the nearest ones are said.
        """
        return self.at(name)[2]

    def find(self, name: str) -> tuple[int, int, str] | None:
        """Return the rows of a session and of its tip, and the hash of that."""
        row = self._db.row(FIND, composed(name))
        return None if row is None else (row[0], row[1], row[2].hex())

    def at(self, name: str) -> tuple[int, int, str]:
        """As `find`.

        Raises:
            InputError: as `tip`.
        """
        found = self.find(name)
        if found is None:
            raise InputError(f"there is no session {name!r}{self.hint(name)}")
        return found

    def hint(self, name: str) -> str:
        """Name the nearest sessions, for the end of an error."""
        names = [row[0] for row in self._db.rows("SELECT name FROM ref WHERE node IS NOT NULL ORDER BY moved DESC")]
        near = get_close_matches(name, names, n=3, cutoff=0.5)
        if near:
            return f": did you mean {' or '.join(near)}?"
        return (
            f": there are {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else ": there are none yet"
        )

    def create(self, name: str, tip: str, why: str = "create") -> None:
        """Give a node a new name; a fork is this and nothing else.

        Raises:
            ConflictError: the name is taken.
        """
        kept = check_name(name)
        with self._db.transaction():
            self._db.hold(kept)
            node = self._nodes.seq(tip)
            if self.find(kept) is not None:
                raise ConflictError(f"there is a session {kept!r} already: choose another name")
            self.begin(kept, node, why)

    def begin(self, name: str, node: int, why: str) -> None:
        """Write a new session; the caller has looked that the name is free."""
        ref = self._db.insert("INSERT INTO ref(name, node, moved) VALUES(?, ?, 0)", name, node)
        self._log(ref or 0, "create", None, node, why)

    def move(self, name: str, tip: str, expected: str, why: str) -> None:
        """Let a name stand for another node.

        Raises:
            ConflictError: it did not stand for `expected`.
        """
        with self._moving(name) as (ref, old, at):
            if at != expected:
                raise ConflictError(moved_on(name, at, expected))
            self.put(ref, "move", old, self._nodes.seq(tip), why)

    def put(self, ref: int, op: str, old: int, new: int | None, why: str) -> None:
        """Write a move; the caller has looked that it may."""
        self._log(ref, op, old, new, why)

    def _log(self, ref: int, op: str, old: int | None, new: int | None, why: str) -> None:
        insert = "INSERT INTO reflog(ref, op, old, new, why, at_us) VALUES(?, ?, ?, ?, ?, ?)"
        moved = self._db.insert(insert, ref, op, old, new, why, self._db.clock())
        self._db.run("UPDATE ref SET node = ?, moved = ? WHERE seq = ?", new, moved, ref)

    @contextmanager
    def _moving(self, *names: str) -> Generator[tuple[int, int, str]]:
        """Give the first of the names as it stands, while nobody else moves any of them."""
        with self._db.transaction():
            self._db.hold(*map(composed, names))
            yield self.at(names[0])

    def rename(self, name: str, new: str) -> None:
        """Rename a session; its log, its runs and its bill go with it.

        Raises:
            ConflictError: the new name is taken.
        """
        kept = check_name(new)
        with self._moving(name, kept) as (ref, node, _):
            if self.find(kept) is not None:
                raise ConflictError(f"there is a session {kept!r} already: choose another name")
            self._db.run("UPDATE ref SET name = ? WHERE seq = ?", kept, ref)
            self._db.run("UPDATE run SET ref = ? WHERE ref = ?", kept, composed(name))
            self._log(ref, "rename", node, node, f"{composed(name)} to {kept}")

    def delete(self, name: str) -> str:
        """Take a name away and return the node it stood for; the nodes stay until `gc`."""
        with self._moving(name) as (ref, node, tip):
            self.put(ref, "delete", node, None, "delete")
            return tip

    def reflog(self, name: str, limit: int = -1) -> tuple[Logged, ...]:
        """Return the moves of a name, newest first; a deleted name's too, as long as it has not been used again."""
        order = "SELECT seq FROM ref WHERE name = ? ORDER BY node IS NULL, seq DESC LIMIT 1"
        ref = self._db.one(order, composed(name))
        if ref is None:
            raise InputError(f"there is no session {name!r}{self.hint(name)}")
        select = """
        SELECT op, was.hash, is_now.hash, why, reflog.at_us FROM reflog
        LEFT JOIN node was ON was.seq = reflog.old LEFT JOIN node is_now ON is_now.seq = reflog.new
        WHERE ref = ? ORDER BY reflog.seq DESC LIMIT ?"""
        return tuple(
            Logged(op, text(old), text(new), why, at)
            for op, old, new, why, at in self._db.rows(select, ref, limit if limit >= 0 else ALL)
        )

    def back(self, tip: str, steps: int) -> str:
        """Return the node some steps back; a step is what one commit added: a turn with its fold, or an edit.

        Raises:
            InputError: there are not so many.
        """
        return self._nodes.name(self._back(self._nodes.seq(tip), steps))

    def _back(self, node: int, steps: int) -> int:
        seq, made = self._db.rows(BACK, node, steps)[-1]
        if made < steps:
            raise InputError(f"there are only {made} steps back to the beginning, not {steps}")
        return int(seq)

    def undo(self, name: str, steps: int = 1) -> str:
        """Move a name some steps back and return its new tip; everything of a step goes together.

        Raises:
            InputError: there are not so many steps.
        """
        if steps < 1:
            raise InputError("undo at least one step")
        with self._moving(name) as (ref, old, _):
            new = self._back(old, steps)
            self.put(ref, "undo", old, new, f"undo {steps}")
            return self._nodes.name(new)

    def redo(self, name: str, steps: int = 1) -> str:
        """Take some undone steps back and return the new tip.

        Raises:
            InputError: nothing was undone, or something was added since.
        """
        if steps < 1:
            raise InputError("redo at least one step")
        with self._moving(name) as (ref, old, _):
            undone = self._undone(ref, old)
            if not undone:
                raise InputError(f"nothing to redo in {name!r}{self._lost_redo(ref, name)}")
            if steps > len(undone):
                raise InputError(f"only {len(undone)} undone steps are left to redo, not {steps}")
            new = undone[-steps]
            self.put(ref, "redo", old, new, f"redo {steps}")
            return self._nodes.name(new)

    def _undone(self, ref: int, tip: int) -> tuple[int, ...]:
        """Return the tips between the last one that was not reached by undo or redo and this one, newest first."""
        select = """
        SELECT new FROM reflog WHERE ref = ? AND op NOT IN ('undo', 'redo', 'rename') ORDER BY seq DESC LIMIT 1"""
        steps = [row[0] for row in self._db.rows(TOWARDS, self._db.one(select, ref), tip)]
        return tuple(steps[:-1]) if steps[-1] == tip else ()

    def _lost_redo(self, ref: int, name: str) -> str:
        ops = [row[0] for row in self._db.rows("SELECT op FROM reflog WHERE ref = ? ORDER BY seq DESC", ref)]
        if "undo" not in ops:
            return ": nothing was undone"
        place = ops.index("undo") + 1
        return f": it has moved on since the undo; what was undone is at {name}@{{{place}}}"


def moved_on(name: str, tip: str | None, expected: str | None) -> str:
    """Say that somebody else was first."""
    place = "exists already" if expected is None else f"is at {short(tip)} and not at {short(expected)}"
    return f"the session {name!r} {place}: another program was first; nothing was changed, look at it and try again"
