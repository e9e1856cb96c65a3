"""Whether anything that the model is measured by is in what it learns from.

What is drawn may share a run of words with such a text by chance: such draws are thrown away before anything is made of them.
Here raw draws are counted, so that a wording that was taken from such a text is seen; and what enters the training is read back
from its tokens and looked through again, prompts and answers.
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
"""The share of draws that chance may take; more of them is a wording that was taken from somewhere."""
SEED = 5_000_011
SHOWN = 20


@dataclass(slots=True)
class Checked:
    """How many draws there were, and by kind how many shared a run with a text, with the runs."""

    count: int = 0
    shared: Counter[str] = field(default_factory=Counter[str])
    runs: dict[str, Counter[str]] = field(default_factory=dict[str, "Counter[str]"])
    left: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of draws that are thrown away."""
        return self.shared.total() / self.count if self.count else 0.0

    @property
    def passed(self) -> bool:
        """Whether so few are thrown away that it is chance, and nothing is left in what enters the training."""
        return self.share <= MOST and not self.left

    def told(self) -> Iterator[str]:
        """What was found, as lines."""
        for kind, count in self.shared.most_common():
            yield f"{kind}: {count} draws"
            for run, times in self.runs[kind].most_common(SHOWN):
                yield f"    {times:5} times: {run}"
        yield f"{self.shared.total()} of {self.count} draws share a run: {self.share:.3%}, at most {MOST:.1%} by chance"
        yield from (f"in what enters the training: {run}" for run in self.left)
        yield "nothing is shared by what enters the training" if not self.left else f"{len(self.left)} runs are shared"


def look(forbidden: Overlap, count: int, seed: int = SEED) -> Checked:
    """Draw without throwing away, and count."""
    found = Checked(count)
    for domain, sample in islice(samples(seed), count):
        runs = forbidden.shared(sample)
        if runs:
            kind = f"{domain}, {sample.task}: {sample.kind}"
            found.shared[kind] += 1
            found.runs.setdefault(kind, Counter()).update(runs)
    return found


def entered(tokens: Tokens, forbidden: Overlap, count: int, seed: int = SEED) -> tuple[str, ...]:
    """The runs of texts that are in what enters a training: drawn, laid out and read back from its tokens."""
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
