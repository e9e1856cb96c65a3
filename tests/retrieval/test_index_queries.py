"""A dialogue as one weighted question, and the words in it that point at nothing."""

from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from taiwa.kernel.messages import assistant, user
from taiwa.retrieval.analyzer import MOST_TERMS, SUBJECT, Analyzer

PLAIN = Analyzer()


def test_older_turns_count_less() -> None:
    weights = PLAIN.weigh("sunday sunday", [user("apples"), user("pears"), user("plums")])

    assert weights == pytest.approx({"sunday": 2.0, "plum": 0.5, "pear": 0.35, "appl": 0.245})


def test_what_is_asked_now_is_not_outweighed_by_what_was_always_spoken_of() -> None:
    weights = PLAIN.weigh("the fee", [user("gym fees"), user("gym"), user("gym gym")])

    assert weights["fee"] > weights["gym"] == 0.5


def test_only_the_last_answer_counts_and_little() -> None:
    weights = PLAIN.weigh("more", [user("a gym"), assistant("pool"), user("x"), assistant("sauna and gym")])

    assert weights["sauna"] == 0.05
    assert "pool" not in weights
    assert weights["gym"] == pytest.approx(0.35)


def test_a_long_history_is_bounded_and_the_question_stays_whole() -> None:
    weights = PLAIN.weigh("fresh words", [assistant(" ".join(f"w{n}" for n in range(5_000)))])

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
    assert PLAIN.unresolved_references(query, [user(text) for text in history]) == pointing


def test_weighted_history_finds_more_than_the_last_turn_alone(shared_data: Path, tmp_path: Path) -> None:
    from tests.retrieval.measured import conversations

    alone, together = conversations(shared_data / "rag", tmp_path)

    assert together > alone + 0.04


@pytest.mark.parametrize(
    ("name", "at_least"), [("canard", 0.52), ("cast", 0.82), ("ikat2023", 0.60), ("mtrag_rewrites", 0.52)]
)
def test_weighted_history_is_at_least_as_good_as_all_turns_joined(
    shared_data: Path, name: str, at_least: float
) -> None:
    from evals.dialogue.corpora import read_corpora
    from taiwa.evals.retrieval import Corpora, ranking_scores

    (found,) = read_corpora([shared_data / "rag" / f"{name}.jsonl"])
    samples = [sample for sample in found.samples if sample.relevant]
    joined = weighted = 0.0
    with closing(Corpora.of((found,))) as corpora:
        for sample in samples:
            finder = corpora.finder(found.name, sample.excluded)
            texts = [text for role, text in sample.turns if role == "user"]
            joined += cast("float", ranking_scores(finder.find("\n".join(texts), 10), sample)["ndcg10"])
            weighted += cast(
                "float", ranking_scores(finder.after(sample.history).find(sample.last, 10), sample)["ndcg10"]
            )

    assert weighted >= joined
    assert weighted / len(samples) >= at_least


def test_the_last_turn_without_a_pronoun_names_what_a_pronoun_means() -> None:
    history = [user("museums"), user("ferries to Aran leaving Galway on Sunday mornings early"), user("when is it?")]

    assert PLAIN.weigh("Is it dear?", history)["galway"] == SUBJECT
    assert PLAIN.weigh("Is the boat dear?", history)["galway"] < SUBJECT
    assert PLAIN.weigh("Is it dear?", history[1:])["galway"] == SUBJECT
    assert PLAIN.weigh("Is it dear?", [history[1], user("hotels")])["galway"] < SUBJECT


def test_the_first_turn_counts_more_where_the_question_has_a_pronoun() -> None:
    history = [user("hotels dublin"), user("trains"), user("planes")]

    assert PLAIN.weigh("who books them", history)["dublin"] == SUBJECT
    assert PLAIN.weigh("who books", history)["dublin"] == pytest.approx(0.5 * 0.7**2)
    assert PLAIN.weigh("is it possible", history)["dublin"] == pytest.approx(0.5 * 0.7**2)
