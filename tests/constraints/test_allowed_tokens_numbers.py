"""Every number that a constraint from a type or a schema allows can be read, and is finite."""

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random
from typing import Annotated, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from taiwa import constraints
from taiwa.constraints import RegexGuide, Vocabulary
from taiwa.constraints.allowed_tokens import REST, UNBOUNDED, JsonScan, number_bounds
from taiwa.constraints.automaton import Automaton, compile_regex
from taiwa.constraints.gbnf import tool_calls_to_gbnf
from taiwa.constraints.guide import Guide
from taiwa.constraints.readable_guides import ReadableGuide
from taiwa.constraints.schema_regex import to_regex
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import JsonSchema, ToolCallsInText, ToolSpec
from taiwa.structured import OutputType
from tests.constraints.vocabularies import with_bytes

BYTES = Vocabulary.of_bytes()
DIGITS = with_bytes("000", "123", "e9", "e+", ".5", ", ", "9e99", "1e999", "1" * 21, '":', "true", "E-00", "---------")
MOST_TOKENS = 250
SEEDS = st.integers(0, 10_000).map(Random)


@dataclass
class Weighed:
    count: int
    mass: float
    price: Decimal | None = None


TYPES: tuple[Any, ...] = (
    int,
    float,
    Decimal,
    list[float],
    dict[str, float],
    Weighed,
    Annotated[int, Field(ge=-3)],
    Annotated[float, Field(ge=0)],
    Annotated[float, Field(gt=-2, lt=7)],
    float | str | None,
)
SCHEMAS: tuple[Any, ...] = ({}, {"type": "object"}, {"type": "array"}, {"enum": [0.00012345678901234567, 1e-300]})


@cache
def guides(schema: str, vocabulary: Vocabulary) -> tuple[ReadableGuide[Any], ReadableGuide[int]]:
    """The guide of the engine and that of an automaton for a schema as JSON text; an automaton takes long to compile."""
    parsed = json.loads(schema)
    return constraints.compile(JsonSchema(parsed), vocabulary), RegexGuide.of_schema(parsed, vocabulary)


def likes_numbers(text: bytes) -> int:
    """How often a text is chosen: digits, points and exponents most, so that numbers become as long as they may."""
    return 60 if text[:1] in (*(b"%d" % digit for digit in range(10)), b"e", b"E", b".", b"+", b"-") else 1


def sampled(guide: Guide, random: Random) -> bytes | None:
    """A text of a model that likes long numbers; None if it comes to no end."""
    vocabulary, state = guide.vocabulary, guide.start()
    likings = list(map(likes_numbers, vocabulary.tokens))
    for _ in range(MOST_TOKENS):
        tokens = state.allowed(len(vocabulary)) or ()
        assert tokens, "a text that is allowed so far can be continued"
        token = random.choices(tokens, [likings[token] for token in tokens])[0]
        if token in vocabulary.end:
            return vocabulary.decode(state.tokens)
        state = state.advance(token)
    return None


def walked(automaton: Automaton, random: Random) -> str:
    """A text along an automaton over characters."""
    text, state = "", 0
    while True:
        moves = [(chr(random.randint(low, min(high, low + 90))), there) for low, high, there in automaton.moves[state]]
        if state in automaton.finals and (not moves or random.random() < 0.02):
            return text
        sign, state = random.choices(moves, [likes_numbers(sign.encode("utf-8", "replace")) for sign, _ in moves])[0]
        text += sign


def check_finite(value: Any) -> None:
    if isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            check_finite(part)
    elif isinstance(value, (int, float)):
        assert math.isfinite(float(value))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TYPES), st.sampled_from((BYTES, DIGITS)), SEEDS)
def test_every_number_that_the_mask_of_a_type_allows_is_finite(
    kind: Any, vocabulary: Vocabulary, random: Random
) -> None:
    output_type: OutputType[Any] = OutputType(kind)
    schema = output_type.schema()
    guides: list[Guide] = [constraints.compile(output_type, vocabulary, strict=False)]
    try:
        guides.append(RegexGuide.of_schema(schema, vocabulary))
    except InputError:
        assert kind is Decimal or kind is Weighed  # a pattern with look-ahead

    for guide in guides:
        text = sampled(guide, random)
        if text is not None:
            check_finite(json.loads(text))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SCHEMAS), SEEDS)
def test_numbers_are_bounded_where_a_schema_says_nothing_about_them(schema: Any, random: Random) -> None:
    for guide in guides(json.dumps(schema), DIGITS):
        text = sampled(guide, random)
        if text is not None:
            check_finite(json.loads(text))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from((int, float, list[float], Annotated[float, Field(ge=0)])), SEEDS)
