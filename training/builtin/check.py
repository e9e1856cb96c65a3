"""Contamination check: does any evaluation text occur in the training data?

A generated sample may share an n-gram with an evaluation text by chance; the pipeline drops such samples. This check counts raw draws,
which reveals a template copied from an evaluation text, and then scans the final training tokens, prompts and answers.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from taiwa.models.builtin.tokenizer import Tokens
from training.builtin.corpus import Corpus, samples
from training.builtin.overlap import Overlap
from training.builtin.samples import Sample

__all__ = ["MOST", "SEED", "Checked", "entered", "look"]

MOST = 0.002
"""The highest share of drops that chance explains; a higher share means that a template was copied."""
SEED = 5_000_011
SHOWN = 20


@dataclass(slots=True)
class Checked:
    """The number of draws, and for each kind the number of draws that share an n-gram with an evaluation text."""

    count: int = 0
    shared: Counter[str] = field(default_factory=Counter[str])
    runs: dict[str, Counter[str]] = field(default_factory=dict[str, "Counter[str]"])
    left: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Return the share of dropped draws."""
        return self.shared.total() / self.count if self.count else 0.0

    @property
    def passed(self) -> bool:
        """Return true if the drops are within chance and the training data shares no n-gram."""
        return self.share <= MOST and not self.left

    def told(self) -> Iterator[str]:
        """Format the result as lines."""
        for kind, count in self.shared.most_common():
            yield f"{kind}: {count} draws"
            for run, times in self.runs[kind].most_common(SHOWN):
                yield f"    {times:5} times: {run}"
        yield f"{self.shared.total()} of {self.count} draws share a run: {self.share:.3%}, at most {MOST:.1%} by chance"
        yield from (f"in what enters the training: {run}" for run in self.left)
        yield "nothing is shared by what enters the training" if not self.left else f"{len(self.left)} runs are shared"


def look(forbidden: Overlap, count: int, seed: int = SEED) -> Checked:
    """Draw samples without dropping any, and count overlaps."""
    found = Checked(count)
    for domain, sample in islice(samples(seed), count):
        runs = forbidden.shared(sample)
        if runs:
            kind = f"{domain}, {sample.task}: {sample.kind}"
            found.shared[kind] += 1
            found.runs.setdefault(kind, Counter()).update(runs)
    return found


def entered(tokens: Tokens, forbidden: Overlap, count: int, seed: int = SEED) -> tuple[str, ...]:
    """Return the n-grams of evaluation texts found in training data that was drawn, encoded and decoded again."""
    corpus = Corpus.draw(tokens, seed, count, forbidden)
    special = frozenset(tokens.special.values())
    found: list[str] = []
    for start, end in zip(corpus.starts, corpus.starts[1:], strict=False):
        parts: list[list[int]] = [[]]
        for token in corpus.ids[start:end].tolist():
            if token in special:
                parts.append([])
            else:
                parts[-1].append(token)
        for part in filter(None, parts):
            found += forbidden.shared(Sample("", "", tokens.decode(part), ()))
    return tuple(found)
