"""With CI set, a skipped test fails the run, unless its reason is absent data."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.source import ROOT

PLUGINS = ("-p", "no:langsmith_plugin", "-p", "no:anyio")
"""Slow to import, and no part of what is tested."""
ALLOWED = """
import pytest

def test_without_its_cases():
    pytest.skip("shared data absent: no folder")

@pytest.mark.xfail(reason="a known limit")
def test_that_is_expected_to_fail():
    raise AssertionError
"""
FORBIDDEN = """
import pytest

def test_in_no_mood():
    pytest.skip("no time")
"""
FORBIDDEN_MODULE = """
import pytest

pytest.skip("no such library", allow_module_level=True)
"""


def run_in_ci(
    folder: Path, environment: dict[str, str], modules: dict[str, str], *how: str
) -> subprocess.CompletedProcess[str]:
    """Run test modules under a copy of the root conftest."""
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGINS, *how],
        check=False, cwd=folder, env=environment | {"CI": "true"}, capture_output=True, text=True,
    )  # fmt: skip


def test_a_skip_fails_the_run(tmp_path: Path, real_environment: dict[str, str]) -> None:
    modules = {"allowed": ALLOWED, "mood": FORBIDDEN, "library": FORBIDDEN_MODULE}

    done = run_in_ci(tmp_path, real_environment, modules, "--numprocesses", "1")  # in a worker, as `make test` does

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "NOT ALLOWED: test_mood.py::test_in_no_mood: no time" in done.stdout
    assert "NOT ALLOWED: test_library.py: no such library" in done.stdout
    assert done.stdout.count("NOT ALLOWED") == 2


def test_absent_data_and_expected_failures_do_not(tmp_path: Path, real_environment: dict[str, str]) -> None:
    done = run_in_ci(tmp_path, real_environment, {"allowed": ALLOWED}, "-p", "no:xdist")

    assert done.returncode == pytest.ExitCode.OK
    assert "allowed: test_allowed.py::test_without_its_cases: shared data absent" in done.stdout
