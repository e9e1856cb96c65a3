import json
import re
from pathlib import Path

import pytest

from taiwa.flows.solve.tool_call_formats import CallMatch, TaggedFormat
from taiwa.kernel.serialization import Json

NAMES = ("calculator", "molar_mass")


def first(text: str, chunk: int = 0) -> tuple[str, str] | None:
    """The name and input of the first trigger."""
    scanner = TaggedFormat().scanner(NAMES)
    for start in range(0, len(text), chunk or len(text)):
        if call := scanner.feed(text[start : start + (chunk or len(text))]):
            return call.name, call.input
    return None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("So <<calculator: 14*2/108*100>>", ("calculator", "14*2/108*100")),
        ("<< calculator :1 + 1 >> and on", ("calculator", "1 + 1")),
        ("a >> b, then <<molar_mass:H2O>>", ("molar_mass", "H2O")),
        ("cat <<EOF and <<calculator: 1 < 2>>", ("calculator", "1 < 2")),
        ("So <<calculator(14*(2+3))>>", ("calculator", "14*(2+3)")),
        ('So <<calculator ("1 + 2")>>', ("calculator", "1 + 2")),
        ("<<note: see <<calculator: 1>>", ("calculator", "1")),
        ("x `code` <<calculator: 2>>", ("calculator", "2")),
        ("```\n<<calculator: 1>>\n```\n<<calculator: 2>>", ("calculator", "2")),
        ("~~~~\n~~~\n<<calculator: 1>>\n~~~~\n<<calculator: 3>>", ("calculator", "3")),
        ("<<oracle: who?>>", ("oracle", "who?")),
        ("<<Molar mass: H2O>>", ("Molar mass", "H2O")),
        ("<< molar-mass : H2O >>", ("molar-mass", "H2O")),
        ("<<calculator：3×4>>", ("calculator", "3×4")),
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
    scanner = TaggedFormat().scanner(NAMES)

    before = scanner.feed("It is <<calculator: 1")
    trigger = scanner.feed(" + 1>>> so")

    assert before is None
    assert trigger == CallMatch("calculator", "1 + 1", 6, 21)


def test_a_scanner_goes_on_behind_a_trigger_and_knows_that_it_is_in_a_line() -> None:
    scanner = TaggedFormat().scanner(NAMES)
    scanner.feed("a <<calculator: 1>>")

    assert scanner.feed(" and `<<calculator: 2>>") is None
    assert scanner.feed("` <<calculator: 3>>") == CallMatch("calculator", "3", 19, 17)


def test_a_long_line_is_remembered_as_far_as_it_matters() -> None:
    filler = "word " * 1000

    assert first(f"`{filler}<<calculator: 1>>", chunk=7) is None
    assert first(f"``{filler}<<calculator: {'1' * 990}>>", chunk=7) == ("calculator", "1" * 990)


def test_an_unclosed_trigger_is_open() -> None:
    scanner = TaggedFormat().scanner(NAMES)
    scanner.feed("So <<calculator: 2*")

    assert scanner.open
    scanner.feed("3\n")
    assert not scanner.open


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
    scanner, found = TaggedFormat().scanner(NAMES), list[str]()
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        while piece:
            call = scanner.feed(piece)
            found += [call.input] if call else []
            piece = piece[call.end :] if call else ""
    return found


def test_a_call_without_input_that_only_lacks_its_end_is_open() -> None:
    scanner = TaggedFormat().scanner(["calculator"])

    assert (scanner.feed("So <<calculator:"), scanner.open) == (None, True)
