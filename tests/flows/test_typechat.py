"""Requests and types of TypeChat's examples, where they lie beside the checkout: what it can do for them is done here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taiwa.flows.extract import extract
from taiwa.flows.plans import Api, execute_plan
from taiwa.flows.route import Routed, Routes, route
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.text import estimate_tokens
from taiwa.models.scripted import scripted_model
from taiwa.structured import OutputType
from taiwa.structured.rendering import strict_form


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def schemas(shared_data: Path) -> dict[str, Any]:
    found = {
        row["domain"]: row["json_schema"]
        for row in rows(shared_data / "typechat_schemas.jsonl")
        if "json_schema" in row
    }
    assert len(found) >= 5
    return found


@pytest.fixture(scope="module")
def inputs(shared_data: Path) -> list[dict[str, Any]]:
    return list(rows(shared_data / "typechat_inputs.jsonl"))


def test_every_type_is_shown_in_fewer_tokens_than_its_schema(schemas: dict[str, Any]) -> None:
    for domain, schema in schemas.items():
        shown = OutputType.from_json_schema(schema).render()

        assert estimate_tokens(shown) < 0.75 * estimate_tokens(json.dumps(schema, separators=(",", ":"))), domain


def test_every_request_is_asked_in_its_own_words(schemas: dict[str, Any], inputs: list[dict[str, Any]]) -> None:
    asked = [row for row in inputs if row["domain"] in schemas and "input" in row]
    for row in asked:
        model = scripted_model("{}")
        with pytest.raises(Exception, match=r"script of 'scripted' is exhausted|no .* could be read"):
            Runtime(model).run(
                extract(OutputType.from_json_schema(schemas[row["domain"]], name="Wanted"), row["input"])
            )

        assert model.requests[0].messages[-1].text == row["input"]

    assert len(asked) > 20


@pytest.mark.parametrize(
    "around", ["ANSWER", "```json\nANSWER\n```", "Here it is: ANSWER - anything else?", "<think>{}</think>ANSWER"]
)
def test_what_was_expected_is_read_whatever_stands_around_it(
    schemas: dict[str, Any], inputs: list[dict[str, Any]], around: str
) -> None:
    expected = [row for row in inputs if "expected" in row and row["domain"] in schemas]
    for row in expected:
        output_type = OutputType.from_json_schema(schemas[row["domain"]])
        answer = around.replace("ANSWER", json.dumps(row["expected"]))

        found = Runtime(scripted_model(answer)).run(extract(output_type, row["input"]))

        assert found.value == row["expected"]
        assert len(found.attempts) == 1

    assert expected


def test_all_domains_are_one_route(schemas: dict[str, Any], inputs: list[dict[str, Any]]) -> None:
    targets: dict[str, object] = {domain: OutputType.from_json_schema(schema) for domain, schema in schemas.items()}
    row = next(row for row in inputs if "expected" in row and row["domain"] in schemas)

    found = Runtime(scripted_model(json.dumps({"to": row["domain"], "content": row["expected"]}))).run(
        route(targets, row["input"])
    )

    assert found == Routed(row["domain"], row["expected"])
    assert len(Routes(targets).render()) < len(json.dumps(list(schemas.values())))


def test_types_with_optional_keys_can_be_asked_for_strictly(schemas: dict[str, Any]) -> None:
    strict = {domain: strict_form(schema)[1] for domain, schema in schemas.items()}

    assert sum(strict.values()) >= len(strict) - 1, strict


def test_sums_in_words_are_programs_over_an_api(inputs: list[dict[str, Any]]) -> None:
    class Sums:
        def add(self, x: float, y: float) -> float:
            """Add."""
            return x + y

        def mul(self, x: float, y: float) -> float:
            """Multiply."""
            return x * y

    api = Api(Sums, undeclared="read")
    asked = [row["input"] for row in inputs if row["domain"] == "math"]
    answer = {
        "@steps": [
            {"@func": "mul", "@args": [2, {"@func": "add", "@args": [3, 4]}]},
            {"@func": "add", "@args": [{"@ref": 0}, 1]},
        ]
    }

    for words in asked:
        plan = Runtime(scripted_model(json.dumps(answer))).run(extract(api, words)).value
        assert Runtime(tools=api.bind(Sums())).run(execute_plan(api, plan)).result == 15

    assert asked
