"""Work in a process that can be killed: a deadline that really returns, and bounds on memory and output.

A thread cannot be stopped and a signal is not seen by code that does not return to Python; a process can always be killed.
The child starts fresh (never by fork, which copies the locks of other threads), finds its work by name, and speaks JSON
over pipes of its own, so what the work prints disturbs nobody.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import IO, cast

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json, record, value

__all__ = ["Bounds", "Worker", "inside_worker"]

INSIDE = "taiwa.apart.inside"

KEPT_WORDS = 2_000
START_SECONDS = 30.0
END_SECONDS = 2.0
MEGABYTE = 1 << 20


@value(tag="process-limits")
class Bounds:
    """What one call may use: wall-clock seconds, memory beyond what its process began with, and characters of the result."""

    seconds: float = 10.0
    memory_mb: int = 1_024
    characters: int = 100_000


def inside_worker() -> bool:
    """Whether this is such a process, in which work starts no further one."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") == INSIDE


class Worker:
    """One child process; its standard input takes questions, a pipe of its own gives answers, both one line each.

    `door` is `module:function`: there, the function is given `start` and returns what answers each question. `name` is what
    errors call it.
    """

    def __init__(self, door: str, start: dict[str, Json], name: str, bounds: Bounds) -> None:
        self._name = name
        self._read, write = os.pipe()
        # A file and not a pipe: it cannot fill up, and the limit on file sizes bounds it.
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        path: list[Json] = [str(entry) for entry in sys.path]
        begin = {"door": door, "start": start, "path": path, "answers": write, "bounds": record(bounds)}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", INSIDE, json.dumps(begin)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=(write,),
                start_new_session=True,
                bufsize=0,
            )
        finally:
            os.close(write)
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Json], bounds: Bounds) -> dict[str, Json]:
        """Have one question answered.

        Raises:
            ToolError: `timeout`, `too_large` or `crashed`; the worker is then of no more use, and must be ended.
        """
        # The first line says that the door was found. What importing it takes is not the question's time.
        if not self._ready:
            self._line(START_SECONDS, MEGABYTE)
            self._ready = True
        until = time.monotonic() + bounds.seconds
        self._send(json.dumps({"question": question, "bounds": record(bounds)}).encode() + b"\n", until)
        # A character is at most 12 bytes of JSON; a value may be as long again as its text.
        line = self._line(until - time.monotonic(), 24 * bounds.characters + MEGABYTE)
        return cast("dict[str, Json]", json.loads(line))

    def end(self) -> None:
        """Kill the process and all that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._process.kill()
        # The kernel may not yet let go of it; nothing waits for that.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        if self._read >= 0:
            os.close(self._read)
            self._read = -1
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._said.close()

    def _send(self, line: bytes, until: float) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        while line:
            if not select.select((), (pipe,), (), max(until - time.monotonic(), 0))[1]:
                raise self._late()
            try:
                line = line[os.write(pipe.fileno(), line) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._crashed() from None

    def _line(self, seconds: float, longest: int) -> bytes:
        until = time.monotonic() + seconds
        held = bytearray()
        while not held.endswith(b"\n"):
            if not select.select((self._read,), (), (), max(until - time.monotonic(), 0))[0]:
                raise self._late()
            piece = os.read(self._read, 1 << 16)
            if not piece:
                raise self._crashed()
            held += piece
            if len(held) > longest:
                raise ToolError(f"{self._name} gave too much", code="too_large", hint="ask for less")
        return bytes(held)

    def _late(self) -> ToolError:
        return ToolError(f"{self._name} did not end in time", code="timeout")

    def _crashed(self) -> ToolError:
        error = ToolError(f"{self._name} failed", code="crashed")
        size = os.fstat(self._said.fileno()).st_size
        self._said.seek(max(size - KEPT_WORDS, 0))
        error.add_note(self._said.read(KEPT_WORDS).decode(errors="replace"))
        return error
