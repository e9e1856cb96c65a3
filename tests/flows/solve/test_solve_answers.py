"""Where the answer of a rationale comes from."""

from dataclasses import dataclass

import pytest

from taiwa.flows.solve.rationale import AnswerSource, CallPolicy
from taiwa.flows.solve.solve import ASK_ANSWER, SolveOptions, read_statement, solve, stated_answer
from taiwa.flows.solve.tool_call_formats import tool_call_format
from taiwa.kernel.errors import ModelError, ToolError, UnsupportedError
from taiwa.kernel.messages import Capability, FinishReason, Message, Response, ToolCall, assistant, user
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from tests.flows.driving import Drive
from tests.flows.solve.abacus import ADDER, BARE, NATIVE, SPECS, Echo

HELD: frozenset[Capability] = frozenset({"json_schema", "prefix"})


@dataclass
class Weight:
    grams: int


def test_the_last_line_answers_without_a_call(drive: Drive) -> None:
    model = scripted_model("First 3.\nSo it is 1,225 g.")

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.answer, done.value.answered_by, len(model.requests)) == ("1225", "line", 1)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: 12 g", "12"),
        ("It is 3.\n**Answer:** $1,250 in 2 parts", "1250"),
        ("### Answer: 3 × 31.998 = 95.994 g of O2", "95.994"),
        ("Answer: 6.67 L/100 km", "6.67"),
        ("Answer:\n\n6.02 × 10^23", "6.02e23"),
        ("Answer: 1\nNo, 3 are left.\nAnswer: 2", "2"),
        ("Answer: 2H2 + O2 -> 2H2O", "2H2 + O2 -> 2H2O"),
        ("Answer: Tuesday", "Tuesday"),
        ("Answer: 23:10", "23:10"),
        ("Answer: 2026-11-28", "2026-11-28"),
        ("So $$\\boxed{\\frac{7}{27}}$$ of it.", "7/27"),
        (r"\boxed{1{,}250\text{ kg}}", "1250"),
        (r"Answer: \boxed{22:25}", "22:25"),
        (r"So \boxed{8:45\text{ PM}}.", "8:45 PM"),
        ("答えは次のとおり。\nAnswer: ２５個", "25"),
        ("The answer is 5.", ""),
    ],
)
def test_the_last_statement_in_the_form_that_was_asked_for_is_the_answer(text: str, answer: str) -> None:
    assert stated_answer(text) == answer


def test_a_statement_that_is_no_quantity_is_the_answer_as_it_is() -> None:
    assert read_statement("CuSO4·5H2O") == "CuSO4·5H2O"


@pytest.mark.parametrize("text", ["3 and 22 are\ntwenty-five.", "So 1,250 kg are delivered in 2 loads."])
def test_a_model_that_states_no_single_number_continues_the_line_of_the_answer(drive: Drive, text: str) -> None:
    model = scripted_model(text, " 25 kg")

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.answer, done.value.answered_by) == ("25", "prompt")
    assert (model.requests[1].prefix, model.requests[1].stop) == (f"{text}\nAnswer:", ("\n",))
    assert done.value.text == f"{text}\nAnswer: 25 kg"


@pytest.mark.parametrize("capabilities", [BARE, NATIVE])
def test_a_model_that_cannot_continue_a_line_is_asked_for_it(drive: Drive, capabilities: frozenset[Capability]) -> None:
    model = scripted_model("twenty-five", "Answer: 25 kg", capabilities=capabilities)

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.answer, done.value.answered_by) == ("25", "prompt")
    assert model.requests[1].messages[-1].text == ASK_ANSWER


def test_a_model_that_states_nothing_gives_no_answer(drive: Drive) -> None:
    done = drive(lambda: solve("?", SPECS), scripted_model("I do not know.", " None."))

    assert (done.value.answer, done.value.answered_by) == ("", "none")


@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, BARE])
@pytest.mark.parametrize("inserted", ["7", ToolError("use 5 or 6", hint="for example 1+2")])
def test_an_inserted_text_is_never_the_answer(
    drive: Drive, inserted: str | ToolError, capabilities: frozenset[Capability]
) -> None:
    echo = Echo(inserted)
    model = scripted_model("It is <<echo:>>", "", " 40 g", capabilities=capabilities - {"tools"})

    done = drive(lambda: solve("?", [echo.spec]), model, tools=[echo])

    assert (done.value.answer, done.value.answered_by) == ("40", "prompt")


def test_a_repeated_error_is_no_answer(drive: Drive) -> None:
    model = scripted_model("<<adder: x>>", "Answer: error: not a sum", " not a sum")

    done = drive(lambda: solve("?", SPECS), model, tools=[ADDER])

    assert (done.value.answer, done.value.answered_by) == ("", "none")


