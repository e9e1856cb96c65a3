"""Terms that a rewrite must keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.rewrite import is_other_script, missing_terms, required_terms
from taiwa.kernel.messages import assistant, user

MEETING = (
    user("社外の方と会議をするときのシステムは?"),
    assistant("目的を教えてください。何人ぐらいですか。"),
    user("Zoomかチームズで20人です"),
)


def test_numbers_names_and_quoted_words_are_kept() -> None:
    found = required_terms((user('Does form A-12 of 2025/04/01 cost 1,500 yen in Osaka, as "early leave" does?'),))

    assert set(found) >= {"A-12", "2025/04/01", "1,500", "Osaka", "early leave"}


def test_the_answer_to_a_question_back_is_kept_whole() -> None:
    assert set(required_terms(MEETING)) >= {"20", "チームズ"}
    assert "outside" in required_terms((user("x"), assistant("For whom?"), user("for outside users")))
    assert "outside" not in required_terms((user("for outside users"),))


def test_a_rewriting_that_keeps_them_has_lost_nothing() -> None:
    assert missing_terms("社外の20人とZoomかチームズで会議できますか", required_terms(MEETING)) == ()


def test_missing_terms_are_listed() -> None:
    assert set(missing_terms("社外の方と会議できますか", required_terms(MEETING))) >= {"20", "チームズ"}


@pytest.mark.parametrize(
    ("query", "wanted", "missing"),
    [
        ("leave of 200 days", ("20",), ("20",)),
        ("20日の休暇", ("20",), ()),
        ("２０日の休暇", ("20",), ()),
        ("video calling", ("calls",), ()),
        ("vidéo", ("video",), ("video",)),
        ("育児休暇の取得", ("育児休業",), ()),
        ("介護の相談", ("育児休業",), ("育児休業",)),
    ],
)
def test_words_may_be_inflected_and_numbers_may_not(
    query: str, wanted: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert missing_terms(query, wanted) == missing


@given(st.lists(st.text(max_size=30).filter(str.strip), min_size=1, max_size=4))
def test_a_complete_rewrite_misses_no_term(said: list[str]) -> None:
    dialogue = [turn for text in said for turn in (assistant("Which?"), user(text))]

    assert missing_terms(" ".join(said), required_terms(dialogue)) == ()


@pytest.mark.parametrize(
    ("query", "said", "other"),
    [
        ("看護休暇", ("leave",), True), ("leave", ("看護休暇",), True), ("Zoom", ("Zoom?",), False), ("123", ("leave",), False),
        ("休暇 leave", ("休暇",), False), ("", ("休暇",), True),
    ],
)  # fmt: skip
def test_another_script_is_detected(query: str, said: tuple[str, ...], other: bool) -> None:
    assert is_other_script(query, said) is other
