"""One turn of a conversation, on both drivers and again from its journal."""

import json
from dataclasses import replace
from typing import cast

import pytest

from taiwa.conversation.app import AnswerOptions, App, ReplyMode, WindowPolicy
from taiwa.conversation.history import Conversation, begin
from taiwa.conversation.reducers import Reducer, known_reducers
from taiwa.conversation.replies import parse_reply
from taiwa.conversation.state import StateField
from taiwa.flows.turn import Reply, say
from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import InputError, ModelError, OutputValidationError, OverloadedError, RefusalError
from taiwa.kernel.execution import Journal, replay
from taiwa.kernel.messages import (
    Capability,
    FinishReason,
    JsonSchema,
    Message,
    Notice,
    Response,
    Sampling,
    Text,
    Thinking,
    Usage,
    assistant,
)
from taiwa.kernel.runtime import Runtime
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.models.scripted import Entry, ScriptedModel, scripted_model
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, app, reloaded, talked
from tests.flows.driving import Drive, Driven

FIELDS = (TOPICS, DICTIONARY, MOOD, TURNS)
MODES: tuple[ReplyMode, ...] = ("auto", "text+delta", "json", "environment")
Turned = tuple[Reply, Conversation]


def reply(mode: ReplyMode, answer: str, **delta: object) -> str:
    """What a model says that keeps to the form."""
    whole = {"response": answer, "topics": [], "dictionary": {}, "mood": None} | delta
    forms = {
        "text+delta": f"{answer}\n@@delta\n{json.dumps(delta)}",
        "json": json.dumps({"delta": delta, "answer": answer}),
        "auto": json.dumps({"delta": delta, "answer": answer}),
        "environment": f"<JSON>\n{json.dumps(whole)}\n</JSON>",
    }
    return forms[mode]


def ended(text: str, finish: FinishReason) -> Response:
    return Response(assistant(text), finish, usage=Usage(10, 10))


def turn(
    drive: Drive, of: App | Conversation, *entries: Entry, text: str = "Hello?", strict: bool = False, repairs: int = 1
) -> tuple[Driven[Turned], ScriptedModel]:
    conversation = begin(of) if isinstance(of, App) else of
    model = scripted_model(*entries)
    return drive(lambda: say(text, strict=strict, repairs=repairs)(conversation), model), model


def test_an_app_without_fields_asks_for_no_record(drive: Drive) -> None:
    driven, model = turn(drive, app(reply="record"), "Hi.")

    assert driven.value[0].text == "Hi."
    assert len(model.requests) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_answers_and_folds_its_delta_into_the_state(drive: Drive, mode: ReplyMode) -> None:
    driven, model = turn(drive, app(*FIELDS, reply=mode), reply(mode, "Hi, tea?", topics=["tea"], mood="fine"))

    said, after = driven.value
    assert (said.text, said.warnings) == ("Hi, tea?", ())
    assert after.state == {"topics": ["tea"], "dictionary": {}, "mood": "fine", "turns": 1}
    assert driven.shown == "Hi, tea?"
    assert driven.notes == ()
    assert len(model.requests) == 1
    assert reloaded(after).state == after.state


def test_an_app_without_fields_is_a_plain_chat(drive: Drive) -> None:
    driven, model = turn(drive, app(TURNS), "Hi.\n")

    said, after = driven.value
    assert (said.text, said.delta, after.state) == ("Hi.\n", {}, {"turns": 1})
    assert [message.text for message in model.requests[0].messages] == ["You are a friend.", "Hello?"]


@pytest.mark.parametrize("mode", MODES)
def test_a_delta_that_cannot_be_used_is_asked_for_alone_and_the_answer_is_kept(drive: Drive, mode: ReplyMode) -> None:
    whole = {"response": "Hi!", "topics": [], "dictionary": {}, "mood": "fine"}
    mended = whole if mode == "environment" else {"mood": "fine"}

    driven, model = turn(drive, app(*FIELDS, reply=mode), reply(mode, "Hi!", mood=3), json.dumps(mended))

    said, after = driven.value
    assert (said.text, said.warnings, after.state["mood"]) == ("Hi!", (), "fine")
    assert driven.shown == "Hi!"
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    asked = second.messages[-1].text
    assert "cannot be used" in asked
    assert "mood" in asked
    assert second.messages[-2] == assistant(reply(mode, "Hi!", mood=3))
    assert isinstance(second.constraint, JsonSchema)


