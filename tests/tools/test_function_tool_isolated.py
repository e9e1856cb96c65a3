"""A user's tool in a process of its own: whatever it does, its call ends, and what ends it is a `ToolError`."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from taiwa import tool
from taiwa.isolation import ProcessLimits
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.runtime import Tool
from taiwa.tools.calculator import calculator
from taiwa.tools.function_tool import FunctionTool, IsolatedTool
from tests.tools import sample_tools

BOUNDS = ProcessLimits(seconds=300.0, memory_mb=512, characters=1_000)
SOON = ProcessLimits(seconds=0.3)
"""For what takes all of its time."""
LONGER = (0.3, 3.0, 30.0, 300.0)
"""Limits in seconds for a call that runs out of time only after it did something: a busy machine needs a longer one."""


@pytest.fixture(scope="module")
def doubling() -> Iterator[Tool]:
    with IsolatedTool(sample_tools.double) as one:
        yield one


def failure(one: FunctionTool[Any, Any], bounds: ProcessLimits = BOUNDS, **arguments: Any) -> ToolError:
    """The error that a call of a tool ends in."""
    with IsolatedTool(one, bounds) as apart, pytest.raises(ToolError) as caught:
        apart.call(arguments)
    return caught.value


def running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_result_is_the_one_of_the_tool_itself(doubling: Tool) -> None:
    assert doubling.call({"number": 21}) == sample_tools.double.call({"number": 21})
    assert doubling.spec == sample_tools.double.spec


def test_a_built_in_tool_works_in_a_worker_too() -> None:
    with IsolatedTool(calculator) as apart:
        assert apart.call({"expression": "700/27"}) == calculator.call({"expression": "700/27"})


def test_a_worker_is_kept_for_the_next_call() -> None:
    with IsolatedTool(sample_tools.which_process) as one:
        first, second = one.call({}).value, one.call({}).value

    assert first == second != os.getpid()


@pytest.mark.slow
def test_a_call_that_never_ends_is_ended_in_time() -> None:
    with IsolatedTool(sample_tools.never_ends, SOON) as one:
        with pytest.raises(ToolError):
            one.call({"no": 1})  # the worker is up

        with pytest.raises(ToolError) as caught:
            one.call({})

    assert caught.value.code == "timeout"


def test_after_a_timeout_the_next_call_works() -> None:
    texts: list[str] = []
    for seconds in LONGER:
        with IsolatedTool(sample_tools.sleeps, ProcessLimits(seconds=seconds)) as one:
            with pytest.raises(ToolError, match="timed out"):
                one.call({"seconds": 600})

            with suppress(ToolError):
                texts.append(one.call({"seconds": 0}).text)
        if texts:
            break

    assert texts == ["awake"]


def test_what_a_tool_started_is_killed_with_it(tmp_path: Path) -> None:
    marker = tmp_path / "pid"

    for seconds in LONGER:
        error = failure(sample_tools.leaves_a_child, replace(BOUNDS, seconds=seconds), marker=str(marker))
        assert error.code == "timeout"
        if marker.exists():
            break

    child = int(marker.read_text(encoding="utf-8"))
    until = time.monotonic() + 300
    while running(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not running(child)


def test_a_gigabyte_is_more_than_a_worker_may_have() -> None:
    assert failure(sample_tools.gigabyte).code == "memory"


def test_a_result_that_is_too_long_is_refused_and_the_worker_lives() -> None:
    with IsolatedTool(sample_tools.much, BOUNDS) as one:
        with pytest.raises(ToolError) as caught:
            one.call({"characters": 1_001})

        assert caught.value.code == "too_large"
        assert one.call({"characters": 1_000}).text == "x" * 1_000


def test_what_a_tool_prints_is_no_part_of_its_answer() -> None:
    with IsolatedTool(sample_tools.chatter, BOUNDS) as one:
        assert one.call({}) == ToolResult("done", "chatter", value="done")


def test_a_crash_says_nothing_to_the_model_and_all_to_a_person() -> None:
    error = failure(sample_tools.leaves)

    assert (error.message, error.code) == ("leaves failed", "crashed")
    assert "the reason, for a person" in error.__notes__[0]


def test_a_tool_that_exits_has_failed() -> None:
    assert failure(sample_tools.exits).code == "crashed"


def test_an_error_of_the_tool_s_own_kind_is_named_to_a_person_only() -> None:
    error = failure(sample_tools.raises)

    assert (error.message, error.code) == ("raises failed", "internal")
    assert "a secret of the machine" in error.__notes__[0]


def test_what_a_tool_says_to_the_model_comes_through() -> None:
    error = failure(sample_tools.refuses)

    assert (error.message, error.code, error.hint) == ("not today", "closed", "try tomorrow")


def test_bad_arguments_are_told_as_without_a_worker(doubling: Tool) -> None:
    with pytest.raises(ToolError) as caught:
        doubling.call({"number": "many"})

    assert caught.value.code == "bad_arguments"


def test_calls_from_several_threads_run_side_by_side() -> None:
    with IsolatedTool(sample_tools.sleeps, BOUNDS) as one, ThreadPoolExecutor(3) as pool:
        texts = [each.text for each in pool.map(one.call, [{"seconds": 0.1}] * 3)]

    assert texts == ["awake"] * 3


def test_a_worker_ends_when_nobody_holds_its_tool() -> None:
    one = IsolatedTool(sample_tools.which_process)
    pid = int(one.call({}).text)

    del one
    gc.collect()

    assert not running(pid)


def test_a_tool_that_no_other_process_can_find_is_refused() -> None:
    @tool
    def local() -> str:
        """Give nothing."""
        return ""

    with pytest.raises(InputError, match="top of a module"):
        IsolatedTool(local)


def local_tool(released: Event | None = None, **how: Any) -> FunctionTool[Any, Any]:
    """A tool that no other process can find; what sleeps in it does so until it is released."""
    released = released or Event()

    def local(what: str) -> str:
        """Do something odd."""
        match what:
            case "sleep":
                released.wait(600)
            case "exit":
                raise SystemExit("enough")
            case "much":
                return "x" * 100_001
            case "where":
                return str(os.getpid())
            case _:
                pass
        return what

    return tool(**how)(local)


def test_a_tool_is_called_in_a_worker_unless_it_says_otherwise() -> None:
    before = len(sample_tools.COUNTED)

    assert [sample_tools.counts.call({}).value for _ in range(2)] == [1, 2]
    assert len(sample_tools.COUNTED) == before

    assert sample_tools.counts_here.call({}).value == before + 1
    assert sample_tools.counts() == before + 2


@pytest.mark.slow
def test_a_plain_tool_that_never_ends_is_ended_in_time() -> None:
    with pytest.raises(ToolError):
        sample_tools.hangs.call({"no": 1})

    with pytest.raises(ToolError) as caught:
        sample_tools.hangs.call({})

    assert caught.value.code == "timeout"


def test_bad_arguments_start_no_worker() -> None:
    one = tool(sample_tools.double.function)

    with pytest.raises(ToolError, match=r"\$\.number"):
        one.call({"number": "many"})

    assert one._worker is None


def test_a_fixed_parameter_goes_along_to_the_worker() -> None:
    assert sample_tools.scaled.preset(factor=10).call({"number": 4}).value == 40


def test_a_tool_that_calls_a_tool_does_so_in_its_own_worker() -> None:
    text = sample_tools.calls_another.call({"number": 4}).text

    product, _, place = text.partition(" in ")
    outer, _, inner = place.partition(": ")
    assert (product, outer) == ("8", inner)


@pytest.mark.parametrize(("what", "code"), [("sleep", "timeout"), ("exit", "crashed"), ("much", "too_large")])
def test_a_tool_without_a_place_runs_here_with_a_deadline(what: str, code: str) -> None:
    released = Event()
    one = local_tool(released, seconds=0.2 if code == "timeout" else 300.0)

    with pytest.raises(ToolError) as caught:
        one.call({"what": what})
    released.set()

    assert caught.value.code == code


def test_a_tool_without_a_place_runs_in_this_process() -> None:
    assert local_tool(seconds=300.0).call({"what": "where"}).text == str(os.getpid())


def test_a_tool_without_a_place_cannot_be_asked_into_a_worker() -> None:
    with pytest.raises(InputError, match="top of a module"):
        local_tool(isolated=True).call({"what": "where"})


@pytest.mark.parametrize("guard", [True, False])
def test_a_tool_of_the_program_itself_is_found_and_the_program_runs_once(tmp_path: Path, guard: bool) -> None:
    program = tmp_path / "program.py"
    work = "print(triple.call({'number': 7}).text); open('done', 'a').write('once ')"
    program.write_text(
        "import os\nfrom taiwa import tool\n\n"
        "@tool(isolated=True)\ndef triple(number: int) -> int:\n    'Triple a number.'\n    return FACTOR * more(number)\n\n"
        "FACTOR = 3\nhome = os.getcwd()\ndef more(number: int) -> int:\n    return number\n\n"
        + (f"if __name__ == '__main__':\n    {work}\n" if guard else f"{work}\n"),
        encoding="utf-8",
    )

    said = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True, cwd=tmp_path)

    assert said.stdout == "21\n"
    assert (tmp_path / "done").read_text(encoding="utf-8") == "once "


def test_a_worker_gets_no_secrets_but_those_that_its_tool_names(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "OPENAI_API_KEY", "WEATHER_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MY_SECRET", "DATABASE",
    }  # fmt: skip
    for name in secrets | {"KEYBOARD", "TOKENIZERS_PARALLELISM", "PLACE"}:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("DATABASE", "postgresql://me:word@host/db")
    names = []
    for one in (sample_tools.environment, sample_tools.weather, sample_tools.weather.preset()):
        with IsolatedTool(one) as apart:
            names.append(set(cast("list[str]", apart.call({}).value)))

    assert [found & secrets for found in names] == [set(), {"WEATHER_API_KEY"}, {"WEATHER_API_KEY"}]
    assert all({"KEYBOARD", "TOKENIZERS_PARALLELISM", "PLACE", "PATH"} <= found for found in names)
