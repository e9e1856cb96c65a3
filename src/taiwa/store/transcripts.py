"""Nodes by the content address of the messages that lead to them, for clients that resend their history."""

from collections.abc import Sequence
from dataclasses import dataclass

from taiwa.sql import Database
from taiwa.store.nodes import Nodes, hash_to_bytes

MOST_CANDIDATES = 16
"""How many nodes that end in the same turn are compared, the newest first."""
MOST_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """A node under the address of the whole history that leads to it, and the digest of its last turn."""

    node: str
    address: str
    session: str


class Transcripts:
    """The addresses of the nodes that clients of the server made. Each belongs to an owner and an app."""

    def __init__(self, db: Database, nodes: Nodes, owner: str) -> None:
        self._db = db
        self._nodes = nodes
        self._owner = owner

    def put(self, app: str, address: str, turn: str, node: str, session: str) -> None:
        """Store a node under an address; the newest node of an address is the one that is found."""
        insert = "INSERT INTO transcript(owner, app, address, turn, node, session) VALUES(?, ?, ?, ?, ?, ?)"
        self._db.run(
            insert, self._owner, app, hash_to_bytes(address), hash_to_bytes(turn), self._nodes.seq(node), session
        )

    def find(self, app: str, addresses: Sequence[str]) -> dict[str, TranscriptEntry]:
        """Return the newest node of each address that is known."""
        found: dict[str, TranscriptEntry] = {}
        for start in range(0, len(addresses), MOST_AT_ONCE):
            keys = [hash_to_bytes(address) for address in addresses[start : start + MOST_AT_ONCE]]
            marks = ", ".join("?" * len(keys))
            rows = self._db.rows(
                "SELECT node.hash, transcript.address, transcript.session FROM transcript "  # noqa: S608  (marks only)
                f"JOIN node ON node.seq = transcript.node WHERE transcript.address IN ({marks}) "
                "AND transcript.owner = ? AND transcript.app = ? ORDER BY transcript.seq",
                *keys, self._owner, app,
            )  # fmt: skip
            found |= {key.hex(): TranscriptEntry(node.hex(), key.hex(), session) for node, key, session in rows}
        return found

    def address_of(self, node: str) -> str | None:
        """Return the address of a node; None where no client led to it."""
        select = "SELECT address FROM transcript WHERE node = ? AND owner = ? ORDER BY seq DESC LIMIT 1"
        address: bytes | None = self._db.one(select, self._nodes.seq(node), self._owner)
        return None if address is None else address.hex()

    def ending_in(self, app: str, turn: str) -> tuple[TranscriptEntry, ...]:
        """Return the newest nodes whose last turn has that digest."""
        select = """
        SELECT node.hash, transcript.address, transcript.session FROM transcript JOIN node ON node.seq = transcript.node
        WHERE transcript.turn = ? AND transcript.owner = ? AND transcript.app = ? ORDER BY transcript.seq DESC LIMIT ?"""
        rows = self._db.rows(select, hash_to_bytes(turn), self._owner, app, MOST_CANDIDATES)
        return tuple(TranscriptEntry(node.hex(), address.hex(), session) for node, address, session in rows)
