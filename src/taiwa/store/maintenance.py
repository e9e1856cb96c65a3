"""Checking and deleting: `fsck` recomputes every hash, `gc` deletes unreferenced data, `delete_session` a session.

Problems are reported, never repaired silently.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256

from taiwa.conversation.app import AppSource
from taiwa.conversation.history import Node
from taiwa.kernel.errors import CorruptError, InputError, NotFoundError, StoreError
from taiwa.kernel.serialization import value
from taiwa.kernel.wording import Wording
from taiwa.sql import Database, SqlRow
from taiwa.store.nodes import COLUMNS, app_from_row, decoding, node_from_row, unpack
from taiwa.store.refs import Refs, check_name, composed
from taiwa.store.runs import DAY_US, MINUTE_US, MOST_TOKENS

BATCH = 500
NODES = f"""
SELECT node.seq, node.hash, node.parent, node.base, node.turns, parent.hash, {COLUMNS}
FROM node LEFT JOIN app ON app.seq = node.app LEFT JOIN node parent ON parent.seq = node.parent
WHERE node.seq > ? ORDER BY node.seq LIMIT {BATCH}"""  # noqa: S608  (constants)
NAMED = """
WITH named(what, seq) AS (
    SELECT 'ref ' || name, node FROM ref
    UNION ALL SELECT 'reflog ' || seq, old FROM reflog
    UNION ALL SELECT 'reflog ' || seq, new FROM reflog
    UNION ALL SELECT 'run ' || seq, base FROM run
    UNION ALL SELECT 'run ' || seq, node FROM run)
SELECT what FROM named WHERE seq IS NOT NULL AND seq NOT IN (SELECT seq FROM node)
UNION ALL SELECT 'ref ' || name FROM ref WHERE node IS NOT NULL AND moved NOT IN (SELECT seq FROM reflog)"""
BODIES = (
    ("run", "seq", "input"),
    ("run", "seq", "error"),
    ("call", "seq", "answer"),
    ("call", "seq", "error"),
    ("batch_item", "key", "result"),
    ("snapshot", "node", "state"),
    ("user_profile", "seq", "body"),
    ("feedback", "seq", "body"),
)
"""Tables, the column that names a row in a report, and the column of a body."""


REFERENCES = (
    ("node", "seq", "parent", "node"),
    ("node", "seq", "app", "app"),
    ("reflog", "seq", "ref", "ref"),
    ("run", "seq", "app", "app"),
    ("call", "seq", "run", "run"),
    ("snapshot", "node", "node", "node"),
    ("feedback", "seq", "user_profile", "user_profile"),
    ("owned_node", "node", "node", "node"),
    ("owned_app", "app", "app", "app"),
    ("untrusted_app", "app", "app", "app"),
    ("node_blob", "node", "node", "node"),
    ("node_blob", "blob", "blob", "blob"),
    ("run_blob", "run", "run", "run"),
    ("run_blob", "blob", "blob", "blob"),
    ("user_session", "ref", "ref", "ref"),
    ("user_session", "ref", "user_profile", "user_profile"),
)
"""Tables, the column that names a row in a report, the column that refers, and the table that it refers to."""


TIMED = ("node", "reflog", "run", "call", "batch_item", "user_profile", "feedback")
"""Tables with a time; all but `batch_item`, which has `key`, have `seq`."""
TIMES = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first and the last microsecond of the years 1 to 9999."""
TOKENS = " OR ".join(
    f"{column} NOT BETWEEN 0 AND ?" for column in ("input", "output", "cache_read", "cache_write", "reasoning")
)


@value
class FsckProblem:
    """One problem and its location; it never contains text of a conversation."""

    where: str
    what: str


