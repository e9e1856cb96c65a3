"""Answers with recorded faults, replayed as first attempts: what is mended for free, what a round mends, what never passes."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from taiwa.flows.extract import ExtractError, RepairPolicy, TypedAnswer, extract
from taiwa.kernel.messages import Response, assistant
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from taiwa.structured import OutputType
from tests.structured.recorded import rows, same


@pytest.fixture(scope="module")
def mutations(shared_data: Path) -> list[dict[str, Any]]:
    return rows(shared_data / "malformed_mutations.jsonl")


def extracted(row: dict[str, Any], repair: RepairPolicy, finish: Any = "stop") -> TypedAnswer[Any]:
    truth = json.dumps(row.get("expected"), ensure_ascii=False)
    model = scripted_model(Response(assistant(row["input"]), finish), truth, truth)
    return Runtime(model).run(extract(OutputType.from_json_schema(row["schema"]), "…", repair=repair))


def is_cut(row: dict[str, Any]) -> bool:
    return row["mutation"].startswith("truncated")


def has_lost_a_bracket(row: dict[str, Any]) -> bool:
    return row["mutation"].startswith("missing-") and row["mutation"] != "missing-comma"


def test_a_fault_that_loses_nothing_is_mended_without_a_call(mutations: list[dict[str, Any]]) -> None:
    free = [row for row in mutations if not is_cut(row) and not has_lost_a_bracket(row)]
    calls = Counter(len(extracted(row, RepairPolicy()).attempts) for row in free)

    assert len(free) > 100
    assert calls[1] >= 0.98 * len(free), calls


def test_a_round_mends_the_rest_and_nothing_wrong_is_taken(mutations: list[dict[str, Any]]) -> None:
    found = {row["id"]: same(extracted(row, RepairPolicy()).value, row["expected"]) for row in mutations}

    wrong = [name for name, right in found.items() if not right]
    assert len(wrong) <= 0.005 * len(found), wrong


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_no_answer_that_was_cut_passes_for_a_whole_one(mutations: list[dict[str, Any]], finish: str) -> None:
    cut = [row for row in mutations if is_cut(row)]
    kept = 0
    for row in cut:
        with pytest.raises(ExtractError) as caught:
            extracted(row, RepairPolicy(0), finish)
        kept += caught.value.best is not None

    assert len(cut) >= 10
    assert kept >= 0.9 * len(cut)
