"""What a genuine llama.cpp server drops in silence is caught, and named before the answer is there.

Its model has random weights, so whatever the decoder does not hold is soon broken. Each answer is judged by a validator of
its own: a fault at a keyword that we said is enforced would be a lie.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from taiwa.kernel.messages import Enforcement, JsonSchema, Request, Sampling, collect_response, user
from taiwa.kernel.serialization import Json
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.constraint_encoding import clause
from taiwa.models.providers import resolve
from tests.peers.llama import KEY, LlamaServer

SEEDS = 6
ANY: dict[str, Json] = {"enum": ["a", "b", "c"]}


def member(schema: dict[str, Json], **more: Json) -> dict[str, Json]:
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False, **more}


HELD: dict[str, dict[str, Json]] = {
    "integer bounds": member({"type": "integer", "minimum": 3, "maximum": 5}),
    "exclusive bounds": member({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 6}),
    "items bounds": member({"type": "array", "items": ANY, "minItems": 2, "maxItems": 3}),
    "lengths": member({"type": "string", "minLength": 2, "maxLength": 4}),
    "enum and const": member({"anyOf": [{"const": 4}, {"enum": ["x", None]}]}),
    "anchored pattern": member({"type": "string", "pattern": "^[ab]{2}-[0-9]$"}),
    "date": member({"type": "string", "format": "date"}),
    "reference": member({"$ref": "#/$defs/w"}, **{"$defs": {"w": {"enum": ["w"]}}}),
    "tuple": member({"type": "array", "prefixItems": [{"const": 1}, ANY]}),
    "types": member({"type": ["integer", "null"], "minimum": 3, "maximum": 9}),
    "oneOf of what is apart": member({"oneOf": [{"const": "a"}, {"const": 3}]}),
    "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
}
LOST: dict[str, tuple[dict[str, Json], str]] = {
    "number bounds": (member({"type": "number", "minimum": 5, "maximum": 5}), "/properties/v: maximum"),
    "multipleOf": (member({"type": "integer", "minimum": 1, "maximum": 99999, "multipleOf": 9973}), "/properties/v: multipleOf"),
    "uniqueItems": (
        member({"type": "array", "items": ANY, "minItems": 3, "maxItems": 3, "uniqueItems": True}),
        "/properties/v: uniqueItems",
    ),
    "not": (member({"enum": ["a", "b", "c", "d"], "not": {"enum": ["a", "b", "c"]}}), "/properties/v: not"),
    "beside anyOf": (
        member({"anyOf": [{"type": "integer"}, {"type": "null"}], "const": 1234567}),
        "/properties/v: const",
    ),
    "beside a reference": (
        member({"$ref": "#/$defs/w", "const": "z"}, **{"$defs": {"w": {"enum": ["w", "z", "y"]}}}),
        "/properties/v: const",
    ),
    "open pattern": (member({"type": "string", "pattern": "xq"}), "/properties/v: pattern"),
    "look-ahead": (member({"type": "string", "pattern": "^(?=q)[a-z]+$"}), "/properties/v: pattern"),
    "pattern and a length": (
        member({"type": "string", "pattern": "^[a-c]{1,9}$", "minLength": 9}),
        "/properties/v: minLength",
    ),
    "other format": (member({"type": "string", "format": "ipv4"}), "/properties/v: format"),
    "contains": (
        member({"type": "array", "items": ANY, "minItems": 1, "maxItems": 2, "contains": {"const": "z"}}),
        "/properties/v: contains",
    ),
    "dependentRequired": (
        {"type": "object", "properties": {"a": ANY}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
        "/: dependentRequired",
    ),
    "required without a property": (
        {"type": "object", "properties": {"a": ANY}, "required": ["a", "b"]},
        "/: required",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def model(llama: LlamaServer) -> Iterator[HttpModel]:
    """The server as strangers run it: schemas go through its own converter, for no grammar of ours is allowed."""
    target = resolve(
        "llamacpp:tiny", base_urls={"llamacpp": llama.base_url}, overrides={"llamacpp:tiny": {"grammar": False}}
    )
    with HttpModel(target, KEY) as made:
        yield made


def asked(model: HttpModel, schema: dict[str, Json]) -> list[tuple[object, Enforcement]]:
    """Whole answers, with what was said of them; what a limit cut off says nothing."""
    request = Request((user("hi"),), constraint=JsonSchema(schema))
    found: list[tuple[object, Enforcement]] = []
    for seed in range(SEEDS):
        answer = collect_response(model.stream(replace(request, sampling=Sampling(1.0, None, 160, seed))))
        assert answer.decoding.enforcement is not None
        if answer.finish == "stop":
            found.append((json.loads(answer.text), answer.decoding.enforcement))
    return found


def faults(schema: dict[str, Json], data: object) -> set[str]:
    """The keywords that an answer breaks, by their places in the schema, as an independent validator sees it."""
    checker = _validator(json.dumps(schema))
    return {
        clause("".join(f"/{step}" for step in list(error.absolute_schema_path)[:-1]), str(error.validator))
        for error in checker.iter_errors(data)
    }


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema), format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.mark.parametrize("name", HELD)
def test_what_is_reported_as_enforced_is_enforced(model: HttpModel, name: str) -> None:
    found = asked(model, HELD[name])

    assert found

    for data, enforcement in found:
        assert enforcement.method == "response_format"
        assert not enforcement.checked
        assert not faults(HELD[name], data)


@pytest.mark.parametrize("name", LOST)
def test_what_the_server_drops_silently_is_reported_and_nothing_else_is_violated(model: HttpModel, name: str) -> None:
    schema, lost = LOST[name]
    found = asked(model, schema)

    assert found
    for data, enforcement in found:
        assert lost in enforcement.checked
        assert faults(schema, data) <= set(enforcement.checked)
    assert any(lost in faults(schema, data) for data, _ in found), "the server holds this now: say so"


def test_no_answer_violates_a_keyword_that_is_reported_as_enforced(llama: LlamaServer, shared_data: Path) -> None:
    lines = (shared_data / "maskbench.jsonl").read_text(encoding="utf-8").splitlines()
    judged = 0
    with HttpModel(resolve("llamacpp:tiny", base_urls={"llamacpp": llama.base_url}), KEY) as model:
        for schema in (json.loads(line)["schema"] for line in lines[::8]):
            request = Request((user("hi"),), constraint=JsonSchema(schema), sampling=Sampling(1.0, None, 120, 1))
            answer = collect_response(model.stream(request))
            assert answer.decoding.enforcement is not None
            if answer.finish == "stop":
                judged += 1
                assert faults(schema, json.loads(answer.text)) <= set(answer.decoding.enforcement.checked)

    assert judged > 3
