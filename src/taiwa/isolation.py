"""Run a Python function in a child process, with limits on time, memory and output.

A thread cannot be stopped and a signal is not seen by code that does not return to Python; a process can always be killed.
The child starts fresh (never by fork, which copies the locks of other threads), imports its entry by name, and answers in
JSON over a pipe of its own, separate from what the function prints. It is not a sandbox against hostile code.

Both ends are in this file: the parent starts `python -P -m taiwa.isolation '{"entry": "my_module:entry", "start": {…}, …}'`.
"""

import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from threading import Lock, Semaphore
from typing import IO, TypeAlias, cast
from weakref import finalize

from taiwa.kernel.attachments import MAX_RESULT_BYTES
from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import Json
from taiwa.kernel.shares import SHARES, current_share

if sys.platform != "win32":
    import resource

MODULE = "taiwa.isolation"
KEPT_STDERR_BYTES = 2_000
START_SECONDS = 30.0
END_SECONDS = 2.0
LEAST_WAIT = 0.01
"""Seconds without a processor from which a question gets more time."""
MEGABYTE = 1 << 20
MAX_FILE_BYTES = 64 * MEGABYTE
SPARE_CPU_SECONDS = 2
SECRET_NAME = re.compile(
    r"(?:\A|_)(?:API_?KEY|ACCESS_KEY|PRIVATE_KEY|KEY|TOKEN|SECRET|CREDENTIALS?)(?:_|\Z)|PASSWORD|PASSWD|PASSPHRASE",
    re.IGNORECASE,
)
PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]+@")

Handler: TypeAlias = Callable[[dict[str, Json], int], dict[str, Json]]
"""What an entry returns: a function from a question and a number of characters to an answer of at most that length."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What one call may use: seconds in which it could run, memory beyond what its process began with, and characters of the result."""

    seconds: float = 10.0
    memory_mb: int = 1_024
    characters: int = 100_000


def in_child() -> bool:
    """Whether this is a child process, which starts no further ones."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(spec, "name", "") == MODULE


def environment_without_secrets(kept: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment for a child process without API keys, tokens and passwords, except those in `kept`."""
    named = set(kept)
    return {
        name: text
        for name, text in os.environ.items()
        if name in named or not (SECRET_NAME.search(name) or PASSWORD_IN_URL.search(text))
    }


def is_ready(handle: int, event: int, seconds: float) -> bool:
    """Wait until a file descriptor can be read (`POLLIN`) or written (`POLLOUT`), or is closed at its other end.

    `select.select` refuses descriptors above 1023, which a busy server has.
    """
    poll = select.poll()
    poll.register(handle, event)
    return bool(poll.poll(max(seconds, 0.0) * 1000))


