"""Assessments for tests, as values and as models write them."""

import json

from taiwa.flows.ask.types import SCORES, Assessment

__all__ = ["LACK", "WORRY", "scored", "written"]

WORRY = "What exactly worries you?"
LACK = "Which leave do you mean?"


def scored(*scores: float, **texts: str) -> Assessment:
    """Scores in the article's order: clarity, question, consultation, in internal documents, ask a person."""
    return Assessment(tuple(zip(SCORES, scores, strict=False)), tuple(texts.items()))


def written(*scores: int, **texts: str) -> str:
    """The same as a model writes it; scores that are left out are 1."""
    return json.dumps(
        {**dict.fromkeys(SCORES, 1), **dict(zip(SCORES, scores, strict=False)), **texts}, ensure_ascii=False
    )
