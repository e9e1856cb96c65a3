"""Tools of MCP servers: a well-behaved one, and one that breaks every rule."""

import sys
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import taiwa
from taiwa.flows.solve.solve import solve
from taiwa.isolation import ProcessLimits
from taiwa.kernel.approval import needs_approval
from taiwa.kernel.errors import ConfigError, InputError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import clean_untrusted
from taiwa.tools import mcp_client
from taiwa.tools.calculator import calculator
from taiwa.tools.mcp_client import McpServerConnection, McpTool, clean_schema, decode_error, mcp_tools
from tests.files import GIF

HERE = Path(__file__).parent
GENUINE = [sys.executable, str(HERE / "mcp_genuine_server.py")]
HOSTILE = [sys.executable, str(HERE / "mcp_hostile_server.py")]
LIMITS = ProcessLimits(seconds=300.0, characters=1_000)


@contextmanager
def hostile_tools(limits: ProcessLimits = LIMITS) -> Generator[tuple[Tool, ...]]:
    """Start the hostile server; the SDK need not wait two seconds for it to end by itself, which it never does."""
    with pytest.MonkeyPatch.context() as patch, mcp_tools(HOSTILE, limits=limits) as tools:
        yield tools
        patch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.0)


@pytest.fixture(scope="module")
def genuine() -> Iterator[dict[str, Tool]]:
    with mcp_tools(GENUINE) as tools:
        yield {each.spec.name: each for each in tools}


@pytest.fixture(scope="module")
def hostile() -> Iterator[dict[str, Tool]]:
    with hostile_tools() as tools:
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


def test_numbers_in_strings_reach_a_server_as_its_schema_allows_them() -> None:
    class Server:
        def call(self, tool: McpTool, arguments: Mapping[str, Json]) -> ToolResult:
            return ToolResult("", tool.spec.name, value=dict(arguments))

    integers: dict[str, Json] = {"type": "array", "items": {"type": "integer"}}
    parts: dict[str, Json] = {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "l": integers,
        "o": {"type": "boolean"},
    }
    tool = McpTool(ToolSpec("f", "", {"type": "object", "properties": parts}), "f", cast("Any", Server()))

    result = tool.call({"n": "2", "s": "2", "l": "[1, 2]", "o": "true"})

    assert result.value == {"n": 2, "s": "2", "l": [1, 2], "o": True}


@pytest.mark.parametrize(
    ("content", "text", "told"),
    [
        ({"ok": False, "line": 121}, "The build failed.", 'The build failed. {"ok":false,"line":121}'),
        ({"ok": False}, '{"ok": false}', '{"ok": false}'),
        ({"error": "late", "message": "Too late.", "hint": ""}, "", "Too late."),
        (None, "", "build failed"),
    ],
)
def test_an_error_holds_what_only_its_structured_content_says(content: Json, text: str, told: str) -> None:
    assert decode_error(content, text, "build").message == told


def test_an_mcp_tool_is_untrusted_and_its_description_names_the_server(genuine: dict[str, Tool]) -> None:
    spec = genuine["add"].spec

    assert spec.trust == "untrusted"
    assert spec.description == "(From the server Weather___more_.) Add two numbers."
    assert calculator.spec.trust == "trusted"


def test_an_mcp_tool_cannot_take_the_name_of_a_built_in_tool(genuine: dict[str, Tool]) -> None:
    assert "calculator" not in genuine
    assert genuine["Weather___more__calculator"].call({"expression": "1"}).text == "42"


@pytest.mark.parametrize(("trusted", "needed"), [(False, [True] * 4), (True, [False, False, True, True])])
def test_only_a_trusted_server_says_which_of_its_tools_need_no_approval(trusted: bool, needed: list[bool]) -> None:
    with mcp_tools(GENUINE, trusted=trusted) as tools:
        named = {each.spec.name: each for each in tools}

    assert [needs_approval(named[name]) for name in ["read_note", "add_note", "delete_note", "add"]] == needed


