"""What SQLite and the file system complain of, as our errors: one table."""

import errno
import sqlite3
from pathlib import Path

from taiwa.kernel.errors import CorruptError, InputError, StoreError
from taiwa.sqlite.kind import Kind

__all__ = ["translate"]

DAMAGED = "is damaged: {mend}"
FOREIGN = "is not a {name}: name another file"
FULL = "has no space left: free some disk space and try again; nothing was changed"
LOCKED = "is locked by another program that is writing: wait for it, or end it, and try again"
ORPHAN = "no longer has what this belongs to: it was forgotten meanwhile"
SEALED = "cannot be written: mend the permissions of the file and its folder, or choose another {name}"
UNREACHABLE = "cannot be opened: see whether its folder exists and may be read"

TABLE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_AUTH: (StoreError, SEALED),
    sqlite3.SQLITE_BUSY: (StoreError, LOCKED),
    sqlite3.SQLITE_CANTOPEN: (StoreError, UNREACHABLE),
    sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY: (StoreError, ORPHAN),
    sqlite3.SQLITE_CORRUPT: (CorruptError, DAMAGED),
    sqlite3.SQLITE_FULL: (StoreError, FULL),
    sqlite3.SQLITE_IOERR: (StoreError, "could not be read or written (disk error): see whether the disk is well"),
    sqlite3.SQLITE_LOCKED: (StoreError, LOCKED),
    sqlite3.SQLITE_NOMEM: (StoreError, "does not fit into the memory that is left"),
    sqlite3.SQLITE_NOTADB: (CorruptError, FOREIGN),
    sqlite3.SQLITE_PERM: (StoreError, SEALED),
    sqlite3.SQLITE_PROTOCOL: (StoreError, LOCKED),
    sqlite3.SQLITE_READONLY: (StoreError, SEALED),
    sqlite3.SQLITE_TOOBIG: (StoreError, "cannot hold a text of a thousand million bytes"),
}
FILES = {
    errno.EACCES: SEALED,
    errno.EDQUOT: FULL,
    errno.ENOSPC: FULL,
    errno.EPERM: SEALED,
    errno.EROFS: SEALED,
}


def translate(error: Exception, path: Path | None, kind: Kind) -> Exception:
    """Return our error for one of `sqlite3`'s or the system's; values that a statement carried never appear in it."""
    file = f"{kind} {path}" if path is not None else f"{kind} in memory"
    if isinstance(error, UnicodeEncodeError):
        return InputError("the text holds half a character (a lone surrogate); give valid Unicode")
    if isinstance(error, OverflowError):
        return InputError(f"a number is too large for {kind}: it holds 64 bits")
    if isinstance(error, OSError):
        return StoreError(f"{file} {_filled(FILES.get(error.errno or 0, UNREACHABLE), kind)}")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreError(f"{file} is closed: open it again")
    code = getattr(error, "sqlite_errorcode", None)
    found = TABLE.get(code) or TABLE.get(code & 0xFF) if isinstance(code, int) else None
    if found is not None:
        cls, words = found
        return cls(f"{file} {_filled(words, kind)}")
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(f"{file} refused a step ({name}): {kind.mend}")


def _filled(words: str, kind: Kind) -> str:
    return words.replace("{name}", kind.name).replace("{mend}", kind.mend)
