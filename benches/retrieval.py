"""Retrieval beside five other libraries: on real passages, and on 100,000 passages generated from them, each in its own process.

The passages are in the folder named by TAIWA_BENCH_DATA (`jsquad_*`, `jaquad_*` and `mtrag_*.jsonl`); without it nothing is
measured, and the results stay unchanged.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benches.measure import ROOT, Subject, median

DRAWN = 100_000
ASKED = 320
FEW = 40
"""The number of questions for a retriever that takes more than a tenth of a second each."""
SLOW = frozenset({"fts5", "rank_bm25", "haystack"})
ROUNDS = 3
SETS = ("jsquad", "jaquad")
LEAST = {"jsquad": 0.93, "jaquad": 0.88}
SHOWN = {
    "taiwa": "taiwa: SQLite and tantivy, passages with locations, access checked",
    "tantivy": "tantivy alone, our terms",
    "bm25s": "bm25s, our terms",
    "fts5": "SQLite FTS5, our terms",
    "rank_bm25": "rank_bm25, our terms",
    "haystack": "Haystack's in-memory store, as documented",
}


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def passages_of(data: Path, *sets: str) -> list[tuple[str, str, str]]:
    found = {
        row["id"]: (row["id"], row["title"], row["text"])
        for name in sets
        for row in rows(data / f"{name}_passages.jsonl")
    }
    return list(found.values())


def drawn(passages: list[tuple[str, str, str]], chance: random.Random) -> list[tuple[str, str, str]]:
    """Return new passages made of halves of two passages of the same set: real words, and a realistic mix of languages."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for passage in passages:
        groups.setdefault(passage[0][:3] if passage[0][:3] in {"js-", "jq-"} else "mtrag", []).append(passage)
    made = []
    for number in range(DRAWN):
        first = chance.choice(passages)
        second = chance.choice(groups[first[0][:3] if first[0][:3] in groups else "mtrag"])
        cut, other = chance.randrange(len(first[2]) + 1), chance.randrange(len(second[2]) + 1)
        made.append((f"d{number}", first[1], first[2][cut:] + "\n" + second[2][:other]))
    return made


def measured(name: str, corpus: dict[str, Any], folder: Path) -> dict[str, Any]:
    path, own = folder / "corpus.json", Path(tempfile.mkdtemp(dir=folder))
    path.write_text(json.dumps(corpus), encoding="utf-8")
    command = [sys.executable, "-m", "benches.peers.retrievers", name, str(path), str(own)]
    # Haystack reports every start to its makers unless telemetry is disabled.
    quiet = {**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "False"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=quiet)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ndcg(found: list[str], relevant: set[str]) -> float:
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(found[:10]) if one in relevant)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(10, len(relevant))))


def speed(
    subject: Subject, words: str, passages: list[tuple[str, str, str]], questions: list[str], folder: Path
) -> None:
    """Build, query, add and delete, with the retrievers in turn in each round, so that load affects all of them."""
    asks = {name: FEW if name in SLOW and len(passages) > 50_000 else ASKED for name in SHOWN}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in SHOWN}
    for number in range(ROUNDS):
        for name in SHOWN:
            if number and asks[name] == FEW:
                continue
            corpus = {
                "passages": passages,
                "questions": questions,
                "asked": asks[name],
                "change": True,
                "quality": False,
            }
            rounds[name].append(measured(name, corpus, folder))
    p50 = {name: [median(each["taken"]) for each in found] for name, found in rounds.items()}
    own = median(p50["taiwa"])
    for name, shown in SHOWN.items():
        ours = 0.0 if name == "taiwa" else own
        subject.median(f"{words}: one query, {shown}", p50[name], "ms", f"median of {asks[name]}", ours=ours)
        late = median([sorted(each["taken"])[int(len(each["taken"]) * 0.99)] for each in rounds[name]])
        subject.row(f"{words}: 99th percentile of queries, {name}", late, "ms")
    for name in SHOWN:
        subject.median(f"{words}: building, {name}", [each["build"] for each in rounds[name]], "s CPU")
        subject.row(f"{words}: memory, {name}", median([each["megabytes"] for each in rounds[name]]), "MB")
        for what, seen in (("add", "found"), ("delete", "gone")):
            taken = [change[what] for each in rounds[name] for change in each["changes"]]
            if taken:
                subject.row(f"{words}: {what} one passage until it is {seen}, {name}", median(taken), "ms")
    subject.target(f"{words}: a query, relative to tantivy alone", own / median(p50["tantivy"]), 2, "x")
    for name in ("bm25s", "fts5", "rank_bm25", "haystack"):
        subject.target(f"{words}: a query, relative to {name}", own / median(p50[name]), 1, "x")


def quality(subject: Subject, data: Path, folder: Path) -> None:
    for name in SETS:
        asked = rows(data / f"{name}_questions.jsonl")
        corpus = {
            "passages": passages_of(data, name), "questions": [one["q"] for one in asked], "asked": 5, "change": False,
            "quality": True,
        }  # fmt: skip
        for retriever in SHOWN:
            found = measured(retriever, corpus, folder)["found"]
            values = [ndcg(each, set(one["rel"])) for each, one in zip(found, asked, strict=True)]
            mean = subject.row(
                f"nDCG@10 of {name}: {retriever}", math.fsum(values) / len(values), "", f"{len(asked)} questions"
            )
            if retriever == "taiwa":
                subject.target(f"nDCG@10 of {name}, distance from 1", 1 - mean, round(1 - LEAST[name], 3), "")


def main() -> None:
    place = os.environ.get("TAIWA_BENCH_DATA")
    if not place:
        print("  TAIWA_BENCH_DATA names no folder of passages: left out")
        return
    data, chance = Path(place), random.Random(6)
    subject = Subject(
        "retrieval",
        "retrieval: one query on a warm index, building, memory, one change, and quality on Japanese questions",
        ("tantivy", "bm25s", "rank-bm25", "haystack-ai"),
    )
    passages = passages_of(data, "jsquad", "jaquad", "mtrag")
    questions = [one["q"] for name in SETS for one in rows(data / f"{name}_questions.jsonl")]
    questions += [task["input"][-1][1] for task in rows(data / "mtrag_tasks.jsonl")]
    chance.shuffle(questions)
    with tempfile.TemporaryDirectory() as folder:
        quality(subject, data, Path(folder))
        speed(subject, f"{len(passages):,} passages", passages, questions, Path(folder))
        speed(subject, f"{DRAWN:,} passages", drawn(passages, chance), questions, Path(folder))
    subject.write()
