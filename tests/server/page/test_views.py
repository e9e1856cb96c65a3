"""What the page shows of a store: the transcript with its branches, the map, and the state with what changed it."""

import gc
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any, cast
from weakref import ref

import pytest

import taiwa
from taiwa.apps.catalog import load_app, load_text
from taiwa.conversation.history import add_turn
from taiwa.flows.ask.decide_search_or_clarify import POLICIES
from taiwa.flows.ask.types import ASSESS_BY, QUESTIONS, SCORES
from taiwa.kernel import errors
from taiwa.kernel.messages import Evidence
from taiwa.models.http_api.errors import TABLE, error_from_status
from taiwa.models.http_api.provider_interface import RequestLimits, Server
from taiwa.models.scripted import ScriptedModel
from taiwa.server.http_responses import api_error
from taiwa.server.page.branches import branch_map, leaf
from taiwa.server.page.html import Page, Place
from taiwa.server.page.panels import state_view, steps_of
from taiwa.server.page.text import LABELS, open_params, worded
from taiwa.server.page.transcript import count_breaks, transcript
from taiwa.sessions.replay import recorded_requests, replay_history
from taiwa.sessions.session import Session
from taiwa.store.nodes import pack, unpack


def answer(n: int) -> str:
    return f'Answer {n}\n@@delta\n{{"topics": ["tea {n}"], "summary": "about tea {n}"}}'


@pytest.fixture
def session() -> Iterator[Session]:
    model = taiwa.scripted_model(*[answer(n) for n in range(9)])
    with taiwa.open("chat", model=model, store=":memory:") as opened:
        yield opened


def place(session: Session) -> Place:
    return Place(session.name, session.conversation.tip, session.conversation.tip)


def test_an_edited_turn_is_the_second_of_two_branches_and_says_what_continues_elsewhere(session: Session) -> None:
    for text in ("one", "two", "three"):
        session.say(text)
    session.edit("TWO", turn=2)

    turns = transcript(session.repository, session.name, session.conversation.tip).turns

    assert [
        (turn.user, turn.branches.position, len(turn.branches.siblings), turn.branches.elsewhere) for turn in turns
    ] == [
        ("one", 1, 1, 0),
        ("TWO", 2, 2, 2),
    ]


def test_conversations_with_the_same_root_are_no_branches_of_each_other(session: Session) -> None:
    session.say("one")
    other = Session(session.repository, "other", session.repository.start(session.app), session.priced_model)
    other.say("something else")

    rows = branch_map(session.repository, session.name, session.conversation.tip).rows

    assert [row.label for row in rows] == ["", "one"]


def test_a_conversation_that_only_has_the_same_texts_continues_nothing() -> None:
    model = taiwa.function_model(lambda _: "Answer")
    with taiwa.open("plain", model=model, store=":memory:") as session:
        repository = session.repository
        twin = Session(repository, "twin", repository.start(session.app), session.priced_model)
        assert session.say("one").node == twin.say("one").node
        session.fork("side").say("on the side")
        session.say("two")
        twin.say("other")

        def elsewhere(name: str) -> list[int]:
            return [
                turn.branches.elsewhere for turn in transcript(repository, name, repository.store.refs.tip(name)).turns
            ]

        assert elsewhere(session.name) == elsewhere("side") == [0, 1]
        assert elsewhere("twin") == [0, 0]
        repository.store.refs.rename(session.name, "renamed")
        assert elsewhere("renamed")[1] >= 1


def test_a_fork_is_on_the_map_with_its_name(session: Session) -> None:
    session.say("one")
    fork = session.fork("side")
    session.say("two")
    fork.say("two, otherwise")

    rows = branch_map(session.repository, session.name, session.conversation.tip).rows

    assert [(row.label, row.lane, row.names, row.on_path) for row in rows] == [
        ("", 0, (), True),
        ("one", 0, (), True),
        ("two", 0, (session.name,), True),
        ("two, otherwise", 1, ("side",), False),
    ]


def test_going_to_a_turn_ends_at_the_newest_turn_of_its_branch(session: Session) -> None:
    session.say("one")
    old = session.say("two").node
    end = session.say("three").node
    session.edit("TWO", turn=2)

    assert leaf(session.repository, session.name, old) == end


def test_the_state_says_what_the_turn_added_changed_and_removed(session: Session) -> None:
    session.say("one")
    session.say("two")
    session.set_state({"topics": ["tea 1"]})

    values = {value.key: value for value in state_view(session.repository, session.conversation.tip)}

    assert [(part.text, part.change) for part in values["topics"].parts] == [("tea 1", ""), ("tea 0", "removed")]
    assert values["summary"].change == ""


