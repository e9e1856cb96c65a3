"""Equations that a model wrote out in a reply are calculated."""

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taiwa.apps.catalog import load_text
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.turn import Reply, say
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model
from taiwa.tools.calculator import calculator
from taiwa.tools.function_tool import tool

PLAIN = "tools: [calculator]"
CITED = "state: { pounds: { type: float, from: reply, cite: true } }\nreply: record\ntools: [calculator]"


def answered(front: str, *answers: str) -> tuple[Reply, Conversation]:
    app = load_text(f"---\ntaiwa: 1\n{front}\n---\nHelp.\n", "a.md", "a")
    tools = [calculator] if app.tools else []
    program = say("What is that in all?", tools=[tool.spec for tool in tools])
    return Runtime(scripted_model(*answers), tools=tools).run(program(begin(app)))


def test_a_wrong_equation_is_warned_of_and_its_call_kept() -> None:
    reply, _ = answered(PLAIN, "That is 104 * 3 + 48 = 312 pounds, a third of it 10 ÷ 3 = 3.33.")

    assert reply.warnings == ("the answer has a wrong equation: 104 * 3 + 48 = 312; it is 360",)
    assert [(call.input, call.result.value) for call in reply.findings.calls] == [
        ("104 * 3 + 48", "360"),
        ("10 / 3", "10/3"),
    ]


def test_an_equation_is_the_source_of_a_value_that_demands_one() -> None:
    change = '[{"field": "pounds", "value": 312}]'
    reply, after = answered(CITED, "Three nights at 104 pounds: 104 × 3 = 312 pounds.", change)

    assert (after.state["pounds"], reply.warnings) == (312, ())


@pytest.mark.parametrize(
    ("front", "text"),
    [
        ("about: A chat.", "2 + 2 = 5"),
        ("tools: [calculator]\nanswer: { text: str }", '{"text": "2 + 2 = 5"}'),
        (
            PLAIN,
            "It opens at 9:30 - 1:10 = 8:20, on 2026-11-30 = Monday, 1,5 * 2 = 3, 1.200 + 1 = 1.201, x = 4, a*2 = 3.",
        ),
        (PLAIN, "2 * 3 = <<calculator: 2 * 3>> 6"),
    ],
)
def test_nothing_else_is_taken_for_an_equation(front: str, text: str) -> None:
    reply, _ = answered(front, text)

    assert reply.warnings == ()
    assert [call.input for call in reply.findings.calls if call.input != "2 * 3"] == []


def test_a_tool_of_that_name_that_takes_something_else_is_not_called() -> None:
    called = list[int]()

    @tool(name="calculator")
    def add(a: int, b: int) -> int:
        """Add."""
        called.append(a + b)
        return a + b

    app = load_text(f"---\ntaiwa: 1\n{PLAIN}\n---\nHelp.\n", "a.md", "a")
    program = say("What is that?", tools=[add.spec])
    reply, _ = Runtime(scripted_model("2 + 2 = 5"), tools=[add]).run(program(begin(app)))

    assert (called, reply.warnings, reply.findings.calls) == ([], (), ())


@given(st.integers(0, 10**6), st.sampled_from("+-*×"), st.integers(0, 10**6), st.integers(0, 2), st.booleans())
def test_an_equation_is_warned_of_only_if_it_is_wrong(
    left: int, sign: str, right: int, places: int, is_right: bool
) -> None:
    first, second = (Decimal(each).scaleb(-places) for each in (left, right))
    result = {"+": first + second, "-": first - second}.get(sign, first * second) + (0 if is_right else 1)
    assume(result >= 0)

    reply, _ = answered(PLAIN, f"So {first:,} {sign} {second:,} = {round(result, places):,}.")

    assert len(reply.findings.calls) == 1
    assert len(reply.warnings) == (not is_right)
