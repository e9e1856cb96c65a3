import json
from collections.abc import Iterable
from typing import Any, Literal

import pytest

from taiwa import constraints
from taiwa.constraints import RegexGuide, UnsupportedConstraintError, Vocabulary
from taiwa.constraints.allowed_tokens import MatcherGuide, MatcherState
from taiwa.constraints.schema_regex import space_regex
from taiwa.kernel.errors import InputError, NoValidTokenError
from taiwa.kernel.messages import Choice, Grammar, JsonSchema, Regex, ToolCallsInText, ToolSpec
from taiwa.structured import OutputType

BYTES = Vocabulary.of_bytes()


def made(source: object, **options: Any) -> MatcherGuide:
    return constraints.compile(source, BYTES, **options)


def passing(source: object, texts: Iterable[str], **options: Any) -> list[str]:
    compiled = made(source, **options)
    return [text for text in texts if compiled.accepts(text.encode())]


def after(compiled: MatcherGuide, text: str) -> MatcherState:
    state = compiled.start()
    for byte in text.encode():
        state = state.advance(byte)
    return state


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        (Regex("[0-9]{3}"), "123", "12"),
        (Regex("^(?:はい|いいえ)$"), "いいえ", "はいえ"),
        (Grammar('start: "(" NUMBER ")"\nNUMBER: /[0-9]+/'), "(12)", "()"),
        (Grammar('s: "a" s | "b"', "s"), "aab", "aa"),
        (Grammar('root ::= "a" [0-9]+ ("," [0-9])*', "root"), "a12,3", "a,"),
        (Choice(("no", "not", "無")), "not", "nope"),
        (JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}}), '{"a": 1}', '{"a": "1"}'),
        (JsonSchema({"type": "integer", "nullable": True}), "null", '"a"'),
        (int, '{"value": 3}', '{"value": "3"}'),
        (OutputType(list[int]), '{"value": [1, 2]}', "[1, 2]"),
        (Literal["yes", "no"], '{"value":"yes"}', '{"value":"maybe"}'),
    ],
)
def test_each_source_lets_its_texts_through_and_no_others(source: object, good: str, bad: str) -> None:
    assert passing(source, (good, bad)) == [good]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("yes|no", "use Regex"),
        ({"type": "integer"}, "use JsonSchema"),
        (Choice(()), "at least one word"),
        (Regex("a(?=b)"), "look-around"),
        (Regex(r"(a)\1"), "backreferences"),
        (Regex("("), "unclosed group"),
        (Grammar("start: foo"), "line 1, column 8.*unknown name"),
        (Grammar("start: ((("), "line 1"),
        (Grammar('other: "a"'), "no rule 'start'"),
        (Grammar('root ::= "a', "root"), "as EBNF"),
        (JsonSchema({"type": "objct"}), "/: type must be one"),
        (JsonSchema({"properties": {"a": {"items": {"minLength": -1}}}}), "/properties/a/items: minLength must be"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(source: object, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        made(source)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (JsonSchema({"enum": []}), ""),
        (JsonSchema({"type": "integer", "minimum": 3, "maximum": 2}), ""),
        (
            JsonSchema(
                {
                    "properties": {"a": {"$ref": "#/$defs/no"}},
                    "required": ["a"],
                    "type": "object",
                    "$defs": {"no": False},
                }
            ),
            "/$defs/no",
        ),
        (JsonSchema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), ""),
    ],
)
def test_a_schema_that_nothing_fits_names_the_part_that_nothing_fits(source: JsonSchema, place: str) -> None:
    with pytest.raises(NoValidTokenError) as caught:
        made(source)

    assert caught.value.state == place


@pytest.mark.parametrize("source", [JsonSchema({"$ref": "#"}), Grammar("start: start"), Regex("[^\\x00-\\U0010ffff]")])
def test_what_never_ends_or_never_begins_is_a_dead_end(source: object) -> None:
    with pytest.raises(NoValidTokenError):
        made(source)


