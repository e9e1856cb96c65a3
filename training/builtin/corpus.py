"""The training corpus: the mix of samples and their token layout."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from taiwa.models.builtin.tokenizer import END, Tokens
from training.builtin.asking import SHARES as ASKING
from training.builtin.chemistry import SHARES as CHEMISTRY
from training.builtin.desk import SHARES as DESK
from training.builtin.everyday import SHARES as EVERYDAY
from training.builtin.overlap import Overlap
from training.builtin.quantities import SHARES as QUANTITIES
from training.builtin.samples import Sample, Share, choose
from training.builtin.vocabulary import ANSWER

__all__ = ["DOMAINS", "Corpus", "laid_out", "samples"]

DOMAINS: Mapping[str, tuple[float, Mapping[str, Share]]] = {
    "chemistry": (0.24, CHEMISTRY),
    "quantities": (0.22, QUANTITIES),
    "everyday": (0.15, EVERYDAY),
    "desk": (0.28, DESK),
    "asking": (0.11, ASKING),
}
"""The share of each domain."""
SCATTERED = 0.12
"""The share of prompt runs that are not encoded by the longest pieces."""
LONGEST = 480
ATTENDED = 350
"""The text length at which attention costs as much as the rest of the model, measured on a CPU."""
WHOLE, SCORED = 25, 250
"""The loss weights of the model's own tokens, and of the single token of a score, which would otherwise have too little effect."""


def samples(seed: int, domain: str = "") -> Iterator[tuple[str, Sample]]:
    """Yield domains and samples without end; the same seed yields the same sequence."""
    random = Random(seed)
    names = [domain] if domain else list(DOMAINS)
    weights = [DOMAINS[name][0] for name in names]
    while True:
        name = random.choices(names, weights)[0]
        yield name, choose(random, DOMAINS[name][1])


def laid_out(sample: Sample, tokens: Tokens, random: Random | None = None) -> tuple[list[int], list[int]]:
    """Encode a sample; return its token ids and their loss weights, see `WHOLE`."""
    special = tokens.special
    task, _, score = sample.task.partition(".")
    divided = (
        tokens.encode(sample.prompt) if random is None else tokens.encode_randomly(sample.prompt, random, SCATTERED)
    )
    ids = [special[f"<{task}>"], *divided, special[f"<{score}>" if score else ANSWER]]
    weights = [0] * len(ids)
    whole = SCORED if score else WHOLE
    marks = [round(whole * span.weight) for span in sample.answer for _ in span.text.encode()]
    place = 0
    for token in tokens.encode(sample.text):
        ids.append(token)
        weights.append(marks[place])
        place += len(tokens.vocabulary.tokens[token])
    return [*ids, special[END]], [*weights, 0 if score else WHOLE]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Many samples in flat arrays: token ids, loss weights, and offsets (one more than there are samples)."""

    ids: NDArray[np.uint16]
    weights: NDArray[np.uint8]
    starts: NDArray[np.int64]
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def draw(cls, tokens: Tokens, seed: int, count: int, forbidden: Overlap | None = None) -> "Corpus":
        """Draw `count` samples, dropping those that are too long or share an n-gram with `forbidden` texts."""
        random = Random(-seed - 1)
        dropped = 0
        ids: list[int] = []
        weights: list[int] = []
        starts = [0]
        for _, sample in samples(seed):
            if forbidden is not None and forbidden.shared(sample):
                dropped += 1
                continue
            found = laid_out(sample, tokens, random)
            if len(found[0]) <= LONGEST:
                ids += found[0]
                weights += found[1]
                starts.append(len(ids))
            if len(starts) > count:
                break
        return cls(np.array(ids, np.uint16), np.array(weights, np.uint8), np.array(starts, np.int64), dropped)

    @classmethod
    def read(cls, path: Path) -> "Corpus":
        """Read a file written by `write`."""
        with np.load(path) as kept:
            return cls(kept["ids"], kept["weights"], kept["starts"], int(kept["dropped"]))

    def write(self, path: Path) -> None:
        """Write to a file atomically."""
        part = path.with_suffix(".part.npz")
        np.savez(part, ids=self.ids, weights=self.weights, starts=self.starts, dropped=self.dropped)
        part.replace(path)

    def batches(self, size: int, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the samples once in random order, in batches of similar length: ids (B, T) and weights (B, T).

        A batch holds at most `size` tokens, and fewer if its samples are long, so that all batches take about the same time and parallel
        processes do not wait for each other.
        """
        random = np.random.default_rng(seed)
        lengths = np.diff(self.starts)
        order = random.permutation(len(self))
        groups: list[list[int]] = [[]]
        for place in order[np.argsort(lengths[order], kind="stable")]:
            longest = _padded(int(lengths[place]))
            if groups[-1] and (len(groups[-1]) + 1) * longest * (1 + longest / ATTENDED) > size:
                groups.append([])
            groups[-1].append(int(place))
        for number in random.permutation(len(groups)):
            yield self._batch(groups[number])

    def _batch(self, group: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        longest = _padded(max(int(self.starts[place + 1] - self.starts[place]) for place in group))
        ids = np.zeros((len(group), longest), np.int64)
        weights = np.zeros((len(group), longest), np.float32)
        for row, place in enumerate(group):
            start, end = self.starts[place], self.starts[place + 1]
            ids[row, : end - start] = self.ids[start:end]
            weights[row, : end - start] = self.weights[start:end] / WHOLE
        return ids, weights


def _padded(length: int) -> int:
    return -(-length // 16) * 16