def fsck(db: Database) -> tuple[FsckProblem, ...]:
    """Check the file, every hash, parent, name, body and word of the index, in one snapshot; nothing is changed."""
    parts: dict[str, Callable[[Database], Iterable[FsckProblem]]] = {
        "file": _file, "nodes": _nodes, "attachments": _blobs, "names": _names, "bodies": _bodies, "numbers": _numbers,
    }  # fmt: skip
    problems: list[FsckProblem] = []
    with suppress(StoreError), db.transaction(write=False):  # a damaged file may raise again at the end
        for where, check in parts.items():
            try:
                with decoding("table"):
                    for problem in check(db):
                        problems.append(problem)  # noqa: PERF402  (what was yielded before an error counts)
            except StoreError as error:
                problems.append(FsckProblem(where, without_advice(error.message)))
    return tuple(problems)


def without_advice(message: str) -> str:
    """Return the message of an error without the advice to run `taiwa fsck`."""
    return message.partition("; run `taiwa fsck`")[0]


def _file(db: Database) -> Iterator[FsckProblem]:
    for damage in db.damages():
        yield FsckProblem("file", damage)
    for table, key, column, target in REFERENCES:
        there = f"EXISTS(SELECT 1 FROM {target} WHERE {target}.seq = one.{column})"  # noqa: S608  (constants)
        for (row,) in db.rows(f"SELECT {key} FROM {table} AS one WHERE {column} IS NOT NULL AND NOT {there}"):  # noqa: S608
            yield FsckProblem(f"{table} {row}", f"refers to a row of {target} that does not exist")


def _nodes(db: Database) -> Iterator[FsckProblem]:
    for hashed, name, body in db.rows("SELECT hash, name, body FROM app"):
        yield from _content(f"app {hashed.hex()}", hashed, partial(app_from_row, name, body))
    parents: dict[int, int | None] = {}
    turns: dict[int, int] = {}
    for seq, hashed, parent, base, count, above, *columns in _rows_of_nodes(db):
        where = f"node {hashed.hex()}"
        parents[seq], turns[seq] = parent, count
        if columns[1] is not None:  # a missing app was reported by the check of the references
            yield from _content(where, hashed, partial(node_from_row, above, tuple(columns)))
        if parent is not None and (parent not in turns or parent >= seq):
            yield FsckProblem(where, "its parent is missing or younger than it is")
        elif count != turns.get(parent or 0, 0) + (columns[0] == "turn"):
            yield FsckProblem(where, "its number of turns is wrong")
        if not _leads_to(parents, parent, base):
            yield FsckProblem(where, "the target of its undo is not an ancestor")


def _rows_of_nodes(db: Database) -> Iterator[SqlRow]:
    """Yield the rows of all nodes, read in portions."""
    last = -(2**62)
    while rows := db.rows(NODES, last):
        last = rows[-1][0]
        yield from rows


def _content(where: str, hashed: bytes, read: Callable[[], AppSource | Node]) -> Iterator[FsckProblem]:
    try:
        content_hash = read().hash
    except CorruptError:
        yield FsckProblem(where, "its body cannot be read")
        return
    except InputError:
        content_hash = ""  # a damaged body may contain text that cannot be encoded
    if content_hash != hashed.hex():
        yield FsckProblem(where, "its content does not match its hash")


def _leads_to(parents: dict[int, int | None], seq: int | None, base: int | None) -> bool:
    while seq is not None and base is not None and seq > base:
        above = parents.get(seq)
        if above is not None and above >= seq:
            return False
        seq = above
    return seq == base


def _blobs(db: Database) -> Iterator[FsckProblem]:
    """Compare every attachment with its hash, and the references in nodes with those in the store."""
    for seq, hashed in db.rows("SELECT seq, hash FROM blob"):
        data = db.one("SELECT data FROM blob WHERE seq = ?", seq)  # one at a time, because they are large
        if data is not None and sha256(data).digest() != hashed:
            yield FsckProblem(f"blob {hashed.hex()}", "its content does not match its hash")
    linked: dict[int, set[bytes]] = {}
    for seq, hashed in db.rows("SELECT node, hash FROM node_blob JOIN blob ON blob.seq = node_blob.blob"):
        linked.setdefault(seq, set()).add(hashed)
    for seq, hashed, _, _, _, above, *columns in _rows_of_nodes(db):
        try:
            named = {bytes.fromhex(each.sha256) for each in node_from_row(above, tuple(columns)).files}
        except CorruptError:
            continue  # reported already
        if named != linked.get(seq, set()):
            yield FsckProblem(f"node {hashed.hex()}", "its attachments are not those that the store keeps for it")