class IsolatedProcess:
    """One child process; questions go to its standard input, answers come from a separate pipe, both one line each.

    `entry` is `module:function`: in the child, the function is called with `start` and returns the handler of the questions.
    `name` names the process in errors. It gets no secrets of the environment except those in `secrets`.
    """

    def __init__(
        self, entry: str, start: dict[str, Json], name: str, limits: ProcessLimits, secrets: Iterable[str] = ()
    ) -> None:
        from taiwa.extras import require_posix  # the child needs nothing of it

        require_posix(name)
        self._name = name
        self._answers, write = os.pipe()
        # A file and not a pipe: it cannot fill up, and the limit on file sizes bounds it.
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the process)
        path: list[Json] = [str(directory) for directory in sys.path]
        begin = {"entry": entry, "start": start, "path": path, "answers": write, "limits": asdict(limits)}
        try:
            self._process = subprocess.Popen(
                # -P: a json.py in the current folder, which may be one of documents, is not run.
                [sys.executable, "-P", "-m", MODULE, json.dumps(begin)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=(write,),
                env=environment_without_secrets(secrets),
                start_new_session=True,  # a group of its own, which `end` kills with all that it started
                bufsize=0,
            )
        finally:
            os.close(write)
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(self, question: dict[str, Json], limits: ProcessLimits) -> dict[str, Json]:
        """Answer one question.

        Raises:
            ToolError: `timeout`, `too_large` or `crashed`; the process is unusable afterwards and must be ended.
        """
        # The first line reports that the entry was imported; the time that takes does not count for the question.
        if not self._ready:
            self._read_line(START_SECONDS, MEGABYTE)
            self._ready = True
        until = time.monotonic() + limits.seconds
        self._send(json.dumps({"question": question, "limits": asdict(limits)}).encode() + b"\n", until)
        # A character is at most 6 bytes of JSON; a value may be as long again as its text. Files are in base64.
        line = self._read_line(until - time.monotonic(), 12 * limits.characters + 2 * MAX_RESULT_BYTES + MEGABYTE)
        return cast("dict[str, Json]", json.loads(line))

    def end(self) -> None:
        """Kill the process and all processes that it started."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # which ends one that may not be killed: this process has another user than at its start
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(PermissionError):
            self._process.kill()
        # The kernel may take longer to remove it; nothing waits for that.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1
        self._stderr.close()

    def _send(self, line: bytes, until: float) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        while line:
            if not is_ready(pipe.fileno(), select.POLLOUT, until - time.monotonic()):
                raise self._timeout()
            try:
                line = line[os.write(pipe.fileno(), line) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._crashed() from None

    def _read_line(self, seconds: float, max_bytes: int) -> bytearray:
        until = time.monotonic() + seconds
        ran, waited, _ = self._schedule()
        line = bytearray()
        while not line.endswith(b"\n"):
            if not is_ready(self._answers, select.POLLIN, until - time.monotonic()):
                # On a busy machine, the time in which other processes ran does not count. The system adds it up when a
                # process is given a processor again, so one that still waits for it may have what it has not used.
                now_ran, now_waited, is_runnable = self._schedule()
                more = max(now_waited - waited, seconds - (now_ran - ran) if is_runnable else 0.0)
                if more < LEAST_WAIT:
                    raise self._timeout()
                waited, until = now_waited, time.monotonic() + more
                continue
            piece = os.read(self._answers, 1 << 16)
            if not piece:  # it crashed, or was ended by its limit of processor time while this process had none
                raise self._timeout() if self._schedule()[0] - ran >= seconds else self._crashed()
            line += piece
            if len(line) > max_bytes:
                raise ToolError(f"{self._name} returned too much", code="too_large", hint="ask for less")
        return line

    def _schedule(self) -> tuple[float, float, bool]:
        """Return the seconds in which the process ran, those in which it could have run but had no processor, and whether it
        could run now; nothing where the system does not count them.
        """
        place = Path(f"/proc/{self._process.pid}")
        try:
            ran, waited, _ = (place / "schedstat").read_text().split()
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, ValueError, IndexError):
            return 0.0, 0.0, False
        return int(ran) / 1e9, int(waited) / 1e9, state == "R"

    def _timeout(self) -> ToolError:
        return ToolError(f"{self._name} timed out", code="timeout")

    def _crashed(self) -> ToolError:
        error = ToolError(f"{self._name} failed", code="crashed")
        size = os.fstat(self._stderr.fileno()).st_size
        self._stderr.seek(max(size - KEPT_STDERR_BYTES, 0))
        error.add_note(self._stderr.read(KEPT_STDERR_BYTES).decode(errors="replace"))
        return error


class ProcessPool:
    """Processes of one entry, started when they are needed; see `IsolatedProcess`. May be used from any thread.

    At most `count` are kept. With `is_bounded` there are no more: a question waits for a free one, and a share other than that of
    the program itself asks one question at a time, so that a process is left for others. A question that takes too long ends
    only its own process. A forked child starts its own.
    """

    def __init__(
        self,
        entry: str,
        name: str,
        limits: ProcessLimits,
        count: int = 2,
        *,
        start: dict[str, Json] | None = None,
        secrets: Iterable[str] = (),
        is_bounded: bool = True,
    ) -> None:
        self.limits = limits
        self._entry, self._name, self._count = entry, name, count
        self._start, self._secrets, self._is_bounded = start or {}, tuple(secrets), is_bounded
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._free = Semaphore(self._count)
        self._turns = [Lock() for _ in range(SHARES + 1)]
        self._idle: deque[IsolatedProcess] = deque()
        finalize(self, _end_all, self._idle, self._owner)

    def ask(
        self, question: dict[str, Json], is_last: Callable[[dict[str, Json]], bool] = lambda _: False
    ) -> dict[str, Json]:
        """Answer one question; within a child process, in that one. `is_last` says of an answer whether its process ends with it.

        Raises:
            ToolError: `timeout`, `too_large` or `crashed`.
        """
        if in_child():
            return _handler(self._entry, self._start)(question, self.limits.characters)
        if self._owner != os.getpid():
            self._begin()
        with self._place():
            process = self._taken()
            is_kept = False
            try:
                answer = process.ask(question, self.limits)
                is_kept = len(self._idle) < self._count and not is_last(answer)
            finally:
                if is_kept:
                    self._idle.append(process)
                else:
                    process.end()
        return answer

    @contextmanager
    def _place(self) -> Generator[None]:
        if not self._is_bounded:
            yield
            return
        with self._turns[share] if (share := current_share()) else nullcontext(), self._free:
            yield

    def _taken(self) -> IsolatedProcess:
        while self._idle:
            with suppress(IndexError):  # another thread took the last one
                process = self._idle.pop()
                if process.alive:
                    return process
                process.end()
        return IsolatedProcess(self._entry, self._start, self._name, self.limits, self._secrets)

    def close(self) -> None:
        """End the idle processes."""
        _end_all(self._idle, self._owner)


def _end_all(idle: deque[IsolatedProcess], owner: int) -> None:
    while idle and owner == os.getpid():
        idle.pop().end()


def _handler(entry: str, start: dict[str, Json]) -> Handler:
    module, _, name = entry.partition(":")
    return cast("Handler", getattr(import_module(module), name)(start))


def _child(begin: str) -> None:
    """Serve questions until standard input ends; the child's own limits are lowered first."""
    options = json.loads(begin)
    sys.path[:] = options["path"]
    answers = options["answers"]
    os.set_inheritable(answers, False)  # or a process started by the handler would keep the pipe open
    _lower(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _lower(resource.RLIMIT_CORE, 0)
    handler = _handler(options["entry"], options["start"])
    # After the imports, whose size differs by platform and library.
    if used_bytes := _address_space():
        _lower(resource.RLIMIT_AS, used_bytes + int(options["limits"]["memory_mb"]) * MEGABYTE)
    _write_line(answers, {"ready": True})
    for line in sys.stdin.buffer:
        request = json.loads(line)
        limits = request["limits"]
        # Processor time beyond the deadline ends the process by itself, if the parent cannot kill it.
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = used.ru_utime + used.ru_stime + float(limits["seconds"])
        _lower(resource.RLIMIT_CPU, math.ceil(seconds) + SPARE_CPU_SECONDS)
        _write_line(answers, handler(request["question"], int(limits["characters"])))


def _address_space() -> int:
    """Return the bytes of address space in use, which is much more than the memory in use; 0 where only Linux would know."""
    return _memory(0)


def used_memory() -> int:
    """Return the bytes of memory in use by this process; 0 where only Linux would know."""
    return _memory(1)


def _memory(field: int) -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except (OSError, ValueError):
        return 0
    return pages * resource.getpagesize()


def _lower(which: int, wanted: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _write_line(handle: int, answer: dict[str, Json]) -> None:
    line = memoryview(json.dumps(answer, ensure_ascii=False).encode("utf-8", errors="surrogatepass") + b"\n")
    while line:
        line = line[os.write(handle, line) :]


if __name__ == "__main__":
    _child(sys.argv[1])
