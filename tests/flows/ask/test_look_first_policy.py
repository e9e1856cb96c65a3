"""The default policy: evidence, then expected cost; total, bounded and monotonic in eagerness."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taiwa.flows.ask.decide_search_or_clarify import answerable, look_first
from taiwa.flows.ask.types import (
    QUESTIONS,
    SCORES,
    Advise,
    Ask,
    AskTolerance,
    Assessment,
    ClarificationState,
    Feedback,
    FirstSearch,
    HandOver,
    Option,
    Search,
    Situation,
    Thresholds,
    UserProfile,
    learn_from_feedback,
)
from taiwa.kernel.messages import Evidence
from taiwa.kernel.serialization import record, restore
from tests.flows.ask.scored import LACK, WORRY, scored

TWO = (Option("Paid leave", 2, "…", ("a", "b")), Option("Sick leave", 1, "…", ("c",)))
FOUND = ("a", "b", "c")
GOOD = Evidence(100, 10, 0.95, 0.6, 0.15)
POOR = Evidence(100, 3, 0.2, 0.1, 0.02)
UNCLEAR = scored(4, 1, 5, 1, 5)
CLEAR = scored(1, 1, 5, 1, 5)
ASKED = ("Tell me about leave.",)


def at(assessment: Assessment | None = UNCLEAR, **more: object) -> Situation:
    whole: dict[str, object] = {"evidence": GOOD, "passage_keys": FOUND, "options": TWO} | more
    of_search = {name: whole.pop(name) for name in FirstSearch.__dataclass_fields__ if name in whole}
    return Situation(ASKED, assessment, found=FirstSearch(**of_search), **whole)  # type: ignore[arg-type]


def test_a_clear_question_is_answered_with_other_meanings_as_options() -> None:
    decision = look_first(at(CLEAR))

    assert decision.act == Search(options=TWO)
    assert decision.reasons == ("clear",)


def test_an_unclear_question_is_asked_back_with_options() -> None:
    decision = look_first(at())

    assert decision.act == Ask("Which of these do you mean?", options=TWO)
    assert decision.reasons == ("unclear", "options")


def test_a_question_back_is_in_the_language_of_the_user_or_of_the_profile() -> None:
    japanese = replace(at(), dialogue=("休暇について教えて",))
    chinese = replace(at(), profile=UserProfile(language="zh"))

    assert look_first(japanese).act == Ask("次のどれについてのご質問ですか。", options=TWO)
    assert look_first(chinese).act == Ask("您问的是下面哪一项？", options=TWO)


def test_the_models_own_question_goes_with_the_options() -> None:
    assert look_first(at(replace(UNCLEAR, questions=(("ask_missing_info", LACK),)))).act == Ask(LACK, options=TWO)


def test_without_options_and_texts_no_question_is_asked() -> None:
    assert look_first(at(options=())).act == Search()
    assert look_first(at(options=())).reasons == ("unclear", "nothing_to_ask")
    assert look_first(at(replace(UNCLEAR, questions=(("ask_missing_info", LACK),)), options=())).act == Ask(LACK)


def test_meanings_with_the_same_answer_need_no_question() -> None:
    lacking = replace(UNCLEAR, questions=(("ask_missing_info", LACK),))

    assert look_first(at(lacking, options=(), top_share=0.95)).reasons == ("unclear", "one_answer")
    assert isinstance(look_first(at(lacking, options=(), top_share=0.95, evidence=POOR)).act, Ask)


def test_facts_about_the_user_are_asked_for_only_if_needed() -> None:
    office = "Which office do you work at?"

    assert look_first(at(replace(UNCLEAR, questions=(("ask_user_meta_info", office),)), options=())).act == Ask(office)
    assert isinstance(
        look_first(at(replace(CLEAR, questions=(("ask_user_meta_info", office),)), options=())).act, Search
    )


@pytest.mark.parametrize(
    ("route", "act"),
    [
        ("greeting", Advise("greeting")),
        ("thanks", Advise("thanks")),
        ("farewell", Advise("farewell")),
        ("command", Advise("command")),
        ("person", HandOver()),
    ],
)
def test_small_talk_is_decided_first(route: str, act: object) -> None:
    assert look_first(at(route=route)).act == act


def test_after_declined_questions_the_answer_states_its_assumption() -> None:
    decision = look_first(at(route="just_answer", clarification=ClarificationState(1)))

    assert decision.act == Search(options=TWO, assumption="assuming “Paid leave”")
    assert decision.reasons == ("declined",)


def test_after_two_questions_the_answer_states_its_assumption() -> None:
    decision = look_first(at(clarification=ClarificationState(2, passage_keys=("x",))))

    assert decision.act == Search(options=TWO, assumption="assuming “Paid leave”")
    assert decision.reasons == ("unclear", "rounds")


def test_a_second_question_needs_another_result() -> None:
    same, other = ClarificationState(1, passage_keys=FOUND), ClarificationState(1, passage_keys=("x", "y", "a"))

    assert look_first(at(scored(5, 1, 5), clarification=same)).reasons == ("unclear", "nothing_changed")
    assert look_first(at(scored(5, 1, 5), clarification=other)).act == Ask(
        "Several things still match. Which of these do you mean?", options=TWO
    )


def test_what_was_offered_is_not_offered_again() -> None:
    clarification = ClarificationState(1, ("Which of these do you mean?", "Paid leave"), ("x",))

    assert not isinstance(look_first(at(scored(5, 1, 5), clarification=clarification)).act, Ask)


def test_none_of_these_gets_an_open_question() -> None:
    clarification = ClarificationState(1, ("Which of these do you mean?", "Paid leave", "Sick leave"), FOUND, TWO)

    assert look_first(at(route="none", clarification=clarification)).act == Ask(
        "Could you say more precisely what you want to know?"
    )


def test_weak_evidence_after_a_question_is_a_case_for_a_person() -> None:
    decision = look_first(
        at(scored(5, 1, 5, 1, 5), evidence=POOR, clarification=ClarificationState(2, passage_keys=("x",)))
    )

    assert decision.act == HandOver()
    assert decision.reasons == ("unclear", "weak_evidence", "rounds")


def test_a_case_for_a_human_is_handed_over_unless_the_documents_answer() -> None:
    better = scored(1, 1, 5, 5, 1)

    assert look_first(at(better, evidence=POOR)).act == HandOver()
    assert isinstance(look_first(at(better)).act, Search)


def test_an_undocumented_consultation_is_asked_about_and_then_advised() -> None:
    worried = scored(1, 5, 1, 5, 5, res_consultation=WORRY)
    asked = ClarificationState(1, (WORRY,), ("x",))

    assert look_first(at(worried, evidence=POOR)).act == Ask(WORRY)
    assert look_first(at(worried, evidence=POOR, clarification=asked)).act == Advise("consultation")
    assert isinstance(look_first(at(worried)).act, Search)


def test_both_a_question_and_a_consultation_is_decided_by_the_documents() -> None:
    both = scored(1, 1, 1, 1, 5, res_consultation=WORRY)

    assert isinstance(look_first(at(both)).act, Search)


def test_neither_question_nor_consultation_is_chat_unless_the_documents_answer() -> None:
    neither = scored(1, 5, 5, 5, 5)

    assert look_first(at(neither, evidence=POOR)).act == Advise("chat")
    assert isinstance(look_first(at(neither)).act, Search)
    assert look_first(at(neither, passage_keys=(), options=(), evidence=None)).act == Advise("chat")


def test_after_an_empty_result_other_words_are_asked_for_once() -> None:
    nothing = at(scored(4, 1, 5), passage_keys=(), options=(), evidence=Evidence(100))

    first = look_first(nothing)
    assert isinstance(first.act, Ask)
    assert "Tell me about leave." in first.act.question
    again = look_first(replace(nothing, clarification=ClarificationState(1, (first.act.question,), ())))
    assert again.act == HandOver()


def test_a_clear_question_with_an_empty_result_is_reported() -> None:
    decision = look_first(at(CLEAR, passage_keys=(), options=(), evidence=Evidence(100)))

    assert decision.act == Search()
    assert decision.reasons == ("nothing_found",)


# --- without a model ---------------------------------------------------------------------------------------------------


def test_without_a_model_an_answer_comes_with_options_and_no_question() -> None:
    assert look_first(at(None)).act == Search(options=TWO)


def test_without_a_model_unresolved_references_are_asked_about() -> None:
    two = replace(GOOD, unresolved_references=("that form", "those days"))
    one = replace(GOOD, unresolved_references=("it",))
    later = ("Leave?", "Is it paid?")

    assert look_first(at(None, evidence=two, options=())).act == Ask("What does “that form, those days” refer to?")
    assert look_first(at(None, evidence=one, options=())).reasons == ("unresolved_references", "words")
    assert isinstance(look_first(replace(at(None, evidence=one), dialogue=later)).act, Search)


def test_without_a_model_nothing_found_is_asked_about() -> None:
    decision = look_first(at(None, passage_keys=(), options=(), evidence=Evidence(5)))

    assert isinstance(decision.act, Ask)
    assert decision.reasons == ("nothing_found",)


# --- laws --------------------------------------------------------------------------------------------------------------

UNIT = st.floats(0, 1)
WORDS = st.sampled_from(["", LACK, WORRY])
LEVELS = st.floats(1, 5)
ASSESSMENTS = st.none() | st.builds(
    lambda scores, words: scored(*scores, **dict(zip(QUESTIONS, words, strict=True))),
    st.tuples(*[LEVELS] * len(SCORES)), st.tuples(*[WORDS] * len(QUESTIONS)),
)  # fmt: skip
EVIDENCE = st.none() | st.builds(
    Evidence,
    st.integers(0, 9),
    st.integers(0, 9),
    UNIT,
    UNIT,
    UNIT,
    st.just(()),
    st.sampled_from([(), ("it",), ("it", "they")]),
)
PEOPLE = st.builds(
    UserProfile,
    language=st.sampled_from(["", "ja", "zh", "fr"]),
    thresholds=st.builds(
        Thresholds, eagerness=UNIT, max_questions=st.integers(0, 4), weak_evidence=UNIT, strong_evidence=UNIT
    ),
    tolerance=st.builds(AskTolerance, st.floats(2, 30), st.floats(2, 30)),
)
NAMES = st.lists(st.sampled_from("abcdxyz"), max_size=5, unique=True).map(tuple)
THREADS = st.builds(
    ClarificationState, st.integers(0, 5), st.lists(WORDS).map(tuple), NAMES, st.just(()), st.booleans()
)
SITUATIONS = st.builds(
    Situation,
    st.lists(st.text(min_size=1, max_size=20), max_size=3).map(tuple),
    ASSESSMENTS,
    PEOPLE,
    THREADS,
    st.builds(FirstSearch, NAMES, st.sampled_from([(), TWO]), UNIT, EVIDENCE),
    st.sampled_from(["", "greeting", "thanks", "farewell", "command", "person", "just_answer", "none"]),
    st.none() | st.integers(0, 3),
)


@given(SITUATIONS)
def test_every_situation_has_one_decision_with_reasons(situation: Situation) -> None:
    decision = look_first(situation)

    assert decision.reasons
    assert look_first(situation) == decision
    assert all(math.isfinite(number) for _, number in decision.numbers)
    if isinstance(decision.act, Ask):
        assert decision.act.question
        assert decision.act.question not in situation.clarification.asked or decision.act.options


@given(SITUATIONS)
def test_no_question_exceeds_the_bound_or_follows_a_refusal(situation: Situation) -> None:
    bound = (
        situation.profile.effective_thresholds.max_questions
        if situation.max_questions is None
        else situation.max_questions
    )
    assume(
        situation.clarification.rounds >= bound or situation.clarification.declined or situation.route == "just_answer"
    )

    assert not isinstance(look_first(situation).act, Ask)


@given(SITUATIONS, st.integers(0, 4))
def test_questions_in_a_row_come_to_an_end(situation: Situation, rounds: int) -> None:
    profile = replace(situation.profile, thresholds=replace(situation.profile.thresholds, max_questions=rounds))
    situation = replace(situation, profile=profile, clarification=ClarificationState(), max_questions=None)
    asked = 0

    while isinstance(act := look_first(situation).act, Ask):
        asked += 1
        situation = replace(situation, clarification=situation.clarification.after(act, (str(asked),)))

    assert asked <= rounds


@given(SITUATIONS, UNIT, UNIT)
def test_more_eagerness_never_asks_less(situation: Situation, one: float, other: float) -> None:
    def asks(knob: float) -> bool:
        thresholds = replace(situation.profile.thresholds, eagerness=knob)
        return isinstance(
            look_first(replace(situation, profile=replace(situation.profile, thresholds=thresholds))).act, Ask
        )

    assert asks(max(one, other)) or not asks(min(one, other))


@given(SITUATIONS)
def test_a_decision_survives_a_round_trip(situation: Situation) -> None:
    decision = look_first(situation)

    assert restore(record(decision)) == decision


@given(EVIDENCE, st.integers(0, 20), UNIT)
def test_more_evidence_never_makes_an_answer_less_likely(evidence: Evidence | None, found: int, more: float) -> None:
    chance = answerable(evidence, found)

    assert 0 <= chance <= 1
    assert (chance == 0) == (found == 0)
    if evidence is not None:
        assert answerable(replace(evidence, coverage=max(evidence.coverage, more)), found) >= chance


def test_negative_feedback_reduces_questions() -> None:
    unsure = scored(3, 1, 5)
    annoyed = learn_from_feedback(UserProfile("ann"), [Feedback("should_not_have_asked", True)] * 4)
    eager = learn_from_feedback(UserProfile("bob"), [Feedback("should_have_asked")] * 4)

    assert isinstance(look_first(at(unsure)).act, Ask)
    assert isinstance(look_first(at(unsure, profile=annoyed)).act, Search)
    assert isinstance(look_first(at(scored(2, 1, 5), profile=eager)).act, Ask)
