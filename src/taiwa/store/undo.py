"""Undo and redo: moves of a session's name along its commits, recorded in the reflog."""

from taiwa.kernel.errors import InputError
from taiwa.store.nodes import Nodes
from taiwa.store.refs import Refs
from taiwa.store.schema import StoreDatabase

TOWARDS = """
WITH RECURSIVE back(seq, steps) AS (
    SELECT CAST(? AS BIGINT), 0
    UNION ALL SELECT node.base, steps + 1 FROM back JOIN node ON node.seq = back.seq
    WHERE back.seq <> ? AND node.base IS NOT NULL)
SELECT seq FROM back ORDER BY steps"""
LAST_OTHER = "SELECT new FROM reflog WHERE ref = ? AND op NOT IN ('undo', 'redo', 'rename') ORDER BY seq DESC LIMIT 1"


def undo(nodes: Nodes, refs: Refs, name: str, steps: int = 1) -> str:
    """Move a name some steps back and return its new tip; everything that one commit added goes together.

    Raises:
        InputError: there are fewer steps.
    """
    if steps < 1:
        raise InputError(f"the number of steps to undo must be at least 1, got {steps}")
    with refs.moving(name) as (ref, old, _):
        new = refs.row_back(old, steps)
        refs.log(ref, "undo", old, new, f"undo {steps}")
        return nodes.hash_of(new)


def redo(db: StoreDatabase, nodes: Nodes, refs: Refs, name: str, steps: int = 1) -> str:
    """Move a name forward over undone steps and return its new tip.

    Raises:
        InputError: nothing was undone, or something was added since.
    """
    if steps < 1:
        raise InputError(f"the number of steps to redo must be at least 1, got {steps}")
    with refs.moving(name) as (ref, old, _):
        # The tips between the last one that undo and redo did not reach and this one, newest first.
        path = [row[0] for row in db.rows(TOWARDS, db.one(LAST_OTHER, ref), old)]
        undone = path[:-1] if path[-1] == old else []
        if not undone:
            raise InputError(f"nothing to redo in session {name!r}: {_why_nothing(db, ref, name)}")
        if steps > len(undone):
            raise InputError(f"cannot redo {steps} steps; only {len(undone)} undone steps are left")
        new = undone[-steps]
        refs.log(ref, "redo", old, new, f"redo {steps}")
        return nodes.hash_of(new)


def _why_nothing(db: StoreDatabase, ref: int, name: str) -> str:
    ops = [row[0] for row in db.rows("SELECT op FROM reflog WHERE ref = ? ORDER BY seq DESC", ref)]
    if "undo" not in ops:
        return "nothing was undone"
    if next(op for op in ops if op not in ("redo", "rename")) == "undo":
        return "everything that was undone is restored"
    return f"it has moved on since the undo; what was undone is at {name}@{{{ops.index('undo') + 1}}}"
