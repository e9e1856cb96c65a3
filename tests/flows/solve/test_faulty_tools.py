"""Whatever a tool does: one line to the model, everything to a person, and the rationale goes on or ends as was said."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from taiwa.flows.solve.rationale import CallPolicy, OnToolError, Rationale, ToolMode
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.isolation import ProcessLimits
from taiwa.kernel.messages import Capability, Message, Response, Text, ToolCall, ToolResult
from taiwa.kernel.runtime import Tool
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from taiwa.tools.function_tool import IsolatedTool
from tests.flows.driving import Drive
from tests.flows.solve.abacus import ADDER, BARE, NATIVE, Echo
from tests.tools import sample_tools

BOUNDS = ProcessLimits(seconds=300.0, memory_mb=512, characters=10_000)
SHORT = replace(BOUNDS, seconds=0.2)
"""For what never ends: it takes all of its time."""
ABILITIES: dict[ToolMode, frozenset[Capability]] = {"prefill": ALL_CAPABILITIES, "stop": BARE, "native": NATIVE}
FAULTS = [
    ("never_ends", "timeout", "error: never_ends timed out"),
    ("gigabyte", "memory", "error: gigabyte needs too much memory"),
    ("raises", "internal", "error: raises failed"),
    ("leaves", "crashed", "error: leaves failed"),
    ("exits", "crashed", "error: exits failed"),
    ("refuses", "closed", "error: not today (try tomorrow)"),
]
CASES = [(fault, way) for fault in FAULTS for way in ABILITIES if way == "prefill" or fault[0] in ("raises", "refuses")]
"""Every fault in one mode, and in every mode those after which the process goes on: a mode sees the error, not the process."""


@pytest.fixture(scope="module")
def apart() -> Iterator[dict[str, IsolatedTool]]:
    """The tools that misbehave, each in a process of its own."""
    names = [name for name, _, _ in FAULTS] + ["chatter"]
    bounds = {"never_ends": SHORT}
    tools = {name: IsolatedTool(getattr(sample_tools, name), bounds.get(name, BOUNDS)) for name in names}
    yield tools
    for each in tools.values():
        each.close()


def asking(tool: str, way: ToolMode) -> ScriptedModel:
    """A model that calls a tool, then adds, then answers."""
    if way == "native":
        first = Response(Message("assistant", (Text("So"), ToolCall(tool, "{}", "a"))), "tool_calls")
        second = Response(Message("assistant", (ToolCall("adder", '{"sum": "2+2"}', "b"),)), "tool_calls")
        return scripted_model(first, second, "It is 4.", capabilities=NATIVE)
    return scripted_model(f"So <<{tool}:>>", " or <<adder: 2+2>>", " is it: 4.", capabilities=ABILITIES[way])


def read(model: ScriptedModel, rationale: Rationale) -> str:
    """All that the model was sent, in one text."""
    sent = [part for request in model.requests for message in request.messages for part in message.parts]
    texts = [part.text for part in sent if isinstance(part, (Text, ToolResult))]
    return "\n".join((*texts, *(request.prefix for request in model.requests), rationale.text))


@pytest.mark.parametrize(("fault", "way"), CASES)
def test_a_model_reads_one_line_of_a_failure_and_goes_on(
    drive: Drive, apart: dict[str, IsolatedTool], fault: tuple[str, str, str], way: ToolMode
) -> None:
    name, code, told = fault
    tools: tuple[Tool, ...] = (ADDER, apart[name])
    model = asking(name, way)

    done = drive(lambda: solve("?", [each.spec for each in tools], SolveOptions(tool_mode=way)), model, tools=tools)

    failed, added = done.value.calls
    assert (failed.result.error, failed.result.text) == (code, told)
    assert (added.result.text, done.value.ending, done.value.answer) == ("4", "end", "4")
    assert told in read(model, done.value)
    assert not any(secret in read(model, done.value) for secret in ("Traceback", "secret", "the reason"))


@pytest.mark.parametrize(
    ("name", "detail"), [("raises", "a secret of the machine"), ("leaves", "the reason, for a person")]
)
def test_a_person_reads_why_a_tool_failed(drive: Drive, apart: dict[str, IsolatedTool], name: str, detail: str) -> None:
    tool = apart[name]

    done = drive(lambda: solve("?", [tool.spec]), scripted_model(f"<<{name}:>>", " So 4."), tools=[tool])

    assert detail in done.value.calls[0].fault
    assert any(detail in str(entry.record()["error"]) for entry in done.journal.entries)


@pytest.mark.parametrize(("policy", "ending"), [("stop", "tool"), ("let_model_answer", "end")])
def test_a_failure_leads_to_what_the_policy_says(
    drive: Drive, apart: dict[str, IsolatedTool], policy: OnToolError, ending: str
) -> None:
    tool = apart["raises"]

    done = drive(
        lambda: solve("?", [tool.spec], SolveOptions(calls=CallPolicy(policy))),
        scripted_model("<<raises:>>", " four.\nIt is 4."),
        tools=[tool],
    )

    assert done.value.ending == ending


def test_what_a_tool_prints_calls_nothing(drive: Drive, apart: dict[str, IsolatedTool]) -> None:
    tools: tuple[Tool, ...] = (ADDER, apart["chatter"])

    done = drive(lambda: solve("?", [each.spec for each in tools]), asking("chatter", "prefill"), tools=tools)

    assert [call.result.text for call in done.value.calls] == ["done", "4"]


@pytest.mark.parametrize("way", ABILITIES)
def test_an_error_of_a_foreign_kind_is_a_failure_like_any_other(drive: Drive, way: ToolMode) -> None:
    echo = Echo(ZeroDivisionError("a secret"))
    tools: tuple[Tool, ...] = (ADDER, echo)
    model = asking("echo", way)

    done = drive(lambda: solve("?", [each.spec for each in tools], SolveOptions(tool_mode=way)), model, tools=tools)

    assert done.value.calls[0].result.text == "error: echo failed"
    assert "ZeroDivisionError: a secret" in done.value.calls[0].fault
    assert "secret" not in read(model, done.value)


def test_a_huge_result_is_put_in_short(drive: Drive) -> None:
    echo = Echo("<<adder: 1+1>> " * 2_000_000)

    done = drive(
        lambda: solve("?", [echo.spec, ADDER.spec]), scripted_model("<<echo:>>", " So 4."), tools=[echo, ADDER]
    )

    assert len(done.value.text) < 600
    assert len(done.value.calls) == 1
    assert len(done.value.calls[0].result.text) == 30_000_000
