import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.apps.examples import (
    ExampleCall,
    WorkedExample,
    escape_references,
    evaluate_parts,
    render,
    render_answer_only,
    render_native,
    select_examples,
)
from taiwa.flows.solve.solve import last_number
from taiwa.flows.solve.tool_call_formats import TOOL_CALL_FORMATS, CallText, decode, tool_call_format
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text, ToolCall, ToolResult, assistant, user
from taiwa.kernel.serialization import Json

RESULTS = {
    ("molar_mass", "CO2"): "44.009 g/mol",
    ("calculator", "3 × 44.009"): "132.027",
    ("stoichiometry", "?H2 + O2 -> ?H2O"): "2H2 + O2 -> 2H2O",
}
GAS = WorkedExample(
    "gas",
    "mass",
    "What do three moles of CO2 weigh?",
    (
        "One mole weighs:\n",
        ExampleCall("molar_mass", "CO2"),
        "\nAll of it:\n",
        ExampleCall("calculator", "3 × {1}"),
        "\nSo {2:1} g.",
    ),
    "132.0",
)


def result_of(name: str, text: str) -> str:
    return RESULTS[name, text]


def arguments_of(name: str, text: str) -> dict[str, Json]:
    return {"input": text}


def test_results_are_put_where_words_and_inputs_refer_to_them() -> None:
    assert evaluate_parts(GAS, result_of) == (
        "One mole weighs:\n",
        ExampleCall("molar_mass", "CO2", "44.009 g/mol"),
        "\nAll of it:\n",
        ExampleCall("calculator", "3 × 44.009", "132.027"),
        "\nSo 132.0 g.",
    )
    assert last_number(render_answer_only(GAS, result_of)[1].text) == "132.0"


@pytest.mark.parametrize(
    ("reference", "number"),
    [("{1}", "2"), ("{1:3}", "2.000"), ("{1:O2}", "1"), ("{1:H2O}", "2"), ("{{1}", "{1}"), ("{x}", "{x}")],
)
def test_a_reference_names_a_number_of_a_result(reference: str, number: str) -> None:
    worked = WorkedExample("w", "", "?", (ExampleCall("stoichiometry", "?H2 + O2 -> ?H2O"), f" so {reference}"))

    assert evaluate_parts(worked, result_of)[-1] == f" so {number}"


@pytest.mark.parametrize("reference", ["{2}", "{1:He}", "{1:H}"])
def test_a_reference_to_nothing_is_an_error_that_names_the_example(reference: str) -> None:
    worked = WorkedExample("w", "", "?", (ExampleCall("stoichiometry", "?H2 + O2 -> ?H2O"), reference))

    with pytest.raises(InputError, match="worked example w"):
        evaluate_parts(worked, result_of)


@given(st.text(st.sampled_from("{}1:2a ")), st.text(st.sampled_from("{}1:2a ")))
def test_a_literal_text_refers_to_nothing(text: str, more: str) -> None:
    worked = WorkedExample("w", "", "?", (ExampleCall("molar_mass", "CO2"), escape_references(text + more)))

    assert evaluate_parts(worked, result_of)[-1] == text + more


def test_an_example_is_a_question_and_a_rationale() -> None:
    assert render(GAS, tool_call_format("tagged"), result_of) == (
        user("What do three moles of CO2 weigh?"),
        assistant(
            "One mole weighs:\n<<molar_mass: CO2>> 44.009 g/mol\nAll of it:\n<<calculator: 3 × 44.009>> 132.027\nSo 132.0 g."
        ),
    )


def test_a_tool_that_is_not_shown_is_stated_in_words() -> None:
    text = render(GAS, tool_call_format("tagged"), result_of, {"calculator"})[1].text

    assert text == "One mole weighs:\nCO2: 44.009 g/mol\nAll of it:\n<<calculator: 3 × 44.009>> 132.027\nSo 132.0 g."


@pytest.mark.parametrize("name", TOOL_CALL_FORMATS)
def test_no_tool_shown_means_no_call_in_any_protocol(name: str) -> None:
    text = render(GAS, tool_call_format(name), result_of, ())[1].text

    assert text == "One mole weighs:\nCO2: 44.009 g/mol\nAll of it:\n3 × 44.009 = 132.027\nSo 132.0 g."


