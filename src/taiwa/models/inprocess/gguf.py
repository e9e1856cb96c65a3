"""Llama.cpp server for a GGUF file."""

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
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Self

from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.messages import Capability, Chunk, Request
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.openai_chat import ChatCompletions, held_so
from taiwa.models.http_api.provider_interface import Enforce, Target, parse_integer, parse_options
from taiwa.models.http_api.retries import RequestLimits

__all__ = ["GgufModel", "LlamaServer", "parse_gguf_spec"]


FORM = "say gguf:FILE.gguf, with ?context=8192&threads=4&slots=1&layers=0 behind it where you want to"

MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class GgufSpec:
    """Where a model is and how it is loaded.

    `context` is how many tokens all its conversations together may have, `slots` how many of them are answered at a time;
    `threads` 0 takes as many as there are cores, and `layers` says how many run on a GPU: -1 leaves that to llama.cpp.
    """

    file: Path
    context: int = 8192
    threads: int = 0
    slots: int = 4
    layers: int = -1


def parse_gguf_spec(text: str) -> GgufSpec:
    """Read what stands behind `gguf:`.

    Raises:
        ConfigError: it names nothing, or an option is unknown.
    """
    file, _, given = text.partition("?")
    if not file.strip():
        raise ConfigError(f"'gguf:' names no file: {FORM}")
    known = [field.name for field in fields(GgufSpec) if field.name != "file"]
    numbers = {name: parse_integer(name, text) for name, text in parse_options(given, known, "GGUF").items()}
    for name in ("context", "slots"):
        if numbers.get(name) == 0:
            raise ConfigError(f"{name} of a GGUF model is at least 1")
    return GgufSpec(Path(file).expanduser(), **numbers)


def checked(place: GgufSpec) -> GgufSpec:
    """See that there is such a file, before a server is started for it.

    Raises:
        ConfigError: there is none, or it is no GGUF file.
    """
    file = place.file
    if file.is_dir():
        inner = next(iter(sorted(file.glob("*.gguf"))), None)
        raise ConfigError(f"{file} is a folder: {f'did you mean {inner}?' if inner else FORM}")
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(MAGIC))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {file}: {FORM}") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror})") from None
    if begins != MAGIC:
        raise ConfigError(f"{file} is no GGUF file: it begins with {begins!r}")
    return place


INSIDE = Path(__file__).with_name("gguf_process.py")

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

    def __init__(self, place: GgufSpec) -> None:
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


class GgufModel:
    """The model in a file: `gguf:FILE`, through a llama.cpp server that is started when it is first asked.

    One object serves all threads and event loops. The server ends with `close`, with the object, or with this process. One
    that broke off is told of in one line, and the next request starts another.

    Raises:
        ConfigError: there is no such file, or it is none.
    """

    def __init__(self, target: Target, limits: RequestLimits | None = None, place: GgufSpec | None = None) -> None:
        self.target = target
        self.serving = _Serving(checked(place or parse_gguf_spec(target.model)))
        self._limits = limits or RequestLimits()
        self._lock = Lock()
        self._served: tuple[LlamaServer, HttpModel] | None = None

    def __repr__(self) -> str:
        return f"GgufModel({self.name!r})"

    @property
    def name(self) -> str:
        """The name a person gave it."""
        return self.target.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do."""
        return self.target.capabilities

    def holding(self, hold: Enforce) -> "GgufModel":
        """The same model, through the same server, with another way to treat what no decoder holds."""
        made = GgufModel(held_so(self.target, hold), self._limits, self.serving.place)
        made.serving = self.serving
        return made

    def served(self) -> HttpModel:
        """The model behind its server; the file is loaded now, if it is not yet.

        Raises:
            ConfigError: it cannot be loaded, or the extra is not installed.
        """
        with self._lock:
            server = self.serving.running()
            if self._served is None or self._served[0] is not server:
                model = HttpModel(_target(self.target, server), server.key, limits=self._limits)
                self._served = server, model
            return self._served[1]

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `Finished`; closing the iterator ends the writing.

        Raises:
            ConfigError: the model cannot be loaded.
            ModelError: the call failed, or the server broke off.
        """
        model = self.served()
        try:
            with closing(model.stream(request)) as chunks:
                yield from chunks
        except ModelError as error:
            raise self._explained(error) from error

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """As `stream`; cancelling the task ends the writing. The file is loaded in a thread."""
        model = await asyncio.to_thread(self.served)
        try:
            async with aclosing(model.astream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ModelError as error:
            raise (await asyncio.to_thread(self._explained, error)) from error

    def close(self) -> None:
        """End the server; the next request starts another."""
        with self._lock:
            served, self._served = self._served, None
        if served is not None:
            served[1].close()
        self.serving.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _explained(self, error: ModelError) -> ModelError:
        """The failure as it is, or that the server is gone."""
        with self._lock:
            served = self._served
        if served is None or error.status is not None:
            return error
        how = served[0].ended(wait=1.0)
        if not how:
            return error
        return ModelError(f"the llama.cpp server of {self.name} is gone: {how}", request=error.request)


class _Serving:
    """The one server of a file, started when it is wanted and not there."""

    def __init__(self, place: GgufSpec) -> None:
        self.place = place
        self._lock = Lock()
        self._process = os.getpid()
        self._server: LlamaServer | None = None

    def running(self) -> LlamaServer:
        with self._lock:
            if self._process != os.getpid():  # a fork: the server belongs to the process that started it
                self._process, self._server = os.getpid(), None
            if self._server is not None and not self._server.is_running:
                self._server.close(at_once=True)
                self._server = None
            if self._server is None:
                self._server = LlamaServer(self.place)
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
        raise ConfigError(f"{target.name} is no name of a GGUF file")
    if server.has_llguidance:
        codec = replace(codec, dialect=replace(codec.dialect, constraints="llguidance"))
    return replace(target, base_url=server.base_url, codec=codec, inside=False)


def _end(server: LlamaServer, process: int) -> None:
    if process == os.getpid():
        server.close(at_once=True)
