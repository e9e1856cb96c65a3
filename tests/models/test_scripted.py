import asyncio
from collections.abc import Generator

import pytest

from taiwa.kernel.errors import ModelError, RateLimitError
from taiwa.kernel.messages import (
    Message,
    Request,
    Response,
    StreamEnd,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    collect_response,
    user,
)
from taiwa.kernel.runtime import AsyncModel, Model
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model

ASK = Request((user("How are you?"),))


async def afold(model: ScriptedModel, request: Request = ASK) -> Response:
    return collect_response([chunk async for chunk in model.astream(request)])


def test_answers_come_in_the_order_of_the_script() -> None:
    model = scripted_model("one", "two")

    answers = [collect_response(model.stream(ASK)).text, collect_response(model.stream(ASK)).text]

    assert answers == ["one", "two"]


def test_a_scripted_model_is_a_model_on_both_drivers() -> None:
    sync: Model = scripted_model("fine")
    both: AsyncModel = scripted_model("fine")

    assert isinstance(both, ScriptedModel)
    assert collect_response(sync.stream(ASK)) == asyncio.run(afold(both))


def test_an_answer_streams_in_pieces_of_the_chosen_size() -> None:
    model = scripted_model("abcdefgh", chunk=3)

    chunks = list(model.stream(ASK))

    assert chunks == [TextDelta("abc"), TextDelta("def"), TextDelta("gh"), StreamEnd(model="scripted")]


def test_what_it_was_asked_is_kept() -> None:
    model = scripted_model("one", "two")
    later = Request((user("And now?"),))

    collect_response(model.stream(ASK))
    asyncio.run(afold(model, later))

    assert model.requests == [ASK, later]


def test_an_exhausted_script_says_so_in_one_line() -> None:
    model = scripted_model("one", name="oracle")
    collect_response(model.stream(ASK))

    with pytest.raises(
        ModelError, match="'oracle' is exhausted: it has 1 answer, and answer 2 was requested"
    ) as caught:
        collect_response(model.stream(ASK))

    assert "How are you?" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.request == ASK.digest


def test_an_error_in_the_script_is_raised_before_any_word() -> None:
    model = scripted_model(RateLimitError("slow down", retry_after=2.0), "better")

    with pytest.raises(RateLimitError, match="slow down"):
        next(iter(model.stream(ASK)))

    assert collect_response(model.stream(ASK)).text == "better"


def test_a_function_in_the_script_sees_the_request() -> None:
    model = scripted_model(lambda request: request.messages[-1].text.upper())

    assert collect_response(model.stream(ASK)).text == "HOW ARE YOU?"


def test_a_tool_call_in_the_script_ends_the_answer_for_the_calls() -> None:
    call = ToolCall("clock", "{}")
    model = scripted_model(call, lambda _: call, usage=Usage(3, 4))

    answers = [collect_response(model.stream(ASK)) for _ in range(2)]

    assert [(each.message.tool_calls, each.finish, each.usage) for each in answers] == [
        ((call,), "tool_calls", Usage(3, 4))
    ] * 2


def test_a_whole_response_is_played_as_it_is() -> None:
    parts = (Thinking("a tool, then"), Text("Let me see."), ToolCall("clock", "{}", "call_0"))
    response = Response(Message("assistant", parts), "tool_calls", None, Usage(3, 4), "m")
    model = scripted_model(response)

    chunks = list(model.stream(Request(ASK.messages, stop=("see",))))

    assert collect_response(chunks) == response
    assert isinstance(chunks[0], ThinkingDelta)


def test_a_plain_answer_ends_at_the_earliest_stop_string() -> None:
    model = scripted_model("Question: 2+2=4\nEnd")
    request = Request(ASK.messages, stop=("\n", "="))

    response = collect_response(model.stream(request))

    assert (response.text, response.finish, response.stop) == ("Question: 2+2", "stop", "=")


def test_a_model_without_the_ability_to_stop_runs_on() -> None:
    model = scripted_model("2+2=4", capabilities=ALL_CAPABILITIES - {"stop"})

    response = collect_response(model.stream(Request(ASK.messages, stop=("=",))))

    assert (response.text, response.stop) == ("2+2=4", None)


def test_usage_is_unknown_unless_the_script_says_it() -> None:
    silent = collect_response(scripted_model("a").stream(ASK))
    telling = collect_response(scripted_model("a", usage=Usage(10, 1)).stream(ASK))

    assert silent.usage is None
    assert telling.usage == Usage(10, 1)


def test_closing_a_stream_ends_the_call() -> None:
    model = scripted_model("a long answer indeed", "next")
    stream = model.stream(ASK)
    next(stream)

    assert isinstance(stream, Generator)
    stream.close()

    assert list(stream) == []
    assert collect_response(model.stream(ASK)).text == "next"


def test_two_tasks_take_turns_between_chunks() -> None:
    model = scripted_model("aaaa", "bbbb", chunk=1)
    heard = ""

    async def listen() -> None:
        nonlocal heard
        async for chunk in model.astream(ASK):
            heard += getattr(chunk, "text", "")

    async def both() -> None:
        await asyncio.gather(listen(), listen())

    asyncio.run(both())

    assert heard == "abababab"


def test_its_repr_tells_how_far_the_script_is() -> None:
    model = scripted_model("one", "two")
    collect_response(model.stream(ASK))

    assert repr(model) == "ScriptedModel('scripted', 1 of 2 answers used)"
