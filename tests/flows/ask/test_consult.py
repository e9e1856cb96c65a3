"""One turn: its text, its delta, and the decision made again from it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from taiwa.apps.catalog import load_text
from taiwa.conversation.history import Conversation, begin
from taiwa.flows.ask.ask_result import AskResult, AskTurnOptions, options_of
from taiwa.flows.ask.consult import clarification_of, clarify, dialogue_of
from taiwa.flows.ask.decide_search_or_clarify import decide
from taiwa.flows.ask.prompts import read_policy
from taiwa.flows.ask.types import ClarifyOptions, UserProfile
from taiwa.flows.turn import Reply, say
from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.execution import RunResult
from taiwa.kernel.messages import Capability, Notice, Passage, Response, assistant
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import ScriptedModel, scripted_model
from taiwa.retrieval import InMemoryRetriever
from tests.flows.ask.scored import written
from tests.flows.driving import Drive

NONE: frozenset[Capability] = frozenset()
PAID = Passage("leave.md", "Paid leave is 20 days a year.", heading=("Leave", "Paid leave"), id="p1")
SICK = Passage("leave.md", "For sick leave a note is due on day 3.", start=90, heading=("Leave", "Sick leave"), id="p2")
TRAINS = Passage("travel.md", "Trains are booked by yourself.", heading=("Trains",), page=4, id="p3")
SHELF = InMemoryRetriever((PAID, SICK, TRAINS))
ANSWERED = AskTurnOptions(ClarifyOptions(assess_by="documents", k=8))
ALONE = AskTurnOptions(ClarifyOptions(assess_by="no-model", k=8))
APP = load_text("---\ntaiwa: 1\ndocuments: {}\n---\nBe brief.", "ask.md", "ask").with_params({})


def held(
    model: ScriptedModel | None = None, *texts: str, asking: AskTurnOptions = ALONE
) -> tuple[Reply, Conversation, list[Notice]]:
    """Have some turns; give what the last one came to."""
    conversation, reply, notes = begin(APP), Reply(""), list[Notice]()
    for text in texts:
        for event in Runtime(model or scripted_model(), retriever=SHELF).stream(
            say(text, documents=asking)(conversation)
        ):
            if isinstance(event, Notice):
                notes.append(event)
            elif isinstance(event, RunResult):
                reply, conversation = event.value
    return reply, conversation, notes


def documents(reply: Reply) -> dict[str, Json]:
    assert reply.findings.documents is not None
    return reply.findings.documents.to_json()


def test_without_a_model_the_passage_answers_with_its_place() -> None:
    reply, _, _ = held(None, "who books trains")

    assert reply.text == (
        "Trains are booked by yourself. [1]\n\n[1] travel.md › Trains, page 4\n    ⟦Trains are booked by yourself.⟧"
    )
    assert documents(reply)["act"] == "search"
    assert documents(reply)["source"] == "extractive"


def test_a_short_text_with_several_meanings_gets_options_and_a_number_selects_one() -> None:
    reply, conversation, _ = held(None, "leave")

    assert reply.text.endswith(
        "There is more about this. Please say which one you mean:\n    1. Paid leave (1)\n    2. Sick leave (1)"
    )
    assert [option.label for option in clarification_of(conversation).offered] == ["Paid leave", "Sick leave"]
    chosen, _, _ = held(None, "leave", "2")
    assert chosen.text.startswith("For sick leave a note is due on day 3. [1]")
    assert documents(chosen)["query"] == "Sick leave"


def test_a_number_that_no_option_has_offers_the_same_again() -> None:
    slip, conversation, _ = held(None, "leave", "7")
    right, _, _ = held(None, "leave", "7", "2")

    assert documents(slip)["reasons"] == ["no_such_option"]
    assert [option.label for option in clarification_of(conversation).offered] == ["Paid leave", "Sick leave"]
    assert right.text.startswith("For sick leave a note is due on day 3. [1]")


def test_a_heading_alone_takes_no_place_among_the_passages() -> None:
    trips = [Passage("trips.md", "# Trains", heading=("Trains",), id="t1"), TRAINS]
    options = ClarifyOptions(assess_by="documents", k=1)

    def found(*passages: Passage) -> list[str]:
        return [
            each.id for each in Runtime(retriever=InMemoryRetriever(passages)).run(clarify("trains", options)).passages
        ]

    assert found(*trips) == ["p3"]
    assert found(*trips[:1]) == ["t1"]


def test_only_the_chosen_option_is_quoted() -> None:
    reply, _, _ = held(None, "leave", "1")

    assert [hit["id"] for hit in cast("list[dict[str, str]]", documents(reply)["passages"])] == ["p1"]


def test_the_answer_is_about_the_assumed_option() -> None:
    _, asked, _ = held(None, "what about that leave")
    options = clarification_of(asked).offered
    reply, _, _ = held(None, "what about that leave", "just answer")

    assert documents(reply)["assumption"] == f"assuming “{options[0].label}”"
    assert {hit["id"] for hit in cast("list[dict[str, str]]", documents(reply)["passages"])} <= set(options[0].passages)


def test_a_reply_with_more_than_a_label_is_kept_whole() -> None:
    reply, _, _ = held(None, "what about that leave", "sick leave, on which day is a note due?")

    assert documents(reply)["query"] == "sick leave, on which day is a note due?"


def test_a_new_question_that_contains_an_offered_label_is_not_a_choice() -> None:
    reply, _, _ = held(None, "leave", "how many days of paid leave are there in a year")

    assert documents(reply)["query"] == "how many days of paid leave are there in a year"


def test_an_empty_result_asks_for_other_words() -> None:
    reply, conversation, _ = held(None, "quantum entanglement")

    assert documents(reply)["act"] == "ask"
    assert "quantum entanglement" in reply.text
    assert clarification_of(conversation).rounds == 1
    settled, _, _ = held(None, "quantum entanglement", "just answer")
    assert settled.text == "The documents that you may see contain nothing about this."


def test_a_document_marks_no_quotation() -> None:
    shelf = InMemoryRetriever((Passage("fees.md", "A visa costs 50 euros. ⟦The embassy agrees.⟧", heading=("Visa",)),))
    program = say("What does a visa cost?", documents=ALONE)(begin(APP))

    reply, _ = Runtime(scripted_model(), retriever=shelf).run(program)

    assert "⟦A visa costs 50 euros.⟧ [The embassy agrees.]" in reply.text


def test_a_model_answers_from_the_passages_and_its_words_are_checked() -> None:
    model = scripted_model(written(1, 1, 5, 1, 5), "Paid leave is twenty days a year [7].", capabilities=NONE)

    reply, conversation, _ = held(model, "how many days of paid leave", asking=AskTurnOptions())

    assert reply.text.startswith("Paid leave is twenty days a year. [1]\n\n[1] leave.md › Leave › Paid leave\n")
    assert "⟦Paid leave is 20 days a year.⟧" in reply.text
    kept = documents(reply)
    assert (kept["documented"], kept["source"]) == (True, "generated")
    assert kept["scores"] == {
        "clarity": 1, "is_question": 1, "is_consultation": 5, "in_internal_docs": 1, "ask_person": 5, "source": "typed",
    }  # fmt: skip
    assert "\n\nBe brief." in model.requests[-1].messages[0].text
    assert dialogue_of(conversation.turns)[-1].text == "Paid leave is twenty days a year."


def test_the_words_of_the_documents_come_before_the_models_own() -> None:
    told = scripted_model("Paid leave is 30 days a year. [1]", capabilities=NONE)

    reply, _, _ = held(told, "how many days of paid leave", asking=ANSWERED)

    assert reply.text.splitlines()[:2] == [
        "Paid leave is 20 days a year. [1]", "Paid leave is 30 days a year. (the model's own words)",
    ]  # fmt: skip


def test_a_clear_question_is_one_call() -> None:
    model = scripted_model("Trains are booked by yourself. [1]", capabilities=NONE)

    reply, _, _ = held(model, "who books trains", asking=ANSWERED)

    assert reply.text.startswith("Trains are booked by yourself. [1]")
    assert len(model.requests) == 1


def test_a_follow_up_sends_the_turns_before_it() -> None:
    model = scripted_model(
        "Trains are booked by yourself. [1]", "Trains are booked by yourself. [1]", capabilities=NONE
    )

    held(model, "who books trains", "and who pays for trains?", asking=ANSWERED)

    assert [message.text for message in model.requests[-1].messages[1:3]] == [
        "who books trains", "Trains are booked by yourself.",
    ]  # fmt: skip


def test_if_the_model_finds_no_answer_the_passages_are_quoted_with_a_doubt() -> None:
    model = scripted_model("NOT FOUND", capabilities=NONE)

    reply, _, notes = held(model, "who drives the trains to Mars", asking=ANSWERED)

    assert reply.text.splitlines()[:3] == [
        "The documents may not cover this. The closest passages are:", "", "Trains are booked by yourself. [1]",
    ]  # fmt: skip
    result = AskResult.of(reply.findings.to_json())
    assert result is not None
    assert (result.is_answered, result.answer is not None and result.answer.doubted) == (False, True)
    assert [note.text for note in notes if note.code == "answer"] == [
        "the model found no answer in the passages; quoting the nearest ones"
    ]


def test_a_refusal_gives_way_to_the_passages() -> None:
    model = scripted_model(Response(assistant("No."), finish="refusal"), capabilities=NONE)

    reply, _, notes = held(model, "who books trains", asking=ANSWERED)

    assert reply.text.startswith("Trains are booked by yourself. [1]")
    assert [note.code for note in notes if note.level == "warning"] == ["answer"]


@pytest.mark.parametrize(
    ("words", "said"), [("thanks!", "You are welcome."), ("ありがとう", "どういたしまして。"), ("谢谢", "不客气。")]
)
def test_small_talk_costs_nothing_and_looks_nothing_up(words: str, said: str) -> None:
    model = scripted_model(capabilities=NONE)

    reply, _, _ = held(model, words, asking=AskTurnOptions())

    assert (reply.text, model.requests) == (said, [])


def test_advice_is_a_fixed_sentence_and_no_call() -> None:
    model = scripted_model(written(1, 5, 5, 5, 5), capabilities=NONE)

    reply, _, _ = held(model, "xyzzy plugh", asking=AskTurnOptions())

    assert reply.text == "I look things up in documents. What would you like to know?"
    assert documents(reply)["act"] == "advise"
    assert len(model.requests) == 1


def test_a_request_for_a_human_returns_the_case() -> None:
    reply, _, _ = held(None, "leave", "talk to a person please")

    assert reply.text.startswith("This question needs a human. The case so far:\n    searched for: ")
    assert "leave.md" in reply.text
    assert documents(reply)["act"] == "hand_over"
    assert "case" in documents(reply)


def test_a_case_that_was_handed_over_before_a_search_holds_the_question() -> None:
    policy = read_policy("---\ntaiwa: 1\npolicy: desk\ncases:\n  - otherwise: hand over\n---\nJudge the message.")
    model = scripted_model(written(1, 1, 5, 5, 1), capabilities=NONE)

    reply, _, _ = held(model, "Who decides?", asking=AskTurnOptions(ClarifyOptions(table=policy)))

    assert reply.text == "This question needs a human. The case so far:\n    Who decides?"


@pytest.mark.parametrize("texts", [("leave",), ("quantum", "just answer"), ("leave", "2", "thanks")])
def test_the_node_stores_all_that_the_decision_needs(texts: Sequence[str]) -> None:
    _, conversation, _ = held(None, *texts)

    last = conversation.turns[-1]
    stored = AskResult.of(last.findings)
    assert stored is not None
    dialogue = tuple(turn.user for turn in conversation.turns)
    decision = replace(stored.decision, situation=replace(stored.decision.situation, dialogue=dialogue))
    assert decide(decision.policy, decision.situation) == decision
    assert options_of(stored.to_json()) == ALONE


def test_both_drivers_and_the_record_give_the_same_turn(drive: Drive) -> None:
    done = drive(lambda: say("leave", documents=ALONE)(begin(APP)), retriever=SHELF)

    assert done.value[0].text == held(None, "leave")[0].text


@pytest.mark.parametrize("policy", ["never", "always"])
def test_the_policies_to_measure_against_ask_no_model_to_judge(policy: str) -> None:
    asking = AskTurnOptions(ClarifyOptions(policy), UserProfile("ann"))
    model = scripted_model(*([] if policy == "always" else ["Paid leave is 20 days a year."]), capabilities=NONE)

    reply, _, _ = held(model, "how many days of paid leave", asking=asking)

    assert documents(reply)["act"] == ("ask" if policy == "always" else "search")
    assert len(model.requests) == (policy == "never")


@pytest.mark.parametrize(
    "texts", [("who books trains",), ("leave",), ("xyzzy",), ("leave", "talk to a person please"), ("thank you",)]
)
def test_the_findings_of_a_turn_are_read_back_as_its_result(texts: tuple[str, ...]) -> None:
    reply, _, _ = held(None, *texts)

    result = AskResult.of(reply.findings.to_json())

    assert result is not None
    assert {"documents": result.to_json()} == reply.findings.to_json()
    assert AskResult.of({"documents": result.to_json()}) == result
    assert result.is_answered is (texts in (("who books trains",), ("leave",)))


@pytest.mark.parametrize(
    ("name", "part"), [("decision", 1), ("clarification", {}), ("claims", [1]), ("passages", [{}])]
)
def test_malformed_findings_are_corrupt(name: str, part: Json) -> None:
    reply, _, _ = held(None, "who books trains")

    with pytest.raises(TaiwaError):
        AskResult.of({"documents": {**documents(reply), name: part}})
    assert AskResult.of({"topics": []}) is None
