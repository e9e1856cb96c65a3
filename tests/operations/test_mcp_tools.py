"""`taiwa mcp` with the client of the SDK: in memory, and in a process of its own."""

import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from taiwa import tool
from taiwa.kernel.errors import ConfigError, ToolError
from taiwa.kernel.serialization import Json
from taiwa.operations.mcp_tools import create_server, encode_error, encode_value, serve_mcp
from taiwa.tools.mcp_client import decode_error, decode_value
from taiwa.tools.registry import builtin_tools, find_tools

R = TypeVar("R")


def process(folder: Path) -> StdioServerParameters:
    """A server of taiwa; it gets HOME and no XDG_DATA_HOME: without --store it would open the store of the user."""
    args = ["-m", "taiwa", "mcp", "--store", str(folder / "taiwa.db"), "--tool", "tests.tools.sample_tools:double"]
    return StdioServerParameters(command=sys.executable, args=args)


def ask(one: Any, question: Callable[[Client], Awaitable[R]]) -> R:
    """Connect a client, ask the question, and disconnect."""

    async def asked() -> R:
        async with Client(one) as client:
            return await question(client)

    return anyio.run(asked)


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def test_the_tools_are_announced_with_their_own_schemas() -> None:
    listed = ask(create_server(tuple(builtin_tools().values())), lambda client: client.list_tools()).tools

    assert {each.name: each.input_schema for each in listed} == {
        name: dict(each.spec.parameters) for name, each in builtin_tools().items()
    }
    assert all(each.annotations is not None and each.annotations.read_only_hint for each in listed)


def test_a_result_is_text_and_structured_content() -> None:
    result = ask(
        create_server(find_tools(["calculator"])), lambda client: client.call_tool("calculator", {"expression": "2/3"})
    )

    assert (text(result), result.structured_content, result.is_error) == ("0.666667", {"result": "2/3"}, False)


@pytest.mark.parametrize(
    ("name", "arguments", "message", "code"),
    [
        ("calculator", {"expression": "1/0"}, "division by zero", "division_by_zero"),
        ("calculator", {}, "$.expression: missing (string) (parameters: expression)", "bad_arguments"),
        ("molar_mass", {"formula": "SO42-"}, "SO42- is ambiguous (write SO42^- or SO4^2-)", "ambiguous"),
        ("nothing", {}, "unknown tool 'nothing' (tools: calculator, molar_mass)", "unknown_tool"),
    ],
)
def test_an_error_is_the_message_and_hint_of_the_tool(
    name: str, arguments: dict[str, Json], message: str, code: str
) -> None:
    result = ask(
        create_server(find_tools(["calculator", "molar_mass"])), lambda client: client.call_tool(name, arguments)
    )

    assert result.is_error
    assert text(result) == message
    assert result.structured_content["error"] == code


def test_a_failure_is_hidden_from_the_client_and_its_traceback_printed(capfd: pytest.CaptureFixture[str]) -> None:
    @tool(isolated=False)
    def broken() -> str:
        """Break."""
        raise KeyError("a secret")

    result = ask(create_server((broken,)), lambda client: client.call_tool("broken", {}))

    assert text(result) == "broken failed"
    assert "a secret" not in str(result)
    assert "KeyError: 'a secret'" in capfd.readouterr().err


@pytest.mark.slow
def test_a_process_serves_built_in_and_user_defined_tools(tmp_path: Path) -> None:
    async def question(client: Client) -> tuple[list[str], list[str]]:
        names = [each.name for each in (await client.list_tools()).tools]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("calculator", {"expression": "1,000 × 5%"}),
            ("double", {"number": 21}),
            ("calculator", {"expression": "9**9**9**9"}),
        ]
        return names, [text(await client.call_tool(name, given)) for name, given in calls]

    names, results = ask(process(tmp_path), question)

    assert names == [*builtin_tools(), "double", "ask", "find", "extract"]
    assert results == ["50", "42", "an intermediate result is too large (at most 4,096 bits)"]


def test_calls_of_one_client_run_side_by_side() -> None:
    begun, go = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait until another call was answered."""
        begun.set()
        return "went on" if go.wait(300) else "nobody came"

    async def question(client: Client) -> list[str]:
        results: list[str] = []

        async def one(name: str, given: dict[str, Any]) -> None:
            results.append(text(await client.call_tool(name, given)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "wait", {})
            assert await anyio.to_thread.run_sync(begun.wait, 300)
            await one("calculator", {"expression": "1+1"})
            go.set()
        return results

    assert ask(create_server((wait, *find_tools(["calculator"]))), question) == ["2", "went on"]


def test_input_that_is_not_mcp_does_not_end_the_server(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taiwa", "mcp", "--tools", "calculator"],
        input='not JSON\n{"jsonrpc": "2.0", "id": 1, "method": "nonsense"}\n',
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=dict(os.environ),
    )

    assert done.returncode == 0
    assert '"error"' in done.stdout


@pytest.mark.parametrize("value", [None, "2/3", 3, [1], {"a": 1}, {"result": 1}, {"result": {"result": 2}}, {}])
def test_structured_content_is_the_value_both_ways(value: Json) -> None:
    assert decode_value(encode_value(value)) == value


def test_an_error_is_the_same_both_ways() -> None:
    error = decode_error(encode_error(ToolError("not today", code="closed", hint="try tomorrow")), "", "x")

    assert (error.message, error.code, error.hint) == ("not today", "closed", "try tomorrow")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taiwa.tools.mcp_client.find_spec", lambda _: None)

    with pytest.raises(ConfigError, match="MCP needs the extra mcp; install it with"):
        serve_mcp(())
