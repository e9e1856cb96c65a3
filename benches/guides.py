"""Guides beside three mask engines, with 131,072 tokens: the first mask of a process, further masks, and operations on them.

The engines require torch or pin other versions, so they are installed in a separate environment (`.venv/mask-peers`, about 2 GB).
Without TAIWA_BENCH_PEERS=1 they are left out, and only our rows are measured.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benches.measure import ROOT, Subject, median, timed
from evals.maskbench import coverage_report
from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.constraints.allowed_tokens import MatcherGuide
from taiwa.constraints.compile import clear_cache
from taiwa.constraints.guide import empty_mask
from taiwa.kernel.messages import JsonSchema, Sampling
from taiwa.models.inprocess.decode_loop import Sampler

PEERS = ("xgrammar==0.2.8", "outlines-core==0.2.14", "lm-format-enforcer==0.11.3", "torch==2.13.0", "numpy")
WORD: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
CASES: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("weather", {"city": WORD, "unit": {"enum": ["celsius", "fahrenheit"]}}, {"city": "Kyoto", "unit": "celsius"}),
    (
        "order",
        {
            "items": {"type": "array", "items": {"enum": ["tea", "coffee", "cake"]}, "maxItems": 9},
            "table": COUNT,
            "note": WORD,
        },
        {"items": ["tea", "cake", "cake"], "table": 12, "note": "no sugar, please; the cake a little later"},
    ),
    (
        "person",
        {
            "name": WORD,
            "born": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
            "tags": {"type": "array", "items": WORD},
        },
        {"name": "紫式部", "born": "0973-01-01", "tags": ["author", "court"]},
    ),
    (
        "answer",
        {"thought": WORD, "answer": {"type": "number"}, "sure": {"type": "boolean"}},
        {"thought": "Two litres are 2000 ml, so each of the 8 glasses holds 250 ml.", "answer": 250.5, "sure": True},
    ),
    (
        "search",
        {
            "query": WORD,
            "filters": {
                "type": "object",
                "properties": {"from": COUNT, "to": COUNT, "kind": {"enum": ["paper", "book"]}},
                "required": ["from", "to", "kind"],
                "additionalProperties": False,
            },
            "limit": COUNT,
        },
        {"query": "constrained decoding", "filters": {"from": 2019, "to": 2025, "kind": "paper"}, "limit": 20},
    ),
)
ROUNDS = 5


def schemas() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the cases that have whole schemas. The text is compact, because one peer writes no other form."""
    for name, properties, data in CASES:
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        yield name, schema, json.dumps(data, ensure_ascii=False, separators=(", ", ": "))


def tekken() -> Path:
    spec = find_spec("mistral_common")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("data") / "tekken_240911.json"


COLD = """
import resource, sys
import numpy as np
from evals.maskbench import coverage_report
from taiwa import constraints
from taiwa.kernel.messages import JsonSchema
vocabulary = constraints.Vocabulary.from_tekken(sys.argv[1])
state = constraints.compile(JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}), vocabulary).start()
state.mask(np.zeros((len(vocabulary) + 31) // 32, dtype=np.uint32))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, any(name in sys.modules for name in ("torch", "transformers")))
"""


def cold(subject: Subject) -> float:
    runs = [
        subprocess.run(
            [sys.executable, "-c", COLD, str(tekken())], check=True, capture_output=True, text=True, cwd=ROOT
        )
        for _ in range(ROUNDS)
    ]
    read = [run.stdout.split() for run in runs]
    assert all(held == "False" for _, _, held in read), "torch was imported"
    seconds = [float(used) for used, _, _ in read]
    subject.median("first mask of a process, vocabulary read from its file: taiwa", seconds, "s")
    subject.row("memory of that process", max(float(memory) for _, memory, _ in read), "MB")
    subject.target("first mask from the start of the process, CPU, without torch", median(seconds), 2.0, "s")
    return median(seconds)


def own(subject: Subject, vocabulary: Vocabulary) -> dict[str, float]:
    """Measure our rows, and return the baseline for the peers."""
    first: list[float] = []
    masks: list[float] = []
    steps: dict[str, list[float]] = {}
    tokens = forced = 0
    for _ in range(ROUNDS):
        for name, schema, text in schemas():
            source = JsonSchema(schema, name)
            clear_cache()
            first.append(timed(lambda source=source: _first(source, vocabulary)))
            walked, sure = _walk(constraints.compile(source, vocabulary), vocabulary.encode(text), masks, steps)
            tokens, forced = tokens + walked, forced + sure
    subject.median("a schema's first mask: taiwa", [each * 1e3 for each in first], "ms")
    subject.median("a mask: taiwa", [each * 1e6 for each in masks], "µs")
    subject.row("a mask, 99th percentile: taiwa", float(np.quantile(masks, 0.99)) * 1e6, "µs")
    for what, times in steps.items():
        subject.median(f"mask, apply and sample, {what}", [each * 1e6 for each in times], "µs")
    subject.target("mask, apply and sample, greedy, median", median(steps["greedy"]) * 1e6, 60, "µs")
    subject.row("forced tokens per 100", forced / tokens * 100, "tokens", "at most one space of white space")
    again(subject, vocabulary)
    return {"first": median(first) * 1e3, "masks": median(masks) * 1e6, "mean": float(np.mean(masks)) * 1e6}


def _first(source: JsonSchema, vocabulary: Vocabulary) -> None:
    constraints.compile(source, vocabulary).start().mask(empty_mask(len(vocabulary)))


