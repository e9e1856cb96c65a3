"""A model in a GGUF file, blocking and asynchronous, as the runtime wants it."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from dataclasses import replace
from threading import Lock
from typing import Self

from taiwa.kernel.errors import ConfigError, ModelError
from taiwa.kernel.values import Ability, Chunk, Request
from taiwa.models.gguf.place import Place, checked, place_of
from taiwa.models.gguf.server import LlamaServer
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.retries import RequestLimits
from taiwa.models.openai import ChatCompletions, held_so
from taiwa.models.wire import Hold, Target

__all__ = ["GgufModel"]


class GgufModel:
    """The model in a file: `gguf:FILE`, through a llama.cpp server that is started when it is first asked.

    One object serves all threads and event loops. The server ends with `close`, with the object, or with this process. One
    that broke off is told of in one line, and the next request starts another.

    Raises:
        ConfigError: there is no such file, or it is none.
    """

    def __init__(self, target: Target, limits: RequestLimits | None = None, place: Place | None = None) -> None:
        self.target = target
        self.serving = _Serving(checked(place or place_of(target.model)))
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
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        return self.target.abilities

    def holding(self, hold: Hold) -> "GgufModel":
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

    def __init__(self, place: Place) -> None:
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
