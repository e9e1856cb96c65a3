"""Schemas and values from outside: nothing is fetched, patterns are linear, and what takes too long is ended."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.json_schema import KEYWORDS, REFERENCES
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.structured import OutputType, schema_process
from taiwa.structured.schema_process import ask

OUTSIDE = (
    "{url}",
    "file:///etc/passwd",
    "#/$defs/missing",
    "other.json",
    "urn:x:y",
    "http://json-schema.org/draft-07/schema#",
)


@pytest.fixture(scope="module")
def fetched() -> Iterator[tuple[str, list[str]]]:
    """The address of a server with a schema, and the paths that it was asked for."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (as the base class names it)
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/schema", paths
    server.shutdown()
    server.server_close()


def holders() -> list[str]:
    return [name for name, keyword in KEYWORDS.items() if keyword.contents]


def inside(keyword: str, schema: dict[str, Any]) -> dict[str, Any]:
    contents = KEYWORDS[keyword].contents
    draft = {"$schema": "http://json-schema.org/draft-07/schema#"} if KEYWORDS[keyword].until < 9 else {}
    return draft | {keyword: [schema] if contents == "list" else {"a": schema} if contents == "named" else schema}


@pytest.mark.parametrize("reference", sorted(REFERENCES))
@pytest.mark.parametrize("target", OUTSIDE)
def test_a_reference_that_leaves_the_schema_is_refused_whatever_keyword_contains_it(
    fetched: tuple[str, list[str]], reference: str, target: str
) -> None:
    url, paths = fetched
    schema = {reference: target.format(url=url)}
    if reference == "$recursiveRef":
        schema["$schema"] = "https://json-schema.org/draft/2019-09/schema"

    for keyword in holders():
        if reference == "$ref" or KEYWORDS[keyword].until > 8:
            with pytest.raises(InputError, match="is not in this schema; nothing is fetched"):
                OutputType.from_json_schema(
                    inside(keyword, schema)
                    if reference == "$ref"
                    else {**schema, keyword: inside(keyword, {})[keyword]}
                )
    assert paths == []


def test_the_validator_itself_cannot_retrieve(fetched: tuple[str, list[str]]) -> None:
    url, paths = fetched
    for reference in ("$ref", "$dynamicRef"):
        with pytest.raises(InputError, match=r"cannot be used|fails, or needs"):
            ask({"schema": f'{{"not": {{"{reference}": "{url}"}}}}', "text": "1"})
    assert paths == []


