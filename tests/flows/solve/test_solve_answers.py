"""Where the answer of a rationale comes from."""

from dataclasses import dataclass

import pytest

from taiwa.flows.solve.rationale import AnswerSource
from taiwa.flows.solve.solve import ANSWER_EXAMPLES, SolveOptions, solve
from taiwa.flows.solve.tool_call_formats import tool_call_format
from taiwa.kernel.errors import ModelError, UnsupportedError
from taiwa.kernel.messages import Capability, Response, assistant
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import scripted_model
from tests.flows.driving import Drive
from tests.flows.solve.abacus import BARE, SPECS

HELD: frozenset[Capability] = frozenset({"json_schema", "prefix"})


@dataclass
class Weight:
    grams: int


def test_the_last_line_answers_without_a_call(drive: Drive) -> None:
    model = scripted_model("First 3.\nSo it is 1,225 g.")

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.answer, done.value.answered_by, len(model.requests)) == ("1225", "line", 1)


def test_a_line_without_a_number_is_read_by_a_second_prompt(drive: Drive) -> None:
    model = scripted_model("3 and 22 are\ntwenty-five.", "25")

    done = drive(lambda: solve("?", SPECS), model)

    assert (done.value.answer, done.value.answered_by) == ("25", "prompt")
    *_, asked = model.requests[1].messages
    assert asked.text == "3 and 22 are\ntwenty-five."
    assert len(model.requests[1].messages) == 1 + 2 * len(ANSWER_EXAMPLES) + 1
    assert done.shown == "3 and 22 are\ntwenty-five."


def test_a_rationale_without_an_answer_has_none(drive: Drive) -> None:
    done = drive(lambda: solve("?", SPECS), scripted_model("I do not know.", "none"))

    assert (done.value.answer, done.value.answered_by) == ("", "none")


def test_a_typed_answer_is_asked_for_where_the_server_can_be_held_to_it(drive: Drive) -> None:
    model = scripted_model("It weighs 25 g.", '{"grams": 25}', capabilities=HELD)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.value, done.value.answered_by, done.value.answer) == ({"grams": 25}, "typed", '{"grams":25}')
    assert model.requests[1].constraint is not None


def test_a_typed_answer_is_read_from_the_last_line_elsewhere(drive: Drive) -> None:
    model = scripted_model('So:\n{"grams": 25}', capabilities=BARE)

    done = drive(lambda: solve("How heavy?", SPECS, SolveOptions(output_type=Weight)), model)

    assert (done.value.value, done.value.answered_by, len(model.requests)) == ({"grams": 25}, "typed", 1)


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
    done = drive(lambda: solve("?", SPECS), scripted_model("twenty-five", Response(assistant("25"), "length")))

    assert done.value.answered_by == "none"
