"""Parsing a reply, and showing it while it streams."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from taiwa.conversation.app import App, ReplyLayout, ReplyMode
from taiwa.conversation.replies import AnswerWatcher, find_delta, parse_delta, parse_reply, reply_watcher
from taiwa.conversation.state import StateField
from taiwa.conversation.turn_prompt import DELTA_LINE, ENVIRONMENT, MARKERS, format_reply
from taiwa.kernel.effects import HideOutput
from taiwa.kernel.serialization import Json
from tests.conversation.apps import DICTIONARY, MOOD, TOPICS, TURNS, app
from tests.models.pieces import PLACES, cut
from tests.strategies import ODD, joined, texts

FIELDS = (TOPICS, DICTIONARY, MOOD, TURNS)
TEXT, JSON, WHOLE = (app(*FIELDS, reply=mode) for mode in ("text+delta", "json", "environment"))
PLAIN = app(TURNS)

phrases = [
    *ODD, *MARKERS, "\n", "\n\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", " ", "\t", "```", "```json\n",
    "{}", '{"topics": ["x"]}', "{", "}", '"', "\\", "@", "@@", "@@del", "delta", '{"answer": "x"}', "`", "```j", "日本",
    "so it is", "null", "\ufeff", "\x00",
]  # fmt: skip
answers = joined(phrases, max_size=8) | texts
deltas: st.SearchStrategy[dict[str, Json]] = st.fixed_dictionaries(
    {},
    optional={
        "topics": st.lists(answers, max_size=2),
        "dictionary": st.dictionaries(answers, st.none() | answers, max_size=2),
        "mood": answers,
    },
)  # a dictionary of JSON, which is invariant


def shown(of: App, pieces: Iterable[str]) -> str:
    make = reply_watcher(of)
    if make is None:
        return "".join(pieces)
    watching = make()
    return "".join([*(watching.feed(piece).show for piece in pieces), watching.close().show])


@given(answers, deltas)
def test_a_formatted_reply_is_parsed_back_without_trailing_space(answer: str, delta: dict[str, Json]) -> None:
    # Deltas that follow each other are one.
    assume(not (answer.rstrip().endswith(("}", "`")) and find_delta(answer, ())))

    read = parse_reply(TEXT, format_reply(TEXT, answer, delta))

    assert (read.answer, read.delta, read.problems) == (answer.rstrip(), delta, ())


@given(answers, deltas)
def test_a_formatted_json_reply_is_parsed_back(answer: str, delta: dict[str, Json]) -> None:
    read = parse_reply(JSON, format_reply(JSON, answer, delta))

    assert (read.answer, read.delta, read.problems) == (answer, delta, ())


@given(answers)
def test_an_app_without_fields_has_no_form_of_reply(answer: str) -> None:
    read = parse_reply(PLAIN, format_reply(PLAIN, answer, None))

    assert (read.answer, read.delta, read.problems) == (answer, {}, ())
    assert reply_watcher(PLAIN) is None


@given(answers, st.lists(answers, max_size=2), st.sampled_from(["{}", "\n{}", "```json\n{}\n```"]))
def test_an_environment_is_read_between_its_markers(answer: str, topics: list[Json], around: str) -> None:
    environment: dict[str, Json] = {"response": answer, "topics": topics, "dictionary": {}, "mood": None}
    inner = around.replace("{}", json.dumps(environment, ensure_ascii=False))

    read = parse_reply(WHOLE, f"Here it is. {ENVIRONMENT[0]}{inner}{ENVIRONMENT[1]}")

    assert (read.answer, read.delta) == (answer, environment)
    assert parse_reply(WHOLE, format_reply(WHOLE, answer, environment)) == read


@given(answers, deltas, PLACES)
def test_wherever_a_reply_is_cut_its_answer_is_shown_and_nothing_else(
    answer: str, delta: dict[str, Json], places: list[int]
) -> None:
    for of in (TEXT, JSON):
        reply = format_reply(of, answer, delta)

        assert shown(of, cut(reply, places)) == parse_reply(of, reply).answer


@given(st.lists(st.sampled_from(phrases) | texts, max_size=12), st.sampled_from([TEXT, JSON, WHOLE]))
def test_whatever_a_model_says_its_answer_is_what_was_shown(pieces: list[str], of: App) -> None:
    answer = parse_reply(of, "".join(pieces)).answer
    seen = shown(of, pieces)

    assert seen == answer or (of is not TEXT and seen.endswith(f"\n\n{answer}"))


@given(answers, PLACES)
def test_an_environment_is_shown_as_its_response(answer: str, places: list[int]) -> None:
    environment = {"response": answer, "topics": [], "dictionary": {}, "mood": None}
    reply = f"{ENVIRONMENT[0]}\n{json.dumps(environment)}\n{ENVIRONMENT[1]}"

    assert shown(WHOLE, cut(reply, places)) == answer


def test_words_are_shown_as_they_come_and_the_delta_never() -> None:
    watching = AnswerWatcher(lambda text: parse_reply(TEXT, text).answer)

    pieces = ["Hello", " you.\n", "\nMore.", "\n@@del", 'ta\n{"topics"', ': ["x"]}', "\n"]
    seen = [watching.feed(piece).show for piece in pieces]

    assert seen == ["Hello", " you.", "\n\nMore.", "", "", "", ""]
    assert watching.close().show == ""


def test_a_line_that_only_looks_like_the_delta_line_is_shown_when_that_is_certain() -> None:
    watching = AnswerWatcher(lambda text: parse_reply(TEXT, text).answer)

    seen = [watching.feed(piece).show for piece in ["A", "\n@@", "delta", "s are fun.", "\n@@delta\n", "see?", "\n"]]

    assert seen == ["A", "", "", "\n@@deltas are fun.", "", "\n@@delta\nsee?", ""]


@pytest.mark.parametrize(
    ("reply", "answer", "delta"),
    [
        ('Hi.\n@@delta\n{"mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\r\n@@delta\r\n{"mood": "x"}\r\n', "Hi.", {"mood": "x"}),
        ('Hi.\n  @@delta \n\n{"mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\n@@delta {"mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\n@@delta\n```json\n{"mood": "x"}\n```', "Hi.", {"mood": "x"}),
        ('Hi.\n@@delta\n```\n{\n  "mood": "x"\n}\n```\n', "Hi.", {"mood": "x"}),
        ("@@delta\n{}", "", {}),
        ('Hi.\n@@delta\n{"turns": 3, "response": "Hi.", "mood": null}', "Hi.", {}),
        ('Hi.\n{"turns": 3}', "Hi.", {}),
        ('Hi.\n@@delta\n{"mood": "…", "topics": ["…"], "dictionary": {"…": "…"}}', "Hi.", {}),
        ("Write:\n@@delta\n{}\nlike this.\n@@delta\n{}", "Write:\n@@delta\n{}\nlike this.", {}),
        ('Hi.\n@@delta\n{"mood": "x"}\n\nI hope this helps!', "Hi.\nI hope this helps!", {"mood": "x"}),
        ('Hi.\n@@delta\n{"mood": "x"}\nHi.\n', "Hi.", {"mood": "x"}),
        ('@@delta\n{"mood": "x"}\nHi, the answer came last.\n', "Hi, the answer came last.", {"mood": "x"}),
        ('@@delta\n```json\n{"mood": "x"}\n```\nHi.', "Hi.", {"mood": "x"}),
        ("The @@delta\nis big.\n@@delta\n{}", "The @@delta\nis big.", {}),
        ("It is\n@@delta\n@@delta\n{}", "It is\n@@delta", {}),
    ],
)
def test_a_text_reply_is_divided_at_its_last_delta_line_with_json(reply: str, answer: str, delta: Json) -> None:
    read = parse_reply(TEXT, reply)

    assert (read.answer, read.delta) == (answer, delta)
    assert shown(TEXT, reply) == answer


@pytest.mark.parametrize(
    ("reply", "answer", "fault"),
    [
        ('Hi.\n@@delta\n{"mood": ', "Hi.", ""),
        ('Hi.\n@@delta\n{"mood": 3}', "Hi.", "mood"),
        ('Hi.\n@@delta\n{"moods": "x"}', "Hi.", "moods"),
        ('Hi.\n@@delta\n{"mood": "\\ud83d"}', "Hi.", "half a character"),
    ],
)
def test_a_text_reply_whose_delta_cannot_be_used_keeps_its_answer(reply: str, answer: str, fault: str) -> None:
    read = parse_reply(TEXT, reply)

    assert (read.answer, read.delta) == (answer, None)
    assert fault in read.problems[0]
    assert shown(TEXT, reply) == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Hi.", "Hi."),
        ("", ""),
        ("Hi.\n@@delta", "Hi."),
        ("Hi.\n@@delta\n```json\n", "Hi."),
        ("Hi.\n@@delta `x`", "Hi.\n@@delta `x`"),
        ("Hi. {mood} is a field.", "Hi. {mood} is a field."),
        ("The mark @@delta", "The mark @@delta"),
        ('Write `@@delta {"mood": "x"}` at the end.', 'Write `@@delta {"mood": "x"}` at the end.'),
        ('```json\n{"mood": "x", "age": 3}\n```', '```json\n{"mood": "x", "age": 3}\n```'),
        ('```json\n{"mood": "x"}\n```\nThat is JSON.', '```json\n{"mood": "x"}\n```\nThat is JSON.'),
        ('```json\n{"mood": x}\n```\nThat is not.', '```json\n{"mood": x}\n```\nThat is not.'),
        ('{"mood": x}\n\nThat is not.', '{"mood": x}\n\nThat is not.'),
        ('```python\n{"mood": "x"}\n```', '```python\n{"mood": "x"}\n```'),
        ("```java\nclass A\n{}\n```", "```java\nclass A\n{}\n```"),
        ('The type is {"mood": "x"}', 'The type is {"mood": "x"}'),
        ("**So**\n\n* it\n* is", "**So**\n\n* it\n* is"),
    ],
)
def test_a_text_reply_without_a_delta_changes_nothing(reply: str, answer: str) -> None:
    read = parse_reply(TEXT, reply)

    assert (read.answer, read.delta, read.problems, read.missing) == (answer, {}, (), True)
    assert shown(TEXT, reply) == answer


def test_a_delta_that_changes_nothing_is_not_missing() -> None:
    read = parse_reply(TEXT, "Hi.\n@@delta\n{}"), parse_reply(JSON, '{"answer": "Hi.", "delta": {}}')

    assert [(each.delta, each.missing) for each in read] == [({}, False)] * 2
    assert parse_reply(JSON, '{"answer": "Hi."}').missing
    assert parse_reply(JSON, "Hi.").missing


NULLABLE = app(
    MOOD, StateField("guest", "str | null"), StateField("free", "any"), StateField("seat", "int", required=True)
)
wrapping: dict[str, Json] = {"value": None}
held: st.SearchStrategy[Json] = st.none() | st.just(wrapping) | texts
nullable_deltas = st.fixed_dictionaries(
    {"seat": st.integers(0, 9)}, optional={"guest": st.none() | texts, "free": held}
)


@given(answers, nullable_deltas)
def test_null_that_is_a_value_is_told_from_a_field_that_stays_as_it_is(answer: str, delta: dict[str, Json]) -> None:
    layouts: tuple[ReplyLayout, ...] = ("text+delta", "json")
    for layout in layouts:
        read = parse_reply(NULLABLE, format_reply(NULLABLE, answer, delta, layout), layout)

        assert (read.delta, read.problems) == (delta, ())


def test_a_json_reply_names_every_field_and_the_delta_comes_first() -> None:
    reply = format_reply(NULLABLE, "Hi.", {"seat": 1, "guest": None}, "json")

    assert reply == '{"delta":{"mood":null,"guest":{"value":null},"free":null,"seat":1},"answer":"Hi."}'


@pytest.mark.parametrize(
    ("reply", "answer", "delta"),
    [
        ('{"answer": "Hi.", "delta": {"mood": "x", "topics": null, "turns": 3}}', "Hi.", {"mood": "x"}),
        ('{"delta": {"mood": "x"}, "answer": "Hi, and th', "Hi, and th", {"mood": "x"}),
        ('Hi.\n@@delta\n{"mood": "x"}', "Hi.", {"mood": "x"}),
        ('{"delta": "{\\"mood\\": \\"x\\"}", "answer": "Hi."}', "Hi.", {"mood": "x"}),
        ('{"delta": [{"mood": {"value": "x"}}], "answer": "Hi."}', "Hi.", {"mood": "x"}),
        ('{"delta": {"mood": "x", "topics": "null"}, "answer": "Hi."}', "Hi.", {"mood": "x"}),
        ('{"delta": [], "answer": "Hi."}', "Hi.", {}),
        ('{"delta": {"mood": "x"}, "answer": ["Hi."]}', '["Hi."]', {"mood": "x"}),
        ('{"delta": {"mood": "x"}, "answer": null}', "", {"mood": "x"}),
        ('{"delta": {"mood": "x"}}', "", {"mood": "x"}),
    ],
)
def test_the_state_of_a_json_reply_is_read_where_its_form_is_not_kept(reply: str, answer: str, delta: Json) -> None:
    read = parse_reply(JSON, reply)

    assert (read.answer, read.delta, read.missing) == (answer, delta, False)
    assert shown(JSON, cut(reply, [9, 30])).strip() == answer


@pytest.mark.parametrize(
    ("reply", "answer", "delta"),
    [
        ('Hi.\n**@@delta**\n{"mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\n**@@delta**: {"mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\n### @@delta:\n```json\n{"mood": "x"}\n```', "Hi.", {"mood": "x"}),
        ('Hi.\n`@@delta`\n{"mood": "x"}', "Hi.", {"mood": "x"}),
        ('**Hi.**@@delta {"mood": "x"}', "**Hi.**", {"mood": "x"}),
        ('Hi! @@delta {"mood": "x"}', "Hi!", {"mood": "x"}),
        ('Hi! @@delta{"mood": "x"}\n', "Hi!", {"mood": "x"}),
        ('Hi! **@@delta {"mood": "x"}**', "Hi!", {"mood": "x"}),
        ('Hi! @@Delta\n```json\n{"mood": "x"}\n```\n', "Hi!", {"mood": "x"}),
        ('Hi! @@delta {"mood": "so @@delta {}"}', "Hi!", {"mood": "so @@delta {}"}),
        ('Hi! @@delta {mood: "x"}', "Hi!", {"mood": "x"}),
        ('Hi.\n\n```json\n{"mood": "x"}\n```', "Hi.", {"mood": "x"}),
        ('Hi.\n```\n{\n  "mood": "x"\n}\n```\n', "Hi.", {"mood": "x"}),
        ('Hi.\n```json\n{"mood": "x",}\n```\n', "Hi.", {"mood": "x"}),
        ("Hi.\n```json\n{}\n```\n", "Hi.", {}),
        ('Hi.\n{"mood": "x", "topics": ["y"]}', "Hi.", {"mood": "x", "topics": ["y"]}),
        ('Hi.\n```\n@@delta\n{"mood": "x"}\n```', "Hi.", {"mood": "x"}),
        ('Hi.\n\n```text\n@@delta\n{"mood": "x"}\n```\n', "Hi.", {"mood": "x"}),
        ('```\nHi.\n```\n@@delta\n{"mood": "x"}\n```', "```\nHi.\n```", {"mood": "x"}),
        ('Hi.\n@@delta\n{"mood": "x"}\n@@delta\n{"topics": ["y"]}', "Hi.", {"mood": "x", "topics": ["y"]}),
        ('Hi.\n@@delta\n{"topics": ["y"]}\n\n@@delta\n{"topics": ["y"]}', "Hi.", {"topics": ["y"]}),
        ('Hi.\n@@delta\n{"mood": "x"}\n{"topics": ["y"]}', "Hi.", {"mood": "x", "topics": ["y"]}),
        ('Hi.\n@@delta\n{"state": {"mood": "x"}}', "Hi.", {"mood": "x"}),
        ('Hi.\n@@delta\n[{"mood": "x"}]', "Hi.", {"mood": "x"}),
        ('Hi.\n@@delta\n{"Mood": "x"}', "Hi.", {"mood": "x"}),
        ('Hi.\n```json\n{"mood": 3}\n```', "Hi.", None),
        ('Hi.\n```json\n{"mood": "so', "Hi.", None),
    ],
)
def test_a_delta_is_found_where_models_put_it_and_no_character_of_it_is_shown(
    reply: str, answer: str, delta: Json
) -> None:
    read = parse_reply(TEXT, reply)

    assert (read.answer, read.delta) == (answer, delta)
    assert shown(TEXT, reply) == answer


@pytest.mark.parametrize("of", [TEXT, JSON])
@pytest.mark.parametrize(
    "reply",
    [
        '{"answer": "Hi.", "delta": {"mood": "x"}}',
        '{"message": "Hi.", "state": {"mood": "x", "turns": 3}}',
        '{"state": {"mood": "x"}, "message": "Hi.", "error": null}',
        '```json\n{\n  "message": "Hi.",\n  "state": {"mood": "x"}\n}\n```\n',
        '{"response": "Hi.", "mood": "x"}',
    ],
)
def test_a_reply_in_the_form_of_another_layout_is_read(of: App, reply: str) -> None:
    read = parse_reply(of, reply)

    assert (read.answer, read.delta, read.missing) == ("Hi.", {"mood": "x"}, False)
    assert shown(of, cut(reply, [3, 20])).strip() == "Hi."


@pytest.mark.parametrize(
    "reply",
    [
        '{"message": "Hi."}',
        '{"title": "Tea", "notes": {"warm": true}}',
        '{"title": "Tea", "mood": "x"}',
        '{"title": "Tea", "text": "Hot.", "state": {"mood": "x"}}',
        '{"message": "Hi.", "state": {"mood": "x"}} is JSON.',
    ],
)
def test_json_that_is_not_a_reply_is_an_answer(reply: str) -> None:
    read = parse_reply(TEXT, reply)

    assert (read.answer, read.missing, shown(TEXT, cut(reply, [3, 20]))) == (reply, True, reply)


@given(
    st.lists(st.sampled_from(["so", " it is", ".\n", "\n\n", "**really**", " `x`", "日本", "- a\n", "{x}"]), max_size=6),
    deltas,
    st.sampled_from(
        [
            "\n@@delta\n{}", "\n**@@delta**\n{}", " @@delta {}", "\n\n```json\n{}\n```", "\n```\n{}\n```\n", "\n{}",
            "\n@@delta\n```json\n{}\n```", " **@@delta {}**",
        ]
    ),
    PLACES,
)  # fmt: skip
def test_wherever_it_is_cut_nothing_of_a_delta_in_any_form_is_shown(
    words: list[str], delta: dict[str, Json], form: str, places: list[int]
) -> None:
    answer = "".join(["Well", *words])
    reply = answer + form.replace("{}", json.dumps(delta))

    assert parse_reply(TEXT, reply).delta == delta
    assert shown(TEXT, cut(reply, places)) == answer.rstrip()


def test_a_field_that_is_required_is_missed_in_a_reply_without_a_delta() -> None:
    field = StateField("mood", "str", required=True)

    for mode in ("text+delta", "json"):
        read = parse_reply(app(field, reply=mode), "Hi.")

        assert (read.answer, read.delta) == ("Hi.", None)
        assert read.problems


def test_words_in_place_of_a_json_reply_change_nothing() -> None:
    read = parse_reply(JSON, " I do not do JSON.\n")

    assert (read.answer, read.delta, read.missing) == ("I do not do JSON.", {}, True)


@pytest.mark.parametrize(
    ("reply", "answer", "fault"),
    [
        ('{"answer": "Hi.", "delta": {"mood": 3}}', "Hi.", "$.delta"),
        ('{"answer": "Hi.", "delta": {"mood": "so', "Hi.", ""),
        ('{"answer": "Hi, and th', "Hi, and th", ""),
    ],
)
def test_a_json_reply_that_cannot_be_used_keeps_as_much_of_its_answer_as_there_is(
    reply: str, answer: str, fault: str
) -> None:
    read = parse_reply(JSON, reply)

    assert (read.answer, read.delta) == (answer, None)
    assert fault in read.problems[0]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('<JSON>{"response": "Hi.", "topics": 3}</JSON>', "Hi."),
        ('<JSON>{"response": "Hi, and th', "Hi, and th"),
        ("I do not do JSON.", "I do not do JSON."),
    ],
)
def test_an_environment_that_cannot_be_used_keeps_its_response(reply: str, answer: str) -> None:
    read = parse_reply(WHOLE, reply)

    assert (read.answer, read.delta) == (answer, None)
    assert read.problems


def test_a_response_may_speak_of_the_markers() -> None:
    environment = {
        "response": f"Write {ENVIRONMENT[0]}{{}}{ENVIRONMENT[1]}!",
        "topics": [],
        "dictionary": {},
        "mood": None,
    }

    read = parse_reply(WHOLE, f"{ENVIRONMENT[0]}{json.dumps(environment)}{ENVIRONMENT[1]}")

    assert read.answer == environment["response"]


@pytest.mark.parametrize("mode", ["text+delta", "json", "environment"])
def test_json_nested_without_end_is_a_fault_and_nothing_worse(mode: ReplyMode) -> None:
    of = app(StateField("free", "any"), reply=mode)
    deep = '{"free": ' * 20_000
    reply = {
        "text+delta": f"Hi.\n{DELTA_LINE}\n{deep}",
        "json": f'{{"answer": "Hi.", "delta": {deep}',
        "environment": f'<JSON>{{"response": "Hi.", "free": {deep}',
    }[mode]

    read = parse_reply(of, reply)

    assert (read.answer, read.delta) == ("Hi.", None)
    assert shown(of, [reply]) == "Hi."


def test_half_a_character_in_an_answer_is_replaced() -> None:
    assert parse_reply(JSON, '{"answer": "so \\ud83d", "delta": {}}').answer == "so \ufffd"
    assert parse_reply(TEXT, "so \ud83d\n@@delta\n{}").answer == "so \ufffd"


def test_a_delta_alone_may_bring_its_line_along() -> None:
    assert parse_delta(TEXT, '@@delta\n{"mood": "x"}').delta == {"mood": "x"}
    assert parse_delta(TEXT, '{"mood": "x"}').delta == {"mood": "x"}
    assert parse_delta(TEXT, "sorry").delta is None


@pytest.mark.parametrize(
    "reply",
    [
        "word " * 40_000,
        "\n" * 200_000,
        "@@delta\n{\n" * 20_000,
        "@@delta\n{}\nx\n" * 15_000,
        f"Hi.\n@@delta\n{{{' ' * 200_000}",
    ],
)
def test_a_long_reply_in_small_chunks_costs_no_more_than_its_length(reply: str) -> None:
    looked_at = 0

    class Counted(AnswerWatcher):
        def feed(self, text: str):  # type: ignore[no-untyped-def]
            nonlocal looked_at
            before = self._scan_at
            seen = super().feed(text)
            looked_at += self._size + len(seen.show) if self._size >= before or seen.show else 0
            return seen

    watching = Counted(lambda text: text)
    for start in range(0, len(reply), 8):
        watching.feed(reply[start : start + 8])

    assert looked_at < 40 * len(reply)


def test_what_only_the_program_reads_is_not_shown() -> None:
    hidden = HideOutput()

    assert (hidden.feed("x").show, hidden.close().show) == ("", "")
