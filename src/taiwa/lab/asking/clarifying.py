"""When to ask back: what policies and plain signals say of turns of which people said whether they had to be asked about.

A policy is run as it would be run for a person, with what its set holds to look into, and where it asks back and the
recorded reply is known, it goes on with that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.flows.acts import Ask, Thread
from taiwa.flows.clarify import AssessBy, Clarified, ClarifyOptions, clarify
from taiwa.flows.lookfirst import answerable
from taiwa.kernel.effects import Program
from taiwa.kernel.ledger import Limits
from taiwa.kernel.records import Json
from taiwa.kernel.values import assistant, user
from taiwa.lab.asking.sample import ReadSet, Sample, item_of, sample_of
from taiwa.lab.asking.works import Modelled
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.running import Job, Measured
from taiwa.retrieve.evidence import LOOKED_AT

__all__ = ["OFFLINE", "SIGNALS", "Clarifying", "clarify_items"]

OFFLINE = "look_first, no model"
SIGNALS = ("few words", "weak evidence", "pointing at nothing")
"""Plain signals, each a score alone: the fewer words of a question, the less found, the more words that point nowhere."""
MOST_ROUNDS = 3
Found: TypeAlias = "dict[str, Json]"


@dataclass
class Clarifying(Modelled):
    """The work of this evaluation; `policies` are those that the model's scores are given to."""

    policies: tuple[str, ...] = ("look_first", "article")
    judge: AssessBy = "auto"
    name: str = "clarify"

    @property
    def settings(self) -> tuple[str, ...]:
        """The policy without a model, the signals, and every policy with the model."""
        return (OFFLINE, *SIGNALS, *(self.policies if self.voice is not None else ()))

    @property
    def options(self) -> Mapping[str, Json]:
        """All that a decision depends on beside the setting, the turn and the model."""
        return {**super().options, "judge": self.judge if self.voice is not None else None}

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Decide on one turn."""
        sample = sample_of(job.item)
        if job.setting in SIGNALS:
            return Measured({"should": sample.ask, "score": self._signal(job.setting, job.item, sample)})
        manner = (
            ClarifyOptions(assess_by="no-model")
            if job.setting == OFFLINE
            else ClarifyOptions(job.setting, assess_by=self.judge)
        )
        finder = self.finder(job.item)
        done = await self.done(_rounds(sample, manner), finder, limits)
        acts = done.value
        return Measured({"should": sample.ask, "rounds": _asked(acts), **_decided(acts[0], manner)}, done.spent)

    def _signal(self, setting: str, item: Item, sample: Sample) -> float:
        finder = self.finder(item).after(sample.history)
        if setting == "few words":
            return -float(len(finder.index.analyzer.asked(sample.last)))
        evidence = finder.evidence(sample.last)
        if setting == "weak evidence":
            return 1 - answerable(evidence, len(finder.find(sample.last, LOOKED_AT)))
        return float(len(evidence.dangling))


def _rounds(sample: Sample, manner: ClarifyOptions) -> Program[tuple[Clarified, ...]]:
    """Decide, and where that is to ask back, again with what the user replied, as far as that is known."""
    dialogue, thread, acts = sample.dialogue, Thread(), list[Clarified]()
    for reply in (*sample.replies, None)[:MOST_ROUNDS]:
        found = yield from clarify(dialogue, manner, thread=thread)
        acts.append(found)
        if reply is None or not isinstance(found.act, Ask):
            break
        dialogue, thread = (*dialogue, assistant(found.act.question), user(reply)), found.thread
    return tuple(acts)


def _asked(acts: Sequence[Clarified]) -> int:
    return sum(isinstance(each.act, Ask) for each in acts)


def _decided(found: Clarified, manner: ClarifyOptions) -> Found:
    """What was decided on the turn itself; `chance` is how likely it was taken to be unclear, where that was weighed."""
    asked, decision = isinstance(found.act, Ask), found.decision
    numbers, assessment = dict(decision.numbers), decision.situation.assessment
    chance = numbers.get("unclear")
    if chance is None and assessment is not None:
        chance = assessment.unlikely("clarity", decision.situation.person.limits.unclear)
    weighed = chance is not None and (assessment is not None or manner.assess_by == "no-model")
    told: Found = {"asked": asked, "act": type(found.act).__name__, "why": "+".join(decision.reasons)}
    if weighed and chance is not None:
        # Where nothing was found it is asked whatever the chance is: that is the surest of all.
        return {**told, "chance": chance, "score": max(chance, float(asked))}
    return {**told, "score": float(asked)}


def clarify_items(sets: Sequence[ReadSet]) -> tuple[Item, ...]:
    """The turns of which it is known whether they had to be asked about."""
    return tuple(
        item_of(sample, one.name, "ask" if sample.ask else "look")
        for one in sets
        for sample in one.samples
        if sample.ask is not None
    )
