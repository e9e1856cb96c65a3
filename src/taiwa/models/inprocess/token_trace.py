"""Read an answer again token by token: what the constraint allowed, what the model preferred, and which token came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taiwa.constraints.guide import Explanation, GuideState, empty_mask
from taiwa.constraints.vocabulary import Vocabulary, common_prefix
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.models.inprocess.decode_loop import TokenSequence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from taiwa.models.inprocess.decode_loop import Logits


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that could have come: its bytes, whether the mask allowed it, and its probability with and without the mask."""

    text: bytes
    allowed: bool
    probability: float
    unmasked: float


@dataclass(frozen=True, slots=True)
class TracedToken:
    """A token of an answer at its position.

    `forced` says that no other one was possible. `probability` is that of the model under the mask, `unmasked` without it, both
    at temperature 1. `allowed` tokens were possible, None without a constraint; `here` says where in the source that is.
    `alternatives` are the tokens that the model preferred most, this one included where it is one of them.
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

    `exact` says that they are the ones which the model sampled; otherwise the text is divided as the tokenizer does.
    `refused` says why the constraint does not allow the rest of the text, if it does not.
    """

    tokens: tuple[TracedToken, ...]
    exact: bool
    refused: str = ""


def read_tokens(
    sequence: TokenSequence,
    unread: Sequence[int],
    state: GuideState | None,
    vocabulary: Vocabulary,
    tokens: Sequence[int],
    most: int,
) -> Iterator[TracedToken]:
    """Read tokens one after the other, as far as the guide allows them; `most` alternatives are returned for each.

    Raises:
        InputError, NoValidTokenError: the guide does not allow a token.
    """
    mask = None if state is None else empty_mask(len(vocabulary))
    certain = 0
    for number, token in enumerate(tokens):
        logits = sequence.read(unread)
        allowed = None
        here = Explanation()
        if state is not None and mask is not None:
            state.mask(mask)
            allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(logits)].view(np.bool_)
            here = state.explain(token)
            if not allowed[token]:
                raise InputError(here.why or f"{vocabulary.show(token)} is not allowed")
            certain = max(certain, number + common_prefix(state.forced(), tokens[number:]))
            state = state.advance(token)
        yield _traced(vocabulary, token, logits, allowed, here, most, forced=number < certain)
        unread = [token]


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
    count = min(most, len(logits))
    best = np.argpartition(-logits, count - 1)[:count] if count else np.empty(0, dtype=np.intp)
    best = best[np.argsort(-logits[best], kind="stable")]
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


def trace_as_far(readings: Iterator[TracedToken], *, exact: bool) -> TokenTrace:
    """Collect tokens up to the first one that the constraint does not allow."""
    found: list[TracedToken] = []
    try:
        found.extend(readings)  # what was read before an error stays
    except (InputError, NoValidTokenError) as error:
        return TokenTrace(tuple(found), exact, error.message)
    return TokenTrace(tuple(found), exact)
