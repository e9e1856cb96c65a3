"""Further readings of an order: where a reply has faults, the likeliest other one with fewer.

The network goes on behind other beginnings that it found nearly as likely (best-first search), and each reply is judged by the
order and the guest's words. The first one without a fault is taken; after some, the one with the best sum of both.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate

import numpy as np

from taiwa.constraints.vocabulary import common_prefix
from taiwa.models.builtin.line_check import CALL_START
from taiwa.models.builtin.network import CachedSequence, Network
from taiwa.models.builtin.order_app import DELTA_LINE
from taiwa.models.builtin.tokenizer import END, Tokens

READINGS = 8
"""Replies that are read at most."""
MOST_TOKENS = 160
ALTERNATIVES = 3
UNLIKELY = -6.0
"""The log-probability below which a token is not tried."""
FAULT = 2.0
"""What a fault of weight 1 counts beside the log-probability of a reply."""
LAST = 12
"""Last tokens among which a call or the delta begins."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A reply in tokens, with the log-probabilities of these, and at each place the other tokens that may have come."""

    text: str
    tokens: tuple[int, ...]
    chances: tuple[float, ...]
    others: tuple[tuple[tuple[int, float], ...], ...]
    """For the places behind the `given` ones."""
    given: int = 0

    def beginnings(self) -> Iterator[tuple[float, tuple[tuple[int, ...], tuple[float, ...]]]]:
        """Yield the beginnings of other replies, each with its log-probability and that of its tokens."""
        before = (0.0, *accumulate(self.chances))
        for at, others in enumerate(self.others, self.given):
            for token, chance in others:
                yield before[at] + chance, ((*self.tokens[:at], token), (*self.chances[:at], chance))


def search_reply(
    network: Network,
    tokens: Tokens,
    prompt: Sequence[int],
    first: str,
    judge: Callable[[str], float],
    judge_begun: Callable[[str], float],
    proposed: Iterable[str] = (),
) -> str:
    """Return the best reply to a prompt, up to its call or its end; `first` is the one that the network wrote at first.

    `judge` gives the weight of the faults of a reply, `judge_begun` that of the faults in the beginning of one. Replies without
    a fault that are `proposed` count as if they had been read: nothing is read that is less likely than one of them.
    """
    sequence = network.start()
    reading = _read_again(sequence, network, tokens, tuple(prompt), first)
    waiting: list[tuple[float, int, tuple[int, ...], tuple[float, ...]]] = []
    sound: dict[str, float] = {}
    found: dict[str, float] = {}
    count = 0
    for left in reversed(range(READINGS)):
        weight = judge(reading.text)
        if not weight:
            sound[reading.text] = sum(reading.chances)
            return max(sound, key=lambda text: sound[text])
        found[reading.text] = sum(reading.chances) - FAULT * weight
        if not count:
            for text in proposed:
                sound[text] = sum(_read_again(sequence, network, tokens, tuple(prompt), text).chances)
        for chance, begun in reading.beginnings():
            count += 1
            faults = judge_begun(tokens.decode(begun[0]))
            heappush(waiting, (FAULT * faults - chance, count, *begun))
        if not (waiting and left) or -waiting[0][0] <= max(sound.values(), default=float("-inf")):
            break
        _, _, beginning, chances = heappop(waiting)
        reading = _read(sequence, tokens, tuple(prompt), beginning, chances)
    found |= sound
    return max(found, key=lambda text: found[text])


def _read_again(
    sequence: CachedSequence, network: Network, tokens: Tokens, prompt: tuple[int, ...], text: str
) -> _Reading:
    """Read a reply that is known, in one pass."""
    written = tokens.encode(text)
    if not written:
        return _Reading(text, (), (), ())
    whole = (*prompt, *written[:-1])
    known = min(common_prefix(sequence.tokens, whole), len(prompt) - 1)
    sequence.rollback(len(sequence.tokens) - known)
    states = sequence.states(whole[known:], len(written))
    choices = [_likeliest(network.logits(state, None), token) for state, token in zip(states, written, strict=True)]
    chances = (found[-1][1] for found in choices)
    others = (_others(found[:-1], {token}) for token, found in zip(written, choices, strict=True))
    return _Reading(text, tuple(written), tuple(chances), tuple(others))


def _read(
    sequence: CachedSequence,
    tokens: Tokens,
    prompt: tuple[int, ...],
    beginning: tuple[int, ...],
    chances: tuple[float, ...],
) -> _Reading:
    """Go on greedily behind the beginning of a reply."""
    end = tokens.special[END]
    text = (*prompt, *beginning)
    known = min(common_prefix(sequence.tokens, text), len(text) - 1)
    sequence.rollback(len(sequence.tokens) - known)
    unread: Sequence[int] = text[known:]
    written, found = list(beginning), list(chances)
    others: list[tuple[tuple[int, float], ...]] = []
    while len(written) < MOST_TOKENS:
        choices = _likeliest(sequence.read(unread))
        best, chance = choices[0]
        if best == end:
            break
        others.append(_others(choices, {best, end}))
        written.append(best)
        found.append(chance)
        unread = (best,)
        last = tokens.decode(written[-LAST:])
        if CALL_START in last or DELTA_LINE in last:
            break
    reply = tokens.decode(written).partition(DELTA_LINE)[0].partition(CALL_START)[0]
    inside = len(tokens.encode(reply)) - len(beginning) + 1  # what may stand behind the reply makes no other one
    return _Reading(reply, tuple(written), tuple(found), tuple(others[: max(inside, 0)]), len(beginning))


def _others(choices: Sequence[tuple[int, float]], but: Collection[int]) -> tuple[tuple[int, float], ...]:
    """Return the tokens that are worth a try."""
    return tuple((token, chance) for token, chance in choices if token not in but and chance > UNLIKELY)


def _likeliest(logits: "np.ndarray[tuple[int], np.dtype[np.float32]]", *more: int) -> list[tuple[int, float]]:
    """Return the likeliest tokens and their log-probabilities, the best first, and behind them some more."""
    best = np.argpartition(-logits, ALTERNATIVES)[:ALTERNATIVES]
    best = best[np.argsort(-logits[best], kind="stable")]
    top = logits[best[0]]
    whole = float(top + np.log(np.exp(logits - top).sum()))
    return [(int(token), float(logits[token]) - whole) for token in (*best, *more)]
