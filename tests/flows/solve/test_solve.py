"""Reasoning in text: continued in place, or cut and asked to go on."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.loops import CONTINUE
from taiwa.flows.solve.rationale import (
    CallPolicy,
    ExecutedCall,
    InsertedText,
    OnToolError,
    Rationale,
    SolveLimits,
    TextPart,
    ToolMode,
)
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import TOOL_CALL_FORMATS, tool_call_format
from taiwa.kernel.effects import CallTool
from taiwa.kernel.errors import InputError, LimitError, RefusalError, UnsupportedError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import (
    Capability,
    FinishReason,
    Message,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    assistant,
    system,
    user,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.http_api.capabilities import capabilities
from taiwa.models.http_api.openai_chat import DIALECTS, ChatCompletions
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel, scripted_model
from tests.flows.driving import Drive, transcript
from tests.flows.solve.abacus import ADDER, BARE, NATIVE, NO_STOP, SPECS, Adder, Echo
from tests.strategies import joined

FIRST = "Two and two: <<adder: 2+2>>"


@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, NO_STOP])
def test_a_rationale_is_interrupted_spliced_and_continued_in_place(
    drive: Drive, capabilities: frozenset[Capability]
) -> None:
    model = scripted_model(
        f"{FIRST} 5, wrong", "And one is <<adder: 4+1>> 9", "The answer is 5.", capabilities=capabilities
    )

    done = drive(lambda: solve("2+2+1?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4\nAnd one is <<adder: 4+1>> 5\nThe answer is 5."
    assert done.transcript == done.value.text
    assert (done.value.answer, done.value.answered_by) == ("5", "line")
    assert (done.value.ending, done.value.complete, done.value.tool_mode) == ("end", True, "prefill")
    assert [request.prefix for request in model.requests] == [
        "",
        f"{FIRST} 4\n",
        f"{FIRST} 4\nAnd one is <<adder: 4+1>> 5\n",
    ]
    assert len({request.messages for request in model.requests}) == 1


def test_a_server_that_cannot_continue_is_asked_to_go_on(drive: Drive) -> None:
    model = scripted_model(f"{FIRST} 5, wrong", "And one is <<adder: 4+1>>", "So 5.", capabilities=BARE)

    done = drive(lambda: solve("2+2+1?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4\nAnd one is <<adder: 4+1>> 5\nSo 5."
    assert done.transcript == done.value.text
    assert done.value.tool_mode == "stop"
    first, second, third = (request.messages for request in model.requests)
    assert second == (*first, assistant(f"{FIRST} 4\n"), user(CONTINUE))
    assert third == (*second, assistant("And one is <<adder: 4+1>> 5\n"), user(CONTINUE))
    assert not any(request.prefix or request.stop for request in model.requests)


@pytest.mark.parametrize(
    ("capabilities", "shots", "way"),
    [
        (ALL_CAPABILITIES, (), "prefill"),
        (NATIVE, (), "native"),
        (NATIVE, (user("1+1?"), assistant("<<adder: 1+1>> 2")), "stop"),
        (frozenset({"stop"}), (), "stop"),
    ],
)
def test_the_way_is_chosen_by_what_the_server_can_do(
    drive: Drive, capabilities: frozenset[Capability], shots: tuple[Message, ...], way: ToolMode
) -> None:
    done = drive(
        lambda: solve("?", SPECS, SolveOptions(shots=shots)), scripted_model("It is 4.", capabilities=capabilities)
    )

    assert done.value.tool_mode == way


@pytest.mark.parametrize(("way", "capability"), [("prefill", "prefix"), ("native", "tools")])
def test_a_way_that_the_model_cannot_go_is_refused_before_anything_is_asked(
    drive: Drive, way: ToolMode, capability: Capability
) -> None:
    model = scripted_model("never", capabilities=ALL_CAPABILITIES - {capability})

    with pytest.raises(UnsupportedError, match="supported: ") as caught:
        drive(lambda: solve("?", SPECS, SolveOptions(tool_mode=way)), model)

    assert (caught.value.capability, model.requests) == (capability, [])


def test_a_server_that_refuses_a_way_after_all_is_asked_in_the_next(drive: Drive) -> None:
    model = scripted_model(
        UnsupportedError("no prefix here", capability="prefix"),
        UnsupportedError("nor tools", capability="tools"),
        "It is 4.",
    )

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.tool_mode, done.value.answer) == ("stop", "4")
    assert [note.code for note in done.notes] == ["tool_mode", "downgrade", "tool_mode", "downgrade", "tool_mode"]


def test_a_server_that_refuses_to_continue_a_text_is_asked_to_go_on_with_it(drive: Drive) -> None:
    model = scripted_model(
        FIRST, UnsupportedError("no prefill", capability="prefix"), "And one is <<adder: 4+1>>", "So 5."
    )

    done = drive(lambda: solve("2+2+1?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4\nAnd one is <<adder: 4+1>> 5\nSo 5."
    assert done.transcript == done.value.text
    assert (done.value.tool_mode, done.value.answer, len(done.value.calls)) == ("stop", "5", 2)
    first, refused, third, _ = model.requests
    assert refused.prefix == f"{FIRST} 4\n"
    assert third.messages == (*first.messages, assistant(f"{FIRST} 4\n"), user(CONTINUE))
    assert "native" not in [note.text.rpartition(" ")[2] for note in done.notes if note.code == "tool_mode"]


def test_a_server_that_refuses_the_results_of_functions_is_asked_to_go_on_in_text(drive: Drive) -> None:
    call = Response(Message("assistant", (ToolCall("adder", '{"sum": "2+2"}', "1"),)), "tool_calls")
    model = scripted_model(call, UnsupportedError("no results", capability="tools"), "So 4.", capabilities=NATIVE)

    done = drive(lambda: solve("2+2?", SPECS), model, tools=[ADDER])

    assert done.value.text == "<<adder: 2+2>> 4\nSo 4."
    assert (done.value.tool_mode, done.value.answer, len(done.value.calls)) == ("stop", "4", 1)


@pytest.mark.parametrize("tool_mode", ["prefill", "native"])
def test_a_chosen_way_that_is_refused_later_is_an_error(drive: Drive, tool_mode: ToolMode) -> None:
    call = Response(Message("assistant", (ToolCall("adder", '{"sum": "2+2"}', "1"),)), "tool_calls")
    first = FIRST if tool_mode == "prefill" else call
    model = scripted_model(first, UnsupportedError("no", capability="prefix"))

    with pytest.raises(UnsupportedError):
        drive(lambda: solve("2+2?", SPECS, SolveOptions(tool_mode=tool_mode)), model, tools=[ADDER])


@pytest.mark.parametrize(
    "how",
    [
        {"tool_mode": "sideways"},
        {"calls": CallPolicy("cry")},
        {"answer_by": ("oracle",)},
        {"limits": SolveLimits(max_tokens=0)},
    ],
)
def test_what_cannot_be_meant_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Runtime(scripted_model("never")).run(solve("?", SPECS, SolveOptions(**how)))


@pytest.mark.parametrize("repeated", [f"First.\n{FIRST} 4\n", f"First.\n{FIRST} 4", f"{FIRST} 4"])
def test_what_a_model_repeats_is_neither_shown_nor_called_again(drive: Drive, repeated: str) -> None:
    model = scripted_model(f"First.\n{FIRST}", f"{repeated} Then <<adder: 4+0>>", "So 4.", capabilities=BARE, chunk=3)

    done = drive(lambda: solve("2+2?", SPECS), model, tools=[ADDER])

    assert [call.input for call in done.value.calls] == ["2+2", "4+0"]
    assert done.value.text.replace("\n\n", "\n") == f"First.\n{FIRST} 4\n Then <<adder: 4+0>> 4\nSo 4."
    assert done.transcript == done.value.text


def test_the_stop_mark_that_a_server_keeps_is_put_back(drive: Drive) -> None:
    named = Response(assistant("<<adder: 2+2"), stop=">>")
    silent = Response(assistant(" or <<adder: 3+3"))

    done = drive(lambda: solve("?", SPECS), scripted_model(named, silent, " 6"), tools=[ADDER])

    assert done.value.text == "<<adder: 2+2>> 4\n or <<adder: 3+3>> 6\n 6"
    assert done.value.parts[:3] == (TextPart("<<adder: 2+2"), InsertedText(">>", "stop"), InsertedText(" 4\n"))
    assert [note.text for note in done.notes if note.code == "call"] == ["<<adder: 2+2>>", "<<adder: 3+3>>"]


def test_a_stop_that_a_server_does_not_name_may_end_a_call_of_no_tool_or_none_at_all(drive: Drive) -> None:
    unknown, shift = Response(assistant("<<oracle: x")), Response(assistant(" Shift: 8 "))

    done = drive(lambda: solve("?", SPECS), scripted_model(unknown, shift, " 1.\nAnswer: 4"), tools=[ADDER])

    assert [call.name for call in done.value.calls] == ["oracle"]
    assert done.value.text.endswith(" Shift: 8 >> 1.\nAnswer: 4")


def test_a_stop_outside_of_a_trigger_is_a_false_one_and_the_model_goes_on(drive: Drive) -> None:
    model = scripted_model("Shift: 8 >> 1 is 4. `<<adder: 1+1>>` is code. So 4.", " 1 is 4.", " is code. So 4.")

    done = drive(lambda: solve("8 >> 1?", SPECS), model, tools=[ADDER])

    assert done.value.calls == ()
    assert done.value.text.startswith("Shift: 8 >> 1 is 4.")
    assert done.value.ending == "end"


def test_false_stops_are_bounded() -> None:
    model = scripted_model(*["a >> b"] * 40)

    value = Runtime(model).run(solve("?", SPECS))

    assert (value.ending, value.complete, len(model.requests)) == ("stops", False, 21)


def test_code_is_not_called(drive: Drive) -> None:
    text = "```\n<<adder: 1+1>>\n```\nand `<<adder: 1+1>>`\nAnswer: 7"

    done = drive(lambda: solve("?", SPECS), scripted_model(text, capabilities=NO_STOP), tools=[ADDER])

    assert (done.value.text, done.value.calls, done.value.answer) == (text, (), "7")


def test_thoughts_are_not_scanned(drive: Drive) -> None:
    thinking = Response(Message("assistant", (Thinking("<<adder: 1+1>>"), Text("It is 2."))))

    done = drive(lambda: solve("?", SPECS), scripted_model(thinking), tools=[ADDER])

    assert (done.value.calls, done.value.text) == ((), "It is 2.")


@pytest.mark.parametrize("stop", [">>", None])
def test_a_stop_within_hidden_reasoning_is_no_stop_of_the_text(drive: Drive, stop: str | None) -> None:
    thinking = Response(Message("assistant", (Thinking("shift by <<adder: 1"),)), stop=stop)
    model = scripted_model(thinking, "It is 2.")

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.text, done.value.calls) == ("It is 2.", ())
    assert [bool(request.stop) for request in model.requests] == [True, False]


def test_what_stands_behind_a_call_in_the_same_piece_is_thrown_away_and_kept_for_people(drive: Drive) -> None:
    model = scripted_model(f"{FIRST} 5, I am sure", " is it: 4", capabilities=NO_STOP, chunk=100)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert done.value.text == f"{FIRST} 4\n is it: 4"
    assert done.value.calls[0].discarded == " 5, I am sure"
    assert [note.text for note in done.notes if note.code == "discarded"] == ["passed over: 5, I am sure"]


def test_the_calls_and_their_results_are_kept(drive: Drive) -> None:
    done = drive(lambda: solve("?", SPECS), scripted_model(FIRST, " 4"), tools=[ADDER])

    assert done.value.calls == (ExecutedCall("adder", "2+2", ToolResult("4", "adder"), "4"),)
    assert [each.effect.arguments for each in done.journal.entries if isinstance(each.effect, CallTool)] == [
        {"sum": "2+2"}
    ]


TROUBLE = [
    ("<<adder: two>>", "syntax"),
    ("<<oracle: x>>", "unknown_tool"),
    ("<<web search: weather in Rome>>", "unknown_tool"),
]


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_a_model_is_told_of_trouble(drive: Drive, trigger: str, code: str) -> None:
    done = drive(
        lambda: solve("?", SPECS), scripted_model(f"So {trigger} 3", " then 4", capabilities=NO_STOP), tools=[ADDER]
    )

    assert done.value.parts[1].text.startswith(" error: ")
    assert done.value.calls[0].result.error == code
    assert done.value.ending == "end"
    assert [note.code for note in done.notes if note.code == "tool"] == ["tool"]


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_a_model_may_write_the_result_itself(drive: Drive, trigger: str, code: str) -> None:
    done = drive(
        lambda: solve("?", SPECS, SolveOptions(calls=CallPolicy("let_model_answer", "let_model_answer"))),
        scripted_model(f"So {trigger} 3", " 4\nthen 5", capabilities=NO_STOP),
        tools=[ADDER],
    )

    assert done.value.text == f"So {trigger} 4\nthen 5"
    result = done.value.calls[0].result
    assert (result.error, result.origin, result.text) == (code, "model", "4")


@pytest.mark.parametrize(("trigger", "code"), TROUBLE)
def test_trouble_may_be_the_end(drive: Drive, trigger: str, code: str) -> None:
    done = drive(
        lambda: solve("?", SPECS, SolveOptions(calls=CallPolicy("stop", "stop"))),
        scripted_model(f"So {trigger} 3", capabilities=NO_STOP),
        tools=[ADDER],
    )

    assert (done.value.text, done.value.ending, done.value.answer) == (f"So {trigger}", "tool", "")
    assert done.value.calls[0].result.error == code


def test_failures_and_unknown_tools_have_a_policy_each(drive: Drive) -> None:
    model = scripted_model("<<oracle: x>>", " 7, <<adder: two>>", capabilities=NO_STOP)

    done = drive(
        lambda: solve("?", SPECS, SolveOptions(calls=CallPolicy("stop", "let_model_answer"))), model, tools=[ADDER]
    )

    assert [call.result.origin for call in done.value.calls] == ["model", "tool"]
    assert (done.value.ending, done.value.calls[0].result.text) == ("tool", "7,")


def test_a_tool_that_is_withheld_is_shown_and_never_called(drive: Drive) -> None:
    adder = Adder()
    model = scripted_model(FIRST, " 4.\nIt is 4.", capabilities=NO_STOP)

    done = drive(
        lambda: solve("?", SPECS, SolveOptions(calls=CallPolicy(simulated_tools={"adder"}))), model, tools=[adder]
    )

    assert "<<adder: sum>>" in model.requests[0].messages[0].text
    assert (adder.asked, done.value.calls[0].result.error, done.value.calls[0].result.origin) == (
        [],
        "simulated",
        "model",
    )
    assert done.value.text == f"{FIRST} 4.\nIt is 4."


def test_when_no_call_is_left_the_model_finishes_without_tools(drive: Drive) -> None:
    model = scripted_model(*[f"\n<<adder: {n}+1>>" for n in range(3)], "\nso <<adder: 9+9>>\nAnswer: 3")

    done = drive(lambda: solve("?", SPECS, SolveOptions(limits=SolveLimits(max_tool_calls=2))), model, tools=[ADDER])

    assert (done.value.ending, done.value.complete) == ("calls", False)
    assert [call.input for call in done.value.calls] == ["0+1", "1+1"]
    assert done.value.answer == "3"
    assert done.transcript == done.value.text


@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, BARE])
def test_a_call_that_failed_is_not_answered_again_and_the_model_finishes_without_tools(
    drive: Drive, capabilities: frozenset[Capability]
) -> None:
    model = scripted_model("<<adder: x>>", "Again:\n<<adder: x>>", "Answer: 4", capabilities=capabilities - {"tools"})

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.ending, done.value.answer, done.value.answered_by) == ("repeat", "4", "line")
    assert [call.result.error for call in done.value.calls] == ["syntax", "repeat"]
    assert done.transcript == done.value.text


def test_an_error_in_a_text_has_no_number_that_could_pass_for_a_result(drive: Drive) -> None:
    model = scripted_model("<<adder: x>>", "Answer: 4")

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert done.value.text == "<<adder: x>> error: not a sum\nAnswer: 4"
    assert done.value.calls[0].result.text == "error: not a sum (write 1+2)"


@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, BARE, NATIVE])
def test_twelve_calls_end_as_calls_with_an_answer(drive: Drive, capabilities: frozenset[Capability]) -> None:
    model = scripted_model(*[f"<<adder: {n}+0>>" for n in range(11)], "It is 11.", capabilities=capabilities)

    done = drive(
        lambda: solve("?", SPECS, SolveOptions(tool_mode=None if capabilities != NATIVE else "stop")),
        model,
        tools=[ADDER],
    )

    assert (done.value.ending, len(done.value.calls), done.value.answer) == ("calls", 10, "11")


def test_a_limit_on_calls_of_the_run_ends_as_one_of_the_rationale(drive: Drive) -> None:
    model = scripted_model("<<adder: 1+1>>", " <<adder: 2+2>>", " So 4.")

    value = Runtime(model, tools=[ADDER], limits=UsageLimits(tool_calls=1)).run(solve("?", SPECS))

    assert (value.ending, value.answer, len(value.calls)) == ("calls", "4", 1)


def test_another_limit_of_the_run_ends_the_rationale_where_it_is() -> None:
    model = scripted_model("<<adder: 1+1>>", " <<adder: 2+2>>", " So 4.")

    *events, done = Runtime(model, tools=[ADDER], limits=UsageLimits(requests=2)).stream(solve("?", SPECS))

    assert isinstance(done, RunResult)
    assert (done.value.ending, done.value.answer, len(done.value.calls)) == ("limit", "", 2)
    assert any(getattr(event, "code", "") == "limit" for event in events)


def test_a_limit_before_the_first_word_is_an_error() -> None:
    with pytest.raises(LimitError):
        Runtime(scripted_model("never"), limits=UsageLimits(requests=0)).run(solve("?", SPECS))


def test_the_same_call_is_done_once_and_the_fourth_time_is_the_end(drive: Drive) -> None:
    adder = Adder()
    model = scripted_model(*["\n<<adder: 2+2>>"] * 9, capabilities=NO_STOP)

    done = drive(lambda: solve("?", SPECS), model, tools=[adder])

    assert done.value.ending == "repeat"
    assert adder.asked == ["2+2"]
    assert [call.result.origin for call in done.value.calls] == ["tool", "memo", "memo", "tool"]
    assert done.value.calls[-1].result.error == "repeat"
    assert [note.code for note in done.notes if note.code in ("memo", "repeat")] == ["memo", "memo", "repeat"]


def test_no_more_tokens_are_asked_for_than_are_left(drive: Drive) -> None:
    model = scripted_model("<<adder: 1+1>>", " <<adder: 2+2>>", usage=Usage(9, 30))

    done = drive(lambda: solve("?", SPECS, SolveOptions(limits=SolveLimits(max_tokens=50))), model, tools=[ADDER])

    assert [request.sampling.max_tokens for request in model.requests] == [50, 20]
    assert (done.value.ending, done.value.complete) == ("tokens", False)


@pytest.mark.parametrize("finish", ["length", "interrupted", "refusal"])
def test_an_answer_that_breaks_off_says_so(drive: Drive, finish: FinishReason) -> None:
    model = scripted_model(FIRST, Response(assistant(" and"), finish), capabilities=NO_STOP)

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.text, done.value.ending, done.value.answer) == (f"{FIRST} 4\n and", finish, "")


def test_a_refusal_at_once_is_an_error(drive: Drive) -> None:
    with pytest.raises(RefusalError):
        drive(lambda: solve("?", SPECS), scripted_model(Response(assistant(""), "refusal")))


@pytest.mark.parametrize("hostile", ["<<adder: 1+1>>", "```\n", "`", "a\n<<adder: 1+1>>\n", ">>", "9" * 2000, ""])
def test_a_result_starts_no_call_and_opens_no_code(drive: Drive, hostile: str) -> None:
    echo = Echo(hostile)
    model = scripted_model("<<echo:>>", " then <<adder: 2+2>>", " so 4.", capabilities=NO_STOP)

    done = drive(lambda: solve("?", (*SPECS, echo.spec)), model, tools=[ADDER, echo])

    assert [call.name for call in done.value.calls] == ["echo", "adder"]
    assert done.value.calls[0].result.text == hostile
    assert "\n" not in done.value.parts[1].text.removesuffix("\n")
    assert len(done.value.parts[1].text) <= 502


def test_shots_and_tools_stand_before_the_question(drive: Drive) -> None:
    model = scripted_model("4")
    shots = (user("1+1?"), assistant("<<adder: 1+1>> 2"))

    drive(lambda: solve("{tools}?", SPECS, SolveOptions(shots=shots)), model)

    head, *rest = model.requests[0].messages
    assert head.role == system("").role
    assert "<<adder: sum>>: Add numbers." in head.text
    assert rest == [*shots, user("{tools}?")]


def test_first_words_can_be_others_or_none(drive: Drive) -> None:
    brief, none = scripted_model("4"), scripted_model("4")

    drive(lambda: solve("?", SPECS, SolveOptions(system="Be brief.")), brief)
    drive(lambda: solve("?", (), SolveOptions(system="")), none)

    assert brief.requests[0].messages[0].text.startswith("Be brief.\n\nWhere you need a tool")
    assert none.requests[0].messages == (user("?"),)


def bodies(model: ScriptedModel, dialect: str) -> list[str]:
    """The messages of each request as they go over the wire, without what closes them."""
    codec = ChatCompletions("m", DIALECTS[dialect], capabilities(dialect, "m"))
    return [json.dumps(json.loads(codec.encode(each).body)["messages"], ensure_ascii=False) for each in model.requests]


@pytest.mark.parametrize(("way", "dialect"), [("prefill", "llamacpp"), ("stop", "ollama"), ("native", "vllm")])
def test_every_request_begins_with_the_bytes_of_the_one_before(drive: Drive, way: ToolMode, dialect: str) -> None:
    def answer(request: Request) -> str | Response:
        step = len(model.requests)
        if way != "native" or step == 4:
            return f"\nstep {step}: <<adder: {step}+1>>" if step < 4 else "\nIt is 5."
        return called("adder", sum=f"{step}+1")

    model = scripted_model(*[answer] * 4)

    drive(lambda: solve("?", SPECS, SolveOptions(tool_mode=way)), model, tools=[ADDER])

    sent = bodies(model, dialect)
    assert len(sent) == 4
    for before, after in pairwise(sent):
        assert after.startswith(before.rstrip('"}]'))


def called(name: str, **arguments: str) -> Response:
    return Response(Message("assistant", (ToolCall(name, json.dumps(arguments), "x"),)), "tool_calls")


ANSWER = joined(
    [
        "<<adder: 1+2>>",
        "<<adder: x>>",
        "<<no:1>>",
        "<<",
        ">>",
        "`",
        "\n",
        " so",
        " 7",
        "```\n",
        "<<adder: 5+",
        "Action: adder[1+1]",
    ],
    max_size=5,
)


@given(
    st.lists(ANSWER, max_size=6),
    st.sampled_from([ALL_CAPABILITIES, NO_STOP, ALL_CAPABILITIES - {"prefix", "tools"}, BARE]),
    st.integers(1, 9),
    st.sampled_from(["report", "let_model_answer", "stop"]),
    st.sampled_from(sorted(TOOL_CALL_FORMATS)),
)
def test_every_rationale_ends_and_shows_what_was_said(
    answers: list[str], capabilities: frozenset[Capability], chunk: int, trouble: OnToolError, name: str
) -> None:
    model = scripted_model(*answers, *["That is all: 1."] * 30, capabilities=capabilities, chunk=chunk)
    program = solve(
        "?",
        SPECS,
        SolveOptions(
            calls=CallPolicy(trouble, trouble),
            limits=SolveLimits(max_tool_calls=3),
            tool_format=tool_call_format(name),
        ),
    )

    events = list(Runtime(model, tools=[ADDER]).stream(program))

    done = events[-1]
    assert isinstance(done, RunResult)
    assert isinstance(done.value, Rationale)
    assert len(done.value.calls) <= 3
    assert len(model.requests) <= 1 + 3 + 1 + 20 + 1
    assert transcript(events[:-1]) == done.value.text
