"""Unit conversion: exact, by pint, and bounded by us."""

import subprocess
import sys
from fractions import Fraction

import pytest

from taiwa.kernel.errors import ToolError
from taiwa.tools.calculator import calculator
from taiwa.tools.units import convert, unit_conversion


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("108 km/h to m/s", 30, "m/s"),
        ("108 kmph in m/s", 30, "m/s"),
        ("25 °C to K", Fraction(29815, 100), "K"),
        ("２５℃ → ℉", 77, "℉"),
        ("-40 F to degC", -40, "degC"),
        ("-273.15 degC to K", 0, "K"),
        ("212 F to C", 100, "C"),
        ("1 inch in cm", Fraction(254, 100), "cm"),
        ("10 in to cm", Fraction(254, 10), "cm"),
        ("2.54 cm in in", 1, "in"),
        ("1/2 mile to km", Fraction(12573, 15625), "km"),
        ("1,500 g to kg", Fraction(3, 2), "kg"),
        ("2 x 10^3 m to km", 2, "km"),
        ("5 × 10⁻³ L → mL", 5, "mL"),
        ("5 m² to cm²", 50_000, "cm²"),
        ("5 kg*m/s^2 to N", 5, "N"),
        ("5 kg m s-2 to N", 5, "N"),
        ("8.368 J/(mol K) to cal/(mol K)", 2, "cal/(mol K)"),
        ("100 J/g/K to J/kg/K", 100_000, "J/kg/K"),
        ("60 miles per hour to km/h", Fraction(301752, 3125), "km/h"),
        ("3 h = ? min", 180, "min"),
        ("m to cm", 100, "cm"),
        ("1 mol/L to mmol/mL", 1, "mmol/mL"),
        ("1 µm to m", Fraction(1, 10**6), "m"),
        ("5 ft 3 in to cm", Fraction(16002, 100), "cm"),
        ("5 feet and 7 inches to in", 67, "in"),
        ("7 hours 50 minutes to s", 28_200, "s"),
        ("8 h 30 min - 1 h 15 min to min", 435, "min"),
        ("2h35min to min", 155, "min"),
        ("7時間50分 → 分", 470, "分"),
        ("17:10 - 14:35 to min", 155, "min"),
        ("14:35 to 17:10", 155, "min"),
        ("11時15分 - 9時40分", 95, "min"),
        ("2:35 PM - 9:10 a.m. to h", Fraction(65, 12), "h"),
        ("24:10 - 23:50", 20, "min"),
        ("2026-04-17 - 2026-03-03", 45, "day"),
        ("2024-02-28 to 2024-03-01", 2, "day"),
        ("2026-12-25 - 2026-11-29 to weeks", Fraction(26, 7), "weeks"),
    ],
)
def test_a_quantity_is_converted_exactly(text: str, number: Fraction | int, unit: str) -> None:
    assert convert(text) == (number, unit)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("8:45 + 8 h 35 min", "17:20"),
        ("8:45 AM + 7 hours 50 minutes + 45 minutes", "17:20"),
        ("9時 - 30分", "08:30"),
        ("23:50 + 20 min", "00:10 (the next day)"),
        ("0:10 - 20 min", "23:50 (the day before)"),
        ("8:00 + 50 h", "10:00 (+2 days)"),
        ("2026-12-25 + 2 weeks", "2027-01-08"),
        ("12:30 pm + 15 s", "12:30:15"),
    ],
)
def test_a_quantity_added_to_a_time_or_a_date_is_another_one(text: str, shown: str) -> None:
    assert unit_conversion.call({"conversion": text}).text == calculator.call({"expression": text}).text == shown


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "syntax"),
        ("5 m", "syntax"),
        ("5 to", "syntax"),
        ("5 ft 3 to cm", "syntax"),
        ("7 hours 50 minutes", "syntax"),
        ("10:00 + 11:00", "syntax"),
        ("17:10 - 0:35 - 1:00", "syntax"),
        ("8:45 + 1 h to min", "syntax"),
        ("25 degC 3 degC to K", "syntax"),
        ("0:10 - 23:50", "domain"),
        ("2026-02-30 - 2026-01-01", "syntax"),
        ("2026-02-03 - 9:00", "syntax"),
        ("2026-01-31 + 1 month", "domain"),
        ("0001-01-01 - 1 day", "domain"),
        ("30 kg 5 s to kg", "dimension"),
        ("1 m^99 to m", "syntax"),
        ("1 m^9**9**9 to m", "syntax"),
        ("m " * 20 + "to m", "syntax"),
        ("9**9**9 m to km", "too_large"),
        ("1 m to s", "dimension"),
        ("3 F to m", "dimension"),
        ("1 degC*m to K*m", "dimension"),
        ("5 meterz to m", "unknown_unit"),
        ("5 __import__ to m", "syntax"),
        ("1 m to " + "x" * 10**7, "too_long"),
        ("-300 degC to K", "domain"),
        ("-500 °F to °C", "domain"),
        ("-10 K to degC", "domain"),
        ("-1 degR to K", "domain"),
        ("-1 kelvin to kelvin", "domain"),
    ],
)
def test_what_cannot_be_converted_is_refused(text: str, code: str) -> None:
    with pytest.raises(ToolError) as caught:
        unit_conversion.call({"conversion": text})

    assert caught.value.code == code
    assert "\n" not in caught.value.message


def test_the_tool_says_number_and_unit() -> None:
    result = unit_conversion.call({"conversion": "1 inch to m"})

    assert (result.text, result.value) == ("0.0254 m", {"number": "127/5000", "unit": "m"})


def test_pint_is_loaded_only_when_a_unit_is_converted() -> None:
    script = "import sys, taiwa.tools.expressions as units; units.calculate('1+1'); print('pint' in sys.modules)"

    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout

    assert said == "False\n"
