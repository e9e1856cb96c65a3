"""Answers: are quotations in the right passages, and are unanswerable questions refused?

Each question is asked twice: with all passages, and without those that answer it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from taiwa.evals.data import Item
from taiwa.evals.retrieval import CorpusTask, DialogueSample, Finder, QuestionSet, read_sample, sample_item
from taiwa.evals.run import Job, Measurement
from taiwa.flows.ask.answer import answer_with_citations
from taiwa.flows.ask.ask_result import Answer
from taiwa.flows.ask.decide_search_or_clarify import answerable
from taiwa.flows.ask.dialogue import reply_language, user_texts
from taiwa.flows.ask.quote import extractive
from taiwa.flows.ask.types import Thresholds
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage, UsageLimits
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.index import LOOKED_AT

__all__ = ["CITED", "EXTRACTIVE", "WITHOUT", "AnsweringTask", "answer_items", "normalized_words", "word_f1"]

EXTRACTIVE, CITED = "extractive", "model, cited"
WITHOUT = "{}, passage withheld"
PASSAGES_GIVEN = 8
"""Passages given to the answer, as in `taiwa ask`."""
TOKEN = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)+")
ARTICLES = frozenset({"a", "an", "the"})


def normalized_words(text: str) -> list[str]:
    """Return the words of an answer without articles and punctuation; characters in scripts without spaces (SQuAD, JGLUE).

    >>> normalized_words("The Tower of 東京.")
    ['tower', 'of', '東', '京']
    """
    return [word for word in TOKEN.findall(normalize("NFKC", text).casefold()) if word not in ARTICLES]


def word_f1(text: str, gold: str) -> float:
    """Return the F1 of the words of two answers."""
    these, those = normalized_words(text), normalized_words(gold)
    shared = sum((Counter(these) & Counter(those)).values())
    return 2 * shared / (len(these) + len(those)) if shared else 0.0


@dataclass
class AnsweringTask(CorpusTask):
    """The task of `answer`."""

    name: str = "answer"

    @property
    def settings(self) -> tuple[str, ...]:
        """Extractive answers and, with a model, cited ones; each with the relevant passages and without."""
        ways = (EXTRACTIVE, *((CITED,) if self.priced_model is not None else ()))
        return tuple(setting for way in ways for setting in (way, WITHOUT.format(way)))

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that an answer depends on besides setting, question and model."""
        return {**super().options, "given": PASSAGES_GIVEN}

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Answer one question."""
        sample = read_sample(job.item)
        withheld = job.setting in (WITHOUT.format(EXTRACTIVE), WITHOUT.format(CITED))
        there = bool(sample.answerable) and not withheld
        found: dict[str, Json] = {"there": there, "counts": not withheld or bool(sample.relevant)}
        if not found["counts"]:
            return Measurement(found)
        finder = self.corpora.finder(job.item.kind, sample.relevant if withheld else (), sample.history)
        passages = finder.find(sample.last, PASSAGES_GIVEN)
        chance = answerable(finder.evidence(sample.last), len(finder.find(sample.last, LOOKED_AT)))
        spent = RunUsage()
        if job.setting.startswith(CITED):
            program = answer_with_citations(sample.last, passages, language=reply_language(user_texts(sample.dialogue)))
            done = await self.runtime(limits, retriever=finder).run_result(program)
            answer, spent = done.value, done.spent
            refused = not answer.documented
        else:
            answer = extractive(sample.last, passages, sample.history, finder.index.analyzer)
            refused = not answer.documented or chance < Thresholds().weak_evidence
        found |= {"refused": refused, "chance": round(chance, 6)}
        return Measurement({**found, **(judge_answer(answer, sample, finder) if not refused else {})}, spent)


def judge_answer(answer: Answer, sample: DialogueSample, finder: Finder) -> dict[str, Json]:
    """Score an answer: check each citation against its passage, and compare its text with the expected answers."""
    cited = answer.citations
    standing = [each for each in cited if _quotation_stands(each.words, finder, each.passage)]
    right = [each for each in standing if each.passage in sample.relevant]
    scores: dict[str, Json] = {
        "citations": len(cited), "standing": len(standing), "right": len(right), "doubted": answer.doubted,
        "first": bool(right) and cited[0] == right[0], "claims": len(answer.claims),
        "unsupported": sum(not claim.supported for claim in answer.claims),
    }  # fmt: skip
    if not sample.answers:
        return scores
    text = " ".join(claim.text for claim in answer.claims)
    best = answer.claims[0].text if answer.claims else ""
    return scores | {
        "exact": any(
            normalized_words(text) == normalized_words(gold) or normalized_words(best) == normalized_words(gold)
            for gold in sample.answers
        ),
        "f1": max(max(word_f1(text, gold), word_f1(best, gold)) for gold in sample.answers),
        "holds": any(_contains(normalized_words(gold), normalized_words(text)) for gold in sample.answers),
    }


def _quotation_stands(words: str, finder: Finder, name: str) -> bool:
    passage = finder.passages.get(name)
    return passage is not None and words in passage.text


def _contains(part: Sequence[str], whole: Sequence[str]) -> bool:
    size = len(part)
    return bool(size) and any(list(whole[at : at + size]) == list(part) for at in range(len(whole) - size + 1))


def answer_items(sets: Sequence[QuestionSet]) -> tuple[Item, ...]:
    """Return the questions with known answerability and, if answerable, known passages."""
    return tuple(
        sample_item(sample, one.name, sample.answers[0] if sample.answers else "")
        for one in sets
        for sample in one.samples
        if sample.answerable is False or (sample.answerable and sample.relevant)
    )
