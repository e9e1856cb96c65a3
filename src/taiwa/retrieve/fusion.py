"""A dialogue as one weighted question, with no model: the newest words count most, and older ones fade."""

import re
from collections import Counter
from collections.abc import Sequence

from taiwa.kernel.values import Message
from taiwa.retrieve.analyzer import Analyzer

__all__ = ["dangling", "weigh"]

EARLIER = 0.5
FADING = 0.7
"""An earlier turn of the user's counts half, and each one before it 0.7 of that."""
ANSWERED = 0.05
"""What the last answer said counts for little, and finds what the user calls `it`."""
MOST_TERMS = 128
"""Terms that are asked for; what weighs least is left out."""

POINTING = re.compile(
    r"\b(?:this|that|these|those)\s+(?P<noun>[a-z]{3,})|"
    r"\b(?P<pronoun>it|its|they|them|their|he|him|his|she|her|hers|this|that|these|those|the same|the former|the latter)\b|"
    r"(?P<ja>(?:これ|それ|あれ)(?:ら)?|(?:この|その|あの)(?=[\u4e00-\u9fff\u30a1-\u30fa])|(?:彼女|彼)(?:ら)?(?=[はがをにのも])|同じ(?:もの|やつ))|"
    r"(?P<zh>这(?:个|些|种|项)?|那(?:个|些|种|项)?|[它他她](?:们)?|其(?=[\u4e00-\u9fff]))",
    re.IGNORECASE,
)
EMPTY = re.compile(
    r"\b(?:is|was|does|would)\s+it\s+(?:possible|allowed|ok|okay|necessary|true|take|cost|matter)\b|"
    r"\bit\s+(?:is|was|takes|seems)\b|\b(?:so|such|now)\s+that\b|\bthat\s+(?:is|are|was|were|can|will|has|have|i|we|you|the|a)\b|"
    r"それ(?:では|で|から|とも|ぞれ|ほど|なら)|これ(?:から|まで)|その(?:ほか|他|まま|うち|後)|このたび|那么|这样|那样|其他|其中|其实|尤其|其余",
    re.IGNORECASE,
)
"""Words that look as if they pointed at something, and do not."""


def weigh(analyzer: Analyzer, query: str, history: Sequence[Message] = ()) -> dict[str, float]:
    """Return the terms of a question with their weights, 1 for each time the question itself says one.

    >>> from taiwa.kernel.values import user
    >>> weigh(Analyzer(), "and on Sunday?", [user("opening hours on Monday")])
    {'sunday': 1.0, 'open': 0.5, 'hour': 0.5, 'monday': 0.5}
    """
    weights = {term: float(times) for term, times in Counter(analyzer.asked(query)).items()}
    asked = [message.text for message in history if message.role == "user"]
    answered = [message.text for message in history if message.role == "assistant"]
    for age, text in enumerate(reversed(asked)):
        _add(weights, analyzer.asked(text), EARLIER * FADING**age)
    if answered:
        _add(weights, analyzer.asked(answered[-1]), ANSWERED)
    if len(weights) > MOST_TERMS:
        kept = sorted(weights, key=lambda term: -weights[term])[:MOST_TERMS]
        weights = {term: weights[term] for term in kept}
    return weights


def _add(weights: dict[str, float], terms: Sequence[str], weight: float) -> None:
    """A term counts as where it counts most: a topic that comes up in every turn must not drown what is asked now."""
    for term in terms:
        weights[term] = max(weights.get(term, 0.0), weight)


def dangling(analyzer: Analyzer, query: str, history: Sequence[Message] = ()) -> tuple[str, ...]:
    """Return the words of a question that point at something said nowhere: `that form` where no form was spoken of.

    A pronoun is resolved by any history, and by what stands before it in the question itself.
    """
    text = EMPTY.sub(lambda found: " " * len(found[0]), query)
    before = {term for message in history for term in analyzer.terms(message.text)}
    found: list[str] = []
    for pointing in POINTING.finditer(text):
        own = [term for term in analyzer.asked(text[: pointing.start()]) if term not in ASKING]
        noun = pointing["noun"]
        known = before | set(own)
        resolved = bool(set(analyzer.terms(noun)) & known) if noun else bool(known)
        if not resolved:
            found.append(" ".join(pointing[0].split()))
    return tuple(found)


ASKING = frozenset(
    "what when where which who whom whose why how do doe did can could should would will may is are wa be have has ha i my me "
    "we you tell show explain pleas about and but or on in of to for with "
    "long much mani often far old big soon late earli high".split()
)
"""Terms that ask, and name nothing."""
