"""Exact-match rates of a trained model on held-out samples.

Greedy decoding reproduces a sample exactly if each of the model's own tokens is the most likely one after the preceding tokens of
the sample, so one forward pass decides. If it does not, or if a check would change a line, the solution is generated as in
production, with guides, checks and tools; replies to orders always are.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from taiwa.flows.solve.tool_call_formats import TaggedFormat, sanitize_result
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Request, ToolResult, collect_response, system, user
from taiwa.models.builtin.line_check import CALL_END, check_line, is_doubtful, lines_of
from taiwa.models.builtin.model import BuiltinModel, Loaded
from taiwa.models.builtin.tokenizer import Tokens
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.stoichiometry import stoichiometry
from taiwa.tools.units import unit_conversion
from training.builtin.corpus import WHOLE, laid_out, samples
from training.builtin.desk.serving import Desk
from training.builtin.model import Transformer
from training.builtin.samples import Sample

__all__ = ["Measured", "Solver", "is_right", "measure", "mistakes"]

HELD_OUT_SEED = 7_000_003
TOGETHER = 24
CALLS = 10
"""The highest number of calls in one solution."""
INSTRUCTIONS = system(
    TaggedFormat().instructions([calculator.spec, stoichiometry.spec, molar_mass.spec, unit_conversion.spec])
)
CALL = re.compile(r"<<(\w+): ([^\n]*)>>\Z")
MASS = re.compile(r"<<molar_mass: ([^\n]*)>> ([^\n]*)")


@dataclass(frozen=True, slots=True)
class Measured:
    """The number of samples of a kind, of exact matches, and of those that `is_right`."""

    count: int
    exact: int
    right: int


def measure(loaded: Loaded, model: Transformer, domain: str, count: int) -> Mapping[str, Measured]:
    """Measure by kind, with the total last under `all`."""
    counts: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for sample, written in _judged(loaded, model, domain, count):
        for kind in (f"{sample.task}: {sample.kind}", f"all {sample.task.partition('.')[0]}", "all"):
            counts[kind] += 1
            exact[kind] += written is None
            right[kind] += is_right(sample, sample.text if written is None else written)
    return {kind: Measured(counts[kind], exact[kind], right[kind]) for kind in sorted(counts)}


def is_right(sample: Sample, written: str) -> bool:
    """Return true if a solution ends as the sample does, or another text is that of the sample."""
    if sample.task == "solve":
        return _last_line(written) == _last_line(sample.text)
    return written == sample.text


def mistakes(loaded: Loaded, model: Transformer, domain: str, count: int) -> Iterator[tuple[Sample, str]]:
    """Yield the samples that are not matched exactly, with the text generated; for an order, up to the first wrong token."""
    return ((sample, written) for sample, written in _judged(loaded, model, domain, count) if written is not None)


def _judged(loaded: Loaded, model: Transformer, domain: str, count: int) -> Iterator[tuple[Sample, str | None]]:
    drawn = [sample for _, sample in islice(samples(HELD_OUT_SEED, domain), count)]
    drawn.sort(key=lambda sample: len(sample.prompt) + len(sample.text))
    solver = Solver(loaded)
    desk = Desk(solver)
    for start in range(0, len(drawn), TOGETHER):
        group = drawn[start : start + TOGETHER]
        for sample, fault in zip(group, _first_faults(model, loaded.tokens, group), strict=True):
            if sample.task == "desk":
                written = desk.written(sample)
                yield sample, fault if written is None else None if written == sample.text else written
            elif sample.task != "solve":
                yield sample, fault
            elif fault is None and _is_kept(sample):
                yield sample, None
            else:
                written = solver.solve(sample)
                yield sample, None if written == sample.text else written


def _is_kept(sample: Sample) -> bool:
    """Return true if the checks leave the answer of a sample unchanged."""
    question, text = sample.prompt, sample.text
    return all(
        check_line(question, text[:at], line) == line and not is_doubtful(question, text[:at], line)
        for at, line in lines_of(text)
    )


class Solver(BuiltinModel):
    """The built-in model with the given weights, solving with its tools."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self._loaded = loaded

    def load(self) -> Loaded:
        """Return the weights."""
        return self._loaded

    def solve(self, sample: Sample) -> str:
        """Generate a solution as the flow does, with the sample's atomic weights, up to a call that cannot be parsed."""
        text = _given(sample)
        weights = "integer" if _uses(sample.text, "integer") else "iupac"
        for _ in range(CALLS):
            request = Request((INSTRUCTIONS, user(sample.prompt)), stop=(CALL_END,), prefix=text, task="solve")
            answer = collect_response(self.stream(request))
            text += answer.text
            if answer.stop != CALL_END or (call := CALL.search(text + CALL_END)) is None:
                break
            text += f"{CALL_END} {_result(call[1], call[2], weights)}"
        return text


def _given(sample: Sample) -> str:
    """Return the part of the answer up to the last segment without loss weight."""
    last = max((at for at, span in enumerate(sample.answer) if not span.weight), default=-1)
    return "".join(span.text for span in sample.answer[: last + 1])


def _uses(text: str, weights: str) -> bool:
    found = MASS.findall(text)
    return bool(found) and all(result == _result("molar_mass", formula, weights) for formula, result in found)


def _result(tool: str, written: str, weights: str) -> str:
    tools: Mapping[str, Callable[[str], ToolResult]] = {
        "calculator": calculator, "stoichiometry": stoichiometry, "unit_conversion": unit_conversion,
        "molar_mass": lambda formula: molar_mass(formula, "integer" if weights == "integer" else "iupac"),
    }  # fmt: skip
    try:
        return sanitize_result(tools[tool](written).text)
    except ToolError as error:
        return f"error: {error.message}"


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]


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
        found.append(tokens.decode([*ids[start : faults[0]], best[faults[0] - 1]]) if faults else None)
    return found
