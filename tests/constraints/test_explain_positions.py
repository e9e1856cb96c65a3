import json
from typing import Any

import pytest
from hypothesis import given

from taiwa.constraints.explain import add_json_position, json_position, keyword_at
from taiwa.constraints.guide import Explanation
from tests.constraints.schemas import DATA

ORDER: Any = {
    "type": "object",
    "properties": {
        "drinks": {"type": "array", "items": {"$ref": "#/$defs/Drink"}, "minItems": 1},
        "note": {"anyOf": [{"type": "string", "maxLength": 4}, {"type": "null"}]},
    },
    "required": ["drinks"],
    "$defs": {
        "Drink": {
            "type": "object",
            "properties": {"name": {"enum": ["tea", "coffee", "抹茶"]}, "cups": {"type": "integer", "minimum": 1}},
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize(
    ("text", "pointer", "keyword", "expected"),
    [
        ("", "", "/: type", "object"),
        ("{", "", "/: required", "the keys 'drinks', 'note'?"),
        ('{"no', "", "/: properties", "the key 'note'"),
        ('{"drinks"', "/drinks", "/properties/drinks: type", "':'"),
        ('{"drinks": [', "/drinks/0", "/$defs/Drink: type", "object"),
        (
            '{"drinks": [{"name": ',
            "/drinks/0/name",
            "/$defs/Drink/properties/name: enum",
            '"tea" or "coffee" or "抹茶"',
        ),
        ('{"drinks": [{"name": "抹', "/drinks/0/name", "/$defs/Drink/properties/name: enum", '"抹茶"'),
        (
            '{"drinks": [{"name": "tea", "cups": 2',
            "/drinks/0/cups",
            "/$defs/Drink/properties/cups: minimum",
            "minimum 1",
        ),
        ('{"drinks": [{"name": "tea"}, {', "/drinks/1", "/$defs/Drink: required", "the keys 'name', 'cups'?"),
        ('{"drinks": [{"name": "tea"}', "/drinks/0", "/properties/drinks: minItems", "',' or the end of what is open"),
        ('{"drinks": [], "note": "ab', "/note", "/properties/note/anyOf/0: maxLength", "maxLength 4"),
        ('{"drinks": [], "note": null}', "", "/: type", "the end"),
    ],
)
def test_a_place_is_told_with_the_keyword_that_speaks_of_it(
    text: str, pointer: str, keyword: str, expected: str
) -> None:
    told = add_json_position(ORDER, text.encode(), Explanation())

    assert (told.pointer, told.keyword, told.expected) == (pointer, keyword, expected)


def test_a_key_is_read_as_json_writes_it_and_its_pointer_is_escaped() -> None:
    assert json_position('{"a\\"b/~": {"\\u6587": [1, [true, ').pointer == '/a"b~1~0/文/1/1'


def test_brackets_and_quotes_within_a_string_are_part_of_it() -> None:
    here = json_position('{"a": "}],:\\"')

    assert (here.pointer, here.want, here.begun) == ("/a", "in string", '}],:\\"')


def test_half_a_character_at_the_end_changes_nothing() -> None:
    assert add_json_position(ORDER, '{"note": "文'.encode()[:-1], Explanation()).pointer == "/note"


def test_what_a_schema_does_not_know_is_left_out() -> None:
    assert keyword_at({"type": "object"}, json_position('{"a": [')) == ("", "", "a value")
    assert keyword_at({"$ref": "#/nowhere"}, json_position('"')) == ("", "", "more of a string, or its end")


def test_a_reference_to_itself_ends() -> None:
    assert keyword_at({"$ref": "#"}, json_position("")) == ("", "", "a value")


@given(DATA)
def test_every_value_is_written_at_its_own_pointer(data: Any) -> None:
    text = json.dumps(data)

    ends = {json_position(text[:place]).pointer for place in range(len(text) + 1)}

    assert set(pointers(data)) <= ends


def pointers(data: Any, here: str = "") -> list[str]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [here, *(found for key, part in inner for found in pointers(part, f"{here}/{key}"))]


@given(DATA)
def test_a_whole_value_is_at_its_end(data: Any) -> None:
    assert json_position(json.dumps(data) + " ").want == "end"