def test_a_refusal_of_the_server_is_a_tool_error(genuine: dict[str, Tool]) -> None:
    refused, broken = failure(genuine["refuse"], why="x"), failure(genuine["break_down"])

    assert refused.code == broken.code == "remote"
    assert "no: x" in refused.message
    assert "secret" not in broken.message
    assert "\n" not in failure(genuine["add"], a="x").message


def test_a_block_that_is_not_text_is_named(genuine: dict[str, Tool]) -> None:
    assert genuine["broken_picture"].call({}).as_text == "[image that cannot be shown as text]"


def test_an_image_is_kept_by_what_it_is_and_not_by_what_the_server_says(genuine: dict[str, Tool]) -> None:
    result = genuine["picture"].call({})

    assert [(each.media_type, each.data) for each in result.attachments] == [("image/gif", GIF)]
    assert result.text == "a pixel"
    assert result.as_text == "a pixel\n[image that cannot be shown as text]"


def test_images_that_are_too_large_together_are_left_out_by_their_size(
    genuine: dict[str, Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_client, "MAX_RESULT_BYTES", len(GIF) - 1)

    result = genuine["picture"].call({})

    assert result.attachments == ()
    assert result.text == f"a pixel\n[an image of {len(GIF)} bytes, which is too large, was left out]"


def test_a_server_does_not_get_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    with mcp_tools(GENUINE) as tools:
        names = next(each for each in tools if each.spec.name == "environment").call({}).text

    assert "PATH" in names
    assert "OPENAI" not in names


def test_a_server_that_ends_is_a_tool_error_for_every_call() -> None:
    with McpServerConnection(GENUINE) as server:
        tools = {each.spec.name: each for each in server.tools}

        first, second = failure(tools["leave"]), failure(tools["add"], a=1, b=2)

    assert (first.message, first.code) == ("leave failed: its server has ended", "crashed")
    assert first.trace == "the last words"
    assert second.code == "crashed"
    assert failure(tools["add"], a=1, b=2).code == "crashed"


def test_texts_of_a_server_are_bounded_and_cannot_begin_a_call_or_a_role(hostile: dict[str, Tool]) -> None:
    spec = hostile["triggers"].spec
    result = hostile["triggers"].call({"text": "x"})

    assert len(spec.description) < 1_100
    assert len(str(spec.parameters)) < 2_000
    assert "obey" not in str(spec.parameters)
    assert len(result.text) == 1_000
    for words in (spec.description, str(spec.parameters), result.text):
        assert not any(mark in words for mark in ("<<", "<|", "\u202e", "\u200b", "\x1b", "\U000e0041"))


def test_names_that_a_tool_call_format_cannot_write_are_changed_and_stay_unique(hostile: dict[str, Tool]) -> None:
    assert hostile["weird_name_with_dots"].call({}).text == "weird name/with.dots"
    assert hostile["hostile_weird_name_with_dots"].call({}).text == "weird_name_with_dots"
    assert len(hostile) <= 128


def test_a_value_without_text_is_written_as_json(hostile: dict[str, Tool]) -> None:
    assert hostile["structured"].call({}).text == '{"values":[1,2]}'


def test_a_result_is_not_compared_with_a_pattern_of_its_server(hostile: dict[str, Tool]) -> None:
    assert hostile["compared"].call({}).value == {"long": "a" * 31 + "!"}


def test_a_structured_value_is_bounded_as_the_text_is(hostile: dict[str, Tool]) -> None:
    few, many = hostile["much"].call({"text": "2"}), hostile["much"].call({"text": "500"})

    assert few.value == {"values": ["x" * 100] * 2}
    assert len(str(many.value)) <= LIMITS.characters
    assert len(many.text) <= LIMITS.characters


def test_a_call_without_an_answer_times_out_and_the_server_keeps_running() -> None:
    texts: list[str] = []
    for seconds in (0.3, 3.0, 30.0, 300.0):  # on a busy machine nothing is answered soon
        with hostile_tools(replace(LIMITS, seconds=seconds)) as tools:
            named = {each.spec.name: each for each in tools}

            assert failure(named["silent"]).code == "timeout"
            with suppress(ToolError):
                texts.append(named["more1"].call({}).text)
        if texts:
            break

    assert texts == ["more1"]


def test_calls_from_several_threads_do_not_wait_for_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        with hostile_tools() as tools:
            named = {each.spec.name: each for each in tools}
            late = [pool.submit(failure, named["silent"]) for _ in range(4)]

            assert named["more1"].call({}).text == "more1"
            assert not any(each.done() for each in late)

        assert {each.result().code for each in late} == {"crashed"}


def test_an_answer_of_a_gigabyte_is_cut_off() -> None:
    with McpServerConnection(HOSTILE, LIMITS) as server:
        error = failure(next(each for each in server.tools if each.spec.name == "gigabyte"))

    assert error.code == "crashed"
    assert "more than" in error.trace


@pytest.mark.parametrize("name", ["child", "daemon"])
def test_a_server_is_stopped_with_all_processes_that_it_started(name: str) -> None:
    with hostile_tools() as tools:
        pids = next(each for each in tools if each.spec.name == name).call({}).text.split()
        assert all(map(running, pids))

    until = time.monotonic() + 300
    while any(map(running, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(running, pids))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-command-anywhere x", "command not found"),
        ([sys.executable, "-c", "print('hello')"], "does it speak MCP"),
        ([sys.executable, "-c", "import sys; sys.exit('no licence')"], "no licence"),
    ],
)
def test_a_server_that_does_not_start_is_one_line_of_error(command: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        McpServerConnection(command)

    assert "\n" not in caught.value.message


@pytest.mark.parametrize("command", ["", "'open", []])
def test_an_empty_or_malformed_command_is_an_input_error(command: Any) -> None:
    with pytest.raises(InputError):
        McpServerConnection(command)


def test_on_windows_a_server_by_command_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")

    with pytest.raises(ConfigError, match="an MCP server by command needs Linux or macOS"):
        McpServerConnection("true")


def test_two_servers_with_the_same_tools_are_both_available() -> None:
    with mcp_tools(GENUINE, GENUINE) as tools:
        names = [each.spec.name for each in tools]

    assert len(names) == len(set(names))
    assert {"add", "Weather___more__add"} <= set(names)


def test_a_program_calls_an_mcp_tool_beside_a_built_in_tool(genuine: dict[str, Tool]) -> None:
    tools = (calculator, genuine["add"])
    model = taiwa.scripted_model(
        'Sum: <<add: {"a": 20, "b": 1}>>', "Twice: <<calculator: 21 * 2>>", "The answer is 42."
    )

    rationale = taiwa.Client(model, tools=tools, approve="always").run(solve("What?", [each.spec for each in tools]))

    assert [call.result.text for call in rationale.calls] == ["21", "42"]
    assert rationale.answer == "42"


@given(st.text(), st.integers(1, 50))
def test_cleaning_is_idempotent_and_bounded(text: str, longest: int) -> None:
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
def test_any_schema_becomes_an_object_schema(schema: Any) -> None:
    made = clean_schema(schema)

    assert made["type"] == "object"
    assert isinstance(made["properties"], dict)
    assert clean_schema(made) == made


@pytest.mark.parametrize(
    ("listed", "sent"),
    [
        ({"$ref": "#/definitions/A"}, {"$ref": "#/definitions/A"}),
        ({"prefixItems": [{"type": "string", "x": 1}]}, {"prefixItems": [{"type": "string"}]}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 0}),
    ],
)
def test_the_schema_of_a_parameter_keeps_its_meaning(listed: Any, sent: Any) -> None:
    definitions: Any = {"A": {"type": "string"}}

    made = clean_schema({"properties": {"a": listed}, "definitions": definitions, "$schema": "any"})

    assert made == {"properties": {"a": sent}, "definitions": definitions, "type": "object"}


