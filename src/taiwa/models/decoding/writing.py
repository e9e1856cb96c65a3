"""How one text is written: a generator that yields what it wants of a model, and text as it becomes sure.

Like a flow it touches no model: whoever drives it reads tokens and sends the logits back, for one text at a time or for
several side by side. What the mask leaves no choice in is never asked for.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from taiwa.constraints.guide import GuideState, count_allowed, empty_mask, mask_tokens
from taiwa.constraints.vocabulary import Vocabulary
from taiwa.kernel.errors import DeadEndError
from taiwa.kernel.values import Finish, Likelihood, Sampling
from taiwa.models.decoding.sampling import Sampler, log_probability
from taiwa.models.decoding.spelling import Spelling

if TYPE_CHECKING:
    from taiwa.models.decoding.source import Logits, Rows

__all__ = ["Ask", "Ending", "Job", "Writing", "writing"]

FEW = 4_096
"""So many allowed tokens have their rows of the output head computed alone; for more of them, all rows are."""
SHOWN = 60


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """The wish for logits: read these tokens, and say how likely each of `rows` is to follow; None means all tokens."""

    tokens: Sequence[int]
    rows: "Rows | None"


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be written: behind which tokens that are still to be read, under which guide, how drawn, and up to where.

    `state` has taken what of the answer is there already. `room` is the most tokens that may be written. `likeliest` tells
    so many tokens for each place, and with it the model is asked at every place: how likely it finds them whatever the guide says,
    or, where the guide is the model's `own`, among what that lets through.
    """

    unread: Sequence[int]
    vocabulary: Vocabulary
    room: int
    state: GuideState | None = None
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    likeliest: int = 0
    own: bool = False


@dataclass(slots=True)
class Ending:
    """What was written, and how: `forced` of the tokens were not asked of the model, which was run `forwards` times.

    `sparse` of these computed a part of the output head. `marks` says for each token whether it was forced.
    """

    finish: Finish = "stop"
    stop: str | None = None
    tokens: list[int] = field(default_factory=list[int])
    marks: list[bool] = field(default_factory=list[bool])
    forwards: int = 0
    sparse: int = 0
    likelihoods: list[Likelihood] = field(default_factory=list[Likelihood])

    @property
    def forced(self) -> int:
        """How many tokens the model was not asked for."""
        return sum(self.marks)


Writing: TypeAlias = Generator["Ask | str", "Logits | None", Ending]


def writing(job: Job) -> Writing:
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
        self._spelling = Spelling(job.stop)
        self._pending = list(job.unread)
        self._mask = empty_mask(len(job.vocabulary)) if job.state is not None else None
        self._ending = Ending()

    def run(self) -> Writing:
        ending = self._ending
        while True:
            yield from self._forced()
            finish = self._finish()
            if finish is not None:
                break
            rows = self._rows()
            certain = rows is not None and len(rows) == 1 and not self._job.likeliest
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

    def _wish(self, rows: "Rows | None") -> Ask:
        whole = rows is None or self._job.likeliest > 0
        self._ending.forwards += 1
        self._ending.sparse += not whole
        pending, self._pending = self._pending, []
        return Ask(pending, None if whole else rows)

    def _finish(self) -> Finish | None:
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
        if self._state is None or self._job.likeliest:
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
        rows = mask_tokens(self._mask, FEW) if count_allowed(self._mask) <= FEW else None
        if rows is not None and len(rows) == 0:
            place = self._job.vocabulary.decode(self._state.tokens).decode("utf-8", "replace")[-SHOWN:]
            raise DeadEndError(f"the constraint leaves no token after {place!r}", state=place)
        return rows

    def _pick(self, logits: "Logits", rows: "Rows | None") -> int:
        if rows is not None and not self._job.likeliest:
            return self._sampler.choose(logits, rows)
        token = self._sampler.pick(logits, self._mask)
        if self._job.likeliest:
            self._ending.likelihoods.append(self._likelihood(logits, token))
        return token

    def _likelihood(self, logits: "Logits", token: int) -> Likelihood:
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
        most = min(self._job.likeliest, among)
        best = np.argpartition(-logits, most - 1)[:most]
        best = best[np.argsort(-logits[best], kind="stable")]
        shift = own - float(logits[token])
        top = tuple((self._shown(int(each)), float(logits[each]) + shift) for each in best)
        return Likelihood(self._shown(token), own, top)

    def _shown(self, token: int) -> str:
        return self._job.vocabulary.tokens[token].decode("utf-8", "replace")
