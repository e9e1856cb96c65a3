"""Constraints of hostile users: each is compiled and followed, or refused by a typed error, in bounded time and memory."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taiwa import constraints
from taiwa.constraints import GrammarGuide, RegexGuide, Vocabulary, to_regex
from taiwa.constraints.explain import trace_text
from taiwa.constraints.gbnf import grammar_to_gbnf, regex_to_gbnf, tool_calls_to_gbnf
from taiwa.constraints.guide import Guide
from taiwa.constraints.readable_guides import choice_regex
from taiwa.constraints.vocabulary import read_vocabulary
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Choice, Grammar, JsonSchema, Regex, ToolCallsInText, ToolSpec
from tests.strategies import joined

BYTES = Vocabulary.of_bytes()
HALF = "\ud800"
RAW = b"a\xff".decode("utf-8", "surrogateescape")


def follow(guide: Guide, text: str) -> None:
    """Follow a text as far as it is allowed, and one of the allowed tokens each time where it is not."""
    trace_text(guide, text)
    state = guide.start()
    for byte in text.encode()[:8]:
        allowed = state.allowed(len(guide.vocabulary)) or ()
        if not allowed or state.is_ended:
            return
        state = state.advance(byte if byte in allowed else allowed[byte % len(allowed)])


def attempt(*attempts: Callable[[], Any]) -> None:
    for make in attempts:
        message = "followed"
        try:
            made = make()
            if isinstance(made, Guide):
                follow(made, 'a1{"a":[1e9,"é文"]}')
        except (InputError, NoValidTokenError) as error:
            message = error.message
        assert message.encode(), "a refusal says why, and can be printed"
        assert "\n" not in message, "in one line"


patterns = joined(
    [*r"ab01.*+?|()[]{}^$\-,/&~#", "é", "文", "\n", "\0", HALF, RAW, "{0,9}", "{3,}", "{999}", "(?:", "(?i)", "(?=", "(?P<n>", "[^", "[a-z]",
     r"\d", r"\w", r"\S", r"\b", r"\1", r"\p{L}", r"\x41", r"\u{41}", r"\ud800", r"\udfff", r"\Z", "a{1,100}", "(a|a)*", "(.*)*"],
    max_size=12,
)  # fmt: skip
lines = st.sampled_from(
    ['start: a', 'start: "a"', "a: a a", "a: b", "b: a", 'a: "x"', "a: /x*/", "A: /(x+x+)+y/", "a: (a)*", "a: [a] A?", "a: A~3..9", 'A: "é"i',
     "%import common.NUMBER", "%import .x", "%ignore /\\s+/", "%declare X", "a{x}: x a{x}", "start: a{a}", 'A: "\\ud800"', "A: /[/", "A: ", ":", "a:",
     'start: ("a"~999)~999', 'root ::= root "a" | ""', "root ::= [a-", "?a: a -> b", "%override", "a.2: A", '%json {"type": 3}', "A: /" + HALF + "/"]
)  # fmt: skip
grammars = st.lists(lines, max_size=7).map("\n".join)
odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.sampled_from([0, 1, -1, 10**9, 10**400, 1e-300, 1e308, float("nan"), float("inf"), HALF, RAW, "(", "#", "#/$defs/a", "#/x", "date", "uuid", "object", "string", "number", "integer", "array"]),
    patterns,
)  # fmt: skip
keywords = st.sampled_from(
    """type enum const properties required additionalProperties patternProperties propertyNames minProperties maxProperties items
    prefixItems minItems maxItems uniqueItems contains minLength maxLength pattern format minimum maximum exclusiveMinimum multipleOf
    exclusiveMaximum allOf anyOf oneOf not if then else $ref $defs $id $anchor $schema dependentSchemas dependencies x-guidance a
    unevaluatedProperties""".split()
)
schemas = st.recursive(
    odd,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(keywords, inner, max_size=4), st.dictionaries(st.sampled_from(["a", "b", HALF]), inner, max_size=3)
    ),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=settings().max_examples // 2)
@given(patterns)
@example("((a{1,1000}){1,1000}){1,1000}")
@example("(" * 5_000)
@example("a\0b")
def test_a_pattern_is_followed_or_refused(pattern: str) -> None:
    attempt(
        lambda: constraints.compile(Regex(pattern), BYTES),
        lambda: RegexGuide(pattern, BYTES),
        lambda: regex_to_gbnf(pattern),
        lambda: constraints.compile(JsonSchema({"type": "integer"}), BYTES, whitespace=Regex(pattern)),
        lambda: constraints.compile(Choice((pattern, "b")), BYTES),
        lambda: RegexGuide.of_choice([pattern], BYTES),
    )


@settings(deadline=None)
@given(grammars)
@example("start: a\na: a a | /x/")
@example('start: ("a"~9999)~9999')
@example("start: a{a}\na{x}: a{a{x}}")
def test_a_grammar_is_followed_or_refused(grammar: str) -> None:
    attempt(
        lambda: constraints.compile(Grammar(grammar), BYTES),
        lambda: GrammarGuide(grammar, BYTES),
        lambda: grammar_to_gbnf(Grammar(grammar)),
    )


@settings(max_examples=settings().max_examples // 2)
@given(schemas)
@example({"type": "string", "pattern": "\udfff"})
@example({"enum": [float("nan")]})
@example({"minimum": float("inf")})
@example({"allOf": [{"anyOf": [{"properties": {f"{i}{j}": {}}} for j in range(4)]} for i in range(12)]})
def test_a_schema_is_followed_or_refused(schema: Any) -> None:
    attempt(
        lambda: constraints.compile(JsonSchema(schema if isinstance(schema, dict) else {"items": schema}), BYTES),
        lambda: constraints.compile(JsonSchema({"properties": {"a": schema}}), BYTES, strict=False, whitespace="free"),
        lambda: RegexGuide(to_regex(schema), BYTES),
    )


@settings(max_examples=settings().max_examples // 2)
@given(st.text(max_size=8) | patterns, schemas, patterns)
def test_a_tool_is_followed_or_refused(name: str, schema: Any, marker: str) -> None:
    tool = ToolSpec(name, "", {"type": "object", "properties": {"a": schema, "b": {"type": "number"}}})
    calls = ToolCallsInText((tool,), opening=f"<<{{name}}{marker.replace('{', '').replace('}', '')}: ", closing=">>")

    attempt(lambda: constraints.compile(calls, BYTES, strict=False), lambda: tool_calls_to_gbnf(calls))


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    "make",
    [
        lambda: RegexGuide("(a|b)*a(a|b){18}", BYTES),
        lambda: RegexGuide("(.{0,300}x){0,300}", BYTES),
        lambda: RegexGuide(r"[\s\S]{0,100000}", BYTES),
        lambda: GrammarGuide('start: a\na: a a | "x"', BYTES),
        lambda: GrammarGuide("start: (a)*\na: (A)*\nA: /x*/", BYTES),
        lambda: to_regex(nested(5_000)),
        lambda: to_regex({"type": "object", "properties": {f"p{n}": {} for n in range(2_000)}}),
        lambda: constraints.compile(JsonSchema({"type": "array", "minItems": 10**9, "items": {"type": "null"}}), BYTES),
        lambda: constraints.compile(Regex("((a{1,1000}){1,1000}){1,1000}"), BYTES),
    ],
)  # fmt: skip
def test_what_grows_is_refused_or_followed(make: Callable[[], Any]) -> None:
    def walk() -> None:
        made = make()
        if isinstance(made, Guide):
            trace_text(made, "x" * 300)

    attempt(walk)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda text: constraints.compile(Regex(text), BYTES), "the pattern contains"),
        (lambda text: RegexGuide(text, BYTES), "the regex contains"),
        (lambda text: constraints.compile(Grammar(f'start: "{text}"'), BYTES), "the grammar contains"),
        (lambda text: GrammarGuide(f'start: "{text}"', BYTES), "the grammar contains"),
        (lambda text: constraints.compile(Choice((text,)), BYTES), "the choice contains"),
        (lambda text: choice_regex([text]), "contains"),
        (lambda text: constraints.compile(JsonSchema({"properties": {text: {}}}), BYTES), "the schema contains"),
        (lambda text: constraints.compile(JsonSchema({"pattern": text}), BYTES, strict=False), "the schema contains"),
        (lambda text: to_regex({"enum": [text]}), "the schema contains"),
        (lambda text: trace_text(RegexGuide("a", BYTES), text), "the text contains"),
    ],
)
@pytest.mark.parametrize(("text", "what"), [(HALF, r"half a character \(U\+D800\)"), (RAW, "the byte 0xFF")])
def test_what_is_no_unicode_is_named(make: Callable[[str], Any], wrong: str, text: str, what: str) -> None:
    with pytest.raises(InputError, match=f"{wrong} {what} at character [0-9]+; give valid Unicode"):
        make(text)


@pytest.mark.parametrize(
    "data",
    [
        ["<end>", HALF],
        {"config": {"default_vocab_size": 3, "default_num_special_tokens": 10**12, "pattern": ""}, "vocab": []},
    ],
)
def test_a_hostile_vocabulary_is_refused_by_name(tmp_path: Path, data: Any) -> None:
    file = tmp_path / "v.json"
    file.write_text(json.dumps(data))

    with pytest.raises(InputError, match=r"v\.json"):
        read_vocabulary(file)


@pytest.mark.parametrize(
    "text",
    [
        'start: "b" a a\na: /x+/',
        "start: A A\nA: /x+/",
        "start: /b|c/ a a\na: /x+/",
        '%llguidance {"no_forcing": false}\nstart: a a\na: /x+/',
        'root ::= a a\na ::= "x"+',
    ],
)
def test_a_grammar_that_leaves_only_a_text_without_end_is_followed(text: str) -> None:
    """The engine reads x for the first `a` as long as there is one, so that the second never begins."""
    guide = constraints.compile(Grammar(text, "root" if "::=" in text else "start"), BYTES)

    follow(guide, "bxxxx")


@pytest.mark.parametrize("count", [4_000, 20_000])
def test_a_chain_of_terminals_ends_neither_the_process_nor_its_time(count: int) -> None:
    chain = "".join(f"A{n}: A{n + 1} /y/\n" for n in range(count))

    attempt(lambda: constraints.compile(Grammar(f'start: A0\n{chain}A{count}: "x"'), BYTES))
