import json
import re
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel import ToolError, ToolResult
from taiwa.tools import calculate, calculator
from taiwa.tools.calculator import spell

# A tree of operations, as (its text, its value): the text is written with every parenthesis.
Tree = tuple[str, Fraction]


def joined(parts: tuple[Tree, str, Tree]) -> Tree:
    (left, a), sign, (right, b) = parts
    if sign == "/" and b:
        return f"({left} / {right})", a / b
    return f"({left} {sign if sign != '/' else '-'} {right})", {"+": a + b, "*": a * b}.get(sign, a - b)


NUMBERS = st.one_of(
    st.integers(0, 10**6).map(lambda n: (f"{n:,}", Fraction(n))),
    st.decimals(0, 1000, places=3).map(lambda d: (f"{d:f}", Fraction(d))),
)
TREES = st.recursive(NUMBERS, lambda tree: st.tuples(tree, st.sampled_from("+-*/"), tree).map(joined), max_leaves=12)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("14*2/108*100", Fraction(700, 27)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("2 + 3 * 4 ^ 2", 50),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("2^-1", Fraction(1, 2)),
        ("(-2)^2", 4),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 5", 2),
        ("2**10", 1024),
        ("5%", Fraction(1, 20)),
        ("50% * 80", 40),
        ("-5%", Fraction(-1, 20)),
        ("3 x 4", 12),
        ("3x4", 12),
        ("1,000 × 2", 2000),
        ("6 ÷ 4 − 1", Fraction(1, 2)),
        ("2·3", 6),
        ("（１＋２）＊３", 9),
        ("$24 x 365", 8760),
        ("1,234,567.50 + .5", 1234568),
        ("1e3 + 2E-1", Fraction(10002, 10)),
        ("2 + 2 =", 4),
        ("+5", 5),
        ("1/3*3", 1),
    ],
)
def test_the_spellings_of_models_are_read_exactly(text: str, result: Fraction | int) -> None:
    assert calculate(text) == result


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "syntax"),
        ("2 +", "syntax"),
        ("(1 + 2", "syntax"),
        ("1)", "syntax"),
        ("2(3)", "syntax"),
        ("5 5", "syntax"),
        ("1,5", "syntax"),
        ("1,00", "syntax"),
        ("1000,000", "syntax"),
        ("1.2.3", "syntax"),
        ("3²", "syntax"),
        ("3½", "syntax"),
        ("0x10", "syntax"),
        ("17 % 5", "syntax"),
        ("X*.25=19.5", "syntax"),
        ("max(1,2)", "syntax"),
        ("1 << 10", "syntax"),
        ("'1'*10", "syntax"),
        ("__import__('os').getcwd()", "syntax"),
        ("1/0", "division_by_zero"),
        ("0^-1", "division_by_zero"),
        ("4^0.5", "exponent"),
        ("(" * 61 + "1" + ")" * 61, "too_deep"),
        ("-" * 100 + "1", "too_deep"),
        ("2" + "^2" * 100, "too_deep"),
        ("1+" * 500 + "1", "too_long"),
        ("9**9**9**9", "too_large"),
        ("2^4097", "too_large"),
        ("1e9999", "too_large"),
        ("1e-9999", "too_large"),
        ("9" * 900 + "*" + "9" * 90 + "^9^9", "too_large"),
    ],
)
def test_what_is_no_safe_expression_is_refused_at_once(text: str, code: str) -> None:
    start = time.perf_counter()

    with pytest.raises(ToolError) as caught:
        calculate(text)

    assert caught.value.code == code
    assert "\n" not in caught.value.message
    assert time.perf_counter() - start < 0.5


def test_depth_is_counted_by_level_not_by_length() -> None:
    assert calculate("+".join(["(1)"] * 200)) == 200


@given(TREES)
def test_a_written_tree_has_the_value_of_the_tree(tree: Tree) -> None:
    text, value = tree

    assert calculate(text) == value


@given(st.text(st.characters(max_codepoint=0x2FFF)) | st.text("0123456789.,+-*/^%()x eE$", max_size=60))
def test_any_text_gives_a_number_or_a_tool_error(text: str) -> None:
    start = time.perf_counter()

    try:
        result: Fraction | ToolError = calculate(text)
    except ToolError as error:
        result = error

    assert isinstance(result, (Fraction, ToolError))
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(-12), "-12"),
        (Fraction(100), "100"),
        (Fraction(1, 8), "0.125"),
        (Fraction(700, 27), "25.9259"),
        (Fraction(10**14), "100000000000000"),
        (Fraction(10**15), "1e15"),
        (Fraction(2) ** 100, "1.26765e30"),
        (Fraction(1, 3 * 10**9), "3.33333e-10"),
        (Fraction(1, 10**6), "0.000001"),
        (Fraction(123456789012345, 10**15), "0.123456789012345"),
    ],
)
def test_a_number_is_written_as_a_person_would(number: Fraction, text: str) -> None:
    assert spell(number) == text


@given(st.fractions())
def test_what_is_written_is_the_number_or_its_nearest_of_six_digits(number: Fraction) -> None:
    written = Fraction(Decimal(spell(number)))

    assert abs(written - number) <= abs(number) * Fraction(1, 10**5)
    assert calculate(spell(number)) == written


def test_the_tool_gives_the_text_and_the_exact_value() -> None:
    assert calculator.call({"expression": "14*2/108*100"}) == ToolResult("25.9259", "calculator", value="700/27")


def test_the_tool_refuses_other_arguments() -> None:
    with pytest.raises(ToolError) as caught:
        calculator.call({"expr": "1"})

    assert (caught.value.code, caught.value.hint) == ("bad_arguments", "parameters: expression")


def test_recorded_calls_parse_and_mostly_give_the_recorded_result(shared_data: Path) -> None:
    text = (shared_data / "replay_tools" / "gsm8k_gpt3_calculator.jsonl").read_text(encoding="utf-8")
    calls = [tuple(json.loads(f'["{a}","{b}"]')) for a, b in re.findall(r"<<([^<>=\\\"]+)=([^<>=\\\"]+)>>", text)][
        :3000
    ]
    read = [(number, recorded) for expression, recorded in calls if (number := tried(expression)) is not None]

    equal = sum(number == tried(recorded) for number, recorded in read)

    assert len(read) / len(calls) > 0.99
    assert equal / len(read) > 0.95


def tried(text: str) -> Fraction | None:
    try:
        return calculate(text)
    except ToolError:
        return None
