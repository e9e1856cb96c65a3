"""The weights of the evidence on real questions, with the passages that answer them and without."""

import math
from pathlib import Path

import pytest

import taiwa
from taiwa.flows.ask.decide_search_or_clarify import answerable
from taiwa.flows.ask.types import Thresholds
from taiwa.kernel.messages import Evidence
from taiwa.retrieval import Library
from taiwa.retrieval.index import LOOKED_AT, judge
from taiwa.sessions.ask_resources import NoModel
from tests.retrieval.measured import filled, rows

MOST = 150


def chances(data: Path, folder: Path, name: str) -> tuple[list[float], list[float]]:
    """The chance of an answer for each question: with the passages that hold it, and with all others alone."""
    present: list[float] = []
    absent: list[float] = []
    with Library.open(folder / "library.db") as library:
        index = filled(library, name, rows(data / f"{name}_passages.jsonl"))
        for one in rows(data / f"{name}_questions.jsonl")[-MOST:]:
            weights = index.analyzer.weigh(one["q"])
            counts = index.backend.counts(tuple(weights), frozenset())
            found = index.backend.search(weights, LOOKED_AT + 5, frozenset())
            others = [each for each in found if each.source not in one["rel"]]
            for values, some in ((present, found), (absent, others)):
                measured: Evidence = judge(index.analyzer, weights, some[:LOOKED_AT], counts)
                values.append(answerable(measured, len(some)))
    return present, absent


@pytest.mark.parametrize(("name", "least"), [("jsquad", 0.88), ("jaquad", 0.8)])
def test_answerable_questions_are_distinguished_from_others(
    shared_data: Path, tmp_path: Path, name: str, least: float
) -> None:
    present, absent = chances(shared_data / "rag", tmp_path, name)

    pairs = [(one > other) + 0.5 * (one == other) for one in present for other in absent]
    limits = Thresholds()
    assert math.fsum(pairs) / len(pairs) >= least
    assert sum(each >= limits.strong_evidence for each in absent) / MOST <= 0.1
    assert sum(each < limits.weak_evidence for each in present) / MOST <= 0.08
    assert sum(each < limits.weak_evidence for each in absent) / MOST >= 0.4


GROUPS, GROUP = 12, 3


def is_answered(folder: Path, question: str) -> bool:
    """Whether passages of a folder are quoted without a warning."""
    result = taiwa.open("ask", model=NoModel(), store=None, params={"in": [str(folder)]}).say(question).ask
    assert result is not None
    return result.is_answered and not result.is_uncertain


@pytest.mark.parametrize(("name", "others"), [("jsquad", "jaquad"), ("jaquad", "jsquad")])
def test_a_small_folder_answers_its_own_questions_and_warns_about_most_others(
    shared_data: Path, tmp_path: Path, name: str, others: str
) -> None:
    data = shared_data / "rag"
    passages = {each["id"]: each["text"] for each in rows(data / f"{name}_passages.jsonl")}
    asked, foreign = (rows(data / f"{each}_questions.jsonl")[-GROUPS * GROUP :] for each in (name, others))
    own = other = 0
    for at in range(0, GROUPS * GROUP, GROUP):
        folder = tmp_path / str(at)
        folder.mkdir()
        for number, key in enumerate({key for each in asked[at : at + GROUP] for key in each["rel"]}):
            (folder / f"{number}.txt").write_text(passages[key], encoding="utf-8")
        own += sum(is_answered(folder, each["q"]) for each in asked[at : at + GROUP])
        other += sum(is_answered(folder, each["q"]) for each in foreign[at : at + GROUP])

    assert own >= 0.9 * GROUPS * GROUP
    assert other <= 0.1 * GROUPS * GROUP
