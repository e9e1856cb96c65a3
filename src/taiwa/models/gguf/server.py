"""A llama.cpp server in a process of its own, from start to stop.

In a process, because machine code that meets a broken file or runs out of memory takes its process with it, because a
process can be killed and a thread cannot, and because its threads then do not wait for those of Python. It ends with the one
that started it, even when that is killed: it reads a pipe that closes then. It listens on this machine only, at a port that
the system chooses, behind a key that is drawn for it and given to it through that pipe.
"""

import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO

from taiwa.kernel.errors import ConfigError
from taiwa.models.gguf.place import Place

__all__ = ["LlamaServer"]

INSIDE = Path(__file__).with_name("inside.py")
START_SECONDS = 900.0
"""Longer than the largest file takes to be read from a slow disk."""
END_SECONDS = 3.0
KEPT_LINES = 400
STAMP = re.compile(r"^[\d.:]+ (?:[A-Z] )?")
FAULT = re.compile(r"error|fail|abort|invalid|unable|cannot|out of memory", re.IGNORECASE)


class LlamaServer:
    """A server for one file; it is running when the object is made, and `close` ends it.

    Raises:
        ConfigError: the extra is not installed, or llama.cpp cannot load the file; the message is its own.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.key = secrets.token_hex(16)
        self._log: deque[str] = deque(maxlen=KEPT_LINES)
        self._process = subprocess.Popen(
            # -P: the script's folder is no place to import from.
            [sys.executable, "-P", str(INSIDE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        Thread(target=_keep, args=(self._process.stderr, self._log), daemon=True).start()
        try:
            told = self._begun()
        except BaseException:
            self.close(at_once=True)
            raise
        self.url = str(told["url"])
        self.has_llguidance = told.get("llguidance") is True

    def _begun(self) -> dict[str, object]:
        asked = {
            "file": str(self.place.file), "context": self.place.context, "threads": self.place.threads,
            "slots": self.place.slots, "layers": self.place.layers, "key": self.key,
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it ended already: that is told below
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        line = _line(self._process.stdout, time.monotonic() + START_SECONDS)
        if not line:
            raise ConfigError(f"llama.cpp cannot serve {self.place.file}: {self.ended(wait=END_SECONDS)}")
        told: dict[str, object] = json.loads(line)
        if "missing" in told:
            raise ConfigError("models in GGUF files need an extra: pip install 'taiwa[gguf]'")
        if "refused" in told:
            raise ConfigError(f"llama.cpp cannot load {self.place.file}: {self._fault() or told['refused']}")
        return told

    @property
    def base_url(self) -> str:
        """Where it speaks Chat Completions."""
        return f"{self.url}/v1"

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines that llama.cpp wrote."""
        return tuple(self._log)

    @property
    def is_running(self) -> bool:
        """Say whether the process is there."""
        return self._process.poll() is None

    def ended(self, wait: float = 0.0) -> str:
        """Say how the process ended, and what its last fault was; empty while it runs."""
        try:
            code = self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return ""
        if code == -signal.SIGKILL:
            how = "it was killed (mostly because memory ran out: take a smaller file or context)"
        else:
            how = f"it broke off with {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
        fault = self._fault()
        return f"{how}; it said: {fault}" if fault else how

    def close(self, *, at_once: bool = False) -> None:
        """End it, at once or as soon as it can."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(0 if at_once else END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _fault(self) -> str:
        """The first line of the log that names a fault; the others mostly say what followed from it."""
        told = (STAMP.sub("", line).strip() for line in self._log)
        return next((line[:200] for line in told if FAULT.search(line)), "")


def _keep(lines: IO[bytes] | None, log: deque[str]) -> None:
    if lines is not None:
        with lines:
            for line in lines:
                log.append(line.decode("utf-8", "replace").rstrip())


def _line(pipe: IO[bytes], deadline: float) -> bytes:
    """The next line, or nothing where the other side ends or the time is over."""
    found = b""
    while not found.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(pipe.fileno(), 4096) if ready else b""
        if not data:
            return b""
        found += data
    return found
