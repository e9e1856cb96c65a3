"""Deleting: `gc` takes what no name and no recent move leads to, `forget` takes a session away for good."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from taiwa.kernel.errors import InputError
from taiwa.store.connection import Connection
from taiwa.store.names import composed
from taiwa.store.refs import Refs

__all__ = ["KEPT_MOVES", "Forgotten", "Swept", "forget", "gc"]

KEPT_MOVES = 1000
"""How many of the newest moves of all names hold their nodes, so that undo, redo and `name@{n}` go back so far."""

REACHED = """
WITH RECURSIVE reached(seq) AS (
    SELECT value FROM json_each(?)
    UNION SELECT node.parent FROM reached JOIN node ON node.seq = reached.seq WHERE node.parent IS NOT NULL)
SELECT seq FROM reached"""
HELD = """
SELECT node FROM ref
UNION SELECT old FROM (SELECT old FROM reflog ORDER BY seq DESC LIMIT ?1)
UNION SELECT new FROM (SELECT new FROM reflog ORDER BY seq DESC LIMIT ?1)
UNION SELECT base FROM run WHERE status = 'open'"""
OWN = """
SELECT node FROM ref WHERE name = ?1
UNION SELECT old FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name = ?1)
UNION SELECT new FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name = ?1)
UNION SELECT base FROM run WHERE ref = ?1
UNION SELECT node FROM run WHERE ref = ?1"""
OTHERS = """
SELECT node FROM ref WHERE name <> ?1
UNION SELECT old FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name <> ?1 AND node IS NOT NULL)
UNION SELECT new FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name <> ?1 AND node IS NOT NULL)
UNION SELECT base FROM run WHERE ref <> ?1 AND status = 'open'"""

FOLLOWING = """
WITH RECURSIVE down(seq) AS (
    SELECT value FROM json_each(?)
    UNION SELECT node.seq FROM down JOIN node ON node.parent = down.seq)
SELECT seq FROM down"""
NEEDED = """
SELECT DISTINCT parent FROM node
WHERE parent IN (SELECT value FROM json_each(?)) AND seq NOT IN (SELECT value FROM json_each(?))"""
OLD_MOVES = """
FROM reflog
WHERE seq <= (SELECT seq FROM reflog ORDER BY seq DESC LIMIT 1 OFFSET ?)
    AND seq NOT IN (SELECT moved FROM ref WHERE node IS NOT NULL)"""
SEVERING = (
    "UPDATE run SET node = NULL WHERE node IN (SELECT value FROM json_each(?))",
    "UPDATE run SET base = NULL WHERE base IN (SELECT value FROM json_each(?))",
    "UPDATE reflog SET old = NULL WHERE old IN (SELECT value FROM json_each(?))",
    "UPDATE reflog SET new = NULL WHERE new IN (SELECT value FROM json_each(?))",
    "DELETE FROM node WHERE seq IN (SELECT value FROM json_each(?))",
)


@dataclass(frozen=True, slots=True)
class Swept:
    """What `gc` deleted, or would delete."""

    nodes: int
    apps: int
    moves: int


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What `forget` deleted; `shared` nodes stay, because other sessions hold them.

    `log_emptied` is false when another program is using the store: until it ends, the write-ahead log beside the file may
    still hold what was deleted. A server holds it for a while in any case.
    """

    nodes: int
    runs: int
    shared: int
    log_emptied: bool


def gc(db: Connection, keep: int = KEPT_MOVES, *, dry_run: bool = False) -> Swept:
    """Delete the nodes and apps that neither a name nor one of the newest `keep` moves of names leads to.

    Older moves are forgotten too, and the index of words is emptied; the next search fills it anew. The bill keeps the
    calls of deleted nodes. With `dry_run` nothing is changed.
    """
    if keep < 0:
        raise InputError("the number of moves to keep is not negative")
    with db.transaction(write=not dry_run, alone=not dry_run):
        held = _reached(db, db.rows(HELD, keep))
        doomed = {row[0] for row in db.rows("SELECT seq FROM node")} - held
        moves = int(db.one(f"SELECT count(*) {OLD_MOVES}", keep))
        apps = _unused_apps(db, doomed)
        if not dry_run:
            db.run(f"DELETE {OLD_MOVES}", keep)
            _delete(db, doomed, apps)
            db.words.clear()
    if not dry_run:
        db.shrink()
    return Swept(len(doomed), len(apps), moves)


def forget(db: Connection, refs: Refs, name: str) -> Forgotten:
    """Delete a session for good: its name, log, runs, calls, and the nodes that no other session holds.

    What was deleted is overwritten with zeros. Rows of batches do not belong to a session and stay.

    Raises:
        InputError: there never was such a session.
    """
    name = composed(name)
    with db.transaction(alone=True):
        runs = db.one("SELECT count(*) FROM run WHERE ref = ?", name)
        if not runs and not db.one("SELECT EXISTS(SELECT 1 FROM ref WHERE name = ?)", name):
            raise InputError(f"there is no session {name!r}{refs.hint(name)}")
        own = _reached(db, db.rows(OWN, name))
        others = _reached(db, db.rows(OTHERS, name))
        db.run("DELETE FROM run WHERE ref = ?", name)
        db.run("DELETE FROM ref WHERE name = ?", name)
        doomed = _with_descendants(db, own - others)
        _delete(db, doomed, _unused_apps(db, doomed))
    db.shrink()
    return Forgotten(len(doomed), runs, len(own & others), db.seal())


def _reached(db: Connection, roots: Iterable[tuple[int | None]]) -> set[int]:
    found = [root for (root,) in roots if root is not None]
    return {row[0] for row in db.rows(REACHED, _listed(found))}


def _with_descendants(db: Connection, nodes: set[int]) -> set[int]:
    """Add what follows these nodes: deleted sessions that forked from them, which nothing else holds.

    A root holds no word of a conversation, and all sessions of an app have the same one; it stays while it is needed.
    """
    rows = db.rows(
        "SELECT seq FROM node WHERE parent IS NULL AND seq IN (SELECT value FROM json_each(?))", _listed(nodes)
    )
    roots = {row[0] for row in rows}
    doomed = {row[0] for row in db.rows(FOLLOWING, _listed(nodes - roots))}
    needed = {row[0] for row in db.rows(NEEDED, _listed(roots), _listed(doomed))}
    return doomed | (roots - needed)


def _listed(seqs: Iterable[int]) -> str:
    """Give row numbers to a statement."""
    return json.dumps(list(seqs))


def _unused_apps(db: Connection, doomed: set[int]) -> list[int]:
    select = """
    SELECT seq FROM app WHERE seq NOT IN (
        SELECT app FROM node WHERE seq NOT IN (SELECT value FROM json_each(?))
        UNION SELECT app FROM run WHERE app IS NOT NULL)"""
    return [row[0] for row in db.rows(select, _listed(doomed))]


def _delete(db: Connection, doomed: set[int], apps: list[int]) -> None:
    gone = _listed(doomed)
    for statement in SEVERING:
        db.run(statement, gone)
    db.run("DELETE FROM app WHERE seq IN (SELECT value FROM json_each(?))", _listed(apps))
    db.run("DELETE FROM ref WHERE node IS NULL AND seq NOT IN (SELECT ref FROM reflog)")
    db.words.part()
