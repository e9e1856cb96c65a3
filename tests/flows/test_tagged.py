import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.tagged import Interrupt, Scanner, Trigger, arguments, shown, unrepeated
from taiwa.kernel import Json, Seen, ToolError, ToolSpec

NAMES = ("calculator", "molar_mass")


def first(text: str, chunk: int = 0) -> tuple[str, str] | None:
    """The name and input of the first trigger."""
    scanner = Scanner(NAMES)
    for start in range(0, len(text), chunk or len(text)):
        if call := scanner.feed(text[start : start + (chunk or len(text))]):
            return call.name, call.input
    return None


def spec(properties: dict[str, Json], required: list[Json] | None = None) -> ToolSpec:
    return ToolSpec("t", "A tool.", {"type": "object", "properties": properties, "required": required or []})


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("So <<calculator: 14*2/108*100>>", ("calculator", "14*2/108*100")),
        ("<< calculator :1 + 1 >> and on", ("calculator", "1 + 1")),
        ("a >> b, then <<molar_mass:H2O>>", ("molar_mass", "H2O")),
        ("cat <<EOF and <<calculator: 1 < 2>>", ("calculator", "1 < 2")),
        ("<<note: see <<calculator: 1>>", ("calculator", "1")),
        ("x `code` <<calculator: 2>>", ("calculator", "2")),
        ("```\n<<calculator: 1>>\n```\n<<calculator: 2>>", ("calculator", "2")),
        ("~~~~\n~~~\n<<calculator: 1>>\n~~~~\n<<calculator: 3>>", ("calculator", "3")),
        ("<<oracle: who?>>", ("oracle", "who?")),
        ("<<calculator:>>", ("calculator", "")),
    ],
)
def test_a_trigger_is_found(text: str, call: tuple[str, str]) -> None:
    assert first(text) == call


@pytest.mark.parametrize(
    "text",
    [
        "`<<calculator: 1>>`",
        "```\n<<calculator: 1>>",
        "<<calculator: 1\n>>",
        "<<calculator 1>>",
        "<<calculator: 1>",
        "std::cin >> a; std::cout << b",
        "cout << x: y >> z",
        f"<<calculator: {'1' * 1001}>>",
    ],
)
def test_what_only_looks_like_a_trigger_is_none(text: str) -> None:
    assert first(text) is None


def test_a_trigger_ends_behind_its_mark_in_the_text_fed_last() -> None:
    scanner = Scanner(NAMES)

    before = scanner.feed("It is <<calculator: 1")
    trigger = scanner.feed(" + 1>>> so")

    assert before is None
    assert trigger == Trigger("calculator", "1 + 1", 6)


def test_a_scanner_goes_on_behind_a_trigger_and_knows_that_it_is_in_a_line() -> None:
    scanner = Scanner(NAMES)
    scanner.feed("a <<calculator: 1>>")

    assert scanner.feed(" and `<<calculator: 2>>") is None
    assert scanner.feed("` <<calculator: 3>>") == Trigger("calculator", "3", 19)


def test_a_long_line_is_remembered_as_far_as_it_matters() -> None:
    filler = "word " * 1000

    assert first(f"`{filler}<<calculator: 1>>", chunk=7) is None
    assert first(f"``{filler}<<calculator: {'1' * 990}>>", chunk=7) == ("calculator", "1" * 990)


def test_an_unclosed_trigger_is_open() -> None:
    scanner = Scanner(NAMES)
    scanner.feed("So <<calculator: 2*")

    assert scanner.open
    scanner.feed("3\n")
    assert not scanner.open


PIECES = st.sampled_from(
    [
        "<<calculator: 1>>",
        "<<oracle:x>>",
        "<<",
        ">>",
        ">",
        "<",
        "`",
        "```",
        "~~~",
        "\n",
        "\n",
        " ",
        "calculator",
        ": ",
        "1" * 400,
        "ま",
    ]
)


