"""The cost of a constrained token: our decode loop beside `generate()` of transformers with other constraint libraries.

Random weights and a script (`networks.py`), one thread, one text at a time. All pipelines generate the same tokens; a deviation
is reported. The cost is CPU time per token, including the prompt and excluding the compilation of the schema; a ratio compares
the same text.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benches.measure import Subject, median, timed
from benches.networks import Bonus, Script, ScriptedTrack, network, vocabulary
from benches.peers.constrainers import PEERS
from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.kernel.messages import JsonSchema, Sampling
from taiwa.kernel.serialization import Json
from taiwa.models.inprocess.decode_loop import DecodeJob, DecodeResult, decode, decode_batch
from taiwa.models.inprocess.generator import PrefixCache
from taiwa.models.inprocess.transformers_model import Network

PROMPT = 64
BASE = "transformers generate(), no constraint"
OURS = "taiwa, own loop, constrained"
FREE = "taiwa, own loop, no constraint"
ASKED = "transformers generate() + taiwa's GuideLogitsProcessor"
BOUNDS = {"69 M": (0.60, 8), "475 M (Qwen2.5-0.5B)": (0.75, 4)}
WORKED = (400, 1600)
"""Tokens of instructions and worked examples before an answer; the prompts of MultiTool-CoT have more."""
WORKED_TEXT = "A question, worked examples and what tools there are. "
TEXT: Json = {"type": "string", "maxLength": 60}


def shape(required: dict[str, Json]) -> dict[str, Json]:
    return {"type": "object", "properties": required, "required": list(required), "additionalProperties": False}


CASES: tuple[tuple[dict[str, Json], Json], ...] = (
    (
        shape({"city": TEXT, "unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}}),
        {"city": "Kanazawa", "unit": "celsius", "days": 3},
    ),
    (
        shape({"function": {"const": "search_flights"}, "origin": TEXT, "destination": TEXT, "date": TEXT, "passengers": {"type": "integer"}}),
        {"function": "search_flights", "origin": "KMQ", "destination": "HND", "date": "2026-11-03", "passengers": 2},
    ),
    (
        shape({"customer_name": TEXT, "drinks": {"type": "array", "items": shape({"name": TEXT, "size": {"enum": ["small", "medium", "large"]}, "quantity": {"type": "integer"}})}}),
        {"customer_name": "Aoi", "drinks": [{"name": "hojicha", "size": "large", "quantity": 2}, {"name": "espresso", "size": "small", "quantity": 1}]},
    ),
    (
        shape({"clarity": {"type": "integer"}, "specificity": {"type": "integer"}, "feasibility": {"type": "integer"}, "reasoning": TEXT}),
        {"clarity": 4, "specificity": 2, "feasibility": 5, "reasoning": "The place is missing."},
    ),
    (
        shape({"title": TEXT, "start_time": TEXT, "end_time": TEXT, "attendees": {"type": "array", "items": TEXT}, "is_online": {"type": "boolean"}}),
        {"title": "週次の打ち合わせ", "start_time": "10:00", "end_time": "10:45", "attendees": ["田中", "王"], "is_online": True},
    ),
    (
        shape({"calculator_expression": TEXT, "expected_unit": {"enum": ["grams", "moles", "litres"]}, "number_of_decimal_places": {"type": "integer"}}),
        {"calculator_expression": "18.015*2.5", "expected_unit": "grams", "number_of_decimal_places": 2},
    ),
    (
        shape({"query": TEXT, "filters": shape({"language": {"enum": ["en", "ja", "zh"]}, "published_after": TEXT, "include_archived": {"type": "boolean"}}), "maximum_results": {"type": "integer"}}),
        {"query": "rice cultivation", "filters": {"language": "ja", "published_after": "2020-01-01", "include_archived": False}, "maximum_results": 10},
    ),
    (
        shape({"sentiment": {"enum": ["positive", "neutral", "negative"]}, "confidence": {"type": "number"}, "evidence": {"type": "array", "items": TEXT}}),
        {"sentiment": "negative", "confidence": 0.92, "evidence": ["arrived late", "cold tea"]},
    ),
)  # fmt: skip
"""Function calls and typed answers, each a schema and an instance of it."""

Pipeline = Callable[[Script, dict[str, Json]], tuple[float, list[int], DecodeResult | None]]


def main() -> None:
    import torch

    torch.set_num_threads(1)
    made = vocabulary()
    subject = Subject(
        "decoding",
        f"milliseconds of CPU per token, {len(made):,} tokens, prompt of {PROMPT}; against generate() without a constraint",
        peers=("transformers", "torch", "xgrammar", "outlines-core", "llguidance", "lm-format-enforcer"),
    )
    for name, (bound, count) in BOUNDS.items():
        source = network(name, made)
        compared(subject, name, source, bound, CASES[:count])
        if name == "69 M":
            outside(subject, source)
            interrupted(subject, source)
            together(subject, source)
        del source
    subject.write()


def compared(subject: Subject, name: str, source: Network, bound: float, cases: Any) -> None:
    """Run every pipeline on every text, in turn."""
    found: dict[str, list[tuple[float, float, bool]]] = {}
    results: list[DecodeResult] = []
    every = pipelines(source)
    for number, (schema, instance) in enumerate(cases):
        script = scripted(source.vocabulary, instance, number)
        if number == 0:
            for run in every.values():  # the first run of each fills its caches
                run(script, schema)
        base = 0.0
        for key, run in every.items():
            seconds, tokens, ending = run(script, schema)
            cost = seconds / len(script.wanted)
            base = cost if key == BASE else base
            found.setdefault(key, []).append((cost, cost / base, tokens == script.wanted))
            if ending is not None and key == OURS:
                results.append(ending)
    own = median([ratio for _, ratio, _ in found[OURS]])
    for key, runs in found.items():
        ratio = median([each for _, each, _ in runs])
        same = sum(right for *_, right in runs)
        note = f"{ratio:.2f} of generate() without; the script in {same} of {len(runs)}"
        subject.median(
            f"{name}: {key}",
            [cost * 1e3 for cost, *_ in runs],
            "ms",
            note,
            ours=0.0 if key == OURS else median([c * 1e3 for c, *_ in found[OURS]]),
        )
    written = sum(len(ending.tokens) for ending in results)
    forwards = sum(ending.passes for ending in results)
    subject.row(
        f"{name}: forward passes per token",
        forwards / written,
        "",
        f"{sum(e.sparse_passes for e in results) / forwards:.0%} with a part of the output head",
    )
    subject.target(f"{name}: constrained, against generate() without a constraint", own, bound, "x")
    subject.target(f"{name}: texts that deviate from the script", sum(not right for *_, right in found[OURS]), 0, "")


def scripted(made: Vocabulary, instance: Json, number: int) -> Script:
    """Return a prompt of random tokens, and the text as compact JSON."""
    prompt = np.random.default_rng(number).integers(1000, len(made), PROMPT).tolist()
    text = json.dumps(instance, ensure_ascii=False, separators=(",", ":"))
    return Script(prompt, made.encode(text), made.end[0])


def pipelines(source: Network) -> dict[str, Pipeline]:
    """Return every pipeline by name; the first is the baseline."""
    found: dict[str, Pipeline] = {
        BASE: lambda script, _: generated(source, script, ()),
        FREE: lambda script, _: looped(source, script, None),
        OURS: lambda script, schema: looped(source, script, schema),
        ASKED: lambda script, schema: generated(source, script, (masked(source, schema),)),
    }
    for name, peer in PEERS.items():
        of = peer(source.vocabulary)
        found[f"transformers generate() + {name}"] = lambda script, schema, of=of: generated(
            source, script, (of(schema),)
        )
    return found


def masked(source: Network, schema: dict[str, Json]) -> Any:
    from taiwa.models.inprocess.transformers_model import GuideLogitsProcessor

    return GuideLogitsProcessor(constraints.compile(JsonSchema(schema), source.vocabulary, whitespace="compact"))


def generated(source: Network, script: Script, more: tuple[Any, ...]) -> tuple[float, list[int], None]:
    """Generate with `generate()` of transformers."""
    import torch

    ids = torch.tensor([script.prompt])
    start = time.process_time()
    found = source.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=len(script.wanted) + 1, do_sample=False,
        logits_processor=[Bonus(script), *more],
    )  # fmt: skip
    seconds = time.process_time() - start
    tokens = found[0, len(script.prompt) :].tolist()
    return seconds, [token for token in tokens if token not in source.vocabulary.end], None


def looped(source: Network, script: Script, schema: dict[str, Json] | None) -> tuple[float, list[int], DecodeResult]:
    """Generate with our decode loop."""
    state = None
    if schema is not None:
        state = constraints.compile(JsonSchema(schema), source.vocabulary, whitespace="compact").start()
    job = DecodeJob(script.prompt, source.vocabulary, len(script.wanted) + 1, state)
    start = time.process_time()
    *_, ending = decode(ScriptedTrack(source.start(), script), job)
    seconds = time.process_time() - start
    assert isinstance(ending, DecodeResult)
    return seconds, ending.tokens, ending


def outside(subject: Subject, source: Network) -> None:
    """Measure our decode loop outside the model: mask, logits processing, sampling, text."""
    spent: list[float] = []
    for number, (schema, instance) in enumerate(CASES):
        script = scripted(source.vocabulary, instance, number)
        for again in range(3):
            inner = Clocked(source, script)
            state = constraints.compile(JsonSchema(schema), source.vocabulary, whitespace="compact").start()
            job = DecodeJob(script.prompt, source.vocabulary, 400, state)
            start = time.process_time()
            *_, ending = decode(inner, job)
            whole = time.process_time() - start
            assert isinstance(ending, DecodeResult)
            if again:
                spent.append((whole - inner.seconds) / max(ending.passes, 1) * 1e6)
    subject.median("outside the model, per forward pass", spent, "µs", "mask, sampling, forced tokens, text")


class Clocked(ScriptedTrack):
    """A wrapper that counts the seconds inside the model."""

    def __init__(self, source: Network, script: Script) -> None:
        super().__init__(source.start(), script)
        self.seconds = 0.0

    def read(self, tokens: Any, rows: Any = None) -> Any:
        start = time.process_time()
        found = super().read(tokens, rows)
        self.seconds += time.process_time() - start
        return found


def interrupted(subject: Subject, source: Network) -> None:
    """Compare continuing after a tool result with reading everything again."""
    for size in WORKED:
        own, other = _behind(source, source.vocabulary.encode(WORKED_TEXT * size)[:size])
        when = f"after a tool result, {size:,} tokens before the answer"
        subject.median(f"{when}: continued", own, "ms")
        subject.median(f"{when}: everything read again", other, "ms", ours=median(own))
    subject.target(f"{when}, against reading everything again", median(own) / median(other), 0.2, "x")


def _behind(source: Network, prompt: tuple[int, ...]) -> tuple[list[float], list[float]]:
    made = source.vocabulary
    said = "Water has a molar mass of 18.015 g/mol, so 2.5 mol of it weigh <<calculator: 18.015*2.5>>"
    whole = f"{said} = 45.0375 g, and "
    on: list[float] = []
    again: list[float] = []
    for _ in range(5):
        shelf = PrefixCache(source, made.encode)
        opened = shelf.take(prompt, "")
        opened.sequence.read((*opened.unread, *made.encode(said)))
        shelf.put_back(opened.sequence, opened.prompt)

        def go_on(shelf: PrefixCache = shelf) -> None:
            going = shelf.take(prompt, whole)
            going.sequence.read(going.unread)

        on.append(timed(go_on) * 1e3)
        again.append(timed(lambda: source.start().read((*prompt, *made.encode(whole)))) * 1e3)
    return on, again


def together(subject: Subject, source: Network) -> None:
    """Compare eight answers in one batch with eight in sequence."""
    schema, _ = CASES[2]
    made = constraints.compile(JsonSchema(schema), source.vocabulary, whitespace="compact")
    prompt = source.vocabulary.encode("Two teas, please. ") * 8
    jobs = [DecodeJob(prompt[-1:], source.vocabulary, 60, None, Sampling(1.0, seed=seed)) for seed in range(8)]
    track = source.start()
    track.read(prompt[:-1])
    for name, state in (("no constraint", None), ("constrained", made)):
        each = [DecodeJob(j.unread, j.vocabulary, j.room, state and state.start(), j.sampling) for j in jobs]

        def side(each: list[DecodeJob] = each) -> None:
            bundle = track.batch(len(each))
            assert bundle is not None
            list(decode_batch(bundle, [again(job) for job in each]))

        def after(each: list[DecodeJob] = each) -> None:
            for job in each:
                list(decode(track.fork(), again(job)))

        own = subject.row(f"eight answers in one batch, {name}", timed(side) * 1e3, "ms", "60 tokens at most, drawn")
        subject.row(f"eight answers in sequence, {name}", timed(after) * 1e3, "ms", ours=own)


def again(job: DecodeJob) -> DecodeJob:
    """Return the same constraint with its own state."""
    return DecodeJob(job.unread, job.vocabulary, job.room, job.state and job.state.fork(), job.sampling)
