"""Few-shot files as MultiTool-CoT writes them, with text and numbers of these tests."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.apps.examples import ExampleCall, read_shots, read_transcripts, render, results, wrong_results
from taiwa.flows.solve.tool_call_formats import TOOL_CALL_FORMATS, InlineFormat, TaggedFormat, tool_call_format
from taiwa.kernel.errors import InputError
from taiwa.tools.registry import builtin_tools

FILE = """\
Answer with these tools:
・<< Calculator >>
・<< Chemical reaction predictor >>

Q: How much oxygen do 4 moles of sulfur dioxide take up on their way to the trioxide?
A: First, the equation.
Reactants: 4SO2, ?O2
Products: ?SO3
<< Chemical reaction predictor >>
4SO2 + 2O2 → 4SO3

Therefore, 2 moles of O2 are taken up.

Q: Which part of water
is hydrogen?
A: First, the molar mass of water.
H2O << Molar mass list >> 18 g/mol

Second, the share of two hydrogen atoms.
1 x 2 / 18 x 100 = << Calculator >> 11.12

Therefore, it is 11.12%.
"""
RESULTS = results(builtin_tools().values(), TaggedFormat())


def test_questions_are_read_with_their_calls_and_the_results_that_were_recorded() -> None:
    oxygen, hydrogen = read_transcripts(FILE, "own.txt")

    assert (oxygen.id, hydrogen.id) == ("5", "14")
    assert hydrogen.question == "Which part of water\nis hydrogen?"
    assert oxygen.parts == (
        "First, the equation.\n",
        ExampleCall("stoichiometry", "4SO2 + ?O2 -> ?SO3", "4SO2 + 2O2 → 4SO3"),
        "\n\nTherefore, 2 moles of O2 are taken up.",
    )
    assert [part for part in hydrogen.parts if isinstance(part, ExampleCall)] == [
        ExampleCall("molar_mass", "H2O", "18 g/mol"),
        ExampleCall("calculator", "1 x 2 / 18 x 100", "11.12"),
    ]
    assert (oxygen.answer, hydrogen.answer) == ("2", "11.12")


def test_in_its_own_protocol_an_example_is_shown_byte_for_byte() -> None:
    shown = [render(worked, InlineFormat(), RESULTS) for worked in read_transcripts(FILE, "own.txt")]

    blocks = "\n\n".join(f"Q: {question.text}\nA: {answer.text}" for question, answer in shown)
    assert blocks == FILE.partition("\n\n")[2].rstrip("\n")


def test_in_another_protocol_its_calls_are_written_anew() -> None:
    _, hydrogen = read_transcripts(FILE, "own.txt")

    assert render(hydrogen, TaggedFormat(), RESULTS)[1].text == (
        "First, the molar mass of water.\n<<molar_mass: H2O>> 18 g/mol\n\nSecond, the share of two hydrogen atoms.\n"
        "<<calculator: 1 x 2 / 18 x 100>> 11.12\n\nTherefore, it is 11.12%."
    )


def test_a_recorded_result_that_the_tool_does_not_give_is_found() -> None:
    right, wrong = (read_transcripts(text, "own.txt") for text in (FILE, FILE.replace("11.12", "12.11")))

    ((worked, step, given),) = wrong_results(wrong, RESULTS)

    assert (worked.id, step.tool, step.result, given) == ("14", "calculator", "12.11", "11.1111")
    assert list(wrong_results(right, RESULTS)) == []


@pytest.mark.parametrize(
    ("recorded", "agrees"),
    [
        ("2O2 + 4SO2 → 4SO3", True),
        ("4SO2 + 2O2 -> 4SO3", True),
        ("4SO2 + 3O2 → 4SO3", False),
        ("4SO2 + 2O2", False),
    ],
)
def test_the_terms_of_a_recorded_equation_may_stand_in_any_order(recorded: str, agrees: bool) -> None:
    text = f"Q: ?\nA: 4SO2 + ?O2 -> ?SO3 << Chemical reaction predictor >> {recorded}\nSo 2."

    assert bool(list(wrong_results(read_transcripts(text, "own.txt"), RESULTS))) is not agrees


def test_a_call_that_its_tool_refuses_is_found() -> None:
    examples = read_transcripts("Q: ?\nA: 1/0 = << Calculator >> 0\nSo 0.", "own.txt")

    assert [given for _, _, given in wrong_results(examples, RESULTS)] == ["error: division by zero"]


def test_braces_of_a_file_are_no_references(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("Q: x{1}?\nA: It is {1}, {2:H2O} and {{3}: so 4.\n", encoding="utf-8")

    (worked,) = read_shots(path)

    for name in TOOL_CALL_FORMATS:
        assert render(worked, tool_call_format(name), RESULTS)[1].text == "It is {1}, {2:H2O} and {{3}: so 4."


def test_signs_of_japanese_and_chinese_texts_and_of_other_systems_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(
        "\ufeffＱ：１個50円のりんご3個は？\r\nＡ：式は\r\n50 × 3 << Calculator >> 150\r\n答えは150円。\r\n".encode()
    )

    (worked,) = read_shots(path)

    assert worked.question == "１個50円のりんご3個は？"
    assert worked.parts[1] == ExampleCall("calculator", "50 × 3", "150")
    assert worked.answer == "150"


def test_the_question_that_a_prompt_leaves_open_is_left_out() -> None:
    assert read_transcripts(FILE + "\nQ: And next?\nA:\n", "own.txt") == read_transcripts(FILE, "own.txt")
    assert read_transcripts(FILE + "\nQ: And next?", "own.txt") == read_transcripts(FILE, "own.txt")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "own.txt: the file has no worked example"),
        ("Use the tools.\nQ: open?\nA:", "own.txt: the file has no worked example"),
        ("Q: a?\nQ: b?\nA: 1", "own.txt:1: a question without an answer"),
        ("Q: a?\nA:\n\nQ: b?\nA: 1", "own.txt:1: a question without an answer"),
        ("Q:\nA: 1", "own.txt:1: an empty question"),
        ("A: 1", "own.txt:1: an answer without a question"),
        ("Q: a?\nA: 1\nA: 2", "own.txt:3: an answer without a question"),
        ("Q: a?\nA: One.\n1+1 << Calculator 2\nSo 2.", "own.txt:3: a call is not closed: '<< Calculator 2'"),
        ("Q: a?\nA: 1+1 << Calculator >> 2", "own.txt:2: an answer without text"),
    ],
)
def test_a_problem_is_reported_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InputError) as error:
        read_transcripts(text, "own.txt")

    assert error.value.message.startswith(complaint)


lines = st.text(st.sampled_from("ab 12+=:.{}→\n")).map(str.strip).filter(bool)


@given(st.lists(st.tuples(lines, lines), min_size=1, max_size=5))
def test_every_text_of_questions_and_answers_comes_back(pairs: list[tuple[str, str]]) -> None:
    text = "\n\n".join(f"Q: {question}\nA: {answer}" for question, answer in pairs)

    read = [render(worked, InlineFormat(), RESULTS) for worked in read_transcripts(text, "own.txt")]

    assert [(question.text, answer.text) for question, answer in read] == pairs