@given(st.lists(PIECES, max_size=20).map("".join), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_where_a_stream_is_cut_changes_nothing(text: str, sizes: list[int]) -> None:
    whole, watch = Scanner(NAMES).feed(text), Interrupt(Scanner(NAMES))
    shown_text, cut, at, turn = "", None, 0, 0
    while at < len(text) and cut is None:
        step = sizes[turn % len(sizes)]
        seen = watch.feed(text[at : at + step])
        shown_text, cut = shown_text + seen.show, seen.cut
        at, turn = at + step, turn + 1

    assert cut == (whole and whole.end)
    assert shown_text == text[:cut]


@given(st.lists(PIECES, max_size=20).map("".join), st.text(max_size=30), st.integers(1, 9))
def test_a_repeated_text_is_neither_shown_nor_scanned(known: str, new: str, size: int) -> None:
    text = known.rstrip() + new
    watch = Interrupt(Scanner(NAMES), known)
    shown_text, cut = "", None
    for start in range(0, len(text), size):
        seen = watch.feed(text[start : start + size])
        shown_text, cut = shown_text + seen.show, seen.cut
        if cut is not None:
            break
    shown_text += "" if cut is not None else watch.close().show

    assert shown_text == unrepeated(text[:cut], known)
    if len(known.rstrip()) >= 8:
        assert len(shown_text) <= len(new)


def test_what_only_begins_like_a_repetition_is_shown_after_all() -> None:
    watch = Interrupt(Scanner(NAMES), "It is a long line.")

    assert (watch.feed("It is"), watch.close()) == (Seen(), Seen("It is"))


def test_the_last_line_alone_may_be_repeated_too() -> None:
    known = "First this.\nThen <<calculator: 1+1>> 2"

    assert unrepeated("Then <<calculator: 1+1>> 2, so two.", known) == ", so two."
    assert unrepeated("Then two.", known) == "Then two."


@given(st.text())
def test_a_result_fits_on_a_line_and_holds_no_mark(result: str) -> None:
    line = shown(result)

    assert 0 < len(line) <= 500
    assert line.isprintable()
    assert "<<" not in line
    assert ">>" not in line
    assert line == line.strip()


@pytest.mark.parametrize(
    ("tool", "text", "given_arguments"),
    [
        (spec({"expression": {"type": "string"}}), "1 + 1", {"expression": "1 + 1"}),
        (spec({"expression": {"type": "string"}}), '{"a": 1}', {"expression": '{"a": 1}'}),
        (spec({"expression": {"type": "string"}}), '{"expression": "1"}', {"expression": "1"}),
        (spec({"count": {"type": "integer"}}), "3", {"count": 3}),
        (spec({"count": {"type": "integer"}}), "three", {"count": "three"}),
        (spec({"count": {"type": "number"}}), "NaN", {"count": "NaN"}),
        (spec({"a": {"type": "string"}, "b": {"type": "string"}}, ["a"]), "x", {"a": "x"}),
        (spec({"a": {}, "b": {}}), '{"a": 1, "b": [2]}', {"a": 1, "b": [2]}),
        (spec({}), "", {}),
    ],
)
def test_an_input_becomes_arguments(tool: ToolSpec, text: str, given_arguments: dict[str, Json]) -> None:
    assert arguments(tool, text) == given_arguments


def test_several_arguments_need_an_object() -> None:
    with pytest.raises(ToolError, match="must be a JSON object") as caught:
        arguments(spec({"a": {}, "b": {}}), "x")

    assert caught.value.hint == '<<t: {"a": …, "b": …}>>'


def test_a_deeply_nested_input_is_only_text() -> None:
    assert arguments(spec({"a": {"type": "array"}}), "[" * 1000) == {"a": "[" * 1000}


def test_every_call_of_the_recorded_solutions_is_found_wherever_they_are_cut(shared_data: Path) -> None:
    path = shared_data / "replay_tools" / "gsm8k_gpt3_calculator.jsonl"
    checked = 0
    for line in path.read_text(encoding="utf-8").splitlines()[:120]:
        for text in recorded(json.loads(line)):
            tagged = re.sub(r"<<([^<>=\n]*)=[^<>\n]*>>", r"<<calculator: \1>>", text)
            wanted = re.findall(r"<<calculator: ([^<>\n]*)>>", tagged)
            for size in (1, 3, len(tagged)):
                assert every(tagged, size) == [each.strip() for each in wanted]
            checked += len(wanted)

    assert checked > 300


def recorded(row: Json) -> list[str]:
    """The texts of a recorded row that hold calls."""
    parts = row.values() if isinstance(row, dict) else row if isinstance(row, list) else [row]
    if isinstance(row, str):
        return [row] if "<<" in row and "`" not in row else []
    return [text for part in parts if part is not row for text in recorded(part)]


def every(text: str, size: int) -> list[str]:
    """The inputs of all triggers, the text fed in pieces and the rest of a piece fed again."""
    scanner, found = Scanner(NAMES), list[str]()
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        while piece:
            call = scanner.feed(piece)
            found += [call.input] if call else []
            piece = piece[call.end :] if call else ""
    return found