WRONG = {"mood": 3, "topics": ["tea", 5, "milk"], "dictionary": {"a": "x", "b": 2}}


@pytest.mark.parametrize("again", ["I cannot.", json.dumps(WRONG)])
@pytest.mark.parametrize("mode", MODES)
def test_what_fits_of_a_delta_is_recorded_and_a_warning_names_the_rest(
    drive: Drive, mode: ReplyMode, again: str
) -> None:
    before = talked(app(*FIELDS, reply=mode), ("a", "b", {"topics": [], "dictionary": {"b": "y"}, "mood": "fine"}))

    driven, model = turn(drive, before, reply(mode, "Hi!", **WRONG), again)

    said, after = driven.value
    added = {"topics": ["tea", "milk"], "dictionary": {"a": "x", "b": "y"}}
    whole = {"topics": [], "dictionary": {"b": "y"}}  # no part of a value that would replace the one before
    assert after.state == {**(whole if mode == "environment" else added), "mood": "fine", "turns": 2}
    (warning,) = said.warnings
    assert warning.startswith("not recorded: ")
    assert all(f"$.{place} = " in warning for place in ("mood", "topics[1]", "dictionary.b"))
    assert (said.text, said.state_read, len(model.requests)) == ("Hi!", False, 2)
    assert driven.notes == (Notice(warning, "warning", "turn"),)


@pytest.mark.parametrize(
    ("again", "mood", "warning"),
    [
        ('{"mood": "fine"}', "fine", ""),
        ('{"topics": ["milk"]}', None, "not recorded: $.mood = 3: must be string"),
        ('{"topics": ["milk"], "mood": 4}', None, "not recorded: $.mood = 3: must be string"),
    ],
)
def test_a_repair_adds_to_what_fitted_before(drive: Drive, again: str, mood: str | None, warning: str) -> None:
    wrong = reply("text+delta", "Hi!", mood=3, topics=["tea"], weather="wet")

    said, after = turn(drive, app(*FIELDS), wrong, again)[0].value

    assert after.state["topics"] == (["milk"] if "topics" in again else ["tea"])
    assert (after.state["mood"], said.warnings) == (mood, (warning,) if warning else ())


def test_a_value_that_replaces_the_one_before_counts_whole_or_not_at_all(drive: Drive) -> None:
    field = StateField("todo", "list[str]")
    before = talked(app(field, MOOD), ("a", "b", {"todo": ["tea", "milk"]}))
    wrong = reply("text+delta", "Hi!", todo=["tea", 5], mood="fine")

    said, after = turn(drive, before, wrong, "I cannot.")[0].value

    assert after.state == {"todo": ["tea", "milk"], "mood": "fine"}
    assert said.warnings == ("not recorded: $.todo[1] = 5: must be string",)


def test_an_entry_of_a_table_that_fitted_stays_where_the_other_is_written_again(drive: Drive) -> None:
    wrong = reply("text+delta", "Hi!", dictionary={"a": "x", "b": 2})

    said, after = turn(drive, app(*FIELDS), wrong, '{"dictionary": {"b": "y"}}')[0].value

    assert (after.state["dictionary"], said.warnings) == ({"a": "x", "b": "y"}, ())


def test_of_a_delta_that_is_cut_off_the_whole_fields_count(drive: Drive) -> None:
    for mode, text in (("text+delta", 'Hi!\n@@delta\n{"mood": "fine", "topics": ["te'), ("json", '{"answer": "Hi!", "delta": {"mood": "fine", "topics": ["te')):  # fmt: skip
        said, after = turn(drive, app(*FIELDS, reply=cast("ReplyMode", mode)), ended(text, "length"))[0].value

        assert (said.text, after.state["mood"], after.state["topics"], said.state_read) == ("Hi!", "fine", [], False)
        assert [line.partition(":")[0] for line in said.warnings] == ["the answer was cut off at the length limit", "not recorded"]  # fmt: skip