@pytest.mark.parametrize("name", TOOL_CALL_FORMATS)
def test_what_a_protocol_writes_it_reads_as_the_same_calls(name: str) -> None:
    codec = tool_call_format(name)

    text = render(GAS, codec, result_of)[1].text

    calls = [(event.name, event.input) for event in decode(text, codec, GAS.tools) if isinstance(event, CallText)]
    expected = [("molar_mass", "CO2"), ("calculator", "3 × 44.009")]
    assert calls == (expected[1:] if name == "gsm" else expected)


@pytest.mark.parametrize("given", ["1 >> 2", "a\nb", "]\n[", "```\n```"])
@pytest.mark.parametrize("name", TOOL_CALL_FORMATS)
def test_a_call_that_would_be_read_as_another_is_not_written(name: str, given: str) -> None:
    worked = WorkedExample("w", "", "?", (ExampleCall("calculator", given, "3"), "\nSo 3."))
    codec = tool_call_format(name)

    text = render(worked, codec, result_of)[1].text

    calls = [event.input for event in decode(text, codec, ["calculator"]) if isinstance(event, CallText)]
    assert calls in ([], [given])
    assert text.endswith("So 3.")


def test_a_recorded_result_is_shown_as_it_was() -> None:
    worked = WorkedExample("w", "", "?", (ExampleCall("molar_mass", "CO2", "44 g/mol"), "\nSo {1}."))

    assert render(worked, tool_call_format("tagged"), result_of)[1].text == "<<molar_mass: CO2>> 44 g/mol\nSo 44."


def test_an_example_that_was_read_from_a_text_stays_that_text_in_its_protocol() -> None:
    worked = WorkedExample(
        "w",
        "",
        "?",
        (ExampleCall("calculator", "1+1", "2"), "\nSo 2."),
        "2",
        "inline",
        "1+1 = << Calculator >> 2\nSo 2.",
    )

    assert render(worked, tool_call_format("inline"), result_of)[1].text == worked.written
    assert render(worked, tool_call_format("tagged"), result_of)[1].text == "<<calculator: 1+1>> 2\nSo 2."
    assert render(worked, tool_call_format("inline"), result_of, ())[1].text == "1+1 = 2\nSo 2."


def test_a_native_example_is_messages_with_calls_and_their_results() -> None:
    question, first, given, second, computed, last = render_native(GAS, result_of, arguments_of)

    assert question == user(GAS.question)
    assert first == Message("assistant", (Text("One mole weighs:"), ToolCall("molar_mass", '{"input":"CO2"}', "gas-2")))
    assert given == Message("tool", (ToolResult("44.009 g/mol", "molar_mass", "gas-2"),))
    assert second.tool_calls == (ToolCall("calculator", '{"input":"3 × 44.009"}', "gas-4"),)
    assert computed.parts == (ToolResult("132.027", "calculator", "gas-4"),)
    assert last == assistant("So 132.0 g.")


def test_without_its_rationale_an_example_is_a_question_and_its_last_line() -> None:
    assert render_answer_only(GAS, result_of) == (user(GAS.question), assistant("So 132.0 g."))


EXAMPLES = [WorkedExample(str(number), f"kind {number % 4}", "?", ("!",)) for number in range(20)]


@given(st.integers(), st.integers(0, 20), st.integers(0, 20), st.permutations(EXAMPLES))
def test_a_choice_begins_with_every_smaller_one(seed: int, n: int, m: int, examples: list[WorkedExample]) -> None:
    small, large = sorted((n, m))

    assert select_examples(examples, large, seed)[:small] == select_examples(EXAMPLES, small, seed)


@given(st.integers())
def test_the_kinds_take_turns(seed: int) -> None:
    chosen = select_examples(EXAMPLES, 8, seed)

    assert len({worked.kind for worked in chosen[:4]}) == len({worked.kind for worked in chosen[4:]}) == 4
    assert len({worked.id for worked in select_examples(EXAMPLES, 20, seed)}) == 20


def test_another_seed_gives_another_order() -> None:
    assert len({select_examples(EXAMPLES, 5, seed) for seed in range(10)}) > 5


@pytest.mark.parametrize("n", [-1, 21])
def test_more_than_there_are_cannot_be_chosen(n: int) -> None:
    with pytest.raises(InputError, match="n must be 0 to 20, the number of worked examples"):
        select_examples(EXAMPLES, n)
