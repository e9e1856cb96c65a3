"""Assessments for tests, as values and as models write them."""

import json
import math

from taiwa.flows.ask.types import SCORES, Assessment
from taiwa.kernel.messages import Response, TokenLogprob, assistant

__all__ = ["LACK", "WORRY", "digit", "scored", "written"]

WORRY = "What exactly worries you?"
LACK = "Which leave do you mean?"


def scored(*scores: float, **texts: str) -> Assessment:
    """Scores in the article's order: clarity, question, consultation, in internal documents, ask a person."""
    return Assessment(**dict(zip(SCORES, scores, strict=False)), **texts)


def written(*scores: int, **texts: str) -> str:
    """The same as a model writes it; scores that are left out are 1."""
    return json.dumps(
        {**dict.fromkeys(SCORES, 1), **dict(zip(SCORES, scores, strict=False)), **texts}, ensure_ascii=False
    )


def digit(**chances: float) -> Response:
    """An answer of one token with the chances of tokens, `_3` standing for 3."""
    told = tuple((name.removeprefix("_"), math.log(chance)) for name, chance in chances.items())
    best = max(told, key=lambda each: each[1])
    return Response(assistant(best[0]), logprobs=(TokenLogprob(*best, told),))