def test_a_grammar_for_a_server_bounds_them_too(kind: Any, random: Random) -> None:
    output_type: OutputType[Any] = OutputType(kind)

    value = json.loads(walked(compile_regex(to_regex(dict(output_type.schema()), " ?"), chars=True), random))

    check_finite(value)
    output_type.validate(value)


WEIGH = ToolSpec(
    "weigh",
    "",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
HALVE = ToolSpec("halve", "", {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})


@settings(max_examples=40, deadline=None)
@given(st.sampled_from((WEIGH, HALVE)), SEEDS)
def test_the_inputs_of_tools_are_bounded_in_the_engine_and_in_the_grammar_of_a_server(
    spec: ToolSpec, random: Random
) -> None:
    calls = ToolCallsInText((spec,), free_text=False)
    text = sampled(constraints.compile(calls, DIGITS), random)

    for call in (text.decode() if text is not None else None, walked(tool_calls_to_gbnf(calls).automaton, random)):
        if call is not None:
            start, end = calls.opening.format(name=spec.name), calls.closing
            check_finite(json.loads(call.removeprefix(start).removesuffix(end)))


def test_long_numbers_in_free_text_and_in_strings_are_not_bounded() -> None:
    number = "1" * 40 + "e999"

    assert constraints.compile(JsonSchema({"type": "string"}), DIGITS).accepts(f'"{number}\\"{number}"'.encode())
    assert constraints.compile(ToolCallsInText((WEIGH,)), DIGITS).accepts(number.encode())


@pytest.mark.parametrize(
    "number", ["6.02214076e23", "-6.62607015E-34", "9223372036854775807", "1e-300", "0.1234567890123456789"]
)
def test_numbers_that_occur_are_allowed(number: str) -> None:
    for guide in guides('{"type": "number"}', BYTES):
        assert guide.accepts(number.encode())
    for guide in guides('{"type": "array", "items": {}}', BYTES):
        assert guide.accepts(f"[{number},{number}]".encode())


@pytest.mark.parametrize("number", ["58347E+3496", "1e100", "1" * 21, "0." + "3" * 25, "[1,2e999]", '{"a":1e999}'])
def test_numbers_beyond_the_bounds_are_refused_everywhere(number: str) -> None:
    for guide in guides("{}", BYTES):
        assert not guide.accepts(number.encode())


@pytest.mark.parametrize(
    "schema", [{"const": 1e-300}, {"enum": [1e-30, True]}, {"type": "number", "minimum": 1e-40, "maximum": 2e-40}]
)
def test_a_number_that_the_schema_itself_makes_longer_is_written_to_its_end(schema: Any) -> None:
    state = constraints.compile(JsonSchema(schema), BYTES).start()
    while not state.is_final:
        state = state.advance(cast("Any", state.allowed(len(BYTES)))[0])

    assert 0 < json.loads(state.text) < 1e-20
    assert constraints.compile(JsonSchema(schema), BYTES).accepts(state.text)


def test_a_token_that_makes_a_number_too_long_is_refused_with_the_reason() -> None:
    state = constraints.compile(JsonSchema({"type": "integer"}), DIGITS).start()
    for token in DIGITS.divide(b"1" * 20):
        state = state.advance(token)

    assert state.allowed() == DIGITS.end
    assert state.is_complete
    assert "'000' is not expected" in state.explain(DIGITS.tokens.index(b"000")).why
    with pytest.raises(InputError, match="is not expected"):
        state.advance(ord("1"))
    assert state.rollback(1).advance(ord("7")).is_final


@given(st.lists(st.sampled_from([b'"', b"\\", b"1", b"000", b"e", b"E+", b".", b",", b"-", b"a"]), max_size=40))
def test_a_scan_is_the_same_in_one_piece_and_in_many(parts: list[bytes]) -> None:
    scan: JsonScan | None = JsonScan()
    for part in parts:
        scan = None if scan is None else scan.follow(part)

    assert scan == JsonScan().follow(b"".join(parts))


@given(st.from_regex(r"\A-?([1-9][0-9]{0,22})(\.[0-9]{0,26})?([eE][+-]?[0-9]{0,4})?\Z"))
def test_the_mask_excludes_just_the_tokens_that_a_scan_refuses(number: str) -> None:
    scan = JsonScan().follow(number.encode())
    if scan is None:
        return
    mask = number_bounds(DIGITS).mask(scan)

    for token, text in enumerate(DIGITS.tokens[:-1]):
        rest = REST.match(text)
        if rest is not None and UNBOUNDED.fullmatch(number.encode() + rest[0]):
            assert (mask is None or bool(int(mask[token >> 5]) >> (token & 31) & 1)) == (scan.follow(text) is not None)
