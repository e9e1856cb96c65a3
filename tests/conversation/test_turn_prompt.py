"""The prompt of a turn: a prefix that only grows, and blocks that no text can close."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taiwa.apps.catalog import load_text
from taiwa.conversation.app import ALL, App, Example, Param, ReplyMode, WindowPolicy
from taiwa.conversation.history import Conversation, add_turn, begin, edit_state, summarize_window, turns_to_keep
from taiwa.conversation.replies import parse_reply
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import (
    EARLIER,
    ENVIRONMENT,
    MARKERS,
    STATE,
    stable_bytes,
    summary_request,
    turn_request,
)
from taiwa.kernel.errors import OutputValidationError
from taiwa.kernel.messages import JsonSchema, Part, Request, Text
from taiwa.kernel.serialization import Json
from taiwa.structured import OutputType
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, app, asked, reloaded, talked
from tests.steps import lines_run
from tests.strategies import ODD, joined, texts

MODES: tuple[ReplyMode, ...] = ("auto", "text+delta", "json", "environment")
FIELDS = (TOPICS, DICTIONARY, MOOD, TURNS)
BLOCKS = (STATE, ENVIRONMENT, EARLIER)

hostile = joined([*MARKERS, *ODD, '"', "\\", "{{name}}", "{", "}", "@", "<"], max_size=6) | texts
deltas = st.fixed_dictionaries(
    {
        "topics": st.lists(hostile, max_size=2),
        "dictionary": st.dictionaries(hostile, hostile, max_size=2),
        "mood": hostile,
    }
)
said_turns = st.lists(st.tuples(hostile, hostile, deltas), min_size=1, max_size=5)


def block(part: Part) -> tuple[str, Json]:
    """The opening marker of a block of data, and what the block holds."""
    assert isinstance(part, Text)
    opening, closing = next(markers for markers in BLOCKS if part.text.startswith(f"{markers[0]}\n"))
    inner = part.text.removeprefix(opening).removesuffix(closing)
    assert part.text == f"{opening}{inner}{closing}"
    assert not any(marker in inner for marker in MARKERS)
    return opening, json.loads(inner)


def words(request: Request) -> list[list[str]]:
    return [[part.text for part in message.parts if isinstance(part, Text)] for message in request.messages]


@given(said_turns, hostile, st.sampled_from(MODES), st.booleans())
def test_the_next_request_begins_with_the_bytes_of_this_one(
    turns: list[tuple[str, str, dict[str, Json]]], text: str, mode: ReplyMode, constrained: bool
) -> None:
    conversation = begin(app(*FIELDS, reply=mode, examples=(Example("hi", "hello", {"mood": "x"}),)))

    for user, answer, delta in turns:
        before = stable_bytes(turn_request(conversation, user, constrained=constrained))
        conversation = add_turn(conversation, user, answer, delta)
        edited = edit_state(conversation, {"mood": text})
        after = stable_bytes(turn_request(edited, text, constrained=constrained))

        assert after.startswith(before)
        assert len(after) > len(before)


@given(said_turns, hostile)
def test_an_app_without_fields_only_adds_to_its_request(
    turns: list[tuple[str, str, dict[str, Json]]], text: str
) -> None:
    conversation = begin(app(TURNS))

    for user, answer, _ in turns:
        before = stable_bytes(turn_request(conversation, user))
        conversation = add_turn(conversation, user, answer, {})

        assert stable_bytes(turn_request(conversation, text)).startswith(before)


@given(said_turns, hostile, st.sampled_from(MODES))
def test_after_a_summary_the_prefix_is_stable_again(
    turns: list[tuple[str, str, dict[str, Json]]], summary: str, mode: ReplyMode
) -> None:
    conversation = talked(app(*FIELDS, reply=mode), *turns)
    conversation = summarize_window(conversation, [past.hash for past in conversation.turns[1:]], summary)

    before = stable_bytes(turn_request(conversation, "next"))
    after = stable_bytes(turn_request(add_turn(conversation, "next", "answer", {}), "and then"))

    assert after.startswith(before)


@given(said_turns, hostile, hostile, st.sampled_from(MODES))
def test_nothing_breaks_out_of_its_block(
    turns: list[tuple[str, str, dict[str, Json]]], text: str, summary: str, mode: ReplyMode
) -> None:
    conversation = talked(app(*FIELDS, reply=mode), *turns)
    conversation = summarize_window(conversation, [past.hash for past in conversation.turns], f"so: {summary}")

    request = turn_request(conversation, text)

    last_marker, view = block(request.messages[-1].parts[-1])
    assert block(request.messages[1].parts[0]) == (EARLIER[0], f"so: {summary}")
    assert isinstance(view, dict)
    assert {name: view[name] for name in ("topics", "dictionary", "mood")} == {
        name: conversation.state[name] for name in ("topics", "dictionary", "mood")
    }
    assert last_marker == (ENVIRONMENT if mode == "environment" else STATE)[0]
    assert "turns" not in view


@given(said_turns, hostile)
def test_users_and_models_words_are_passed_on_as_they_are(
    turns: list[tuple[str, str, dict[str, Json]]], text: str
) -> None:
    conversation = talked(app(*FIELDS), *turns)

    _, *spoken, last = words(turn_request(conversation, text))

    assert spoken[::2] == [[user] for user, _, _ in turns]
    assert all(said[0].startswith(answer) for said, (_, answer, _) in zip(spoken[1::2], turns, strict=True))
    assert last[0] == text
    assert len(last) == 2


@given(said_turns)
def test_earlier_replies_keep_the_form_of_the_layout(turns: list[tuple[str, str, dict[str, Json]]]) -> None:
    for mode, constrained in (("auto", False), ("auto", True), ("json", False), ("environment", True)):
        of = app(*FIELDS, reply=mode)  # type: ignore[arg-type]
        layout = of.layout(enforces_schemas=constrained)
        conversation = talked(of, *turns)

        replies = turn_request(conversation, "x", constrained=constrained).messages[2::2]

        assert [parse_reply(of, reply.text, layout).problems for reply in replies] == [()] * len(turns)
        assert not any(parse_reply(of, reply.text, layout).missing for reply in replies)


def test_a_turn_whose_environment_could_not_be_read_shows_the_one_before() -> None:
    whole = {"topics": ["tea"], "dictionary": {}, "mood": "fine"}
    conversation = talked(app(*FIELDS, reply="environment"), ("a", "b", whole), ("c", "d", {}))

    assert words(turn_request(conversation, "x"))[4] == [
        '<JSON>\n{"response":"d","topics":["tea"],"dictionary":{},"mood":"fine"}\n</JSON>'
    ]


@given(hostile)
def test_the_state_view_comes_last_in_its_own_block_and_is_not_repeated(text: str) -> None:
    conversation = begin(app(*FIELDS))

    request = turn_request(conversation, text)

    *_, view = request.messages[-1].parts
    assert isinstance(view, Text)
    assert view.transient
    assert sum(isinstance(part, Text) and part.transient for message in request.messages for part in message.parts) == 1
    assert view.text not in repr(turn_request(add_turn(conversation, text, "a", {"mood": "other"}), "b"))


@given(said_turns)
def test_a_summary_is_asked_for_with_the_turns_as_data(turns: list[tuple[str, str, dict[str, Json]]]) -> None:
    conversation = talked(app(*FIELDS), *turns)

    request = summary_request(conversation, conversation.turns)

    (part,) = request.messages[-1].parts
    assert block(part) == (
        EARLIER[0],
        {"summary": "", "turns": [{"user": user, "answer": answer} for user, answer, _ in turns]},
    )


@given(hostile, hostile)
def test_parameters_are_inserted_once_and_never_scanned(name: str, other: str) -> None:
    of = app(body="You are {{name}}. {{ other }}{{unknown}}", params=(Param("name"), Param("other")))

    opened = of.with_params({"name": name or "x", "other": other or "y"})

    assert opened.instructions == f"You are {name or 'x'}. {other or 'y'}{{{{unknown}}}}"
    assert opened.hash != of.hash


def test_examples_are_text_of_the_instructions_in_the_form_of_a_reply() -> None:
    example = Example("文(sentence)です。", "This is a sentence.", {"dictionary": {"文": "sentence"}})

    requests = {mode: turn_request(begin(app(*FIELDS, reply=mode, examples=(example,))), "x") for mode in MODES}

    assert all([message.role for message in request.messages] == ["system", "user"] for request in requests.values())
    forms = {mode: request.messages[0].text for mode, request in requests.items()}
    assert 'This is a sentence.\n@@delta\n{"dictionary":{"文":"sentence"}}\n' in forms["text+delta"]
    assert (
        '{"delta":{"topics":null,"dictionary":{"文":"sentence"},"mood":null},"answer":"This is a sentence."}\n'
        in forms["json"]
    )
    assert (
        '<JSON>\n{"response":"This is a sentence.","topics":[],"dictionary":{"文":"sentence"},"mood":null}\n</JSON>\n'
        in forms["environment"]
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_prompt_states_the_form_of_a_reply_and_its_fields(mode: ReplyMode) -> None:
    head = words(turn_request(begin(app(*FIELDS, reply=mode)), "x"))[0][0]

    assert head.startswith("You are a friend.")
    assert "topics" in head
    assert "// what the talk is about" in head
    assert "mood" in head
    assert "turns" not in head


def test_the_instructions_end_with_the_form_of_a_reply_and_not_with_a_list() -> None:
    heads = {mode: words(turn_request(begin(app(*FIELDS, reply=mode)), "x"))[0][0] for mode in MODES}

    assert heads["text+delta"].endswith('\n\n…\n@@delta\n{"topics":[…],"dictionary":{…},"mood":…}')
    assert heads["json"].endswith('\n\n{"delta":{"topics":null,"dictionary":null,"mood":null},"answer":"…"}')
    assert heads["environment"].endswith('\n\n<JSON>\n{"response":"…","topics":[…],"dictionary":{…},"mood":…}\n</JSON>')
    assert heads["auto"] == heads["text+delta"]


@pytest.mark.parametrize("mode", ["auto", "json"])
def test_a_model_that_enforces_schemas_must_name_every_field_before_its_answer(mode: ReplyMode) -> None:
    entry = StateField("plan", "list[{day: str, dish: str}]", reduce="append")
    conversation = begin(app(*FIELDS, entry, reply=mode))

    constraint = turn_request(conversation, "x", constrained=True).constraint

    assert isinstance(constraint, JsonSchema)
    written = OutputType.from_json_schema(constraint.schema)
    for answer in ('{"delta": {"mood": "x"}, "answer": "Hi."}', '{"answer": "Hi."}'):
        with pytest.raises(OutputValidationError):
            written.validate(json.loads(answer))
    delta = {"topics": None, "dictionary": {"a": None}, "mood": None, "plan": [{"day": "Monday", "dish": "soup"}]}
    written.validate({"delta": delta, "answer": "Hi."})
    properties = constraint.schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["delta", "answer"]
    assert turn_request(conversation, "x").constraint is None


def test_a_layout_that_the_app_names_is_that_of_every_model() -> None:
    conversation = begin(app(*FIELDS, reply="text+delta"))

    assert turn_request(conversation, "x", constrained=True) == turn_request(conversation, "x")


def view(conversation: Conversation) -> Json:
    return block(turn_request(conversation, "x").messages[-1].parts[-1])[1]


def test_long_lists_and_tables_show_their_newest_entries_and_say_so() -> None:
    fields = (
        StateField("words", "list[str]", reduce="append", max_shown=2),
        StateField("table", "dict[str, int | null]", reduce="table", max_shown=1),
    )
    conversation = talked(app(*fields), ("a", "b", {"words": ["x", "y", "z"], "table": {"new": 2, "old": 1}}))
    conversation = add_turn(conversation, "c", "d", {"table": {"new": 3}})

    assert view(conversation) == {"words (newest 2 of 3)": ["y", "z"], "table (newest 1 of 2)": {"new": 3}}
    assert view(reloaded(conversation)) == view(conversation)


def test_the_state_view_is_bounded_by_default() -> None:
    conversation = talked(app(TOPICS), ("a", "b", {"topics": [f"t{number}" for number in range(200)]}))

    shown = view(conversation)

    assert isinstance(shown, dict)
    assert list(shown) == ["topics (newest 50 of 200)"]


@given(st.data())
def test_a_window_cut_in_chunks_keeps_the_prefix_between_cuts(choices: st.DataObject) -> None:
    of = app(*FIELDS, window=WindowPolicy(4, 2))
    conversation, folds = begin(of), 0
    for number in range(10):
        staying = turns_to_keep(conversation)
        if staying is not None:
            conversation = summarize_window(conversation, [past.hash for past in staying], choices.draw(hostile))
            folds += 1
        before = stable_bytes(turn_request(conversation, "x"))
        conversation = add_turn(conversation, "x", f"answer {number}", choices.draw(deltas))
        if turns_to_keep(conversation) is None:
            assert stable_bytes(turn_request(conversation, "y")).startswith(before)

    assert folds == 3


@pytest.mark.parametrize("make", [lambda: app(*FIELDS), lambda: app(*FIELDS, window=ALL, reply="json")])
def test_a_request_depends_on_nothing_but_the_conversation(make: Callable[[], App]) -> None:
    turns = (("a", "b", {"mood": "fine", "topics": ["z", "a"]}), ("c", "d", {"dictionary": {"z": "1", "a": "2"}}))

    assert asked(talked(make(), *turns)) == asked(talked(make(), *turns))


def test_a_long_history_is_worded_and_digested_once() -> None:
    conversation = begin(app(TOPICS))
    for n in range(200):
        conversation = add_turn(conversation, f"question {n}", f"answer {n}", {"topics": [f"tea {n}"]})
    known = turn_request(conversation, "hello").digest
    later = add_turn(conversation, "question 200", "answer 200", {"topics": []})
    read = reloaded(later)

    assert 4 * lines_run(lambda: turn_request(later, "hello").digest) < lines_run(
        lambda: turn_request(read, "hello").digest
    )
    assert turn_request(later, "hello").digest == turn_request(read, "hello").digest != known


@pytest.mark.parametrize(
    ("params", "values", "shared"),
    [
        ("who: { type: str, default: a guest }", {}, True),
        ("who: { type: str, default: a guest }", {"who": "a guest"}, True),
        ("who: { type: str, default: a guest }", {"who": "Ann Lee"}, False),
        ("who: { type: 'list[str]', default: [] }", {"who": ["Ann Lee"]}, False),
        ('who: { type: \'"a guest" | "a host"\', default: a guest }', {"who": "a host"}, True),
    ],
)
def test_instructions_with_words_of_the_user_are_the_beginning_of_no_other_conversation(
    params: str, values: dict[str, Json], shared: bool
) -> None:
    known = load_text(f"---\ntaiwa: 1\nparams:\n  {params}\n---\nHelp {{{{who}}}}.", "a.md", "a").with_params(values)

    assert bool(turn_request(begin(known), "Hi").hints.opening) is shared