def test_a_word_that_cannot_be_spelled_is_refused_when_compiling() -> None:
    few = Vocabulary((b"y", b"es", b"<end>"), 2)

    assert constraints.compile(Choice(("yes",)), few).start().allowed() == (0,)
    with pytest.raises(NoValidTokenError, match="no sequence of tokens spells 'yess'") as caught:
        constraints.compile(Choice(("yes", "yess")), few)
    assert caught.value.state == "yess"


def test_strict_names_the_pointer_and_the_keyword_of_all_that_it_refuses() -> None:
    schema = JsonSchema(
        {
            "type": "object",
            "properties": {
                "tags": {"type": "array", "uniqueItems": True},
                "a/b": {"$ref": "https://example.com/s.json"},
            },
        }
    )

    with pytest.raises(UnsupportedConstraintError, match="/properties/tags: uniqueItems") as caught:
        made(schema)

    assert [line.split(" (")[0] for line in caught.value.clauses] == [
        "/properties/tags: uniqueItems",
        "/properties/a~1b: $ref",
    ]


def test_lenient_relaxes_the_same_and_says_so() -> None:
    schema = JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})

    lenient = made(schema, strict=False)

    assert [(clause.pointer, clause.keyword) for clause in lenient.coverage.relaxed] == [("", "uniqueItems")]
    assert not lenient.coverage.whole
    assert lenient.accepts(b"[1,1]")
    assert not lenient.accepts(b'["1"]')


def test_a_keyword_without_meaning_is_named() -> None:
    compiled = made(JsonSchema({"type": "string", "minLenght": 3}))

    assert [(clause.pointer, clause.keyword) for clause in compiled.coverage.ignored] == [("", "minLenght")]


def test_options_of_the_engine_hidden_in_a_schema_have_no_effect() -> None:
    schema = JsonSchema({"x-guidance": {"lenient": True}, "type": "array", "contains": {"type": "integer"}})

    with pytest.raises(UnsupportedConstraintError, match="contains"):
        made(schema)


def test_white_space_is_bounded() -> None:
    schema = JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    spaced = ['{"a":1}', '{"a": 1}', '{\n    "a": 1\n}', '{\n\n"a": 1}', '{"a":  1}', "{\n" + " " * 25 + '"a":1}']

    assert passing(schema, spaced) == spaced[:3]
    assert passing(schema, spaced, whitespace="compact") == spaced[:1]
    assert passing(schema, spaced, whitespace="free") == spaced
    with pytest.raises(InputError, match="unknown whitespace mode 'none'"):
        made(schema, whitespace="none")


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "b": [1, 2]}', '{"a":1,"b":[1,2]}', '{"a": 1,"b": [1, 2]}', '{ "a": 1, "b": []}', '{"a": 1, "b": []}'],
)
def test_both_engines_write_one_space_after_commas_and_colons(text: str) -> None:
    schema = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "integer"}}},
    }
    fits = text == json.dumps(json.loads(text))

    assert made(JsonSchema(schema), whitespace="spaced").accepts(text.encode()) is fits
    assert RegexGuide.of_schema(schema, BYTES, space_regex("spaced")).accepts(text.encode()) is fits


def test_white_space_of_ones_own_is_allowed_and_no_other() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    texts = ["[1,2]", "[1, 2]", "[1,\t2]", "[1,\n2]"]
    own = Regex("\\t| ")

    assert passing(JsonSchema(schema), texts, whitespace=own) == texts[:3]
    assert [RegexGuide.of_schema(schema, BYTES, space_regex(own)).accepts(text) for text in texts] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(InputError, match="for white space matches 'x'"):
        made(JsonSchema(schema), whitespace=Regex(" |x"))


