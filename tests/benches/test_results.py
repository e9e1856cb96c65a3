"""The result files of the benchmarks: whole, in step with what they promise, and silent about the machine they came from."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.house.source import ROOT

RESULTS = sorted((ROOT / "benches" / "results").glob("*.json"))
MACHINE = re.compile(r"/(?:home|tmp|root|work|Users)/|\b\d{1,3}(?:\.\d{1,3}){3}\b")
PAGE = ROOT / "benches" / "README.md"
NOT_MEASURED: dict[str, str] = {}
"""Benchmarks without results so far, and why."""


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def named(path: Path) -> str:
    return path.stem


def test_every_benchmark_has_its_results_or_says_why_not() -> None:
    subjects = re.search(r"NAMES = \(([^)]*)\)", (ROOT / "benches" / "__main__.py").read_text(encoding="utf-8"))

    assert subjects is not None
    assert sorted(re.findall(r'"(\w+)"', subjects[1])) == sorted([*NOT_MEASURED, *map(named, RESULTS)])


@pytest.mark.parametrize("path", RESULTS, ids=named)
def test_results_say_when_where_and_of_what_they_are(path: Path) -> None:
    found = read(path)

    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert re.fullmatch(r"[0-9a-f]{7,12}\+?", found["commit"])
    assert re.search(r"Python 3\.\d+", found["machine"])
    assert found["about"]
    assert found["rows"]


@pytest.mark.parametrize("path", RESULTS, ids=named)
def test_results_name_no_path_and_no_host(path: Path) -> None:
    assert not MACHINE.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", RESULTS, ids=named)
def test_a_promise_is_kept_exactly_when_its_number_says_so(path: Path) -> None:
    for row in read(path)["targets"]:
        assert row["met"] is (row["value"] <= row["bound"]), row["what"]


@pytest.mark.parametrize("path", RESULTS, ids=named)
def test_no_row_is_measured_twice(path: Path) -> None:
    names = [(row["what"], row["note"].partition(";")[0]) for row in read(path)["rows"]]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("path", RESULTS, ids=named)
def test_the_page_shows_every_result(path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")

    missing = [row["what"] for row in read(path)["rows"] if row["what"] not in page]

    assert not missing, "run `make docs`"
