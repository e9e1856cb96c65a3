"""MCP over HTTP: the SDK's own client, and the protocol's conformance suite in JavaScript."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent, TextResourceContents

from taiwa.kernel.errors import ToolError
from taiwa.operations import mcp_tools
from taiwa.operations.documents import find_indexes, open_library
from taiwa.operations.mcp_tools import operation_tools
from taiwa.server.wires.mcp import context_of
from taiwa.tools.registry import builtin_tools
from tests.server.node.programs import run_node
from tests.server.serving import KEY, Serving, serving
from tests.server.test_ag_ui import desk_app

R = TypeVar("R")
Json = dict[str, Any]
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Serving]:
    """A server whose app `desk` looks questions up in the built-in handbook."""
    with serving(quotes=True, apps=(desk_app(tmp_path),)) as server:
        yield server


def connected(server: Serving, work: Callable[[Client], Awaitable[R]], key: str = KEY) -> R:
    """Connect the SDK's client, and let it work."""

    async def run() -> R:
        headers = {"authorization": f"Bearer {key}"}
        url = f"{server.server.url}/mcp"
        async with (
            httpx2.AsyncClient(headers=headers, timeout=300) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await work(client)

    return asyncio.run(run())


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def call(server: Serving, name: str, /, **arguments: object) -> CallToolResult:
    return connected(server, lambda client: client.call_tool(name, arguments))


def test_the_tools_of_the_program_and_its_operations_are_listed_with_typed_results(desk: Serving) -> None:
    tools = connected(desk, lambda client: client.list_tools()).tools

    assert [each.name for each in tools] == [*builtin_tools(), "ask", "find", "extract"]
    assert all(each.output_schema for each in tools if each.name in {"ask", "find", "extract"})
    hints = {each.name: each.annotations for each in tools}
    assert hints["find"] is not None
    assert hints["find"].read_only_hint


def test_the_sdk_which_is_loaded_with_the_first_message_does_not_stop_the_event_loop(
    desk: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, waited = mcp_tools.create_server, list[bool]()

    def create_later(*arguments: Any) -> Any:
        with httpx2.Client(base_url=desk.server.url, timeout=300) as client:  # from the loop, this would never end
            waited.append(client.get("/health").status_code == 200)
        return create(*arguments)

    monkeypatch.setattr(mcp_tools, "create_server", create_later)

    assert text(call(desk, "calculator", expression="2/3")) == "0.666667"
    assert waited
    assert all(waited)


def test_a_value_that_is_nested_too_deeply_is_not_called_too_long(desk: Serving) -> None:
    schema: Json = {"type": "string"}
    for _ in range(101):
        schema = {"items": schema}

    assert "too long or nested too deeply" in text(call(desk, "extract", text="x", json_schema=schema))


def test_a_built_in_tool_is_called(desk: Serving) -> None:
    result = call(desk, "calculator", expression="2/3")

    assert (text(result), result.structured_content, result.is_error) == ("0.666667", {"result": "2/3"}, False)


def test_a_question_is_answered_with_citations_asked_back_and_gone_on_with(desk: Serving) -> None:
    asked = call(desk, "ask", question="I have a question about leave")
    there = asked.structured_content
    assert there is not None
    answered = call(desk, "ask", question="Annual leave", conversation=there["conversation"])

    assert there["act"] == "ask"
    assert there["question_back"] == "Which of these do you mean?"
    assert answered.structured_content["act"] == "search"
    assert answered.structured_content["citations"]
    assert "[1]" in text(answered)
    assert desk.turns() == [["I have a question about leave", "Annual leave"]]


def test_progress_is_reported_while_a_turn_is_written(desk: Serving) -> None:
    seen: list[float] = []

    async def progress(written: float, total: float | None, message: str | None) -> None:
        del total, message
        seen.append(written)

    async def work(client: Client) -> CallToolResult:
        return await client.call_tool("ask", {"question": "annual leave"}, progress_callback=progress)

    assert not connected(desk, work).is_error
    assert seen
    assert seen == sorted(seen)


def test_passages_are_found_without_a_model(desk: Serving) -> None:
    call(desk, "ask", question="annual leave")  # the handbook is indexed at the first question
    result = call(desk, "find", query="annual leave", limit=2)

    assert result.structured_content is not None
    assert set(result.structured_content) == {"passages", "warnings"}
    assert len(result.structured_content["passages"]) <= 2


def test_a_passage_that_was_found_is_read_by_its_id(desk: Serving, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text("# Leave\n\nAnnual leave is 28 days.\n", "utf-8")
    settings = desk.server.state.served.settings
    with open_library(settings) as library:
        find_indexes(library, [str(tmp_path)], settings)

    async def work(client: Client) -> tuple[str, str, str]:
        found = await client.call_tool("find", {"query": "annual leave", "limit": 1})
        assert found.structured_content is not None
        (passage,) = found.structured_content["passages"]
        template = (await client.list_resource_templates()).resource_templates[0].uri_template
        read = await client.read_resource(template.replace("{id}", passage["id"]))
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("taiwa://passages/nothing")
        (content,) = read.contents
        assert isinstance(content, TextResourceContents)
        return template, passage["text"], content.text

    template, found, text = connected(desk, work)
    assert template == "taiwa://passages/{id}"
    assert found == text


def test_a_value_of_a_schema_is_extracted() -> None:
    schema = {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]}
    with serving('{"cups": 2}') as server:
        result = call(server, "extract", text="two cups", json_schema=schema)

    assert result.structured_content == {"value": {"cups": 2}}
    assert json.loads(text(result)) == {"cups": 2}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("find", {"query": " "}, "query is empty"),
        ("find", {"query": "x", "limit": 999}, "limit must be from 1 to 50"),
        ("find", {}, "query: missing"),
        ("ask", {"question": "x", "conversation": "nothing"}, "'nothing' not found"),
        ("ask", {"question": " "}, "the text is empty"),
        ("extract", {"text": "x", "json_schema": {"type": "nonsense"}}, "nonsense"),
        ("nothing", {}, "unknown tool 'nothing'"),
    ],
)
def test_a_call_that_cannot_be_performed_is_an_error_that_a_model_may_read(
    desk: Serving, name: str, arguments: Json, message: str
) -> None:
    call(desk, "ask", question="leave")
    result = call(desk, name, **arguments)

    assert result.is_error
    assert message in text(result)
    assert "Traceback" not in text(result)


