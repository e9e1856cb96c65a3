import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.solve.solve import last_number
from tests.steps import lines_run


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("It is 25.93 %.", "25.93"),
        ("12\nno number here", ""),
        ("They pay 1,225,000 yen.\n\n", "1225000"),
        ("答えは２５です", "25"),
        ("答えは25個です。", "25"),
        ("答えは−2.5℃です", "-2.5"),
        ("答案是３/４", "3/4"),
        ("2H2O has 18.015 g/mol of H2O", "18.015"),
        ("x = −3", "-3"),
        ("(-4)", "-4"),
        ("5-3 = 2.", "2"),
        ("a range of 3–5", "5"),
        ("that is 7/27", "7/27"),
        ("about .5", ".5"),
        ("1.5e-7", "1.5e-7"),
        ("1, 2, 3", "3"),
        ("3.2 × 10^-5 mol", "3.2e-5"),
        ("6.02×10²³ mol", "6.02e23"),
        (r"6.02 \times 10^{23}", "6.02e23"),
        (r"\boxed{25}", "25"),
        (r"\frac{7}{27}", "7/27"),
        ("$1{,}225$", "1225"),
        ("58.44 g mol-1", "58.44"),
        ("58.44 g·mol⁻¹", "58.44"),
        ("9.81 m/s^2", "9.81"),
        ("CO2", ""),
        ("3 1/2 hours", "7/2"),
        ("2½ cups", "5/2"),
        ("½", "1/2"),
        ("٢٥", "25"),
        ("12 225 000 Pa", "12225000"),
        ("1\u202f225\u202f000", "1225000"),
        ("1.5 million people", "1500000"),
        ("25万円", "250000"),
        ("1億2000万円です", "120000000"),
        ("2千5百万円", "25000000"),
        ("1.2亿", "120000000"),
        ("", ""),
    ],
)
def test_the_answer_is_the_last_number_of_the_last_line(text: str, number: str) -> None:
    assert last_number(text) == number


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", " g", "個です。", " %.", " is it."]))
def test_a_number_is_found_however_it_is_grouped(number: int, behind: str) -> None:
    assert last_number(f"So x = {number:,}{behind}") == last_number(f"So x = {number}{behind}") == str(number)


@given(st.text(max_size=80))
def test_any_text_is_read(text: str) -> None:
    found = last_number(text)

    assert found == "" or any(char in "0123456789" for char in found)


@pytest.mark.parametrize("piece", ["1", "1,", "1 ", "1/", "-", "1万", "×10^", "½"])
def test_a_long_line_costs_no_more_than_a_short_one(piece: str) -> None:
    short, long = (lines_run(last_number, piece * count) for count in (20_000, 2_000_000))

    assert long <= 1.1 * short
