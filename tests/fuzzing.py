"""Random inputs for the built-in tools, which must answer or refuse each of them.

The inputs come from a seed: pieces of real notation in any order, mutations of right inputs, and bombs.
"""

import os
from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType

from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import value
from taiwa.tools.registry import builtin_tools
from tests.steps import lines_run

__all__ = ["EXPENSIVE_INPUTS", "VALID_INPUTS", "FuzzResult", "fuzz_tools", "inputs"]

SEED = int(os.environ.get("EXPLORE_SEED", "20261121"))
MAX_ERROR_LENGTH = 1_000
VALID_INPUTS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "calculator": (
            "expression",
            ("14*2/108*100", "1,000 × 5%", "sqrt(2)^3 + ln(10)", "(1+2)*3 = 9", "3½ ÷ 4²", "exp(1)"),
        ),
        "molar_mass": (
            "formula",
            ("CuSO4·5H2O", "[Fe(CN)6]4-", "Al₂(CO₃)₃", "^13CO2", "(NH4)2Fe(SO4)2.6H2O", "Fe0.95O"),
        ),
        "stoichiometry": (
            "equation",
            (
                "Fe + O2 -> Fe2O3",
                "MnO4^- + 8H+ + 5Fe^2+ -> Mn^2+ + 4H2O + 5Fe^3+",
                "?C2H6 + 7O2 -> ?CO2 + ?H2O",
                "CO + CO2 + H2 -> CH4 + H2O",
                "Ag+ + Cl- = AgCl",
            ),
        ),
        "unit_conversion": (
            "conversion",
            ("108 km/h to m/s", "25 °C to K", "5 kg*m/s^2 in N", "1/2 mile → km", "3 m² = cm²"),
        ),
    }
)
"""The parameter of each tool, and valid inputs that are mutated."""
PIECES = (
    "0 1 2 9 10 99 999999 1e9 1e9999 . , % $ ¥ + - * / ^ ** ( ) [ ] { } = x × ÷ − √ sqrt ln( exp( log10( pi of ½ ² ⁻³ H O Na C e "
    "e- ^2- + - -> → ⇌ · . ? _ _{2} ^{3+} (aq) (II) H2O SO4 Fe(CN)6 m s kg K °C km/h to in per １ ＋ （ ） ＝ 漢 dollars mins /hour 円 万 億 千 [ } \\ce{ } $ \n \t \x00 \ud800"
).split(" ")
EXPENSIVE_INPUTS = (
    "9**9**9**9",
    "9^9^9^9",
    "(" * 100_000,
    ")" * 999,
    "-" * 999,
    "√" * 999,
    "1+" * 499 + "1",
    "2^" * 499 + "2",
    "'1'*10**9",
    "99999999!",
    "factorial(10**9)",
    "9" * 999,
    "1万" * 400,
    "9 dollars * " * 80 + "9",
    "3 1/2 + " * 120 + "1",
    "10" + "0" * 900 + "^0.5",
    "1<<10**10",
    "H" * 999,
    "(H" * 20 + ")9999999" * 20,
    "A" * 10_000_000,
    " + ".join(f"C{n}H{n + 2}" for n in range(1, 12)) + " -> " + " + ".join(f"C{n}H{n + 1}O" for n in range(1, 12)),
    "H+" * 300 + "->H",
    "+".join("HOCN") + "->" + "+".join("HOCN"),
    "1e9999 m to km",
    "m" * 150 + " to m",
    "m*" * 90 + "m to m",
    "= " * 400,
    "1=" * 400 + "1",
    "exp(ln(exp(ln(exp(ln(2600))))))" + "^(1/63)" * 100,
    "1.0000000001^(1e9+1/7)",
)


@value
class FuzzResult:
    """The results of one tool: `faults` are inputs that it neither answered nor refused correctly, and `most_lines`
    the lines of Python that the costliest input ran.
    """

    tool: str
    inputs: int
    answered: int
    most_lines: int
    costliest: str
    faults: tuple[str, ...] = ()


def fuzz_tools(name: str, count: int, seed: int = SEED) -> FuzzResult:
    """Run a built-in tool on a number of inputs."""
    tool, (parameter, right) = builtin_tools()[name], VALID_INPUTS[name]
    tool.call({parameter: right[0]})
    answered, most, which, faults = 0, 0, "", list[str]()

    def call(text: str) -> None:
        nonlocal answered
        try:
            tool.call({parameter: text})
        except ToolError as error:
            if fault := _fault(error):
                faults.append(f"{fault}: {text[:200]!r}")
        else:
            answered += 1

    for text in inputs(right, Random(seed), count):
        most, which = max((most, which), (lines_run(call, text), text))
    return FuzzResult(name, count, answered, most, which[:100], tuple(faults))


def _fault(error: ToolError) -> str:
    """Describe what is wrong with a refusal."""
    if error.code == "internal":
        return f"{error.__cause__!r}"
    if "\n" in error.message + error.hint or len(error.message) + len(error.hint) > MAX_ERROR_LENGTH:
        return "more than a line"
    return ""


def inputs(right: tuple[str, ...], random: Random, count: int) -> Iterator[str]:
    """Yield the expensive inputs, then random ones, up to a number."""
    yield from EXPENSIVE_INPUTS
    for number in range(count - len(EXPENSIVE_INPUTS)):
        if number % 2:
            yield "".join(random.choices(PIECES, k=random.randrange(1, 40)))
        else:
            text = list(random.choice(right))
            for _ in range(random.randrange(1, 6)):
                at = random.randrange(len(text) + 1)
                text[at : at + random.randrange(2)] = random.choice(PIECES)
            yield "".join(text)
