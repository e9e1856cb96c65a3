"""Request → tokens → answer, blocking and async."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import Generic, Protocol, TypeVar

from taiwa import constraints
from taiwa.constraints.guide import Guide, GuideState, Whitespace, intersection
from taiwa.kernel.errors import ConfigError, InputError, ModelError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Constraint,
    Enforcement,
    JsonSchema,
    Questions,
    Request,
    StreamEnd,
    TextDelta,
    Usage,
)
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.constraint_encoding import enforcement_of
from taiwa.models.inprocess.decode_loop import Backend, Ending, Job, TokenSequence, decode, decode_together
from taiwa.models.inprocess.prefix_cache import CachedPrefix, Divide, PrefixCache

__all__ = ["CompileOptions", "GeneratedText", "InProcessModel", "LoadedModel", "PreparedRequest", "TextGenerator"]


MOST_TOKENS = 4_096
"""How long an answer may be where the request does not say."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request as a model reads it: its tokens up to where the answer begins.

    `guides` are what the model holds each of its answers to, beside what the request holds this one to; `most` is how many
    tokens they may have.
    """

    tokens: tuple[int, ...]
    guides: tuple[Guide, ...] = ()
    most: int | None = None


class LoadedModel(Protocol):
    """A model in memory: its network, how it divides texts, and how it is told a conversation."""

    @property
    def network(self) -> Backend:
        """What gives logits."""
        ...

    @property
    def divider(self) -> Divide:
        """How a text becomes tokens, wherever it stands."""
        ...

    def posed(self, request: Request) -> PreparedRequest:
        """Write a conversation as the model was taught to read it.

        Raises:
            InputError: it cannot be written so.
            ModelError: the model cannot do what is asked.
        """
        ...


AnyLoaded = TypeVar("AnyLoaded", bound=LoadedModel)


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How a constraint is compiled: `strict` refuses what cannot be enforced."""

    strict: bool = False
    whitespace: Whitespace = "bounded"


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer and how it came to be: its tokens, which of them were forced, how often the model was run."""

    text: str
    ending: Ending
    usage: Usage
    enforcement: Enforcement | None = None


@dataclass(frozen=True, slots=True)
class _Begun:
    opened: CachedPrefix
    job: Job
    enforcement: Enforcement | None

    def written(self, text: str, ending: Ending) -> GeneratedText:
        """The whole account of an answer."""
        usage = Usage(self.opened.length, len(ending.tokens), cache_read_tokens=self.opened.reused)
        return GeneratedText(text, ending, usage, self.enforcement)


class TextGenerator(Generic[AnyLoaded]):
    """Answers requests with a loaded model; what was read is kept for requests that begin alike."""

    def __init__(self, loaded: AnyLoaded, name: str) -> None:
        self.loaded = loaded
        self.name = name
        self.shelf = PrefixCache(loaded.network, loaded.divider)
        self._faults: tuple[str, ...] | None = None

    def pieces(self, request: Request, wish: CompileOptions = CompileOptions()) -> Generator[str | GeneratedText]:
        """Write an answer: give it out piece by piece, and last the account of it.

        Closing the generator ends the writing before the next token.

        Raises:
            DeadEndError: the constraint leaves no token.
            InputError: the constraint cannot be read, or the prefix does not fit it.
            ModelError: the request is longer than the model can read; `UnsupportedError` for what it cannot do.
        """
        begun = self._begin(request, wish)
        said: list[str] = []
        try:
            for piece in decode(begun.opened.track, begun.job):
                if isinstance(piece, str):
                    said.append(piece)
                    yield piece
                else:
                    yield begun.written("".join(said), piece)
        finally:
            self.shelf.keep(begun.opened.track, begun.opened.prompt)

    def together(
        self, request: Request, count: int, wish: CompileOptions = CompileOptions()
    ) -> tuple[GeneratedText, ...]:
        """Several answers to one request, side by side in each pass of the model, drawn with seeds that follow each other.

        A model whose layers keep a window or a state writes them one after the other, behind one reading of the request.
        As `pieces` raises.
        """
        begun = self._begin(request, wish)
        track, unread, seed = begun.opened.track, begun.opened.unread, request.sampling.seed
        try:
            if len(unread) > 1:  # all but the last token is read once for all of them
                track.read(unread[:-1])
            jobs = [
                replace(
                    begun.job,
                    unread=unread[-1:],
                    state=None if begun.job.state is None else begun.job.state.fork(),
                    sampling=replace(request.sampling, seed=None if seed is None else seed + number),
                )
                for number in range(count)
            ]
            return tuple(begun.written(text, ending) for text, ending in _all(track, jobs))
        finally:
            self.shelf.keep(track, begun.opened.prompt)

    def _begin(self, request: Request, wish: CompileOptions) -> _Begun:
        network = self.loaded.network
        made = self._guide(request.constraint, wish)
        posed = self.loaded.posed(request)
        guides = posed.guides if made is None else (made, *posed.guides)
        opened = self.shelf.open(posed.tokens, request.prefix)
        try:
            if opened.length == 0:
                raise InputError("there is nothing to answer: the conversation has no words")
            if opened.length >= network.context:
                raise ModelError(
                    f"the request has {opened.length:,} tokens, and {self.name} reads {network.context:,} at most: shorten it"
                )
            state = self._begun_state(intersection(*guides), opened, request.prefix) if guides else None
        except BaseException:
            self.shelf.keep(opened.track, opened.prompt)
            raise
        room = min(request.sampling.max_tokens or MOST_TOKENS, network.context - opened.length)
        room = room if posed.most is None else min(room, posed.most)
        job = Job(
            opened.unread, network.vocabulary, room, state, request.sampling, request.stop, request.top_logprobs,
            own=made is None,
        )  # fmt: skip
        held = None
        if made is not None and request.constraint is not None:
            held = enforcement_of(request.constraint, made.coverage)
        return _Begun(opened, job, held)

    def _guide(self, constraint: Constraint | None, wish: CompileOptions) -> Guide | None:
        if constraint is None:
            return None
        if isinstance(constraint, Questions):
            raise UnsupportedError(f"{self.name} answers no typed questions", capability="decisions")
        vocabulary = self.loaded.network.vocabulary
        if self._faults is None:
            self._faults = vocabulary.check().faults
        if self._faults:
            raise ConfigError(f"{self.name} cannot be held to a constraint: {self._faults[0]}")
        try:
            return constraints.compile(constraint, vocabulary, strict=wish.strict, whitespace=wish.whitespace)
        except InputError as error:
            if wish.strict or not isinstance(constraint, JsonSchema):
                raise
            # The schema belongs to a flow, which checks the answer and can go on without.
            raise UnsupportedError(
                f"{self.name} cannot be held to the schema: {error.message}", capability="json_schema"
            ) from error

    def _begun_state(self, made: Guide, opened: CachedPrefix, prefix: str) -> GuideState:
        """The state behind the beginning of an answer: a constraint is on the whole of it."""
        state = made.start()
        try:
            for token in opened.answer:
                state = state.advance(token)
        except InputError as error:
            raise InputError(
                f"the beginning of the answer, {prefix[-60:]!r}, does not fit its constraint: {error.message}"
            ) from None
        return state


def _all(track: TokenSequence, jobs: Sequence[Job]) -> Iterator[tuple[str, Ending]]:
    """Write all of them to their ends."""
    bundle = track.bundle(len(jobs))
    pieces = (
        decode_together(bundle, jobs)
        if bundle is not None
        else ((number, piece) for number, job in enumerate(jobs) for piece in decode(track.fork(), job))
    )
    said: list[list[str]] = [[] for _ in jobs]
    endings: dict[int, Ending] = {}
    for number, piece in pieces:
        if isinstance(piece, str):
            said[number].append(piece)
        else:
            endings[number] = piece
    return (("".join(text), endings[number]) for number, text in enumerate(said))


class InProcessModel(ABC, Generic[AnyLoaded]):
    """A model that our own decode loop writes with. It is loaded when it is first asked; one object serves all threads and
    event loops. A request that begins as an earlier one did goes on from what the model has read of it.
    """

    def __init__(self, name: str, known: Capabilities) -> None:
        self.name = name
        self._facts = known
        self._lock = Lock()
        self._scribe: TextGenerator[AnyLoaded] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do."""
        return self._facts.capabilities

    @abstractmethod
    def load(self) -> AnyLoaded:
        """Bring it into memory.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """

    def scribe(self) -> "TextGenerator[AnyLoaded]":
        """What answers with it; the model is loaded now, if it is not yet.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        with self._lock:
            if self._scribe is None:
                self._scribe = TextGenerator(self.load(), self.name)
            return self._scribe

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; closing the iterator ends the writing before the next token.

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
                    yield StreamEnd(
                        ending.finish, ending.stop, piece.usage, self.name,
                        logprobs=tuple(ending.logprobs), enforcement=piece.enforcement,
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
        if request.top_logprobs:
            self._facts.require("logprobs", self.name)
