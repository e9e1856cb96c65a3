"""Quality on real passages and questions: nDCG@10, as the literature counts it."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from taiwa.kernel.messages import Message, assistant, user
from taiwa.retrieval import Index, Library
from taiwa.retrieval.index import LOOKED_AT, judge
from taiwa.retrieval.types import Batch, Chunk, Document, FileFacts


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def filled(library: Library, name: str, passages: Iterable[dict[str, Any]]) -> Index:
    index = library.create_empty(name)
    given = {each["id"]: each for each in passages}.values()
    documents = (
        Document(each["id"], each["title"], FileFacts("", 0, 0, ""), (Chunk(each["text"], 0),)) for each in given
    )
    index.backend.commit(Batch(tuple(documents)))
    return index


def ndcg(found: Sequence[str], relevant: set[str], k: int = 10) -> float:
    gain = math.fsum(1 / math.log2(place + 2) for place, one in enumerate(found[:k]) if one in relevant)
    return gain / math.fsum(1 / math.log2(place + 2) for place in range(min(k, len(relevant))))


def questions(data: Path, folder: Path, name: str) -> float:
    """The mean nDCG@10 of a set of questions."""
    asked = rows(data / f"{name}_questions.jsonl")
    with Library.open(folder / "library.db") as library:
        index = filled(library, name, rows(data / f"{name}_passages.jsonl"))
        values = [ndcg([each.source for each in index.find(one["q"], 10)], set(one["rel"])) for one in asked]
    return math.fsum(values) / len(values)


def conversations(data: Path, folder: Path) -> tuple[float, float]:
    """The mean nDCG@10 of last turns: alone, and with what was said before."""
    relevant: dict[str, set[str]] = defaultdict(set)
    for row in rows(data / "mtrag_qrels.jsonl"):
        relevant[row["q"]].add(row["d"])
    alone, together = [], []
    with Library.open(folder / "library.db") as library:
        index = filled(library, "mtrag", rows(data / "mtrag_passages.jsonl"))
        for task in rows(data / "mtrag_tasks.jsonl"):
            if task["task_id"] in relevant:
                *before, (_, last) = task["input"]
                history: list[Message] = [(user if who == "user" else assistant)(text) for who, text in before]
                for values, said in ((alone, ()), (together, history)):
                    found = [each.source for each in index.find(last, 10, history=said)]
                    values.append(ndcg(found, relevant[task["task_id"]]))
    return math.fsum(alone) / len(alone), math.fsum(together) / len(together)


def told_apart(data: Path, folder: Path, name: str, most: int = 400) -> float:
    """How often coverage is higher with the answering passage than without it, over all pairs of questions (AUC)."""
    present, absent = [], []
    with Library.open(folder / "library.db") as library:
        index = filled(library, name, rows(data / f"{name}_passages.jsonl"))
        for one in rows(data / f"{name}_questions.jsonl")[:most]:
            weights = index.analyzer.weigh(one["q"])
            counts = index.backend.counts(tuple(weights), frozenset())
            found = index.backend.search(weights, LOOKED_AT + 3, frozenset())
            others = [each for each in found if each.source not in one["rel"]]
            for values, some in ((present, found), (absent, others)):
                values.append(judge(index.analyzer, weights, some[:LOOKED_AT], counts).coverage)
    pairs = [(with_it > without) + 0.5 * (with_it == without) for with_it in present for without in absent]
    return math.fsum(pairs) / len(pairs)
