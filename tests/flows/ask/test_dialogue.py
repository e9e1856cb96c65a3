"""Texts that are recognised without a model, and similar ones that are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.dialogue import announced_topic, detect_route, select_option
from taiwa.flows.ask.types import Option

OFFERED = (Option("Paid leave"), Option("Sick leave"), Option("看護休暇"))


@pytest.mark.parametrize(
    ("words", "route"),
    [
        ("Hello!", "greeting"), ("good morning", "greeting"), ("How are you today?", "greeting"), ("こんにちは。", "greeting"),
        ("おはようございます!", "greeting"), ("お疲れ様です", "greeting"), ("你好", "greeting"), ("下午好！", "greeting"),
        ("Thanks a lot!", "thanks"), ("ok, thank you", "thanks"), ("ありがとうございました。", "thanks"), ("谢谢你", "thanks"), ("明白了", "thanks"),
        ("bye", "farewell"), ("さようなら", "farewell"), ("再见", "farewell"),
        ("/undo", "command"), ("cancel", "command"), ("やめて", "command"), ("取消", "command"), ("never mind", "command"),
        ("I want to talk to a human", "person"), ("Can I speak to someone?", "person"), ("担当者につないでください", "person"),
        ("人と話したい", "person"), ("转人工", "person"), ("ＨＥＬＬＯ", "greeting"),
    ],
)  # fmt: skip
def test_whole_utterances_are_recognised_in_three_languages(words: str, route: str) -> None:
    assert detect_route(words) == route
    assert detect_route(words, asked=True) == route


@pytest.mark.parametrize(
    ("words", "route", "alone"),
    [
        ("just answer", "just_answer", "just_answer"), ("Stop asking me.", "just_answer", "just_answer"), ("all of them", "just_answer", ""),
        ("I don't know", "just_answer", ""), ("どれでもいいです", "just_answer", ""), ("いいから答えて", "just_answer", "just_answer"),
        ("そのまま答えて", "just_answer", ""), ("とりあえず、教えてください", "just_answer", ""), ("answer anyway", "just_answer", ""),
        ("别问了", "just_answer", "just_answer"), ("都可以", "just_answer", ""), ("不知道", "just_answer", ""),
        ("none of these", "none", ""), ("どれでもない", "none", ""), ("都不是", "none", ""), ("something else", "none", ""),
    ],
)  # fmt: skip
def test_some_words_mean_this_only_as_a_reply_to_a_question(words: str, route: str, alone: str) -> None:
    assert detect_route(words, asked=True) == route
    assert detect_route(words) == alone


@pytest.mark.parametrize(
    "words",
    [
        "Hello, how do I take leave?", "Thanks to whom do I owe the form?", "How do I cancel a booking?", "help desk hours",
        "Which person approves leave?", "担当者は誰ですか", "ありがとうの言葉を英語でどう言いますか", "キャンセル料はいくらですか", "休暇について教えて",
        "请问怎么取消预订？", "谢谢信怎么写", "stop loss orders", "all of the rules for travel", "good morning routine for shift workers", "",
        "人事に相談したいのですが休暇の件です", "bye-laws", "thanks " * 30,
    ],
)  # fmt: skip
def test_a_question_that_begins_so_is_a_question(words: str) -> None:
    assert detect_route(words) == ""


@given(st.text(max_size=80), st.booleans())
def test_every_text_has_a_route(words: str, asked: bool) -> None:
    assert isinstance(detect_route(words, asked=asked), str)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("1", "Paid leave"), ("2.", "Sick leave"), ("(3)", "看護休暇"), ("2番目です", "Sick leave"), ("２", "Sick leave"),
        ("sick leave", "Sick leave"), ("Sick leave, please", "Sick leave"), ("看護休暇です", "看護休暇"),
    ],
)  # fmt: skip
def test_an_option_is_chosen_by_its_number_or_its_label(reply: str, label: str) -> None:
    found = select_option(reply, OFFERED)

    assert found is not None
    assert found.label == label


@pytest.mark.parametrize("reply", ["0", "4", "99", "", "leave", "Paid leave or sick leave?", "two days", "in 2025"])
def test_a_reply_that_names_several_options_selects_none(reply: str) -> None:
    assert select_option(reply, OFFERED) is None


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I have a question about leave.", "leave"), ("Hi, I'd like to ask about the pension", "the pension"),
        ("Can I ask you something about travel?", ""), ("Question about parking", "parking"),
        ("休暇について質問があります。", "休暇"), ("出張のことで聞きたいことがあります", "出張"), ("経費の件で、少し相談があります", "経費"),
        ("我有个关于年假的问题", "年假"), ("想问一下关于报销的事", "报销"),
        ("How many days of leave are there?", ""), ("休暇について教えてください", ""), ("I have a question", ""), ("年假有几天", ""),
    ],
)  # fmt: skip
def test_an_announced_question_has_a_topic_and_a_question_has_none(text: str, topic: str) -> None:
    assert announced_topic(text) == topic
    assert (detect_route(text) == "topic") == bool(topic)
    assert detect_route(text, asked=True) != "topic"
