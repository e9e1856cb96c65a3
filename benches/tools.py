"""The exact tools beside their peers: CPU microseconds per call, on inputs that both sides answer correctly."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import cycle, islice
from typing import Any

from benches.measure import Subject, median, timed
from taiwa.kernel.errors import ToolError
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import formula, mass
from taiwa.tools.expressions import calculate
from taiwa.tools.stoichiometry import balance

CALLS = 200
ROUNDS = 9
CHEMPY = "chempy==0.10.2"
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
    """Return the CPU microseconds per call, the median of several rounds."""
    for text in inputs:
        act(text)
    rounds = [timed(lambda: [act(text) for text in islice(cycle(inputs), CALLS)]) for _ in range(ROUNDS)]
    return median(rounds) / CALLS * 1e6


def refused(text: str) -> None:
    with suppress(ToolError):
        calculate(text)


def against(subject: Subject, what: str, own: float, peers: dict[str, float]) -> None:
    """Record our time, each peer's time, and their ratio."""
    subject.row(f"{what}: taiwa", own, "µs")
    for peer, taken in peers.items():
        subject.row(f"{what}: {peer}", taken, "µs", ours=own)


def formulas(subject: Subject) -> None:
    molmass, periodic = import_module("molmass"), import_module("periodictable.formulas")
    own = each(lambda text: mass(formula(text)), FORMULAS)
    peers = {
        "molmass": each(lambda text: molmass.Formula(text).mass, FORMULAS),
        "periodictable": each(lambda text: periodic.formula(text).mass, FORMULAS),
    }
    against(subject, "molar mass", own, peers)
    with chempy() as library:
        if library is not None:
            taken = each(lambda text: library.Substance.from_formula(text).mass, FORMULAS)
            subject.row("molar mass: chempy", taken, "µs", ours=own)
    subject.target("molar mass, relative to periodictable", own / peers["periodictable"], 1, "x")


def expressions(subject: Subject) -> None:
    sympy = import_module("sympy")
    own = each(calculate, EXPRESSIONS)
    against(
        subject,
        "arithmetic, exact",
        own,
        {
            "sympify (sympy; executes code in the text)": each(
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
        subject.row("arithmetic: simpleeval", each(evaluate, EXPRESSIONS), "µs", "in floats", ours=own)
    slowest = max(timed(lambda text=text: refused(text)) for text in BOMBS)
    subject.target("the slowest adversarial input", slowest * 1e3, 50, "ms")


def equations(subject: Subject) -> None:
    written = {f"{' + '.join(left)} -> {' + '.join(right)}": (left, right) for left, right in EQUATIONS}
    own = each(balance, tuple(written))
    subject.row("balancing: taiwa", own, "µs")
    with chempy() as library:
        if library is not None:
            taken = each(lambda text: library.balance_stoichiometry(*map(set, written[text])), tuple(written))
            subject.row("balancing: chempy", taken, "µs", ours=own)
    subject.target("balancing", own, 2_000, "µs")


@contextmanager
def chempy() -> Generator[Any]:
    """Install chempy in a separate folder without most of its 112 dependencies; this benchmark needs two of them."""
    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, CHEMPY]
        done = subprocess.run(install, check=False, capture_output=True)
        sys.path.insert(0, folder)
        try:
            yield import_module("chempy") if done.returncode == 0 else None
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == "chempy"]:
                del sys.modules[name]
    if done.returncode:
        print("  chempy could not be installed: left out")


def main() -> None:
    subject = Subject(
        "tools",
        "microseconds of CPU per call of the exact tools, beside peers, on inputs that these also answer correctly",
        peers=("molmass", "periodictable", "sympy", "simpleeval"),
    )
    formulas(subject)
    expressions(subject)
    equations(subject)
    subject.write()
