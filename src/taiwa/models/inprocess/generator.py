"""Models in this process: a request becomes tokens, the decode loop answers it; blocking and async."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Generator, Sequence
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
from taiwa.models.attachments import fit_attachments
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.constraint_encoding import enforcement_of
from taiwa.models.inprocess.decode_loop import Backend, DecodeJob, DecodeResult, TokenSequence, decode, decode_batch
from taiwa.models.inprocess.prefix_cache import CachedPrefix, Encode, PrefixCache
from taiwa.models.inprocess.shared import SharedModel
from taiwa.models.inprocess.token_trace import TokenTrace, read_tokens, trace_as_far

DEFAULT_MAX_TOKENS = 4_096
MOST_TRACED = 2_000
"""Tokens of an answer that are read again."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request in tokens, up to where the answer begins.

    `guides` are constraints of the model itself, beside that of the request; `max_tokens` is its own limit on the answer.
    """

    tokens: tuple[int, ...]
    guides: tuple[Guide, ...] = ()
    max_tokens: int | None = None


class LoadedModel(Protocol):
    """A model in memory."""

    @property
    def network(self) -> Backend:
        """The network, which computes logits."""
        ...

    @property
    def encode(self) -> Encode:
        """Divide any part of a text into tokens."""
        ...

    def prepare(self, request: Request) -> PreparedRequest:
        """Write a conversation in the form that the model was trained on.

        Raises:
            InputError: that form cannot express the conversation.
            ModelError: the model does not support the request.
        """
        ...


AnyLoaded = TypeVar("AnyLoaded", bound=LoadedModel)


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How a constraint is compiled; `strict` refuses constraints that cannot be enforced completely."""

    strict: bool = False
    whitespace: Whitespace = "bounded"


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer with its tokens, which of them were forced, and the passes of the model that it took (`result`)."""

    text: str
    result: DecodeResult
    usage: Usage
    enforcement: Enforcement | None = None


@dataclass(frozen=True, slots=True)
class _Started:
    """A request that is ready for decoding."""

    prefix: CachedPrefix
    job: DecodeJob
    enforcement: Enforcement | None

    def answer(self, text: str, result: DecodeResult) -> GeneratedText:
        usage = Usage(self.prefix.length, len(result.tokens), cache_read_tokens=self.prefix.reused)
        return GeneratedText(text, result, usage, self.enforcement)


class TextGenerator(Generic[AnyLoaded]):
    """Answers requests with a loaded model; a prefix cache serves requests that begin alike."""

    def __init__(self, loaded: AnyLoaded, name: str) -> None:
        self.loaded = loaded
        self.name = name
        self.prefix_cache = PrefixCache(loaded.network, loaded.encode)
        self._vocabulary_faults: tuple[str, ...] | None = None

    def stream(self, request: Request, options: CompileOptions = CompileOptions()) -> Generator[str | GeneratedText]:
        """Generate an answer: yield it in pieces, and the whole with its figures last.

        Closing the generator stops before the next token.

        Raises:
            NoValidTokenError: the constraint allows no token.
            InputError: the constraint is invalid, or the prefix does not match it.
            ModelError: the request exceeds the context of the model; `UnsupportedError` for an unsupported feature.
        """
        started = self._start(request, options)
        text: list[str] = []
        try:
            for piece in decode(started.prefix.sequence, started.job):
                if isinstance(piece, str):
                    text.append(piece)
                    yield piece
                else:
                    yield started.answer("".join(text), piece)
        finally:
            self.prefix_cache.put_back(started.prefix.sequence, started.prefix.prompt)

    def batch(
        self, request: Request, count: int, options: CompileOptions = CompileOptions()
    ) -> tuple[GeneratedText, ...]:
        """Generate several answers to one request in common passes of the model, with consecutive seeds.

        The prompt is read once. A model with a sliding window or a recurrent state generates them one after the other.

        Raises:
            NoValidTokenError, InputError, ModelError: see `stream`.
        """
        started = self._start(request, options)
        sequence, unread, seed = started.prefix.sequence, started.prefix.unread, request.sampling.seed
        try:
            if len(unread) > 1:  # all but the last token is read once for all answers
                sequence.read(unread[:-1])
            jobs = [
                replace(
                    started.job,
                    unread=unread[-1:],
                    state=None if started.job.state is None else started.job.state.fork(),
                    sampling=replace(request.sampling, seed=None if seed is None else seed + number),
                )
                for number in range(count)
            ]
            return tuple(started.answer(text, result) for text, result in _decode_all(sequence, jobs))
        finally:
            self.prefix_cache.put_back(sequence, started.prefix.prompt)

    def trace(self, request: Request, text: str, most: int) -> TokenTrace:
        """Read an answer again, with the `most` likeliest tokens at each position.

        A request without randomness is answered once more: where that gives the same text, its tokens are the sampled ones.

        Raises:
            InputError, ModelError: see `stream`.
        """
        tokens = self._sampled_again(request, text)
        exact = tokens is not None
        started = self._start(request, CompileOptions())
        vocabulary = started.job.vocabulary
        try:
            found = list(vocabulary.encode(text)) if tokens is None else tokens
            readings = read_tokens(
                started.prefix.sequence, started.job.unread, started.job.state, vocabulary, found[:MOST_TRACED], most
            )
            return trace_as_far(readings, exact=exact)
        finally:
            self.prefix_cache.put_back(started.prefix.sequence, started.prefix.prompt)

    def _sampled_again(self, request: Request, text: str) -> list[int] | None:
        """Return the tokens of a text that the request leads to every time; None where it is random or leads elsewhere.

        A text that was cut is the beginning of what the request leads to.
        """
        if request.sampling.temperature != 0 and request.sampling.seed is None:
            return None
        *pieces, last = self.stream(request)
        assert isinstance(last, GeneratedText), "a stream ends with the whole answer"
        if not "".join(map(str, pieces)).startswith(text):
            return None
        vocabulary, left = self.loaded.network.vocabulary, len(text.encode("utf-8", "replace"))
        found: list[int] = []
        for token in last.result.tokens:
            if left <= 0:
                break
            found.append(token)
            left -= len(vocabulary.decode((token,)))
        return found

    def _start(self, request: Request, options: CompileOptions) -> _Started:
        network = self.loaded.network
        guide = self._compile(request.constraint, options)
        prepared = self.loaded.prepare(fit_attachments(request, self.name, fixed=True))
        guides = prepared.guides if guide is None else (guide, *prepared.guides)
        prefix = self.prefix_cache.take(prepared.tokens, request.prefix)
        try:
            if prefix.length == 0:
                raise InputError("the conversation has no text")
            if prefix.length >= network.context:
                raise ModelError(
                    f"the request has {prefix.length:,} tokens; {self.name} reads at most {network.context:,}: shorten it"
                )
            state = _state_after(prefix, intersection(*guides), request.prefix) if guides else None
        except BaseException:
            self.prefix_cache.put_back(prefix.sequence, prefix.prompt)
            raise
        room = min(request.sampling.max_tokens or DEFAULT_MAX_TOKENS, network.context - prefix.length)
        room = room if prepared.max_tokens is None else min(room, prepared.max_tokens)
        job = DecodeJob(
            prefix.unread, network.vocabulary, room, state, request.sampling, request.stop, request.top_logprobs,
            own_guide=guide is None,
        )  # fmt: skip
        constraint = request.constraint
        return _Started(prefix, job, enforcement_of(constraint, guide.coverage) if constraint and guide else None)

    def _compile(self, constraint: Constraint | None, options: CompileOptions) -> Guide | None:
        if constraint is None:
            return None
        if isinstance(constraint, Questions):
            raise UnsupportedError(f"{self.name} does not support typed questions", capability="decisions")
        vocabulary = self.loaded.network.vocabulary
        if self._vocabulary_faults is None:
            self._vocabulary_faults = vocabulary.check().faults
        if self._vocabulary_faults:
            raise ConfigError(f"{self.name} does not support constraints: {self._vocabulary_faults[0]}")
        try:
            return constraints.compile(constraint, vocabulary, strict=options.strict, whitespace=options.whitespace)
        except InputError as error:
            if options.strict or not isinstance(constraint, JsonSchema):
                raise
            # The schema belongs to a flow, which validates the answer and can continue without enforcement.
            raise UnsupportedError(
                f"{self.name} cannot enforce the schema: {error.message}", capability="json_schema"
            ) from error


def _state_after(prefix: CachedPrefix, guide: Guide, text: str) -> GuideState:
    """Return the guide state after the beginning of an answer, which a constraint covers too."""
    state = guide.start()
    try:
        for token in prefix.answer:
            state = state.advance(token)
    except InputError as error:
        raise InputError(
            f"the beginning of the answer, {text[-60:]!r}, does not match its constraint: {error.message}"
        ) from None
    return state


def _decode_all(sequence: TokenSequence, jobs: Sequence[DecodeJob]) -> list[tuple[str, DecodeResult]]:
    batch = sequence.batch(len(jobs))
    one_by_one = ((index, piece) for index, job in enumerate(jobs) for piece in decode(sequence.fork(), job))
    pieces = one_by_one if batch is None else decode_batch(batch, jobs)
    texts = [""] * len(jobs)
    results: dict[int, DecodeResult] = {}
    for index, piece in pieces:
        if isinstance(piece, str):
            texts[index] += piece
        else:
            results[index] = piece
    return [(text, results[index]) for index, text in enumerate(texts)]


class InProcessModel(SharedModel, Generic[AnyLoaded]):
    """A model that our decode loop runs. It is loaded at the first request; one object serves all threads and event loops.

    A request that begins like an earlier one reuses what the model has read of it.
    """

    def __init__(self, name: str, known: Capabilities) -> None:
        super().__init__()
        self.name = name
        self._capabilities = known
        self._lock = Lock()
        self._generator: TextGenerator[AnyLoaded] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the model supports."""
        return self._capabilities.capabilities

    @abstractmethod
    def load(self) -> AnyLoaded:
        """Load the model into memory.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """

    def generator(self) -> "TextGenerator[AnyLoaded]":
        """Return the generator of answers; the model is loaded now if it is not yet.

        Raises:
            ConfigError: it cannot be loaded; the message says what to do.
        """
        with self._lock:
            if self._generator is None:
                self._generator = TextGenerator(self.load(), self.name)
            return self._generator

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; closing the iterator stops before the next token.

        A schema that can be enforced only in part is enforced in part: validate the answer.

        Raises:
            ConfigError: the model cannot be loaded.
            NoValidTokenError: the constraint allows no token.
            InputError: the constraint is invalid, or the prefix does not match it.
            ModelError: the request exceeds the context of the model; `UnsupportedError` for an unsupported feature.
        """
        self._check_capabilities(request)
        with closing(self.generator().stream(self.completed(request))) as pieces:
            for piece in pieces:
                if isinstance(piece, str):
                    yield TextDelta(piece)
                else:
                    result = piece.result
                    yield StreamEnd(
                        result.finish, result.stop, piece.usage, self.name,
                        logprobs=tuple(result.logprobs), enforcement=piece.enforcement,
                    )  # fmt: skip

    def trace(self, request: Request, text: str, most: int = 5) -> TokenTrace:
        """Read an answer again token by token, under the constraints that it was written under.

        Raises:
            ConfigError: the model cannot be loaded.
            InputError, ModelError: the request cannot be answered by the network, see `stream`.
        """
        return self.generator().trace(self.completed(request), text, most)

    def completed(self, request: Request) -> Request:
        """Return a request as the network gets it."""
        return fit_attachments(request, self.name, fixed=True)

    async def astream(self, request: Request) -> AsyncGenerator[Chunk]:
        """Like `stream`, in a thread; cancelling the task stops before the next token."""
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
            # The thread of a cancelled task still computes its token; only then can the iterator be closed.
            if step is not None and not step.done():
                await asyncio.wait((step,))
            chunks.close()

    def _release(self) -> None:
        with self._lock:
            self._generator = None

    def _check_capabilities(self, request: Request) -> None:
        needed: tuple[tuple[object, Capability], ...] = (
            (request.stop, "stop"), (request.prefix, "prefix"), (request.tools, "tools"), (request.top_logprobs, "logprobs"),
        )  # fmt: skip
        for value, capability in needed:
            if value:
                self._capabilities.require(capability, self.name)