@pytest.mark.parametrize("mode", ["text+delta", "json"])
def test_an_answer_without_a_delta_changes_nothing_costs_one_call_and_says_so(drive: Drive, mode: ReplyMode) -> None:
    before = talked(app(*FIELDS, reply=mode), ("a", "b", {"mood": "fine"}))

    driven, model = turn(drive, before, "Hi!")

    said, after = driven.value
    warning = "the state is unchanged: the model wrote no state"
    assert (said, after.state["mood"]) == (Reply("Hi!", {}, (warning,), state_read=False), "fine")
    assert len(model.requests) == 1
    assert driven.notes == (Notice(warning, "warning", "turn"),)


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_echoes_what_the_program_computes_is_not_asked_again(drive: Drive, mode: ReplyMode) -> None:
    driven, model = turn(drive, app(*FIELDS, reply=mode), reply(mode, "Hi!", mood="fine", turns=7))

    said, after = driven.value
    assert (said.text, said.warnings, said.state_read) == ("Hi!", (), True)
    assert (after.state["mood"], after.state["turns"]) == ("fine", 1)
    assert len(model.requests) == 1


SCHEMAS: frozenset[Capability] = frozenset({"json_schema"})


@pytest.mark.parametrize("enforces", [True, False])
def test_the_model_decides_the_layout_and_the_turn_replays_without_it(enforces: bool) -> None:
    mode: ReplyMode = "json" if enforces else "text+delta"
    said = (reply(mode, "Hi!", mood="fine", topics=None), reply(mode, "Bye!", mood=None))
    model = scripted_model(*said, capabilities=SCHEMAS if enforces else frozenset())
    conversation, runs = begin(app(*FIELDS, reply="auto")), list[tuple[Conversation, Journal]]()

    for _ in said:
        runs.append((conversation, Journal()))
        turned, conversation = Runtime(model).run(say("Hello?")(conversation), runs[-1][1])
        assert turned.state_read

    assert (conversation.state["mood"], conversation.turns[-1].answer) == ("fine", "Bye!")
    assert all((request.constraint is not None) is enforces for request in model.requests)
    assert parse_reply(conversation.app, model.requests[1].messages[2].text, mode).delta == {"mood": "fine"}
    assert [replay(say("Hello?")(before), journal)[1].tip for before, journal in runs] == [
        conversation.new_nodes[1].hash, conversation.tip,
    ]  # fmt: skip


def test_an_answer_that_is_made_to_begin_with_a_text_is_text(drive: Drive) -> None:
    model = scripted_model(' there.\n@@delta\n{"mood": "x"}')

    driven = drive(lambda: say("Hello?", prefix="Hi")(begin(app(*FIELDS, reply="auto"))), model)

    assert (driven.value[0].text, driven.value[1].state["mood"]) == ("Hi there.", "x")
    assert model.requests[0].constraint is None


def test_a_reply_that_is_cut_in_its_answer_keeps_the_state_before_it(drive: Drive) -> None:
    cut = ended('{"delta": {"topics": null, "dictionary": null, "mood": "x"}, "answer": "Hi, and', "length")

    driven, _ = turn(drive, app(*FIELDS, reply="auto"), cut)

    said, after = driven.value
    assert (said.text, said.state_read, after.state["mood"]) == ("Hi, and", True, "x")
    assert said.warnings == ("the answer was cut off at the length limit",)


def test_a_field_that_is_required_is_asked_for_where_the_delta_is_missing(drive: Drive) -> None:
    driven, model = turn(drive, app(StateField("mood", "str", required=True)), "Hi!", '{"mood": "fine"}')

    assert driven.value[0].text == "Hi!"
    assert driven.value[1].state["mood"] == "fine"
    assert "there is no @@delta line" in model.requests[1].messages[-1].text


