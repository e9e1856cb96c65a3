"""The jobs of docs/cookbook.md are short; that they run is tested where all pages are."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text(encoding="utf-8")
JOBS = re.findall(r"^## (\d+\. .*?)\n.*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)


def test_there_are_fifteen_jobs_at_least() -> None:
    assert len(JOBS) >= 15
    assert [int(title.partition(".")[0]) for title, _ in JOBS] == list(range(1, len(JOBS) + 1))


@pytest.mark.parametrize(("title", "block"), JOBS)
def test_a_job_takes_eight_lines_at_most(title: str, block: str) -> None:
    assert sum(line.startswith((">>> ", "... ")) for line in block.splitlines()) <= 8
