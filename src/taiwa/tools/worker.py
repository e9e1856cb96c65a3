"""A user's own tools in processes that can be killed: a deadline that really returns, and bounds on memory and output.

A thread cannot be stopped and a signal is not seen by code that does not return to Python; a process can always be killed.
The child starts fresh (never by fork, which copies the locks of other threads), finds the tool by its name, and speaks
JSON over pipes of its own, so what a tool prints disturbs nobody.
"""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import IO, Any, cast
from weakref import finalize

from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.records import Json, record, revive, value
from taiwa.kernel.values import ToolResult, ToolSpec
from taiwa.tools.tool import FunctionTool

__all__ = ["Bounds", "Isolated", "isolated"]

KEPT_WORKERS = 4
KEPT_WORDS = 2_000
START_SECONDS = 30.0
END_SECONDS = 2.0
MEGABYTE = 1 << 20


@value
class Bounds:
    """What one call may use: wall-clock seconds, address space, and characters of the result."""

    seconds: float = 10.0
    memory_mb: int = 1_024
    characters: int = 100_000


USUAL = Bounds()


def isolated(tool: FunctionTool[Any, Any], bounds: Bounds = USUAL) -> "Isolated":
    """Run a tool's calls in worker processes; a worker is started at the first call and kept for the next ones.

    Raises:
        InputError: the tool is no attribute of a module, so another process cannot find it.
    """
    return Isolated(tool, bounds)


class Isolated:
    """A tool of which every call ends: with its result, or with a `ToolError` when its bounds are reached.

    Codes beside the tool's own: `timeout`, `memory`, `too_large`, `crashed`. What a crashed worker printed is a note of the
    error, for a person's traceback, and never part of the message that a model reads. Calls from several threads run side by side.
    """

    def __init__(self, tool: FunctionTool[Any, Any], bounds: Bounds) -> None:
        self._tool = tool
        self._bounds = bounds
        self._address = _address(tool)
        self._idle: deque[_Worker] = deque()
        self._lock = Lock()
        self._close = finalize(self, _end_all, self._idle)

    def __repr__(self) -> str:
        return f"Isolated({self.spec.name})"

    def __enter__(self) -> "Isolated":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return self._tool.spec

    def close(self) -> None:
        """End the workers; a later call starts a new one."""
        with self._lock:
            _end_all(self._idle)

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the tool in a worker.

        Raises:
            ToolError: as the tool does, or its bounds were reached.
        """
        question = json.dumps({"arguments": dict(arguments), "bounds": record(self._bounds)}).encode()
        worker = self._worker()
        try:
            answer = worker.ask(question, self._bounds)
        except BaseException:
            worker.end()
            raise
        self._keep(worker)
        if "error" in answer:
            error = cast("dict[str, str]", answer["error"])
            failed = ToolError(error["message"], code=error["code"], hint=error["hint"])
            if error["trace"]:
                failed.add_note(error["trace"])
            raise failed
        return cast("ToolResult", revive(answer["result"]))

    def _worker(self) -> "_Worker":
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
        return _Worker(self._address, self.spec.name, self._bounds)

    def _keep(self, worker: "_Worker") -> None:
        with self._lock:
            if len(self._idle) < KEPT_WORKERS:
                self._idle.append(worker)
                return
        worker.end()


class _Worker:
    """One child process; its standard input takes questions, a pipe of its own gives answers, both one line each."""

    def __init__(self, address: dict[str, Json], name: str, bounds: Bounds) -> None:
        self._name = name
        self._read, write = os.pipe()
        # A file and not a pipe: it cannot fill up, and the limit on file sizes bounds it.
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        start = json.dumps({**address, "answers": write, "bounds": record(bounds)})
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "taiwa.tools.inside", start],
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

    def ask(self, question: bytes, bounds: Bounds) -> dict[str, Json]:
        """Have one call done."""
        # The first line says that the tool was found. What importing it takes is not the call's time.
        if not self._ready:
            self._line(START_SECONDS, MEGABYTE)
            self._ready = True
        until = time.monotonic() + bounds.seconds
        self._send(question + b"\n", until)
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


def _end_all(workers: "deque[_Worker]") -> None:
    while workers:
        workers.pop().end()


def _address(tool: FunctionTool[Any, Any]) -> dict[str, Json]:
    """Where another process finds the tool: its module, or the file of the program itself."""
    function = tool.function
    module, path = function.__module__, getattr(function, "__qualname__", "")
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    found: object = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    if "<" in path or found is not tool or (module == "__main__" and file is None):
        raise InputError(f"{tool.spec.name} cannot be found by another process: define it at the top of a module")
    return {
        "module": module,
        "name": path,
        "file": str(file) if module == "__main__" else "",
        "path": [str(entry) for entry in sys.path],
    }
