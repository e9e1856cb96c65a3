import pytest

from taiwa import constraints
from taiwa.constraints import Vocabulary
from taiwa.constraints.allowed_tokens import MatcherGuide
from taiwa.constraints.gbnf import tool_calls_to_gbnf
from taiwa.kernel.messages import ToolCallsInText, ToolSpec
from taiwa.kernel.serialization import Json

BYTES = Vocabulary.of_bytes()
TEXT: dict[str, Json] = {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}
CALCULATOR = ToolSpec("Calculator", "", TEXT)
NOW = ToolSpec("now", "", {"type": "object", "properties": {}})
MASS = ToolSpec(
    "mass", "", {"type": "object", "properties": {"f": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9()]*$"}}}
)


def captured(compiled: MatcherGuide, text: str) -> tuple[tuple[str, bytes], ...] | None:
    return compiled.start().go(text.encode()).captures() if compiled.accepts(text.encode()) else None


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("<<Calculator>>(1+1)", ("Calculator", b"1+1")),
        ("It is <<Calculator>>((1+1)*(2-3))", ("Calculator", b"(1+1)*(2-3)")),
        ("<<Calculator>>(f(g(h(x))))", ("Calculator", b"f(g(h(x)))")),
        ("<<mass>>(Fe2(SO4)3)", ("mass", b"Fe2(SO4)3")),
        ("<<now>>()", ("now", b"")),
    ],
)
def test_a_bracket_that_ends_a_call_is_the_one_that_closes_its_own(text: str, call: tuple[str, bytes]) -> None:
    compiled = constraints.compile(ToolCallsInText((CALCULATOR, MASS, NOW), opening="<<{name}>>(", closing=")"), BYTES)

    assert captured(compiled, text) == (call,)
    assert compiled.start().go(text.encode()).is_complete


@pytest.mark.parametrize(
    "text", ["<<Calculator>>((1+1)", "<<Calculator>>(1))", "<<mass>>(H2O", "<<mass>>(h)", "<<sum>>(1)"]
)
def test_brackets_that_do_not_close_are_no_call(text: str) -> None:
    compiled = constraints.compile(ToolCallsInText((CALCULATOR, MASS, NOW), opening="<<{name}>>(", closing=")"), BYTES)

    assert captured(compiled, text) is None


def test_a_call_has_no_parameters_that_its_tool_does_not_list() -> None:
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    }
    compiled = constraints.compile(ToolCallsInText((ToolSpec("hotel", "", parameters),)), BYTES)

    assert captured(compiled, '<<hotel: {"city": "Leith", "days": 2}>>') is not None
    assert captured(compiled, '<<hotel: {"city": "Leith", "days ": 2}>>') is None


@pytest.mark.parametrize(
    ("opening", "closing", "text"),
    [("<<{name}: ", ">>", "At <<now: >>"), ("[{name}: ", "]", "[now: ]"), ("<<{name}>>(", ")", "At <<now>>()")],
)
def test_a_call_without_an_input_is_captured_too(opening: str, closing: str, text: str) -> None:
    compiled = constraints.compile(ToolCallsInText((CALCULATOR, NOW), opening=opening, closing=closing), BYTES)

    assert captured(compiled, text) == (("now", b""),)


@pytest.mark.parametrize(
    "text", ["<<Calculator: >>", "<<Calculator: >>x>>", "<<Calculator: >><<Calculator: >>", "<<Calculator: 1>>>"]
)
def test_no_input_holds_the_mark_that_closes_a_call(text: str) -> None:
    assert captured(constraints.compile(ToolCallsInText((CALCULATOR,)), BYTES), text) is None


@pytest.mark.parametrize("text", ["", "<<Calculator: 1>>", " <<Calculator: 1>>", "\n", "<b>", "1: <<sum: 1>>"])
def test_where_words_come_first_no_call_begins_the_text(text: str) -> None:
    calls = ToolCallsInText((CALCULATOR,), words_first=True)
    compiled = constraints.compile(calls, BYTES)

    for each in (text, "2", "It is <<Calculator: 1+1>>", "a < b"):
        assert compiled.accepts(each.encode()) == tool_calls_to_gbnf(calls).accepts(each) == (each != text), each
