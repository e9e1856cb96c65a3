import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taiwa.kernel.messages import Passage
from taiwa.kernel.runtime import Retriever
from taiwa.retrieval import InMemoryRetriever, terms

SHELF = InMemoryRetriever(
    (
        Passage("b", "Members may leave the shared drive at any time of the day."),
        Passage("a", "The shared drive has members."),
        Passage("c", "東京タワーは東京都港区にあります。"),
        Passage("d", "京都タワーは京都市にあります。"),
    )
)


def found(query: str, k: int = 10) -> list[str]:
    return [passage.source for passage in SHELF.find(query, k)]


def test_it_is_a_retriever() -> None:
    assert isinstance(SHELF, Retriever)


def test_a_rare_word_counts_for_more() -> None:
    assert found("leave drive") == ["b", "a"]


def test_of_two_passages_that_hold_the_same_the_shorter_comes_first() -> None:
    assert found("members") == ["a", "b"]


def test_japanese_needs_no_spaces() -> None:
    assert found("東京タワーはどこ")[0] == "c"
    assert found("京都市のタワー")[0] == "d"


def test_wide_and_narrow_forms_and_letter_case_are_one() -> None:
    assert found("ＳＨＡＲＥＤ") == found("shared")
    assert found("ﾀﾜｰ") == found("タワー")


def test_what_shares_no_term_is_not_found() -> None:
    assert found("quantum") == []
    assert found("") == []


def test_a_score_is_the_part_of_the_query_that_is_there() -> None:
    scores = [passage.score for passage in SHELF.find("shared quantum", 10)]

    assert SHELF.find("shared drive", 1)[0].score == 1.0
    assert all(0 < score < 0.6 for score in scores)


@given(st.lists(st.text("ab あい東京", max_size=8), max_size=6), st.text("ab あい東京", max_size=8), st.integers(-1, 7))
def test_at_most_k_passages_come_best_first(texts: list[str], query: str, k: int) -> None:
    passages = InMemoryRetriever(Passage(str(number), text) for number, text in enumerate(texts)).find(query, k)

    scores = [passage.score for passage in passages]
    assert len(passages) <= max(k, 0)
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@given(st.text())
def test_no_text_is_without_its_terms_or_breaks_them(text: str) -> None:
    assert all(term and not term.isspace() for term in terms(text))


def test_recorded_japanese_questions_find_their_passage(shared_data: Path) -> None:
    passages = rows(shared_data / "rag" / "jsquad_passages.jsonl")
    questions = rows(shared_data / "rag" / "jsquad_questions.jsonl")[:80]
    shelf = InMemoryRetriever(Passage(row["id"], row["text"]) for row in passages)

    hits = sum(any(each.source in row["rel"] for each in shelf.find(row["q"], 5)) for row in questions)

    assert hits / len(questions) > 0.9


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
