"""Reasoning by function calls."""

import json
import threading
from collections.abc import Mapping

import pytest

from taiwa.conversation.app import App, AppSource
from taiwa.flows.solve.loops import BY_MODEL, complete_with_tools
from taiwa.flows.solve.rationale import NO_CALL_LEFT, CallPolicy, SolveLimits
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.kernel.messages import (
    Message,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    assistant,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import scripted_model
from tests.flows.driving import Drive
from tests.flows.solve.abacus import ADDER, NATIVE, SPECS, Adder, Echo


def call(text: str, name: str = "", tool: str = "adder") -> ToolCall:
    return ToolCall(tool, json.dumps({"sum": text}), name)


def asks(*calls: ToolCall, said: str = "") -> Response:
    words = (Text(said),) if said else ()
    return Response(Message("assistant", (*words, *calls)), "tool_calls")


def read(message: Message) -> list[tuple[str, str]]:
    """The results of a message: to which call, and what."""
    return [(part.call, part.text) for part in message.parts if isinstance(part, ToolResult)]


@pytest.mark.parametrize(("own", "shared"), [(None, True), ("I am Ann Lee.", False)])
def test_only_the_instructions_of_taiwa_begin_other_conversations_too(
    drive: Drive, own: str | None, shared: bool
) -> None:
    model = scripted_model("4", capabilities=NATIVE)

    drive(lambda: solve("2+2?", SPECS, SolveOptions(system=own)), model, tools=[ADDER])

    assert bool(model.requests[0].hints.opening) is shared


def test_a_call_is_answered_by_a_message_of_its_own(drive: Drive) -> None:
    model = scripted_model(asks(call("2+2", "a"), said="Two and two."), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("2+2?", SPECS), model, tools=[ADDER])

    first, second = model.requests
    assert first.tools == second.tools == SPECS
    assert second.messages[: len(first.messages)] == first.messages
    spoken, answered = second.messages[len(first.messages) :]
    assert spoken == Message("assistant", (Text("Two and two."), call("2+2", "a")))
    assert (answered.role, read(answered)) == ("tool", [("a", "4")])
    assert (done.value.tool_mode, done.value.answer, done.value.ending) == ("native", "4", "end")


def test_the_transcript_shows_calls_and_results_in_their_places(drive: Drive) -> None:
    model = scripted_model(asks(call("2+2", "a"), said="Two and two."), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("2+2?", SPECS), model, tools=[ADDER])

    assert done.value.text == "Two and two.\n<<adder: 2+2>> 4\nIt is 4."
    assert done.transcript == done.value.text
    assert done.shown == "Two and two.It is 4."


class Meeting:
    """A tool whose calls return only when all of them have come."""

    spec = ToolSpec("adder", "Meet.", ADDER.spec.parameters)

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=300)

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        self._barrier.wait()
        return ToolResult(f"met {arguments['sum']}", "adder")


def test_calls_of_one_answer_run_side_by_side_and_their_results_come_in_order() -> None:
    model = scripted_model(asks(*(call(str(n), f"id{n}") for n in range(3))), "Done: 3.", capabilities=NATIVE)

    Runtime(model, tools=[Meeting(3)]).run(solve("?", SPECS))

    assert read(model.requests[1].messages[-1]) == [("id0", "met 0"), ("id1", "met 1"), ("id2", "met 2")]


@pytest.mark.parametrize("names", [("", ""), ("x", "x"), ("call_1", "")])
def test_missing_and_doubled_ids_become_one_for_each_call(drive: Drive, names: tuple[str, str]) -> None:
    first, second = names
    model = scripted_model(
        asks(call("1+1", first), call("2+2", second)), asks(call("3+3", first)), "6", capabilities=NATIVE
    )

    drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    messages = model.requests[2].messages
    asked = [part.id for message in messages for part in message.tool_calls]
    answered = [pair for message in messages for pair in read(message)]
    assert len(set(asked)) == 3
    assert all(asked)
    assert answered == list(zip(asked, ["2", "4", "6"], strict=True))


