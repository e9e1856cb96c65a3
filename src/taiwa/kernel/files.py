"""Opening files of the user without waiting: regular files, and pipes that a shell passes by name."""

import os
from pathlib import Path
from stat import S_ISDIR, S_ISFIFO, S_ISREG
from typing import BinaryIO

from taiwa.kernel.errors import InputError

INHERITED = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Where a shell passes a pipe by name, as in `taiwa import <(zcat chat-1.jsonl.gz)`."""


def open_file(path: Path) -> BinaryIO:
    """Open a regular file, or a pipe that a shell passes by name, which has a writer. Others may block or never end.

    Raises:
        InputError: it cannot be opened, or is a folder, a named pipe or a device.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"invalid file name {str(path)!r}") from None
    mode = os.fstat(descriptor).st_mode
    if S_ISREG(mode) or (S_ISFIFO(mode) and str(path).startswith(INHERITED)):
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if S_ISDIR(mode):
        raise InputError(f"{path} is a folder")
    raise InputError(f"{path} is not a regular file; pipe its content in and pass -")