def _names(db: Database) -> Iterator[FsckProblem]:
    for (where,) in db.rows(NAMED):
        yield FsckProblem(str(where), "refers to a node or move that does not exist")
    for (name,) in db.rows("SELECT name FROM ref WHERE node IS NOT NULL"):
        try:
            check_name(name)
        except InputError:
            yield FsckProblem(f"ref {name!r}", "is not a valid session name")


def _bodies(db: Database) -> Iterator[FsckProblem]:
    for table, key, column in BODIES:
        select = f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608  (constants)
        for which, body in db.rows(select):
            try:
                unpack(body)
            except CorruptError:
                where = which.hex() if isinstance(which, bytes) else which
                yield FsckProblem(f"{table} {where}", "its body cannot be read")


def _numbers(db: Database) -> Iterator[FsckProblem]:
    for table in TIMED:
        key = "key" if table == "batch_item" else "seq"
        for (row,) in db.rows(f"SELECT {key} FROM {table} WHERE at_us NOT BETWEEN ? AND ?", *TIMES):  # noqa: S608
            where = row.hex() if isinstance(row, bytes) else row
            yield FsckProblem(f"{table} {where}", "its time is not in a year from 1 to 9999")
    for (row,) in db.rows(f"SELECT seq FROM call WHERE {TOKENS}", *[MOST_TOKENS] * TOKENS.count("?")):  # noqa: S608
        yield FsckProblem(f"call {row}", "its numbers of tokens cannot be right")


ALL_MOVES = "ref IN (SELECT seq FROM ref WHERE node IS NOT NULL)"
NEWEST_MOVES = "seq > coalesce((SELECT seq FROM reflog ORDER BY seq DESC LIMIT 1 OFFSET {keep:d}), 0)"
"""The moves of names whose nodes `gc` keeps for undo, redo and `name@{n}`."""

REACHED = """
WITH RECURSIVE reached(seq) AS (
    SELECT value FROM json_each(?)
    UNION SELECT node.parent FROM reached JOIN node ON node.seq = reached.seq WHERE node.parent IS NOT NULL)
SELECT seq FROM reached"""
REACHABLE_FROM = """
SELECT node FROM ref
UNION SELECT old FROM reflog WHERE {kept}
UNION SELECT new FROM reflog WHERE {kept}
UNION SELECT base FROM run WHERE status = 'open'"""
OWN = """
SELECT node FROM ref WHERE name = ?1 AND owner = ?2
UNION SELECT old FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name = ?1 AND owner = ?2)
UNION SELECT new FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE name = ?1 AND owner = ?2)
UNION SELECT base FROM run WHERE ref = ?1 AND owner = ?2
UNION SELECT node FROM run WHERE ref = ?1 AND owner = ?2"""
OTHERS = """
SELECT node FROM ref WHERE (name <> ?1 OR owner <> ?2)
UNION SELECT old FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE (name <> ?1 OR owner <> ?2) AND node IS NOT NULL)
UNION SELECT new FROM reflog WHERE ref IN (SELECT seq FROM ref WHERE (name <> ?1 OR owner <> ?2) AND node IS NOT NULL)
UNION SELECT base FROM run WHERE (ref <> ?1 OR owner <> ?2) AND status = 'open'"""