def _walk(
    compiled: MatcherGuide, tokens: tuple[int, ...], masks: list[float], steps: dict[str, list[float]]
) -> tuple[int, int]:
    """Generate one text, with logits that favour its next token."""
    random = np.random.default_rng(1)
    logits = random.normal(size=len(compiled.vocabulary)).astype(np.float32) * 3
    drawers = {"greedy": Sampler(), "temperature 0.7, top_p 0.9": Sampler(Sampling(temperature=0.7, top_p=0.9, seed=1))}
    mask = empty_mask(len(compiled.vocabulary))
    state, sure = compiled.start(), 0
    for token in tokens:
        sure += token in state.forced()[:1]
        at = time.process_time()
        state.mask(mask)
        masked = time.process_time()
        masks.append(masked - at)
        for led in (True, False):
            if led:
                logits[token] += 40
            for what, sampler in drawers.items():
                begun = time.process_time()
                picked = sampler.pick(logits, mask)
                name = what if led else f"{what}, a model that prefers other tokens"
                steps.setdefault(name, []).append(masked - at + time.process_time() - begun)
                assert picked == token or not led
            if led:
                logits[token] -= 40
        state = state.advance(token)
    return len(tokens), sure


def again(subject: Subject, vocabulary: Vocabulary) -> None:
    """Compile the same schema again: the same object, and a copy parsed from JSON."""
    source = JsonSchema(next(schemas())[1])
    constraints.compile(source, vocabulary)
    once = [
        timed(lambda: [constraints.compile(source, vocabulary).start() for _ in range(1_000)]) * 1e3 for _ in range(9)
    ]
    subject.median("the same schema again, with its first state", once, "µs")
    copies = [JsonSchema(json.loads(json.dumps(source.schema))) for _ in range(100)]
    read = [timed(lambda: [constraints.compile(copy, vocabulary) for copy in copies]) * 1e4 for _ in range(9)]
    subject.median("the same schema again, parsed again from JSON", read, "µs")
    subject.target("the same schema again", median(once), 20, "µs")
    state = constraints.compile(source, vocabulary).start()
    subject.row("a fork of a state", timed(lambda: [state.fork() for _ in range(10_000)]) * 100, "µs")


def environment() -> Path | None:
    """Return the environment of the peers, creating it once; None if they are not requested or cannot be installed."""
    if not os.environ.get("TAIWA_BENCH_PEERS"):
        print("  peers are left out: TAIWA_BENCH_PEERS=1 puts them into an environment of their own")
        return None
    home = Path(os.environ.get("TAIWA_BENCH_PEERS_HOME", ROOT / ".venv" / "mask-peers"))
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS], check=False)
        if done.returncode:
            print("  the peers could not be installed: left out")
            return None
    return python


def peers(subject: Subject, ours: dict[str, float], vocabulary: Vocabulary, whole: float) -> None:
    python = environment()
    if python is None:
        return
    cases = [{"name": name, "schema": schema, "tokens": vocabulary.encode(text)} for name, schema, text in schemas()]
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "cases.json"
        given.write_text(json.dumps(cases), encoding="utf-8")
        for name in ("xgrammar", "outlines-core", "lm-format-enforcer"):
            script = [str(python), str(ROOT / "benches" / "peers" / "masks.py"), name, str(given), str(tekken())]
            done = subprocess.run(script, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"  {name} failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            found = json.loads(done.stdout)
            shown = f"{name} {found['version']}"
            masks = [each * 1e6 for times in found["masks"].values() for each in times]
            subject.row(f"first mask of a process: {shown}", found["cold"], "s", ours=whole)
            subject.median(
                f"a schema's first mask: {shown}",
                [each * 1e3 for each in found["first"].values()],
                "ms",
                ours=ours["first"],
            )
            subject.median(f"a mask: {shown}", masks, "µs", ours=ours["masks"])
            subject.row(f"a mask on average: {shown}", sum(masks) / len(masks), "µs", ours=ours["mean"])


def covered(subject: Subject) -> None:
    """Measure the coverage of recorded schemas with valid and invalid instances: `maskbench.jsonl` in TAIWA_BENCH_DATA."""
    path = Path(os.environ.get("TAIWA_BENCH_DATA", "")) / "maskbench.jsonl"
    if not path.is_file():
        print("  recorded schemas are left out: TAIWA_BENCH_DATA names no folder with maskbench.jsonl")
        return
    report: dict[str, Any] = coverage_report(path)
    subject.row("recorded schemas (JSONSchemaBench)", report["schemas"], "", f"{report['instances']} instances")
    for mode in ("strict", "lenient"):
        found = report[mode]
        refused = ", ".join(f"{keyword} {count}" for keyword, count in found["refused for"].items())
        subject.row(f"{mode}: compiled", found["compiled"], "", f"refused for {refused}" if refused else "")
        subject.row(f"{mode}: every instance judged correctly", found["exact"], "")
        subject.row(f"{mode}: an invalid instance accepted", len(found["let through an invalid instance"]), "")
        subject.row(f"{mode}: a valid instance rejected", len(found["kept out a valid instance"]), "")
    wrong = sum(
        len(report["strict"][what]) for what in ("let through an invalid instance", "kept out a valid instance")
    )
    subject.target("strict: schemas with a misjudged instance", wrong, 0, "")


def main() -> None:
    subject = Subject("guides", "Guides: masks of 131,072 tokens (tekken), CPU")
    whole = cold(subject)
    vocabulary = Vocabulary.from_tekken(tekken())
    vocabulary.encode("warm")
    ours = own(subject, vocabulary)
    subject.row("a mask on average: taiwa", ours["mean"], "µs")
    peers(subject, ours, vocabulary, whole)
    covered(subject)
    subject.write()
