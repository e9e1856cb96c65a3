"""How often a trained model writes exactly what a sample holds, on samples that no training has drawn.

A greedy text is the same as the sample's exactly where each of the model's own tokens is the likeliest one behind the sample's
tokens before it: so one pass tells. Nothing is constrained here; results of tools are given, as they are when they run. The names
of substances are checked as they are when it runs: where the first line is wrong, it is written out and compared as checked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from taiwa.models.builtin.name_check import check_names
from taiwa.models.builtin.tokenizer import END, Tokens
from training.builtin.corpus import WHOLE, laid_out, samples
from training.builtin.model import Transformer
from training.builtin.samples import Sample

__all__ = ["Measured", "measure", "mistakes"]

HELD_OUT_SEED = 7_000_003
TOGETHER = 24
LONGEST_LINE = 120


@dataclass(frozen=True, slots=True)
class Measured:
    """How many samples of a kind there were, and how many were written exactly."""

    count: int
    exact: int


def measure(model: Transformer, tokens: Tokens, domain: str, count: int) -> Mapping[str, Measured]:
    """Measure by kind, with `all` last."""
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for sample, found in _judged(model, tokens, domain, count):
        for kind in (f"{sample.task}: {sample.kind}", f"all {sample.task.partition('.')[0]}", "all"):
            counts[kind] += 1
            right[kind] += found is None
    return {kind: Measured(counts[kind], right[kind]) for kind in sorted(counts)}


def mistakes(model: Transformer, tokens: Tokens, domain: str, count: int) -> Iterator[tuple[Sample, str]]:
    """Give the samples that are not written exactly, with what stood there up to the first wrong token."""
    return ((sample, found) for sample, found in _judged(model, tokens, domain, count) if found is not None)


def _judged(model: Transformer, tokens: Tokens, domain: str, count: int) -> Iterator[tuple[Sample, str | None]]:
    drawn = [sample for _, sample in islice(samples(HELD_OUT_SEED, domain), count)]
    drawn.sort(key=lambda sample: len(sample.prompt) + len(sample.text))
    for start in range(0, len(drawn), TOGETHER):
        group = drawn[start : start + TOGETHER]
        yield from zip(group, _first_faults(model, tokens, group), strict=True)


def _first_faults(model: Transformer, tokens: Tokens, group: list[Sample]) -> list[str | None]:
    laid = [laid_out(sample, tokens) for sample in group]
    longest = max(len(ids) for ids, _ in laid)
    given = torch.zeros(len(group), longest, dtype=torch.long)
    for row, (ids, _) in enumerate(laid):
        given[row, : len(ids)] = torch.tensor(ids)
    with torch.no_grad():
        states: Tensor = model(given)
    found: list[str | None] = []
    for row, (ids, weights) in enumerate(laid):
        with torch.no_grad():
            best = model.logits(states[row, : len(ids) - 1]).argmax(-1).tolist()
        start = next(place for place, weight in enumerate(weights) if weight)
        faults = [
            place for place in range(start, len(ids)) if weights[place] >= WHOLE and best[place - 1] != ids[place]
        ]
        line = group[row].text.partition("\n")[0]
        if group[row].task == "solve" and faults and line.startswith(tokens.decode(ids[start : faults[0]])):
            written = _first_line(model, tokens, ids[:start])
            if check_names(group[row].prompt, written) == line:
                faults = [place for place in faults if not line.startswith(tokens.decode(ids[start:place]))]
        found.append(tokens.decode([*ids[start : faults[0]], best[faults[0] - 1]]) if faults else None)
    return found


def _first_line(model: Transformer, tokens: Tokens, given: list[int]) -> str:
    """The first line of the greedy text, as far as a call of a tool."""
    ids: list[int] = []
    text = ""
    while len(ids) < LONGEST_LINE and "\n" not in text and not text.startswith("<"):
        with torch.no_grad():
            token = int(model.logits(model(torch.tensor([[*given, *ids]]))[0, -1]).argmax())
        if token == tokens.special[END]:
            break
        ids.append(token)
        text = tokens.decode(ids)
    return text.partition("\n")[0]
