import json
from typing import Any

import pytest
from jsonschema.validators import validator_for

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.constraints.schema_rewriter import rewrite_schema
from taiwa.kernel.messages import JsonSchema

BYTES = Vocabulary.of_bytes()
VALUES: list[Any] = [
    0, 1, 2, 3, 4, 0.5, -1, None, True, "", "a", "ab", "abc", [], [1], ["a"], [1, "a"], [1, "a", 2], {}, {"a": "a"}, {"a": 1},
    {"a": "abc"}, {"b": 1}, {"a": 1, "b": 2},
]  # fmt: skip
DRAFTS = ["draft-03", "draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"]
NAMED: Any = {"n": {"type": "string"}}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/n", "maxLength": 1, "definitions": NAMED},
        {
            "properties": {"a": {"$ref": "#/definitions/n", "minLength": 2}},
            "additionalProperties": False,
            "definitions": NAMED,
        },
        {"const": 3},
        {"if": {"type": "string"}, "then": {"maxLength": 1}},
        {"prefixItems": [{"type": "integer"}]},
        {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}},
        {"propertyNames": {"pattern": "^a$"}},
        {"dependencies": {"a": ["b"]}},
        {"dependentRequired": {"a": ["b"]}},
        {"minimum": 1, "type": "integer"},
        {"allOf": [{"type": "integer"}, {"minimum": 1}]},
        {"type": "object", "unevaluatedProperties": False, "properties": {"a": {}}},
    ],
)
def test_a_schema_means_what_its_draft_says(draft: str, schema: Any) -> None:
    if "2020" in draft and isinstance(schema.get("items"), list):
        return  # 2020-12 knows no list here
    held = {"$schema": f"http{'s' if '/' in draft else ''}://json-schema.org/{draft}/schema#", **schema}
    valid = validator_for(held)(held).is_valid

    compiled = constraints.compile(JsonSchema(held), BYTES)

    assert [value for value in VALUES if compiled.accepts(json.dumps(value).encode())] == [
        v for v in VALUES if valid(v)
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
        {"type": "integer", "divisibleBy": 2},
        {"extends": {"type": "integer"}},
        {"extends": [{"type": "integer"}, {"minimum": 1}]},
        {"disallow": ["string", "object"]},
        {"type": "any"},
    ],
)
def test_the_third_draft_is_read_in_its_own_notation(schema: Any) -> None:
    held = {"$schema": "http://json-schema.org/draft-03/schema#", **schema}
    before = json.dumps(held)
    valid = validator_for(held)(held).is_valid

    compiled = constraints.compile(JsonSchema(held), BYTES)

    assert [value for value in VALUES if compiled.accepts(json.dumps(value).encode())] == [
        v for v in VALUES if valid(v)
    ]
    assert json.dumps(held) == before  # the caller's schema stays as it is


def test_what_a_draft_passes_over_is_told() -> None:
    found = rewrite_schema({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"const": 1}}})

    assert [str(clause) for clause in found.ignored] == ["/properties/a: const (introduced after its draft)"]


def test_a_schema_of_no_draft_is_read_with_all_keywords() -> None:
    schema: Any = {"$ref": "#/definitions/n", "maxLength": 1, "dependencies": {"a": ["b"]}, "definitions": NAMED}

    assert not constraints.compile(JsonSchema(schema), BYTES).accepts(b'"ab"')
    assert rewrite_schema(schema).ignored == ()


def test_required_as_true_or_false_is_told_where_it_has_no_meaning() -> None:
    found = rewrite_schema({"properties": {"a": {"type": "string", "required": True}}})

    assert [(clause.pointer, clause.keyword) for clause in found.ignored] == [("/properties/a", "required")]
