"""Searching what was said, in any language, newest first.

The index is a cache that `search` itself brings up to date, so that turns do not pay for it. It only narrows down: every
candidate's text is looked at, so what is found does contain what was asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from taiwa.kernel.errors import InputError
from taiwa.store.bodies import texts
from taiwa.store.connection import Connection
from taiwa.store.words import Excerpt, excerpt, fold

__all__ = ["Hit", "search"]

BATCH = 500
REFS = """
WITH RECURSIVE
    hit(seq) AS (SELECT value FROM json_each(?)),
    down(hit, seq) AS (
        SELECT seq, seq FROM hit
        UNION SELECT down.hit, node.seq FROM down JOIN node ON node.parent = down.seq),
    reached(hit, seq) AS MATERIALIZED (SELECT hit, seq FROM down WHERE seq IN (SELECT node FROM ref))
SELECT reached.hit, ref.name FROM reached JOIN ref ON ref.node = reached.seq ORDER BY ref.moved DESC"""
FIRST = 2**62


@dataclass(frozen=True, slots=True)
class Hit:
    """A node whose text holds all that was asked for, the sessions it belongs to (latest first), and where it was found."""

    hash: str
    kind: str
    refs: tuple[str, ...]
    excerpt: Excerpt
    at_us: int


def search(db: Connection, text: str, limit: int = 20) -> tuple[Hit, ...]:
    """Find the newest nodes whose words hold every one of the words given, without regard to case and width.

    A word is found by its beginning or within a run of Chinese, Japanese or the like; there is no query language.

    Raises:
        InputError: there is no word to look for, or nothing is to be found.
    """
    terms = fold(text).split()
    if not terms:
        raise InputError("give at least one word to look for")
    if limit < 1:
        raise InputError("look for at least one place")
    if not db.readonly:
        db.words.refresh()
    found: list[tuple[Any, ...]] = []
    for seq, hashed, kind, at, said in _candidates(db, terms):
        folded = fold(said)
        if all(term in folded for term in terms):
            found.append((seq, hashed, kind, at, said))
            if len(found) >= limit:
                break
    refs = _refs(db, [row[0] for row in found])
    return tuple(Hit(row[1].hex(), row[2], refs.get(row[0], ()), excerpt(row[4], terms), row[3]) for row in found)


def _candidates(db: Connection, terms: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Give what may hold the terms, newest first."""
    last = FIRST
    while rows := db.words.candidates(terms, last, BATCH):
        last = rows[-1][0]
        for seq, hashed, kind, at, body in rows:
            yield seq, hashed, kind, at, "\n".join(texts(body))


def _refs(db: Connection, seqs: Sequence[int]) -> dict[int, tuple[str, ...]]:
    names: dict[int, tuple[str, ...]] = {}
    for seq, name in db.rows(REFS, str(list(seqs))):
        names[seq] = (*names.get(seq, ()), name)
    return names
