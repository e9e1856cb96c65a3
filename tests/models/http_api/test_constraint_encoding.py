import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import (
    Choice,
    Constraint,
    Enforcement,
    FailedAttempt,
    Grammar,
    JsonSchema,
    Regex,
    Request,
    StreamEnd,
    TextDelta,
    ToolCallsInText,
    ToolSpec,
    user,
)
from taiwa.kernel.serialization import Json, text_at
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.constraint_encoding import ConstraintEncoder, TextReader, text_as_schema
from taiwa.models.http_api.openai_chat import ChatCompletions
from taiwa.models.http_api.provider_interface import Enforce, WireRequest
from taiwa.models.providers import resolve
from tests.constraints.gbnf_reader import Gbnf
from tests.models.conftest import Face
from tests.peers.faults import FaultServer, speech

NUMBER: dict[str, Json] = {"type": "object", "properties": {"v": {"type": "number", "minimum": 0, "maximum": 9}}, "required": ["v"], "additionalProperties": False}  # fmt: skip
UNIQUE: dict[str, Json] = {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True}
CALC = ToolSpec("calc", "", {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})


def call(
    name: str, constraint: Constraint, prefix: str = "", hold: Enforce = "auto", held: Mapping[str, str] | None = None
) -> WireRequest:
    codec = resolve(name).codec
    assert isinstance(codec, ChatCompletions)
    codec = replace(codec, enforce=hold, capabilities=replace(codec.capabilities, verdicts=tuple((held or {}).items())))
    return codec.encode(Request((user("?"),), prefix=prefix, constraint=constraint))


def body(made: WireRequest) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(made.body)
    return read


def told(*arguments: Any, **named: Any) -> Enforcement:
    found = call(*arguments, **named).enforcement
    assert found is not None
    return found


def test_a_schema_that_the_llama_cpp_server_would_drop_a_part_of_is_sent_as_a_grammar_of_our_own() -> None:
    made = call("llamacpp:x", JsonSchema(NUMBER))

    grammar = Gbnf(body(made)["grammar"])
    assert grammar.accepts('{"v": 8.5}')
    assert not grammar.accepts('{"v": 10}')
    assert made.enforcement is not None
    assert made.enforcement.whole
    assert "/properties/v: maximum" in made.enforcement.enforced
    assert "response_format" not in body(made)


def test_what_no_grammar_of_ours_can_say_is_left_to_a_check_and_named() -> None:
    found = told("llamacpp:x", JsonSchema(UNIQUE))

    assert found.method == "response_format"
    assert found.checked == ("/: uniqueItems",)
    assert set(found.enforced) == {"/: type", "/: items", "/items: enum"}


@pytest.mark.parametrize(
    ("pattern", "is_sent"),
    [
        ("^[a-z]+$", True),
        ('^[^"\\\\<>]+$', False),
        ("^[^<>]+$", False),
        ("^.+$", False),
        ("^[!-~]*$", False),
        ("\\d+", False),
    ],
)
def test_llama_cpp_gets_no_pattern_that_would_take_in_the_rest_of_the_document(pattern: str, is_sent: bool) -> None:
    made = call("llamacpp:x", JsonSchema({**UNIQUE, "items": {"type": "string", "pattern": pattern}}))

    sent = body(made)["response_format"]["json_schema"]["schema"]
    assert ("pattern" in sent["items"]) == is_sent
    assert sent["items"]["type"] == "string"
    assert made.enforcement is not None
    assert ("/items: pattern" in made.enforcement.checked) == (not is_sent)


def test_the_strict_refuse_what_would_only_be_checked_and_the_lenient_send_it() -> None:
    with pytest.raises(UnsupportedError, match="does not enforce /: uniqueItems"):
        call("llamacpp:x", JsonSchema(UNIQUE), hold="strict")

    assert call("llamacpp:x", JsonSchema(NUMBER), hold="strict").enforcement is not None


@pytest.mark.parametrize(
    ("constraint", "clause"),
    [
        (Regex("a+"), "/: regex"),
        (Choice(("a",)), "/: choice"),
        (Grammar("start: /a/"), "/: grammar"),
        (ToolCallsInText((CALC,)), "/: tools"),
    ],
)
def test_the_lenient_leave_out_what_a_server_has_no_words_for_and_say_so(constraint: Constraint, clause: str) -> None:
    made = call("http://127.0.0.1:1/v1#x", constraint, hold="lenient")

    assert made.enforcement == Enforcement(checked=(clause,))
    assert not {"response_format", "grammar", "regex", "structured_outputs"} & body(made).keys()