def test_if_the_repair_fails_the_turn_is_committed_without_change_and_with_a_warning(drive: Drive) -> None:
    before = talked(app(*FIELDS), ("a", "b", {"mood": "fine"}))

    driven, model = turn(drive, before, reply("text+delta", "Hi!", mood=3), "I cannot.", repairs=1)

    said, after = driven.value
    assert (said.text, said.delta) == ("Hi!", {})
    assert after.state == before.state | {"turns": 2}
    assert len(said.warnings) == 1
    assert said.warnings[0] == "the state is unchanged: $.mood = 3: must be string"
    assert driven.notes == (Notice(said.warnings[0], "warning", "turn"),)
    assert len(model.requests) == 2


def test_a_turn_leaves_the_temperature_to_the_server_and_its_repair_does_not(drive: Drive) -> None:
    _, model = turn(drive, app(*FIELDS), reply("text+delta", "Hi!", mood=3), '{"mood": "fine"}')

    assert [request.sampling.temperature for request in model.requests] == [None, 0.0]


def test_a_temperature_of_the_app_holds_for_the_repair_too(drive: Drive) -> None:
    warm = app(*FIELDS, sampling=Sampling(0.4))

    _, model = turn(drive, warm, reply("text+delta", "Hi!", mood=3), '{"mood": "fine"}')

    assert [request.sampling.temperature for request in model.requests] == [0.4, 0.4]


def test_a_typed_answer_and_a_summary_do_not_vary(drive: Drive) -> None:
    typed = AnswerOptions(schema=JsonSchema({"type": "object", "properties": {"cups": {"type": "integer"}}}))
    summarized = talked(app(window=WindowPolicy(2, 1, summarize=True)), ("a", "b", {}), ("c", "d", {}), ("e", "f", {}))

    _, of_typed = turn(drive, app(options=typed), '{"cups": 2}')
    _, of_summary = turn(drive, summarized, "They spoke.", reply("text+delta", "Hi!"))

    assert [request.sampling.temperature for request in of_typed.requests] == [0.0]
    assert [request.sampling.temperature for request in of_summary.requests] == [0.0, None]


def test_an_answer_is_kept_when_its_delta_cannot_be_asked_for_again(drive: Drive) -> None:
    driven, _ = turn(drive, app(*FIELDS), reply("text+delta", "Hi!", mood=3), OverloadedError("too busy"))

    said, after = driven.value
    assert (said.text, said.delta) == ("Hi!", {})
    assert said.warnings[0].startswith("the state is unchanged: it could not be requested again: too busy; ")
    assert after.turns[-1].answer == "Hi!"


def test_an_answer_is_kept_when_a_limit_forbids_to_ask_again() -> None:
    runtime = Runtime(scripted_model(reply("text+delta", "Hi!", mood=3)), limits=UsageLimits(requests=1))

    said, _ = runtime.run(say("hello")(begin(app(*FIELDS))))

    assert said.text == "Hi!"
    assert "the limit on requests is reached" in said.warnings[0]


def test_a_strict_turn_whose_delta_cannot_be_asked_for_again_fails() -> None:
    model = scripted_model(reply("text+delta", "Hi!", mood=3), OverloadedError("too busy"))

    with pytest.raises(OutputValidationError) as caught:
        Runtime(model).run(say("hello", strict=True)(begin(app(*FIELDS))))

    assert "too busy" in caught.value.diagnostics[0]


def test_a_summary_that_is_refused_does_not_end_the_conversation(drive: Drive) -> None:
    full = talked(app(*FIELDS, window=WindowPolicy(2, 1, summarize=True)), ("a", "b", {}), ("c", "d", {}))

    driven, _ = turn(drive, full, RefusalError("not that"), reply("text+delta", "Hi!"))

    assert driven.value[0].text == "Hi!"
    assert len(driven.value[1].turns) == 3
    assert driven.notes[0].text.endswith("they stay in the prompt: not that")


@pytest.mark.parametrize(
    ("text", "finish", "warning"),
    [
        ("", "stop", "the model returned no text"),
        ("…", "stop", "the model returned no text"),
        ("...", "stop", "the model returned no text"),
        ("", "tool_calls", "the model called a tool, and this conversation has none"),
    ],
)
def test_an_answer_without_words_is_told(drive: Drive, text: str, finish: FinishReason, warning: str) -> None:
    driven, _ = turn(drive, app(), ended(text, finish))

    assert driven.value[0].warnings == (warning,)