def test_conversations_of_one_caller_are_not_found_by_another(desk: Serving) -> None:
    there = call(desk, "ask", question="leave").structured_content
    assert there is not None
    others = {tool.spec.name: tool for tool in operation_tools(context_of(desk.server.state, "other"))}
    with pytest.raises(ToolError, match="not found"):
        others["ask"].call({"question": "1", "conversation": there["conversation"]})


def rpc(method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"\xff", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc": "1.0", "method": "ping", "id": 1}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', 400, -32600),
        (b'{"jsonrpc": "2.0", "method": 7, "id": 1}', 400, -32600),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": {}}', 400, -32600),
        (b'{"jsonrpc": "2.0", "method": "ping", "id": true}', 400, -32600),
    ],
)
def test_malformed_messages_get_an_error_of_the_protocol(content: bytes, status: int, code: int) -> None:
    with serving("Hello") as server:
        response = server.client.post("/mcp", content=content, headers=HEADERS | {"content-type": "application/json"})

    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.json()["jsonrpc"] == "2.0"


def test_what_does_not_pass_the_guard_does_not_reach_the_protocol() -> None:
    with serving("Hello") as server:
        post = server.client.post
        keyless = post("/mcp", json=rpc("ping"), headers=HEADERS | {"authorization": "Bearer wrong"})
        rebound = post("/mcp", json=rpc("ping"), headers=HEADERS | {"host": "evil.example"})
        foreign = post("/mcp", json=rpc("ping"), headers=HEADERS | {"origin": "http://evil.example"})
        stream = server.client.get("/mcp", headers=HEADERS)
        unknown = post("/mcp", json=rpc("nothing/here"), headers=HEADERS)
        text_only = post("/mcp", content=b"hi", headers=HEADERS | {"content-type": "text/plain"})

    assert [keyless.status_code, rebound.status_code, foreign.status_code] == [401, 403, 403]
    assert [stream.status_code, text_only.status_code] == [405, 415]
    assert keyless.json()["error"]["message"].startswith("the key is wrong")
    assert '"code":-32601' in unknown.text


SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "dns-rebinding-protection",
)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite_finds_no_fault(scenario: str, tmp_path: Path) -> None:
    with serving("Hello", token="") as server:
        url = f"{server.server.url.replace('127.0.0.1', 'localhost')}/mcp"
        program = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        done = run_node(program, "server", "--url", url, "--scenario", scenario, "--output-dir", str(tmp_path))

    found = [json.loads(path.read_text("utf-8")) for path in tmp_path.rglob("checks.json")]
    checks = [check for checks in found for check in checks]
    assert done.returncode == 0, done.stdout + done.stderr
    assert checks
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO"}, checks
