"""Run an MCP server and copy its standard output until a line is too long: `python mcp_line_filter.py BYTES COMMAND …`.

The transport of the SDK buffers lines of any length, so that an answer of a gigabyte would fill our memory. The filter is a
script without imports of taiwa; at its end it kills its process group, and with it everything that the server started.
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
        sys.exit("command not found" if missing else f"cannot start it: {error.strerror}")
    os.close(0)  # only the server reads it, so that writing fails once the server has ended
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