def test_what_a_probe_found_goes_before_what_a_server_says() -> None:
    schema = JsonSchema(NUMBER)

    assert told("vllm:x", schema).enforced == ()
    assert "/properties/v: maximum" in told("vllm:x", schema).promised
    found = told("vllm:x", schema, held={"required": "enforced", "number bounds": "ignored"})
    assert set(found.checked) == {"/properties/v: minimum", "/properties/v: maximum"}
    assert {"/: required", "/: properties", "/properties/v: type"} <= set(found.enforced)
    assert found.promised == ("/: additionalProperties",)
    assert told("vllm:x", Regex("a"), held={"regex": "enforced"}).enforced == ("/: regex",)
    assert told("vllm:x", Regex("a")).promised == ("/: regex",)


def test_a_probe_that_saw_a_keyword_ignored_is_believed_over_the_walk() -> None:
    schema: dict[str, Json] = {"type": "array", "items": {"enum": [1]}, "minItems": 2, "uniqueItems": True}

    assert told("llamacpp:x", JsonSchema(schema), held={"items bounds": "ignored"}).checked == (
        "/: minItems",
        "/: uniqueItems",
    )


def test_openai_s_strict_form_promises_only_what_it_says() -> None:
    loose: dict[str, Json] = {"type": "object", "properties": {"x": {"type": "string", "minLength": 2}}}

    found = told("openai:gpt-4o", JsonSchema(loose))

    assert "/properties/x: minLength" in found.checked
    assert "/properties/x: type" in (*found.promised, *found.checked)


@pytest.mark.parametrize("name", ["llamacpp:x", "vllm:x", "sglang:x"])
def test_a_begun_answer_is_gone_on_with_by_what_is_left_of_its_constraint(name: str) -> None:
    def left(constraint: Constraint, prefix: str) -> Gbnf:
        sent = body(call(name, constraint, prefix))
        field = sent.get("grammar") or sent.get("ebnf") or sent["structured_outputs"]["grammar"]
        return Gbnf(field)

    assert left(Regex("[0-9]{4}-[0-9]{2}"), "2026-1").accepts("2")
    assert left(JsonSchema(NUMBER), '{"v": ').accepts("3}")
    assert left(Choice(("red", "green")), "gr").accepts("een")
    assert left(ToolCallsInText((CALC,)), "So <<ca").accepts("lc: 1>>")


def test_a_beginning_that_cannot_be_gone_on_with_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="begins with 'x'"):
        call("llamacpp:x", Regex("[0-9]+"), "x")
    with pytest.raises(UnsupportedError, match="with a prefix"):
        call("llamacpp:x", Grammar("start: /a+/"), "a")
    with pytest.raises(UnsupportedError, match="cannot continue a prefix under"):
        call("mistral:mistral-large", JsonSchema(NUMBER), "{")


def test_a_schema_that_refers_to_itself_is_the_server_s_own_matter() -> None:
    node: dict[str, Json] = {
        "type": "object",
        "properties": {"n": {"type": "number", "minimum": 0}, "next": {"$ref": "#"}},
    }

    found = told("llamacpp:x", JsonSchema(node))

    assert found.method == "response_format"
    assert found.checked == ("/properties/n: type", "/properties/n: minimum")


def test_llama_cpp_gets_a_grammar_that_bounds_the_numbers_of_a_schema() -> None:
    made = call("llamacpp:x", JsonSchema({"type": "array", "items": {"type": "number"}}))

    grammar = Gbnf(body(made)["grammar"])
    assert grammar.accepts("[8.5,-3e99,12]")
    assert not grammar.accepts("[888e2388]")
    assert made.enforcement is not None
    assert made.enforcement.whole


def test_a_probe_does_not_show_that_a_server_bounds_the_exponents_of_numbers() -> None:
    held = {"required": "enforced", "number bounds": "enforced"}

    open_number = told("vllm:x", JsonSchema({"type": "number"}), held=held)
    bounded = told("vllm:x", JsonSchema({"type": "number", "minimum": 0, "maximum": 9}), held=held)

    assert (open_number.enforced, open_number.promised) == ((), ("/: type",))
    assert bounded.whole


def test_every_clause_of_a_real_schema_is_told_once(shared_data: Path) -> None:
    lines = (shared_data / "maskbench.jsonl").read_text(encoding="utf-8").splitlines()
    for schema in (json.loads(line)["schema"] for line in lines):
        found = told("llamacpp:x", JsonSchema(schema))
        every = [*found.enforced, *found.promised, *found.checked]

        assert len(every) == len(set(every))