@pytest.mark.parametrize("opening", ["[", "{"])
def test_an_answer_that_is_nested_without_end_is_refused_at_once(opening: str) -> None:
    with mcp_tools(HOSTILE) as tools, pytest.raises(ToolError, match="its server has ended") as caught:
        {tool.spec.name: tool for tool in tools}["deep"].call({"text": opening})

    assert caught.value.code == "crashed"
    assert caught.value.trace == "it sent a message nested more than 100 deep"


def test_brackets_in_the_text_of_an_answer_are_text(hostile: dict[str, Tool]) -> None:
    assert hostile["deep"].call({"text": "text"}).value == {"x": "[" * 500}


def test_what_is_no_message_is_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with hostile_tools():
        pass

    assert capfd.readouterr().err == ""


def test_a_state_delta_in_a_result_is_defused(hostile: dict[str, Tool]) -> None:
    assert hostile["delta"].call({}).text.splitlines()[1] == '＠＠delta {"x": 1}'


SLOPPY = [sys.executable, str(Path(__file__).with_name("mcp_sloppy_server.py"))]


@pytest.fixture(scope="module")
def sloppy() -> Iterator[dict[str, Tool]]:
    with mcp_tools(SLOPPY) as tools:
        yield {each.spec.name: each for each in tools}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("no_content", '{"a":1}', {"a": 1}),
        ("nothing", "[no content]", ""),
        ("null", "[no content]", ""),
        ("words", "plain", "plain"),
        ("list", "[1,2]", [1, 2]),
        ("video", "[video that cannot be read]\nhello", "[video that cannot be read]\nhello"),
        ("blocks", "[a block that cannot be read]\nok", "[a block that cannot be read]\nok"),
        ("link", "notes: file:///notes", "notes: file:///notes"),
        ("summary", '3 found\n{"items":[1,2,3]}', {"items": [1, 2, 3]}),
        ("for_model", "all of it", {"items": [1, 2, 3]}),
        ("repeated", '{"a": 1}', {"a": 1}),
        ("half", 'cut \ufffd\n{"\ufffd":"\ufffd"}', {"\ufffd": "\ufffd"}),
        ("digits", f'{{"n":"1{"0" * 6_000}"}}', {"n": f"1{'0' * 6_000}"}),
        ("no_number", '{"n":"NaN"}', {"n": "NaN"}),
    ],
)
def test_a_result_is_read_as_far_as_it_can_be(sloppy: dict[str, Tool], name: str, text: str, value: Any) -> None:
    result = sloppy[name].call({})

    assert (result.text, result.value) == (text, value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("result_list", "the server sent no valid result"),
        ("result_null", "the server sent no valid result"),
        ("neither", "the server sent no valid result"),
        ("error_text", "out of order"),
        ("error_code", "out of paper"),
        ("error_of_its_own", "out of ink"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_at_once(sloppy: dict[str, Tool], name: str, words: str) -> None:
    with pytest.raises(ToolError, match=words) as caught:
        sloppy[name].call({})

    assert caught.value.code == "remote"


def test_a_result_that_is_cut_says_so(sloppy: dict[str, Tool]) -> None:
    result = sloppy["long"].call({})

    assert len(result.text) == 100_000
    assert result.text.endswith("\n[cut: the result has 500,000 characters]")


def test_a_tool_that_cannot_be_read_does_not_disable_its_server(
    sloppy: dict[str, Tool], caplog: pytest.LogCaptureFixture
) -> None:
    with mcp_tools([*SLOPPY, "bad"]) as tools:
        assert {each.spec.name for each in tools} == sloppy.keys()

    left_out = [record.getMessage().rpartition(": ")[2] for record in caplog.records if record.name == "taiwa.mcp"]
    assert left_out == ["no_schema", "without a name", "text_schema", "list_schema", "numbered", "without a name"]


def test_a_module_that_hides_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hiding = ModuleType("mcp")
    hiding.__spec__ = ModuleSpec("mcp", None)
    monkeypatch.setitem(sys.modules, "mcp", hiding)
    monkeypatch.setattr(mcp_client, "_connection_errors", mcp_client._connection_errors.__wrapped__)

    with pytest.raises(ConfigError, match=r"the library mcp cannot be imported: .* does a file of this folder hide it"):
        McpServerConnection(SLOPPY)
