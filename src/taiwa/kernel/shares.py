"""Shares of threads and processes: a server marks the caller for whom a task works, so that the work of one caller does not delay that of others."""

from contextvars import ContextVar
from zlib import crc32

WORK_OF: ContextVar[str] = ContextVar("work_of", default="")
"""The caller whose work is done; "" is the program itself."""
SHARES = 32


def current_share() -> int:
    """Return the number of the share of the current work, 0 for that of the program itself."""
    caller = WORK_OF.get()
    return 1 + crc32(caller.encode()) % SHARES if caller else 0
