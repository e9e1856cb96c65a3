"""`taiwa explain`: a constraint, token by token."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.cli.conftest import Place, Taiwa

SHOP = """
from typing import Annotated, Literal
from pydantic import BaseModel, Field

class Order(BaseModel):
    name: Literal["tea", "抹茶"]
    cups: Annotated[int, Field(ge=1, le=9)] = 1
"""
SCHEMA = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
FIFTEEN = ["<end>", "{", "}", '"', "value", ":", "-", ".", "e", "0", "1", "2", "42", "[", "true"]


@pytest.fixture(autouse=True)
def files(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place.folder)
    (place.folder / "explained_shop.py").write_text(SHOP, encoding="utf-8")
    (place.folder / "value.json").write_text(json.dumps(SCHEMA))
    (place.folder / "fifteen.json").write_text(json.dumps(FIFTEEN))
    (place.folder / "five.json").write_text(json.dumps(["(", ")", "1", "2", "<end>"]))
    (place.folder / "number.lark").write_text('start: "(" NUMBER ")"\n%import common.NUMBER\n')
    return place.folder


def test_a_text_is_stepped_through(taiwa: Taiwa) -> None:
    done = taiwa.ok("explain", "--regex", "[0-9]{1,2}%", "--vocab", "bytes", "42%")

    assert [line.split() for line in done.lines[:5]] == [
        ["token", "allowed", "place", "expected"],
        ["0", "'4'", "10", "state", "0", "'0'…'9'"],
        ["1", "'2'", "11", "state", "1", "'%',", "'0'…'9'"],
        ["2", "'%'", "(forced)", "1", "state", "3", "'%'"],
        ["3", "1", "state", "2", "the", "end"],
    ]
    assert done.lines[-1] == "accepted: the text is complete"
    assert "\x1b" not in done.out


def test_steps_of_a_type_have_pointer_and_keyword(taiwa: Taiwa) -> None:
    done = taiwa("explain", "--type", "explained_shop:Order", '{"name": "抹茶", "cups": 12}')

    assert any("/name /properties/name: enum" in line and '"抹茶"' in line for line in done.lines)
    assert "integer, minimum 1, maximum 9" in done.out
    assert re.fullmatch(r"refused: '12' is not allowed at step \d+: after '1', '2' is not expected; .*", done.lines[-1])


def test_without_a_text_the_accepted_texts_are_described(taiwa: Taiwa) -> None:
    done = taiwa.ok("explain", "--choice", "tea, コーヒー", "-v")

    assert done.lines[:4] == [
        "choice tea, コーヒー over 543 tokens (small), by reference",
        "as a regular expression: tea|コーヒー",
        "an automaton of 7 states over characters, 15 over bytes",
        "2 texts, of 3 to 4 characters",
    ]
    assert "'コーヒー'" in done.lines[-1]


def test_a_grammar_is_described_by_its_rules(taiwa: Taiwa) -> None:
    start = taiwa.ok("explain", "--grammar", "number.lark", "--vocab", "five.json")
    done = taiwa.ok("explain", "--grammar", "number.lark", "--vocab", "five.json", "(1", "-v")

    assert "  start: '(' NUMBER ')'" in start.lines
    assert "start: '(' · NUMBER ')'; start: '(' NUMBER · ')'" in done.out
    assert "  2: allowed: ')' '1' '2'" in done.lines
    assert done.lines[-1] == "accepted so far; the text cannot end here"


def test_for_programs_everything_is_data(taiwa: Taiwa) -> None:
    done = taiwa.ok(
        "explain",
        "--schema",
        "value.json",
        "--vocab",
        "fifteen.json",
        "--whitespace",
        "compact",
        '{"value":42}',
        "--json",
    ).json

    assert done["accepted"] is True
    assert [step["written"] for step in done["steps"]] == ["'{'", "'\"'", "'value'", "'\"'", "':'", "'42'", "'}'", ""]
    assert [step["forced"] for step in done["steps"]] == [True] * 5 + [False] * 3
    assert done["steps"][5]["examples"] == ["'-'", "'0'", "'1'", "'2'", "'42'"]
    assert done["steps"][5]["pointer"] == "/value"
    assert done["vocabulary"] == {"name": "fifteen", "tokens": 15}


@pytest.mark.parametrize(
    "source", [("--schema", "value.json"), ("--regex", '\\{"value": ?[0-9]+\\}'), ("--grammar", "json.lark")]
)
def test_llguidance_gives_the_same_steps(taiwa: Taiwa, files: Path, source: tuple[str, str]) -> None:
    (files / "json.lark").write_text('start: "{" "\\"value\\"" ": "? /[0-9]+/ "}"\n')
    answers = [
        taiwa.ok("explain", *source, "--engine", engine, '{"value": 12}', "--json").json
        for engine in ("reference", "llguidance")
    ]

    assert [answer["accepted"] for answer in answers] == [True, True]
    assert [step["token"] for step in answers[0]["steps"]] == [step["token"] for step in answers[1]["steps"]]
    if source[0] == "--schema":
        assert [step["pointer"] for step in answers[0]["steps"]] == [step["pointer"] for step in answers[1]["steps"]]


class Page(HTMLParser):
    """The elements of a page, and the addresses it names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses += [
            str(value) for name, value in attrs if name in ("href", "src", "action", "style") or name.startswith("on")
        ]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page_loads_nothing_runs_nothing_and_escapes_everything(taiwa: Taiwa, files: Path) -> None:
    hostile = '<script>alert("茶")</script><img src=x onerror=alert(1)>'

    done = taiwa.ok("explain", "--regex", "<[^&]*>", hostile, "--html", "out.html")

    text = (files / "out.html").read_text(encoding="utf-8")
    found = Page(text)
    assert done.err == "wrote out.html\n"
    assert done.out == ""
    assert not found.names & {"script", "img", "link", "iframe", "object", "form"}
    assert all(address.startswith("#at-") for address in found.addresses)
    assert "default-src &#x27;none&#x27;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "color-scheme: light dark" in text
    assert "茶" in found.words


