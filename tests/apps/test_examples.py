"""Worked examples: the built-in ones are correct and balanced; files of users are read, or refused with a line."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from taiwa.apps.examples import (
    ExampleCall,
    WorkedExample,
    built_in_examples,
    evaluate_parts,
    read_shots,
    render,
    render_answer_only,
    render_native,
    results,
    usable,
    wrong_results,
)
from taiwa.flows.solve.solve import last_number
from taiwa.flows.solve.tool_call_formats import TOOL_CALL_FORMATS, CallText, TaggedFormat, decode, tool_call_format
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.serialization import Json
from taiwa.tools.expressions import calculate
from taiwa.tools.registry import builtin_tools
from tests.house.source import ROOT

TOOLS = builtin_tools()
EXAMPLES = built_in_examples()
CORE = ("calculator", "molar_mass", "stoichiometry")
GRAM = 8
EQUATION = re.compile(r"(?<![\w.])([\d.,]+(?: [+−×/-] [\d.,]+)+) = ([\d.,]*\d)")
WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
named = pytest.mark.parametrize("worked", EXAMPLES, ids=lambda worked: worked.id)


@cache
def given(name: str, text: str) -> str:
    """What the real tools give."""
    return results(TOOLS.values(), TaggedFormat())(name, text)


@named
def test_an_example_comes_to_its_answer_by_the_real_tools(worked: WorkedExample) -> None:
    assert last_number(render_answer_only(worked, given)[1].text) == worked.answer


@named
def test_the_answer_is_what_the_last_tool_or_the_last_words_worked_out(worked: WorkedExample) -> None:
    done = evaluate_parts(worked, given)
    *_, last = done
    assert isinstance(last, str)

    found = [re.findall(r"-?\d[\d,.]*", each.result if isinstance(each, ExampleCall) else each) for each in done[:-1]]

    numbers = {float(number.replace(",", "").rstrip(".")) for each in found for number in each}
    places = len(worked.answer.partition(".")[2])
    assert float(worked.answer) in {round(number, places) for number in numbers} | numbers
    assert last.rpartition("\n")[2].startswith("Answer: ")


@named
def test_arithmetic_that_stands_in_words_is_right(worked: WorkedExample) -> None:
    words = " ".join(part for part in evaluate_parts(worked, given) if isinstance(part, str))

    for written, result in EQUATION.findall(words):
        assert calculate(written) == calculate(result), written


def as_object(worked: WorkedExample) -> dict[str, object]:
    """Return a worked example as the object of a line."""
    parts: list[object] = []
    for part in worked.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append({part.tool: part.input} | ({"result": part.result} if part.result else {}))
    return {"id": worked.id, "kind": worked.kind, "question": worked.question, "parts": parts, "answer": worked.answer}


def test_there_are_enough_for_every_sweep_and_some_need_no_tool() -> None:
    core = [worked for worked in EXAMPLES if set(worked.tools) <= set(CORE)]

    assert len(EXAMPLES) >= 30
    assert len(core) >= 20
    assert sum(not worked.tools for worked in EXAMPLES) >= 3
    assert len({worked.question for worked in EXAMPLES}) == len(EXAMPLES)


def test_calls_are_balanced_over_the_tools() -> None:
    used = Counter(tool for worked in EXAMPLES for tool in worked.tools)

    assert set(used) == set(TOOLS)
    assert max(used.values()) <= 2 * min(used.values())
    assert sum(len(worked.tools) > 1 for worked in EXAMPLES) >= 10


@pytest.mark.parametrize("name", TOOL_CALL_FORMATS)
def test_every_example_reads_as_the_same_calls_in_every_protocol(name: str) -> None:
    for worked in EXAMPLES:
        check_calls(worked, name)


def check_calls(worked: WorkedExample, name: str) -> None:
    """Check that an example in a format is read as the calls that it was written with."""
    codec = tool_call_format(name)

    text = render(worked, codec, given)[1].text

    wanted = [(part.tool, part.input) for part in evaluate_parts(worked, given) if isinstance(part, ExampleCall)]
    calls = [(event.name, event.input) for event in decode(text, codec, TOOLS) if isinstance(event, CallText)]
    if name == "gsm":
        wanted = [call for call in wanted if call[0] == "calculator"]
    elif name == "inline":  # before a call it reads the last formula of the line
        wanted = [call for call in wanted if " in " not in call[1]]
    assert (worked.id, calls, last_number(text)) == (worked.id, wanted, worked.answer)


@named
def test_an_example_reads_as_the_same_calls_natively(worked: WorkedExample) -> None:
    messages = render_native(worked, given, lambda name, text: TaggedFormat().parse_arguments(TOOLS[name].spec, text))

    for call, answer in zip(messages[1:-1:2], messages[2:-1:2], strict=True):
        (called,) = call.tool_calls
        (result,) = answer.parts
        assert isinstance(result, ToolResult)
        assert TOOLS[called.name].call(json.loads(called.arguments)).text == result.text
    assert last_number(messages[-1].text) == worked.answer


def test_no_example_repeats_a_shared_case(shared_data: Path) -> None:
    own: dict[tuple[str, ...], str] = {}
    for worked in EXAMPLES:
        for text in (worked.question, render(worked, TaggedFormat(), given)[1].text):
            own |= dict.fromkeys(grams(text), worked.id)
    questions = {plain(worked.question) for worked in EXAMPLES}
    shared = [text for path in sorted(shared_data.rglob("*")) if path.is_file() for text in texts(path)]

    assert len(shared) > 1_000
    assert not {own[gram] for text in shared for gram in grams(text) if gram in own}
    assert not questions & {plain(text) for text in shared}


def plain(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))


def grams(text: str) -> Iterator[tuple[str, ...]]:
    words = WORD.findall(text.lower())
    return (tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1))


def texts(path: Path) -> Iterator[str]:
    """Every string of a file of cases."""
    raw = path.read_bytes().decode("utf-8", errors="ignore")
    lines = raw.splitlines() if path.suffix == ".jsonl" else [raw]
    for line in lines:
        try:
            yield from strings(json.loads(line))
        except ValueError:
            yield line


def strings(data: Json) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (list, dict)):
        for item in data.values() if isinstance(data, dict) else data:
            yield from strings(item)


def test_examples_for_a_tool_that_is_not_there_are_not_usable() -> None:
    only = results([TOOLS["calculator"]], TaggedFormat())

    assert {tool for worked in usable(EXAMPLES, only) for tool in worked.tools} == {"calculator"}
    with pytest.raises(InputError, match="unknown tool 'molar_mass' in a worked example; tools: calculator"):
        only("molar_mass", "H2O")


def test_other_weights_are_followed_into_the_words() -> None:
    whole = results([TOOLS["calculator"], TOOLS["molar_mass"].preset(weights="integer")], TaggedFormat())
    (urea,) = [worked for worked in EXAMPLES if worked.id == "urea-nitrogen"]

    text = render(urea, TaggedFormat(), whole)[1].text

    assert "<<calculator: 2 × 14 / 60 × 100>> 46.6667" in text
    assert last_number(render_answer_only(urea, whole)[1].text) == "46.67"


# Files of one's own

YAML = """\
- question: Two and two?
  parts:
    - "Adding:"
    - calculator: 2+2
    - So {1}.
