"""Readings of a step of a solution: that of the likeliest tokens, then the likeliest ones that differ from it somewhere, best first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from taiwa.constraints.guide import GuideState, empty_mask, unpack_mask
from taiwa.models.builtin.line_check import next_step
from taiwa.models.builtin.network import Array, CachedSequence, Network
from taiwa.models.builtin.tokenizer import Tokens

__all__ = ["readings"]

MOST_READ, MOST_TOKENS, MOST_OTHERS = 8, 120, 3
LEAST = -6.0
"""How much less likely a token may be than the likeliest one in whose place it stands, as a logarithm."""


@dataclass(frozen=True, slots=True, order=True)
class _Branch:
    """The beginning of a line with another last token; `loss` is how much less likely it is than what the network prefers."""

    loss: float
    tokens: tuple[int, ...] = field(compare=False)


def readings(network: Network, tokens: Tokens, known: Sequence[int], state: GuideState, before: str) -> Iterator[str]:
    """Yield the readings behind a text; `known` are the tokens up to there and `state` that of its guide."""
    sequence = network.start()
    if len(known) > 1:
        sequence.read(known[:-1])
    branches = [_Branch(0.0, ())]
    for _ in range(MOST_READ + 1):
        if not branches:
            return
        branch = heappop(branches)
        text = _read(network, tokens, sequence, known, state, before, branch, branches)
        sequence.rollback(len(sequence.tokens) - len(known) + 1)
        if text:
            yield text


def _read(
    network: Network,
    tokens: Tokens,
    sequence: CachedSequence,
    known: Sequence[int],
    state: GuideState,
    before: str,
    branch: _Branch,
    branches: list[_Branch],
) -> str:
    """Read a step to its end, and note where it might have gone on otherwise; '' for one that does not end."""
    line = [*branch.tokens]
    for token in line:
        state = state.advance(token)
    unread = [known[-1], *line]
    mask = empty_mask(len(network.vocabulary))
    while len(line) < MOST_TOKENS and len(sequence.tokens) + len(unread) < network.context:
        logits = sequence.read(unread)
        state.mask(mask)
        scores: Array = np.where(unpack_mask(mask, len(logits)), logits, np.float32("-inf"))
        best, *others = map(int, np.argsort(-scores)[: MOST_OTHERS + 1])
        for other in others:
            lost = float(scores[best] - scores[other])
            if lost < -LEAST:
                heappush(branches, _Branch(branch.loss + lost, (*line, other)))
        if best in network.vocabulary.end:
            return tokens.decode(line)
        line.append(best)
        state = state.advance(best)
        unread = [best]
        text = before + tokens.decode(line)
        piece = next_step(text, len(before), is_ended=False)
        if piece is not None:
            return piece.text
    return ""
