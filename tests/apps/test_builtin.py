"""The apps that come with the package: sound, in every reply mode, with replies that read back as they were written."""

import re
from pathlib import Path

import pytest

from taiwa.apps.catalog import BUILT_IN, check, load, load_source, load_text
from taiwa.conversation.app import App, ReplyMode, WindowPolicy
from taiwa.conversation.history import add_turn, apply_nodes, begin
from taiwa.conversation.replies import parse_reply
from taiwa.conversation.turn_prompt import example_replies, turn_request

ASK = BUILT_IN / "ask.md"
PLAIN = BUILT_IN / "plain.md"
STATELESS = (ASK, BUILT_IN / "extract.md", PLAIN, BUILT_IN / "solve.md")
FILES = sorted(path for path in BUILT_IN.iterdir() if path not in STATELESS)
"""The apps with a state that the model writes."""
PUBLISHED = {
    "chat": {"topics", "language", "summary", "confidence", "ambiguity", "turns", "tokens"},
    "translate": {"dictionary", "turns", "tokens"},
    "novel": {"summary", "turns", "tokens"},
    "code": {"topics", "language", "summary", "turns"},
    "linguistic": {"sentence_type", "sentiment", "summary", "relevance", "turns", "tokens"},
    "order": {"items", "status", "language", "turns", "tokens"},
}
MODES: tuple[ReplyMode, ...] = ("auto", "text+delta", "json", "environment")


def opened(path: Path) -> App:
    values = {"target_lang": "German"} if path.stem == "translate" else {}
    return load(path).with_params(values)


@pytest.fixture(params=FILES, ids=[path.stem for path in FILES])
def app(request: pytest.FixtureRequest) -> App:
    return opened(request.param)


def test_all_six_are_there() -> None:
    assert [path.stem for path in FILES] == sorted(PUBLISHED)


def test_the_app_ask_only_answers_from_documents() -> None:
    app = load(ASK).with_params({})

    assert app.only_answers
    assert app.values == {
        "in": [],
        "as": [],
        "quote": False,
        "policy": "look_first",
        "max_questions": None,
        "assess_by": "",
        "user": "",
    }
    assert (app.window, app.fields) == (WindowPolicy(20, 10), ())
    assert load_source(app.source).hash == app.hash


def test_the_plain_one_adds_nothing_to_what_the_user_wrote() -> None:
    conversation = begin(load(PLAIN).with_params({}))

    messages = turn_request(add_turn(conversation, "One?", "1\n@@delta\n{}", {}), "Two?").messages

    assert [(message.role, message.text) for message in messages] == [
        ("user", "One?"),
        ("assistant", "1\n@@delta\n{}"),
        ("user", "Two?"),
    ]
    assert conversation.state == {}
    assert parse_reply(conversation.app, "1\n@@delta\n{}").answer == "1\n@@delta\n{}"


@pytest.mark.parametrize("path", [*FILES, *STATELESS], ids=[path.stem for path in (*FILES, *STATELESS)])
def test_it_has_neither_errors_nor_warnings(path: Path) -> None:
    assert check(path) == ()


def test_it_has_the_fields_that_were_published_and_counts_itself(app: App) -> None:
    derived = {field.name for field in app.fields if field.computed}

    assert {field.name for field in app.fields} >= PUBLISHED[app.name]
    assert {"turns", "tokens"} <= derived


def test_every_field_that_the_model_writes_says_what_belongs_there(app: App) -> None:
    assert all(field.description for field in app.model_fields)


def test_its_window_grows_to_twenty_turns_and_is_cut_to_ten(app: App) -> None:
    assert (app.window.max_size, app.window.keep) == (20, 10)
    assert bool(app.summary_prompt) == app.window.summarize
    assert app.window == WindowPolicy(20, 10, app.window.summarize)


def test_it_comes_back_from_its_source(app: App) -> None:
    assert load_source(app.source).hash == app.hash


@pytest.mark.parametrize("mode", MODES)
def test_the_replies_of_its_examples_read_back_in_every_mode(app: App, mode: ReplyMode) -> None:
    others = re.sub(r"^reply: .*\n", "", app.source.source, flags=re.MULTILINE)
    shown = load_text(others.replace("\n", f"\nreply: {mode}\n", 1), "the app", app.name).with_params(app.values)
    conversation = begin(shown)

    replies = example_replies(shown, shown.layout())
    for example, reply in zip(app.examples, replies, strict=True):
        assert f"\nThe reply is:\n{reply}\n" in turn_request(conversation, "x").messages[0].text
        read = parse_reply(shown, reply)
        assert read.problems == ()
        assert read.answer == example.answer
        conversation = add_turn(conversation, example.user, read.answer, read.delta)

    expected = begin(app)
    for example in app.examples:
        expected = add_turn(expected, example.user, example.answer, example.delta)
    assert conversation.state == expected.state


def test_its_examples_fold_into_a_state_that_replays(app: App) -> None:
    conversation = begin(app)
    for example in app.examples:
        conversation = add_turn(conversation, example.user, example.answer, example.delta)

    again = apply_nodes(begin(app), ((node.hash, node) for node in conversation.new_nodes[1:]), lambda _: app)

    assert again.state_hash == conversation.state_hash
    assert conversation.state["turns"] == len(app.examples)


def test_the_examples_of_translate_pull_towards_no_language_and_leave_no_term() -> None:
    app = opened(BUILT_IN / "translate.md")

    assert not any(char.isalpha() for example in app.examples for char in example.user + example.answer)
    assert "into German" in app.instructions


def test_no_built_in_app_shows_facts_that_a_model_could_keep() -> None:
    talking = [path.stem for path in FILES if opened(path).examples]

    assert talking == ["order", "translate"]


def test_every_bracket_of_a_parse_is_closed() -> None:
    shown = re.findall(r"`(\[.*?)`", opened(BUILT_IN / "linguistic.md").body)

    assert shown
    for parse in shown:
        depth = [parse[:end].count("[") - parse[:end].count("]") for end in range(1, len(parse) + 1)]
        assert min(depth) >= 0
        assert depth[-1] == 0
