"""The bytes of attachments, stored once by an owner under their hash, with the nodes and open runs that refer to it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.sql import Database

INSERT = "INSERT INTO blob(owner, hash, data) VALUES(?, ?, ?) ON CONFLICT(owner, hash) DO NOTHING"


class Blobs:
    """The attachments of one owner of a store. An import may leave their bytes out; their rows have no data then.

    Owners do not share bytes: who knows a hash does not get what another owner stored under it.
    """

    def __init__(self, db: Database, owner: str = "") -> None:
        self._db = db
        self._owner = owner

    def put(self, attachment: Attachment) -> int:
        """Store an attachment, unless it is stored, and return its row, within a transaction of the caller."""
        key, data = bytes.fromhex(attachment.sha256), attachment.data or None
        row = self._db.row("SELECT seq, data IS NULL FROM blob WHERE owner = ? AND hash = ?", self._owner, key)
        if row is None:
            seq = self._db.insert(INSERT, self._owner, key, data)
            return self.put(attachment) if seq is None else seq  # another process was faster
        if row[1] and data is not None:
            self._db.run("UPDATE blob SET data = ? WHERE seq = ?", data, row[0])
        return int(row[0])

    def link(self, table: Literal["node", "run"], seq: int, attachments: Iterable[Attachment]) -> None:
        """Store attachments, and that a node or a run refers to them, within a transaction of the caller."""
        insert = f"INSERT INTO {table}_blob({table}, blob) VALUES(?, ?) ON CONFLICT DO NOTHING"
        for attachment in attachments:
            self._db.run(insert, seq, self.put(attachment))

    def data(self, sha256: str) -> bytes:
        """Return the bytes of a hash, none where the store does not have them."""
        select = "SELECT data FROM blob WHERE owner = ? AND hash = ?"
        data: bytes | None = self._db.one(select, self._owner, bytes.fromhex(sha256))
        return data or b""

    def fill(self, attachments: Iterable[Attachment]) -> tuple[Attachment, ...]:
        """Return attachments with their bytes; those that the store does not have stay without.

        Raises:
            CorruptError: the bytes are not those of the attachment.
        """
        return tuple(each if each.data else self._filled(each) for each in attachments)

    def _filled(self, attachment: Attachment) -> Attachment:
        data = self.data(attachment.sha256)
        if not data:
            return attachment
        check_content(attachment, data)
        return replace(attachment, data=data)


def check_content(attachment: Attachment, data: bytes) -> None:
    """Check that bytes are those that an attachment refers to, and of its type.

    Raises:
        CorruptError: they are not.
    """
    try:
        found = Attachment.from_bytes(data, attachment.name)
    except InputError:
        found = None
    if found != attachment:
        raise CorruptError(f"the attachment {attachment.label} does not match its hash, size or type; run `taiwa fsck`")
