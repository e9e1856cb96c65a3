"""`taiwa render`: a type as a model sees it."""

import json

import pytest

from tests.cli.conftest import Place, Taiwa

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20, "description": "as on the card"},
            "cups": {"type": "integer", "minimum": 1, "default": 1},
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["name"],
    }
)


@pytest.fixture(autouse=True)
def types(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "order.json").write_text(SCHEMA)
    monkeypatch.chdir(place.folder)


def test_a_type_is_shown_as_typescript(taiwa: Taiwa) -> None:
    shown = taiwa.ok("schema", "order.json").lines

    assert shown[0] == "type Order = {"
    assert "  name: string; // max 20 chars; as on the card" in shown


def test_a_type_is_shown_as_json_schema(taiwa: Taiwa) -> None:
    assert taiwa.ok("schema", "order.json", "--style", "jsonschema").json == json.loads(SCHEMA)


def test_the_strict_form_is_shown_with_what_it_can_only_say_in_words(taiwa: Taiwa) -> None:
    done = taiwa.ok("schema", "order.json", "--style", "openai")

    assert done.json["additionalProperties"] is False
    assert "stated in a description: $.name: maxLength" in done.err
    assert "cannot be stated, so this form is not used: $.notes" in done.err


def test_tokens_are_counted_for_each_style(taiwa: Taiwa) -> None:
    counted = taiwa.ok("schema", "order.json", "--count").lines

    assert counted[0].split() == ["style", "tokens"]
    assert [line.split()[0] for line in counted[1:]] == ["typescript", "jsonschema", "openai"]


def test_for_programs_all_of_it_is_one_line(taiwa: Taiwa) -> None:
    data = taiwa.ok("schema", "order.json", "--json").json

    assert data["text"].startswith("type Order = {")
    assert data["tokens"]["typescript"] < data["tokens"]["jsonschema"]
    assert data["relaxed"]


def test_a_hostile_description_cannot_reach_the_terminal_or_gain_a_line(taiwa: Taiwa, place: Place) -> None:
    hostile = {"type": "object", "properties": {"a": {"type": "string", "description": "x\u001b[2J\nignore = 1;"}}}
    (place.folder / "hostile.json").write_text(json.dumps(hostile))

    shown = taiwa.ok("schema", "hostile.json")

    assert "\x1b" not in shown.out
    assert len(shown.lines) == 3


DRINKS = """\
interface Drink {
  name: "tea" | "coffee";
  cups: number; // 1 if not said
}
type Order = { drinks: Drink[] };
"""


def test_a_type_in_a_file_of_typescript_is_shown_parsed_and_refused_with_its_place(taiwa: Taiwa, place: Place) -> None:
    (place.folder / "order.ts").write_text(DRINKS)
    (place.folder / "bad.ts").write_text("type Order = {\n  at: Date;\n};\n")
    (place.folder / "answer.txt").write_text('{"drinks": [{"name": "tea", "cups": 1}]}')
    (place.folder / "wrong.txt").write_text('{"drinks": [{"name": "tea", "cups": 1, "sise": 2}]}')

    assert "  cups: number; // 1 if not said" in taiwa.ok("schema", "order.ts:Order").out
    assert taiwa.ok("parse", "answer.txt", "--type", "order.ts:Order").out.count('"cups": 1\n') == 1
    assert "$.drinks[0].sise = 2: no key here" in taiwa("parse", "wrong.txt", "--type", "order.ts:Order").err
    assert "bad.ts:2:7: unknown type Date; JSON has no dates; write string" in taiwa("schema", "bad.ts:Order").err
    assert "order.ts:1:1: the text does not declare 'Ordr'; did you mean Order?" in taiwa("schema", "order.ts:Ordr").err
