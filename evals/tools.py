"""Evaluate the tools without a model: exercises, recorded calculations, and questions decided by a given function.

An exercise is a row with `id`, `kind`, `input` and `gold`. Kinds: arithmetic, balance, balance_error, molar_mass,
mass_percent, moles_to_mass, mass_to_moles, stoich.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from taiwa.evals.data import Skipped, read_rows, usable
from taiwa.evals.report import Proportion, interval_json, is_near, parse_number
from taiwa.flows.solve.tool_call_formats import tool_call_format
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.serialization import Json, value
from taiwa.tools.chemical_formulas import elements
from taiwa.tools.registry import builtin_tools
from taiwa.tools.stoichiometry import equation

Verdict: TypeAlias = Literal["right", "wrong", "label_error", "undecided"]
ToolCaller: TypeAlias = Callable[[str, str], ToolResult]
"""Calls the tool of a name with its input as text."""
RECORDED = re.compile(r"<<(?P<expression>[^<>=]*)=(?P<result>[^<>]*)>>")
EQUATIONS = frozenset({"balance", "balance_error"})
NEEDS_MODEL = "needs a model"
"""The kind of a question that was not decided."""
TOLERANCE = Fraction(1, 200)
"""Textbooks round their weights and their steps."""
FLOAT_TOLERANCE = Fraction(1, 10**6)
MIN_DECIMALS = 2
Row = Mapping[str, Json]


@value
class ToolAnswer:
    """The tools' answer to one question, and the expected one; a label known to be wrong does not count as a miss."""

    id: str
    kind: str
    verdict: Verdict
    got: str = ""
    gold: str = ""
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer is the expected one."""
        return self.verdict == "right"


Decide: TypeAlias = Callable[[str, str], tuple[str, Verdict] | None]
"""Decides a question without a model: question and expected answer to answer and verdict, or None."""


@dataclass
class ToolScore:
    """The answers of the tools to a file, and the problems of the rows that were left out."""

    answers: list[ToolAnswer] = field(default_factory=list[ToolAnswer])
    skipped: tuple[str, ...] = ()

    @property
    def share(self) -> Proportion:
        """The share of right answers among all decided ones, including wrong labels."""
        decided = [each for each in self.answers if each.verdict != "undecided"]
        return Proportion(sum(each.right for each in decided), len(decided))

    def of(self, verdict: Verdict) -> list[ToolAnswer]:
        """Return the answers with a verdict."""
        return [each for each in self.answers if each.verdict == verdict]

    def to_json(self) -> dict[str, Json]:
        """Return the score as JSON."""
        share = self.share
        counts, right = (Counter(each.kind for each in some) for some in (self.answers, self.of("right")))
        by_kind: list[Json] = [{"kind": kind, "n": count, "right": right[kind]} for kind, count in counts.items()]
        misses: list[Json] = [
            {"id": each.id, "kind": each.kind, "got": each.got, "gold": each.gold, "error": each.error or None}
            for each in self.of("wrong")
        ]
        return {
            "n": share.of, "right": share.count, "accuracy": share.share, "interval": interval_json(share.interval),
            "undecided": len(self.of("undecided")), "label_errors": [each.id for each in self.of("label_error")],
            "misses": misses, "kinds": by_kind, "skipped": [*self.skipped],
        }  # fmt: skip


def score_tools(path: Path, decide: Decide | None = None, skipped: Skipped = None) -> ToolScore:
    """Run the tools on a file: exercises with `kind`, `input` and `gold`, or questions with their answers.

    Recorded calculations in an answer are checked; other questions are decided by `decide`, or left undecided. Rows of another
    form go to `skipped`.

    Raises:
        InputError: the file or a row cannot be used.
    """
    rows = enumerate(read_rows(path, skipped)[1])

    def read(numbered: tuple[int, tuple[int, Row]]) -> list[ToolAnswer]:
        count, (line, row) = numbered
        return list(_answers(row, str(row.get("id", count)), f"{path}:{line}", decide))

    score = ToolScore([answer for answers in usable(rows, read, skipped) for answer in answers], tuple(skipped or ()))
    if not score.answers:
        raise InputError(skipped[0] if skipped else f"{path} holds nothing that the tools could be asked")
    return score


def _answers(row: Row, name: str, where: str, decide: Decide | None) -> Iterator[ToolAnswer]:
    if "input" in row:
        yield _exercise(row, name, where)
        return
    question, answer = row.get("question"), row.get("answer", row.get("gold"))
    if not isinstance(question, str) or answer is None or isinstance(answer, (bool, list, dict)):
        field = "question" if not isinstance(question, str) else "answer"
        raise InputError(f"{where}: the field {field!r} is missing; an exercise has 'kind', 'input' and 'gold'")
    recorded = list(RECORDED.finditer(answer)) if isinstance(answer, str) else []
    for place, each in enumerate(recorded, 1):
        yield _calculation(f"{name}:{place}", each["expression"], each["result"])
    if not recorded:
        if decided := decide and decide(question, str(answer)):
            yield ToolAnswer(name, "decided by a formula", decided[1], decided[0], str(answer))
        else:
            yield ToolAnswer(name, NEEDS_MODEL, "undecided", "", str(answer))


def _exercise(row: Row, name: str, where: str) -> ToolAnswer:
    kind, gold = row.get("kind"), row.get("gold")
    if isinstance(gold, bool) or not isinstance(gold, (str, int, float)):
        raise InputError(f"{where}: the field 'gold' must be a number or a text")
    text = str(gold)
    if kind in EXERCISE_KINDS and kind not in EQUATIONS and not text.startswith("ERROR") and parse_number(text) is None:
        raise InputError(f"{where}: the field 'gold' must be a number, not {text[:40]!r}")
    try:
        return solve_exercise({**row, "id": name}, _call_tool)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: the field 'input' does not fit the kind {kind!r} ({error})") from None


def _calculation(name: str, expression: str, result: str) -> ToolAnswer:
    try:
        got = str(_call_tool("calculator", expression).value)
    except ToolError as error:
        return ToolAnswer(name, "calculation", "wrong", "", result, error.message)
    return ToolAnswer(name, "calculation", "right" if is_near(got, result) else "wrong", got, result)


def _call_tool(name: str, text: str) -> ToolResult:
    """Call a tool with its input as a model would write it."""
    tool = builtin_tools()[name]
    return tool.call(tool_call_format("tagged").parse_arguments(tool.spec, text))


def solve_exercise(row: Mapping[str, Json], call: ToolCaller) -> ToolAnswer:
    """Solve one exercise by calling tools by name; a failure is an answer too."""
    kind, gold = str(row.get("kind")), str(row.get("gold"))
    name, solve, got, error = str(row.get("id")), EXERCISE_KINDS.get(kind), "", ""
    if solve is None:
        return ToolAnswer(name, kind, "wrong", "", gold, f"unknown kind {kind!r}")
    try:
        got = solve(row["input"], call)
    except ToolError as failed:
        error = failed.message
    if gold.startswith("ERROR"):
        right = bool(error) or got.startswith(("impossible", "underdetermined"))
    else:
        right = bool(got) and _agrees(kind, got, gold)
    return ToolAnswer(name, kind, "right" if right else "wrong", got, gold, error)


def _agrees(kind: str, got: str, gold: str) -> bool:
    if kind == "balance":
        return _proportions(got) == _proportions(gold)
    number, wanted = Fraction(got), Fraction(gold)
    if kind == "arithmetic":
        return is_rounded(number, gold)
    return abs(number - wanted) <= abs(wanted) * TOLERANCE


def is_rounded(exact: Fraction, written: str) -> bool:
    """Return whether a number was written correctly: as a float, or rounded to its own decimals, two at least.

    >>> is_rounded(Fraction(2, 3), "0.67"), is_rounded(Fraction(2, 3), "0.66"), is_rounded(Fraction(2, 3), "0.7")
    (True, False, False)
    """
    decimals = len(written.partition(".")[2]) if "e" not in written else 0
    last = Fraction(1, 2 * 10**decimals) if decimals >= MIN_DECIMALS else Fraction(0)
    return abs(exact - Fraction(written)) <= max(abs(exact) * FLOAT_TOLERANCE, last)


def _proportions(text: str) -> tuple[frozenset[tuple[str, Fraction]], ...]:
    """Return the species of both sides with coefficients as multiples of the smallest; () if the text is not an equation."""
    try:
        parsed = equation(text)
    except ToolError:
        return ()
    least = min(term.count or Fraction(1) for term in parsed.terms)
    return tuple(
        frozenset((term.species.text, (term.count or Fraction(1)) / least) for term in side)
        for side in (parsed.reactants, parsed.products)
    )


def _arithmetic(exercise: Json, call: ToolCaller) -> str:
    return str(call("calculator", str(exercise)).value)


def _balance(exercise: Json, call: ToolCaller) -> str:
    return call("stoichiometry", str(exercise)).text


def _molar_mass(exercise: Json, call: ToolCaller) -> str:
    return str(_fields(call("molar_mass", str(exercise)).value)["molar_mass"])


def _mass_percent(exercise: Json, call: ToolCaller) -> str:
    """Return the share of an element, or of a group such as the water of a hydrate, counted as often as its atoms allow."""
    fields = _fields(exercise)
    whole, wanted = _fields(call("molar_mass", str(fields["formula"])).value), str(fields["element"])
    share = _fields(whole["percent"]).get(wanted)
    if share is not None or wanted in elements():
        return str(share or "")
    group = _fields(call("molar_mass", wanted).value)
    there, needed = _fields(whole["atoms"]), _fields(group["atoms"])
    count = min(Fraction(str(there.get(atom, 0))) // Fraction(str(number)) for atom, number in needed.items())
    return _expression(f"{count} * M[{wanted}] / M[{fields['formula']}] * 100", call) if count else ""


def _moles_to_mass(exercise: Json, call: ToolCaller) -> str:
    fields = _fields(exercise)
    return _expression(f"{fields['moles']} * M[{fields['formula']}]", call)


def _mass_to_moles(exercise: Json, call: ToolCaller) -> str:
    fields = _fields(exercise)
    return _expression(f"{fields.get('mass', fields.get('grams'))} / M[{fields['formula']}]", call)


def _stoich(exercise: Json, call: ToolCaller) -> str:
    fields = _fields(exercise)
    balanced = call("stoichiometry", str(fields["equation"])).text if "equation" in fields else ""
    if balanced and _proportions(balanced) != _proportions(str(fields["equation"])):
        raise ToolError(f"the equation is not balanced; balanced it is {balanced}", code="unbalanced")
    return _expression(str(fields["expression"]), call)


def _expression(text: str, call: ToolCaller) -> str:
    """Evaluate an expression in which `M[formula]` stands for a molar mass."""
    while (start := text.find("M[")) >= 0:
        end = _closing_bracket(text, start + 1)
        text = f"{text[:start]}({_molar_mass(text[start + 2 : end], call)}){text[end + 1 :]}"
    return _arithmetic(text, call)


def _closing_bracket(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "[") - (text[place] == "]")
        if depth == 0:
            return place
    raise ToolError(f"unclosed bracket in {text[:60]!r}", code="syntax")


def _fields(part: Json) -> dict[str, Json]:
    return part if isinstance(part, dict) else {}


EXERCISE_KINDS: Mapping[str, Callable[[Json, ToolCaller], str]] = MappingProxyType({
    "arithmetic": _arithmetic, "balance": _balance, "balance_error": _balance, "molar_mass": _molar_mass,
    "mass_percent": _mass_percent, "moles_to_mass": _moles_to_mass, "mass_to_moles": _mass_to_moles, "stoich": _stoich,
})  # fmt: skip
