import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.constraints import Vocabulary, compile
from taiwa.constraints.gbnf import tool_calls_to_gbnf
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import ToolCallsInText, ToolSpec
from taiwa.kernel.serialization import Json
from tests.constraints.gbnf_reader import Gbnf
from tests.strategies import joined


def tool(name: str, **parameters: Json) -> ToolSpec:
    required: list[Json] = [*parameters]
    schema: dict[str, Json] = {
        "type": "object", "properties": parameters, "required": required, "additionalProperties": False
    }  # fmt: skip
    return ToolSpec(name, "", schema)


CALC = tool("calc", expression={"type": "string"})
MASS = tool("mass", formula={"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$", "maxLength": 5})
UNIT = tool("calc2", unit={"enum": ["km", "mi"]})
CONVERT = tool("convert", n={"type": "integer", "minimum": 1, "maximum": 12}, to={"enum": ["a", "b>>"]})
EACH = (CALC, MASS, UNIT, CONVERT)
PIECES = joined(
    [
        "<<calc: ", "<<calc2: ", "<<mass: ", "<<convert: ", "<<other: ", "<< calc : ", ">>", ">", "<", "1+1", "H2O", "km",
        " ", "\n", '{"n": 12, "to": "a"}', '{"n":0,"to":"a"}', "文",
    ],
    max_size=5,
)  # fmt: skip
BYTES = Vocabulary.of_bytes()
GUIDE = compile(ToolCallsInText(EACH), BYTES)
BARE = compile(ToolCallsInText(EACH, free_text=False), BYTES)


@given(PIECES)
def test_the_grammar_says_what_the_engine_s_own_does(text: str) -> None:
    made = tool_calls_to_gbnf(ToolCallsInText(EACH))

    assert made.accepts(text) == GUIDE.accepts(text.encode())
    assert tool_calls_to_gbnf(ToolCallsInText(EACH, free_text=False)).accepts(text) == BARE.accepts(text.encode())


@pytest.mark.parametrize(("opening", "closing"), [("<<{name}: ", ">>"), ("[{name}: ", "]"), ("<{name}: ", "aba")])
@given(body=st.text("<>ab1] ", max_size=6))
def test_both_grammars_end_a_call_at_the_first_closing_marker(opening: str, closing: str, body: str) -> None:
    calls = ToolCallsInText((CALC,), opening, closing)
    text = f"{opening.format(name='calc')}{body}{closing}"

    accepted = compile(calls, BYTES).accepts(text.encode())

    assert accepted == tool_calls_to_gbnf(calls).accepts(text)
    assert not accepted or text.index(closing, len(opening.format(name="calc"))) == len(text) - len(closing)


PUT = tool("put", a={"type": "string"}, b={"type": "string"})


@pytest.mark.parametrize(
    ("opening", "closing"), [("<<{name}: ", ">>"), ("<call:{name}> ", "</call>"), ("[{name}: ", "]")]
)
@given(
    text=st.lists(st.sampled_from([">", "<", "</", "</call", "call>", "]", "a", " ", "\\n", '\\"']), max_size=5).map(
        "".join
    )
)
def test_both_grammars_allow_the_same_texts_in_quotes(opening: str, closing: str, text: str) -> None:
    calls = ToolCallsInText((PUT,), opening, closing)
    written = f'{opening.format(name="put")}{{"a": "{text}", "b": ""}}{closing}'

    accepted = compile(calls, BYTES).accepts(written.encode())

    assert accepted == tool_calls_to_gbnf(calls).accepts(written) == (closing not in text)


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"^[a-z]+\\$", "ab\\"), (r"^[a-z]+\$", "ab$x"), (r"^[a-z]+$", "ab"), (r"\$5", "x$5y")]
)
def test_only_an_unescaped_dollar_ends_a_pattern(pattern: str, text: str) -> None:
    calls = ToolCallsInText((tool("put", a={"type": "string", "pattern": pattern}),))

    for said in (text, f"{text}-"):
        assert tool_calls_to_gbnf(calls).accepts(f"<<put: {said}>>") == bool(re.search(pattern, said))
        assert compile(calls, BYTES).accepts(f"<<put: {said}>>".encode()) == bool(re.search(pattern, said))


def test_a_call_whose_input_overlaps_its_closing_marker_is_refused() -> None:
    assert not GUIDE.accepts(b"<<calc: >>>")
    assert not tool_calls_to_gbnf(ToolCallsInText(EACH)).accepts("<<calc: >>>")


@given(PIECES)
def test_what_is_written_is_what_was_built(text: str) -> None:
    made = tool_calls_to_gbnf(ToolCallsInText((CALC, UNIT)))

    assert Gbnf(made.text).accepts(text) == made.accepts(text)


def test_a_begun_answer_is_gone_on_with() -> None:
    grammar = Gbnf(tool_calls_to_gbnf(ToolCallsInText((UNIT,)), "How far? <<calc2: k").text)

    assert grammar.accepts("m>>")
    assert not grammar.accepts("km>>")


def test_marks_of_another_protocol_are_kept() -> None:
    made = tool_calls_to_gbnf(ToolCallsInText((CALC,), opening="<tool:{name}>", closing="</tool>"))

    assert made.accepts("a <tool:calc>1<2</tool>")
    assert not made.accepts("a <tool:calc>1</tool>2</tool>")


def test_what_an_automaton_cannot_keep_of_a_tool_s_schema_is_told() -> None:
    far = tool("far", a={"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, b={"type": "string"})
    word = tool("word", text={"type": "string", "pattern": "(?=x)"})

    made = tool_calls_to_gbnf(ToolCallsInText((far, word)))

    assert [(clause.pointer, clause.keyword) for clause in made.missed] == [
        ("/far/properties/a", "uniqueItems"),
        ("/word/properties/text", "pattern"),
    ]
    assert made.accepts("<<far: whatever>>")


@pytest.mark.parametrize(
    "tools",
    [
        ToolCallsInText(()),
        ToolCallsInText((CALC, CALC)),
        ToolCallsInText((CALC,), opening="{name}: "),
        ToolCallsInText((tool("none", x={"enum": [1]}),)),
    ],
)
def test_tools_that_cannot_be_used_are_refused(tools: ToolCallsInText) -> None:
    with pytest.raises(InputError):
        tool_calls_to_gbnf(tools)
