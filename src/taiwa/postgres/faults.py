"""What a PostgreSQL server and its driver complain of, as our errors: one table of SQLSTATEs."""

from taiwa.kernel.errors import ConflictError, CorruptError, InputError, StoreError, TaiwaError
from taiwa.postgres.address import Server
from taiwa.postgres.kind import Kind

__all__ = ["translate", "unreachable"]

FIRST = "another program was first; nothing was changed, try again"
GONE = "lost its connection: see whether the server runs, and try again; look whether the last step was done"
MEMORY = "has no memory left for this: ask for less, or give the server more"
SEALED = "may not be written by this user: let the owner of the database grant it, or choose another database"

TABLE: dict[str, tuple[type[TaiwaError], str]] = {
    "08": (StoreError, GONE),
    "22001": (InputError, "cannot hold so long a text"),
    "22003": (InputError, "holds numbers of 64 bits, and one is too large"),
    "22021": (InputError, "keeps no text with a NUL character, or one that is not Unicode"),
    "22P05": (InputError, "keeps no text with a NUL character, or one that is not Unicode"),
    "23503": (StoreError, "no longer has what this belongs to: it was forgotten meanwhile"),
    "23505": (ConflictError, FIRST),
    "25006": (StoreError, "is open for reading only: open it for writing, and not on a standby server"),
    "25P03": (StoreError, "ended a step that took minutes without a word; nothing was changed, try again"),
    "3F000": (StoreError, "is no longer there: it was dropped meanwhile"),
    "40": (ConflictError, FIRST),
    "42501": (StoreError, SEALED),
    "42P01": (StoreError, "no longer has its tables: they were dropped meanwhile"),
    "53100": (StoreError, "has no space left: free some disk space and try again; nothing was changed"),
    "53200": (StoreError, MEMORY),
    "53300": (StoreError, "has too many connections: end some, or raise max_connections"),
    "54": (InputError, "cannot hold so much in one row"),
    "55P03": (StoreError, "is locked by another program that is writing: wait for it, or end it, and try again"),
    "57014": (StoreError, "took too long for one step and ended it: see the server's statement_timeout"),
    "57P": (StoreError, GONE),
    "XX001": (CorruptError, "is damaged: restore a backup of the database"),
    "XX002": (CorruptError, "has a damaged index: let the server's keeper run REINDEX DATABASE"),
}


def translate(error: Exception, server: Server, kind: Kind) -> Exception:
    """Return our error for one of the driver's; neither a password nor a value that a statement carried is in it."""
    where = f"{kind} on {server}"
    if isinstance(error, UnicodeEncodeError):
        return InputError("the text holds half a character (a lone surrogate); give valid Unicode")
    if isinstance(error, OverflowError):
        return InputError(f"a number is too large for {kind}: it holds 64 bits")
    state = getattr(error, "sqlstate", None)
    if isinstance(state, str):
        for length in (5, 3, 2):
            if (found := TABLE.get(state[:length])) is not None:
                return found[0](f"{where} {found[1]}")
        return StoreError(f"{where} refused a step ({type(error).__name__}, {state}): see the server's log")
    if "NUL" in str(error):
        return InputError(f"{where} {TABLE['22021'][1]}")
    if "closed" in str(error):
        return StoreError(f"{where} is closed: open it again")
    return StoreError(f"{where} {GONE}")


def unreachable(error: Exception, server: Server) -> StoreError:
    """Say in one line why a server could not be opened. The driver gives words only, in the server's language."""
    said = " ".join(str(error).split()).rpartition("FATAL:")[2].strip()
    words = said.lower()
    if "password" in words or "authentication" in words:
        why, mend = "does not take this password", "give it in the address, in PGPASSWORD or in ~/.pgpass"
    elif "does not exist" in words and "database" in words:
        why, mend = "has no such database", "make it: createdb NAME"
    elif "does not exist" in words and "role" in words:
        why, mend = "knows no such user", "make it: createuser NAME"
    elif "too many" in words or "remaining connection slots" in words:
        why, mend = "has too many connections", "end some, or raise max_connections"
    elif "starting up" in words or "shutting down" in words:
        why, mend = "is starting or ending", "try again in a moment"
    elif "ssl" in words or "no pg_hba.conf entry" in words:
        why, mend = "does not let this connection in", "see sslmode in the address, and pg_hba.conf on the server"
    else:
        why, mend = "cannot be reached", "see whether it runs, and whether host and port are right"
    return StoreError(f"the server {server} {why}: {mend}")
