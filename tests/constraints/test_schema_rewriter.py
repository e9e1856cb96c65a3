import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from jsonschema import Draft202012Validator

from evals.maskbench import is_writable
from taiwa import constraints
from taiwa.constraints import UnsupportedConstraintError, Vocabulary
from taiwa.constraints.allowed_tokens import MatcherGuide
from taiwa.constraints.schema_rewriter import close_objects, rewrite_schema
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import JsonSchema
from taiwa.schema_values import find_unsatisfiable
from tests.json_schema_cases import cases

BYTES = Vocabulary.of_bytes()


def fits(schema: Any, data: Any) -> bool:
    return Draft202012Validator(schema).is_valid(data)


def missed(schema: Any) -> list[tuple[str, str]]:
    return [(clause.pointer, clause.keyword) for clause in rewrite_schema(schema).missed]


def compiled_or_relaxed(schema: Any) -> MatcherGuide | None:
    for strict in (True, False):
        try:
            return constraints.compile(JsonSchema(schema), BYTES, strict=strict)
        except UnsupportedConstraintError:
            continue
        except NoValidTokenError:
            return None
        except InputError as error:  # an honest refusal, and nothing about what the mask lets through
            assume("larger than the engine's limits" not in error.message)
            raise
    raise AssertionError("a lenient compilation refuses nothing")


