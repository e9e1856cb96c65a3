"""The draws: the same for the same seed, in the form of the runtime, and true: every result is what the tool gives."""

import re
from fractions import Fraction
from random import Random
from typing import Literal

import pytest

from taiwa.flows.solve.tool_call_formats import TaggedFormat, sanitize_result
from taiwa.models.builtin.line_check import count_atoms
from taiwa.models.builtin.tokenizer import normalize_text
from taiwa.tools.calculator import calculator
from taiwa.tools.chemical_formulas import molar_mass
from taiwa.tools.compound_names import named
from taiwa.tools.stoichiometry import stoichiometry
from training.builtin.chemistry import SHARES
from training.builtin.chemistry.astray import bare
from training.builtin.chemistry.naming import misspelt
from training.builtin.chemistry.unknown import invented
from training.builtin.samples import Sample, choose

CALL = re.compile(r"<<(\w+): (.+?)>> (.+)\n")
LAST = re.compile(r"Therefore, the answer is (\S+)( (?:mol|g|g/mol|%|mL|mol/L))?\.")


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return [choose(Random(seed), SHARES) for seed in range(500)]


def test_a_seed_gives_its_sample_again(samples: list[Sample]) -> None:
    assert [choose(Random(seed), SHARES) for seed in range(500)] == samples


def test_prompts_are_in_the_form_of_the_runtime_and_short(samples: list[Sample]) -> None:
    assert [each.prompt for each in samples if normalize_text(each.prompt) != each.prompt] == []
    assert all(0 < len(each.prompt) <= 400 and len(each.text) <= 600 for each in samples)
    assert [each.prompt for each in samples if re.search(r"[{}<]|\|", each.prompt)] == []


def _said(tool: str, written: str, weights: Literal["iupac", "integer"]) -> str:
    if tool == "molar_mass":
        return sanitize_result(molar_mass(written, weights).text)
    return sanitize_result((calculator if tool == "calculator" else stoichiometry)(written).text)


def test_every_result_is_what_the_tool_says(samples: list[Sample]) -> None:
    for each in samples:
        calls = CALL.findall(each.text)
        assert any(
            all(_said(tool, written, kind) == result for tool, written, result in calls)
            for kind in ("iupac", "integer")
        )


def test_every_call_is_found_where_it_stands(samples: list[Sample]) -> None:
    for each in samples:
        scanner, rest, found = TaggedFormat().scanner(("calculator", "molar_mass", "stoichiometry")), each.text, 0
        while (trigger := scanner.feed(rest)) is not None:
            rest, found = rest[trigger.end :], found + 1
        assert found == len(CALL.findall(each.text))


def test_the_last_line_has_the_last_result(samples: list[Sample]) -> None:
    for each in samples:
        if each.kind in ("unknown", "balance"):
            continue
        last = LAST.fullmatch(each.text.rpartition("\n")[2])
        assert last is not None, each.text
        result = CALL.findall(each.text)[-1][2].removesuffix(" g/mol")
        assert last[1] == result or each.kind == "coefficient"
        assert Fraction(last[1]) or each.kind == "arithmetic"


def test_a_coefficient_is_that_of_what_was_asked() -> None:
    for seed in range(100):
        each = SHARES["coefficient"].draw(Random(seed))
        asked, solved = next(found[1:] for found in CALL.findall(each.text) if found[0] == "stoichiometry")
        if solved.startswith("impossible"):
            assert each.text.count("<<stoichiometry") == 2
            continue
        at = next(at for at, term in enumerate(re.split(r" \+ | -> ", asked)) if term.startswith("?"))
        count = re.split(r" \+ | -> ", solved)[at].removesuffix(re.split(r" \+ | -> ", asked)[at][1:]).strip() or "1"
        last = LAST.fullmatch(each.text.rpartition("\n")[2])
        assert last is not None
        assert abs(Fraction(last[1]) - Fraction(count)) < Fraction(1, 10**5)


def test_a_way_around_a_wrong_equation_ends_where_the_right_one_would() -> None:
    for seed in (*range(60), 8271):  # of 8271, the stray substance is one that the equation has with a coefficient
        each = SHARES["astray"].draw(Random(seed))
        wrong = next(at for at, span in enumerate(each.answer) if span.weight == 0)
        assert "<<stoichiometry" in each.answer[wrong].text
        assert " impossible: " in each.text
        assert all(span.weight > 0 for span in each.answer[wrong + 1 :])


@pytest.mark.parametrize(
    ("formula", "symbol", "count"),
    [
        ("CH3COOH", "H", "(3+1)"),
        ("Al2(SO4)3·18H2O", "O", "(4*3+18*1)"),
        ("Fe4[Fe(CN)6]3", "Fe", "(4+1*3)"),
        ("H2O", "C", "0"),
    ],
)
def test_atoms_are_counted_as_they_stand(formula: str, symbol: str, count: str) -> None:
    assert count_atoms(formula, symbol) == count


def test_coefficients_go_and_the_water_of_a_hydrate_stays() -> None:
    assert bare("2CuSO4·5H2O + 10 HCl -> CaSO4·0.5H2O") == "CuSO4·5H2O + HCl -> CaSO4·0.5H2O"


def test_invented_names_and_slips_never_name_a_substance() -> None:
    random = Random(5)

    assert [name for name in (invented(random) for _ in range(300)) if name.lower() in named()] == []
    slips = {name: misspelt(random, name) for name in list(named())[:400]}
    assert [slip for name, slip in slips.items() if slip != name and slip in named()] == []