FOLLOWING = """
WITH RECURSIVE down(seq) AS (
    SELECT value FROM json_each(?)
    UNION SELECT node.seq FROM down JOIN node ON node.parent = down.seq)
SELECT seq FROM down"""
NEEDED = """
SELECT DISTINCT parent FROM node
WHERE parent IN (SELECT value FROM json_each(?)) AND seq NOT IN (SELECT value FROM json_each(?))"""
OLD_MOVES = "FROM reflog WHERE NOT ({kept}) AND seq NOT IN (SELECT moved FROM ref WHERE node IS NOT NULL)"
SEVERING = (
    "UPDATE run SET node = NULL WHERE node IN (SELECT value FROM json_each(?))",
    "UPDATE run SET base = NULL WHERE base IN (SELECT value FROM json_each(?))",
    "UPDATE reflog SET old = NULL WHERE old IN (SELECT value FROM json_each(?))",
    "UPDATE reflog SET new = NULL WHERE new IN (SELECT value FROM json_each(?))",
    "DELETE FROM node WHERE seq IN (SELECT value FROM json_each(?))",
)


@value
class GcResult:
    """What `gc` deleted, or would delete."""

    nodes: int
    apps: int
    moves: int
    attachments: int = 0


@value
class DeleteResult:
    """What `delete_session` deleted; `shared` nodes stay, because other sessions use them.

    `log_emptied` is false while another program uses the store: until it ends, the write-ahead log next to the file may
    still contain deleted data. A server keeps it for a while in any case.
    """

    nodes: int
    runs: int
    shared: int
    log_emptied: bool


def gc(db: Database, keep: int | None = None, *, dry_run: bool = False) -> GcResult:
    """Delete the nodes, apps and attachments that no session reaches, and none ever did: what a session left by an edit or undo stays.

    With `keep`, only what one of the newest `keep` moves of all names left stays, and older moves are deleted. The costs
    of deleted nodes stay. With `dry_run` nothing is changed.
    """
    if keep is not None and keep < 0:
        raise InputError(f"the number of moves to keep must not be negative, got {keep}")
    kept = ALL_MOVES if keep is None else NEWEST_MOVES.format(keep=keep)
    with db.transaction(write=not dry_run, exclusive=not dry_run):
        reachable = _reached(db, db.rows(REACHABLE_FROM.format(kept=kept)))
        deleted = {row[0] for row in db.rows("SELECT seq FROM node")} - reachable
        moves = int(db.one(f"SELECT count(*) {OLD_MOVES.format(kept=kept)}"))
        apps, blobs = _unused_apps(db, deleted), _unused_blobs(db, deleted)
        if not dry_run:
            db.run(f"DELETE {OLD_MOVES.format(kept=kept)}")
            _delete(db, deleted, apps, blobs)
    if not dry_run:
        db.vacuum()
    return GcResult(len(deleted), len(apps), moves, len(blobs))


def require_session(db: Database, refs: Refs, name: str, owner: str = "") -> int:
    """Return the number of runs of a session; one whose first turn was interrupted has no node yet.

    Raises:
        InputError: there never was a session of that name.
    """
    name = composed(name)
    runs = db.one("SELECT count(*) FROM run WHERE ref = ? AND owner = ?", name, owner)
    if not runs and not db.one("SELECT EXISTS(SELECT 1 FROM ref WHERE name = ? AND owner = ?)", name, owner):
        raise NotFoundError(Wording("session {name!r} not found; {hint}", name=name, hint=refs.hint(name)))
    return int(runs)


def delete_session(db: Database, refs: Refs, name: str, owner: str = "") -> DeleteResult:
    """Delete a session of an owner permanently: its name, reflog, runs, calls, and the nodes that no other session uses.

    Deleted content is overwritten with zeros. Rows of batches do not belong to a session and stay.

    Raises:
        InputError: there never was a session of that name.
    """
    name = composed(name)
    with db.transaction(exclusive=True):
        runs = require_session(db, refs, name, owner)
        own = _reached(db, db.rows(OWN, name, owner))
        others = _reached(db, db.rows(OTHERS, name, owner))
        _forget_runs(db, name, owner)
        db.run("DELETE FROM ref WHERE name = ? AND owner = ?", name, owner)
        db.run("DELETE FROM shared_run WHERE session = ? AND owner = ?", name, owner)
        deleted = _with_descendants(db, own - others)
        _delete(db, deleted, _unused_apps(db, deleted), _unused_blobs(db, deleted))
    db.vacuum()
    return DeleteResult(len(deleted), runs, len(own & others), db.erase_deleted())


