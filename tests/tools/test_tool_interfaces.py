"""One tool, four doors and a worker: the same input gives the same result from Python, from text, by native calls and over MCP."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from evals.tools import ToolAnswer, ToolCaller, solve_exercise
from taiwa.flows.solve.tool_call_formats import ReActFormat, TaggedFormat, ToolCallFormat
from taiwa.kernel.effects import CallTool, Program, perform
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import Message, Request, ToolResult, collect_response, user
from taiwa.kernel.runtime import Runtime
from taiwa.models.http_api.provider_interface import Codec
from taiwa.models.providers import resolve
from taiwa.tools.function_tool import IsolatedTool
from taiwa.tools.mcp_client import mcp_tools
from taiwa.tools.registry import BUILT_IN, builtin_tools

EXERCISES = [
    {"id": "a", "kind": "arithmetic", "input": "1,000 × (2 + 1/2)%", "gold": 25},
    {"id": "b", "kind": "balance", "input": "Al + Cl2 -> AlCl3", "gold": "2Al + 3Cl2 -> 2AlCl3"},
    {"id": "c", "kind": "balance_error", "input": "NO -> NO2", "gold": "ERROR:cannot be balanced"},
    {"id": "d", "kind": "molar_mass", "input": "MgSO4·7H2O", "gold": 246.47},
    {"id": "e", "kind": "mass_percent", "input": {"element": "O", "formula": "CO2"}, "gold": 72.7},
    {"id": "f", "kind": "moles_to_mass", "input": {"moles": "0.25", "formula": "K2[PtCl6]"}, "gold": 121.5},
    {"id": "g", "kind": "mass_to_moles", "input": {"mass": "36.03", "formula": "H2O"}, "gold": 2},
    {
        "id": "h",
        "kind": "stoich",
        "input": {"equation": "N2 + 3H2 -> 2NH3", "expression": "28.014 / M[N2] * 2 * M[NH3]"},
        "gold": 34.06,
    },
]


def needed(name: str) -> str:
    """The one parameter that a built-in tool needs."""
    return str(cast("list[str]", builtin_tools()[name].spec.parameters["required"])[0])


def by_python(name: str, text: str) -> ToolResult:
    """The function itself, called as one."""
    function: Callable[..., ToolResult] = builtin_tools()[name]
    plain = function(text)
    return ToolResult(plain.text, name, value=plain.value)


def in_text(protocol: ToolCallFormat) -> ToolCaller:
    """A call as a model writes it in its reasoning."""

    def call(name: str, text: str) -> ToolResult:
        # A protocol reads JSON, too: what holds its own marks is written so.
        written = protocol.write_call(name, json.dumps({needed(name): text}) if ">>" in text or "]" in text else text)
        trigger = protocol.scanner(builtin_tools()).feed(f"So:\n{written}")
        assert trigger is not None
        return by_runtime(trigger.name, protocol.parse_arguments(builtin_tools()[name].spec, trigger.input))

    return call


def by_runtime(name: str, given: Mapping[str, Any]) -> ToolResult:
    """The effect that a program asks with."""

    def program() -> Program[ToolResult]:
        return (yield from perform(CallTool(name, dict(given))))

    return Runtime(tools=tuple(builtin_tools().values())).run(program())


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


def openai_stream(name: str, arguments: str) -> bytes:
    """A call on OpenAI's wire, its arguments in two pieces."""
    half = len(arguments) // 2

    def delta(choice: dict[str, Any]) -> dict[str, Any]:
        return {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, **choice}]}

    def part(**function: str) -> dict[str, Any]:
        return {"delta": {"tool_calls": [{"index": 0, "function": function}]}, "finish_reason": None}

    first = {"index": 0, "id": "call_a", "type": "function", "function": {"name": name, "arguments": ""}}
    return (
        sse(
            delta({"delta": {"role": "assistant", "content": None, "tool_calls": [first]}, "finish_reason": None}),
            delta(part(arguments=arguments[:half])),
            delta(part(arguments=arguments[half:])),
            delta({"delta": {}, "finish_reason": "tool_calls"}),
        )
        + b"data: [DONE]\n\n"
    )