@pytest.mark.parametrize("whitespace", ["bounded", "compact"])
def test_a_model_that_prefers_white_space_for_ever_comes_to_an_end(whitespace: str) -> None:
    state = made(dict[str, list[int]], whitespace=whitespace).start()
    wishes = [*map(ord, "\n \t\r"), *map(ord, '}]"')]

    while not state.is_complete and len(state.tokens) < 200:
        allowed = state.allowed(512) or ()
        state = state.advance(next((token for token in wishes if token in allowed), min(allowed)))

    assert state.is_complete
    assert json.loads(state.text) is not None


def test_keys_come_in_the_order_of_the_schema_or_in_the_one_that_is_asked_for() -> None:
    properties = {"answer": {"type": "integer"}, "thought": {"type": "string"}}
    schema = JsonSchema({"type": "object", "properties": properties, "required": ["answer", "thought"]})
    texts = ['{"answer":1,"thought":"x"}', '{"thought":"x","answer":1}']

    assert passing(schema, texts) == texts[:1]
    assert passing(schema, texts, order=("thought",)) == texts[1:]


def test_the_same_constraint_is_compiled_once() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    first = made(JsonSchema(schema))

    assert made(JsonSchema(schema)) is first
    assert made(JsonSchema(json.loads(json.dumps(schema)))) is first
    assert made(JsonSchema(schema), strict=False) is not first
    assert made(JsonSchema(schema), whitespace="compact") is not first
    assert constraints.compile(JsonSchema(schema), Vocabulary((*BYTES.tokens, b"aa"), 256)) is not first


def test_a_schema_that_was_changed_is_compiled_anew() -> None:
    inner: dict[str, Any] = {"type": "integer"}
    source = JsonSchema({"type": "object", "properties": {"a": inner}})
    first = made(source)

    inner["type"] = "string"

    assert made(source) is not first
    assert made(source).accepts(b'{"a": "x"}')


def test_the_same_keys_in_another_order_are_another_guide() -> None:
    one, two = ({"type": "object", "properties": {name: {"type": "null"} for name in names}} for names in ("ab", "ba"))

    assert made(JsonSchema(one)) is not made(JsonSchema(two))


def tool(name: str, /, **properties: Any) -> ToolSpec:
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": list(properties)})


TOOLS = (
    tool("calculator", expression={"type": "string", "pattern": "^[0-9+*/() .-]+$"}),
    tool("mass", formula={"type": "string"}, digits={"type": "integer"}),
    tool("unit", name={"enum": ["kg", "g"]}),
    tool("look_up", text={"type": "string"}),
    tool("now"),
)


def test_in_free_text_only_calls_of_known_tools_in_their_own_syntax_can_be_written() -> None:
    good = [
        "No tool is needed.",
        "a < b, a << 2, std::cout << x",
        "so <<calculator: (1 + 2) * 3>>",
        '日本語 <<mass: {"formula": "H2O", "digits": 2}>>',
        "<<unit: kg>>",
        "<<look_up: a > b>>",
        "<<now: >>",
    ]
    bad = [
        "<<calculater: 1>>",
        "<<calculator: one>>",
        "<<calculator:1>>",
        "<< calculator: 1>>",
        "<<calculator: 1",
        "<<calculator: 1>> and more",
        '<<mass: {"formula": "H2O"}>>',
        '<<mass: {"formula": "H>>2O", "digits": 2}>>',
        "<<unit: t>>",
        "<<look_up: a\nb>>",
        "<<look_up: >>",
    ]

    assert passing(ToolCallsInText(TOOLS), [*good, *bad]) == good


def test_a_call_is_captured_and_completes_the_text() -> None:
    state = after(made(ToolCallsInText(TOOLS)), 'I ask: <<mass: {"formula": "H2O", "digits": 2}>>')

    assert state.captures() == (("mass", b'{"formula": "H2O", "digits": 2}'),)
    assert state.is_complete


def test_an_input_without_quotes_is_captured_without_the_mark_that_closes_it() -> None:
    state = after(made(ToolCallsInText(TOOLS)), "<<calculator: (1+2)>>")

    assert state.captures() == (("calculator", b"(1+2)"),)


