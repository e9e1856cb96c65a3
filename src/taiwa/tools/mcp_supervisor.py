"""Run an MCP server, bound the lines that it writes, and end all that it started: `python mcp_supervisor.py BYTES COMMAND …`.

The transport of the SDK buffers lines of any length, so that an answer of a gigabyte would fill our memory. The supervisor is a
script without imports of taiwa. On Linux it adopts what the server leaves behind, so that a process which put itself into a
session of its own is ended with the others; elsewhere it ends its process group.
"""

import ctypes
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

__all__: list[str] = []

PROC = Path("/proc")
PR_SET_CHILD_SUBREAPER = 36


def _main(max_bytes: int, command: list[str]) -> None:
    signal.signal(signal.SIGTERM, _exit)
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        server = subprocess.Popen(command, stdout=subprocess.PIPE)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        sys.exit("command not found" if missing else f"cannot start it: {error.strerror}")
    os.close(0)  # only the server reads it, so that writing fails once the server has ended
    assert server.stdout is not None
    try:
        with suppress(BrokenPipeError):
            _copy(server.stdout.fileno(), max_bytes)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if PROC.is_dir():
            _end_children()
        os.killpg(0, signal.SIGKILL)


def _exit(_number: int, _frame: object) -> None:
    sys.exit()


def _copy(output: int, max_bytes: int) -> None:
    """Copy lines until the output ends or a line is too long."""
    length = 0
    while chunk := os.read(output, 1 << 16):
        parts = chunk.split(b"\n")
        if max(length + len(parts[0]), *map(len, parts)) > max_bytes:
            os.write(2, b"it sent a message of more than %d bytes\n" % max_bytes)
            break
        length = len(parts[-1]) + (length if len(parts) == 1 else 0)
        while chunk:
            chunk = chunk[os.write(1, chunk) :]


def _end_children() -> None:
    """Kill the children, and again those that their ends leave to us, until there are none."""
    mine = str(os.getpid())
    with suppress(ChildProcessError):
        while True:
            for entry in PROC.iterdir():
                # The fields behind the name, which may contain anything: the state, then the parent.
                with suppress(OSError, IndexError):
                    if entry.name.isdecimal() and (entry / "stat").read_text().rpartition(")")[2].split()[1] == mine:
                        os.kill(int(entry.name), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
