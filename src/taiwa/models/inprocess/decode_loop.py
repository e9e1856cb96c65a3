"""The decode loop of models in this process: protocols of a backend, sampling, generation under a guide, and
the trace of an answer: what the constraint allowed, what the model preferred, and which token was chosen.
"""

from codecs import getincrementaldecoder
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from taiwa.constraints.guide import Explanation, GuideState, count_allowed, empty_mask, mask_tokens, unpack_mask
from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import FinishReason, Sampling, TokenLogprob

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taiwa.constraints.guide import Mask

    Logits: TypeAlias = NDArray[np.float32]
    Rows: TypeAlias = NDArray[np.intp]
    Tokens = NDArray[np.intp]

Utf8Decoder = getincrementaldecoder("utf-8")
MAX_GATHERED = 2_048
"""Up to this many allowed tokens are gathered for sampling; more are masked in place."""
MAX_SPARSE_ROWS = 4_096
"""Up to this many allowed tokens have only their rows of the output head computed; for more, all rows are."""
FIRST_SORTED = 512
REACH = 40.0
"""Logits further below the best are ignored, in units of the temperature: e^-40 of 131,072 tokens is less than a draw resolves."""
MAX_SHOWN_CHARS = 60
MAX_PERIOD = 64
"""Longest run of tokens whose repetition is recognised: two or three lines of text."""
MIN_PERIODS = 3
MIN_REPEATED = 128
"""Tokens that a repetition fills before it ends the answer; a shorter one may be meant (a table, a refrain, a row of dashes)."""
MIN_COUNTED_PERIODS = 8
MIN_COUNTED_WORDS = 8
"""Periods that differ in numbers only, as in a list that counts on with the same words, and the other tokens of each."""
REPETITION_STEP = 16
"""Tokens between two looks for a repetition."""


