"""Query rewriting: retrieval quality of each way to make a query from a dialogue."""

from dataclasses import dataclass, field

from taiwa.evals.retrieval import DEPTH, CorpusTask, DialogueSample, Finder, ranking_scores, read_sample
from taiwa.evals.run import Job, Measurement
from taiwa.flows.ask.dialogue import Queries, retrieve_fused, rewrite_queries
from taiwa.kernel.effects import Program, Retrieve, perform
from taiwa.kernel.messages import Passage
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import RunUsage, UsageLimits

__all__ = ["HUMAN_REWRITE", "LAST_TURN", "WEIGHTED_HISTORY", "RewritingTask"]

LAST_TURN, ALL_USER_TURNS, WEIGHTED_HISTORY, HUMAN_REWRITE = (
    "last turn",
    "all user turns",
    "weighted history",
    "human rewrite",
)
MODEL_REWRITE, MODEL_REWRITE_FUSED = "model rewrite", "model rewrite, fused"


@dataclass
class RewritingTask(CorpusTask):
    """The task of `rewrite`: retrieve with each way from a dialogue to a query."""

    gold: bool = True
    name: str = "rewrite"
    _written: dict[str, Queries] = field(default_factory=dict[str, Queries], init=False, repr=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the ways without a model, those with the model if there is one, and the human rewrite."""
        written = (MODEL_REWRITE, MODEL_REWRITE_FUSED) if self.priced_model is not None else ()
        return (LAST_TURN, ALL_USER_TURNS, WEIGHTED_HISTORY, *written, *((HUMAN_REWRITE,) if self.gold else ()))

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Make a query of one dialogue and retrieve."""
        sample = read_sample(job.item)
        finder = self.corpora.finder(job.item.kind, sample.excluded)
        if job.setting in (MODEL_REWRITE, MODEL_REWRITE_FUSED):
            return await self._by_model(job, sample, finder, limits)
        if job.setting == WEIGHTED_HISTORY:
            return Measurement(ranking_scores(finder.after(sample.history).find(sample.last, DEPTH), sample))
        texts = [text for role, text in sample.turns if role == "user"]
        query = {LAST_TURN: sample.last, ALL_USER_TURNS: "\n".join(texts), HUMAN_REWRITE: sample.rewrite}[job.setting]
        return Measurement(ranking_scores(finder.find(query, DEPTH), sample))

    async def _by_model(self, job: Job, sample: DialogueSample, finder: Finder, limits: UsageLimits) -> Measurement:
        """Retrieve with the model's rewriting alone or fused with the last turn; both share one request."""
        spent = RunUsage()
        asked = self._written.get(job.item.id)
        if asked is None:
            done = await self.runtime(limits, retriever=finder).run_result(rewrite_queries(sample.dialogue))
            asked = self._written[job.item.id] = done.value
            spent = done.spent
        program = _retrieve_queries(asked, sample, fused=job.setting == MODEL_REWRITE_FUSED)
        looked = await self.runtime(UsageLimits(), retriever=finder).run_result(program)
        fields: dict[str, Json] = {
            "query": asked.text,
            "lost": len(asked.missing_terms),
            "discarded": bool(asked.discarded),
        }
        return Measurement({**ranking_scores(looked.value, sample), **fields}, spent)


def _retrieve_queries(asked: Queries, sample: DialogueSample, *, fused: bool) -> Program[tuple[Passage, ...]]:
    if not fused:
        return (yield from retrieve_fused((asked.text,), DEPTH))
    first = yield from perform(Retrieve(sample.last, DEPTH, sample.history))
    new = tuple(query for query in asked.all if query != sample.last)
    return (yield from retrieve_fused(new, DEPTH, known=(first.passages,))) if new else first.passages
