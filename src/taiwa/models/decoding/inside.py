"""A model in this process, blocking and asynchronous, as the runtime wants it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from taiwa.kernel.values import Ability, Chunk, Finished, Request, TextDelta
from taiwa.models.abilities import Facts

if TYPE_CHECKING:
    from taiwa.models.decoding.scribe import Loaded, Scribe

__all__ = ["InsideModel"]

AnyLoaded = TypeVar("AnyLoaded", bound="Loaded")


class InsideModel(ABC, Generic[AnyLoaded]):
    """A model that our own decode loop writes with. It is loaded when it is first asked; one object serves all threads and
    event loops. A request that begins as an earlier one did goes on from what the model has read of it.
    """

    def __init__(self, name: str, known: Facts) -> None:
        self.name = name
        self._facts = known
        self._lock = Lock()
        self._scribe: Scribe[AnyLoaded] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        return self._facts.abilities

    @abstractmethod
    def load(self) -> AnyLoaded:
        """Bring it into memory.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """

    def scribe(self) -> "Scribe[AnyLoaded]":
        """What answers with it; the model is loaded now, if it is not yet.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        with self._lock:
            if self._scribe is None:
                from taiwa.models.decoding.scribe import Scribe

                self._scribe = Scribe(self.load(), self.name)
            return self._scribe

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `Finished`; closing the iterator ends the writing before the next token.

        A schema that can be enforced in part only is: the answer must be checked.

        Raises:
            ConfigError: the model cannot be loaded.
            DeadEndError: the constraint leaves no token.
            InputError: the constraint cannot be read, or the prefix does not fit it.
            ModelError: the request is longer than the model can read; `UnsupportedError` for what it cannot do.
        """
        self._able(request)
        with closing(self.scribe().pieces(request)) as pieces:
            for piece in pieces:
                if isinstance(piece, str):
                    yield TextDelta(piece)
                else:
                    ending = piece.ending
                    yield Finished(
                        ending.finish, ending.stop, piece.usage, self.name,
                        likelihoods=tuple(ending.likelihoods), enforcement=piece.enforcement,
                    )  # fmt: skip

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """As `stream`, in a thread; cancelling the task ends the writing before the next token."""
        chunks = self.stream(request)
        step: asyncio.Future[Chunk | None] | None = None
        try:
            while True:
                step = asyncio.ensure_future(asyncio.to_thread(next, chunks, None))
                chunk = await asyncio.shield(step)
                if chunk is None:
                    return
                yield chunk
        finally:
            # The thread of a cancelled task is still at its token: the iterator can be closed when that is done.
            if step is not None and not step.done():
                await asyncio.wait((step,))
            chunks.close()

    def close(self) -> None:
        """Let go of the model; the next request loads it again."""
        with self._lock:
            self._scribe = None

    def _able(self, request: Request) -> None:
        if request.stop:
            self._facts.require("stop", self.name)
        if request.prefix:
            self._facts.require("prefix", self.name)
        if request.tools:
            self._facts.require("tools", self.name)
        if request.likeliest:
            self._facts.require("logprobs", self.name)
