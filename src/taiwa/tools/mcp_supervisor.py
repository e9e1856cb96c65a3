"""Run an MCP server, limit the length of its output lines, and end all processes that it started: `python mcp_supervisor.py
BYTES COMMAND …`.

The transport of the SDK buffers lines of any length, so that an answer of a gigabyte would fill our memory. The supervisor
is a script that does not import taiwa. On Linux it adopts orphaned processes of the server, so that a process in a new
session is ended too; elsewhere it ends the process group.
"""

import ctypes
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

__all__: list[str] = []

PROC = Path("/proc")
MAX_DEPTH = 100
"""How deep the JSON of a message may be nested; the SDK fails at about 200, and then waits forever for an answer."""
SIGN = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)
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
    os.close(0)  # only the server keeps the read end, so that writing fails once the server has ended
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
    """Copy lines until the output ends, or a line is too long or nested too deeply."""
    line = bytearray()
    while chunk := os.read(output, 1 << 16):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line += part
            if len(line) > max_bytes or _is_too_deep(line):
                break
            _write(bytes(line) + b"\n")
            line.clear()
        else:
            line += rest
            if len(line) <= max_bytes:
                continue
        what = (
            b"of more than %d bytes" % max_bytes if len(line) > max_bytes else b"nested more than %d deep" % MAX_DEPTH
        )
        os.write(2, b"it sent a message " + what + b"\n")
        return


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


def _is_too_deep(line: bytes | bytearray) -> bool:
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    depth, in_text = 0, False
    for sign in SIGN.finditer(line):
        match sign[0]:
            case b'"':
                in_text = not in_text
            case b"[" | b"{" if not in_text:
                depth += 1
                if depth > MAX_DEPTH:
                    return True
            case b"]" | b"}" if not in_text:
                depth -= 1
            case _:
                pass
    return False


def _end_children() -> None:
    """Kill the children, then the orphans that we adopt from them, until there are none."""
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
