import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from taiwa.constraints.automaton import Automaton, compile_regex
from taiwa.constraints.guide import UnsupportedConstraintError
from taiwa.constraints.schema_regex import decimal_range, integer_range, to_regex
from taiwa.kernel.errors import InputError
from tests.constraints.schemas import DATA, schemas

LONGEST = 20_000
"""The longest pattern of a real schema that is tried: larger automata only take longer."""
BOUNDS = st.none() | st.integers(-120, 120) | st.sampled_from([99, 100, 999, 1000, -1000])


def automaton(schema: Any, space: str = "") -> Automaton:
    return compile_regex(to_regex(schema, space))


def compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@given(schemas(), DATA)
def test_no_invalid_value_is_let_through(schema: Any, data: Any) -> None:
    if automaton(schema).accepts(compact(data).encode()):
        assert Draft202012Validator(schema).is_valid(data)


@given(schemas(), st.data())
def test_what_is_written_along_the_automaton_is_valid(schema: Any, data: st.DataObject) -> None:
    made = automaton(schema)
    text, state = bytearray(), 0
    while not (state in made.finals and (len(text) > 60 or not made.moves[state] or data.draw(st.booleans()))):
        low, high, state = data.draw(st.sampled_from(shortest(made, state) if len(text) > 30 else made.moves[state]))
        text.append(data.draw(st.integers(low, high)))
        if len(text) > 400:
            return

    assert Draft202012Validator(schema).is_valid(json.loads(text.decode()))


def shortest(made: Automaton, state: int) -> list[tuple[int, int, int]]:
    """The moves that lead to an end by the fewest bytes."""
    distance = dict.fromkeys(made.finals, 0)
    while len(distance) < len(made.moves):
        for here, row in enumerate(made.moves):
            near = [distance[there] for *_, there in row if there in distance]
            if near and here not in distance:
                distance[here] = min(near) + 1
    return [
        move
        for move in made.moves[state]
        if distance[move[2]] == min(distance[there] for *_, there in made.moves[state])
    ]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 12}, "minItems": 1, "maxItems": 3},
         ["[1]", "[1,12,3]"], ["[]", "[13]", "[1,2,3,4]", "[1,]"]),
        ({"type": "string", "pattern": '^a"+'}, ['"a\\""', '"a\\"\\"zz"'], ['"a"', '"ba\\""']),
        ({"type": "string", "pattern": "b|^c$"}, ['"abc"', '"c"'], ['"cc"', '""']),
        ({"type": "string", "pattern": "^[^x]$"}, ['"\\n"', '"文"'], ['"x"', '"\n"', '"\\u0041"']),
        ({"properties": {"a": {"type": "null"}, "b": {"const": "x.y"}, "c": {"enum": [1, "二"]}}},
         ["{}", '{"a":null}', '{"b":"x.y","c":"二"}', '{"a":null,"c":1}'], ['{"b":"xzy"}', '{"c":1,"a":null}', '{"a":null,}']),
        ({"properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}, "required": ["b"]},
         ['{"b":null}', '{"a":null,"b":null}', '{"a":null,"b":null,"c":null}'], ["{}", '{"a":null}', '{"b":null,"a":null}']),
        ({"prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1, "items": False},
         ["[1]", '[1,"a"]'], ["[]", '[1,"a",2]']),
        ({"items": [{"type": "integer"}, {"type": "string"}], "additionalItems": {"type": "null"}},
         ["[]", "[1]", '[1,"a",null,null]'], ['["a"]', '[1,"a",2]']),
        ({"type": "string", "format": "date"}, ['"2024-02-29"', '"2000-02-29"'], ['"2023-02-29"', '"1900-02-29"', '"2023-04-31"']),
        ({"type": "string", "format": "date-time"}, ['"2024-01-31T23:59:59.5+09:00"'], ['"2024-01-31 23:59:59Z"', '"2024-01-31T24:00:00Z"']),
        ({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}, ['{"日":1,"b":2}'], ['{"a":"b"}', "{}"]),
        ({"type": ["string", "null"], "maxLength": 2}, ["null", '"あ\\n"', '""', '"😀é"'], ['"abc"']),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, ["0", "0.99", "0.0"], ["1", "1.0", "-0.1", "1e-1"]),
        ({"type": "string", "enum": ["a", 1]}, ['"a"'], ["1"]),
        ({}, ['[1,{"a":"b"}]', '"x"', "null"], ["[[[1]]]", "nul"]),
        ({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                    {"type": "object", "properties": {"kind": {"const": "b"}, "n": {"type": "integer"}}, "required": ["kind", "n"]}]},
         ['{"kind":"a"}', '{"kind":"b","n":1}'], ['{"kind":"b"}', '{"kind":"c"}']),
        ({"const": {"a": [1, "x"]}}, ['{"a":[1,"x"]}'], ['{"a":[1]}']),
    ],
)  # fmt: skip
def test_a_schema_lets_through_what_it_should(schema: Any, good: list[str], bad: list[str]) -> None:
    made = automaton(schema)

    assert [text for text in good if not made.accepts(text.encode())] == []
    assert [text for text in bad if made.accepts(text.encode())] == []


def test_a_type_within_itself_is_written_to_a_depth() -> None:
    schema: Any = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
                "required": ["next"],
            }
        },
    }
    made = automaton(schema)

    assert made.accepts(b'{"next":{"next":null}}')
    assert not made.accepts(b'{"next":{"next":{"next":null}}}')


