"""Looking whether a store is sound: every hash is derived anew; faults are reported, never mended in silence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taiwa.conversation.node import AppSource, Node
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.store.bodies import texts, unpack
from taiwa.store.connection import Connection, Row
from taiwa.store.names import check_name
from taiwa.store.nodes import COLUMNS, app_of, node_of
from taiwa.store.words import index_text

__all__ = ["Fault", "fsck"]

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
    ("batch row", "key", "result"),
    ("snapshot", "node", "state"),
)
"""What is called how, by which column it is named, and the column of its body."""
TABLES = {"batch row": "item", "snapshot": "snap"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, and what; it never shows what was said."""

    where: str
    what: str


def fsck(db: Connection) -> tuple[Fault, ...]:
    """Check the file, every hash, every parent, name, body and word of the index, in one unchanging view."""
    parts = (_file, _apps, _nodes, _names, _bodies, _words)
    found: list[Fault] = []
    try:
        with db.transaction(write=False):
            for part in parts:
                found += _as_far_as_readable(part(db))
    except CorruptError as error:
        found.append(Fault("file", error.message))
    return tuple(found)


def _as_far_as_readable(faults: Iterator[Fault]) -> Iterator[Fault]:
    try:
        yield from faults
    except CorruptError as error:
        yield Fault("file", error.message)


def _file(db: Connection) -> Iterator[Fault]:
    for where, what in db.check():
        yield Fault(where, what)


def _apps(db: Connection) -> Iterator[Fault]:
    for hashed, name, body in db.rows("SELECT hash, name, body FROM app"):
        try:
            found = app_of(name, body)
        except CorruptError:
            yield Fault(f"app {hashed.hex()}", "its body cannot be read")
            continue
        if _hash(found) != hashed.hex():
            yield Fault(f"app {hashed.hex()}", "its content does not fit its hash")


def _nodes(db: Connection) -> Iterator[Fault]:
    parents: dict[int, int | None] = {}
    turns: dict[int, int] = {}
    last = -(2**62)
    while rows := db.rows(NODES, last):
        last = rows[-1][0]
        for seq, hashed, parent, base, count, above, *columns in rows:
            where = f"node {hashed.hex()}"
            parents[seq], turns[seq] = parent, count
            yield from _node(where, hashed, above, tuple(columns))
            if parent is not None and parent not in turns:
                yield Fault(where, "its parent is missing or younger than it is")
            elif count != turns.get(parent or 0, 0) + (columns[0] == "turn"):
                yield Fault(where, "its number of turns is wrong")
            if not _leads_to(parents, parent, base):
                yield Fault(where, "what undo goes back to is no ancestor")


def _node(where: str, hashed: bytes, parent: bytes | None, columns: Row) -> Iterator[Fault]:
    if columns[1] is None:
        return  # without its app; the file's own check has said so
    try:
        found = node_of(parent, columns)
    except CorruptError:
        yield Fault(where, "its body cannot be read")
        return
    if _hash(found) != hashed.hex():
        yield Fault(where, "its content does not fit its hash")


def _leads_to(parents: dict[int, int | None], seq: int | None, base: int | None) -> bool:
    while seq is not None and base is not None and seq > base:
        seq = parents.get(seq)
    return seq == base


def _hash(item: AppSource | Node) -> str:
    try:
        return item.hash
    except InputError:
        return ""  # a damaged body may hold what no text can be


def _names(db: Connection) -> Iterator[Fault]:
    for (where,) in db.rows(NAMED):
        yield Fault(str(where), "names a node or move that is not there")
    for (name,) in db.rows("SELECT name FROM ref WHERE node IS NOT NULL"):
        try:
            check_name(name)
        except InputError:
            yield Fault(f"ref {name!r}", "is no name for a session")


def _bodies(db: Connection) -> Iterator[Fault]:
    for what, name, column in BODIES:
        select = f"SELECT {name}, {column} FROM {TABLES.get(what, what)} WHERE {column} IS NOT NULL"  # noqa: S608  (constants)
        for which, body in db.rows(select):
            try:
                unpack(body)
            except CorruptError:
                yield Fault(f"{what} {which.hex() if isinstance(which, bytes) else which}", "its body cannot be read")


def _words(db: Connection) -> Iterator[Fault]:
    """Compare the words of the index with those of the texts, as sums per node that do not depend on the order."""
    indexed: dict[int, int] = {}
    for seq, word in db.words.held():
        indexed[seq] = indexed.get(seq, 0) + hash(word)
    for seq, hashed, body in db.words.covered():
        try:
            words = index_text(*texts(body)).split()
        except CorruptError:
            continue  # said already
        if indexed.pop(seq, 0) != _sum(words):
            yield Fault(
                f"node {hashed.hex()}", "searching does not know its words: run `taiwa gc`, which empties the index"
            )
    if indexed:
        yield Fault(
            "search", f"{len(indexed)} texts are indexed that are not there: run `taiwa gc`, which empties the index"
        )


def _sum(words: Iterable[str]) -> int:
    return sum(map(hash, words))
