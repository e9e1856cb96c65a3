"""Textbook exercises for the tools alone: each is worked through tools called by name, by whichever door a caller gives.

An exercise is a row with `id`, `kind`, `input` and `gold`. Kinds: arithmetic, balance, balance_error, molar_mass,
mass_percent, moles_to_mass, mass_to_moles, stoich.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias, cast

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json, value
from taiwa.kernel.values import ToolResult
from taiwa.lab.arithmetic import is_rounded
from taiwa.tools.elements import elements
from taiwa.tools.equation import equation

__all__ = ["KINDS", "Call", "Worked", "work"]

Call: TypeAlias = Callable[[str, str], ToolResult]
"""Calls the tool of a name with its input as text."""
TOLERANCE = Fraction(1, 200)
"""Textbooks round their weights and their steps."""


@value
class Worked:
    """One exercise: what came out, and whether it is right; `error` is what a tool said instead."""

    id: str
    kind: str
    right: bool
    got: str = ""
    gold: str = ""
    error: str = ""


def work(row: Mapping[str, Json], call: Call) -> Worked:
    """Work one exercise; a failure is a result, too."""
    kind, gold = str(row.get("kind")), str(row.get("gold"))
    solve = KINDS.get(kind)
    error = "" if solve is not None else f"no way to work the kind {kind!r}"
    got = ""
    if solve is not None:
        try:
            got = solve(row["input"], call)
        except ToolError as failed:
            error = failed.message
    if gold.startswith("ERROR"):
        right = solve is not None and (bool(error) or got.startswith(("impossible", "underdetermined")))
    else:
        right = bool(got) and _agrees(kind, got, gold)
    return Worked(str(row.get("id")), kind, right, got, gold, error)


def _agrees(kind: str, got: str, gold: str) -> bool:
    if kind == "balance":
        return _proportions(got) == _proportions(gold)
    number, wanted = Fraction(got), Fraction(gold)
    if kind == "arithmetic":
        return is_rounded(number, gold)
    return abs(number - wanted) <= abs(wanted) * TOLERANCE


def _proportions(text: str) -> tuple[frozenset[tuple[str, Fraction]], ...]:
    """The species of both sides with their coefficients, as multiples of the smallest; nothing where this is no equation."""
    try:
        found = equation(text)
    except ToolError:
        return ()
    counts = [term.count or Fraction(1) for term in found.terms]
    return tuple(
        frozenset((term.species.text, (term.count or Fraction(1)) / min(counts)) for term in side)
        for side in (found.reactants, found.products)
    )


def _arithmetic(given: Json, call: Call) -> str:
    return _exact(call("calculator", str(given)))


def _balance(given: Json, call: Call) -> str:
    return call("stoichiometry", str(given)).text


def _molar_mass(given: Json, call: Call) -> str:
    return str(_parts(call("molar_mass", str(given)).value)["molar_mass"])


def _mass_percent(given: Json, call: Call) -> str:
    """The share of an element, or of a group such as the water of a hydrate, of which there are as many as there are atoms for."""
    asked = _parts(given)
    whole, wanted = _parts(call("molar_mass", str(asked["formula"])).value), str(asked["element"])
    share = _parts(whole["percent"]).get(wanted)
    if share is not None or wanted in elements():
        return str(share or "")
    group = _parts(call("molar_mass", wanted).value)
    there, needed = _parts(whole["atoms"]), _parts(group["atoms"])
    count = min(Fraction(str(there.get(atom, 0))) // Fraction(str(number)) for atom, number in needed.items())
    return _expression(f"{count} * M[{wanted}] / M[{asked['formula']}] * 100", call) if count else ""


def _moles_to_mass(given: Json, call: Call) -> str:
    asked = _parts(given)
    return _expression(f"{asked['moles']} * M[{asked['formula']}]", call)


def _mass_to_moles(given: Json, call: Call) -> str:
    asked = _parts(given)
    return _expression(f"{asked.get('mass', asked.get('grams'))} / M[{asked['formula']}]", call)


def _stoich(given: Json, call: Call) -> str:
    asked = _parts(given)
    balanced = call("stoichiometry", str(asked["equation"])).text if "equation" in asked else ""
    if balanced and _proportions(balanced) != _proportions(str(asked["equation"])):
        raise ToolError(f"the equation is not balanced as it is given: {balanced}", code="unbalanced")
    return _expression(str(asked["expression"]), call)


def _expression(text: str, call: Call) -> str:
    """Work out an expression in which `M[formula]` stands for a molar mass."""
    while (start := text.find("M[")) >= 0:
        end = _closing(text, start + 1)
        text = f"{text[:start]}({_molar_mass(text[start + 2 : end], call)}){text[end + 1 :]}"
    return _exact(call("calculator", text))


def _closing(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "[") - (text[place] == "]")
        if depth == 0:
            return place
    raise ToolError(f"{text[:60]!r} has an open bracket", code="syntax")


def _exact(result: ToolResult) -> str:
    return str(result.value)


def _parts(given: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", given if isinstance(given, dict) else {})


KINDS: Mapping[str, Callable[[Json, Call], str]] = MappingProxyType(
    {
        "arithmetic": _arithmetic,
        "balance": _balance,
        "balance_error": _balance,
        "molar_mass": _molar_mass,
        "mass_percent": _mass_percent,
        "moles_to_mass": _moles_to_mass,
        "mass_to_moles": _mass_to_moles,
        "stoich": _stoich,
    }
)