def test_a_repair_that_repeats_its_fault_is_not_asked_again(drive: Drive) -> None:
    driven, model = turn(
        drive, app(*FIELDS), reply("text+delta", "Hi!", mood=3), '{"mood": 3}', '{"mood": 3}', repairs=5
    )

    assert driven.value[0].delta == {}
    assert len(model.requests) == 2


def test_repairs_go_on_while_they_get_somewhere(drive: Drive) -> None:
    entries = (reply("text+delta", "Hi!", mood=3), '{"moods": "x"}', '{"mood": "fine"}')

    driven, model = turn(drive, app(*FIELDS), *entries, repairs=5)

    assert driven.value[1].state["mood"] == "fine"
    assert len(model.requests) == 3


def test_no_repair_is_asked_where_none_is_allowed(drive: Drive) -> None:
    driven, model = turn(drive, app(*FIELDS), reply("text+delta", "Hi!", mood=3), repairs=0)

    assert driven.value[0].delta == {}
    assert len(model.requests) == 1


def test_a_strict_turn_fails_and_the_conversation_has_not_moved(drive: Drive) -> None:
    before = talked(app(*FIELDS), ("a", "b", {"mood": "fine"}))
    kept = repr(before)

    with pytest.raises(OutputValidationError, match="the reply's state cannot be used") as caught:
        turn(drive, before, reply("text+delta", "Hi!", mood=3), "I cannot.", strict=True)

    assert repr(before) == kept
    assert caught.value.text == reply("text+delta", "Hi!", mood=3)
    assert caught.value.diagnostics


def test_an_environment_keeps_its_last_response_and_a_bounded_list_after_the_window_is_cut(drive: Drive) -> None:
    notes = StateField("notes", "list[str]", reduce="last(3)")
    bounded = app(notes, reply="environment", window=WindowPolicy(2, 0, keep_first=1))
    conversation, model = begin(bounded), scripted_model()
    written: list[str] = []
    for number in range(1, 6):
        written = [*(str(note) for note in written[-3:]), f"n{number}"]
        whole = json.dumps({"response": f"answer {number}", "notes": written})
        (driven, model) = turn(drive, conversation, f"<JSON>\n{whole}\n</JSON>")
        conversation = driven.value[1]

    assert conversation.state == {"notes": ["n3", "n4", "n5"]}
    assert '"response":"answer 4"' in model.requests[-1].messages[-1].text
    assert len(conversation.turns) < 5


def test_an_environment_that_cannot_be_used_leaves_the_state_as_it_was(drive: Drive) -> None:
    before = talked(
        app(*FIELDS, reply="environment"), ("a", "b", {"topics": ["tea"], "dictionary": {}, "mood": "fine"})
    )

    driven, _ = turn(drive, before, '<JSON>{"response": "Hi!", "mood": 3}</JSON>', "no")

    said, after = driven.value
    assert said.text == "Hi!"
    assert after.state == before.state | {"turns": 2}


@pytest.mark.parametrize(
    ("finish", "warning"),
    [
        ("length", "the answer was cut off at the length limit"),
        ("interrupted", "the answer was interrupted"),
        ("refusal", "the model refused to continue"),
    ],
)
def test_an_answer_that_did_not_end_well_is_kept_and_not_repaired(
    drive: Drive, finish: FinishReason, warning: str
) -> None:
    driven, model = turn(drive, app(*FIELDS), ended("Once upon a", finish))

    said, after = driven.value
    assert (said.text, said.delta) == ("Once upon a", {})
    assert said.warnings[0] == warning
    assert after.turns[-1].answer == "Once upon a"
    assert len(model.requests) == 1


def test_a_refusal_without_words_fails_the_turn(drive: Drive) -> None:
    with pytest.raises(RefusalError, match="the model refused to answer") as caught:
        turn(drive, app(*FIELDS), ended(" ", "refusal"))

    assert len(caught.value.request) == 32


