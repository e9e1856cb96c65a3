"""A dialogue as one weighted question, and the words in it that point at nothing."""

from pathlib import Path

import pytest

from taiwa.kernel.messages import assistant, user
from taiwa.retrieval.analyzer import Analyzer
from taiwa.retrieval.index import MOST_TERMS, unresolved_references, weight_terms

PLAIN = Analyzer()


def test_older_turns_count_less() -> None:
    weights = weight_terms(PLAIN, "sunday sunday", [user("apples"), user("pears"), user("plums")])

    assert weights == pytest.approx({"sunday": 2.0, "plum": 0.5, "pear": 0.35, "appl": 0.245})


def test_what_is_asked_now_is_not_outweighed_by_what_was_always_spoken_of() -> None:
    weights = weight_terms(PLAIN, "the fee", [user("gym fees"), user("gym"), user("gym gym")])

    assert weights["fee"] > weights["gym"] == 0.5


def test_only_the_last_answer_counts_and_little() -> None:
    weights = weight_terms(PLAIN, "more", [user("a gym"), assistant("pool"), user("x"), assistant("sauna and gym")])

    assert weights["sauna"] == 0.05
    assert "pool" not in weights
    assert weights["gym"] == pytest.approx(0.35)


def test_a_long_history_is_bounded_and_the_question_stays_whole() -> None:
    weights = weight_terms(PLAIN, "fresh words", [assistant(" ".join(f"w{n}" for n in range(5_000)))])

    assert len(weights) == MOST_TERMS
    assert weights["fresh"] == 1.0


@pytest.mark.parametrize(
    ("query", "history", "pointing"),
    [
        ("How long does it last?", (), ("it",)),
        ("Where is that form?", (), ("that form",)),
        ("Where is that form?", ("I need a form",), ()),
        ("Where is that form?", ("I need leave",), ("that form",)),
        ("I lost my badge, how do I replace it?", (), ()),
        ("Is it possible to work from home?", (), ()),
        ("What documents are needed for a visa?", (), ()),
        ("それはいつまでですか", (), ("それ",)),
        ("その申請の期限は？", (), ("その",)),
        ("有給の申請と、その期限は？", (), ()),
        ("それでは始めます", (), ()),
        ("これはいつまで", ("有給の話です",), ()),
        ("这个怎么申请？", (), ("这个",)),
        ("它要多少钱", ("健身房",), ()),
        ("其他城市的办公室", (), ()),
    ],
)
def test_words_that_point_at_nothing_are_seen(query: str, history: tuple[str, ...], pointing: tuple[str, ...]) -> None:
    assert unresolved_references(PLAIN, query, [user(text) for text in history]) == pointing


def test_weighted_history_finds_more_than_the_last_turn_alone(shared_data: Path, tmp_path: Path) -> None:
    from tests.retrieval.measured import conversations

    alone, together = conversations(shared_data / "rag", tmp_path)

    assert together > alone + 0.04
