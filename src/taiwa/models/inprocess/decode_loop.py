"""Decode loop, sampling, text pieces, protocols of a backend."""

from codecs import getincrementaldecoder
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from taiwa.constraints.guide import GuideState, count_allowed, empty_mask, mask_tokens
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import FinishReason, Sampling, TokenLogprob

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taiwa.constraints.guide import Mask

    Logits: TypeAlias = NDArray[np.float32]
    Rows: TypeAlias = NDArray[np.intp]
    Tokens = NDArray[np.intp]

__all__ = [
    "Backend",
    "Ending",
    "Job",
    "Sampler",
    "TextDecoder",
    "TokenSequence",
    "decode",
    "decode_together",
    "log_probability",
]


Decoder = getincrementaldecoder("utf-8")


class TextDecoder:
    """Takes bytes and gives out text: whole characters only, nothing that may be the start of a stop string.

    >>> spelling = TextDecoder(("END",))
    >>> [spelling.add(piece) for piece in (b"so E", b"Nough E", b"N", b"D of it")]
    ['so ', 'ENough ', '', '']
    >>> spelling.stop
    'END'
    """

    __slots__ = ("_decoder", "_held", "_stops", "stop")

    def __init__(self, stops: tuple[str, ...] = ()) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._decoder = Decoder("replace")
        self._held = ""
        self.stop: str | None = None

    def add(self, written: bytes) -> str:
        """Take the next bytes; give out the text that is sure. After a stop string there is none."""
        if self.stop is not None:
            return ""
        return self._out(self._held + self._decoder.decode(written))

    def close(self) -> str:
        """Give out what was held back; half a character becomes U+FFFD."""
        if self.stop is not None:
            return ""
        text = self._out(self._held + self._decoder.decode(b"", True)) + self._held
        self._held = ""
        return text

    def _out(self, text: str) -> str:
        if not self._stops:
            self._held = ""
            return text
        # The one that is complete first; of two that end together, the longer.
        found = [(text.find(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text]
        if found:
            end, _, self.stop = min(found)
            self._held = ""
            return text[: end - len(self.stop)]
        sure = len(text) - max(self._open(text, stop) for stop in self._stops)
        self._held = text[sure:]
        return text[:sure]

    @staticmethod
    def _open(text: str, stop: str) -> int:
        """How many characters at the end of the text begin this stop string."""
        for length in range(min(len(stop) - 1, len(text)), 0, -1):
            if text.endswith(stop[:length]):
                return length
        return 0


class TokenSequence(Protocol):
    """One text as far as a model has read it, with what the model keeps of it (keys and values)."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens that were read."""
        ...

    def read(self, tokens: Sequence[int], rows: "Rows | None" = None) -> "Logits":
        """Read at least one more token, all in one go, and say what follows the last one.

        The logits of all tokens, (V,), or of those in `rows` alone, (len(rows),): the rest of the output head is not
        computed. float32. They may be overwritten by the next call.
        """
        ...

    def rollback(self, count: int) -> None:
        """Forget the last `count` tokens."""
        ...

    def fork(self) -> "TokenSequence":
        """The same text on a track of its own."""
        ...

    def bundle(self, count: int) -> "SequenceBatch | None":
        """The same text `count` times, to be continued side by side; None where the model cannot."""
        ...


class SequenceBatch(Protocol):
    """Several texts that a model reads side by side, in one pass of its weights."""

    def read(self, tokens: Sequence[Sequence[int]], rows: "Sequence[Rows | None]") -> "Sequence[Logits]":
        """Read one or more tokens of each text, as many of each as there are; for each as `TokenSequence.read`."""
        ...

    def keep(self, places: Sequence[int]) -> None:
        """Go on with the texts at these places only."""
        ...


class Backend(Protocol):
    """A model that gives logits."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""
        ...

    @property
    def context(self) -> int:
        """How many tokens a text may have in all."""
        ...

    def start(self) -> TokenSequence:
        """An empty text."""
        ...


FEW = 2_048
"""Up to this many allowed tokens are gathered; more of them are masked in place."""

SORTED = 512

REACH = 40.0
"""Logits further below the best are ignored, in units of the temperature: e^-40 of 131,072 tokens is less than a draw resolves."""


class Sampler:
    """Samples tokens: the likeliest one, or by temperature and `top_p` with a seed. It has a buffer, so use one per thread."""

    __slots__ = ("_buffer", "_random", "_temperature", "_top_p")

    def __init__(self, sampling: Sampling = Sampling()) -> None:
        self._temperature = 1.0 if sampling.temperature is None else sampling.temperature
        self._top_p = 1.0 if sampling.top_p is None else sampling.top_p
        if not 0.0 <= self._temperature < float("inf"):
            raise InputError(f"a temperature is 0 or more, not {self._temperature}")
        if not 0.0 < self._top_p <= 1.0:
            raise InputError(f"top_p lies above 0 and is 1 at most, not {self._top_p}")
        self._random = np.random.default_rng(sampling.seed)
        self._buffer = np.empty(0, dtype=np.float32)

    def pick(self, logits: "Logits", mask: "Mask | None" = None) -> int:
        """Return one token; logits (V,) float32, mask ((V+31)//32,). The logits are not changed.

        Raises:
            DeadEndError: the mask allows nothing, or the model rules out all that it allows.
            InputError: the shapes do not match, or a logit is NaN.
        """
        if mask is not None and (logits.ndim != 1 or mask.shape != ((len(logits) + 31) // 32,)):
            raise InputError(f"logits of the shape {logits.shape} do not fit a mask of {mask.shape}")
        best = int(logits.argmax())
        if mask is None or int(mask[best >> 5]) >> (best & 31) & 1:
            return self._near(logits, mask, best)
        few = mask_tokens(mask, FEW)
        if few is not None:
            few = few[few < len(logits)]
            return self.choose(logits[few], few)
        masked = self._masked(logits, mask)
        return self._near(masked, mask, int(masked.argmax()))

    def choose(self, scores: "Logits", tokens: "Tokens") -> int:
        """Return one of the allowed tokens; scores (n,) are the logits of these n tokens.

        Raises:
            DeadEndError: there is none, or the model rules out all of them.
            InputError: a score is NaN.
        """
        if len(tokens) == 0:
            raise NoValidTokenError("the constraint leaves no token: the text cannot go on")
        best = int(scores.argmax())
        _check(float(scores[best]))
        return int(tokens[best if self._temperature == 0 else self._draw(scores, float(scores[best]))])

    def _near(self, logits: "Logits", mask: "Mask | None", best: int) -> int:
        """Return the best token, or one of those that a draw can reach."""
        top = float(logits[best])
        _check(top)
        if self._temperature == 0:
            return best
        reached = np.packbits(logits >= top - REACH * self._temperature, bitorder="little")
        if mask is not None:
            reached &= mask.view(np.uint8)[: len(reached)]
        near = _tokens(reached)
        return int(near[self._draw(logits[near], top)])

    def _draw(self, scores: "Logits", top: float) -> int:
        """Return the index of one score, drawn by its probability."""
        weights = np.exp((scores.astype(np.float64) - top) / self._temperature)
        if self._top_p == 1.0:
            return _drawn(np.cumsum(weights), self._random.random())
        wanted = self._top_p * float(weights.sum())
        order = _heaviest(weights, wanted)
        shares = np.cumsum(weights[order])
        kept = int(np.searchsorted(shares, wanted)) + 1
        return int(order[_drawn(shares[:kept], self._random.random())])

    def _masked(self, logits: "Logits", mask: "Mask") -> "Logits":
        """Return the logits with -inf where the mask allows nothing."""
        size = mask.size * 32
        if len(self._buffer) != size:
            self._buffer = np.empty(size, dtype=np.float32)
        np.take(_summands(), mask.view(np.uint8), axis=0, out=self._buffer.reshape(-1, 8), mode="clip")
        masked = self._buffer[: len(logits)]
        return np.add(logits, masked, out=masked)


def _tokens(packed: "NDArray[np.uint8]") -> "Tokens":
    """Return the indices of the bits that are set."""
    if len(packed) % 4 == 0:
        few = mask_tokens(packed.view(np.uint32), FEW)
        if few is not None:
            return few
    return np.flatnonzero(np.unpackbits(packed, bitorder="little").view(np.bool_))


def _heaviest(weights: "NDArray[np.float64]", wanted: float) -> "Tokens":
    """Return the indices of the largest weights in descending order, enough to reach the wanted sum."""
    count = SORTED
    while count < len(weights):
        part = np.argpartition(-weights, count)[:count]
        if float(weights[part].sum()) > wanted:
            part.sort()
            return part[np.argsort(-weights[part], kind="stable")]
        count *= 8
    return np.argsort(-weights, kind="stable")


def _drawn(shares: "NDArray[np.float64]", draw: float) -> int:
    return min(int(np.searchsorted(shares, draw * float(shares[-1]), side="right")), len(shares) - 1)


def _check(top: float) -> None:
    if isnan(top):
        raise InputError("a logit is not a number: the model's weights or its input are broken")
    if top == float("-inf"):
        raise NoValidTokenError("the model rules out every token that the constraint allows")


@lru_cache(maxsize=1)
def _summands() -> "NDArray[np.float32]":
    """Return the summands of eight logits for each byte of a mask, shape (256, 8)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    return np.where(bits == 1, np.float32(0), np.float32("-inf"))


def log_probability(scores: "Logits", place: int) -> float:
    """Return the log probability of one score among all; scores (n,)."""
    top = float(scores.max())
    return float(scores[place]) - top - float(np.log(np.exp(scores.astype(np.float64) - top).sum()))


WRITING_FEW = 4_096
"""So many allowed tokens have their rows of the output head computed alone; for more of them, all rows are."""

SHOWN = 60


@dataclass(frozen=True, slots=True, eq=False)
class DecodeRequest:
    """The wish for logits: read these tokens, and say how likely each of `rows` is to follow; None means all tokens."""

    tokens: Sequence[int]
    rows: "Rows | None"


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be written: behind which tokens that are still to be read, under which guide, how drawn, and up to where.

    `state` has taken what of the answer is there already. `room` is the most tokens that may be written. `top_logprobs` tells
    so many tokens for each place, and with it the model is asked at every place: how likely it finds them whatever the guide says,
    or, where the guide is the model's `own`, among what that lets through.
    """

    unread: Sequence[int]
    vocabulary: Vocabulary
    room: int
    state: GuideState | None = None
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    top_logprobs: int = 0
    own: bool = False


@dataclass(slots=True)
class Ending:
    """What was written, and how: `forced` of the tokens were not asked of the model, which was run `forwards` times.

    `sparse` of these computed a part of the output head. `marks` says for each token whether it was forced.
    """

    finish: FinishReason = "stop"
    stop: str | None = None
    tokens: list[int] = field(default_factory=list[int])
    marks: list[bool] = field(default_factory=list[bool])
    forwards: int = 0
    sparse: int = 0
    logprobs: list[TokenLogprob] = field(default_factory=list[TokenLogprob])

    @property
    def forced(self) -> int:
        """How many tokens the model was not asked for."""
        return sum(self.marks)


DecodeSteps: TypeAlias = Generator["DecodeRequest | str", "Logits | None", Ending]


def decode_steps(job: Job) -> DecodeSteps:
    """Write a text.

    Raises:
        DeadEndError: the constraint leaves no token.
        InputError: the sampling or the logits are broken.
    """
    return _Writer(job).run()


class _Writer:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._state = job.state
        self._sampler = Sampler(job.sampling)
        self._spelling = TextDecoder(job.stop)
        self._pending = list(job.unread)
        self._mask = empty_mask(len(job.vocabulary)) if job.state is not None else None
        self._ending = Ending()

    def run(self) -> DecodeSteps:
        ending = self._ending
        while True:
            yield from self._forced()
            finish = self._finish()
            if finish is not None:
                break
            rows = self._rows()
            certain = rows is not None and len(rows) == 1 and not self._job.top_logprobs
            if rows is not None and certain:
                token = int(rows[0])
            else:
                logits = yield self._wish(rows)
                assert logits is not None, "whoever drives a writing answers its wishes"
                token = self._pick(logits, rows)
            if token in self._job.vocabulary.end:
                finish = "stop"
                break
            yield from self._take(token, marked=certain)
        ending.finish = finish
        if text := self._spelling.close():
            yield text
        return ending

    def _wish(self, rows: "Rows | None") -> DecodeRequest:
        whole = rows is None or self._job.top_logprobs > 0
        self._ending.forwards += 1
        self._ending.sparse += not whole
        pending, self._pending = self._pending, []
        return DecodeRequest(pending, None if whole else rows)

    def _finish(self) -> FinishReason | None:
        """Why nothing more is written; None while something is."""
        if self._spelling.stop is not None:
            self._ending.stop = self._spelling.stop
            return "stop"
        if self._state is not None and self._state.is_complete:
            return "stop"
        return "length" if len(self._ending.tokens) >= self._job.room else None

    def _take(self, token: int, *, marked: bool) -> "Generator[str, Logits | None]":
        if self._state is not None:
            self._state = self._state.advance(token)
        self._ending.tokens.append(token)
        self._ending.marks.append(marked)
        self._pending.append(token)
        if text := self._spelling.add(self._job.vocabulary.decode((token,))):
            yield text

    def _forced(self) -> "Generator[str, Logits | None]":
        """Take what must come."""
        if self._state is None or self._job.top_logprobs:
            return
        for token in self._state.forced():
            if self._finish() is not None:
                return
            yield from self._take(token, marked=True)

    def _rows(self) -> "Rows | None":
        """The tokens that may come next, where they are few; the mask holds them all."""
        if self._state is None or self._mask is None:
            return None
        self._state.mask(self._mask)
        # Counting the bits of a mask that is nearly full is a hundred times cheaper than listing its tokens.
        rows = mask_tokens(self._mask, WRITING_FEW) if count_allowed(self._mask) <= WRITING_FEW else None
        if rows is not None and len(rows) == 0:
            place = self._job.vocabulary.decode(self._state.tokens).decode("utf-8", "replace")[-SHOWN:]
            raise NoValidTokenError(f"the constraint leaves no token after {place!r}", state=place)
        return rows

    def _pick(self, logits: "Logits", rows: "Rows | None") -> int:
        if rows is not None and not self._job.top_logprobs:
            return self._sampler.choose(logits, rows)
        token = self._sampler.pick(logits, self._mask)
        if self._job.top_logprobs:
            self._ending.logprobs.append(self._likelihood(logits, token))
        return token

    def _likelihood(self, logits: "Logits", token: int) -> TokenLogprob:
        """How likely the model itself found a token, whatever a constraint that is not its own says."""
        import numpy as np

        among = len(logits)
        if self._job.own and self._mask is not None:
            rows = mask_tokens(self._mask, among)
            assert rows is not None, "no more tokens are let through than there are"
            among, whole = len(rows), logits
            logits = np.full_like(whole, -np.inf)
            logits[rows] = whole[rows]
        own = log_probability(logits, token)
        most = min(self._job.top_logprobs, among)
        best = np.argpartition(-logits, most - 1)[:most]
        best = best[np.argsort(-logits[best], kind="stable")]
        shift = own - float(logits[token])
        top = tuple((self._shown(int(each)), float(logits[each]) + shift) for each in best)
        return TokenLogprob(self._shown(token), own, top)

    def _shown(self, token: int) -> str:
        return self._job.vocabulary.tokens[token].decode("utf-8", "replace")


def decode(track: TokenSequence, job: Job) -> Generator[str | Ending]:
    """Write one text on its track: give it out piece by piece, and last how it was written.

    Closing the generator ends the writing before the next token. What was written last stays unread: `track.tokens` is what
    the model knows.

    Raises:
        DeadEndError: the constraint leaves no token.
    """
    course, answer = decode_steps(job), None
    while True:
        wish = _next(course, answer)
        answer = None
        if isinstance(wish, DecodeRequest):
            answer = track.read(wish.tokens, wish.rows)
            continue
        yield wish
        if isinstance(wish, Ending):
            return


def decode_together(bundle: SequenceBatch, jobs: Sequence[Job]) -> Generator[tuple[int, str | Ending]]:
    """Write several texts side by side; what is given out comes with the number of its text.

    Raises:
        DeadEndError: a constraint leaves no token.
    """
    courses = [decode_steps(job) for job in jobs]
    answers: dict[int, Logits | None] = dict.fromkeys(range(len(jobs)))
    live = list(answers)
    while live:
        asked: dict[int, DecodeRequest] = {}
        for number in live:
            wish = _next(courses[number], answers[number])
            while isinstance(wish, str):
                yield number, wish
                wish = _next(courses[number], None)
            if isinstance(wish, DecodeRequest):
                asked[number] = wish
            else:
                yield number, wish
        if asked and len(asked) < len(live):
            bundle.keep([place for place, number in enumerate(live) if number in asked])
        live = list(asked)
        if live:
            wishes = asked.values()
            found = bundle.read([wish.tokens for wish in wishes], [wish.rows for wish in wishes])
            answers = dict(zip(live, found, strict=True))


def _next(course: DecodeSteps, answer: "Logits | None") -> DecodeRequest | str | Ending:
    try:
        return course.send(answer)
    except StopIteration as end:
        ending: Ending = end.value
        return ending
