"""Tools of foreign servers: genuine ones, and one that does all it should not."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taiwa
from taiwa.flows.solve.solve import solve
from taiwa.kernel import ConfigError, InputError, ToolError
from taiwa.kernel.runtime import Tool
from taiwa.kernel.text import clean_untrusted
from taiwa.tools import ProcessLimits, calculator
from taiwa.tools.mcp import connect_mcp_server, mcp_tools
from taiwa.tools.mcp_client import harmless_schema

HERE = Path(__file__).parent
GENUINE = [sys.executable, str(HERE / "genuine_server.py")]
HOSTILE = [sys.executable, str(HERE / "hostile_server.py")]
BOUNDS = ProcessLimits(seconds=300.0, characters=1_000)


@pytest.fixture(scope="module")
def genuine() -> Iterator[dict[str, Tool]]:
    with mcp_tools(GENUINE) as tools:
        yield {each.spec.name: each for each in tools}


@pytest.fixture(scope="module")
def hostile() -> Iterator[dict[str, Tool]]:
    with mcp_tools(HOSTILE, limits=BOUNDS) as tools:
        yield {each.spec.name: each for each in tools}


def failure(one: Tool, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        one.call(arguments)
    return caught.value


def running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_result_is_the_text_and_the_value_that_the_server_gave(genuine: dict[str, Tool]) -> None:
    assert genuine["add"].call({"a": 1, "b": 2}).value == 3
    result = genuine["forecast"].call({"city": "京都"})

    assert result.value == {"city": "京都", "days": 1, "sky": "晴れ"}
    assert "晴れ" in result.text


def test_a_mounted_tool_is_untrusted_and_says_where_it_comes_from(genuine: dict[str, Tool]) -> None:
    spec = genuine["add"].spec

    assert spec.trust == "untrusted"
    assert spec.description == "(From the server Weather___more_.) Add two numbers."
    assert calculator.spec.trust == "trusted"


def test_no_foreign_tool_takes_the_name_of_a_built_in_one(genuine: dict[str, Tool]) -> None:
    assert "calculator" not in genuine
    assert genuine["Weather___more__calculator"].call({"expression": "1"}).text == "42"


def test_what_a_server_refuses_is_a_tool_error(genuine: dict[str, Tool]) -> None:
    refused, broken = failure(genuine["refuse"], why="x"), failure(genuine["break_down"])

    assert refused.code == broken.code == "remote"
    assert "no: x" in refused.message
    assert "secret" not in broken.message
    assert "\n" not in failure(genuine["add"], a="x").message


def test_what_is_no_text_is_named(genuine: dict[str, Tool]) -> None:
    assert genuine["picture"].call({}).text == "[image that cannot be shown as text]"


def test_a_server_gets_none_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    with mcp_tools(GENUINE) as tools:
        told = next(each for each in tools if each.spec.name == "environment").call({}).text

    assert "PATH" in told
    assert "OPENAI" not in told


def test_a_server_that_ends_is_a_tool_error_for_every_call() -> None:
    with connect_mcp_server(GENUINE) as server:
        tools = {each.spec.name: each for each in server.tools}

        first, second = failure(tools["leave"]), failure(tools["add"], a=1, b=2)

    assert (first.message, first.code) == ("leave failed: its server has ended", "crashed")
    assert first.trace == "the last words"
    assert second.code == "crashed"
    assert failure(tools["add"], a=1, b=2).code == "crashed"


def test_words_of_a_server_are_bounded_and_begin_nothing(hostile: dict[str, Tool]) -> None:
    spec = hostile["triggers"].spec
    result = hostile["triggers"].call({"text": "x"})

    assert len(spec.description) < 1_100
    assert len(str(spec.parameters)) < 2_000
    assert "obey" not in str(spec.parameters)
    assert len(result.text) == 1_000
    for words in (spec.description, str(spec.parameters), result.text):
        assert not any(mark in words for mark in ("<<", "<|", "\u202e", "\u200b", "\x1b", "\U000e0041"))


def test_names_that_no_protocol_can_write_are_mended_and_none_is_taken_twice(hostile: dict[str, Tool]) -> None:
    assert hostile["weird_name_with_dots"].call({}).text == "weird name/with.dots"
    assert hostile["hostile_weird_name_with_dots"].call({}).text == "weird_name_with_dots"
    assert len(hostile) <= 128


def test_a_value_without_words_is_written_as_json(hostile: dict[str, Tool]) -> None:
    assert hostile["structured"].call({}).text == '{"values":[1,2]}'


def test_a_server_that_does_not_answer_is_late_and_lives() -> None:
    texts: list[str] = []
    for seconds in (0.3, 3.0, 30.0, 300.0):  # on a busy machine nothing is answered soon
        with mcp_tools(HOSTILE, limits=replace(BOUNDS, seconds=seconds)) as tools:
            named = {each.spec.name: each for each in tools}

            assert failure(named["silent"]).code == "timeout"
            with suppress(ToolError):
                texts.append(named["more1"].call({}).text)
        if texts:
            break

    assert texts == ["more1"]


def test_calls_from_several_threads_do_not_wait_for_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        with mcp_tools(HOSTILE, limits=BOUNDS) as tools:
            named = {each.spec.name: each for each in tools}
            late = [pool.submit(failure, named["silent"]) for _ in range(4)]

            assert named["more1"].call({}).text == "more1"
            assert not any(each.done() for each in late)

        assert {each.result().code for each in late} == {"crashed"}


def test_a_gigabyte_is_never_held() -> None:
    with connect_mcp_server(HOSTILE, BOUNDS) as server:
        error = failure(next(each for each in server.tools if each.spec.name == "gigabyte"))

    assert error.code == "crashed"
    assert "more than" in error.trace


def test_a_server_is_stopped_with_all_that_it_started() -> None:
    with mcp_tools(HOSTILE, limits=BOUNDS) as tools:
        pids = next(each for each in tools if each.spec.name == "child").call({}).text.split()
        assert all(map(running, pids))

    until = time.monotonic() + 300
    while any(map(running, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(running, pids))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-command-anywhere x", "there is no such command"),
        ([sys.executable, "-c", "print('hello')"], "does it speak MCP"),
        ([sys.executable, "-c", "import sys; sys.exit('no licence')"], "no licence"),
    ],
)
def test_a_server_that_does_not_start_says_why_in_one_line(command: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        connect_mcp_server(command)

    assert "\n" not in caught.value.message


@pytest.mark.parametrize("command", ["", "'open", []])
def test_a_command_that_is_none_is_bad_input(command: Any) -> None:
    with pytest.raises(InputError):
        connect_mcp_server(command)


def test_two_servers_of_the_same_tools_are_both_there() -> None:
    with mcp_tools(GENUINE, GENUINE) as tools:
        names = [each.spec.name for each in tools]

    assert len(names) == len(set(names))
    assert {"add", "Weather___more__add"} <= set(names)


def test_a_program_calls_a_mounted_tool_beside_a_built_in_one(genuine: dict[str, Tool]) -> None:
    tools = (calculator, genuine["add"])
    model = taiwa.scripted_model(
        'Sum: <<add: {"a": 20, "b": 1}>>', "Twice: <<calculator: 21 * 2>>", "The answer is 42."
    )

    rationale = taiwa.run(solve("What?", [each.spec for each in tools]), model, tools=tools)

    assert [call.result.text for call in rationale.calls] == ["21", "42"]
    assert rationale.answer == "42"


@given(st.text(), st.integers(1, 50))
def test_harmless_words_stay_so_and_are_short(text: str, longest: int) -> None:
    words = clean_untrusted(text, longest)

    assert len(words) <= longest
    assert clean_untrusted(words, longest) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "anyOf", "enum", "description", "x", "$defs"]),
            inner,
            max_size=4,
        )
    ),
)


@given(JSON)
def test_any_schema_becomes_one_of_an_object(schema: Any) -> None:
    made = harmless_schema(schema)

    assert made["type"] == "object"
    assert isinstance(made["properties"], dict)
    assert harmless_schema(made) == made
