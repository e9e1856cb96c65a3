"""Whether vectors help on somebody's own documents, told by questions whose passages are known.

On English sets fusing gained 0.04 to 0.11 nDCG@10, on Japanese the same model lost 0.40: nothing but a measurement tells.
Where nobody has asked yet, the documents ask themselves: a sentence is looked up with its own passage taken out of what is
found, and the passages beside it are right.
"""

import math
import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value
from taiwa.kernel.values import Passage
from taiwa.retrieve.analyzer import Analyzer
from taiwa.retrieve.ranks import DEEP, reciprocal_ranks
from taiwa.retrieve.seam import Shelf
from taiwa.retrieve.values import ENOUGH, Gain

if TYPE_CHECKING:
    from taiwa.retrieve.dense.fusing import Fused

__all__ = ["Asked", "gain_of", "own_sentences"]

PLACES = 10
"""Places of a ranking that count."""
DRAWS = 2_000
MOST = 300
"""Questions that are asked at most: each is one more text to embed."""
SENTENCE = re.compile(r"(?<=[。！？｡])|(?<=[.!?])\s+|\n+")
FEWEST_TERMS, MOST_LETTERS = 4, 300


@value
class Asked:
    """A question, the ids of the passages that are right, and the id of one that may not answer."""

    question: str
    right: frozenset[str]
    without: str = ""


def gain_of(fused: "Fused", pairs: Sequence[tuple[str, str]] = (), asked: Sequence[Asked] = ()) -> Gain:
    """Measure and remember what fusing gains on pairs of a question and the id of the passage that answers it.

    What people called good (`Index.tell`) counts too. `asked` are questions that stand in where nobody's are known.

    Raises:
        InputError: there are too few questions to tell.
    """
    shelf = fused.shelf
    known: dict[str, set[str]] = {}
    told = ((each.query, each.passage) for each in shelf.told() if each.good)
    for question, passage in (*pairs, *told):
        known.setdefault(question, set()).add(passage)
    whose = "people"
    questions = [Asked(question, frozenset(right)) for question, right in known.items()]
    if len(questions) < ENOUGH and asked:
        whose, questions = "sentences", list(asked)
    if len(questions) < ENOUGH:
        raise InputError(f"{len(questions)} questions with known passages are too few: give at least {ENOUGH}")
    if len(questions) > MOST:
        questions = random.Random(0).sample(questions, MOST)  # noqa: S311  (a draw that repeats, no secret)
    scored = _scored(fused, questions)
    low, high = _interval([after - before for before, after in scored])
    words, both = (_mean([each[side] for each in scored]) for side in (0, 1))
    gain = Gain(len(questions), words, both, low, high, whose)
    shelf.judge(fused.embedder.name, gain)
    return gain


def own_sentences(shelf: Shelf, most: int = MOST) -> tuple[Asked, ...]:
    """Draw sentences of the documents as questions, one of each, or more of each where the documents are few."""
    chance = random.Random(0)  # noqa: S311  (a draw that repeats, no secret)
    listed = [each for each in shelf.documents(None) if each.passages > 1]
    chosen = listed if len(listed) <= most else chance.sample(listed, most)
    found: list[Asked] = []
    for number, document in enumerate(chosen):
        wanted = -(-(most - len(found)) // (len(chosen) - number))
        passages = shelf.passages(document.path)
        for at in sorted(chance.sample(range(len(passages)), min(wanted, len(passages)))):
            beside = [passages[near] for near in (at - 1, at + 1) if 0 <= near < len(passages)]
            sentence = _sentence(passages[at].text, beside, shelf.analyzer, chance)
            if sentence:
                found.append(Asked(sentence, frozenset(each.id for each in beside), passages[at].id))
    return tuple(found)


def _sentence(text: str, beside: Sequence[Passage], analyzer: Analyzer, chance: random.Random) -> str:
    """A sentence that says something and stands here alone; headings and rows of tables are none."""
    sentences = (each.strip() for each in SENTENCE.split(text))
    fit = [
        each for each in sentences
        if each and each[0] not in "#|" and len(each) <= MOST_LETTERS and len(set(analyzer.asked(each))) >= FEWEST_TERMS
        and not any(each in other.text for other in beside)
    ]  # fmt: skip
    return chance.choice(fit) if fit else ""


def _scored(fused: "Fused", questions: Sequence[Asked]) -> list[tuple[float, float]]:
    """Score each question, by words and by both."""
    everybody = frozenset(
        name for each in fused.shelf.documents(None) for clause in each.known.audience for name in clause
    )
    scored: list[tuple[float, float]] = []
    vectors = fused.embedder.embed([each.question for each in questions], "question")
    for each, vector in zip(questions, vectors, strict=True):
        words = fused.by_words(each.question, DEEP + 1, everybody)
        near = fused.shelf.nearest(fused.embedder.name, vector, DEEP + 1, everybody)
        first, second = ([one for one in ranking if one.id != each.without][:DEEP] for ranking in (words, near))
        both = reciprocal_ranks((first, second), PLACES)
        scored.append((_ndcg([one.id for one in first], each.right), _ndcg([one.id for one in both], each.right)))
    return scored


def _ndcg(found: Sequence[str], right: frozenset[str]) -> float:
    gained = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(found[:PLACES]) if one in right)
    return gained / math.fsum(1 / math.log2(place + 2) for place in range(min(len(right), PLACES)))


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    chance = random.Random(len(differences))  # noqa: S311  (a draw that repeats, no secret)
    means = sorted(_mean(chance.choices(differences, k=len(differences))) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