@pytest.mark.parametrize("finish", ["stop", "repetition"])
@pytest.mark.parametrize("capabilities", [ALL_CAPABILITIES, BARE, NATIVE])
def test_a_question_whose_last_call_failed_is_solved_again_without_tools(
    drive: Drive, capabilities: frozenset[Capability], finish: FinishReason
) -> None:
    first = "<<adder: x>>"
    if capabilities == NATIVE:
        first = Response(Message("assistant", (ToolCall("adder", '{"sum": "x"}', "a"),)), "tool_calls")
    failed = Response(assistant("Answer: 0"), finish)
    model = scripted_model(first, failed, "Two and two.\nAnswer: 4", capabilities=capabilities)

    shots = (user("1+1?"), assistant("Answer: 2")) if capabilities != NATIVE else ()
    options = SolveOptions(shots=shots, calls=CallPolicy(retry_without_tools=True))
    done = drive(lambda: solve("2+2?", SPECS, options), model, tools=[ADDER])

    assert (done.value.answer, done.value.answered_by, done.value.ending) == ("4", "line", "end")
    assert done.value.text.endswith("\nAnswer: 0\n\nTwo and two.\nAnswer: 4")
    assert done.transcript == done.value.text
    again = model.requests[-1]
    assert ([message.role for message in again.messages], again.tools, again.prefix) == (["system", "user"], (), "")
    assert "adder" not in again.messages[0].text


def test_a_typed_answer_is_asked_for_where_the_server_can_be_held_to_it(drive: Drive) -> None:
    model = scripted_model("It weighs 25 g.", '{"grams": 25}', capabilities=HELD)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.value, done.value.answered_by, done.value.answer) == ({"grams": 25}, "typed", '{"grams":25}')
    assert model.requests[1].constraint is not None


def test_a_typed_answer_is_read_from_the_statement_elsewhere(drive: Drive) -> None:
    model = scripted_model('So:\nAnswer: {"grams": 25}', capabilities=BARE)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.value, done.value.answered_by, len(model.requests)) == ({"grams": 25}, "typed", 1)


def test_a_statement_without_the_type_is_asked_for_with_it_checked_and_repaired(drive: Drive) -> None:
    model = scripted_model("Answer: 25 g", '{"weight": 25}', '{"grams": 25}', capabilities=BARE)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.value, done.value.answered_by) == ({"grams": 25}, "typed")
    assert any("grams" in message.text for message in model.requests[1].messages[:1])


def test_a_number_is_a_type_as_well(drive: Drive) -> None:
    done = drive(
        lambda: solve("How heavy?", SPECS, SolveOptions(output_type=float)),
        scripted_model("It weighs 25 g.", "25.0", capabilities=HELD),
    )

    assert (done.value.value, done.value.answer, done.value.answered_by) == (25.0, "25", "typed")


@pytest.mark.parametrize("capabilities", [BARE, HELD])
def test_where_no_value_can_be_read_the_line_answers(drive: Drive, capabilities: frozenset[Capability]) -> None:
    model = scripted_model("It weighs 25 g.", "no", "no", capabilities=capabilities)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.answer, done.value.answered_by, done.value.value) == ("25", "line", None)
    assert [note.level for note in done.notes if note.code == "answer"] == ["warning"]


def test_a_model_that_turns_out_to_write_no_values_has_its_last_line_read(drive: Drive) -> None:
    never = UnsupportedError("it writes none", capability="json_schema")
    model = scripted_model("It weighs 25 g.", never, never, capabilities=HELD)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=float)), model)

    assert (done.value.value, done.value.answered_by) == (25.0, "typed")


@pytest.mark.parametrize(
    ("ways", "by", "asked"),
    [(("prompt",), "prompt", 2), (("line",), "line", 1), ((), "none", 1), (("typed",), "none", 1)],
)
def test_the_ways_to_an_answer_can_be_chosen(
    drive: Drive, ways: tuple[AnswerSource, ...], by: AnswerSource, asked: int
) -> None:
    model = scripted_model("It is 25.", "25")

    done = drive(lambda: solve("?", SPECS, SolveOptions(answer_by=ways)), model)

    assert (done.value.answered_by, len(model.requests)) == (by, asked)


def test_a_second_prompt_that_a_limit_refuses_leaves_the_rationale() -> None:
    done = Runtime(scripted_model("twenty-five"), limits=UsageLimits(requests=1)).run(solve("?", SPECS))

    assert (done.text, done.answered_by, done.ending) == ("twenty-five", "none", "end")


def test_a_second_prompt_that_fails_is_an_error_and_no_missing_answer(drive: Drive) -> None:
    with pytest.raises(ModelError, match="gone"):
        drive(lambda: solve("?", SPECS), scripted_model("twenty-five", ModelError("gone")))


def test_an_answer_that_a_protocol_marks_is_the_answer(drive: Drive) -> None:
    model = scripted_model("Thought 1: easy\nAction 1: Finish[25 g]\n", capabilities=BARE)

    done = drive(lambda: solve("?", SPECS, SolveOptions(tool_format=tool_call_format("react"))), model)

    assert (done.value.answer, done.value.answered_by, done.value.ending) == ("25", "line", "end")


def test_a_second_answer_that_breaks_off_is_none(drive: Drive) -> None:
    done = drive(lambda: solve("?", SPECS), scripted_model("twenty-five", Response(assistant(" 25"), "length")))

    assert done.value.answered_by == "none"