class TextDecoder:
    """Decodes bytes to text incrementally; incomplete characters and possible beginnings of a stop sequence are held back.

    >>> decoder = TextDecoder(("END",))
    >>> [decoder.add(piece) for piece in (b"so E", b"Nough E", b"N", b"D of it")]
    ['so ', 'ENough ', '', '']
    >>> decoder.stop
    'END'
    """

    __slots__ = ("_decoder", "_pending", "_stops", "stop")

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = Utf8Decoder("replace")
        self._pending = ""
        self.stop: str | None = None

    def add(self, data: bytes) -> str:
        """Decode the next bytes and return the text that is final; after a stop sequence it is empty."""
        if self.stop is not None:
            return ""
        return self._release(self._pending + self._decoder.decode(data))

    def close(self) -> str:
        """Return the text that was held back; an incomplete character becomes U+FFFD."""
        if self.stop is not None:
            return ""
        text = self._release(self._pending + self._decoder.decode(b"", True)) + self._pending
        self._pending = ""
        return text

    def _release(self, text: str) -> str:
        if not self._stops:
            self._pending = ""
            return text
        # The stop sequence that is complete first; of two that end together, the longer one.
        stops = [(text.find(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if stops:
            end, _, self.stop = min(stops)
            self._pending = ""
            return text[: end - len(self.stop)]
        final = len(text) - max(self._overlap(text, stop) for stop in self._stops)
        self._pending = text[final:]
        return text[:final]

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """Return the number of characters at the end of the text that begin a stop sequence."""
        for length in range(min(len(stop) - 1, len(text)), 0, -1):
            if text.endswith(stop[:length]):
                return length
        return 0


class TokenSequence(Protocol):
    """A token sequence that a model has read, with its KV cache."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that were read."""

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read one or more tokens in one pass and return the logits after the last one.

        The logits are float32: of all tokens, (V,), or of `rows` only, (len(rows),), without computing the rest of the output
        head. The next call may overwrite them.
        """

    def rollback(self, count: int) -> None:
        """Remove the last `count` tokens."""

    def fork(self) -> "TokenSequence":
        """Return a copy that can be continued independently."""

    def batch(self, count: int) -> "SequenceBatch | None":
        """Return `count` copies to be continued in common passes; None if the model cannot."""


class SequenceBatch(Protocol):
    """Several texts that a model reads in common passes."""

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text; the numbers may differ. The logits of each are as from `TokenSequence.read`."""

    def select(self, indices: Sequence[int]) -> None:
        """Continue with the texts of these indices only."""


class Backend(Protocol):
    """A model that computes logits."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""

    @property
    def context(self) -> int:
        """The maximum number of tokens of a text, prompt and answer together."""

    @property
    def piece(self) -> int:
        """The number of tokens of a long prompt that are read at a time."""

    def start(self) -> TokenSequence:
        """Return an empty sequence."""


DEFAULT_TEMPERATURE, DEFAULT_TOP_P = 0.7, 0.9
"""The sampling of a request without a temperature, as most small models recommend: greedy ones repeat themselves."""


def resolved(sampling: Sampling) -> tuple[float, float]:
    """Return the temperature and the `top_p` of a sampling, which may leave them open.

    >>> resolved(Sampling(None)), resolved(Sampling(0.3))
    ((0.7, 0.9), (0.3, 1.0))
    """
    default = (DEFAULT_TEMPERATURE, DEFAULT_TOP_P) if sampling.temperature is None else (sampling.temperature, 1.0)
    return default[0], default[1] if sampling.top_p is None else sampling.top_p


class Sampler:
    """Samples tokens: the most likely one, or by temperature and `top_p` with a seed. It has a buffer: use one per thread."""

    __slots__ = ("_buffer", "_random", "_temperature", "_top_p")

    def __init__(self, sampling: Sampling = Sampling()) -> None:
        self._temperature, self._top_p = resolved(sampling)
        if not 0.0 <= self._temperature < float("inf"):
            raise InputError(f"temperature must be 0 or more, got {self._temperature}")
        if not 0.0 < self._top_p <= 1.0:
            raise InputError(f"top_p must be above 0 and at most 1, got {self._top_p}")
        self._random = np.random.default_rng(sampling.seed)
        self._buffer = np.empty(0, dtype=np.float32)

    def pick(self, logits: "Logits", mask: "Mask | None" = None) -> int:
        """Return one token; logits (V,) float32, mask ((V+31)//32,). The logits are not changed.

        Raises:
            NoValidTokenError: the mask allows no token, or the model gives all allowed tokens probability 0.
            InputError: the shapes do not match, or a logit is NaN.
        """
        if mask is not None and (logits.ndim != 1 or mask.shape != ((len(logits) + 31) // 32,)):
            raise InputError(f"logits of shape {logits.shape} do not match a mask of shape {mask.shape}")
        # Mostly the mask allows the token that the model prefers, and need not be applied to all others.
        best = int(logits.argmax())
        if mask is None or int(mask[best >> 5]) >> (best & 31) & 1:
            return self._sample_near(logits, mask, best)
        allowed = mask_tokens(mask, MAX_GATHERED)
        if allowed is not None:
            allowed = allowed[allowed < len(logits)]
            return self.choose(logits[allowed], allowed)
        masked = self._masked(logits, mask)
        return self._sample_near(masked, mask, int(masked.argmax()))

    def choose(self, scores: "Logits", tokens: "Tokens") -> int:
        """Return one of the allowed tokens; scores (n,) are the logits of these n tokens.

        Raises:
            NoValidTokenError: `tokens` is empty, or the model gives all of them probability 0.
            InputError: a score is NaN.
        """
        if len(tokens) == 0:
            raise NoValidTokenError("the constraint allows no token to continue the text")
        best = int(scores.argmax())
        _check_best(float(scores[best]))
        return int(tokens[best if self._temperature == 0 else self._draw(scores, float(scores[best]))])

    def _sample_near(self, logits: "Logits", mask: "Mask | None", best: int) -> int:
        """Return the best token, or draw one of those whose probability is not negligible."""
        top = float(logits[best])
        _check_best(top)
        if self._temperature == 0:
            return best
        reached = np.packbits(logits >= top - REACH * self._temperature, bitorder="little")
        if mask is not None:
            reached &= mask.view(np.uint8)[: len(reached)]
        near = _bit_indices(reached)
        return int(near[self._draw(logits[near], top)])

    def _draw(self, scores: "Logits", top: float) -> int:
        """Return the index of one score, drawn by its probability."""
        # In float32 a sum over a whole vocabulary loses its smallest weights.
        weights = np.exp((scores.astype(np.float64) - top) / self._temperature)
        if self._top_p == 1.0:
            return _draw_index(np.cumsum(weights), self._random.random())
        mass = self._top_p * float(weights.sum())
        order = _heaviest(weights, mass)
        cumulated = np.cumsum(weights[order])
        nucleus = int(np.searchsorted(cumulated, mass)) + 1
        return int(order[_draw_index(cumulated[:nucleus], self._random.random())])

    def _masked(self, logits: "Logits", mask: "Mask") -> "Logits":
        """Return the logits, with -inf for tokens that are not allowed."""
        size = mask.size * 32
        if len(self._buffer) != size:
            self._buffer = np.empty(size, dtype=np.float32)
        np.take(_mask_bias(), mask.view(np.uint8), axis=0, out=self._buffer.reshape(-1, 8), mode="clip")
        masked = self._buffer[: len(logits)]
        return np.add(logits, masked, out=masked)


def _bit_indices(packed: "NDArray[np.uint8]") -> "Tokens":
    """Return the indices of the bits that are set."""
    if len(packed) % 4 == 0:
        indices = mask_tokens(packed.view(np.uint32), MAX_GATHERED)
        if indices is not None:
            return indices
    return np.flatnonzero(np.unpackbits(packed, bitorder="little").view(np.bool_))


def _heaviest(weights: "NDArray[np.float64]", mass: float) -> "Tokens":
    """Return the indices of the largest weights in descending order, enough to reach a sum of `mass`."""
    count = FIRST_SORTED
    while count < len(weights):
        part = np.argpartition(-weights, count)[:count]
        if float(weights[part].sum()) > mass:
            # Equal weights stay in the order of their ids, so that a seed draws the same on every machine.
            part.sort()
            return part[np.argsort(-weights[part], kind="stable")]
        count *= 8
    return np.argsort(-weights, kind="stable")


def _draw_index(cumulated: "NDArray[np.float64]", draw: float) -> int:
    # Rounding may place a draw behind the last weight.
    return min(int(np.searchsorted(cumulated, draw * float(cumulated[-1]), side="right")), len(cumulated) - 1)


def _check_best(top: float) -> None:
    if isnan(top):
        raise InputError("a logit is NaN; the weights of the model or its input are broken")
    if top == float("-inf"):
        raise NoValidTokenError("the model gives probability 0 to every token that the constraint allows")


@lru_cache(maxsize=1)
def _mask_bias() -> "NDArray[np.float32]":
    """Return what to add to eight logits for each byte of a mask, shape (256, 8)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.where(bits == 1, np.float32(0), np.float32("-inf"))


def _best(logits: "Logits", count: int) -> "Tokens":
    """Return the tokens with the largest logits, at least one, in descending order."""
    best = np.argpartition(-logits, count - 1)[:count]
    return best[np.argsort(-logits[best], kind="stable")]


def log_probability(logits: "Logits", index: int) -> float:
    """Return the log probability of one of the logits (n,)."""
    top = float(logits.max())
    return float(logits[index]) - top - float(np.log(np.exp(logits.astype(np.float64) - top).sum()))


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """A text to generate after the prompt.

    - `unread`: tokens of the prompt that the sequence has not read.
    - `room`: the maximum number of tokens to generate.
    - `state`: the guide state after the part of the answer that exists already.
    - `top_logprobs`: report this many alternatives for each token. The model is then run for every token, including forced
      ones; probabilities are those without the guide.
    """

    unread: Sequence[int]
    vocabulary: Vocabulary
    room: int
    state: GuideState | None = None
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0


@dataclass(slots=True)
class DecodeResult:
    """The tokens that were generated, for each whether it was forced by the guide, and the number of passes of the model.

    `sparse_passes` computed only a part of the output head.
    """

    finish: FinishReason = "stop"
    stop: str | None = None
    tokens: list[int] = field(default_factory=list[int])
    forced: list[bool] = field(default_factory=list[bool])
    passes: int = 0
    sparse_passes: int = 0
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])


def decode(sequence: TokenSequence, job: DecodeJob) -> Generator[str | DecodeResult]:
    """Generate a text: yield it in pieces, and the result last.

    Closing the generator stops before the next token. The last token is not read: `sequence.tokens` is what the model knows.

    Raises:
        NoValidTokenError: the constraint allows no token.
        InputError: the sampling options or the logits are invalid.
    """
    steps = _Decoder(job).run()
    step = next(steps)
    while not isinstance(step, DecodeResult):
        if isinstance(step, LogitsRequest):
            step = steps.send(sequence.read(step.tokens, step.rows))
        else:
            yield step
            step = next(steps)
    yield step


def decode_batch(batch: SequenceBatch, jobs: Sequence[DecodeJob]) -> Generator[tuple[int, str | DecodeResult]]:
    """Generate several texts in common passes; each piece and result comes with the index of its job.

    Raises:
        NoValidTokenError: a constraint allows no token.
        InputError: the sampling options or the logits are invalid.
    """
    steps = [_Decoder(job).run() for job in jobs]
    logits: dict[int, Logits | None] = dict.fromkeys(range(len(jobs)))
    live = list(logits)
    while live:
        requests: dict[int, LogitsRequest] = {}
        for index in live:
            step = steps[index].send(logits[index])
            while isinstance(step, str):
                yield index, step
                step = next(steps[index])
            if isinstance(step, LogitsRequest):
                requests[index] = step
            else:
                yield index, step
        # The cache of a text that has ended is freed while the others continue.
        if requests and len(requests) < len(live):
            batch.select([place for place, index in enumerate(live) if index in requests])
        live = list(requests)
        if live:
            pending = requests.values()
            read = batch.read([request.tokens for request in pending], [request.rows for request in pending])
            logits = dict(zip(live, read, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class LogitsRequest:
    """A pass of the model: read these tokens and return the logits of `rows`; None means all tokens."""

    tokens: Sequence[int]
    rows: "Rows | None"


DecodeSteps: TypeAlias = Generator["str | LogitsRequest | DecodeResult", "Logits | None"]
"""Pieces of text and requests for logits, which are sent back; the result last."""


def repeated_period(tokens: Sequence[int], periods: int = MIN_PERIODS) -> int:
    """Return the length of the run of tokens that the text ends in at least `periods` times; 0 if it does not.

    Small models often end in such a loop at temperature 0, and never leave it.
    """
    for period in range(1, MAX_PERIOD + 1):
        # Lengths only grow with the period, so a text that is too short for this one is for all others.
        length = max(MIN_REPEATED, periods * period)
        if len(tokens) < length:
            return 0
        # One comparison rules out nearly every period before lists are copied.
        if tokens[-1] == tokens[-1 - period] and tokens[-length:-period] == tokens[period - length :]:
            return period
    return 0


class _Decoder:
    """The decode loop without I/O: yields text and requests for logits, and is sent the logits."""

    def __init__(self, job: DecodeJob) -> None:
        self._job = job
        self._state = job.state
        self._sampler = Sampler(job.sampling)
        self._text = TextDecoder(job.stop)
        self._unread = list(job.unread)
        self._mask = empty_mask(len(job.vocabulary)) if job.state is not None else None
        self._result = DecodeResult()

    def run(self) -> DecodeSteps:
        result = self._result
        while True:
            yield from self._forced()
            finish = self._finish()
            if finish is not None:
                break
            rows = self._rows()
            forced = rows is not None and len(rows) == 1 and not self._job.top_logprobs
            if rows is not None and forced:
                token = int(rows[0])
            else:
                logits = yield self._request(rows)
                assert logits is not None, "a request for logits is answered with logits"
                token = self._pick(logits, rows)
            if token in self._job.vocabulary.end:  # not a part of the text, and not read: the sequence can be continued
                finish = "stop"
                break
            yield from self._append(token, forced=forced)
        result.finish = finish
        if text := self._text.close():
            yield text
        yield result

    def _request(self, rows: "Rows | None") -> LogitsRequest:
        is_full = rows is None or self._job.top_logprobs > 0
        self._result.passes += 1
        self._result.sparse_passes += not is_full
        # Forced tokens have gathered here, and are read in one pass with the sampled one.
        unread, self._unread = self._unread, []
        return LogitsRequest(unread, None if is_full else rows)

    def _finish(self) -> FinishReason | None:
        """Return the reason to stop; None to continue."""
        if self._text.stop is not None:
            self._result.stop = self._text.stop
            return "stop"
        if self._state is not None and self._state.is_complete:
            return "stop"
        tokens, forced = self._result.tokens, self._result.forced
        if len(tokens) >= self._job.room:
            return "length"
        # To look after each token would cost as much as sampling it.
        if len(tokens) % REPETITION_STEP:
            return None
        period = repeated_period(tokens)
        # A loop that a constraint forces is not the fault of the model, and ends by itself.
        is_endless = bool(period and not all(forced[-period:])) or (self._state is None and self._counts_on())
        return "repetition" if is_endless else None

    def _counts_on(self) -> bool:
        """Whether the text ends in a list of the same words under other numbers. Under a constraint such a list may be data."""
        numbers = self._job.vocabulary.numbers
        words = [
            token for token in self._result.tokens[-2 * MIN_COUNTED_PERIODS * MAX_PERIOD :] if token not in numbers
        ]
        return repeated_period(words, MIN_COUNTED_PERIODS) >= MIN_COUNTED_WORDS

    def _append(self, token: int, *, forced: bool) -> "Generator[str, Logits | None]":
        if self._state is not None:
            self._state = self._state.advance(token)
        self._result.tokens.append(token)
        self._result.forced.append(forced)
        self._unread.append(token)
        if text := self._text.add(self._job.vocabulary.decode((token,))):
            yield text

    def _forced(self) -> "Generator[str, Logits | None]":
        """Append the tokens that the guide forces."""
        # A forced token has no probability without a pass of the model.
        if self._state is None or self._job.top_logprobs:
            return
        for token in self._state.forced():
            # A stop sequence or the limit may be reached within the forced tokens too.
            if self._finish() is not None:
                return
            yield from self._append(token, forced=True)

    def _rows(self) -> "Rows | None":
        """Write the mask of the next token; return the allowed tokens if they are few."""
        if self._state is None or self._mask is None:
            return None
        self._state.mask(self._mask)
        # Counting the bits of a nearly full mask is a hundred times cheaper than listing its tokens.
        rows = mask_tokens(self._mask, MAX_SPARSE_ROWS) if count_allowed(self._mask) <= MAX_SPARSE_ROWS else None
        if rows is not None and len(rows) == 0:
            end = self._job.vocabulary.decode(self._state.tokens).decode("utf-8", "replace")[-MAX_SHOWN_CHARS:]
            raise NoValidTokenError(f"the constraint allows no token after {end!r}", state=end)
        return rows

    def _pick(self, logits: "Logits", rows: "Rows | None") -> int:
        if rows is not None and not self._job.top_logprobs:
            return self._sampler.choose(logits, rows)
        token = self._sampler.pick(logits, self._mask)
        if self._job.top_logprobs:
            self._result.logprobs.append(self._logprob(logits, token))
        return token

    def _logprob(self, logits: "Logits", token: int) -> TokenLogprob:
        """Return the log probability of a token and of the best ones, without the guide."""
        logprob = log_probability(logits, token)
        best = _best(logits, min(self._job.top_logprobs, len(logits)))
        shift = logprob - float(logits[token])
        top = tuple((self._token_text(int(each)), float(logits[each]) + shift) for each in best)
        return TokenLogprob(self._token_text(token), logprob, top)

    def _token_text(self, token: int) -> str:
        return self._job.vocabulary.tokens[token].decode("utf-8", "replace")


# --- reading an answer again ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alternative:
    """An alternative token: its bytes, whether the mask allowed it, and its probability with and without the mask."""

    text: bytes
    allowed: bool
    probability: float
    unmasked: float


@dataclass(frozen=True, slots=True)
class TracedToken:
    """A token of an answer at its position.

    `forced` says that no other token was possible. `probability` is the model's with the mask, `unmasked` without it, both
    at temperature 1. `allowed` is the number of possible tokens, None without a constraint; `here` is the position in the
    source. `alternatives` are the most likely tokens, possibly including this one.
    """

    text: bytes
    forced: bool
    probability: float
    unmasked: float
    allowed: int | None
    here: Explanation
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class TokenTrace:
    """The tokens of an answer.

    `exact` says that they are the sampled tokens; otherwise the tokenizer split the text. `refused` says why the constraint
    does not allow the rest of the text, if it does not.
    """

    tokens: tuple[TracedToken, ...]
    exact: bool
    refused: str = ""


def read_tokens(
    sequence: TokenSequence, job: DecodeJob, tokens: Sequence[int], most: int
) -> tuple[tuple[TracedToken, ...], str]:
    """Read tokens as the answer to a job, with `most` alternatives each; return those that the guide allows, and why it refuses
    the rest.
    """
    found: list[TracedToken] = []
    state, unread, vocabulary, certain = job.state, job.unread, job.vocabulary, 0
    mask = empty_mask(len(vocabulary))
    try:
        for number, token in enumerate(tokens):
            logits = sequence.read(unread)
            allowed, here = None, Explanation()
            if state is not None:
                state.mask(mask)
                allowed = unpack_mask(mask, len(logits))
                here = state.explain(token)
                if not allowed[token]:
                    return tuple(found), here.why or f"{vocabulary.show(token)} is not allowed"
                certain = max(certain, number + common_prefix(state.forced(), tokens[number:]))
                state = state.advance(token)
            found.append(_traced(vocabulary, token, logits, allowed, here, most, forced=number < certain))
            unread = [token]
    except (InputError, NoValidTokenError) as error:
        return tuple(found), error.message
    return tuple(found), ""


def _traced(
    vocabulary: Vocabulary,
    token: int,
    logits: "Logits",
    allowed: "NDArray[np.bool_] | None",
    here: Explanation,
    most: int,
    *,
    forced: bool,
) -> TracedToken:
    unmasked = _softmax(logits)
    masked = unmasked if allowed is None else _softmax(np.where(allowed, logits, np.float32("-inf")))
    best = _best(logits, min(most, len(logits))) if most else ()
    alternatives = tuple(
        Alternative(
            vocabulary.tokens[each], allowed is None or bool(allowed[each]), float(masked[each]), float(unmasked[each])
        )
        for each in map(int, best)
    )
    possible = None if allowed is None else int(allowed.sum())
    return TracedToken(
        vocabulary.tokens[token], forced or possible == 1, float(masked[token]), float(unmasked[token]), possible, here,
        alternatives,
    )  # fmt: skip


def _softmax(logits: "Logits") -> "NDArray[np.float64]":
    weights = np.exp(logits.astype(np.float64) - float(logits.max()))
    weights /= weights.sum()
    return weights
