import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.flows.ask.dialogue import MAX_QUERIES, Queries, rewrite_queries, split_questions, user_texts
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Response, assistant, system, user
from taiwa.models.scripted import scripted_model
from tests.flows.driving import Drive

LEAVE = (user("休暇について教えて"), assistant("どの休暇ですか。"), user("子の看護でも取れますか"))


def rewrite(dialogue: Sequence[Message]) -> Program[str]:
    return (yield from rewrite_queries(dialogue, multiple=False)).text


def test_a_single_utterance_is_passed_on_unchanged_without_a_call(drive: Drive) -> None:
    done = drive(lambda: rewrite((system("Be kind."), user("  How do I add a member? "))))

    assert done.value == "  How do I add a member? "
    assert done.journal.entries == ()


def test_several_turns_become_one_question(drive: Drive) -> None:
    done = drive(lambda: rewrite(LEAVE), scripted_model(" 子の看護のために\n休暇を取れますか "))

    assert done.value == "子の看護のために 休暇を取れますか"
    assert done.shown == ""


def test_the_model_sees_the_users_turns_only(drive: Drive) -> None:
    model = scripted_model("a question")

    drive(lambda: rewrite(LEAVE), model)

    assert json.loads(model.requests[0].messages[-1].text) == [LEAVE[0].text, LEAVE[2].text]
    assert "どの休暇" not in repr(model.requests)


def test_text_of_a_user_cannot_imitate_another_turn(drive: Drive) -> None:
    model = scripted_model("a question")
    said = ('"], ["', "second")

    drive(lambda: rewrite(tuple(user(each) for each in said)), model)

    assert json.loads(model.requests[0].messages[-1].text) == list(said)


@pytest.mark.parametrize(
    "answer", [" \n", Response(assistant("is it"), "length"), Response(assistant("No."), "refusal")]
)
def test_an_unusable_rewrite_leaves_the_last_text(drive: Drive, answer: str | Response) -> None:
    done = drive(lambda: rewrite(LEAVE), scripted_model(answer))

    assert done.value == LEAVE[2].text
    assert [note.level for note in done.notes] == ["warning"]


def test_a_dialogue_without_the_user_cannot_be_looked_up(drive: Drive) -> None:
    with pytest.raises(InputError, match="no text of the user"):
        drive(lambda: rewrite((assistant("Hello?"), user(" "))))


def test_empty_turns_do_not_count() -> None:
    assert user_texts((user("a"), user("\n"), user("b"))) == ("a", "b")


@pytest.mark.parametrize(
    ("dialogue", "word"),
    [(LEAVE, "材料"), ((user("a?"), user("b?")), "material"), ((user("休假"), user("几天")), "材料")],
)
def test_the_prompt_is_in_the_language_of_the_user(drive: Drive, dialogue: tuple[Message, ...], word: str) -> None:
    model = scripted_model("子の看護休暇" if dialogue is LEAVE else "休假几天" if dialogue[0].text == "休假" else "a b")

    drive(lambda: rewrite(dialogue), model)

    assert word in model.requests[0].messages[0].text


def test_a_compound_question_becomes_several_queries(drive: Drive) -> None:
    model = scripted_model(
        "1. How many days of leave are there?\n- Who approves leave?\n\n* Who approves leave?\nWhere?\nFour?"
    )

    done = drive(lambda: rewrite_queries((user("leave?"), user("how many days and who approves"))), model)

    assert done.value.rewritten == ("How many days of leave are there?", "Who approves leave?", "Where?")
    assert done.value.all[-1] == "how many days and who approves"


def test_missing_terms_are_added_to_the_query(drive: Drive) -> None:
    dialogue = (user("Which meeting system?"), assistant("For how many?"), user("20 guests from Acme on Teams"))

    done = drive(lambda: rewrite_queries(dialogue), scripted_model("Which meeting system may guests use?"))

    assert done.value.rewritten == ("Which meeting system may guests use? 20 Acme Teams",)
    assert done.value.missing_terms == ("20", "Acme", "Teams")
    assert "added to the query" in done.notes[0].text


def test_a_rewriting_in_another_language_is_discarded(drive: Drive) -> None:
    done = drive(lambda: rewrite_queries(LEAVE), scripted_model("May I take leave to nurse a child?"))

    assert done.value == Queries(LEAVE[2].text, discarded="May I take leave to nurse a child?")
    assert done.value.all == (LEAVE[2].text,)


def test_a_rewriting_that_loses_a_negation_is_discarded(drive: Drive) -> None:
    dialogue = (user("Which expenses need approval?"), user("and which do not?"))

    done = drive(lambda: rewrite_queries(dialogue), scripted_model("Which expenses need approval?"))

    assert done.value == Queries("and which do not?", discarded="Which expenses need approval?")


def test_the_raw_words_are_always_looked_up_too(drive: Drive) -> None:
    done = drive(lambda: rewrite_queries(LEAVE), scripted_model("子の看護のために休暇を取れますか"))

    assert done.value.all == ("子の看護のために休暇を取れますか", LEAVE[2].text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("休暇は何日ありますか。誰が承認しますか。", 2),
        ("休假有几天？谁来批准？", 2),
        ("How many days? Who approves them? Where is the form?", 3),
        ("Zoom or Teams?", 1),
        ("I am new here. How do I take leave?", 1),
        ("休暇について", 1),
    ],
)
def test_several_questions_at_once_are_divided_without_a_model(text: str, count: int) -> None:
    assert len(split_questions(text)) == count


@given(st.text(max_size=60))
def test_dividing_loses_nothing(text: str) -> None:
    found = split_questions(text)

    assert 1 <= len(found) <= MAX_QUERIES
    assert "".join("".join(found).split()) == "".join(text.split())