def anthropic_stream(name: str, arguments: str) -> bytes:
    """The same call on Anthropic's wire."""
    half = len(arguments) // 2
    message = {
        "id": "m",
        "role": "assistant",
        "content": [],
        "model": "m",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    block = {"type": "tool_use", "id": "toolu_a", "name": name, "input": {}}

    def part(text: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}

    return sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        part(arguments[:half]),
        part(arguments[half:]),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def announced(body: dict[str, Any], name: str) -> Any:
    """The schema of a tool in a request as it is sent, of either provider."""
    sent = [each.get("function", each) for each in body["tools"]]
    tool = next(each for each in sent if each["name"] == name)
    return tool.get("parameters", tool.get("input_schema"))


def by_wire(model: str, stream: Callable[[str, str], bytes]) -> ToolCaller:
    """A native call: the specifications are sent, the call is decoded from the wire, the result is sent back as text."""
    codec = cast("Codec", resolve(model).codec)
    offered = tuple(tool.spec for tool in builtin_tools().values())

    def call(name: str, text: str) -> ToolResult:
        request = Request((user("?"),), tools=offered)
        schema = announced(json.loads(codec.encode(request).body), name)
        assert schema["required"] == [needed(name)]
        written = json.dumps({each: text if each == needed(name) else None for each in schema["properties"]})
        decoder = codec.decoder("text/event-stream")
        response = collect_response([*decoder.feed(stream(name, written)), *decoder.close()])
        (wish,) = response.message.tool_calls

        result = by_runtime(wish.name, json.loads(wish.arguments))

        back = replace(
            request, messages=(*request.messages, response.message, Message("tool", (replace(result, call=wish.id),)))
        )
        assert (
            json.dumps(result.text) in codec.encode(back).body.decode()
            or result.text in codec.encode(back).body.decode()
        )
        return result

    return call


TEXT = {"tagged": in_text(TaggedFormat()), "react": in_text(ReActFormat())}
NATIVE = {
    "openai": by_wire("openai:gpt-x?wire=chat", openai_stream),
    "anthropic": by_wire("anthropic:claude-x", anthropic_stream),
}
DOORS: dict[str, ToolCaller] = {"python": by_python, **TEXT, **NATIVE}


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ToolCaller]]:
    """The doors behind which another process works: a worker, and a server that speaks MCP."""
    workers: dict[str, IsolatedTool] = {name: IsolatedTool(tool) for name, tool in builtin_tools().items()}
    store = str(tmp_path_factory.mktemp("mcp") / "taiwa.db")
    with mcp_tools([sys.executable, "-m", "taiwa", "mcp", "--store", store]) as tools:
        served = {tool.spec.name.removeprefix("taiwa_"): tool for tool in tools}
        yield {
            "worker": lambda name, text: workers[name].call({needed(name): text}),
            "mcp": lambda name, text: replace(served[name].call({needed(name): text}), name=name),
        }
    for each in workers.values():
        each.close()


class Noted:
    """A door that remembers what came out of it."""

    def __init__(self, door: ToolCaller) -> None:
        self._door = door
        self.came: list[ToolResult | tuple[str, str, str]] = []

    def __call__(self, name: str, text: str) -> ToolResult:
        try:
            result = self._door(name, text)
        except ToolError as error:
            self.came.append((error.message, error.code, error.hint))
            raise
        self.came.append(result)
        return result


@pytest.mark.parametrize("row", EXERCISES, ids=lambda row: str(row["kind"]))
@pytest.mark.parametrize("door", DOORS)
def test_an_exercise_is_right_through_every_door(row: Mapping[str, Any], door: str) -> None:
    worked = solve_exercise(row, DOORS[door])

    assert worked.right, worked


def test_the_names_of_the_built_in_tools_are_those_of_the_tools() -> None:
    assert tuple(builtin_tools()) == BUILT_IN


def test_every_textbook_item_is_right_and_the_same_through_every_door(
    shared_data: Path, apart: dict[str, ToolCaller]
) -> None:
    rows = [json.loads(line) for line in (shared_data / "chemistry.jsonl").read_text(encoding="utf-8").splitlines()]

    for row in rows:
        worked, came = dict[str, ToolAnswer](), dict[str, Any]()
        for name, door in {**DOORS, **apart}.items():
            noted = Noted(door)
            worked[name], came[name] = solve_exercise(row, noted), noted.came

        assert worked["python"].right, worked["python"]
        assert all(each == worked["python"] for each in worked.values())
        assert all(each == came["python"] for each in came.values())


@pytest.mark.parametrize(
    ("name", "text"),
    [("calculator", "1/0"), ("molar_mass", "SO42-"), ("stoichiometry", "H2"), ("unit_conversion", "1 m to s")],
)
def test_an_error_is_the_same_through_every_door(name: str, text: str, apart: dict[str, ToolCaller]) -> None:
    said = set[tuple[str, str, str]]()

    for door in {**DOORS, **apart}.values():
        with pytest.raises(ToolError) as caught:
            door(name, text)
        said.add((caught.value.message, caught.value.code, caught.value.hint))

    assert len(said) == 1