def _forget_runs(db: Database, name: str, owner: str) -> None:
    """Delete the runs of a session; of those of today, and of the last minute, a row without content stays, with what they cost.

    Otherwise a caller could spend its budget of a day again, and exceed its rate, by deleting conversations.
    """
    now, where = db.clock(), "WHERE ref = ? AND owner = ?"
    day = now - now % DAY_US
    paid = "coalesce((SELECT sum(cost_nano) FROM call WHERE call.run = run.seq AND call.at_us >= ?), 0)"
    runs = f"SELECT seq, at_us, reserved + {paid} FROM run {where} AND at_us >= ?"  # noqa: S608
    kept = [row for row in db.rows(runs, day, name, owner, min(day, now - MINUTE_US)) if owner or row[2]]
    db.run(f"DELETE FROM run {where}", name, owner)  # noqa: S608
    for _, at, spent in kept:
        insert = """INSERT INTO run(owner, ref, app, base, status, input, pid, attempt, at_us, reserved)
            VALUES(?, '', NULL, NULL, 'done', NULL, 0, '', ?, ?)"""
        db.insert(insert, owner, at, spent)


def _reached(db: Database, roots: Iterable[tuple[int | None]]) -> set[int]:
    rows = [root for (root,) in roots if root is not None]
    return {row[0] for row in db.rows(REACHED, _as_json(rows))}


def _with_descendants(db: Database, nodes: set[int]) -> set[int]:
    """Add the descendants of these nodes: deleted sessions that forked from them and are otherwise unused.

    A root contains no text of a conversation, and all sessions of an app share it; it stays while it is needed.
    """
    rows = db.rows(
        "SELECT seq FROM node WHERE parent IS NULL AND seq IN (SELECT value FROM json_each(?))", _as_json(nodes)
    )
    roots = {row[0] for row in rows}
    deleted = {row[0] for row in db.rows(FOLLOWING, _as_json(nodes - roots))}
    needed = {row[0] for row in db.rows(NEEDED, _as_json(roots), _as_json(deleted))}
    return deleted | (roots - needed)


def _as_json(seqs: Iterable[int]) -> str:
    """Return row numbers as a parameter for `json_each`."""
    with decoding("row"):
        return json.dumps(list(seqs))


def _unused_apps(db: Database, deleted: set[int]) -> list[int]:
    select = """
    SELECT seq FROM app WHERE seq NOT IN (
        SELECT app FROM node WHERE seq NOT IN (SELECT value FROM json_each(?))
        UNION SELECT app FROM run WHERE app IS NOT NULL)"""
    return [row[0] for row in db.rows(select, _as_json(deleted))]


def _unused_blobs(db: Database, deleted: set[int]) -> list[int]:
    """Return the attachments that neither another node nor a turn that can be resumed refers to."""
    select = """
    SELECT seq FROM blob WHERE seq NOT IN (
        SELECT blob FROM node_blob WHERE node NOT IN (SELECT value FROM json_each(?))
        UNION SELECT blob FROM run_blob JOIN run ON run.seq = run_blob.run WHERE run.status = 'open')"""
    return [row[0] for row in db.rows(select, _as_json(deleted))]


def _delete(db: Database, deleted: set[int], apps: list[int], blobs: list[int]) -> None:
    rows = _as_json(deleted)
    for statement in SEVERING:
        db.run(statement, rows)
    db.run("DELETE FROM app WHERE seq IN (SELECT value FROM json_each(?))", _as_json(apps))
    db.run("DELETE FROM run_blob WHERE blob IN (SELECT value FROM json_each(?))", _as_json(blobs))
    db.run("DELETE FROM blob WHERE seq IN (SELECT value FROM json_each(?))", _as_json(blobs))
    db.run("DELETE FROM ref WHERE node IS NULL AND seq NOT IN (SELECT ref FROM reflog)")
