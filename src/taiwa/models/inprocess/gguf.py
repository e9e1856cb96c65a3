"""Models in GGUF files, through a llama.cpp server in a separate process."""

import asyncio
import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock, Thread
from typing import IO

from taiwa.isolation import environment_without_secrets, is_ready
from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.messages import Capability, Chunk, Request
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.openai_chat import ChatCompletions, held_so
from taiwa.models.http_api.provider_interface import Enforce, RequestLimits, Target, parse_options
from taiwa.models.inprocess.generator import SharedModel

FORM = "use gguf:FILE.gguf, optionally with ?context=8192&threads=4&slots=1&layers=0"
MAGIC = b"GGUF"
PROCESS_SCRIPT = Path(__file__).with_name("gguf_process.py")
START_SECONDS = 900.0
"""Seconds; longer than it takes to read the largest file from a slow disk."""
END_SECONDS = 3.0
MAX_LOG_LINES = 400
LOG_STAMP = re.compile(r"^[\d.:]+ (?:[A-Z] )?")
ERROR_WORDS = re.compile(r"error|fail|abort|invalid|unable|cannot|out of memory", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufSpec:
    """Where a model is and how it is loaded.

    `context` is the number of tokens of all conversations together, `slots` the number of answers at a time, `layers` the
    number of layers on a GPU (-1 leaves it to llama.cpp); `threads` 0 means as many as there are cores.
    """

    file: Path
    context: int = 8192
    threads: int = 0
    slots: int = 4
    layers: int = -1


def parse_gguf_spec(text: str) -> GgufSpec:
    """Parse the part of a model name after `gguf:`.

    Raises:
        ConfigError: it is empty, or an option is unknown or out of range.
    """
    file, _, query = text.partition("?")
    if not file.strip():
        raise ConfigError(f"'gguf:' does not name a file; {FORM}")
    numbers = parse_options(query, dict.fromkeys(("context", "threads", "slots", "layers"), int), "GGUF")
    for name in ("context", "slots"):
        if numbers.get(name) == 0:
            raise ConfigError(f"{name} of a GGUF model must be at least 1")
    return GgufSpec(Path(file).expanduser(), **numbers)


def check_file(file: Path) -> None:
    """Check the file before a server is started for it.

    Raises:
        ConfigError: it does not exist, or is not a GGUF file.
    """
    if file.is_dir():
        inner = next(iter(sorted(file.glob("*.gguf"))), None)
        raise ConfigError(f"{file} is a folder; {f'did you mean {inner}?' if inner else FORM}")
    try:
        with file.open("rb") as opened:
            head = opened.read(len(MAGIC))
    except FileNotFoundError:
        raise ConfigError(f"file {file} not found; {FORM}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {file} ({error.strerror})") from None
    if head != MAGIC:
        raise ConfigError(f"{file} is not a GGUF file; it begins with {head!r}")


class LlamaServer:
    """A llama.cpp server for one file, which runs from the construction of the object until `close`.

    Raises:
        ConfigError: the extra is not installed, or llama.cpp cannot load the file.
    """

    def __init__(self, spec: GgufSpec) -> None:
        self.spec = spec
        self.key = secrets.token_hex(16)
        self._log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self._process = subprocess.Popen(
            # -P: do not import from the folder of the script.
            [sys.executable, "-P", str(PROCESS_SCRIPT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env=environment_without_secrets(),
        )  # fmt: skip
        Thread(target=self._keep_log, daemon=True).start()
        try:
            started = self._start()
        except BaseException:
            self.close(at_once=True)
            raise
        self.base_url = f"{started['url']}/v1"
        """The base URL of Chat Completions."""
        self.has_llguidance = started.get("llguidance") is True

    def _start(self) -> dict[str, object]:
        options = {**asdict(self.spec), "file": str(self.spec.file), "key": self.key}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended; reported below
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()
        line = _read_line(self._process.stdout, time.monotonic() + START_SECONDS)
        if not line:
            raise ConfigError(f"llama.cpp cannot serve {self.spec.file}: {self.exit_reason(wait=END_SECONDS)}")
        answer: dict[str, object] = json.loads(line)
        if "missing" in answer:
            raise ConfigError("models in GGUF files need an extra: pip install 'taiwa[gguf]'")
        if "refused" in answer:
            raise ConfigError(f"llama.cpp cannot load {self.spec.file}: {self._first_error() or answer['refused']}")
        return answer

    def _keep_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._log.append(line.decode("utf-8", "replace").rstrip())

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of the log of llama.cpp."""
        return tuple(self._log)

    def exit_reason(self, wait: float = 0.0) -> str:
        """Describe how the process ended and the first error in its log; empty while it runs."""
        try:
            code = self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return ""
        how = f"it crashed with {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
        if code == -signal.SIGKILL:
            how = "it was killed, probably for lack of memory; choose a smaller file or context"
        error = self._first_error()
        return f"{how}; its log: {error}" if error else how

    def close(self, *, at_once: bool = False) -> None:
        """End the server, at once or after a short time to finish."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(0 if at_once else END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _first_error(self) -> str:
        """Return the first line of the log that reports an error; later ones are mostly consequences."""
        lines = (LOG_STAMP.sub("", line).strip() for line in self._log)
        return next((line[:200] for line in lines if ERROR_WORDS.search(line)), "")


def _read_line(pipe: IO[bytes], deadline: float) -> bytes:
    """Return the next line; empty if the pipe is closed or the deadline has passed."""
    line = b""
    while not line.endswith(b"\n"):
        ready = is_ready(pipe.fileno(), select.POLLIN, deadline - time.monotonic())
        data = os.read(pipe.fileno(), 4096) if ready else b""
        if not data:
            return b""
        line += data
    return line


class GgufModel(SharedModel):
    """The model in a file: `gguf:FILE`, through a llama.cpp server that is started at the first request.

    One object serves all threads and event loops. The server ends with `close`, with the object, or with this process. A crash
    is reported in one line, and the next request starts another server.

    Raises:
        ConfigError: the file does not exist, or is not a GGUF file.
    """

    def __init__(self, target: Target, limits: RequestLimits | None = None, spec: GgufSpec | None = None) -> None:
        super().__init__()
        self.target = target
        self._starter = _ServerStarter(spec or parse_gguf_spec(target.model))
        check_file(self._starter.spec.file)
        self._limits = limits or RequestLimits()
        self._lock = Lock()
        self._served: tuple[LlamaServer, HttpModel] | None = None
        self._ends_server = True

    def __repr__(self) -> str:
        return f"GgufModel({self.name!r})"

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        return self.target.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the model supports."""
        return self.target.capabilities

    def holding(self, hold: Enforce) -> "GgufModel":
        """Return the same model and server with another policy for constraints that the server cannot enforce."""
        made = GgufModel(held_so(self.target, hold), self._limits, self._starter.spec)
        made._starter, made._ends_server = self._starter, False
        return made

    def served(self) -> HttpModel:
        """Return the client of the server; the file is loaded now if it is not yet.

        Raises:
            ConfigError: it cannot be loaded, or the extra is not installed.
        """
        with self._lock:
            server = self._starter.running()
            if self._served is None or self._served[0] is not server:
                model = HttpModel(_target(self.target, server), server.key, limits=self._limits)
                self._served = server, model
            return self._served[1]

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; closing the iterator ends the answer.

        Raises:
            ConfigError: the model cannot be loaded.
            ModelError: the call failed, or the server crashed.
        """
        model = self.served()
        try:
            with closing(model.stream(request)) as chunks:
                yield from chunks
        except ModelError as error:
            raise self._explain(error) from error

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """Like `stream`; cancelling the task ends the answer. The file is loaded in a thread."""
        model = await asyncio.to_thread(self.served)
        try:
            async with aclosing(model.astream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as error:
            raise (await asyncio.to_thread(self._explain, error)) from error

    def _release(self) -> None:
        """End the server; the next request starts another."""
        with self._lock:
            served, self._served = self._served, None
        if served is not None:
            served[1].close()
        if self._ends_server:
            self._starter.close()

    def _explain(self, error: ModelError) -> ModelError:
        """Return the error, or one that says how the server ended."""
        with self._lock:
            served = self._served
        if served is None or error.status is not None:
            return error
        how = served[0].exit_reason(wait=1.0)
        if not how:
            return error
        return ModelError(f"the llama.cpp server of {self.name} has ended: {how}", request=error.request)


class _ServerStarter:
    """The server of a file, started when it is needed and not running."""

    def __init__(self, spec: GgufSpec) -> None:
        self.spec = spec
        self._lock = Lock()
        self._process = os.getpid()
        self._server: LlamaServer | None = None

    def running(self) -> LlamaServer:
        with self._lock:
            if self._process != os.getpid():  # a fork: the server belongs to the process that started it
                self._process, self._server = os.getpid(), None
            if self._server is not None and self._server.exit_reason():
                self._server.close(at_once=True)
                self._server = None
            if self._server is None:
                self._server = LlamaServer(self.spec)
                weakref.finalize(self, _end, self._server, os.getpid())
            return self._server

    def close(self) -> None:
        with self._lock:
            server, self._server = self._server, None
            if server is not None and self._process == os.getpid():
                server.close()


def _target(target: Target, server: LlamaServer) -> Target:
    codec = target.codec
    if not isinstance(codec, ChatCompletions):
        raise ConfigError(f"{target.name} is not the name of a GGUF file")
    if server.has_llguidance:
        codec = replace(codec, dialect=replace(codec.dialect, constraints="llguidance"))
    return replace(target, base_url=server.base_url, codec=codec, inside=False)


def _end(server: LlamaServer, process: int) -> None:
    if process == os.getpid():
        server.close(at_once=True)