def keys(value: Any, *, of: str = "") -> set[str]:
    """The keys of all objects in a value, or of those under a key."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    listed = value.get(of, {}) if of and isinstance(value, dict) else {} if of else value
    own = set(listed) if isinstance(listed, dict) else set()
    return own.union(*(keys(part, of=of) for part in below))


@given(cases())
def test_a_closed_schema_allows_nothing_more_and_refuses_only_keys_that_are_listed_nowhere(
    case: tuple[dict[str, Any], list[Any]],
) -> None:
    schema, values = case
    closed = close_objects(schema)

    for data in values:
        if fits(closed, data):
            assert fits(schema, data)
        elif fits(schema, data):
            assert keys(data) - keys(schema, of="properties")


def test_a_schema_is_closed_where_an_object_is_described_in_one_place() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["c"]}
    schema = {"properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/A"}}}, "$defs": {"A": inner}}

    assert close_objects(schema) == schema | {"additionalProperties": False}  # a required key is not listed
    inner["required"] = ["b"]
    assert keys(close_objects(schema)) == keys(schema) | {"additionalProperties"}
    assert keys(close_objects({"oneOf": [schema, {"type": "null"}]})) == keys(schema) | {"oneOf", "type"}
    open_one = schema | {"additionalProperties": True}
    assert close_objects(open_one)["additionalProperties"] is True


@settings(max_examples=2 * settings().max_examples)
@given(cases())
def test_what_is_rewritten_means_the_same_or_more_where_it_says_so(case: tuple[dict[str, Any], list[Any]]) -> None:
    schema, values = case
    written = rewrite_schema(schema)

    for data in values:
        if fits(schema, data):
            assert fits(written.schema, data)
        elif not written.missed:
            assert not fits(written.schema, data)


@given(cases())
def test_a_strict_guide_lets_through_what_is_valid_and_nothing_else(case: tuple[dict[str, Any], list[Any]]) -> None:
    schema, values = case
    compiled = compiled_or_relaxed(schema)

    for data in values:
        if fits(schema, data):
            assert compiled is not None
            assert is_writable(compiled, data, schema)
        elif compiled is not None and compiled.coverage.whole:
            assert not is_writable(compiled, data, schema)


@given(cases())
def test_nothing_fits_where_it_is_said_that_nothing_can(case: tuple[dict[str, Any], list[Any]]) -> None:
    schema, values = case
    written = rewrite_schema(schema)

    if find_unsatisfiable(written.schema, written.origins) is not None:
        assert not any(fits(schema, data) for data in values)


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, []),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, []),
        ({"oneOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}}]}, [("", "oneOf")]),
        ({"not": {"const": "x"}}, []),
        ({"not": {"pattern": "x"}}, [("", "not")]),
        ({"if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["b"]}}, []),
        ({"if": {"contains": {"const": 1}}, "then": {"maxItems": 3}}, [("", "if"), ("", "then")]),
        ({"dependentRequired": {"a": ["b"]}}, []),
        ({"dependencies": {"a": ["b"], "b": {"required": ["c"]}}}, []),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, []),
        ({"propertyNames": {"format": "email"}}, [("", "propertyNames")]),
        ({"uniqueItems": True}, [("", "uniqueItems")]),
        ({"uniqueItems": True, "maxItems": 1}, []),
        ({"uniqueItems": False}, []),
        ({"contains": {"type": "null"}}, [("", "contains")]),
        ({"type": "string", "format": "zip"}, [("", "format")]),
        ({"type": "integer", "format": "int32"}, []),
        ({"type": "string", "pattern": "^(?!a)"}, [("", "pattern")]),
        ({"minProperties": 1}, []),
        ({"minProperties": 2}, [("", "minProperties")]),
        ({"properties": {"a": {}}, "maxProperties": 1}, [("", "maxProperties")]),
        ({"properties": {"a": {}}, "maxProperties": 1, "additionalProperties": False}, []),
        ({"patternProperties": {"^a": {"type": "null"}, "b$": {"type": "null"}}}, [("", "patternProperties")]),
        ({"unevaluatedProperties": False, "properties": {"a": {}}}, []),
        ({"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]}, [("", "unevaluatedProperties")]),
        ({"minimum": 1e300}, [("", "minimum")]),
        ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a", "type": "null"}}}, []),
        ({"$recursiveRef": "#"}, []),
        ({"properties": {"a/b": {"items": {"contains": False}}}}, [("/properties/a~1b/items", "contains")]),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"uniqueItems": True}, "b": {"uniqueItems": True}}},
            [("/$defs/a", "uniqueItems")],
        ),
    ],
)
def test_what_is_lost_is_named_by_its_pointer(schema: Any, lost: list[tuple[str, str]]) -> None:
    assert missed(schema) == lost


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/n", "definitions": {"n": {"type": "integer"}}},
        {"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}},
        {"$id": "https://a.example/s", "$ref": "t", "$defs": {"x": {"$id": "https://a.example/t", "type": "integer"}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}},
        {"$ref": "#/x-parts/0/n", "x-parts": [{"n": {"type": "integer"}}]},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://a.example/s",
            "allOf": [{"type": "integer"}],
        },
        {"type": "number", "minimum": 0, "exclusiveMinimum": True, "not": {"const": 0.5}, "multipleOf": 1},
    ],
)
def test_references_within_the_schema_are_followed(schema: Any) -> None:
    compiled = constraints.compile(JsonSchema(schema), BYTES)

    assert compiled.accepts(b"1")
    assert not compiled.accepts(b'"a"')
    assert not compiled.accepts(b"0.5")


@pytest.mark.parametrize(
    "reference", ["https://example.com/s.json", "other.json", "#/$defs/none", "#none", "file:///etc/passwd"]
)
def test_nothing_outside_of_the_schema_is_fetched(reference: str) -> None:
    assert missed({"properties": {"a": {"$ref": reference}}}) == [("/properties/a", "$ref")]


def test_a_key_cannot_be_smuggled_past_its_schema_by_spelling_it_with_escapes() -> None:
    compiled = constraints.compile(JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}), BYTES)

    assert compiled.accepts(b'{"a": 1, "b": "x"}')
    assert not compiled.accepts(rb'{"\u0061": "x"}')


def test_a_key_cannot_be_counted_twice() -> None:
    compiled = constraints.compile(JsonSchema({"type": "object", "minProperties": 2, "required": ["a"]}), BYTES)

    assert compiled.accepts(b'{"a": 1, "b": 1}')
    assert not compiled.accepts(b'{"a": 1, "a": 1}')


def test_a_deep_schema_is_written_flat() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}

    written = json.dumps(rewrite_schema(schema).schema)

    assert max(written[:place].count("{") - written[:place].count("}") for place in range(len(written))) < 60


def test_too_many_parts_are_refused() -> None:
    with pytest.raises(InputError, match="more than"):
        rewrite_schema({"anyOf": [{"items": {"items": {}}}] * 10_000})