# --- a text as a schema -------------------------------------------------------------------------------------------------

DRINKS = Request((user("Which?"),), constraint=Choice("tea", "green tea"))


@pytest.mark.parametrize(
    "name", ["openai:gpt-4o", "openai:gpt-5", "anthropic:claude-sonnet-4-5", "ollama:m", "mistral:m"]
)
def test_a_choice_is_an_enum_where_only_schemas_are_enforced(name: str) -> None:
    target = resolve(name)
    sent = text_as_schema(DRINKS, target.capabilities)

    assert isinstance(sent.constraint, JsonSchema)
    assert sent.constraint.schema["properties"] == {"choice": {"type": "string", "enum": ["tea", "green tea"]}}
    assert target.codec is not None
    assert b'"enum"' in target.codec.encode(sent).body


@pytest.mark.parametrize("name", ["llamacpp:m", "vllm:m", "sglang:m", "groq:m", "http://127.0.0.1:9/v1#m"])
def test_a_choice_stays_one_where_the_server_has_it_or_has_no_schema(name: str) -> None:
    assert text_as_schema(DRINKS, resolve(name).capabilities) is DRINKS


@pytest.mark.parametrize("name", ["openai:gpt-4o", "anthropic:claude-sonnet-4-5", "ollama:m"])
def test_a_pattern_of_few_texts_is_an_enum_and_any_other_the_pattern_of_a_string(name: str) -> None:
    few, many = (replace(DRINKS, constraint=Regex(pattern)) for pattern in ("(green )?tea", "[0-9]{4}-[0-9]{2}"))
    able = resolve(name).capabilities

    listed, matched = text_as_schema(few, able).constraint, text_as_schema(many, able).constraint

    assert isinstance(listed, JsonSchema)
    assert isinstance(matched, JsonSchema)
    assert listed.schema["properties"] == {"choice": {"type": "string", "enum": ["green tea", "tea"]}}
    assert matched.schema["properties"] == {"text": {"type": "string", "pattern": "^(?:[0-9]{4}-[0-9]{2})$"}}


def test_a_pattern_is_a_grammar_where_the_server_has_only_these() -> None:
    able = Capabilities(frozenset({"grammar"}))

    encoded = ConstraintEncoder("the server", "m", "fields", able).encode(Regex("a+"))

    assert list(encoded.fields) == ["ebnf"]


def test_the_text_that_matches_a_pattern_is_the_answer(faults: FaultServer, face: Face) -> None:
    target = resolve(f"{faults.base_url}#m", overrides={f"{faults.base_url}#m": {"json_schema": True}})
    faults.plays(speech('{"text": "2026-11"}'))

    with HttpModel(target) as model:
        answer = face.ask(model, replace(DRINKS, constraint=Regex("[0-9]{4}-[0-9]{2}")))

    assert answer.text == "2026-11"
    assert answer.decoding.enforcement is not None
    assert answer.decoding.enforcement.broken == ()


def test_a_choice_after_a_prefix_is_no_schema() -> None:
    begun = replace(DRINKS, prefix="gr")

    assert text_as_schema(begun, resolve("openai:gpt-4o").capabilities) is begun


@pytest.mark.parametrize(
    ("text", "chosen"), [('{"choice": "green tea"}', "green tea"), ('{"choi', '{"choi'), ("tea", "tea"), ("[1]", "[1]")]
)
def test_the_chosen_text_is_the_answer(faults: FaultServer, face: Face, text: str, chosen: str) -> None:
    target = resolve(f"{faults.base_url}#m", overrides={f"{faults.base_url}#m": {"json_schema": True}})
    faults.plays(speech(text))

    with HttpModel(target) as model:
        answer = face.ask(model, DRINKS)

    assert answer.text == chosen
    assert answer.decoding.enforcement is not None
    assert answer.decoding.enforcement.broken == (() if chosen in ("tea", "green tea") else ("/: choice",))
    assert text_at(faults.seen[0].json, "response_format", "type") == "json_schema"


def test_the_text_of_a_failed_attempt_is_no_part_of_the_choice() -> None:
    reader = TextReader()
    chunks = [TextDelta('{"choice": "te'), FailedAttempt(), TextDelta('{"choice": "tea"}'), StreamEnd()]

    assert [each for chunk in chunks for each in reader.read(chunk)] == [FailedAttempt(), TextDelta("tea"), StreamEnd()]
