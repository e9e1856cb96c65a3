"""NumGLUE Task 2 (Mishra et al., ACL 2022) without a model: the questions that a formula and a tool can decide.

Patterns read the text of a question; the tools compute, with integer atomic weights as in the expected answers. A question
with the name of a compound, or with products that it does not name, requires a model and is left undecided.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from types import MappingProxyType

from evals.tools import Verdict
from taiwa.kernel.errors import ToolError
from taiwa.kernel.serialization import Json, value
from taiwa.tools.chemical_formulas import elements, formula, mass, mass_percent
from taiwa.tools.stoichiometry import balance

__all__ = ["LABEL_ERRORS", "Decision", "DecisionCounts", "compare_label", "count_decisions", "decide_question"]

LABEL_ERRORS: Mapping[str, tuple[int, int]] = MappingProxyType({"K2Cr2O7": (296, 294), "KBrO3": (168, 167)})
"""Formulas whose molar mass in the data (first) is not the sum of its own integer weights (second)."""

NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
WORDS: Mapping[str, int] = dict(
    zip("one two three four five six seven eight nine ten a an".split(), [*range(1, 11), 1, 1], strict=True)
)
SUBSTANCE = r"[A-Z(\[][^\s,?]*[^\s,.?]|[A-Z]"
MOLES = rf"(?P<{{0}}>{NUMBER})\s+mol(?:e|es|s)?\s+of\s+(?P<{{1}}>{SUBSTANCE})"
PORTION = re.compile(MOLES.format("count", "formula"))
# For a substance that is formed or needed, the question asks for an amount, not for a molar mass.
END = r"(?=[\s?.,]|\Z)(?!\s+(?:is|are|was|were|be|formed|produced|required|needed)\b)"
WEIGHT = re.compile(
    rf"(?:molecular|molar|formula)\s+(?:weight|mass)\s+of\s+(?:(?P<count>{NUMBER})\s+mol(?:e|es|s)?\s+of\s+)?(?P<formula>{SUBSTANCE}){END}"
    rf"|how\s+much\s+do(?:es)?\s+{MOLES.format('many', 'weighed')}\s+weigh"
    rf"|(?:weight|mass)\s+of\s+{MOLES.format('several', 'asked')}{END}",
    re.IGNORECASE,
)
COMPOSED = re.compile(
    r"(?:molecular|molar|formula)\s+(?:weight|mass)\s+of\s+.*?\b(?:having|with|containing|consisting of|made(?: up)? of)\s+(?P<list>.+)",
    re.IGNORECASE,
)
ATOMS = re.compile(r"(?P<count>[0-9]+)\s+(?:atoms?\s+(?:of\s+)?)?(?P<element>[A-Za-z]+)\s*\Z")
PERCENT = re.compile(
    rf"(?:mass\s+percent(?:age)?|percent(?:age)?\s+by\s+mass)\s+of\s+(?P<element>[A-Za-z]+)\s+in\s+(?P<formula>{SUBSTANCE})",
    re.IGNORECASE,
)
REQUIRED = re.compile(
    rf"(?P<what>moles?|amount|mass)\s+of\s+(?P<wanted>{SUBSTANCE})\s+(?:(?:is|are)\s+)?(?:required|needed)\s+to\s+(?:react|combine)\s+with"
    r"\s+(?P<given>.+?)\s+to\s+(?:form|produce|give)\s+(?P<formed>.+)",
    re.IGNORECASE,
)
FORMED = re.compile(
    rf"(?P<what>moles?|amount|mass)\s+of\s+(?P<wanted>{SUBSTANCE})\s+formed\s+(?:on|by|when)\s+(?:combining|reacting)\s+(?P<given>.+)",
    re.IGNORECASE,
)
AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
SPELLED = {"aluminium": "Al", "sulphur": "S", "caesium": "Cs"}
CENT = Decimal("0.01")


@value
class Decision:
    """A computed answer, and its formula or equation."""

    answer: str
    source: str


@value
class DecisionCounts:
    """Decided questions against their labels; `misses` and `label_errors` hold ids."""

    questions: int
    decided: int
    right: int
    misses: tuple[str, ...] = ()
    label_errors: tuple[str, ...] = ()


def decide_question(question: str) -> Decision | None:
    """Answer a question, rounded to two decimals; None if the text lacks what is needed.

    >>> decide_question("What is the molecular weight of a compound having 2 H and 1 O?")
    Decision(answer='18', source='H2O1')
    """
    text = " ".join(question.split())
    for read in (_percent, _composed, _weight, _required, _formed):
        try:
            found = read(text)
        except ToolError:
            continue  # a name in place of a formula
        if found is not None:
            return found
    return None


def count_decisions(rows: Iterable[Mapping[str, Json]]) -> DecisionCounts:
    """Decide rows with `id`, `question` and `answer`, and count."""
    count = decided = right = 0
    misses: list[str] = []
    wrong_labels: list[str] = []
    for row in rows:
        count += 1
        found = decide_question(str(row["question"]))
        if found is None:
            continue
        decided += 1
        judged = compare_label(found, str(row["answer"]))
        right += judged == "right"
        if judged != "right":
            (misses if judged == "wrong" else wrong_labels).append(str(row["id"]))
    return DecisionCounts(count, decided, right, tuple(misses), tuple(wrong_labels))


def compare_label(found: Decision, label: str) -> Verdict:
    """Compare a decision with its label, which may be known to be wrong."""
    try:
        stated = Decimal(label.strip())
    except InvalidOperation:
        return "wrong"
    if stated == Decimal(found.answer):
        return "right"
    labelled, true = LABEL_ERRORS.get(found.source, (0, 1))
    return "label_error" if labelled and stated * true == Decimal(found.answer) * labelled else "wrong"


def decide_and_compare(question: str, label: str) -> tuple[str, Verdict] | None:
    """Decide a question and compare the answer with its label; None if it requires a model."""
    found = decide_question(question)
    return None if found is None else (found.answer, compare_label(found, label))


def _percent(text: str) -> Decision | None:
    asked = PERCENT.search(text)
    if asked is None:
        return None
    shares = mass_percent(formula(asked["formula"]), "integer")
    symbol = _symbol(asked["element"])
    return _decision(shares[symbol], asked["formula"]) if symbol in shares else None


def _composed(text: str) -> Decision | None:
    asked = COMPOSED.search(text)
    if asked is None:
        return None
    parts = [ATOMS.match(part.strip()) for part in AND.split(asked["list"].rstrip(" .?"))]
    written = "".join(f"{_symbol(part['element'])}{part['count']}" if part else "?" for part in parts)
    return _decision(mass(formula(written), "integer"), written)


def _weight(text: str) -> Decision | None:
    asked = WEIGHT.search(text)
    if asked is None:
        return None
    count = asked["count"] or asked["many"] or asked["several"]
    written = asked["formula"] or asked["weighed"] or asked["asked"]
    return _decision(_number(count or "1") * mass(formula(written), "integer"), written)


def _required(text: str) -> Decision | None:
    asked = REQUIRED.search(text)
    if asked is None:
        return None
    written = f"? {asked['wanted']} + {_side(asked['given'])} -> {_side(asked['formed'])}"
    return _amount(asked, _balanced(asked["wanted"], written))


def _formed(text: str) -> Decision | None:
    """Read a question whose wanted substance is the only product."""
    asked = FORMED.search(text)
    if asked is None:
        return None
    return _amount(asked, _balanced(asked["wanted"], f"{_side(asked['given'])} -> ? {asked['wanted']}"))


def _amount(asked: re.Match[str], moles: Decision | None) -> Decision | None:
    """Return the number of moles, or their weight, as the question asks."""
    if moles is None or asked["what"].lower().startswith("mole"):
        return moles
    return _decision(Fraction(moles.answer) * mass(formula(asked["wanted"]), "integer"), moles.source)


def _balanced(wanted: str, written: str) -> Decision | None:
    found = balance(written)
    if found.status != "solved":
        return None
    name = formula(wanted).text
    counts = (term.count for term in found.equations[0].terms if term.species.text == name)
    return _decision(next(count for count in counts if count is not None), written)


def _side(text: str) -> str:
    """Return portions as one side of an equation; a missing number is an unknown."""
    return " + ".join(_portion(part.strip()) for part in AND.split(text.rstrip(" .?")))


def _portion(text: str) -> str:
    found = PORTION.fullmatch(text)
    return f"{_number(found['count'])} {found['formula']}" if found else f"? {text}"


def _number(text: str) -> Fraction:
    return Fraction(WORDS.get(text.lower(), text))


def _symbol(word: str) -> str:
    if word in elements():
        return word
    named = {element.name: symbol for symbol, element in elements().items()} | SPELLED
    return named.get(word.lower()) or named.get(word.lower().removesuffix("s"), word)


def _decision(number: Fraction, source: str) -> Decision:
    exact = Decimal(number.numerator) / Decimal(number.denominator)
    answer = exact.quantize(CENT, ROUND_HALF_UP)
    return Decision(f"{answer:f}".rstrip("0").rstrip("."), source)
