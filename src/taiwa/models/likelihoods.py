"""How likely tokens were, as Chat Completions tells it (`logprobs.content`)."""

from collections.abc import Iterator
from math import isfinite

from taiwa.kernel.records import Json
from taiwa.kernel.values import Likelihood
from taiwa.models.loose import item_at, items_at, mend, text_at

__all__ = ["likelihoods_in"]

NEVER = -9999.0
"""What stands for a probability of zero, as JSON has no infinity."""


def likelihoods_in(choice: Json) -> Iterator[Likelihood]:
    """Read the tokens of a choice; one without a number is left out."""
    for row in items_at(choice, "logprobs", "content"):
        logprob = _logprob(row)
        if logprob is not None:
            told = ((mend(text_at(each, "token")), _logprob(each)) for each in items_at(row, "top_logprobs"))
            top = tuple((token, number) for token, number in told if number is not None)
            yield Likelihood(mend(text_at(row, "token")), logprob, top)


def _logprob(row: Json) -> float | None:
    found = item_at(row, "logprob")
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return min(float(found), 0.0) if isfinite(found) else NEVER
