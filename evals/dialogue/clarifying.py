"""When to ask a clarifying question: policies and plain signals on human-labelled turns.

A policy runs as in a dialogue with the passages of its set; where it asks and the recorded reply is known, it continues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.evals.data import Item
from taiwa.evals.retrieval import CorpusTask, DialogueSample, QuestionSet, read_sample, sample_item
from taiwa.evals.run import Job, Measurement
from taiwa.flows.ask.consult import Clarified, clarify
from taiwa.flows.ask.decide_search_or_clarify import answerable
from taiwa.flows.ask.types import Ask, AssessBy, ClarificationState, ClarifyOptions
from taiwa.kernel.effects import Program
from taiwa.kernel.messages import assistant, user
from taiwa.kernel.serialization import Json, tag_of
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.retrieval.index import LOOKED_AT

__all__ = ["NO_MODEL", "SIGNALS", "ClarifyingTask", "clarify_items"]

NO_MODEL = "look_first, no model"
SIGNALS = ("few words", "weak evidence", "pointing at nothing")
"""Plain signals as scores: fewer words in the question, weaker evidence, more unresolved references."""
MAX_ROUNDS = 3
Found: TypeAlias = "dict[str, Json]"


@dataclass
class ClarifyingTask(CorpusTask):
    """The task of `clarify`; `policies` decide on the scores of the model."""

    policies: tuple[str, ...] = ("look_first", "article")
    assess_by: AssessBy = "auto"
    name: str = "clarify"

    @property
    def settings(self) -> tuple[str, ...]:
        """The policy without a model, the signals and, with a model, each policy."""
        return (NO_MODEL, *SIGNALS, *(self.policies if self.priced_model is not None else ()))

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that a decision depends on besides setting, turn and model."""
        return {**super().options, "assess_by": self.assess_by if self.priced_model is not None else None}

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Decide on one turn."""
        sample = read_sample(job.item)
        if job.setting in SIGNALS:
            return Measurement({"should": sample.ask, "score": self._signal(job.setting, job.item, sample)})
        manner = (
            ClarifyOptions(assess_by="no-model")
            if job.setting == NO_MODEL
            else ClarifyOptions(job.setting, assess_by=self.assess_by)
        )
        finder = self.corpora.finder(job.item.kind)
        done = await self.runtime(limits, retriever=finder).run_result(_run_rounds(sample, manner))
        acts = done.value
        return Measurement(
            {"should": sample.ask, "rounds": _count_questions(acts), **_decision_json(acts[0], manner)}, done.spent
        )

    def _signal(self, setting: str, item: Item, sample: DialogueSample) -> float:
        finder = self.corpora.finder(item.kind).after(sample.history)
        if setting == "few words":
            return -float(len(finder.index.analyzer.asked(sample.last)))
        evidence = finder.evidence(sample.last)
        if setting == "weak evidence":
            return 1 - answerable(evidence, len(finder.find(sample.last, LOOKED_AT)))
        return float(len(evidence.unresolved_references))


def _run_rounds(sample: DialogueSample, manner: ClarifyOptions) -> Program[tuple[Clarified, ...]]:
    """Decide, and after a clarifying question decide again with the recorded reply, if there is one."""
    text, earlier, clarification, acts = sample.last, sample.dialogue[:-1], ClarificationState(), list[Clarified]()
    for reply in (*sample.replies, None)[:MAX_ROUNDS]:
        found = yield from clarify(text, manner, earlier=earlier, clarification=clarification)
        acts.append(found)
        if reply is None or not isinstance(found.act, Ask):
            break
        earlier = (*earlier, user(text), assistant(found.act.question))
        text, clarification = reply, found.clarification
    return tuple(acts)


def _count_questions(acts: Sequence[Clarified]) -> int:
    return sum(isinstance(each.act, Ask) for each in acts)


def _decision_json(found: Clarified, manner: ClarifyOptions) -> Found:
    """Return the decision on the turn itself; `chance` is the estimated probability that it is unclear."""
    asked, decision = isinstance(found.act, Ask), found.decision
    numbers, assessment = dict(decision.numbers), decision.situation.assessment
    chance = numbers.get("unclear")
    if chance is None and assessment is not None:
        chance = assessment.probability_at_least("clarity", decision.situation.profile.effective_thresholds.unclear)
    weighed = chance is not None and (assessment is not None or manner.assess_by == "no-model")
    decided: Found = {"asked": asked, "act": tag_of(type(found.act)), "why": "+".join(decision.reasons)}
    if weighed and chance is not None:
        # Without any passage the policy asks regardless of the probability: the highest score.
        return {**decided, "chance": chance, "score": max(chance, float(asked))}
    return {**decided, "score": float(asked)}


def clarify_items(sets: Sequence[QuestionSet]) -> tuple[Item, ...]:
    """Return the turns that are labelled as clear or unclear."""
    return tuple(
        sample_item(sample, one.name, "ask" if sample.ask else "look")
        for one in sets
        for sample in one.samples
        if sample.ask is not None
    )
