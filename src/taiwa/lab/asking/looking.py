"""What is found: for questions as they stand, and for dialogues as whatever makes one query of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from taiwa.flows.finding import find
from taiwa.flows.rewrite import Queries, queries
from taiwa.kernel.effects import Program, Retrieve, perform
from taiwa.kernel.ledger import Limits, Spent
from taiwa.kernel.records import Json
from taiwa.kernel.values import Passage
from taiwa.lab.asking.corpora import Finder
from taiwa.lab.asking.figures import ndcg, recall, reciprocal
from taiwa.lab.asking.sample import ReadSet, Sample, item_of, sample_of
from taiwa.lab.asking.works import Modelled
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.running import Job, Measured

__all__ = ["GOLD", "LAST", "WEIGHTED", "WITH_HISTORY", "Retrieving", "Rewriting", "found_items"]

DEPTH = 10
LAST, JOINED, WEIGHTED, GOLD = "last turn", "all user turns", "weighted history", "human rewrite"
WRITTEN, FUSED = "model rewrite", "model rewrite, fused"
ALONE, WITH_HISTORY = "question", "question in its dialogue"


def ranked(passages: Sequence[Passage], sample: Sample) -> dict[str, Json]:
    """How good a ranking is, question by question."""
    names, right = [each.id for each in passages], sample.relevant
    return {
        "ndcg5": ndcg(names, right, 5), "ndcg10": ndcg(names, right, DEPTH), "recall5": recall(names, right, 5),
        "recall10": recall(names, right, DEPTH), "rr": reciprocal(names[:DEPTH], right), "found": len(names),
    }  # fmt: skip


def timed(finder: Finder, query: str) -> tuple[tuple[Passage, ...], float]:
    """What is found, and how many milliseconds that took."""
    begun = perf_counter()
    found = finder.find(query, DEPTH)
    return found, (perf_counter() - begun) * 1000


@dataclass
class Retrieving(Modelled):
    """The work of `retrieve`: questions as they stand, and where they come in dialogues, with what was said before."""

    dialogues: bool = False
    name: str = "retrieve"

    @property
    def settings(self) -> tuple[str, ...]:
        """The questions alone, and in their dialogues where there are any."""
        return (ALONE, WITH_HISTORY) if self.dialogues else (ALONE,)

    async def measure(self, job: Job, limits: Limits) -> Measured:  # noqa: ARG002  (a work's signature)
        """Look one question up."""
        sample = sample_of(job.item)
        finder = self.corpora.finder(job.item.kind, sample.given)
        if job.setting == WITH_HISTORY:
            finder = finder.after(sample.history)
        finder.find(sample.last, 1)  # an index is opened, and words are stemmed, once
        found, taken = timed(finder, sample.last)
        return Measured({**ranked(found, sample), "find_ms": round(taken, 4)})


@dataclass
class Rewriting(Modelled):
    """The work of `rewrite`: what each way from a dialogue to a query finds."""

    gold: bool = True
    name: str = "rewrite"
    _written: dict[str, Queries] = field(default_factory=dict[str, Queries], init=False, repr=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """The ways that need no model, those with one, and what people wrote."""
        written = (WRITTEN, FUSED) if self.voice is not None else ()
        return (LAST, JOINED, WEIGHTED, *written, *((GOLD,) if self.gold else ()))

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Make a query of one dialogue, and look it up."""
        sample = sample_of(job.item)
        finder = self.corpora.finder(job.item.kind, sample.given)
        if job.setting in (WRITTEN, FUSED):
            return await self._by_model(job, sample, finder, limits)
        if job.setting == WEIGHTED:
            return Measured(ranked(finder.after(sample.history).find(sample.last, DEPTH), sample))
        said = [words for who, words in sample.said if who == "user"]
        query = {LAST: sample.last, JOINED: "\n".join(said), GOLD: sample.rewrite}[job.setting]
        return Measured(ranked(finder.find(query, DEPTH), sample))

    async def _by_model(self, job: Job, sample: Sample, finder: Finder, limits: Limits) -> Measured:
        """The rewriting alone, or fused with the user's own words, as in a dialogue; it is written once for both."""
        spent = Spent()
        asked = self._written.get(job.item.id)
        if asked is None:
            done = await self.done(queries(sample.dialogue), finder, limits)
            asked = self._written[job.item.id] = done.value
            spent = done.spent
        looked = await self.done(_looked_up(asked, sample, fused=job.setting == FUSED), finder, Limits())
        told: dict[str, Json] = {"query": asked.text, "lost": len(asked.lost), "discarded": bool(asked.discarded)}
        return Measured({**ranked(looked.value, sample), **told}, spent)


def _looked_up(asked: Queries, sample: Sample, *, fused: bool) -> Program[tuple[Passage, ...]]:
    if not fused:
        return (yield from find((asked.text,), DEPTH))
    first = yield from perform(Retrieve(sample.last, DEPTH, sample.history))
    new = tuple(query for query in asked.all if query != sample.last)
    return (yield from find(new, DEPTH, known=(first,))) if new else first


def found_items(sets: Sequence[ReadSet], *, rewritten: bool) -> tuple[Item, ...]:
    """The turns whose passages are known; with `rewritten` only those that have a turn before them and a rewriting."""
    return tuple(
        item_of(sample, one.name, sample.rewrite)
        for one in sets
        for sample in one.samples
        if sample.relevant and (not rewritten or (len(sample.said) > 1 and sample.rewrite))
    )
