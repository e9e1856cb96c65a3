"""`taiwa read`: a text as a type, without a model."""

import json

import pytest

from tests.cli.conftest import Place, Taiwa

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "cups": {"type": "integer", "minimum": 1}},
        "required": ["name", "cups"],
    }
)


@pytest.fixture(autouse=True)
def types(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "order.json").write_text(SCHEMA)
    (place.folder / "answer.txt").write_text("Sure! {'name': '抹茶', 'cups': 2,} Enjoy.", encoding="utf-8")
    monkeypatch.chdir(place.folder)


def test_a_text_is_read_and_its_value_printed_as_json(taiwa: Taiwa) -> None:
    done = taiwa.ok("parse", "answer.txt", "--type", "order.json")

    assert done.json == {"name": "抹茶", "cups": 2}
    assert "抹茶" in done.out
    assert done.err == ""


def test_standard_input_is_read(taiwa: Taiwa) -> None:
    assert taiwa.ok("parse", "-", "--type", "order.json", input='{"name": "tea", "cups": 1}').json == {
        "name": "tea",
        "cups": 1,
    }


def test_verbose_prints_repairs_and_their_positions(taiwa: Taiwa) -> None:
    done = taiwa.ok("parse", "answer.txt", "--type", "order.json", "-v")

    assert any(line.startswith("repaired (safe): trailing-comma at character ") for line in done.err.splitlines())


def test_json_has_the_repairs(taiwa: Taiwa) -> None:
    done = taiwa.ok("parse", "answer.txt", "--type", "order.json", "--json")

    assert done.json["value"] == {"name": "抹茶", "cups": 2}
    assert done.json["guessed"] is False
    assert {fix["code"] for fix in done.json["fixes"]} >= {"trailing-comma"}


def test_a_guess_gives_a_notice_and_can_be_refused(taiwa: Taiwa) -> None:
    text = '{"name": tea, "cups": 1}'

    data = taiwa.ok("parse", "-", "--type", "order.json", input=text)
    refused = taiwa("parse", "-", "--type", "order.json", "--no-guess", input=text)

    assert "parsed by a guess" in data.err
    assert refused.code == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"name": "tea", "cups": 0}', "$.cups = 0: must be integer, >= 1"),
        ('{"name": "tea", "cu', "the text ends before the value does"),
        ("no tea", "no JSON object in the text"),
        ("", "no JSON object in the text"),
        ("[" * 100_000, "nested deeper than 128"),
    ],
)
def test_a_value_of_another_type_is_an_error_of_one_line(taiwa: Taiwa, text: str, complaint: str) -> None:
    done = taiwa("parse", "-", "--type", "order.json", input=text)

    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_verbose_prints_all_problems(taiwa: Taiwa) -> None:
    done = taiwa("parse", "-", "--type", "order.json", "-v", input='{"name": 1, "cups": 0}')

    assert "$.name = 1" in done.err
    assert "$.cups = 0" in done.err


def test_text_that_is_not_utf8_is_an_error_with_its_position(taiwa: Taiwa) -> None:
    done = taiwa("parse", "-", "--type", "order.json", input=b'{"name": "\xff"}')

    assert done.code == 2
    assert "not UTF-8 at byte 10" in done.err


def test_control_codes_are_printed_as_escapes(taiwa: Taiwa) -> None:
    done = taiwa.ok("parse", "-", "--type", "order.json", input='{"name": "a\u009b2J\u202e", "cups": 1}')

    assert "\u009b" not in done.out
    assert "\u202e" not in done.out
    assert done.json["name"] == "a\u009b2J\u202e"


def test_a_large_text_is_read(taiwa: Taiwa) -> None:
    text = json.dumps({"name": "x" * (2 << 20), "cups": 1})

    assert taiwa.ok("parse", "-", "--type", "order.json", input=text).json["cups"] == 1


def test_a_type_is_needed(taiwa: Taiwa) -> None:
    assert taiwa("parse", "answer.txt").code == 2
