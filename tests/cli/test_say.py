"""`taiwa say`: one turn, what a script reads of it, and every way in which it can go wrong."""

import json
import os
import socket
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Place, Speaker, Taiwa, delta
from tests.peers.faults import head, raw, speech, status

REFUSED = status(401, b'{"error": {"message": "bad key"}}')


def test_the_answer_is_printed_and_its_state_is_not(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!", topics=["greeting"]))

    said = taiwa.ok("say", "Hi")

    assert said.out == "Hello!\n"
    assert said.err == ""


def test_json_holds_what_a_script_needs_to_go_on(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!", topics=["greeting"]))

    said = taiwa.ok("say", "--json", "Hi")

    told = said.json
    assert list(told) == [
        "session", "node", "parent", "text", "delta", "warnings", "usage", "cost", "seconds",
    ]  # fmt: skip
    assert (told["session"], told["text"], told["delta"]) == ("chat-1", "Hello!", {"topics": ["greeting"]})
    assert told["usage"]["cache_read_tokens"] == 4
    assert told["cost"] == 0
    assert said.out.count("\n") == 1


def test_two_words_are_an_app_and_a_text(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("It is a sentence."))

    taiwa.ok("say", "translate", "-p", "target_lang=English", "文です。")

    assert "into English" in speaker.requests[0]["messages"][0]["content"]
    assert taiwa.ok("log").lines[1].split()[0] == "translate-1"


def test_it_goes_on_with_the_latest_conversation_or_the_one_that_is_named(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(*[delta(answer) for answer in "abcd"])
    taiwa.ok("say", "one")
    taiwa.ok("say", "two")

    latest = taiwa.ok("say", "-c", "--json", "three").json
    named = taiwa.ok("say", "-s", "chat-1", "--json", "four").json

    assert (latest["session"], named["session"]) == ("chat-2", "chat-1")
    assert "two" in [message["content"] for message in speaker.requests[2]["messages"]]


def test_the_text_comes_from_standard_input_for_a_dash(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!"))

    taiwa.ok("say", "-", input="two\nlines\n")

    assert speaker.heard().startswith("two\nlines")


def test_verbose_tells_the_bill_aside(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!"))

    said = taiwa.ok("say", "-v", "Hi")

    assert said.out == "Hello!\n"
    assert said.err.startswith("chat-1 ")
    assert "1 call · 7 in (4 cached) + 3 out tokens · 0 USD" in said.err


def test_dry_run_shows_the_exact_request_and_sends_nothing(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!"), delta("Bye."))
    taiwa.ok("say", "Hi")

    told = taiwa.ok("say", "-c", "--dry-run", "--json", "Bye").json
    assert len(speaker.requests) == 1
    taiwa.ok("say", "-c", "Bye")

    assert told["body"] == speaker.requests[-1]
    assert told["url"].endswith("/v1/chat/completions")
    assert 0 < told["cached_tokens"] < told["tokens"]


def test_dry_run_needs_no_model(taiwa: Taiwa) -> None:
    shown = taiwa.ok("say", "--dry-run", "Hi")

    assert "── system" in shown.out
    assert "tokens in" in shown.out


def test_no_log_keeps_nothing(taiwa: Taiwa, speaker: Speaker, place: Place) -> None:
    speaker(delta("Hello!"))

    assert taiwa.ok("say", "--no-store", "Hi").out == "Hello!\n"

    assert not place.store.exists()


# --- a state that cannot be read --------------------------------------------------------------------------------------


def test_a_delta_of_the_wrong_type_is_asked_for_again_alone(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!", topics="tea"), '{"topics": ["tea"]}')

    told = taiwa.ok("say", "--json", "Hi").json

    assert told["text"] == "Hello!"
    assert told["delta"] == {"topics": ["tea"]}
    assert told["warnings"] == []
    assert told["usage"]["requests"] == 2
    assert "must be a list" in speaker.heard()


def test_a_delta_that_stays_wrong_is_left_out_with_a_warning(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("Hello!", topics="tea"), '{"topics": "tea"}')

    said = taiwa.ok("say", "Hi")

    assert said.out == "Hello!\n"
    assert said.err == 'the state was left as it was: $.topics = "tea": must be a list\n'
    assert taiwa.ok("state", "get", "topics").out == "[]\n"


def test_under_strict_the_turn_fails_and_its_bill_is_kept(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("One.", topics=["one"]), delta("Hello!", topics="tea"), '{"topics": "tea"}')
    taiwa.ok("say", "One")

    said = taiwa("say", "-c", "--strict", "Hi")

    assert said.code == 2
    assert said.err.splitlines()[-1].startswith("taiwa: the reply's state cannot be used")
    assert taiwa.ok("state", "--json").json["turn"] == 1
    assert taiwa.ok("cost", "--json").json[0]["requests"] == 3


JSON_APP = """\
---
taiwa: 1
name: form
state:
  name: { type: str, description: the name of the person }
reply: json
---
Ask for a name.
"""


def test_a_reply_that_is_no_json_in_json_mode_is_repaired(taiwa: Taiwa, speaker: Speaker, apps: object) -> None:
    assert callable(apps)
    apps("form", JSON_APP)
    speaker("I am sorry, but no.", '{"name": "Ada"}')

    told = taiwa.ok("say", "form", "I am Ada", "--json").json

    assert told["text"] == "I am sorry, but no."
    assert told["delta"] == {"name": "Ada"}


def test_a_json_reply_shows_its_answer_alone(taiwa: Taiwa, speaker: Speaker, apps: object) -> None:
    assert callable(apps)
    apps("form", JSON_APP)
    speaker('{"answer": "Hello, Ada!", "delta": {"name": "Ada"}}')

    assert taiwa.ok("say", "form", "I am Ada").out == "Hello, Ada!\n"


# --- what a person may do wrong ---------------------------------------------------------------------------------------


def test_without_a_model_the_small_one_says_how_to_set_a_larger_one(taiwa: Taiwa) -> None:
    said = taiwa.ok("say", "Hi", "-v")

    assert "taiwa config set model" in said.out
    assert "no model is set, so the built-in small model" in said.err
    assert taiwa.ok("say", "Hi").err == ""
    assert "モデル" in taiwa.ok("say", "こんにちは").out


@pytest.mark.parametrize("words", [(), ("a", "b", "c")])
def test_too_few_or_too_many_words_are_told_the_form(taiwa: Taiwa, words: tuple[str, ...]) -> None:
    said = taiwa("say", *words)

    assert said.code == 2
    assert 'taiwa say [APP] "TEXT"' in said.err


WRONG = {
    "an empty text": (("say", ""), b"", "there is nothing to say: the text is empty"),
    "an empty input": (("say", "-"), b" \n", "there is nothing to say: the text is empty"),
    "ten megabytes": (
        ("say", "-"),
        b"x" * 10_000_000,
        "standard input is too large; a turn can have 2,000,000 characters",
    ),
    "three million characters": (
        ("say", "-"),
        b"x" * 3_000_000,
        "the text has 3,000,000 characters; at most 2,000,000",
    ),
    "bytes that are no text": (("say", "-"), b"abc\xffdef", "standard input is not UTF-8 at byte 3"),
    "bytes in the argument": (("say", "abc\udcff"), b"", "the text is not UTF-8 at character 4"),
    "an unknown app": (("say", "translat", "Hi"), b"", "there is no app 'translat'; did you mean 'translate'?"),
    "a missing param": (("say", "translate", "Hi"), b"", "requires the parameter 'target_lang'; pass -p target_lang="),
    "an unknown param": (("say", "-p", "x=1", "Hi"), b"", "the app 'chat' has no parameter 'x'"),
    "a param without a value": (("say", "-p", "x", "Hi"), b"", "-p must be KEY=VALUE, got 'x'"),
    "an app for a conversation that has one": (
        ("say", "code", "-s", "old", "Hi"),
        b"",
        "has the app 'chat'",
    ),
    "params for a conversation that has them": (
        ("say", "-s", "old", "-p", "x=1", "Hi"),
        b"",
        "has its parameters;",
    ),
    "a name that is none": (("say", "-s", "a b", "Hi"), b"", "a session name must not contain spaces"),
    "a model without a place": (("say", "-m", "gpt-4o", "Hi"), b"", "did you mean 'openai:gpt-4o'?"),
    "a model without its key": (
        ("say", "-m", "openai:x", "Hi"),
        b"",
        "no key for openai:x: run `taiwa keys set openai`",
    ),
    "a cost that is none": (("say", "--max-cost", "much", "Hi"), b"", "must be a number such as 0.25"),
}


@pytest.mark.parametrize(("words", "given", "line"), WRONG.values(), ids=list(WRONG))
def test_bad_input_is_one_line_and_is_not_sent(
    taiwa: Taiwa, speaker: Speaker, words: tuple[str, ...], given: bytes, line: str
) -> None:
    speaker(delta("Hello!"))
    taiwa.ok("say", "-s", "old", "Hi")

    said = taiwa(*words, input=given)

    assert said.code == 2
    assert said.err.startswith("taiwa: ")
    assert said.err.count("\n") == 1
    assert line in said.err
    assert len(speaker.requests) == 1


def test_a_price_that_nobody_gave_makes_a_cost_limit_an_error(taiwa: Taiwa, speaker: Speaker, place: Place) -> None:
    speaker(delta("Hello!"))
    place.set(model=speaker.model.replace("127.0.0.1", "0.0.0.0"))

    said = taiwa("say", "--max-cost", "1", "Hi")

    assert said.code == 2
    assert "the price of" in said.err
    assert not speaker.requests


# --- what a server may do ---------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_one_line(taiwa: Taiwa, place: Place) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place.set(model=f"http://127.0.0.1:{port}/v1#x", attempts=1)

    said = taiwa("say", "Hi")

    assert said.code == 1
    assert said.err.count("\n") == 1
    assert f"127.0.0.1:{port}" in said.err


FAILURES = {
    "a wrong key": (REFUSED, 1, "401"),
    "nonsense": (raw(head(9, "text/html") + b"<html></>", close=True), 1, ""),
    "an answer that is cut off": (raw(head() + b'data: {"choices": [{"delta": {"content": "Hel'), 1, ""),
    "too many requests": (status(429, b"slow down", retry_after="1"), 1, ""),
    "a failure inside": (status(500, b"no"), 1, "500"),
}


@pytest.mark.parametrize(("act", "code", "part"), FAILURES.values(), ids=list(FAILURES))
def test_a_call_that_fails_is_one_line_and_the_conversation_has_not_moved(
    taiwa: Taiwa, speaker: Speaker, act: object, code: int, part: str
) -> None:
    speaker(delta("One."), act)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    taiwa.ok("say", "One")

    said = taiwa("say", "-c", "Two")

    assert said.code == code
    assert said.err.startswith("taiwa: ")
    assert said.err.count("\n") == 1
    assert part in said.err
    assert taiwa.ok("log").lines[1].split()[2] == "1"


def test_control_codes_of_an_answer_are_shown_and_not_sent(taiwa: Taiwa, speaker: Speaker) -> None:
    speaker(delta("\x1b]0;owned\x07\x1b[2J\u202egnp"))

    said = taiwa.ok("say", "Hi")
    shown = taiwa.ok("show").out

    assert said.out == "␛]0;owned␇␛[2J\ufffdgnp\n"
    assert "\x1b" not in shown
    assert "\u202e" not in shown


# --- what a store may be ----------------------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_is_one_line(taiwa: Taiwa, speaker: Speaker, place: Place) -> None:
    speaker(delta("Hello!"))

    said = taiwa("say", "--store", "/proc/taiwa.db", "Hi")

    assert said.code == 2
    assert said.err.count("\n") == 1
    assert not speaker.requests


def test_a_file_that_is_no_store_is_one_line(taiwa: Taiwa, speaker: Speaker, place: Place) -> None:
    speaker(delta("Hello!"))
    place.store.write_bytes(b"no database at all, but long enough to be one" * 100)

    said = taiwa("say", "Hi")

    assert said.code == 2
    assert str(place.store) in said.err
    assert said.err.count("\n") == 1


def test_a_store_of_a_newer_version_is_left_alone(taiwa: Taiwa, speaker: Speaker, place: Place) -> None:
    speaker(delta("Hello!"))
    taiwa.ok("say", "Hi")
    with sqlite3.connect(place.store) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()

    said = taiwa("log")

    assert said.code == 2
    assert "has format 99, this version of taiwa reads up to" in said.err


def test_of_two_writers_one_wins_and_the_other_loses_nothing(
    taiwa: Taiwa, speaker: Speaker, place: Place, tmp_path: Path
) -> None:
    speaker(delta("One."), speech(delta("Slow."), wait=1.0), delta("Quick."))
    taiwa.ok("say", "One")
    slow = taiwa.start("say", "-s", "chat-1", "Slow")
    while len(speaker.seen) < 2:
        os.sched_yield()

    taiwa.ok("say", "-s", "chat-1", "Quick")
    _, err = slow.communicate(timeout=300)

    assert slow.returncode == 2
    assert b"another program changed it first" in err
    told = taiwa.ok("log", "chat-1", "--json").json
    assert [turn["user"] for turn in told] == [None, "One", "Quick"]
    assert json.loads(taiwa.ok("cost", "--json").out)[0]["requests"] == 3
