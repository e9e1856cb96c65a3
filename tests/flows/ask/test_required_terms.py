"""Terms that a rewrite must keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.dialogue import is_other_script, loses_negation, missing_terms, required_terms
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


@pytest.mark.parametrize(
    ("said", "rewrite", "missing"),
    [
        (("田中さんの部署は？", "電話番号は？"), "部署の電話番号は？", ("田中",)),
        (("田中さんの部署は？", "電話番号は？"), "田中さんの電話番号は？", ()),
        (("有給休暇の日数は？", "申請先は？"), "申請先はどこですか？", ("有給休暇",)),
        (("请问王伟的部门是什么？", "电话呢？"), "部门的电话是什么？", ("王伟",)),
        (("上海分公司的地址？", "电话呢？"), "电话是什么？", ("上海分公司",)),
        (("さくらさんの部署は？", "電話番号は？"), "部署の電話番号は？", ("さくら",)),
        (("Tanaka's department?", "phone number?"), "What is the phone number?", ("Tanaka",)),
        (("What's the limit?", "and who's asked?"), "Who is asked?", ()),
        (("Where does Müller work?", "and the phone?"), "What is the phone number?", ("Müller",)),
        (("Which room has Li?", "and the floor?"), "Which floor?", ("Li",)),
        (("请问王伟的部门是什么？", "电话呢？"), "王伟的电话是什么？", ()),
        (("what is tanaka's department?", "phone number?"), "What is the phone number of the department?", ("tanaka",)),
        (("is there parking at acmeville?", "how much is it?"), "How much is parking?", ("acmeville",)),
        (("what is the limit in rome?", "and in milan?"), "What is the limit in milan?", ()),
        (("東京支店の住所は？", "大阪支店の電話番号は？"), "大阪支店の電話番号は？", ()),
    ],
)
def test_a_follow_up_keeps_what_it_is_about(said: tuple[str, ...], rewrite: str, missing: tuple[str, ...]) -> None:
    assert missing_terms(rewrite, required_terms(tuple(map(user, said)))) == missing


@pytest.mark.parametrize(
    ("text", "query", "is_lost"),
    [
        ("and which do not need approval?", "Which expenses need approval?", True),
        ("and which do not need approval?", "Which expenses need no approval?", False),
        ("予約できない部屋は？", "予約できる部屋はどこですか", True),
        ("予約できませんか", "予約できますか", False),
        ("哪些不能报销？", "哪些费用能报销？", True),
        ("能不能报销？", "可以报销吗？", False),
        ("Can't I book it?", "Can I book the room?", False),
    ],
)
def test_a_lost_negation_is_noticed_and_a_negative_question_is_none(text: str, query: str, is_lost: bool) -> None:
    assert loses_negation(query, text) is is_lost
