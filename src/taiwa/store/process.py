"""Which process is which: a process id comes back after a while, so it is kept together with the start of the process."""

import os
from functools import lru_cache
from pathlib import Path

__all__ = ["identity", "is_alive", "own"]

PROCESSES = Path("/proc")
GONE = ("Z", "X")
"""States of a process that has ended and was not yet waited for."""


def own() -> tuple[int, str]:
    """Return the id and the start of this process."""
    return _own(os.getpid())


@lru_cache(maxsize=1)
def _own(pid: int) -> tuple[int, str]:
    return pid, identity(pid)


def identity(pid: int) -> str:
    """Say when a process began (boot and clock ticks since), "" when that cannot be known or it has ended."""
    try:
        state, *fields = (PROCESSES / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in GONE or len(fields) < 19 else f"{_boot()} {fields[18]}"


def is_alive(pid: int, token: str) -> bool:
    """Say whether the process that had this identity still runs; 0 is the id of none."""
    if pid == 0:
        return False
    if (PROCESSES / "self" / "stat").exists():
        return token != "" and identity(pid) == token
    if os.name == "nt":
        return pid == os.getpid()  # there, os.kill would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return (PROCESSES / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
