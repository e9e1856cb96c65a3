"""What is answered: whether quotations stand where they are said to, in the right passage, and whether what is not there is told.

Each question is asked twice: with everything to look into, and without the passages that answer it, which nobody can then.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

from taiwa.flows.askturn import LITTLE
from taiwa.flows.cited import cite
from taiwa.flows.extractive import Reader, extractive
from taiwa.flows.lookfirst import answerable
from taiwa.flows.material import tongue
from taiwa.flows.quoting import stands
from taiwa.flows.sourced import Answer
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.records import Json
from taiwa.lab.asking.corpora import Finder
from taiwa.lab.asking.sample import ReadSet, Sample, item_of, sample_of
from taiwa.lab.asking.works import Modelled
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.running import Job, Measured
from taiwa.retrieval.analyzer import DENSE
from taiwa.retrieval.index import LOOKED_AT
from taiwa.talk.asking import reader_of

__all__ = ["CITED", "EXTRACTIVE", "WITHOUT", "Answering", "answer_items", "bag", "overlap"]

EXTRACTIVE, CITED = "extractive", "model, cited"
WITHOUT = "{}, passage withheld"
GIVEN = 8
"""Passages that an answer is taken from, as `taiwa ask` does."""
TOKEN = re.compile(rf"[{DENSE}]|(?:(?![{DENSE}])\w)+")
ARTICLES = frozenset({"a", "an", "the"})


def bag(text: str) -> list[str]:
    """The words of an answer without articles and marks; characters where no spaces are written (SQuAD, JGLUE).

    >>> bag("The Tower of 東京.")
    ['tower', 'of', '東', '京']
    """
    return [word for word in TOKEN.findall(normalize("NFKC", text).casefold()) if word not in ARTICLES]


def overlap(said: str, gold: str) -> float:
    """The F1 of the words of two answers."""
    these, those = bag(said), bag(gold)
    shared = sum((Counter(these) & Counter(those)).values())
    return 2 * shared / (len(these) + len(those)) if shared else 0.0


@dataclass
class Answering(Modelled):
    """The work of `answer`."""

    name: str = "answer"

    @property
    def settings(self) -> tuple[str, ...]:
        """With words of the passages alone and, where there is one, by the model; each with the passage and without."""
        ways = (EXTRACTIVE, *((CITED,) if self.voice is not None else ()))
        return tuple(setting for way in ways for setting in (way, WITHOUT.format(way)))

    @property
    def options(self) -> Mapping[str, Json]:
        """All that an answer depends on beside the setting, the question and the model."""
        return {**super().options, "given": GIVEN}

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Answer one question."""
        sample = sample_of(job.item)
        withheld = job.setting in (WITHOUT.format(EXTRACTIVE), WITHOUT.format(CITED))
        there = bool(sample.answerable) and not withheld
        found: dict[str, Json] = {"there": there, "counts": not withheld or bool(sample.relevant)}
        if not found["counts"]:
            return Measured(found)
        finder = self.corpora.finder(job.item.kind, sample.relevant if withheld else (), sample.history)
        passages = finder.find(sample.last, GIVEN)
        chance = answerable(finder.evidence(sample.last), len(finder.find(sample.last, LOOKED_AT)))
        spent = Spent()
        if job.setting.startswith(CITED):
            done = await self.done(cite(sample.last, passages, language=tongue(sample.dialogue)), finder, limits)
            answer, spent = done.value, done.spent
            refused = not answer.documented
        else:
            reader: Reader = reader_of(finder.index.analyzer.name)
            answer = extractive(sample.last, passages, sample.history, reader)
            refused = not answer.documented or chance < LITTLE
        found |= {"refused": refused, "chance": round(chance, 6)}
        return Measured({**found, **(judged(answer, sample, finder) if not refused else {})}, spent)


def judged(answer: Answer, sample: Sample, finder: Finder) -> dict[str, Json]:
    """What an answer is worth: every citation looked up anew in the passage that it names, and its words beside the right ones."""
    cited = answer.citations
    standing = [each for each in cited if _stands(each.words, finder, each.passage)]
    right = [each for each in standing if each.passage in sample.relevant]
    told: dict[str, Json] = {
        "citations": len(cited), "standing": len(standing), "right": len(right), "dropped": answer.refused,
        "first": bool(right) and cited[0] == right[0], "claims": len(answer.claims),
        "unsupported": sum(not claim.supported for claim in answer.claims),
    }  # fmt: skip
    if not sample.answers:
        return told
    said = " ".join(claim.text for claim in answer.claims)
    best = answer.claims[0].text if answer.claims else ""
    return told | {
        "exact": any(bag(said) == bag(gold) or bag(best) == bag(gold) for gold in sample.answers),
        "f1": max(max(overlap(said, gold), overlap(best, gold)) for gold in sample.answers),
        "holds": any(_within(bag(gold), bag(said)) for gold in sample.answers),
    }


def _stands(words: str, finder: Finder, name: str) -> bool:
    passage = finder.passages.get(name)
    return passage is not None and stands(words, passage.text) is not None


def _within(part: Sequence[str], whole: Sequence[str]) -> bool:
    size = len(part)
    return bool(size) and any(list(whole[at : at + size]) == list(part) for at in range(len(whole) - size + 1))


def answer_items(sets: Sequence[ReadSet]) -> tuple[Item, ...]:
    """The questions of which it is known whether the documents answer them, and by which passages if they do."""
    return tuple(
        item_of(sample, one.name, sample.answers[0] if sample.answers else "")
        for one in sets
        for sample in one.samples
        if sample.answerable is False or (sample.answerable and sample.relevant)
    )
