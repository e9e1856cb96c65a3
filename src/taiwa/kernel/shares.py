"""Shares of threads and processes: a server sets whose work a task does, and what one caller waits for holds up no other."""

from contextvars import ContextVar
from zlib import crc32

WORK_OF: ContextVar[str] = ContextVar("work_of", default="")
"""The caller whose work is done; "" is the program itself."""
SHARES = 32


def current_share() -> int:
    """Return the number of the share of the current work, 0 for that of the program itself."""
    caller = WORK_OF.get()
    return 1 + crc32(caller.encode()) % SHARES if caller else 0
