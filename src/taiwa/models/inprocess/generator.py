"""Models in this process: a request becomes tokens, and the decode loop answers it; blocking and async. Sequences are kept
for requests with the same prefix (`PrefixCache`), and a model that is opened several times is loaded once (`InProcessModel`).
"""

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from concurrent.futures import wait
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar, get_args

import numpy as np

from taiwa import constraints
from taiwa.constraints.guide import Guide, GuideState, Whitespace
from taiwa.constraints.vocabulary import VocabularyReport, common_prefix
from taiwa.kernel.errors import ConfigError, ContextLengthError, InputError, ModelError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Chunk,
    Constraint,
    Decoding,
    Enforcement,
    JsonSchema,
    Notice,
    Request,
    Response,
    Sampling,
    StreamEnd,
    TextDelta,
    Usage,
    WrittenTokens,
    constrained_prefix,
)
from taiwa.kernel.runtime import start_in_thread
from taiwa.kernel.serialization import record, to_json
from taiwa.kernel.wording import Wording
from taiwa.models.http_api.capabilities import Capabilities, fit_attachments
from taiwa.models.http_api.constraint_encoding import enforcement_of
from taiwa.models.inprocess.chat_template import ChatTemplate, Tokenizer
from taiwa.models.inprocess.decode_loop import (
    Backend,
    DecodeJob,
    DecodeResult,
    TokenSequence,
    TokenTrace,
    decode,
    decode_batch,
    read_tokens,
    resolved,
)

DEFAULT_MAX_TOKENS = 4_096
MOST_TRACED = 2_000
"""Tokens of an answer that are read again."""
SILENT_SECONDS = 1.5
"""Loading and reading are reported when they take longer, and reading again after each `REPORT_SECONDS`."""
REPORT_SECONDS = 5.0


