"""The handbook and its questions: sound, answered where they say, and found by the index that everybody uses."""

import re
from collections import Counter
from pathlib import Path

import pytest

from evals.handbook import HandbookAnswer, ask_handbook, count_answers, read_questions
from taiwa.apps.catalog import HANDBOOK
from taiwa.retrieval import Index, Library

ROWS = read_questions()
LINK = re.compile(r"\]\(([^)#]+)\)")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    library = Library.open(tmp_path_factory.mktemp("handbook") / "library.db")
    made = library.create(HANDBOOK, "handbook")
    done = made.refresh()
    assert (done.problems, done.others) == ((), {})
    return made


@pytest.fixture(scope="module")
def asked(index: Index) -> tuple[HandbookAnswer, ...]:
    return ask_handbook(index, ROWS, index.analyzer)


def test_it_is_about_forty_pages_in_two_languages_and_stays_small() -> None:
    files = [*HANDBOOK.rglob("*.md")]
    texts = {path: path.read_text(encoding="utf-8") for path in files}

    assert {path.relative_to(HANDBOOK).parts[0] for path in files} == {"en", "ja"}
    assert 36 <= len(files) <= 44
    assert sum(path.stat().st_size for path in files) < 400_000
    assert all(len(text) > 700 and text.count("\n## ") >= 3 for text in texts.values())


def test_its_cross_references_lead_somewhere() -> None:
    dead = [
        (path.name, link)
        for path in HANDBOOK.rglob("*.md")
        for link in LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / link).is_file()
    ]

    assert not dead


def test_there_are_sixty_questions_of_every_kind_in_three_languages() -> None:
    assert len(ROWS) == len({row.id for row in ROWS}) == 60
    assert set(Counter(row.language for row in ROWS)) == {"en", "ja", "zh"}
    assert set(Counter(row.kind for row in ROWS)) == {
        "clear",
        "follow_up",
        "broad",
        "dangling",
        "absent",
        "restricted",
    }
    assert all(row.ask == (row.kind in ("broad", "dangling")) for row in ROWS)
    assert all(bool(row.gold) == (row.kind not in ("dangling", "absent")) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_each_place_exists_and_holds_the_answer(row: object, index: Index) -> None:
    (question,) = (each for each in ROWS if each is row)
    documents = {each.path for each in index.documents(None)}
    for gold in question.gold:
        assert gold.source in documents
        passages = index.find(f"{gold.heading} {gold.words}", 50, {*question.who, "group:managers", "group:kanri"})
        assert any(gold.within(passage) for passage in passages)


def test_most_answers_are_found_and_most_of_these_among_the_first_three(asked: tuple[HandbookAnswer, ...]) -> None:
    whole = next(each for each in count_answers(asked) if each.name == "all")

    assert whole.ten >= whole.questions * 0.95
    assert whole.three >= whole.questions * 0.9
    assert whole.quoted >= whole.questions * 0.7


def test_words_that_point_at_nothing_are_asked_about_and_clear_questions_are_not(
    asked: tuple[HandbookAnswer, ...],
) -> None:
    by_kind = {each.name: each for each in count_answers(asked)}

    assert by_kind["dangling"].asked >= by_kind["dangling"].should_ask * 0.8
    assert by_kind["broad"].offered >= by_kind["broad"].should_ask * 0.8
    assert by_kind["clear"].offered <= by_kind["clear"].questions * 0.1
    assert by_kind["clear"].asked == by_kind["follow_up"].asked == 0


def test_what_is_for_some_is_found_by_them_alone(index: Index) -> None:
    restricted = [row for row in ROWS if row.who]

    assert restricted
    for row in restricted:
        for who in ((), ("group:other",)):
            found = index.find(row.turns[-1], 50, who)
            assert not any(passage.source == gold.source for passage in found for gold in row.gold)


def test_a_row_that_is_no_question_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "q.jsonl"
    broken.write_text('{"id": 1}\n')

    with pytest.raises(Exception, match=r"^q.jsonl:1: not a question"):
        read_questions(broken)