def test_the_state_has_the_order_of_the_app_whatever_a_delta_names_first(session: Session) -> None:
    def keys() -> list[str]:
        return [value.key for value in state_view(session.repository, session.conversation.tip)]

    session.say("one")
    before = keys()
    session.set_state({"summary": "tea"})

    assert keys() == before == [field.name for field in session.app.fields if field.name in before]


@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_hostile_texts_are_escaped_everywhere_on_a_page(language: str) -> None:
    bad = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    reply = f'{bad}\n@@delta\n{{"topics": ["<img src=x>"], "summary": "</script><script>alert(2)</script>"}}'
    with taiwa.open("chat", model=taiwa.scripted_model(reply), store=":memory:") as session:
        session.say(bad)
        page = Page(session.repository, language)
        html = (
            page.conversation(place(session), "m", place(session).tip)
            + page.why(place(session), "summary")
            + page.start((session.app,), "alert", [])
        )

    assert "<script>alert" not in html
    assert "<img" not in html


def test_a_value_is_traced_to_its_words_and_to_all_its_values(session: Session) -> None:
    session.say("I like tea 0")
    session.say("and now?")

    html = Page(session.repository, "en").why(place(session), "topics[0]")

    assert "Set in turn 1" in html
    assert "<mark>tea 0</mark>" in html
    assert "All its values" in Page(session.repository, "en").why(place(session), "summary")


def test_the_calls_of_a_rationale_are_shown_without_their_marks() -> None:
    model = taiwa.scripted_model("It is <<calculator: 6 × 7>>", "\nAnswer: 42", capabilities=frozenset())
    with taiwa.open("solve", model=model, store=":memory:") as session:
        session.say("6 × 7?")
        (turn,) = transcript(session.repository, session.name, session.conversation.tip).turns

    assert [(call.name, call.input, call.result) for call in turn.answer.calls] == [("calculator", "6 × 7", "42")]
    assert "<code>6 × 7</code> → 42" in turn.answer.html
    assert "&lt;&lt;" not in turn.answer.html


def test_a_typed_answer_is_shown_as_json_and_a_question_as_text() -> None:
    text = "---\ntaiwa: 1\nname: desk\nflow: route\nanswer: { order: { drink: str }, booking: { day: str } }\n---\n"
    asked, ordered = '{"to": "none", "question": "What *else*?"}', '{"to": "order", "content": {"drink": "tea"}}'
    model = taiwa.scripted_model(asked, ordered)
    with taiwa.open(load_text(text, "desk.md", "desk"), model=model, store=":memory:") as session:
        session.say("Something.")
        session.say("A tea.")
        question, order = transcript(session.repository, session.name, session.conversation.tip).turns

    assert "What <em>else</em>?" in question.answer.html
    assert 'data-language="json"' in order.answer.html


def test_two_branches_part_after_their_last_common_turn(session: Session) -> None:
    session.say("one")
    fork = session.fork("side")
    session.say("two")
    fork.say("two, otherwise")

    html = Page(session.repository, "en").difference(place(session), "side")

    assert "The branches part after turn 1." in html
    assert "topics" in html


def test_a_turn_shows_its_exact_request_and_the_text_of_its_answer(session: Session) -> None:
    session.say("Do you like tea?")
    session.say("And now?")

    html = Page(session.repository, "en").render("steps.html", **steps_of(session.repository, place(session).at))

    model = session.priced_model.model
    assert isinstance(model, ScriptedModel)
    assert recorded_requests(session.repository, session.conversation.tip) == (model.requests[-1],)
    assert "── system" in html
    assert "Answer 1" in html


def test_what_programs_name_is_named_for_a_person() -> None:
    assert {*SCORES, *QUESTIONS, "reply"} == set(LABELS["score"])
    assert {each.name for each in fields(Evidence)} == set(LABELS["evidence"])
    assert {*POLICIES, *ASSESS_BY} <= set(LABELS["parameter"])
    assert {param.name for param in open_params(load_app("ask"))} <= set(LABELS["parameter"])


def test_an_error_has_a_sentence_for_a_person() -> None:
    for kind in (errors.InputError, errors.ConfigError, errors.StoreError, errors.ConflictError, errors.ModelError,
                 errors.RefusalError, errors.RateLimitError, errors.OverloadedError,
                 errors.TimeoutError, errors.OutputValidationError):  # fmt: skip
        error = api_error(kind("why"))
        assert {error.code, error.type} & set(LABELS["error"]), kind


