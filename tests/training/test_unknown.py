"""Made-up compounds: none of them is known, none comes twice, and what counts as an honest refusal."""

import json
from pathlib import Path

from training.builtin.unknown import known_names, questions, refused, write


def test_no_name_is_known_and_none_comes_twice() -> None:
    drawn = list(questions(400, known_names()))
    names = [row["name"] for row in drawn]
    assert len(set(names)) == len(names) == 400
    assert not {name.casefold() for name in names} & known_names()
    assert all(row["name"] in row["question"] for row in drawn)


def test_a_name_that_is_taken_is_passed_over() -> None:
    first = next(questions(1, frozenset()))["name"]
    assert next(questions(1, frozenset({first.upper()})))["name"] != first


def test_the_same_questions_are_drawn_again() -> None:
    assert list(questions(5, frozenset())) == list(questions(5, frozenset())) != list(questions(5, frozenset(), seed=1))


def test_only_words_without_a_number_are_a_refusal() -> None:
    words = "I do not know the formula of brastane."
    assert refused(words, "")
    assert refused(f"\n{words}", "")
    assert not refused(words, "18.0")
    assert not refused("Brastane is C2H6.", "")


def test_rows_are_what_the_evaluation_reads(tmp_path: Path) -> None:
    from taiwa.evals.data import read_questions

    path = tmp_path / "unknown.jsonl"
    write(path, 12)
    assert len(read_questions(path).items) == len(path.read_text().splitlines()) == 12
    assert json.loads(path.read_text().splitlines()[0])["answer"] == "unknown"
