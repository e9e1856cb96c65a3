"""The table of the sentences that begin solutions: it has those of what is drawn, and is written from it."""

from itertools import islice
from pathlib import Path

import pytest

from taiwa.models.builtin.line_check import is_doubtful, lines_of
from taiwa.models.builtin.name_check import NAMED
from taiwa.models.builtin.word_problem_check import form_of, is_known
from training.builtin import solutions
from training.builtin.corpus import samples

DRAWN = [
    sample
    for domain, count in (("quantities", 300), ("everyday", 300))
    for _, sample in islice(samples(41, domain), count)
    if sample.task == "solve"
]


def test_the_table_has_the_first_sentence_of_every_solution() -> None:
    firsts = {sample.text.partition("\n")[0] for sample in DRAWN}

    assert not {each for each in firsts if not each.startswith("<<") and not NAMED.match(each) and not is_known(each)}


def test_hardly_a_solution_is_doubted() -> None:
    doubted = [
        sample.prompt
        for sample in DRAWN
        if any(is_doubtful(sample.prompt, sample.text[:at], line) for at, line in lines_of(sample.text))
    ]

    assert len(doubted) <= len(DRAWN) / 50, doubted


def test_a_row_has_the_forms_behind_a_sentence_and_the_numbers_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solutions, "DRAWN", {"quantities": 400})

    solutions.write(tmp_path / "solutions.tsv")

    rows = {
        row[0]: row[1:]
        for row in (line.split("\t") for line in (tmp_path / "solutions.tsv").read_text("utf-8").splitlines())
    }
    assert rows["Divide."][0] == form_of("12/3")
    assert rows["Work through what happens."][0] == "*" or "n+n-n" in rows["Work through what happens."][0]
    assert "100" in rows["The part over the whole, in percent."][1].split()