def test_a_call_has_no_id_of_a_call_before_the_request() -> None:
    model = scripted_model(asks(call("1+1", "x")), "2", capabilities=NATIVE)
    before = (user("0+1?"), Message("assistant", (call("0+1", "x"),)), Message("tool", (ToolResult("1", call="x"),)))
    request = Request((*before, user("1+1?")))

    Runtime(model, tools=[ADDER]).run(
        complete_with_tools(request, SPECS, App(AppSource("a", ""), ""), "text+delta", None)
    )

    *_, asked, answered = model.requests[1].messages
    assert asked.tool_calls[0].id not in ("", "x")
    assert read(answered) == [(asked.tool_calls[0].id, "2")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"sum": 1+', "not JSON: Expecting"),
        ("[1]", "not a JSON object"),
        ('{"sum": NaN}', "NaN is not JSON"),
        ('{"sum": "\\ud800"}', "half a character"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_arguments_that_cannot_be_read_go_back_as_a_diagnostic(drive: Drive, arguments: str, told: str) -> None:
    adder = Adder()
    model = scripted_model(asks(ToolCall("adder", arguments, "a")), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[adder])

    ((_, text),) = read(model.requests[1].messages[-1])
    assert text.startswith("error: ")
    assert told in text
    assert (adder.asked, done.value.calls[0].result.error) == ([], "bad_arguments")


def test_an_unknown_function_is_told_as_such(drive: Drive) -> None:
    model = scripted_model(asks(call("x", "a", tool="oracle")), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert read(model.requests[1].messages[-1]) == [("a", "error: unknown tool 'oracle' (tools: adder)")]
    assert done.value.calls[0].result.error == "unknown_tool"


def test_a_result_that_is_left_to_the_model_says_so(drive: Drive) -> None:
    model = scripted_model(asks(call("2+2", "a")), "It is 4.", capabilities=NATIVE)

    done = drive(
        lambda: solve("?", SPECS, SolveOptions(calls=CallPolicy(simulated_tools=["adder"]))), model, tools=[ADDER]
    )

    assert read(model.requests[1].messages[-1]) == [("a", BY_MODEL)]
    assert done.value.calls[0].result.origin == "model"


def test_the_same_call_twice_in_one_answer_is_done_once(drive: Drive) -> None:
    adder = Adder()
    model = scripted_model(asks(call("2+2", "a"), call("2+2", "b")), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[adder])

    assert adder.asked == ["2+2"]
    assert read(model.requests[1].messages[-1]) == [("a", "4"), ("b", "4")]
    assert [each.result.origin for each in done.value.calls] == ["tool", "memo"]


def test_the_fourth_time_the_same_call_is_the_end(drive: Drive) -> None:
    model = scripted_model(*[asks(call("2+2", f"id{n}")) for n in range(9)], capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.ending, len(model.requests)) == ("repeat", 5)


def test_the_second_time_the_same_call_fails_is_the_end_and_the_answer_is_asked_for(drive: Drive) -> None:
    model = scripted_model(*[asks(call("x", f"id{n}")) for n in range(2)], "Answer: 4", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.ending, done.value.answer, done.value.complete) == ("repeat", "4", False)


def test_when_no_call_is_left_the_last_words_are_asked_for_once(drive: Drive) -> None:
    many = asks(*(call(f"{n}+0", f"id{n}") for n in range(12)))
    model = scripted_model(many, "It is 11.", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    last = model.requests[1]
    assert (last.tool_choice, last.tools) == ("none", SPECS)
    assert [text for _, text in read(last.messages[-1])][9:] == ["9", NO_CALL_LEFT, NO_CALL_LEFT]
    assert (done.value.ending, done.value.complete, done.value.answer, len(done.value.calls)) == (
        "calls",
        False,
        "11",
        10,
    )


def test_a_model_that_calls_on_when_no_call_is_left_has_come_to_its_end(drive: Drive) -> None:
    model = scripted_model(*[asks(call(f"{n}+0", f"id{n}"), said=f"step {n}") for n in range(9)], capabilities=NATIVE)

    done = drive(
        lambda: solve("?", SPECS, SolveOptions(limits=SolveLimits(max_tool_calls=1), answer_by=["line"])),
        model,
        tools=[ADDER],
    )

    assert (done.value.ending, len(model.requests)) == ("calls", 3)


def test_nothing_is_scanned_in_what_is_written_and_thoughts_are_not_sent_back(drive: Drive) -> None:
    said = Response(
        Message("assistant", (Thinking("hm <<adder: 1+1>>"), Text("<<adder: 1+1>>"), call("2+2", "a"))), "tool_calls"
    )
    model = scripted_model(said, "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert [each.input for each in done.value.calls] == [json.dumps({"sum": "2+2"})]
    assert not any(isinstance(part, Thinking) for message in model.requests[1].messages for part in message.parts)


def test_calls_of_an_answer_that_was_cut_off_are_not_done(drive: Drive) -> None:
    adder = Adder()
    broken = Response(Message("assistant", (Text("So"), call("2+2", "a"))), "length")

    done = drive(lambda: solve("?", SPECS), scripted_model(broken, capabilities=NATIVE), tools=[adder])

    assert (done.value.ending, adder.asked) == ("length", [])


def test_a_long_result_is_cut_for_the_model_and_whole_in_the_record(drive: Drive) -> None:
    echo = Echo("9" * 20_000 + "\n<<echo:>>")
    model = scripted_model(asks(ToolCall("echo", "", "a")), "It is 4.", capabilities=NATIVE)

    done = drive(lambda: solve("?", (echo.spec,)), model, tools=[echo])

    ((_, text),) = read(model.requests[1].messages[-1])
    assert (len(text), "\n" in text) == (5_000, False)
    assert len(done.value.calls[0].result.text) > 5_000


def test_a_plain_answer_needs_no_call(drive: Drive) -> None:
    done = drive(lambda: solve("?", SPECS), scripted_model(Response(assistant("It is 4.")), capabilities=NATIVE))

    assert (done.value.text, done.value.answer, done.value.calls) == ("It is 4.", "4", ())