SERVER = Server("tea.example", "green", " in TEA_KEY", "set another in the environment")
BODY = b'{"error": {"message": "words: of (the) server; at most"}}'


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 408, 413, 429, 503])
def test_the_facts_of_a_servers_error_are_told_without_its_english_sentence(status: int) -> None:
    message = error_from_status(status, {"retry-after": "2"}, BODY, SERVER).message

    for tail in ("", " (tried 3 times)", "; at most 5 s are waited in all (timeout)"):
        sentence, details = worded("model_error", message + tail, "ja")
        assert details.endswith(
            f"{status} · “words: of (the) server; at most”" if status not in (401, 402) else f"{status}"
        )
        assert "tea.example" in details or "green" in details
        assert not {"the", "key", "try", "see"} & {*details.partition(" · “")[0].split()}
        assert sentence


@pytest.mark.parametrize("row", TABLE)
def test_the_facts_of_a_fault_of_the_network_are_told_without_its_english_sentence(row: str) -> None:
    message = TABLE[row].message.format(
        host="tea.example:80", url="http://tea.example/v1", limits=RequestLimits(), who="tea"
    )

    details = worded("overloaded", message + "; not repeated, because it may have been charged (--retry-paid)", "zh")[1]

    assert re.fullmatch(r"tea\.example:80( · \d+ s)? · .+", details)
    assert worded("overloaded", message, "en")[1] == message


@pytest.mark.parametrize("tag", sorted(errors.error_classes()))
def test_an_error_of_every_kind_is_shown_from_its_record(tag: str) -> None:
    assert api_error(errors.restore_error({"type": tag, "message": "it broke"})).status >= 400


def test_what_counts_breaks_lets_go_of_the_repository_with_its_owner() -> None:
    counted = lru_cache(count_breaks)
    with taiwa.open("plain", model=taiwa.scripted_model("Green tea."), store=":memory:") as session:
        session.say("Which tea?")
        assert [counted(session.repository, session.name, session.conversation.tip) for _ in range(2)] == [0, 0]
        repository = ref(session.repository)
    del session, counted
    gc.collect()

    assert repository() is None


def test_an_answer_that_was_changed_in_the_store_has_another_hash() -> None:
    with taiwa.open("plain", model=taiwa.scripted_model("Green tea."), store=":memory:") as session:
        session.say("Which tea?")
        database = session.repository.store._db
        ((row, body),) = database.rows("SELECT seq, body FROM node WHERE kind = 'turn'")
        changed = {**cast("dict[str, Any]", unpack(body)), "answer": "Black tea."}
        database.run("UPDATE node SET body = ? WHERE seq = ?", pack(changed), row)

        found = [node.difference for node in replay_history(session.repository, session.name)]

    assert found == ["", "its content has another hash"]


def test_a_long_conversation_is_drawn_by_its_forks_ends_and_names(session: Session) -> None:
    here = session.repository.start(session.app)
    for number in range(60):
        here = add_turn(here, f"question {number}", "answer", {"summary": str(number)})
    tip = session.repository.commit("long", here, expected=None).tip

    rows = branch_map(session.repository, "long", tip, tip).rows

    assert [(row.label, row.hidden) for row in rows] == [("", 0), ("question 58", 59), ("question 59", 0)]


def test_a_window_of_turns_says_what_is_before_and_behind_it(session: Session) -> None:
    here = session.repository.start(session.app)
    for number in range(1, 31):
        here = add_turn(here, f"question {number}", "answer", {"summary": str(number)})
    repository, tip = session.repository, session.repository.commit("long", here, expected=None).tip

    last = transcript(repository, "long", tip, count=10)
    middle = transcript(repository, "long", tip, before=last.turns[0].entry.hash, count=10)
    first = transcript(repository, "long", tip, before=middle.turns[0].entry.hash, count=10)
    again = transcript(repository, "long", tip, after=first.turns[-1].entry.hash, count=10)

    assert [(each.turns[0].entry.after.count, each.turns[-1].entry.after.count) for each in (last, middle, first)] == [
        (21, 30),
        (11, 20),
        (1, 10),
    ]
    assert [(each.earlier, each.later) for each in (last, middle, first)] == [
        (True, False),
        (True, True),
        (False, True),
    ]
    assert [turn.entry.hash for turn in again.turns] == [turn.entry.hash for turn in middle.turns]
    assert [change.after for change in middle.turns[0].changes] == ["11"]