- id: three
  kind: sums
  question: 1 + 2 + "3"
  parts: [calculator: {expression: 1+2+3}, "So 6."]
  answer: 6
"""


def test_a_file_of_yaml_holds_lines_and_calls(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(YAML, encoding="utf-8")

    two, three = read_shots(path)

    assert two == WorkedExample("1", "", "Two and two?", ("Adding:\n", ExampleCall("calculator", "2+2"), "\nSo {1}."))
    assert three.parts == (ExampleCall("calculator", '{"expression":"1+2+3"}'), "\nSo 6.")
    assert (three.id, three.kind, three.answer) == ("three", "sums", "6")
    assert render(two, TaggedFormat(), given)[1].text == "Adding:\n<<calculator: 2+2>> 4\nSo 4."


def test_what_was_read_can_be_written_as_lines_of_json_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    recorded = WorkedExample("r", "k", "何？", ("{{1} ", ExampleCall("calculator", "1+1", "2"), ", so 2.\n\nEnd"), "2")
    examples = (*EXAMPLES, recorded)
    path.write_text("\n".join(json.dumps(as_object(worked)) for worked in examples), encoding="utf-8")

    assert read_shots(path) == examples


def test_a_tool_that_refuses_an_example_says_so(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("- question: '?'\n  parts: [{calculator: 1/0}, 'None.']", encoding="utf-8")

    (worked,) = read_shots(path)

    with pytest.raises(ToolError, match="division by zero"):
        render(worked, TaggedFormat(), given)
    assert usable([worked], given) == ()


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("a.yaml", "", "a.yaml: the file has no worked example"),
        ("a.yaml", "question: x", "a.yaml:1: the file is not a list of examples"),
        ("a.yaml", "- question: x\n  parts: [y]\n  anwser: z", "a.yaml:3: unknown key 'anwser'; did you mean 'answer'?"),
        ("a.yaml", "- parts: [y]", "a.yaml:1: the example has no question"),
        ("a.yaml", "- question: x", "a.yaml:1: the example has no parts"),
        ("a.yaml", "- question: x\n  parts: []", "a.yaml:2: the example has no parts"),
        ("a.yaml", "- question: [x]\n  parts: [y]", "a.yaml:1: question must be a text, not a list"),
        ("a.yaml", "- question: x\n  parts:\n    - a: 1\n      b: 2", "a.yaml:3: a part must be a line of text or one call"),
        ("a.yaml", "- question: x\n  parts: [[y]]", "a.yaml:2: a part must be a line of text or one call"),
        ("a.yaml", "- x", "a.yaml:1: an example must be a table"),
        ("a.yaml", "- {id: q, question: x, parts: [y]}\n- {id: q, question: x, parts: [y]}", "a.yaml:2: the id 'q' occurs twice"),
        ("a.yaml", "- question: 'x", "a.yaml:1: not YAML"),
        ("a.jsonl", '{"question": "x", "parts": ["y"]}\n{', "a.jsonl:2: not JSON"),
        ("a.jsonl", '{"question": "x", "parts": ["y"]}\n\n{"question": "x"}', "a.jsonl:3: the example has no parts"),
        ("a.jsonl", '[1]', "a.jsonl:1: an example must be a table"),
    ],
)  # fmt: skip
def test_a_problem_of_a_file_is_reported_with_its_line(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=re.escape(complaint)):
        read_shots(path)


def test_a_missing_file_and_a_binary_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"- question: x\n- \xff")

    with pytest.raises(InputError, match=r"a\.yaml:2: not UTF-8 at byte"):
        read_shots(path)
    with pytest.raises(InputError, match="No such file"):
        read_shots(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="is a folder"):
        read_shots(tmp_path)
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(InputError, match="more than 1,048,576 bytes"):
        read_shots(path)


def test_the_files_that_the_page_shows_are_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "solve.md").read_text(encoding="utf-8")
    own, theirs = tmp_path / "own.yaml", tmp_path / "theirs.txt"
    own.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    theirs.write_text("Q: " + page.partition("```\nQ: ")[2].partition("```")[0], encoding="utf-8")

    (wheel,), (water,) = read_shots(own), read_shots(theirs)

    assert last_number(render_answer_only(wheel, given)[1].text) == "219.9"
    assert list(wrong_results((water,), given)) == []
    assert water.tools == ("molar_mass", "calculator")