def test_a_page_of_a_small_automaton_lists_its_moves(taiwa: Taiwa, files: Path) -> None:
    taiwa.ok(
        "explain", "--schema", "value.json", "--vocab", "fifteen.json", "--whitespace", "compact", "--html", "o.html"
    )

    words = " ".join(Page((files / "o.html").read_text(encoding="utf-8")).words)
    assert "Transitions by tokens" in words
    assert "-?(0|[1-9][0-9]{0,19})" in words


def test_an_automaton_is_drawn_and_the_way_of_the_text_marked(taiwa: Taiwa, files: Path) -> None:
    taiwa.ok("explain", "--regex", "茶|紅茶", "紅茶", "--dot", "out.dot")

    drawn = (files / "out.dot").read_text(encoding="utf-8")
    assert drawn.startswith('digraph "茶|紅茶" {')
    assert drawn.count("fillcolor") == 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "takes one of --type, --schema"),
        (("--regex", "a", "--choice", "b"), "not 2 of them"),
        (("--regex", "(?=a)b"), "character 1: look-ahead"),
        (("--regex", "(a|b)*a(a|b){24}"), "too large for an automaton"),
        (("--choice", " , "), "words with commas"),
        (("--schema", "gone.json"), "gone.json"),
        (("--schema", "number.lark"), "is not JSON"),
        (("--schema", "fifteen.json"), "must hold an object"),
        (
            ("--schema", "not.json"),
            "/properties/a: not (not enforced by the readable guides); --engine llguidance supports more",
        ),
        (("--type", "explained_shop:Nothing"), "has no 'Nothing'"),
        (("--grammar", "value.json"), "the grammar cannot be read"),
        (("--regex", "a", "--vocab", "cl100k"), "unknown vocabulary 'cl100k'"),
        (("--regex", "a", "--vocab", "value.json"), "is not a vocabulary"),
        (("--regex", "a", "--vocab", "."), "none of tekken.json, tokenizer.json"),
        (("--regex", "a", "--vocab", "none.gguf"), "file none.gguf not found"),
        (("--regex", "x", "--vocab", "five.json"), "no sequence of tokens"),
        (("--regex", "a*", "--vocab", "five.json", "b"), "no token writes"),
        (("--grammar", "number.lark", "--dot", "x.dot"), "a grammar and --engine llguidance have none"),
        (("--regex", "a{400}", "--dot", "x.dot"), "401 states"),
        (("--regex", "a", "--dot", "nowhere/x.dot"), "cannot write"),
        (("--choice", "a", "--engine", "other"), "'other' is not one of"),
        (
            ("--schema", "value.json", "--whitespace", "loose"),
            "choose one of bounded, compact, spaced, free, or a pattern",
        ),
        (("--schema", "value.json", "--whitespace", "("), "this group is not closed"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    taiwa: Taiwa, files: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    (files / "not.json").write_text('{"type": "object", "properties": {"a": {"not": {"type": "null"}}}}')

    done = taiwa("explain", *arguments)

    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_a_refused_text_exits_with_1_and_an_unfinished_one_with_0(taiwa: Taiwa) -> None:
    refused = taiwa("explain", "--regex", "[0-9]{1,2}%", "4x")
    unfinished = taiwa("explain", "--regex", "[0-9]{1,2}%", "4", "--json")

    assert (refused.code, refused.lines[-1][:24]) == (1, "refused: 'x' is not allo")
    assert (unfinished.code, unfinished.json["accepted"]) == (0, False)
    assert taiwa("explain", "--regex", "a", "b", "--json").code == 1


@pytest.mark.parametrize("engine", ["reference", "llguidance"])
def test_white_space_may_have_a_pattern_of_ones_own(taiwa: Taiwa, engine: str) -> None:
    arguments = ("explain", "--schema", "value.json", "--engine", engine, "--whitespace", " {2}")

    assert taiwa(*arguments, '{  "value":  1}').lines[-1] == "accepted: the text is complete"
    assert taiwa(*arguments, '{"value":1  }').code == 0
    assert taiwa(*arguments, '{ "value":1}').code == 1


def test_v_names_the_terminals_that_may_come(taiwa: Taiwa) -> None:
    done = taiwa.ok("explain", "--grammar", "number.lark", "(1)", "-v", "--vocab", "bytes")

    assert [line.strip() for line in done.lines if "terminals" in line] == [
        "0: terminals: LPAR", "1: terminals: NUMBER", "2: terminals: RPAR", "3: terminals: $END"
    ]  # fmt: skip
    assert taiwa.ok("explain", "--grammar", "number.lark", "(1)", "--json").json["steps"]


def test_standard_input_is_read(taiwa: Taiwa) -> None:
    assert (
        taiwa.ok("explain", "--regex", "茶+", "-", input="茶茶").lines[-1]
        == "accepted: the text is complete; more may follow"
    )


def test_a_refused_text_is_a_failure(taiwa: Taiwa) -> None:
    refused = taiwa("explain", "--regex", "[0-9]{1,3}%", "42")
    accepted = taiwa("explain", "--regex", "[0-9]{1,3}%", "42%")
    wrong = taiwa("explain", "--regex", "[0-9]{1,3}%", "4x", "--json")

    assert [refused.code, accepted.code, wrong.code] == [0, 0, 1]
    assert wrong.json["refused"]
