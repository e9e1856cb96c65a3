import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from taiwa.json_schema import Document, name_keys
from taiwa.kernel.errors import OutputValidationError
from taiwa.schema_values import are_disjoint, complement, equal_json, pattern_without
from taiwa.structured import OutputType
from tests.json_schema_cases import MAKERS, Maker, cases


def fits(schema: Any, data: Any) -> bool:
    return Draft202012Validator(schema).is_valid(data)


@settings(max_examples=2 * settings().max_examples)
@given(cases())
def test_the_complement_of_a_schema_accepts_all_other_values(case: tuple[dict[str, Any], list[Any]]) -> None:
    schema, values = case
    document = Document(schema)
    opposite = complement(document.root, document)

    if opposite is not None:
        written = opposite if isinstance(opposite, bool) else {**opposite, "$defs": schema["$defs"]}
        assert [fits(written, data) for data in values] == [not fits(schema, data) for data in values]


@settings(max_examples=2 * settings().max_examples)
@given(MAKERS)
def test_disjoint_schemas_have_no_common_value(maker: Maker) -> None:
    one, other, values = maker.whole(), maker.whole(), [maker.value() for _ in range(15)]
    document = Document({"oneOf": [one, other], "$defs": one["$defs"]})
    base = document.root.base

    if are_disjoint([one, other], document, base=base):
        assert not any(fits(one, data) and fits(other, data) for data in values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"type": "string"}, {"type": ["integer", "null"]}),
        ({"const": 1}, {"enum": [2, "1", True]}),
        ({"type": "number", "maximum": 3}, {"type": "integer", "exclusiveMinimum": 3}),
        ({"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}),
        ({"type": "array", "maxItems": 0}, {"type": "array", "minItems": 1}),
        (
            {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"enum": ["b", "c"]}}},
        ),
        (
            {"type": "object", "required": ["a"]},
            {"type": "object", "properties": {"b": {}}, "additionalProperties": False},
        ),
        ({"anyOf": [{"const": 1}, {"const": 2}]}, {"allOf": [{"type": "integer"}, {"minimum": 3}]}),
    ],
)
def test_disjoint_schemas_are_recognized(one: Any, other: Any) -> None:
    document = Document({"oneOf": [one, other]})

    assert are_disjoint([one, other], document, base=document.root.base)


def test_keywords_beside_the_branches_count() -> None:
    branches = [{"properties": {"kind": {"const": kind}}} for kind in "ab"]
    document = Document({"oneOf": branches})

    assert not are_disjoint(branches, document)
    assert are_disjoint(branches, document, beside={"type": "object", "required": ["kind"]})


@given(st.lists(st.text("ab.日\n]^-", max_size=4), min_size=1, max_size=5), st.text("ab.日\n]^-", max_size=5))
def test_a_pattern_without_words_matches_all_other_texts(words: list[str], text: str) -> None:
    pattern = pattern_without(words)

    assert (re.fullmatch(pattern[1:-1], text) is None) == (text in words)


def test_numbers_are_equal_as_in_json_schema() -> None:
    assert equal_json(1, 1.0)
    assert not equal_json(1, True)
    assert equal_json({"a": [1.0]}, {"a": [1]})


CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
INTEGERS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "rule", "named"),
    [
        (CLOSED, True, CLOSED),
        (CLOSED, {}, CLOSED),
        (CLOSED, {"type": "string", "title": "Key"}, CLOSED),
        (CLOSED, {"maxLength": 9, "minLength": 1}, CLOSED),
        (CLOSED, {"enum": ["a", "b"]}, CLOSED),
        (INTEGERS, {"minLength": 0}, INTEGERS),
        *((INTEGERS, {"pattern": each}, INTEGERS) for each in ("", ".*", "^.*", ".*$", r"^[\s\S]*$")),
        *((INTEGERS, {"pattern": each}, None) for each in ("^.*$", ".+", "^$", r"[\s\S]", "a*b")),
        (INTEGERS, {"const": "a"}, CLOSED),
        (INTEGERS, {"$ref": "#/$defs/K"}, CLOSED),
        (CLOSED | {"additionalProperties": True}, {"enum": ["a"]}, CLOSED),
        ({"type": "object"}, {"enum": ["a"]}, {"type": "object", "properties": {"a": True}, "additionalProperties": False}),
        # rules that forbid keys and cannot be expressed otherwise remain
        (INTEGERS, {"minLength": 1}, None),
        (INTEGERS, {"pattern": "^a"}, None),
        (INTEGERS, False, None),
        (INTEGERS, {"enum": [1]}, None),
        (CLOSED, {"pattern": "^a$"}, None),
        (CLOSED, {"enum": ["b"]}, None),
        (INTEGERS | {"patternProperties": {"b": {}}}, {"enum": ["a"]}, None),
    ],
)  # fmt: skip
def test_names_of_keys_are_written_as_properties_where_they_are_known(
    schema: dict[str, Any], rule: Any, named: dict[str, Any] | None
) -> None:
    definitions = {"$defs": {"K": {"type": "string", "enum": ["a"]}}}
    whole = {"items": schema | {"propertyNames": rule}, **definitions}

    assert name_keys(whole) == ({"items": named, **definitions} if named is not None else whole)
    assert name_keys(INTEGERS | {"propertyNames": {"enum": [1]}}, numbers_as_text=True)["properties"] == {
        "1": {"type": "integer"}
    }


@pytest.mark.parametrize(
    ("written", "fitting", "others"),
    [
        ({"type": "integer", "nullable": True}, [None, 1], ["a"]),
        ({"$ref": "#/$defs/n", "nullable": True, "$defs": {"n": {"type": "integer"}}}, [None, 1], ["a"]),
        (
            {
                "enum": [{"a": 1}],
                "nullable": True,
                "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}},
            },
            [None, {"a": 1}],
            [{"a": 2}],
        ),
        ({"properties": {"nullable": {"type": "integer", "nullable": False}}}, [{"nullable": 1}], [{"nullable": None}]),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, [1.5], [1]),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, [1], [1.5]),
    ],
)
def test_the_keywords_of_openapi_mean_what_they_mean_there(
    written: dict[str, Any], fitting: list[Any], others: list[Any]
) -> None:
    output_type = OutputType.from_json_schema(written)

    assert [output_type.validate(value) for value in fitting] == fitting
    for value in others:
        with pytest.raises(OutputValidationError):
            output_type.validate(value)