def test_a_pattern_takes_linear_time() -> None:
    text = {"a": "a" * 50_000 + "b"}
    for schema in (
        {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"additionalProperties": {"pattern": "^(a|a)*$"}},
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a+)+$"}}},
    ):
        with pytest.raises(OutputValidationError, match=r"pattern|any value"):
            OutputType.from_json_schema({"type": "object", **schema}).validate(text)
    for schema in (
        {"patternProperties": {"^(a+)+$": True}, "additionalProperties": False},
        {"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
        {"propertyNames": {"pattern": "^(a+)+$"}},
    ):
        with pytest.raises(OutputValidationError):
            OutputType.from_json_schema({"type": "object", **schema}).validate({"a" * 50_000 + "b": 1})


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(?<!a)b", "("])
def test_a_pattern_that_needs_backtracking_is_refused_by_name(pattern: str) -> None:
    for schema in ({"pattern": pattern}, {"patternProperties": {pattern: True}}):
        with pytest.raises(InputError, match=r"the pattern .* is not supported"):
            OutputType.from_json_schema({"properties": {"a": schema}})


def doubling(levels: int) -> dict[str, Any]:
    twice = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}]}]}
        for n in range(levels)
    }
    return {"$defs": {**twice, f"d{levels}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def opened_twice(levels: int) -> dict[str, Any]:
    """Merged with a reference, each level is copied twice into the one above."""
    parts: dict[str, Any] = {
        f"d{n}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/d{n + 1}", "minProperties": 0} for key in "xy"},
        }
        for n in range(levels)
    }
    return {"$defs": {**parts, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (doubling(24), "applies more than 2,000 schemas to one value"),
        (opened_twice(60), "more than 50,000 parts"),
        (nested(900), "nested too deep"),
        ({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}}, "more than 5,000 schemas"),
        ({"enum": list(range(60_000))}, "more than 50,000 values"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "applies itself to the same value"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}, "items": {"$ref": "#/$defs/a"}}, "applies itself"),
    ],
)  # fmt: skip
def test_a_schema_that_is_too_large_is_refused_before_anything_is_compiled(
    schema: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        OutputType.from_json_schema(schema)


@pytest.mark.parametrize("schema", [doubling(8), opened_twice(8), nested(98), {"items": {"$ref": "#"}}])
def test_a_schema_within_the_limits_is_used(schema: dict[str, Any]) -> None:
    assert OutputType.from_json_schema(schema).name == "Answer"


def test_a_value_may_be_nested_deeper_than_a_schema() -> None:
    tree = {"$defs": {"t": {"type": ["array", "null"], "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"}

    assert ask({"schema": json.dumps(tree), "text": "[" * 500 + "]" * 500}) == {"issues": []}


def test_a_validation_that_does_not_end_is_ended_and_the_next_one_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(schema_process.LIMITS, seconds=0.1)
    monkeypatch.setattr(schema_process, "LIMITS", limits)
    monkeypatch.setattr(schema_process._processes, "limits", limits)
    parts = {
        f"d{n}": {"anyOf": [{"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, key: True}} for key in "bc"]}
        for n in range(60)
    }
    schema = {"$defs": {**parts, "d60": {"type": "string"}}, "$ref": "#/$defs/d0"}
    value: Any = 1
    for _ in range(60):
        value = {"a": value}

    with pytest.raises(InputError, match=r"takes more than 0\.1 s; simplify the schema"):
        OutputType.from_json_schema(schema).validate(value)
    monkeypatch.undo()
    assert OutputType.from_json_schema({"type": "integer"}).validate(1) == 1


def test_a_validation_that_needs_too_much_memory_is_ended() -> None:
    with pytest.raises(InputError, match=r"MemoryError|needs more than 256 MB|takes more than 2 s"):
        ask({"schema": "{}", "text": "[" + "[],[],[],[],[],[],[],[]," * 600_000 + "1]"})


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_a_pattern_matches_anywhere_in_the_text(pattern: str, text: str) -> None:
    answer = ask({"schema": f'{{"pattern": "{pattern}"}}', "text": f'"{text}"'})

    assert (answer["issues"] == []) is (pattern in text)


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of every keyword, mostly with allowed values, and of references to all kinds of places."""
    targets = st.sampled_from(
        (*OUTSIDE[1:], "#", "#/$defs/a", "#a", "#/items", "a", "#/$defs/a/not", "http://a.example/b#/c")
    )
    scalars = st.one_of(
        st.integers(-3, 3), st.sampled_from((True, None, "a", "^(a+)+$", "(?=a)", "date", 1e300, 10**400))
    )
    leaves = st.one_of(
        st.booleans(),
        st.fixed_dictionaries({"type": st.sampled_from(("string", "object", "array", "integer", "odd"))}),
        st.builds(lambda name, target: {name: target}, st.sampled_from(sorted(REFERENCES)), targets),
        st.builds(lambda name, value: {name: value}, st.sampled_from(sorted(KEYWORDS)), scalars),
    )

    def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        def hold(name: str, parts: list[Any]) -> dict[str, Any]:
            contents = KEYWORDS[name].contents if name in KEYWORDS else "named"
            return {
                name: dict(zip("abc", parts, strict=False))
                if contents == "named"
                else parts
                if contents == "list"
                else parts[0]
            }

        holding = st.builds(hold, st.sampled_from([*holders(), "$defs"]), st.lists(inner, min_size=1, max_size=3))
        marks = st.sampled_from(
            (
                {},
                {"$id": "a"},
                {"$anchor": "a"},
                {"$dynamicAnchor": "a"},
                {"$schema": "http://json-schema.org/draft-04/schema#"},
            )
        )
        return st.builds(
            lambda *parts: {key: each for part in parts for key, each in part.items()}, holding, holding, marks
        )

    return st.recursive(leaves, around, max_leaves=12)


@given(schemas(), st.sampled_from(('{"a": [1, "aab", null]}', '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"', "[[], {}]", "3")))
def test_every_schema_is_used_or_refused(schema: Any, answer: str) -> None:
    with suppress(InputError, OutputValidationError):
        OutputType.from_json_schema(schema if isinstance(schema, dict) else {"not": schema}).parse(answer)
