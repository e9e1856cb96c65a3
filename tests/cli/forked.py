"""Commands in processes that are forked from one that has imported them.

Most of the processor time of a short command goes into importing, and many tests need a process only for its terminal, its
signals or its end. A server, one for each worker, imports once and forks for every command; tests of how a command starts
start one themselves.
"""

import atexit
import fcntl
import gc
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from taiwa.isolation import is_ready

__all__ = ["ForkedCommand"]

NUMBER = struct.Struct("i")
PATIENCE = 300.0
MODULES = """
taiwa.cli.display taiwa.cli.keyboard taiwa.cli.line_breaks taiwa.models.http_api.client
taiwa.operations.batch taiwa.operations.documents taiwa.operations.log taiwa.operations.open_session taiwa.operations.request_preview taiwa.sessions.replay
taiwa.sessions.turn_programs taiwa.sql.sqlite taiwa.tools.stoichiometry taiwa.tools.units httpx2 pydantic rich.live yaml
"""
"""What commands import when they run."""
OPERATIONS = frozenset(
    {
        "commit",
        "execute",
        "executemany",
        "flush",
        "fsync",
        "mkdir",
        "open",
        "recv",
        "rename",
        "replace",
        "send",
        "unlink",
        "write",
    }
)
"""What is seen from outside of a process: between two of these functions it does not matter when the process is killed."""


class ForkedCommand:
    """A process that runs `taiwa ARGUMENTS` in the folder of this one; what a test needs of `subprocess.Popen`.

    Its input is a pipe if it `reads`, and else empty, and its outputs are pipes; all three are its terminal if it has one.
    `whole` starts an interpreter for it.
    """

    stdin: BinaryIO | None = None
    stdout: BinaryIO
    stderr: BinaryIO
    returncode: int | None = None

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        reads: bool = False,
        terminal: int | None = None,
        whole: bool = False,
    ) -> None:
        if terminal is None:
            (out, wrote_out), (err, wrote_err) = os.pipe(), os.pipe()
            given, write = os.pipe() if reads else (os.open(os.devnull, os.O_RDONLY), None)
            self.stdin = None if write is None else os.fdopen(write, "wb")
            self.stdout, self.stderr = os.fdopen(out, "rb"), os.fdopen(err, "rb")
            streams = (given, wrote_out, wrote_err)
        else:
            streams = (terminal, os.dup(terminal), os.dup(terminal))
        self._told, told = socket.socketpair()
        request = {
            "arguments": arguments, "environment": dict(environment), "folder": str(Path.cwd()), "terminal": terminal is not None,
            "whole": whole,
        }  # fmt: skip
        data = json.dumps(request).encode()
        with told:
            socket.send_fds(_server(), [NUMBER.pack(len(data))], [*streams, told.fileno()])
        _server().sendall(data)
        for stream in streams:
            os.close(stream)
        self.pid = self._number()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None as long as it runs."""
        return self._ended(0)

    def wait(self, timeout: float = PATIENCE) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("taiwa", timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: bytes = b"", timeout: float = PATIENCE) -> tuple[bytes, bytes]:
        """Write its input, read its outputs to their end, and wait for its own."""
        if self.stdin is not None and not self.stdin.closed:
            with self.stdin:
                self.stdin.write(given)
        with ThreadPoolExecutor(2) as readers, self.stdout, self.stderr:
            try:
                out, err = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr), timeout=timeout)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return out, err

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and is_ready(self._told.fileno(), select.POLLIN, seconds):
            self.returncode = self._number()
            self._told.close()
        return self.returncode

    def _number(self) -> int:
        read = self._told.recv(NUMBER.size)
        assert read, "the server has ended"
        return int(NUMBER.unpack(read)[0])


@cache
def _server() -> socket.socket:
    """Start the server; it ends with this process."""
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen([sys.executable, __file__], stdin=its.fileno())

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the server -------------------------------------------------------------------------------------------------------


def serve() -> None:
    """Fork a process for every request, and return in each; never return in the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the tests is for the tests
    channel = socket.socket(fileno=os.dup(0))
    while True:
        head, files, _, _ = socket.recv_fds(channel, NUMBER.size, 4)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not head:
            sys.exit()
        data = b""
        while len(data) < NUMBER.unpack(head)[0]:
            data += channel.recv(NUMBER.unpack(head)[0] - len(data))
        if os.fork() == 0:
            channel.close()
            break
        for file in files:
            os.close(file)
    *streams, told = files
    if child := os.fork():
        watch(child, streams, told)
    os.close(told)
    request = json.loads(data)
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["whole"]:
        command = [sys.executable, "-m", "taiwa", *request["arguments"]]
        os.execve(command[0], command, request["environment"])
    become(request["arguments"], request["environment"], request["folder"])


def watch(child: int, streams: Sequence[int], told: int) -> None:
    """Tell the id of a child and, when it has ended, its exit code."""
    for stream in (0, 1, 2, *streams):
        os.close(stream)
    with socket.socket(fileno=told) as status, suppress(BrokenPipeError):  # nobody waits for it any more
        status.send(NUMBER.pack(child))
        status.send(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    os._exit(0)


def become(arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
    """Make this process what the interpreter makes of `python -m taiwa ARGUMENTS`."""
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:], sys.path[0] = arguments, folder
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", 1 if os.isatty(1) else -1, "utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)


def die_at(number: int, told: Path) -> None:
    """Kill this process before one of its operations (0: none), and count them in a file that outlives it."""
    with told.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), NUMBER.size)
    numbers = count(1)

    def watch(_: FrameType, event: str, function: object) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in OPERATIONS:
            NUMBER.pack_into(memory, 0, reached := next(numbers))
            if reached == number:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(watch)
    sys.setprofile(watch)


def load() -> None:
    """Import the commands."""
    from taiwa.cli.main import COMMANDS
    from taiwa.sql import sqlite

    sqlite.SYNCHRONOUS = "OFF"  # as in the tests' own process (conftest.py)
    for name in (*MODULES.split(), *(f"taiwa.cli.{entry.module}" for entry in COMMANDS.values())):
        import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    serve()
    from taiwa.cli.main import main

    if counted := os.environ.get("TEST_OPERATIONS"):
        die_at(int(os.environ["TEST_DIES_AT"]), Path(counted))
    main()
