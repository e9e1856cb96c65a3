"""The published table, exactly: six cases, three dialogues, and what it leaves undecided."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.decide_search_or_clarify import POLICIES, article, choose_case, decide, policy_named
from taiwa.flows.ask.prompts import shipped_policy
from taiwa.flows.ask.types import Act, Ask, Assessment, ClarificationState, Search, Situation, Thresholds, UserProfile
from taiwa.kernel.errors import InputError
from tests.flows.ask.scored import LACK, WORRY, scored

SCORES = st.integers(1, 5)


def policy_article(assessment: Assessment, thresholds: Thresholds | None = None) -> Act:
    return choose_case(shipped_policy("article"), assessment, thresholds or Thresholds())[0]


def test_case_1_an_unclear_consultation_is_asked_for_its_worry() -> None:
    assert policy_article(scored(2, 1, 2, 5, 5, ask_missing_info=LACK, res_consultation=WORRY)) == Ask(WORRY, 1)


def test_case_2_an_unclear_question_is_asked_for_what_it_lacks() -> None:
    assert policy_article(scored(3, 1, 5, 1, 5, ask_missing_info=LACK, res_consultation=WORRY)) == Ask(LACK, 2)


def test_case_2_holds_for_a_consultation_that_names_no_worry() -> None:
    assert policy_article(scored(2, 2, 1, 5, 5, ask_missing_info=LACK)) == Ask(LACK, 2)


def test_case_3_what_is_unclear_and_gives_nothing_to_ask_is_looked_up() -> None:
    assert policy_article(scored(2, 1, 2, 1, 3)) == Search(3)
    assert policy_article(scored(5, 3, 3, 1, 1, ask_missing_info=LACK, res_consultation=WORRY)) == Search(3)


def test_case_4_a_clear_consultation_that_documents_answer_is_looked_up() -> None:
    assert policy_article(scored(1, 5, 2, 2, 1, res_consultation=WORRY)) == Search(4)


def test_case_5_a_clear_consultation_beyond_the_documents_is_asked_for_its_worry() -> None:
    assert policy_article(scored(1, 1, 1, 3, 1, res_consultation=WORRY)) == Ask(WORRY, 5)


def test_case_6_everything_else_that_is_clear_is_looked_up() -> None:
    assert policy_article(scored(1, 1, 5, 1, 5, ask_missing_info=LACK)) == Search(6)
    assert policy_article(scored(1, 1, 1, 3, 1)) == Search(6)


@pytest.mark.parametrize(
    ("assessment", "decided"),
    [
        # (a) "tell me about leave", then the aspect
        (scored(3, 1, 5, 1, 5, ask_missing_info=LACK), Ask(LACK, 2)),
        (scored(1, 1, 5, 2, 1), Search(6)),
        # (b) which meeting system for projects with outside users, then the purpose
        (scored(2, 1, 1, 3, 2, res_consultation=WORRY), Ask(WORRY, 1)),
        (scored(2, 1, 2, 1, 3), Search(3)),
        # (c) how to add a member to a shared drive
        (scored(1, 1, 5, 1, 5), Search(6)),
    ],
)
def test_the_three_published_dialogues_go_as_published(assessment: Assessment, decided: Ask | Search) -> None:
    assert policy_article(assessment) == decided


def as_published(clarity: int, question: int, consultation: int, documents: int, lack: str, worry: str) -> Ask | Search:
    """The table once more, read row by row from its conditions and not from the code."""
    rows: list[tuple[bool, Ask | Search]] = [
        (clarity >= 2 and worry != "" and consultation <= 2, Ask(worry, 1)),
        (clarity >= 2 and lack != "" and question <= 2, Ask(lack, 2)),
        (clarity >= 2, Search(3)),
        (clarity == 1 and consultation <= 2 and documents <= 2, Search(4)),
        (clarity == 1 and consultation <= 2 and worry != "", Ask(worry, 5)),
        (clarity == 1, Search(6)),
    ]
    return next(act for holds, act in rows if holds)


def test_every_cell_of_the_table_is_as_published() -> None:
    for clarity, question, consultation, documents in product(range(1, 6), repeat=4):
        for lack, worry in product(("", LACK), ("", WORRY)):
            given_to = scored(
                clarity, question, consultation, documents, 1, ask_missing_info=lack, res_consultation=worry
            )
            expected = as_published(clarity, question, consultation, documents, lack, worry)

            assert policy_article(given_to) == expected


def test_missing_scores_count_as_most_true() -> None:
    assert policy_article(Assessment()) == Search(4)


def test_the_score_ask_person_has_no_influence() -> None:
    for scores in product(range(1, 6), repeat=4):
        assert len({policy_article(scored(*scores, person, res_consultation=WORRY)) for person in range(1, 6)}) == 1


def test_thresholds_can_be_moved() -> None:
    strict = Thresholds(unclear=4)

    assert policy_article(scored(3, 1, 5, 1, 5, ask_missing_info=LACK), strict) == Search(6)
    assert policy_article(scored(4, 1, 5, 1, 5, ask_missing_info=LACK), strict) == Ask(LACK, 2)


def situation(assessment: Assessment | None, **more: object) -> Situation:
    return Situation(("Tell me about leave.",), assessment, **more)  # type: ignore[arg-type]


def test_only_a_bound_ends_the_questions_of_the_published_flow() -> None:
    unclear = scored(3, 1, 5, ask_missing_info=LACK)

    assert isinstance(article(situation(unclear, clarification=ClarificationState(rounds=99))).act, Ask)
    held = article(situation(unclear, clarification=ClarificationState(rounds=2), max_questions=2))
    assert held.act == Search(2)
    assert held.reasons == ("case_2", "rounds")


def test_without_feedback_the_thresholds_are_those_published() -> None:
    assert article(situation(scored(2, 1, 5, ask_missing_info=LACK), profile=UserProfile("ann"))).act == Ask(LACK, 2)


@given(SCORES, SCORES, SCORES, SCORES, SCORES, st.sampled_from(["", LACK]), st.sampled_from(["", WORRY]))
def test_every_policy_decides_everything_and_decides_it_again(
    clarity: int, question: int, consultation: int, documents: int, person: int, lack: str, worry: str
) -> None:
    found = scored(clarity, question, consultation, documents, person, ask_missing_info=lack, res_consultation=worry)

    for name in POLICIES:
        decision = decide(name, situation(found))
        assert decision.policy == name
        assert decision.reasons
        assert decide(decision.policy, decision.situation) == decision


def test_an_unknown_policy_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="look_first, article, functions"):
        policy_named("wisdom")