def test_without_free_text_nothing_but_a_call_can_be_written() -> None:
    assert passing(
        ToolCallsInText(TOOLS[:1], free_text=False), ["<<calculator: 1>>", "so <<calculator: 1>>", "so"]
    ) == ["<<calculator: 1>>"]


def test_a_call_may_stand_between_other_marks() -> None:
    tools = ToolCallsInText((tool("f", x={"type": "string"}),), opening="<call>{name}(", closing=")</call>")

    assert passing(tools, ["so <call>f(g(1))</call>", "<call>g(1)</call>", "f(1)"]) == [
        "so <call>f(g(1))</call>",
        "f(1)",
    ]


@pytest.mark.parametrize(
    ("tools", "fault"),
    [
        (ToolCallsInText(()), "at least one tool"),
        (ToolCallsInText((TOOLS[0], TOOLS[0])), "the same name"),
        (ToolCallsInText(TOOLS, opening="{name}("), "markers on one line"),
        (ToolCallsInText((tool("f", x={"type": "string", "pattern": "^a|b$"}),)), "has ends on one side"),
        (ToolCallsInText((tool("f", x={"enum": ["a>>b"]}),)), "contains the marker"),
    ],
)
def test_tools_that_contradict_their_examples_are_refused_when_compiling(tools: ToolCallsInText, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        made(tools)


def test_a_tool_schema_that_cannot_be_enforced_is_refused_by_its_place() -> None:
    tools = ToolCallsInText((tool("f", a={"type": "array", "uniqueItems": True}, b={"type": "string"}),))

    with pytest.raises(UnsupportedConstraintError, match="/f/properties/a: uniqueItems"):
        made(tools)
    assert made(tools, strict=False).coverage.relaxed


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (JsonSchema({"enum": ["x" * 1_000] * 10_000}), "schema has .* characters"),
        (
            JsonSchema(
                {"type": "object", "properties": {f"p{n}": {"description": "x" * 1_000} for n in range(10_000)}}
            ),
            "10,000 keys",
        ),
        (
            JsonSchema({"anyOf": [{"type": "object", "required": [f"p{n}"]} for n in range(30_000)]}),
            "keys are too many",
        ),
        (JsonSchema(nested(5_000)), "nested too deeply"),
        (Regex("a" * 5_000_000), "the pattern has 5000000 characters"),
        (Choice(tuple(f"{n} {'x' * 100}" for n in range(100_000))), "characters|larger than"),
    ],
)
def test_what_is_too_large_is_refused(source: object, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        made(source)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (JsonSchema({"enum": [f"option {n}" for n in range(10_000)]}), '"option 9999"'),
        (Choice(tuple(f"option {n}" for n in range(10_000))), "option 9999"),
        (JsonSchema({"oneOf": [{"const": f"option {n}"} for n in range(5_000)]}), '"option 4999"'),
        (JsonSchema(nested(100)), "[" * 100 + "1" + "]" * 100),
        (Regex("(a|a)*(a*)*b"), "a" * 500 + "b"),
        (Regex("(a|b)*a(a|b){40}"), "b" * 500 + "a" * 41),
        (Regex("(x{0,100}y){0,100}"), ("x" * 50 + "y") * 50),
    ],
)
def test_what_is_large_or_would_make_others_backtrack_is_compiled_and_followed(source: object, text: str) -> None:
    assert passing(source, [text]) == [text]


def test_a_notebook_shows_the_text_and_the_mask() -> None:
    vocabulary = Vocabulary([b"<end>", b"tea", b"coffee", b"s"], 0)
    for guide in (constraints.compile(Regex("teas?|coffee"), vocabulary), RegexGuide("teas?|coffee", vocabulary)):
        start = guide.start()

        assert start._repr_markdown_() == "2 of 4 tokens may follow: `` 'tea' `` `` 'coffee' ``"
        assert start.advance(1)._repr_markdown_() == "`` tea ``\n\n2 of 4 tokens may follow: `` <end> `` `` 's' ``"
