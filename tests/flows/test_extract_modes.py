"""How a typed answer is asked for, and what happens where a server does not take that way."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from taiwa.flows.extract import ExtractError, RepairPolicy, extract
from taiwa.kernel.errors import InputError, UnsupportedError
from taiwa.kernel.messages import Capability, JsonSchema, Message, Response, Text, ToolCall, ToolResult, assistant, user
from taiwa.models.scripted import scripted_model
from taiwa.structured import OutputType
from tests.flows.driving import Drive


@dataclass(frozen=True)
class Order:
    drink: str
    cups: int


ORDER = OutputType(Order)
GOOD, BAD = '{"drink": "tea", "cups": 2}', '{"drink": "tea", "cups": "two"}'


def called(*arguments: str, text: str = "") -> Response:
    calls = tuple(ToolCall("Order", each, f"call_{n}") for n, each in enumerate(arguments))
    return Response(Message("assistant", (Text(text), *calls)), "tool_calls")


def can(*capabilities: Capability) -> dict[str, Any]:
    return {"capabilities": frozenset(capabilities)}


@pytest.mark.parametrize(
    ("capabilities", "mode"),
    [(("json_schema", "tools"), "native"), (("tools",), "tool"), (("stop",), "prompt"), ((), "prompt")],
)
def test_the_mode_follows_from_what_the_server_can_do(
    drive: Drive, capabilities: tuple[Capability, ...], mode: str
) -> None:
    answer = called(GOOD) if mode == "tool" else GOOD

    done = drive(lambda: extract(ORDER, "Two teas."), scripted_model(answer, **can(*capabilities)))

    assert done.value.value == Order("tea", 2)
    assert done.value.attempts[0].mode == mode


def test_native_hands_over_the_schema_and_shows_the_type_all_the_same(drive: Drive) -> None:
    model = scripted_model(GOOD)

    drive(lambda: extract(ORDER, "Two teas.", mode="native"), model)

    (request,) = model.requests
    assert request.constraint == JsonSchema(ORDER.schema(), "Order")
    assert request.tools == ()
    assert ORDER.render() in request.messages[0].text


def test_a_forced_call_hands_over_one_function_whose_arguments_are_the_answer(drive: Drive) -> None:
    model = scripted_model(called(GOOD))

    drive(lambda: extract(ORDER, "Two teas.", mode="tool"), model)

    (request,) = model.requests
    assert (request.constraint, request.tool_choice) == (None, "required")
    assert [(tool.name, tool.parameters) for tool in request.tools] == [("Order", ORDER.schema())]


def test_a_name_that_no_function_may_have_is_spelled_out(drive: Drive) -> None:
    model = scripted_model(Response(Message("assistant", (ToolCall("An__rder_", GOOD),)), "tool_calls"))

    drive(lambda: extract(OutputType(Order, name="An Örder!"), "Two teas.", mode="tool"), model)

    assert model.requests[0].tools[0].name == "An__rder_"


def test_a_function_may_be_offered_and_the_model_decides(drive: Drive) -> None:
    model = scripted_model(called(GOOD), GOOD)

    by_call = drive(lambda: extract(ORDER, "Two teas.", mode="tool_optional"), model)
    in_words = drive(lambda: extract(ORDER, "Two teas.", mode="tool_optional"), scripted_model(GOOD))

    assert model.requests[0].tool_choice == "auto"
    assert by_call.value.value == in_words.value.value == Order("tea", 2)


def test_of_several_calls_the_last_one_counts(drive: Drive) -> None:
    done = drive(lambda: extract(ORDER, "Two teas.", mode="tool"), scripted_model(called(BAD, GOOD)))

    assert done.value.value == Order("tea", 2)


def test_a_bad_call_is_answered_as_its_result(drive: Drive) -> None:
    model = scripted_model(called(BAD), called(GOOD))

    done = drive(lambda: extract(ORDER, "Two teas.", mode="tool"), model)

    *_, call, answer = model.requests[1].messages
    (result,) = answer.parts
    assert done.value.value == Order("tea", 2)
    assert call.tool_calls == (ToolCall("Order", BAD, "call_0"),)
    assert isinstance(result, ToolResult)
    assert (result.call, result.error) == ("call_0", "bad_arguments")
    assert '$.cups = "two"' in result.text
    assert model.requests[1].tools == model.requests[0].tools


def test_arguments_that_are_no_json_are_sent_back_as_words(drive: Drive) -> None:
    model = scripted_model(called('{"drink": '), called(GOOD))

    drive(lambda: extract(ORDER, "Two teas.", mode="tool"), model)

    assert model.requests[1].messages[-2] == assistant('{"drink": ')


def test_a_large_bad_call_is_corrected_by_a_patch_in_words(drive: Drive) -> None:
    model = scripted_model(called(BAD), '{"$.cups": 2}')

    done = drive(lambda: extract(ORDER, "Two teas.", mode="tool", repair=RepairPolicy(patch_above=0)), model)

    assert done.value.value == Order("tea", 2)
    assert model.requests[1].tools == ()
    assert [each.mode for each in done.value.attempts] == ["tool", "prompt"]


@pytest.mark.parametrize(
    "named", ["json_schema", "response_format", "response_format.json_schema", "output_config.format", ""]
)
def test_a_refused_mode_gives_way_to_the_next_and_the_attempt_says_why(drive: Drive, named: str) -> None:
    model = scripted_model(UnsupportedError("no schemas here", capability=named), called(GOOD))

    done = drive(lambda: extract(ORDER, "Two teas."), model)

    (attempt,) = done.value.attempts
    assert (attempt.mode, attempt.downgrades) == ("tool", ("native: no schemas here",))
    assert [note.code for note in done.notes] == ["downgrade"]


def test_all_modes_may_be_refused_but_the_last(drive: Drive) -> None:
    model = scripted_model(
        UnsupportedError("no schemas here", capability="json_schema"),
        UnsupportedError("nor tools", capability="tools"),
        GOOD,
    )

    done = drive(lambda: extract(ORDER, "Two teas."), model)

    (attempt,) = done.value.attempts
    assert (attempt.mode, attempt.downgrades) == ("prompt", ("native: no schemas here", "tool: nor tools"))


def test_a_repair_does_not_try_a_refused_mode_again(drive: Drive) -> None:
    model = scripted_model(UnsupportedError("no schemas here", capability="json_schema"), called(BAD), called(GOOD))

    done = drive(lambda: extract(ORDER, "Two teas."), model)

    assert [each.mode for each in done.value.attempts] == ["tool", "tool"]
    assert len(model.requests) == 3


def test_what_no_mode_could_change_is_no_reason_to_try_another(drive: Drive) -> None:
    model = scripted_model(UnsupportedError("no stop strings here", capability="stop"), GOOD)

    with pytest.raises(UnsupportedError, match="stop strings"):
        drive(lambda: extract(ORDER, "Two teas."), model)

    assert len(model.requests) == 1


def test_a_mode_that_was_chosen_is_not_left(drive: Drive) -> None:
    model = scripted_model(UnsupportedError("no schemas here", capability="json_schema"), GOOD)

    with pytest.raises(UnsupportedError):
        drive(lambda: extract(ORDER, "Two teas.", mode="native"), model)


def test_an_unknown_mode_is_refused_before_any_call(drive: Drive) -> None:
    model = scripted_model(GOOD)

    with pytest.raises(InputError, match="choose one of auto, native"):
        drive(lambda: extract(ORDER, "Two teas.", mode="magic"), model)  # type: ignore[call-overload]

    assert model.requests == []


@pytest.mark.parametrize("mode", ["native", "tool", "tool_optional", "prompt"])
def test_the_answer_is_checked_whatever_the_mode_promised(drive: Drive, mode: Any) -> None:
    answer = called(BAD) if mode in ("tool", "tool_optional") else BAD

    with pytest.raises(ExtractError, match=r"\$\.cups"):
        drive(lambda: extract(ORDER, "Two teas.", mode=mode, repair=RepairPolicy(0)), scripted_model(answer))


@pytest.mark.parametrize("mode", ["native", "tool", "tool_optional", "prompt"])
def test_what_was_said_is_the_same_in_every_mode(drive: Drive, mode: Any) -> None:
    model = scripted_model(called(GOOD, text=GOOD))

    drive(lambda: extract(ORDER, "Two teas.", mode=mode), model)

    assert model.requests[0].messages[1:] == (user("Two teas."),)


@pytest.mark.parametrize(
    ("able", "shown"), [({"json_schema"}, True), ({"json_schema", "small"}, False), ({"small"}, True)]
)
def test_a_small_model_is_told_the_name_of_a_type_that_its_server_enforces(
    drive: Drive, able: set[Capability], shown: bool
) -> None:
    model = scripted_model(GOOD, capabilities=frozenset(able))
    drive(lambda: extract(ORDER, "Two teas."), model)

    prompt = model.requests[0].messages[0].text
    assert (ORDER.render() in prompt) is shown
    assert "Order" in prompt


FENCE = "```"


@pytest.mark.parametrize(
    "text",
    [
        f'{FENCE}json\n{{"name": "Order", "arguments": {GOOD}}}\n{FENCE}',
        f'<tool_call>\n{{"name": "Order", "arguments": {json.dumps(GOOD)}}}\n</tool_call>',
        f'{{"name": "Order", "parameters": {GOOD}}}',
        f'{{"name": "other", "arguments": {GOOD}}}',
        GOOD,
    ],
)
@pytest.mark.parametrize("mode", ["tool", "tool_optional"])
def test_a_call_that_is_written_as_text_is_the_answer(drive: Drive, mode: Any, text: str) -> None:
    done = drive(lambda: extract(ORDER, "Two teas.", mode=mode, repair=RepairPolicy(0)), scripted_model(text))

    assert done.value.value == Order("tea", 2)


@pytest.mark.parametrize("text", [f'{{"name": "Order", "result": {GOOD}}}', '["Order", 1]'])
def test_what_only_looks_like_a_call_is_read_as_the_answer(drive: Drive, text: str) -> None:
    with pytest.raises(ExtractError):
        drive(lambda: extract(ORDER, "Two teas.", mode="tool", repair=RepairPolicy(0)), scripted_model(text))
