"""Work in a process of its own: it is asked in JSON, and ended at its limits with all that it holds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import ToolError

ENTRY = "tests.isolation_entries:echo"
LIMITS = ProcessLimits(seconds=300.0, memory_mb=512, characters=1_000)


@pytest.fixture
def process() -> Iterator[IsolatedProcess]:
    one = IsolatedProcess(ENTRY, {"name": "値"}, "echo", LIMITS)
    yield one
    one.end()


def test_it_is_started_once_and_asked_many_times(process: IsolatedProcess) -> None:
    first, second = (process.ask({"n": n}, LIMITS) for n in (1, 2))

    assert first == {"start": {"name": "値"}, "question": {"n": 1}, "characters": 1_000}
    assert second["question"] == {"n": 2}


def test_no_module_of_the_current_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "tempfile", "taiwa"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)

    with ExitStack() as stack:
        one = IsolatedProcess(ENTRY, {}, "echo", LIMITS)
        stack.callback(one.end)

        assert one.ask({"n": 1}, LIMITS)["question"] == {"n": 1}


@pytest.mark.parametrize(("question", "code"), [({"sleep": 60}, "timeout"), ({"leave": True}, "crashed")])
def test_text_without_an_answer_is_distinguished(process: IsolatedProcess, question: dict[str, int], code: str) -> None:
    with pytest.raises(ToolError) as caught:
        process.ask(question, ProcessLimits(seconds=0.3))

    assert caught.value.code == code
    process.end()
    assert not process.alive


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system counts no waiting for a processor")
def test_the_time_in_which_other_processes_run_does_not_count(process: IsolatedProcess) -> None:
    busy = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile True: pass"
    with ExitStack() as stack:
        for _ in range(8):
            other = stack.enter_context(subprocess.Popen([sys.executable, "-c", busy]))
            stack.callback(other.kill)

        assert process.ask({"work": 10_000_000}, ProcessLimits(seconds=1.0))["question"] == {"work": 10_000_000}
        with pytest.raises(ToolError, match="timed out"):
            process.ask({"work": 10**12}, ProcessLimits(seconds=0.1))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_process_that_may_not_be_killed_ends_by_itself() -> None:
    one = IsolatedProcess(ENTRY, {}, "echo", LIMITS)
    assert one.ask({"n": 1}, LIMITS)

    os.setresuid(65534, 65534, 0)
    try:
        one.end()
    finally:
        os.setresuid(0, 0, 0)

    assert not one.alive


def test_an_entry_that_is_not_there_fails_with_its_reason() -> None:
    one = IsolatedProcess("tests.isolation_entries:nothing", {}, "nothing", LIMITS)

    with pytest.raises(ToolError) as caught:
        one.ask({}, LIMITS)
    one.end()

    assert caught.value.code == "crashed"
    assert "nothing" in caught.value.__notes__[0]


def test_it_works_beside_more_than_a_thousand_open_files() -> None:
    with ExitStack() as stack:
        for _ in range(1_024):
            stack.enter_context(Path(os.devnull).open())
        process = IsolatedProcess(ENTRY, {}, "echo", LIMITS)
        stack.callback(process.end)

        assert process.ask({"n": 1}, LIMITS)["question"] == {"n": 1}


def test_the_child_loads_nothing_of_taiwa_but_the_kernel() -> None:
    child = IsolatedProcess("tests.isolation_entries:modules", {}, "modules", LIMITS)

    found = child.ask({}, LIMITS)["modules"]
    child.end()

    assert isinstance(found, list)
    assert {".".join(str(name).split(".")[:2]) for name in found} == {"taiwa", "taiwa.isolation", "taiwa.kernel"}