def test_between_the_signs_may_stand_what_one_says() -> None:
    made = automaton({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "[ ]?")

    assert made.accepts(b"[ 1 , 2 ]")
    assert made.accepts(b"[1,2]")
    assert not made.accepts(b"[1,  2]")
    assert not made.accepts(b"[1,\n2]")


@pytest.mark.parametrize(
    ("schema", "clause"),
    [
        ({"enum": []}, "/: enum (no value can be one of none)"),
        ({"type": "object", "properties": {"a/b": {"not": {}}}}, "/properties/a~1b: not ("),
        ({"$ref": "https://example.org/schema"}, "/: $ref ('https://example.org/schema' is outside of the schema"),
        ({"items": {"$ref": "#/nowhere"}}, "/items: $ref ('#/nowhere' is not in the schema)"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "/: oneOf (a value might be"),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "/: allOf (more than one"),
        ({"type": "string", "pattern": "(?=a)"}, "/: pattern (the regex cannot be used, character 1: look-ahead"),
        ({"type": "string", "pattern": "a", "maxLength": 3}, "/: pattern (beside maxLength)"),
        ({"type": "string", "format": "email"}, "/: format ('email'"),
        ({"type": "number", "minimum": 0.5}, "/: minimum (0.5 is not a whole number)"),
        ({"type": "integer", "multipleOf": 3}, "/: multipleOf"),
        ({"type": "array", "uniqueItems": True}, "/: uniqueItems"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "/: minItems (more than maxItems, which is 2)"),
        ({"type": "object", "patternProperties": {"^a": {}}}, "/: patternProperties"),
        ({"$defs": {"A": {"if": {}}}, "$ref": "#/$defs/A"}, "/$defs/A: if"),
        ({"$ref": "#/$defs/A", "minimum": 1, "$defs": {"A": {}}}, "/: $ref (beside minimum)"),
    ],
)
def test_what_cannot_be_said_is_refused_by_pointer_and_keyword(schema: Any, clause: str) -> None:
    with pytest.raises(UnsupportedConstraintError) as caught:
        to_regex(schema)

    assert clause in caught.value.message
    assert caught.value.clauses[0].startswith(clause)


@pytest.mark.parametrize(
    "schema", [False, {"type": "object", "properties": {"a": False}, "required": ["a"]}, {"$ref": "#"}]
)
def test_a_schema_that_nothing_meets_is_refused(schema: Any) -> None:
    with pytest.raises(InputError, match="no JSON text is valid"):
        to_regex(schema)


@pytest.mark.parametrize(
    "schema", [3, "string", {"type": "strin"}, {"anyOf": []}, {"maxLength": "x"}, {"properties": []}]
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InputError):
        to_regex(schema)


def test_large_schemas_are_refused_in_time() -> None:
    wide: Any = {"properties": {f"key{number}": {"type": "string", "maxLength": 9} for number in range(20_000)}}
    deep: Any = {}
    for _ in range(300):
        deep = {"items": deep}

    with pytest.raises(InputError, match="more than 1,000,000 characters"):
        to_regex(wide)
    with pytest.raises(InputError, match="nested deeper"):
        to_regex(deep)


def test_ten_thousand_alternatives_are_no_burden() -> None:
    made = automaton({"enum": [f"word {number}" for number in range(10_000)]})

    assert made.accepts(b'"word 9999"')
    assert not made.accepts(b'"word 10000"')


@given(BOUNDS, BOUNDS, st.integers(-1100, 1100))
def test_integers_are_within_their_bounds(low: int | None, high: int | None, number: int) -> None:
    pattern = integer_range(low, high)

    wanted = (low is None or low <= number) and (high is None or number <= high)
    assert bool(pattern and re.fullmatch(pattern, str(number))) == wanted


@given(
    BOUNDS,
    BOUNDS,
    st.booleans(),
    st.booleans(),
    st.from_regex(r"\A(-[1-9][0-9]{0,2}|0|[1-9][0-9]{0,2})(\.[0-9]{0,2}[1-9])?\Z"),
)
def test_numbers_are_within_their_bounds(
    low: int | None, high: int | None, above: bool, below: bool, text: str
) -> None:
    pattern, number = decimal_range(low, high, above=above, below=below), float(text)

    wanted = (low is None or low < number or (low == number and not above)) and (
        high is None or number < high or (high == number and not below)
    )
    assert bool(pattern and re.fullmatch(pattern, text)) == wanted


@pytest.mark.slow
def test_no_invalid_case_of_maskbench_is_let_through(shared_data: Path) -> None:
    """Real schemas: each is refused with its place, or lets no invalid value through and most valid ones."""
    kept, right, wrong = 0, 0, list[str]()
    for line in (shared_data / "maskbench.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        try:
            pattern = to_regex(case["schema"])
            if len(pattern) > LONGEST:
                continue
            made = compile_regex(pattern)
        except InputError:
            continue
        kept += 1
        verdicts = [(each["valid"], made.accepts(compact(each["data"]).encode())) for each in case["tests"]]
        right += verdicts.count((True, True))
        wrong += [case["id"]] * verdicts.count((False, True))

    assert wrong == []
    assert right > kept > 30