def test_an_error_of_the_model_fails_the_turn(drive: Drive) -> None:
    with pytest.raises(ModelError, match="down"):
        turn(drive, app(*FIELDS), ModelError("down"))


class TestWindows:
    """What happens when the window of turns is full."""

    def full(self, fold: str) -> Conversation:
        of = app(*FIELDS, window=WindowPolicy(3, 1, summarize=fold == "summary"))
        return talked(of, *((f"user {n}", f"answer {n}", {"topics": [f"t{n}"]}) for n in (1, 2, 3)))

    def test_a_full_window_is_cut_before_the_turn(self, drive: Drive) -> None:
        before = self.full("drop")

        driven, model = turn(drive, before, reply("text+delta", "Hi!"))

        _, after = driven.value
        assert [past.user for past in after.turns] == ["user 3", "Hello?"]
        assert [node.kind for node in after.new_nodes[len(before.new_nodes) :]] == ["summary", "turn"]
        assert after.state == before.state | {"turns": 4}
        assert "user 1" not in repr(model.requests)

    def test_a_summary_is_asked_for_where_the_app_wants_one(self, drive: Drive) -> None:
        driven, model = turn(drive, self.full("summary"), " They spoke of t1 and t2.\n", reply("text+delta", "Hi!"))

        _, after = driven.value
        assert after.summary == "They spoke of t1 and t2."
        asked, answered = model.requests
        assert "user 2" in asked.messages[-1].text
        assert "user 3" not in asked.messages[-1].text
        assert "They spoke of t1 and t2." in answered.messages[1].parts[0].text  # type: ignore[union-attr]
        assert driven.shown == "Hi!"
        assert reloaded(after).turns == after.turns

    def test_the_next_summary_is_told_the_last_one(self, drive: Drive) -> None:
        first, _ = turn(drive, self.full("summary"), "First summary.", reply("text+delta", "a"))
        second, _ = turn(drive, first.value[1], reply("text+delta", "b"))

        _, model = turn(drive, second.value[1], "Second summary.", reply("text+delta", "c"))

        assert "First summary." in model.requests[0].messages[-1].text

    @pytest.mark.parametrize("summary", [ended(" ", "stop"), ended("They", "interrupted"), ended("No.", "refusal")])
    def test_turns_are_not_dropped_for_a_summary_that_did_not_come(self, drive: Drive, summary: Response) -> None:
        driven, _ = turn(drive, self.full("summary"), summary, reply("text+delta", "Hi!"))

        _, after = driven.value
        assert [past.user for past in after.turns] == ["user 1", "user 2", "user 3", "Hello?"]
        assert after.summary == ""
        assert [note.code for note in driven.notes] == ["fold"]

    def test_a_fold_is_not_committed_when_the_turn_fails(self, drive: Drive) -> None:
        before = self.full("summary")

        with pytest.raises(ModelError, match="down"):
            turn(drive, before, "They spoke.", ModelError("down"))

        assert before.summary == ""


def test_half_a_character_in_an_answer_does_not_cost_the_turn(drive: Drive) -> None:
    driven, _ = turn(drive, app(*FIELDS, reply="json"), '{"answer": "so \\ud83d", "delta": {}}', "{}")

    assert driven.value[0].text == "so \ufffd"
    assert driven.shown == "so \ufffd"