# --- reuse of what the model has read ---------------------------------------------------------------------------------

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""Tokenize a text, or a part of one."""
ToBytes: TypeAlias = Callable[[int], bytes]
"""Return the bytes of a token; none for a special token."""

WINDOWS = (1, 2, 4, 8, 16, 32)
"""Numbers of last tokens to tokenize again, until the first of them ends at the same place."""
MAX_SEQUENCES = 4
ONE_ROW = np.zeros(1, dtype=np.intp)
"""The rows of the output head to compute for tokens whose logits are not used."""
MIN_COMMON_TOKENS = 8
"""A sequence with a shorter common prefix is not worth reusing."""
FEWEST_TOKENS, MOST_TOKENS = 128, 4_096
"""Tokens of an opening that is kept: fewer are read in less time than a user notices."""


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """A sequence to continue: the tokens of the prompt, those of the answer so far, and those that it has not read."""

    sequence: TokenSequence
    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    unread: tuple[int, ...]

    @property
    def length(self) -> int:
        """The number of tokens of prompt and answer."""
        return len(self.prompt) + len(self.answer)

    @property
    def reused(self) -> int:
        """The number of these that are already in the cache."""
        return self.length - len(self.unread)


class PrefixCache:
    """Keeps the last few sequences of a backend, in total at most as many tokens as one context has."""

    def __init__(self, backend: Backend, encode: Encode) -> None:
        self._backend = backend
        self._encode = encode
        self._entries: list[tuple[TokenSequence, tuple[int, ...]]] = []
        """Sequences, each with the tokens of its prompt, up to the start of the answer."""
        self._lock = Lock()

    def take(self, prompt: tuple[int, ...], prefix: str) -> CachedPrefix:
        """Take the sequence with the longest common prefix of a prompt and a beginning of the answer out of the cache, or a
        new one.

        After an interrupted answer, the prefix is its text with a tool result appended: sampled tokens are kept, as far as
        the prefix repeats their text.
        """
        with self._lock:
            answer = self._answer_tokens(prompt, prefix)
            text = (*prompt, *answer)
            best = max(self._entries, key=lambda entry: common_prefix(entry[0].tokens, text), default=None)
            common = common_prefix(best[0].tokens, text) if best is not None else 0
            if best is None or common < min(MIN_COMMON_TOKENS, len(text)):
                return CachedPrefix(self._backend.start(), prompt, answer, text)
            common = min(common, len(text) - 1)  # the logits after the last token are not kept, so it is read again
            sequence = best[0]
            if len(sequence.tokens) - common > common and len(self._entries) < MAX_SEQUENCES:
                sequence = sequence.fork()  # its own continuation is long enough to be kept as well
            else:
                self._entries.remove(best)
        sequence.rollback(len(sequence.tokens) - common)
        return CachedPrefix(sequence, prompt, answer, text[common:])

    def put_back(self, sequence: TokenSequence, prompt: tuple[int, ...]) -> None:
        """Return a sequence to the cache; the caller must not use it any more."""
        with self._lock:
            self._entries.append((sequence, prompt))
            while len(self._entries) > 1 and (
                len(self._entries) > MAX_SEQUENCES
                or sum(len(kept.tokens) for kept, _ in self._entries) > self._backend.context
            ):
                del self._entries[0]

    def common(self, prompt: Sequence[int]) -> int:
        """Return the length of the longest beginning of a prompt that a sequence has."""
        with self._lock:
            return max((common_prefix(sequence.tokens, prompt) for sequence, _ in self._entries), default=0)

    def clear(self) -> None:
        """Remove all sequences."""
        with self._lock:
            self._entries.clear()

    def _answer_tokens(self, prompt: tuple[int, ...], prefix: str) -> tuple[int, ...]:
        """Tokenize the beginning of an answer, with its sampled tokens if a sequence has them."""
        if not prefix:
            return ()
        text = prefix.encode("utf-8", "replace")
        # Another division of the same text would cost its cache, and is not what the model has written.
        best: tuple[int, ...] = ()
        length = 0
        for sequence, of_prompt in self._entries:
            tokens = sequence.tokens
            if of_prompt == prompt and tuple(tokens[: len(prompt)]) == prompt:
                sampled = tuple(tokens[len(prompt) :])
                repeated = sampled[: self._count_repeated(sampled, text)]
                size = len(self._backend.vocabulary.decode(repeated))
                if size > length:
                    best, length = repeated, size
        while best and length < len(text) and text[length] & 0xC0 == 0x80:  # within a character
            length -= len(self._to_bytes(best[-1]))
            best = best[:-1]
        rest = text[length:].decode("utf-8", "replace")
        spliced = splice_tokens((*prompt, *best), rest, self._to_bytes, self._encode)
        if tuple(spliced[: len(prompt)]) != prompt:  # the tokens of the prompt must not change
            return (*best, *self._encode(rest))
        return tuple(spliced[len(prompt) :])

    def _to_bytes(self, token: int) -> bytes:
        return self._backend.vocabulary.decode((token,))

    def _count_repeated(self, sampled: Sequence[int], text: bytes) -> int:
        """Return how many of the sampled tokens the text starts with."""
        end = 0
        for count, token in enumerate(sampled):
            start, end = end, end + len(self._to_bytes(token))
            if start == end or text[start:end] != self._to_bytes(token):
                return count
        return len(sampled)


def splice_tokens(tokens: Sequence[int], text: str, to_bytes: ToBytes, encode: Encode) -> list[int]:
    """Return the tokens of a tokenised text with more text appended, re-tokenising as little as possible.

    >>> words = ["1", "12", "123", "2", "3", " "]
    >>> def longest(text: str) -> list[int]:
    ...     found = []
    ...     while text:
    ...         found.append(max((i for i, word in enumerate(words) if text.startswith(word)), key=lambda i: len(words[i])))
    ...         text = text[len(words[found[-1]]):]
    ...     return found
    >>> splice_tokens([0, 5, 1], "3 1", lambda token: words[token].encode(), longest)
    [0, 5, 2, 5, 0]
    """
    if not text:
        return list(tokens)
    for window in WINDOWS:
        start = max(len(tokens) - window, 0)
        following = _divide_after_first(tokens[start:], text, to_bytes, encode)
        if following is not None:
            return [*tokens[: start + 1], *following]
        if start == 0:
            break
    # Tokenize everything after the last special token again.
    start = max((index + 1 for index, token in enumerate(tokens) if not to_bytes(token)), default=0)
    before = _decode(b"".join(map(to_bytes, tokens[start:])))
    if before is None:
        return [*tokens, *encode(text)]
    return [*tokens[:start], *encode(before + text)]


def _divide_after_first(last: Sequence[int], text: str, to_bytes: ToBytes, encode: Encode) -> list[int] | None:
    """Return the tokens after the first one of `last`; None if that one would end elsewhere, or within a character."""
    if not last:
        return None
    head = to_bytes(last[0])
    if not head:  # a special token has no text that could change
        rest = _decode(b"".join(map(to_bytes, last[1:])))
        return None if rest is None else list(encode(rest + text))
    whole = _decode(b"".join(map(to_bytes, last)))
    if whole is None:
        return None
    divided = list(encode(whole + text))
    ends = [0, *accumulate(len(to_bytes(token)) for token in divided)]
    if ends[-1] != len((whole + text).encode()) or len(head) not in ends:
        return None
    return divided[ends.index(len(head)) :]


def _decode(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


AnyNetwork = TypeVar("AnyNetwork", bound=Backend)


@dataclass(frozen=True)
class LoadedModel(Generic[AnyNetwork]):
    """A model in memory: the network, which computes logits, its tokenizer, and the tokens with which each text begins."""

    network: AnyNetwork
    encode: Tokenizer
    chat_template: ChatTemplate
    start: tuple[int, ...] = ()

    def prepare(self, request: Request) -> tuple[int, ...]:
        """Return the tokens of a conversation up to the start of the answer, without its prefix.

        Raises:
            InputError: the chat template does not support the conversation, or does not end.
        """
        tokens = self.chat_template.tokens(request)
        return tokens if tokens[: len(self.start)] == self.start else (*self.start, *tokens)


AnyLoaded = TypeVar("AnyLoaded", bound=LoadedModel[Any])


class KeptOpenings(Protocol):
    """What earlier processes have read of the openings of requests; see `taiwa.models.inprocess.openings`."""

    def load(self, tokens: Sequence[int]) -> TokenSequence | None:
        """Return a sequence that has read these tokens; None if there is none."""

    def save(self, sequence: Any, tokens: Sequence[int]) -> None:  # noqa: ANN401  (a sequence of its own model)
        """Keep what a sequence of the same model has read of these tokens."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How a constraint is compiled; `strict` refuses constraints that cannot be enforced completely.

    `whitespace` None is spaced, where most tokens are forced, or bounded if the request has a beginning of the answer. Behind a colon
    without a space Qwen2.5-Coder writes null for what the text says.
    """

    strict: bool = False
    whitespace: Whitespace | None = None


DEFAULT_OPTIONS = CompileOptions()


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """An answer with its tokens, which of them were forced, and the number of forward passes (`result`)."""

    text: str
    result: DecodeResult
    usage: Usage
    enforcement: Enforcement | None = None


@dataclass(frozen=True, slots=True)
class PromptProgress:
    """How many of the tokens of a prompt were read; reported after each piece."""

    read: int
    total: int


@dataclass(frozen=True, slots=True)
class _Started:
    """A request that is ready for decoding."""

    prefix: CachedPrefix
    job: DecodeJob
    enforcement: Enforcement | None
    opening: tuple[int, ...]
    """The tokens of its opening, if they are to be kept."""

    def answer(self, text: str, result: DecodeResult) -> GeneratedText:
        usage = Usage(self.prefix.length, len(result.tokens), cache_read_tokens=self.prefix.reused)
        return GeneratedText(text, result, usage, self.enforcement)


class TextGenerator(Generic[AnyLoaded]):
    """Answers requests with a loaded model; a prefix cache serves requests with the same prefix."""

    def __init__(self, loaded: AnyLoaded, name: str, openings: KeptOpenings | None = None) -> None:
        self.loaded = loaded
        self.name = name
        self.prefix_cache = PrefixCache(loaded.network, loaded.encode)
        self._openings = openings
        self._vocabulary_report: VocabularyReport | None = None

    def stream(
        self, request: Request, options: CompileOptions = DEFAULT_OPTIONS
    ) -> Generator[str | PromptProgress | GeneratedText]:
        """Generate an answer: yield it in pieces, and the complete result with its figures last.

        Closing the generator stops before the next token, or the next piece of a long prompt.

        Raises:
            NoValidTokenError: the constraint allows no token.
            InputError: the constraint is invalid, or the prefix does not match it.
            ModelError: the request exceeds the context of the model; `UnsupportedError` for an unsupported feature.
        """
        started = self._start(request, options)
        text: list[str] = []
        try:
            unread = yield from self._read_pieces(started)
            for piece in decode(started.prefix.sequence, replace(started.job, unread=unread)):
                if isinstance(piece, str):
                    text.append(piece)
                    yield piece
                else:
                    yield started.answer("".join(text), piece)
        finally:
            if self._openings is not None and started.opening:
                self._openings.save(started.prefix.sequence, started.opening)
            self.prefix_cache.put_back(started.prefix.sequence, started.prefix.prompt)

    def _read_pieces(self, started: _Started) -> Generator[PromptProgress, None, Sequence[int]]:
        """Read a long prompt in pieces, whose size is fixed, because it changes the last digits of the logits; return the last."""
        unread, size = started.job.unread, self.loaded.network.piece
        while len(unread) > size:
            started.prefix.sequence.read(unread[:size], ONE_ROW)
            unread = unread[size:]
            yield PromptProgress(started.prefix.length - len(unread), started.prefix.length)
        return unread

    def batch(
        self, requests: Sequence[Request], options: CompileOptions = DEFAULT_OPTIONS
    ) -> tuple[GeneratedText, ...]:
        """Answer requests that differ only in their seeds in common passes of the model.

        The prompt is read once. A model with a sliding window or a recurrent state generates them one after the other.

        Raises:
            NoValidTokenError, InputError, ModelError: see `stream`.
        """
        started = self._start(requests[0], options)
        sequence, unread = started.prefix.sequence, started.prefix.unread
        try:
            if len(unread) > 1:  # all but the last token is read once for all answers
                sequence.read(unread[:-1], ONE_ROW)
            jobs = [
                replace(
                    started.job,
                    unread=unread[-1:],
                    state=None if started.job.state is None else started.job.state.fork(),
                    sampling=request.sampling,
                )
                for request in requests
            ]
            return tuple(started.answer(text, result) for text, result in _decode_all(sequence, jobs))
        finally:
            self.prefix_cache.put_back(sequence, started.prefix.prompt)

    def trace(self, request: Request, answer: Response, most: int) -> TokenTrace:
        """Read an answer again, with the `most` likeliest tokens at each position.

        Raises:
            InputError, ModelError: see `stream`.
        """
        started = self._start(request, DEFAULT_OPTIONS)
        try:
            sampled = self._sampled(answer)
            found = started.job.vocabulary.encode(answer.text) if sampled is None else sampled
            tokens, refused = read_tokens(started.prefix.sequence, started.job, found[:MOST_TRACED], most)
            return TokenTrace(tokens, sampled is not None, refused)
        finally:
            self.prefix_cache.put_back(started.prefix.sequence, started.prefix.prompt)

    def _sampled(self, answer: Response) -> list[int] | None:
        """Return the sampled tokens of the text of an answer; None if it has none, or those of another file of the same name."""
        vocabulary, text = self.loaded.network.vocabulary, answer.text.encode("utf-8", "replace")
        ids = () if answer.decoding.written is None else answer.decoding.written.ids
        if not all(0 <= token < len(vocabulary) for token in ids) or not vocabulary.decode(ids).startswith(text):
            return None
        ends = accumulate(len(vocabulary.decode((token,))) for token in ids)
        return [token for token, before in zip(ids, (0, *ends), strict=False) if before < len(text)]

    def _start(self, request: Request, options: CompileOptions) -> _Started:
        network = self.loaded.network
        guide = self._compile(request, options)
        request = fit_attachments(request, self.name, fixed=True)
        prompt = self.loaded.prepare(request)
        opening = self._recall(request, prompt)
        prefix = self.prefix_cache.take(prompt, request.prefix)
        try:
            if prefix.length == 0:
                raise InputError("the conversation has no text")
            if prefix.length >= network.context:
                raise ContextLengthError(
                    f"the request is longer than the model's context length: it has {prefix.length:,} tokens; "
                    f"{self.name} reads at most {network.context:,}; shorten it"
                )
            state = None if guide is None else _state_after(prefix, guide, request)
        except BaseException:
            self.prefix_cache.put_back(prefix.sequence, prefix.prompt)
            raise
        room = min(request.sampling.max_tokens or DEFAULT_MAX_TOKENS, network.context - prefix.length)
        job = DecodeJob(
            prefix.unread, network.vocabulary, room, state, request.sampling,
            (*request.stop, *self.loaded.chat_template.stops(request)), request.top_logprobs,
        )  # fmt: skip
        constraint = request.constraint
        enforcement = enforcement_of(constraint, guide.coverage) if constraint and guide else None
        return _Started(prefix, job, enforcement, opening)

    def _recall(self, request: Request, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """Put the opening of a request into the cache if it is kept; else return its tokens, if they are worth keeping."""
        if self._openings is None or not request.hints.opening:
            return ()
        known = self.prefix_cache.common(prompt)
        if len(prompt) - known < FEWEST_TOKENS:
            return ()
        with suppress(InputError, ModelError):  # a chat template may refuse a part of a conversation
            alone = self.loaded.prepare(replace(request, messages=request.messages[: request.hints.opening]))
            opening = prompt[: common_prefix(alone, prompt)]
            if len(opening) - known >= FEWEST_TOKENS and len(opening) <= MOST_TOKENS:
                if (sequence := self._openings.load(opening)) is None:
                    return opening
                self.prefix_cache.put_back(sequence, opening)
        return ()

    def _compile(self, request: Request, options: CompileOptions) -> Guide | None:
        constraint = request.constraint
        if constraint is None:
            return None
        whitespace = options.whitespace or ("bounded" if request.prefix else "spaced")
        vocabulary = self.loaded.network.vocabulary
        self._check_vocabulary(constraint)
        try:
            closed = not request.prefix  # which may hold another key
            return constraints.compile(
                constraint, vocabulary, strict=options.strict, whitespace=whitespace, closed=closed
            )
        except InputError as error:
            if options.strict or not isinstance(constraint, JsonSchema):
                raise
            # The schema belongs to a flow, which validates the answer and can continue without enforcement.
            raise UnsupportedError(
                f"{self.name} cannot enforce the schema: {error.message}", capability="json_schema"
            ) from error

    def _check_vocabulary(self, constraint: Constraint) -> None:
        """Check that the tokens can write what a constraint demands.

        A vocabulary without some bytes is the rule, not the exception: those of the planes of Unicode that are hardly used.
        """
        if self._vocabulary_report is None:
            self._vocabulary_report = self.loaded.network.vocabulary.check()
        report = self._vocabulary_report
        if report.faults and (report.broken or not set(report.missing).isdisjoint(to_json(record(constraint)))):
            raise ConfigError(f"{self.name} does not support this constraint: {report.faults[0]}")


def _state_after(prefix: CachedPrefix, guide: Guide, request: Request) -> GuideState:
    """Return the guide state after the beginning of an answer, as far as the constraint covers it."""
    state, text = guide.start(), request.prefix
    assert request.constraint is not None, "a guide is that of a constraint"
    try:
        for token in prefix.answer if constrained_prefix(request.constraint, text) else ():
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


class InProcessModel(ABC, Generic[AnyLoaded]):
    """A model run by our decode loop. It is loaded at the first request, and released when its last opener closes it; one object
    serves all threads and event loops.

    A request with the same prefix as an earlier one reuses its cache.
    """

    def __init__(self, name: str, known: Capabilities) -> None:
        self.name = name
        self._capabilities = known
        self._lock = Lock()
        self._openers = 0
        self._openers_lock = Lock()
        self._generator: TextGenerator[AnyLoaded] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def share(self) -> Self:
        """Add an opener, which must close it."""
        with self._openers_lock:
            self._openers += 1
        return self

    def close(self) -> None:
        """Release the model, unless another opener still has it."""
        with self._openers_lock:
            self._openers = max(self._openers - 1, 0)
            if self._openers:
                return
        self._release()

    async def aclose(self) -> None:
        """As `close`, in a thread."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the model supports."""
        return self._capabilities.capabilities

    def used(self, sampling: Sampling) -> Sampling:
        """Return a sampling with what this model uses for what it leaves open."""
        temperature, top_p = resolved(sampling)
        return replace(
            sampling, temperature=temperature, top_p=top_p, max_tokens=sampling.max_tokens or DEFAULT_MAX_TOKENS
        )

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
            if self._generator is None or not self.is_usable(self._generator.loaded):
                self._generator = self.make_generator()
            return self._generator

    def make_generator(self) -> "TextGenerator[AnyLoaded]":
        """Load the model."""
        return TextGenerator(self.load(), self.name)

    @property
    def loaded(self) -> AnyLoaded | None:
        """What was loaded; None before the first request, and after the model was closed."""
        generator = self._generator
        return None if generator is None else generator.loaded

    def is_usable(self, loaded: AnyLoaded) -> bool:  # noqa: ARG002  (of use to other models)
        """Whether what was loaded can still be used; if not, it is loaded again."""
        return True

    def loading_text(self) -> str:
        """Return what is shown while the model is loaded."""
        return Wording("loading {name}", name=self.name)

    def stream(self, request: Request, options: CompileOptions = DEFAULT_OPTIONS) -> Generator[Chunk]:
        """Answer in chunks, the last one `StreamEnd`; closing the iterator stops before the next token.

        A schema that can be enforced only in part is enforced in part, unless the options are strict: validate the answer.

        Raises:
            ConfigError: the model cannot be loaded; other errors as of `TextGenerator.stream`.
        """
        self._check_capabilities(request)
        generator = yield from self._loaded_with_notice()
        last = time.monotonic() + SILENT_SECONDS - REPORT_SECONDS
        with closing(generator.stream(self.completed(request), options)) as pieces:
            for piece in pieces:
                if isinstance(piece, str):
                    yield TextDelta(piece)
                elif isinstance(piece, PromptProgress):
                    if time.monotonic() - last > REPORT_SECONDS:
                        last = time.monotonic()
                        yield Notice(Wording("reading the prompt: {part}", part=f"{piece.read / piece.total:.0%}"), code="waiting")  # fmt: skip
                else:
                    yield self._end(request, piece)

    def _loaded_with_notice(self) -> "Generator[Notice, None, TextGenerator[AnyLoaded]]":
        """Return the generator; if loading takes long, say so."""
        if (loaded := self.loaded) is not None and self.is_usable(loaded):
            return self.generator()
        loading = start_in_thread(self.generator, "loading")
        wait((loading,), SILENT_SECONDS)
        if not loading.done():
            yield Notice(self.loading_text(), code="waiting")
        return loading.result()

    def _end(self, request: Request, answer: GeneratedText) -> StreamEnd:
        found = answer.result
        written = WrittenTokens(tuple(found.tokens), tuple(found.forced), found.passes, found.sparse_passes)
        return StreamEnd(
            found.finish, found.stop if found.stop in request.stop else None, answer.usage, self.name,
            decoding=Decoding(tuple(found.logprobs), answer.enforcement, written),
        )  # fmt: skip

    def stream_together(
        self, requests: Sequence[Request], options: CompileOptions
    ) -> Generator[Notice, None, list[tuple[Chunk, ...]]]:
        """Answer requests that differ only in their seeds in common passes, and return the chunks of each.

        Raises:
            ConfigError, NoValidTokenError, InputError, ModelError: see `stream`.
        """
        self._check_capabilities(requests[0])
        generator = yield from self._loaded_with_notice()
        found = generator.batch([self.completed(request) for request in requests], options)
        return [
            (TextDelta(answer.text), self._end(request, answer))
            for request, answer in zip(requests, found, strict=True)
        ]

    def trace(self, request: Request, answer: Response, most: int = 5) -> TokenTrace:
        """Read an answer again token by token, under the constraints that it was written under.

        Raises:
            ConfigError: the model cannot be loaded.
            InputError, ModelError: the request cannot be answered by the network, see `stream`.
        """
        return self.generator().trace(self.completed(request), answer, most)

    def completed(self, request: Request) -> Request:
        """Return the request that the network gets."""
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
        # Without a server, no setting changes what the model can do.
        known = replace(self._capabilities, fixed=frozenset(get_args(Capability)))
        if request.tools:
            known = replace(known, capabilities=known.capabilities - {"tools"})
        needed: tuple[tuple[object, Capability], ...] = (
            (request.stop, "stop"), (request.prefix, "prefix"), (request.tools, "tools"), (request.top_logprobs, "logprobs"),
        )  # fmt: skip
        for value, capability in needed:
            if value:
                known.require(capability, self.name)


