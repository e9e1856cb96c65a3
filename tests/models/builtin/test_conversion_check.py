"""Which conversion a question asks for: the whole table of units, in each language."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.models.builtin.conversion_check import CALLED, Conversion, decided_line, read_calculation, read_conversion
from taiwa.models.builtin.copy_constraint import CONVERTED, UNIT_KINDS, UNIT_ROWS
from taiwa.tools.units import convert

NAMES = {unit: [each.strip("[]").split("|") for each in names] for unit, _, *names in UNIT_ROWS}
ASKED = (
    "How many {target} is {number} {source}?",
    "{number}{source}は何{target}ですか?",
    "{number}{source}是多少{target}？",
)
SPOONS = {"大さじ", "小さじ"}
INCHES = "in"


def question(language: int, number: str, source: str, target: str) -> str:
    if source in SPOONS:
        return f"{source}{number}杯は何{target}ですか?"
    return ASKED[language].format(number=number, source=source, target=target)


@pytest.mark.parametrize("language", range(3))
@pytest.mark.parametrize("unit", CONVERTED)
def test_every_name_of_a_unit_is_known_on_either_side_of_every_other(unit: str, language: int) -> None:
    for other in (each for each, kind in UNIT_KINDS.items() if kind == UNIT_KINDS[unit] and each != unit):
        for source in NAMES[unit][language]:
            for target in NAMES[other][language]:
                if target != INCHES:  # `How many in` is no question
                    assert read_conversion(question(language, "3", source, target)) == Conversion("3", unit, other)


def test_every_decided_conversion_can_be_done() -> None:
    for one, other in permutations(CONVERTED, 2):
        if UNIT_KINDS[one] == UNIT_KINDS[other]:
            convert(Conversion("3", one, other).call.removeprefix("<<unit_conversion: ").removesuffix(">>"))


@given(st.sampled_from([*CONVERTED]), st.sampled_from([*CONVERTED]), st.sampled_from(range(3)), st.integers(1, 99_999))
def test_units_of_other_kinds_are_never_converted(unit: str, other: str, language: int, number: int) -> None:
    asked = question(language, str(number), NAMES[unit][language][-1], NAMES[other][language][0])

    found = read_conversion(asked)

    assert found is None or UNIT_KINDS[found.source] == UNIT_KINDS[found.target]
    assert found is None or found.number == str(number)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Convert five gallons to litres.", Conversion("5", "gallons", "L")),
        ("八盎司是多少千克?", Conversion("8", "ounces", "kg")),
        ("It's minus 5 Celsius outside. And in Fahrenheit?", Conversion("-5", "degC", "degF")),
        ("How much Fahrenheit is minus seven Celsius?", Conversion("-7", "degC", "degF")),
        ("零下摄氏7度是多少华氏度?", Conversion("-7", "degC", "degF")),
        ("氷点下七度は華氏何度?", Conversion("-7", "degC", "degF")),
        ("\u2212 7 °C in °F", Conversion("-7", "degC", "degF")),
        ("摂氏20度は華氏で何度ですか", Conversion("20", "degC", "degF")),
        ("3 in to cm?", Conversion("3", "inches", "cm")),
        ("what's 3.5 m in cm?", Conversion("3.5", "m", "cm")),
        ("How many metres do I walk in 3 hours at 1,200 m an hour?", None),
        ("500mlのペットボトルが6本あります。全部で何リットルですか", None),
        ("How many hours are 3 gallons?", None),
        ("How many litres are 5 florps?", None),
        ("How many kilograms and grams are 3 pounds?", None),
        ("4Kは華氏何度になりますか", Conversion("4", "K", "degF")),
        ("华氏60度等于摄氏多少度", Conversion("60", "degF", "degC")),
        ("90mLは大さじ何杯?", Conversion("90", "mL", "tablespoons")),
        ("小さじ6杯は大さじで何杯ですか", Conversion("6", "teaspoons", "tablespoons")),
        ("6mLはカップで何杯?", Conversion("6", "mL", "cups")),
        ("2時間半は何分ですか", Conversion("2.5", "h", "min")),
        ("4个半小时等于多少分钟？", Conversion("4.5", "h", "min")),
        ("一时半是多少分钟", None),
        ("7.5 in in cm", Conversion("7.5", "inches", "cm")),
    ],
)
def test_a_conversion_has_one_number_and_two_units_of_a_kind(asked: str, found: Conversion | None) -> None:
    assert read_conversion(asked) == found


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("7cm^2は何m^2", Conversion("7", "cm^2", "m^2")),
        ("7 cm² in m²", Conversion("7", "cm^2", "m^2")),
        ("Convert 7 m3 to cm3", Conversion("7", "m^3", "cm^3")),
        ("7 sq ft to square metres?", Conversion("7", "ft^2", "m^2")),
        ("How many litres are 7 cubic centimeters?", Conversion("7", "cm^3", "L")),
        ("7 metres squared to hectares", Conversion("7", "m^2", "hectares")),
        ("7平方キロは何ヘクタールですか", Conversion("7", "km^2", "hectares")),
        ("7立方センチは何立方メートル", Conversion("7", "cm^3", "m^3")),
        ("7平方厘米等于多少平方米？", Conversion("7", "cm^2", "m^2")),
        ("7立方米是多少升", Conversion("7", "m^3", "L")),
        ("7 mm^2 to cm^2", None),
        ("7 mm² in cm", None),
        ("7 square inches to feet", None),
        ("7平方ミリメートルは何センチメートル", None),
        ("7平方米等于多少米", None),
    ],
)
def test_a_squared_or_cubed_length_is_no_length(asked: str, found: Conversion | None) -> None:
    assert read_conversion(asked) == found


@pytest.mark.parametrize("asked", ["3 gallons to litres", "3ガロンは何リットルですか?", "3加仑等于多少升？"])
def test_a_question_that_is_a_conversion_and_nothing_else_is_always_converted(asked: str) -> None:
    assert decided_line(asked, "", "Multiply.") == "Convert."
    assert decided_line(asked, "Convert.\n", "<<calculator: 3*3>>") == "<<unit_conversion: 3 gallons to L>>"
    assert decided_line(f"{asked} Florp.", "", "Multiply.") == ""


def test_the_table_decides_each_line_of_a_conversion() -> None:
    asked, wrong = "3ガロンは何リットルですか?", "<<unit_conversion: 3 gallons to km>>"
    call = "<<unit_conversion: 3 gallons to L>>"

    assert decided_line(asked, "", "I do not know this unit: I cannot convert it.") == "Convert."
    assert decided_line(asked, "Convert.\n", wrong) == call
    assert (
        decided_line(asked, f"Convert.\n{call} 11.356 L\n", "Therefore, the answer is 3 km.")
        == "Therefore, the answer is 11.356 L."
    )
    assert decided_line("5 florps in litres?", "", "I do not know this unit: I cannot convert it.") == ""


def test_other_names_are_those_of_units_of_the_table() -> None:
    assert {*CALLED} <= {*CONVERTED}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("What is four times nine plus three?", "4*9+3"),
        ("how much is (41 minus 6) minus 1,205?", "(41-6)-1205"),
        ("twenty-one divided by .5", "21/0.5"),
        ("二十一たす四は?", "21+4"),
        ("9かける4はいくつですか", "9*4"),
        ("九减四等于多少？", "9-4"),
        ("十二除以三", "12/3"),
        ("6乘以7是多少", "6*7"),
        ("4 times 9 eggs?", ""),
        ("4 times nine percent", ""),
        ("5xy + 3", ""),
        ("9 minus", ""),
        ("(9 minus 4", ""),
        ("9", ""),
        ("2026-04-09", ""),
        ("030-555-1234", ""),
        ("9の4倍", ""),
    ],
)
def test_a_calculation_is_read_where_every_word_is_understood(asked: str, found: str) -> None:
    assert read_calculation(asked) == found


@given(st.lists(st.tuples(st.integers(0, 999), st.sampled_from("+-*/")), min_size=2, max_size=5))
def test_a_calculation_in_signs_is_read_as_it_is(parts: list[tuple[int, str]]) -> None:
    written = "".join(f"{number}{sign}" for number, sign in parts)[:-1]

    assert read_calculation(f"What is {written} = ?") == written


def test_each_line_of_a_calculation_in_words_is_decided() -> None:
    asked, call = "What is four times nine plus three?", "<<calculator: 4*9+3>>"

    assert decided_line(asked, "", "Multiply.") == "Work it out."
    assert decided_line("What is four times nine?", "", "Multiply.") == "Multiply."
    assert decided_line(asked, "Work it out.\n", "<<calculator: 4*3>>") == call
    assert (
        decided_line(asked, f"Work it out.\n{call} 39\n", "Therefore, the answer is 39 eggs.")
        == "Therefore, the answer is 39."
    )


@pytest.mark.parametrize(
    "asked",
    [
        "9わる4のあまりは?", "5たす2のはんぶんは?", "Call 555-0199", "4-7ください", "What is 3/14/2021?", "Is the 7-Eleven open?",
        "四千三加一是多少?", "1" * 20_000,
    ],
)  # fmt: skip
def test_what_is_more_than_a_calculation_or_none_is_not_read_as_one(asked: str) -> None:
    assert read_calculation(asked) == ""
