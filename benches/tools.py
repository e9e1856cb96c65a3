"""The exact tools beside their peers: microseconds of CPU per call, on inputs that both sides get right."""

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import cycle, islice

from benches.measure import Subject, median, timed
from taiwa.kernel.errors import ToolError
from taiwa.tools import balance, calculate, calculator, formula, mass

CALLS = 200
ROUNDS = 9
FORMULAS = ("H2O", "NaCl", "Ca3(PO4)2", "Co3(Fe(CN)6)2", "C17H35CO2Na", "((CH3)2CH)2O", "UO2(NO3)2", "C12H22O11")
EXPRESSIONS = ("16-3-4", "14*2/108*100", "1.36 * 3 / 2", "(100/120)*48", "43.88 * 0.3842 * 2 / 0.2089", "2**10 - 24")
EQUATIONS = (
    (("Fe", "O2"), ("Fe2O3",)),
    (("C8H18", "O2"), ("CO2", "H2O")),
    (("KMnO4", "HCl"), ("KCl", "MnCl2", "Cl2", "H2O")),
    (("Cu", "HNO3"), ("Cu(NO3)2", "NO", "H2O")),
)
BOMBS = ("9**9**9**9", "(" * 100_000, "1+" * 499 + "1", "2^" * 499 + "2", "exp(2600)^(1/63)", "√" * 999)


def each(act: Callable[[str], object], inputs: tuple[str, ...]) -> float:
    """Microseconds of CPU per call, the median of several rounds."""
    for text in inputs:
        act(text)
    rounds = [timed(lambda: [act(text) for text in islice(cycle(inputs), CALLS)]) for _ in range(ROUNDS)]
    return median(rounds) / CALLS * 1e6


def refused(text: str) -> None:
    with suppress(ToolError):
        calculate(text)


def against(subject: Subject, what: str, own: float, peers: dict[str, float]) -> None:
    """Write our time, each peer's, and how many times ours the peer takes."""
    subject.row(f"{what}: taiwa", own, "µs")
    for peer, taken in peers.items():
        subject.row(f"{what}: {peer}", taken, "µs", f"{taken / own:.1f} x ours")


def formulas(subject: Subject) -> None:
    molmass, periodic = import_module("molmass"), import_module("periodictable.formulas")
    own = each(lambda text: mass(formula(text)), FORMULAS)
    peers = {
        "molmass": each(lambda text: molmass.Formula(text).mass, FORMULAS),
        "periodictable": each(lambda text: periodic.formula(text).mass, FORMULAS),
    }
    against(subject, "molar mass", own, peers)
    subject.target("molar mass, as a part of periodictable's time", own / peers["periodictable"], 1, "x")


def expressions(subject: Subject) -> None:
    sympy = import_module("sympy")
    own = each(calculate, EXPRESSIONS)
    against(
        subject,
        "arithmetic, exact",
        own,
        {
            "sympify (sympy; runs code that a text holds)": each(
                lambda text: sympy.sympify(text, rational=True), EXPRESSIONS
            )
        },
    )
    subject.row(
        "arithmetic through the tool: arguments, result",
        each(lambda text: calculator.call({"expression": text}), EXPRESSIONS),
        "µs",
    )
    try:
        evaluate = import_module("simpleeval").simple_eval
    except ImportError:
        print("  simpleeval is not installed: left out")
    else:
        subject.row("arithmetic in floats: simpleeval", each(evaluate, EXPRESSIONS), "µs")
    slowest = max(timed(lambda text=text: refused(text)) for text in BOMBS)
    subject.target("the slowest of the bombs", slowest * 1e3, 50, "ms")


def equations(subject: Subject) -> None:
    written = {f"{' + '.join(left)} -> {' + '.join(right)}": (left, right) for left, right in EQUATIONS}
    own = each(balance, tuple(written))
    try:
        solve = import_module("chempy").balance_stoichiometry
    except ImportError:
        # 112 packages and 677 MB with what it brings: measured where somebody has it.
        print("  chempy is not installed: left out")
        against(subject, "balancing", own, {})
    else:
        taken = each(lambda text: solve(*map(set, written[text])), tuple(written))
        against(subject, "balancing", own, {"chempy": taken})
    subject.target("balancing", own, 2_000, "µs")


def main() -> None:
    subject = Subject(
        "tools", "microseconds of CPU per call of the exact tools, beside peers on what these read right, too"
    )
    formulas(subject)
    expressions(subject)
    equations(subject)
    subject.write()