class ModelWithOptions:
    """A model in this process with other options for constraints.

    The requests of `together`, which differ only in their seeds, are answered in common passes when the first of them arrives;
    each of them is asked once, in any thread.
    """

    def __init__(
        self, model: InProcessModel[AnyLoaded], options: CompileOptions, together: Sequence[Request] = ()
    ) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self._model = model
        self._options = options
        self._together = list(together)
        self._answers: list[tuple[Chunk, ...]] = []
        self._failure: Exception | None = None
        self._lock = Lock()

    def stream(self, request: Request) -> Generator[Chunk]:
        """Answer in chunks, see `InProcessModel.stream`; those of an answer that is written beside others come at once."""
        if request not in self._together:
            yield from self._model.stream(request, self._options)
            return
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if not self._answers:
                try:
                    self._answers = yield from self._model.stream_together(self._together, self._options)
                except Exception as error:
                    self._failure = error
                    raise
            place = self._together.index(request)
            del self._together[place]
            chunks = self._answers.pop(place)
        yield from chunks


# --- memory ------------------------------------------------------------------------------------------------------------

GB = 1e9
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still allocate; None if the system does not report them."""
    limits: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        limit, used = (CGROUP / "memory.max").read_text().strip(), (CGROUP / "memory.current").read_text().strip()
        if limit.isdecimal():
            limits.append(int(limit) - int(used))
    except OSError:
        pass
    if not limits and hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)
