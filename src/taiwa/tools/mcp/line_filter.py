"""Run a server and pass its standard output on, up to a line that is too long: `python line_filter.py BYTES COMMAND …`.

The library's transport gathers a line of any length, so one answer of a gigabyte would be held in our memory. The filter is
a script of its own without imports of taiwa, and ends its process group, so whatever the server started ends with it.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress

__all__: list[str] = []


def _main(max_bytes: int, command: list[str]) -> None:
    try:
        server = subprocess.Popen(command, stdout=subprocess.PIPE)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        sys.exit("there is no such command" if missing else f"it cannot be started: {error.strerror}")
    os.close(0)  # only the server reads it, so it is broken once the server is gone
    assert server.stdout is not None
    length = 0
    with suppress(BrokenPipeError):
        while chunk := os.read(server.stdout.fileno(), 1 << 16):
            parts = chunk.split(b"\n")
            if max(length + len(parts[0]), *map(len, parts)) > max_bytes:
                os.write(2, b"it sent a message of more than %d bytes\n" % max_bytes)
                break
            length = len(parts[-1]) + (length if len(parts) == 1 else 0)
            while chunk:
                chunk = chunk[os.write(1, chunk) :]
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
