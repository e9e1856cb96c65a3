"""A lock between processes that ends with its holder, however that one ends."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from taiwa.kernel.errors import ConflictError

__all__ = ["held"]

LOOK_AGAIN = 0.05


@contextmanager
def held(path: Path, wait: float, what: str) -> Generator[None]:
    """Hold the lock of a file; `what` names it in errors.

    Raises:
        ConflictError: another process held it for `wait` seconds.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ConflictError(f"another process is indexing {what}: wait until it is done") from None
                time.sleep(LOOK_AGAIN)
        yield
    finally:
        os.close(file)
