"""Schemas of callers on their way to a model: each is encoded for every kind of server, and compiled to masks, or refused in
one line, whatever it holds; no pattern of it gets to an engine that may not end, and the event loop goes on meanwhile.
"""

import asyncio
import re
import threading
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.constraints.automaton import MOST_STEPS, Automaton, compile_regex
from taiwa.kernel.errors import NoValidTokenError, TaiwaError, ToolError
from taiwa.kernel.messages import Capability, JsonSchema, Regex, Request, user
from taiwa.models.http_api import constraint_encoding
from taiwa.models.http_api.capabilities import Capabilities
from taiwa.models.http_api.client import HttpModel
from taiwa.models.http_api.constraint_encoding import ConstraintEncoder, find_violation, text_as_schema
from taiwa.models.http_api.openai_chat import ChatCompletions
from taiwa.models.http_api.provider_interface import ConstraintWire
from taiwa.models.providers import resolve
from taiwa.structured import OutputType
from tests.peers.faults import FaultServer, speech
from tests.structured.test_schema_process import schemas

BOMB = "^(a+)+$"
KEY = "a" * 40 + "!"
EVERYTHING = Capabilities(frozenset(get_args(Capability)))
ENCODERS = tuple(ConstraintEncoder("the server", "m", wire, EVERYTHING) for wire in get_args(ConstraintWire))
ANTHROPIC = resolve("anthropic:claude-opus-4-5").codec
BYTES = Vocabulary.of_bytes()
HUGE = 10**400
CHAIN = {f"d{n}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(1_200)}
LISTS = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(1_200)}


def through_every_door(schema: dict[str, Any]) -> None:
    """Read a schema as a type, write it for a prompt, encode it for every server, and compile it to masks."""

    def attempt(call: Any) -> None:
        try:
            call()
        except (TaiwaError, NoValidTokenError) as error:
            assert "\n" not in error.message  # noqa: PT017  (any of the calls may refuse)

    constraint = JsonSchema(schema)
    attempt(lambda: OutputType.from_json_schema(schema).render())
    for encoder in (*ENCODERS, *(replace(each, strict=True) for each in ENCODERS)):
        attempt(lambda encoder=encoder: encoder.encode(constraint))
    attempt(lambda: ANTHROPIC.encode(Request((user("?"),), constraint=constraint)))
    attempt(lambda: constraints.compile(constraint, BYTES, strict=False))


@settings(max_examples=settings().max_examples // 2)
@given(schemas())
@example({"type": "integer", "const": HUGE})
@example({"type": "string", "minLength": HUGE})
@example({"minimum": HUGE, "exclusiveMinimum": True, "$schema": "http://json-schema.org/draft-04/schema#"})
@example({"multipleOf": HUGE, "maximum": -HUGE})
@example({"$defs": CHAIN | {"d1200": {"type": "null"}}, "$ref": "#/$defs/d0"})
@example({"$defs": LISTS | {"d1200": {"type": "null"}}, "$ref": "#/$defs/d0"})
def test_every_schema_is_encoded_for_every_server_or_refused(schema: Any) -> None:
    through_every_door(schema if isinstance(schema, dict) else {"not": schema})


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": BOMB, "default": KEY, "examples": [KEY], "enum": [KEY]},
        {"const": KEY, "pattern": BOMB, "not": {"pattern": BOMB}},
        {"oneOf": [{"const": KEY}, {"type": "string", "pattern": BOMB}]},
        {"patternProperties": {BOMB: {}}, "properties": {KEY: {}}, "required": [KEY], "additionalProperties": False},
        {"propertyNames": {"pattern": BOMB}, "properties": {KEY: {}}, "additionalProperties": False},
        {"propertyNames": {"$ref": "#/$defs/a"}, "$defs": {"a": {"pattern": BOMB}}, "properties": {KEY: {}}, "additionalProperties": False},
        {"if": {"properties": {KEY: {"pattern": BOMB}}}, "then": {"required": [KEY]}, "dependentRequired": {KEY: [KEY]}},
    ],
)  # fmt: skip
def test_no_pattern_of_a_schema_gets_to_an_engine_that_backtracks(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = re._compile  # type: ignore[attr-defined]  # what every function of the module calls

    def watched(pattern: Any, flags: int) -> Any:
        assert BOMB not in str(pattern)
        return compiled(pattern, flags)

    monkeypatch.setattr(re, "_compile", watched)
    for inside in (schema, {"type": "array", "items": schema}, {"properties": {"a": schema}}):
        through_every_door({"type": "object", **inside})
        through_every_door(inside)


def test_the_event_loop_goes_on_while_a_constraint_is_encoded_and_an_answer_compared_with_it(
    faults: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.plays(speech("tea"))
    threads: list[int] = []

    def watch(holder: Any, name: str) -> None:
        call = getattr(holder, name)

        def watched(*arguments: Any) -> Any:
            threads.append(threading.get_ident())
            return call(*arguments)

        monkeypatch.setattr(holder, name, watched)

    watch(ChatCompletions, "encode")
    watch(constraint_encoding, "find_violation")
    watch(constraint_encoding, "text_as_schema")

    async def ask() -> None:
        model = HttpModel(resolve("vllm:m", base_urls={"vllm": faults.base_url}))
        async for _ in model.astream(Request((user("?"),), constraint=Regex("[a-z]+"))):
            pass

    asyncio.run(ask())
    assert len(threads) == 3
    assert threading.get_ident() not in threads


LARGE = "|".join(f"w{number}" for number in range(5_000))


@pytest.mark.parametrize("pattern", ["(?:a?){5000}a{5000}", ".{0,10000}.{0,10000}", "(a|b)?" * 3_000, LARGE])
def test_no_automaton_of_many_steps_is_made_in_this_process(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, bounds = compile_regex, list[int]()

    def watched(pattern: str, *, chars: bool, most_steps: int = MOST_STEPS) -> Automaton:
        bounds.append(most_steps)
        return made(pattern, chars=chars, most_steps=most_steps)

    monkeypatch.setattr(constraint_encoding, "compile_regex", watched)
    if pattern != LARGE:  # the others take all of the time
        limits = replace(constraint_encoding.LIMITS, seconds=0.1)
        monkeypatch.setattr(constraint_encoding._processes, "limits", limits)
    request = Request((user("?"),), constraint=Regex(pattern))

    text_as_schema(request, frozenset({"json_schema"}))
    broken = find_violation(request, "x")

    assert bounds == [constraint_encoding.QUICK_STEPS]
    assert broken == (("/: regex",) if pattern == LARGE else ())
    assert find_violation(request, "w4999" if pattern == LARGE else "a") == ()


def test_a_pattern_that_took_all_of_its_time_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Endless:
        def ask(self, question: dict[str, object]) -> dict[str, object]:
            asked.append(question["text"])
            raise ToolError("timed out", code="timeout")

    monkeypatch.setattr(constraint_encoding, "_processes", Endless())
    request = Request((user("?"),), constraint=Regex(f"(?:a?){{6000}}a{{{len(LARGE)}}}"))

    assert [find_violation(request, text) for text in ("x", "y")] == [(), ()]
    assert asked == ["x"]