def test_a_delta_that_a_reducer_refuses_is_left_out(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    def pick(held: object, given: object, turn: int) -> str:
        raise InputError("this reducer takes nothing")

    monkeypatch.setitem(known_reducers(), "picky", Reducer("picky", pick))
    of = app(StateField("x", "str", reduce="picky"), MOOD)

    driven, _ = turn(drive, of, 'Hi!\n@@delta\n{"x": "y", "mood": "fine"}')

    assert driven.value[0].warnings == ("not recorded: $.x: this reducer takes nothing",)
    assert driven.value[1].state == {"x": None, "mood": "fine"}
    with pytest.raises(InputError, match="takes nothing"):
        turn(drive, of, 'Hi!\n@@delta\n{"x": "y"}', strict=True)


def test_a_turn_is_a_step_and_turns_follow_each_other(drive: Drive) -> None:
    conversation, journals = begin(app(*FIELDS)), list[Journal]()
    for number in range(3):
        driven, _ = turn(drive, conversation, reply("text+delta", f"answer {number}", topics=[f"t{number}"]))
        conversation = driven.value[1]
        journals.append(driven.journal)

    assert conversation.state["topics"] == ["t0", "t1", "t2"]
    assert conversation.count == 3
    requests = [journal.requests()[0].request for journal in journals]
    assert [len(request.messages) for request in requests] == [2, 4, 6]


def test_only_the_model_calls_of_a_turn_are_paid(drive: Drive) -> None:
    driven, _ = turn(drive, app(*FIELDS), reply("text+delta", "Hi!", mood=3), '{"mood": "x"}')

    assert [type(entry.effect) for entry in driven.journal.entries].count(Complete) == 2


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        ("text+delta", ["complete"]),
        ("json", ["get-capabilities", "complete"]),
        ("auto", ["get-capabilities", "complete"]),
    ],
)
def test_a_server_is_asked_for_its_abilities_only_where_a_schema_would_be_sent(
    mode: ReplyMode, kinds: list[str]
) -> None:
    journal = Journal()

    Runtime(scripted_model(reply(mode, "Hi."))).run(say("Hello?")(begin(app(*FIELDS, reply=mode))), journal)

    assert [entry.kind for entry in journal.entries] == kinds


def test_a_thought_is_no_part_of_the_answer(drive: Drive) -> None:
    thinking = Response(Message("assistant", (Thinking("@@delta\n{}"), Text(reply("text+delta", "Hi!", mood="x")))))

    driven, _ = turn(drive, app(*FIELDS), thinking)

    assert driven.value[0].text == "Hi!"
    assert replace(driven.value[0], delta=None) == Reply("Hi!")


def test_a_text_that_has_outgrown_its_reducer_is_compressed_before_the_next_turn(drive: Drive) -> None:
    notes = StateField("notes", "str", reduce="summary(20)")
    conversation, long = begin(app(notes)), "word " * 30
    first, _ = turn(drive, conversation, reply("text+delta", "a", notes=long), reply("text+delta", "b", notes="more"))
    conversation = first.value[1]
    assert conversation.state == {"notes": long}

    second, model = turn(drive, conversation, "thirty words", reply("text+delta", "b", notes="and tea"))

    after = second.value[1]
    assert after.state == {"notes": "thirty words\nand tea"}
    assert [node.kind for node in after.new_nodes[-2:]] == ["edit", "turn"]
    assert after.new_nodes[-2].answer == "compressed by the model"
    compress, turned = model.requests
    assert compress.sampling.max_tokens == 20
    assert long.strip() in compress.messages[-1].text
    assert long not in repr(turned.messages[-1])
    assert reloaded(after).state == after.state


@pytest.mark.parametrize("answer", ["", ended("cut", "interrupted"), OverloadedError("busy"), "x" * 500])
def test_a_text_that_cannot_be_compressed_stays_and_the_turn_goes_on(drive: Drive, answer: Entry) -> None:
    notes = StateField("notes", "str", reduce="summary(20)")
    conversation = talked(app(notes), ("a", "b", {"notes": "word " * 30}))

    driven, _ = turn(drive, conversation, answer, reply("text+delta", "c"))

    assert driven.value[1].state == conversation.state
    assert any("could not be compressed" in note.text for note in driven.notes)


def test_the_text_of_the_user_stands_in_its_place_of_the_instructions_and_is_not_scanned(drive: Drive) -> None:
    template = app(body="Answer in verse.\n\n### {{PROMPT}} ###\n\nBegin.")
    first, _ = turn(drive, template, "a rose", text="What is {{PROMPT}}?")

    _, model = turn(drive, first.value[1], "two roses", text="And then?")

    (request,) = model.requests
    assert [message.text for message in request.messages] == [
        "What is {{PROMPT}}?", "a rose", "Answer in verse.\n\n### And then? ###\n\nBegin.",
    ]  # fmt: skip
