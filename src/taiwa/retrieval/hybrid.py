"""Words and vectors together, used where a check on the user's own questions shows a gain.

On English sets fusion gained 0.04 to 0.11 nDCG@10, on Japanese the same model lost 0.40: only a measurement tells. Without
questions from users, sentences of the documents stand in: a sentence is looked up with its own passage taken out of the results,
and the passages beside it are relevant.
"""

import math
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence

from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.messages import Message, Passage
from taiwa.kernel.records import value
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.embedding import Embedder
from taiwa.retrieval.index import FUSION_DEPTH, NO_PRINCIPALS, Index, NearPassages, reciprocal_ranks
from taiwa.retrieval.tables import IndexBackend
from taiwa.retrieval.types import ENOUGH, Gain

BATCH = 64
PAUSE = 30.0
"""Seconds before an embedder that failed is called again."""
WAIT = 600.0


class HybridIndex(Index):
    """An index searched by words and vectors; it uses words alone until `gain_of` has shown a gain.

    `always` fuses regardless. When the embedder fails, words alone are used, and `trouble` is the reason.
    """

    def __init__(
        self, index: Index, embedder: Embedder, *, always: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(index.backend)
        self.embedder = embedder
        self.always = always
        self._clock = clock
        self._failed_at = -PAUSE

    def __repr__(self) -> str:
        return f"HybridIndex({self.name!r}, {self.embedder.name!r})"

    @property
    def fuses(self) -> bool:
        """Whether fusion is used: a check has shown a gain, or `always` is set."""
        gain = self.backend.gain(self.embedder.name)
        return self.always or (gain is not None and gain.helps)

    def make_vectors(self, progress: Callable[[int], None] | None = None) -> int:
        """Compute the missing vectors, and return their number; an interrupted run continues where it stopped.

        Raises:
            TaiwaError: the embedder failed; what it made so far is kept.
        """
        made = 0
        model = self.embedder.name
        while True:
            # Locked for one batch at a time: two processes share the work, and neither waits long.
            with self.backend.write_lock(WAIT):
                batch = self.backend.without_vectors(model, BATCH)
                vectors = self.embedder.embed([text_of(passage) for passage in batch], "passage") if batch else ()
                named = [(passage.id, row) for passage, row in zip(batch, vectors, strict=True)]
                self.backend.put_vectors(model, named)
            if not batch:
                return made
            made += len(batch)
            if progress is not None:
                progress(made)

    def near(
        self, query: str, k: int, principals: Iterable[str] = NO_PRINCIPALS, history: Sequence[Message] = ()
    ) -> NearPassages | None:
        """Return the nearest passages; None where fusion is not used, or the embedder fails."""
        if not self.fuses or self._clock() - self._failed_at < PAUSE:
            return None
        try:
            near = self._nearest(query, k, frozenset(principals), history)
        except TaiwaError as error:
            self._failed_at = self._clock()
            self.trouble = f"{self.name}: found by words alone, as its embedder fails: {error.message}"
            return None
        self.trouble = ""
        return NearPassages(self.embedder.name, near)

    def _nearest(
        self, query: str, k: int, principals: frozenset[str], history: Sequence[Message]
    ) -> tuple[Passage, ...]:
        earlier = [message.text for message in history if message.role == "user"]
        vector = self.embedder.embed([" ".join([*earlier[-1:], query])], "question")[0]
        return self.backend.nearest(self.embedder.name, vector, k, principals)


def text_of(passage: Passage) -> str:
    """Return the text of a passage that is embedded."""
    return "\n".join((*passage.heading, passage.text))


PLACES = 10
"""Places of a ranking that count."""
DRAWS = 2_000
MOST = 300
"""Questions that are asked at most: each is one more text to embed."""
SENTENCE = re.compile(r"(?<=[。！？｡])|(?<=[.!?])\s+|\n+")
FEWEST_TERMS, MOST_LETTERS = 4, 300


@value
class LabelledQuery:
    """A question, the ids of the passages that are right, and the id of one that may not answer."""

    question: str
    right: frozenset[str]
    without: str = ""


def gain_of(
    fused: "HybridIndex", pairs: Sequence[tuple[str, str]] = (), substitutes: Sequence[LabelledQuery] = ()
) -> Gain:
    """Measure and remember what fusing gains on pairs of a question and the id of the passage that answers it.

    Positive feedback (`Index.add_feedback`) counts too. `substitutes` are questions used where users have given too few.

    Raises:
        InputError: there are too few questions.
    """
    backend = fused.backend
    known: dict[str, set[str]] = {}
    feedback = ((each.query, each.passage) for each in backend.feedback() if each.good)
    for question, passage in (*pairs, *feedback):
        known.setdefault(question, set()).add(passage)
    whose = "people"
    questions = [LabelledQuery(question, frozenset(right)) for question, right in known.items()]
    if len(questions) < ENOUGH and substitutes:
        whose, questions = "sentences", list(substitutes)
    if len(questions) < ENOUGH:
        raise InputError(f"at least {ENOUGH} questions with known passages are needed, got {len(questions)}")
    if len(questions) > MOST:
        questions = random.Random(0).sample(questions, MOST)  # noqa: S311  (a draw that repeats, no secret)
    scored = _scored(fused, questions)
    low, high = _interval([after - before for before, after in scored])
    words, both = (_mean([each[side] for each in scored]) for side in (0, 1))
    gain = Gain(len(questions), words, both, low, high, whose)
    backend.store_gain(fused.embedder.name, gain)
    return gain


def own_sentences(backend: IndexBackend, most: int = MOST) -> tuple[LabelledQuery, ...]:
    """Draw sentences of the documents as questions, one per document, or more where there are few documents."""
    chance = random.Random(0)  # noqa: S311  (a draw that repeats, no secret)
    listed = [each for each in backend.documents(None) if each.passages > 1]
    chosen = listed if len(listed) <= most else chance.sample(listed, most)
    queries: list[LabelledQuery] = []
    for number, document in enumerate(chosen):
        wanted = -(-(most - len(queries)) // (len(chosen) - number))
        passages = backend.passages(document.path)
        for at in sorted(chance.sample(range(len(passages)), min(wanted, len(passages)))):
            beside = [passages[near] for near in (at - 1, at + 1) if 0 <= near < len(passages)]
            sentence = _sentence(passages[at].text, beside, backend.analyzer, chance)
            if sentence:
                queries.append(LabelledQuery(sentence, frozenset(each.id for each in beside), passages[at].id))
    return tuple(queries)


def _sentence(text: str, beside: Sequence[Passage], analyzer: Analyzer, chance: random.Random) -> str:
    """A sentence that says something and stands here alone; headings and rows of tables are none."""
    sentences = (each.strip() for each in SENTENCE.split(text))
    fit = [
        each for each in sentences
        if each and each[0] not in "#|" and len(each) <= MOST_LETTERS and len(set(analyzer.asked(each))) >= FEWEST_TERMS
        and not any(each in other.text for other in beside)
    ]  # fmt: skip
    return chance.choice(fit) if fit else ""


def _scored(fused: "HybridIndex", questions: Sequence[LabelledQuery]) -> list[tuple[float, float]]:
    """Score each question, by words and by both."""
    everybody = frozenset(
        name for each in fused.backend.documents(None) for clause in each.known.audience for name in clause
    )
    scored: list[tuple[float, float]] = []
    vectors = fused.embedder.embed([each.question for each in questions], "question")
    for each, vector in zip(questions, vectors, strict=True):
        words = fused.by_words(each.question, FUSION_DEPTH + 1, everybody)
        near = fused.backend.nearest(fused.embedder.name, vector, FUSION_DEPTH + 1, everybody)
        first, second = ([one for one in ranking if one.id != each.without][:FUSION_DEPTH] for ranking in (words, near))
        both = reciprocal_ranks((first, second), PLACES)
        scored.append((_ndcg([one.id for one in first], each.right), _ndcg([one.id for one in both], each.right)))
    return scored


def _ndcg(ranking: Sequence[str], right: frozenset[str]) -> float:
    gained = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(ranking[:PLACES]) if one in right)
    return gained / math.fsum(1 / math.log2(place + 2) for place in range(min(len(right), PLACES)))


def _interval(differences: Sequence[float]) -> tuple[float, float]:
    chance = random.Random(len(differences))  # noqa: S311  (a draw that repeats, no secret)
    means = sorted(_mean(chance.choices(differences, k=len(differences))) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
