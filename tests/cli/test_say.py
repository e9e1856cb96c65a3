"""`taiwa say`: one turn, what a script reads of it, and every way in which it can go wrong."""

import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.peers.faults import DONE, FaultServer, Scene, event, head, raw, speech, status

REFUSED = status(401, b'{"error": {"message": "bad key"}}')


def test_the_answer_is_printed_and_its_state_is_not(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics=["greeting"]))

    result = taiwa.ok("say", "chat", "Hi")

    assert result.out == "Hello!\n"
    assert result.err == ""


def test_json_has_what_a_script_needs_to_continue(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics=["greeting"]))

    result = taiwa.ok("say", "chat", "--json", "Hi")

    data = result.json
    assert list(data) == [
        "session", "node", "parent", "text", "value", "delta", "findings", "state_read", "warnings", "usage", "cost", "seconds",
    ]  # fmt: skip
    assert (data["session"], data["text"], data["delta"]) == ("chat-1", "Hello!", {"topics": ["greeting"]})
    assert data["usage"]["cache_read_tokens"] == 4
    assert data["cost"] == 0
    assert result.out.count("\n") == 1


def test_two_words_are_an_app_and_a_text(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("It is a sentence."))

    taiwa.ok("say", "translate", "-p", "target_lang=English", "文です。")

    assert "into English" in model_server.requests[0]["messages"][0]["content"]
    assert taiwa.ok("log").lines[1].split()[0] == "translate-1"


def test_the_latest_or_the_named_conversation_is_continued(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*[delta(answer) for answer in "abcd"])
    taiwa.ok("say", "chat", "one")
    taiwa.ok("say", "chat", "two")

    latest = taiwa.ok("say", "-c", "--json", "three").json
    named = taiwa.ok("say", "chat", "-s", "chat-1", "--json", "four").json

    assert (latest["session"], named["session"]) == ("chat-2", "chat-1")
    assert "two" in [message["content"] for message in model_server.requests[2]["messages"]]


def test_the_text_comes_from_standard_input_for_a_dash(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    taiwa.ok("say", "chat", "-", input="two\nlines\n")

    assert model_server.last_message().startswith("two\nlines")


def test_verbose_prints_the_bill_to_standard_error(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    result = taiwa.ok("say", "chat", "-v", "Hi")

    assert result.out == "Hello!\n"
    assert result.err.startswith("chat-1 ")
    assert "1 call · 7 in (4 cached) + 3 out tokens · 0 USD" in result.err
    assert "first word after" in result.err


def test_an_answer_that_is_not_streamed_has_no_time_of_its_first_word(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server('{"age": 3}')

    assert "first word" not in taiwa.ok("say", "--type", "age int", "-v", "Hi").err


def test_dry_run_shows_the_exact_request_and_sends_nothing(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"), delta("Bye."))
    taiwa.ok("say", "chat", "Hi")

    data = taiwa.ok("say", "-c", "--dry-run", "--json", "Bye").json
    assert len(model_server.requests) == 1
    taiwa.ok("say", "-c", "Bye")

    assert data["body"] == model_server.requests[-1]
    assert data["url"].endswith("/v1/chat/completions")
    assert 0 < data["cached_tokens"] < data["tokens"]


def test_dry_run_needs_no_model(taiwa: Taiwa) -> None:
    shown = taiwa.ok("say", "chat", "--dry-run", "Hi")

    assert "── system" in shown.out
    assert "tokens in" in shown.out


def test_no_store_writes_nothing(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))

    assert taiwa.ok("say", "chat", "--no-store", "Hi").out == "Hello!\n"

    assert not place.store.exists()


# --- a state that cannot be read --------------------------------------------------------------------------------------


def test_only_a_delta_of_the_wrong_type_is_requested_again(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics="tea"), '{"topics": ["tea"]}')

    data = taiwa.ok("say", "chat", "--json", "Hi").json

    assert data["text"] == "Hello!"
    assert data["delta"] == {"topics": ["tea"]}
    assert data["warnings"] == []
    assert data["usage"]["requests"] == 2
    assert "must be a list" in model_server.last_message()


def test_a_delta_that_stays_invalid_is_discarded_with_a_warning(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics="tea"), '{"topics": "tea"}')

    result = taiwa.ok("say", "chat", "Hi")

    assert result.out == "Hello!\n"
    assert result.err == 'the state is unchanged: $.topics = "tea": must be a list\n'
    assert taiwa.ok("state", "get", "topics").out == "[]\n"


def test_under_strict_the_turn_fails_and_its_bill_is_kept(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("One.", topics=["one"]), delta("Hello!", topics="tea"), '{"topics": "tea"}')
    taiwa.ok("say", "chat", "One")

    result = taiwa("say", "-c", "--strict", "Hi")

    assert result.code == 1
    assert result.err.splitlines()[-1].startswith("taiwa: the reply's state cannot be used")
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


def test_a_reply_without_json_in_json_mode_is_an_answer_and_says_that_the_state_is_unchanged(
    taiwa: Taiwa, model_server: ModelServer, apps: object
) -> None:
    assert callable(apps)
    apps("form", JSON_APP)
    model_server("I am sorry, but no.")

    result = taiwa.ok("say", "form", "I am Ada", "--json")

    data = result.json
    assert (data["text"], data["delta"], data["state_read"]) == ("I am sorry, but no.", {}, False)
    assert data["warnings"] == ["the state is unchanged: the model wrote no state"]
    assert "the state is unchanged: the model wrote no state" in result.err


def test_a_json_reply_shows_its_answer_alone(taiwa: Taiwa, model_server: ModelServer, apps: object) -> None:
    assert callable(apps)
    apps("form", JSON_APP)
    model_server('{"answer": "Hello, Ada!", "delta": {"name": "Ada"}}')

    assert taiwa.ok("say", "form", "I am Ada").out == "Hello, Ada!\n"


@pytest.mark.parametrize("raw", ["one\r\ntwo\r\n".encode("utf-16"), b"\xef\xbb\xbfone\r\ntwo\r\n", b"one\ntwo\n"])
def test_text_of_another_system_is_read_as_text(raw: bytes, taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("Hi.")

    taiwa.ok("say", "plain", "-", input=raw)

    assert model_server.last_message() == "one\ntwo"


# --- what a person may do wrong ---------------------------------------------------------------------------------------


def test_without_a_model_one_line_says_how_to_set_one(taiwa: Taiwa) -> None:
    result = taiwa("say", "chat", "Hi", "-v")

    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "no model is set" in result.err


@pytest.mark.parametrize("words", [(), ("a", "b", "c")])
def test_too_few_or_too_many_arguments_print_the_usage(taiwa: Taiwa, words: tuple[str, ...]) -> None:
    result = taiwa("say", *words)

    assert result.code == 2
    assert 'taiwa say [APP] "TEXT"' in result.err


WRONG = {
    "an empty text": (("say", "chat", ""), b"", "the text is empty"),
    "an empty input": (("say", "chat", "-"), b" \n", "the text is empty"),
    "ten megabytes": (
        ("say", "chat", "-"),
        b"x" * 10_000_000,
        "standard input is too large; a turn has at most 2,000,000 characters",
    ),
    "three million characters": (
        ("say", "chat", "-"),
        b"x" * 3_000_000,
        "the text has 3,000,000 characters; at most 2,000,000",
    ),
    "bytes that are no text": (("say", "chat", "-"), b"abc\xffdef", "standard input is not UTF-8 at byte 3"),
    "bytes in the argument": (("say", "chat", "abc\udcff"), b"", "the text is not UTF-8 at character 4"),
    "an unknown app": (("say", "translat", "Hi"), b"", "app 'translat' not found; did you mean 'translate'?"),
    "a missing param": (("say", "translate", "Hi"), b"", "requires the parameter 'target_lang'; pass -p target_lang="),
    "an unknown param": (("say", "chat", "-p", "x=1", "Hi"), b"", "the app 'chat' has no parameter 'x'"),
    "a param without a value": (("say", "chat", "-p", "x", "Hi"), b"", "-p must be KEY=VALUE, got 'x'"),
    "an app for a conversation that has one": (
        ("say", "code", "-s", "old", "Hi"),
        b"",
        "has the app 'chat'",
    ),
    "params for a conversation that has them": (
        ("say", "chat", "-s", "old", "-p", "x=1", "Hi"),
        b"",
        "has its parameters;",
    ),
    "a name that is none": (("say", "chat", "-s", "a b", "Hi"), b"", "a session name must not contain spaces"),
    "a model without a place": (("say", "chat", "-m", "gpt-4o", "Hi"), b"", "did you mean 'openai:gpt-4o'?"),
    "a model without its key": (
        ("say", "chat", "-m", "openai:x", "Hi"),
        b"",
        "no key for openai:x: run `taiwa keys set openai`",
    ),
    "a cost that is no number": (
        ("say", "--max-cost", "much", "Hi"),
        b"",
        "taiwa: --max-cost must be a number such as 0.25, or none for no limit, not 'much'",
    ),
    "a temperature in words": (("say", "--temperature", "hot", "Hi"), b"", "'hot' is not a number"),
    "a number that is not whole": (("say", "--max-tokens", "1.5", "Hi"), b"", "'1.5' is not a whole number"),
}


@pytest.mark.parametrize(("words", "given", "line"), WRONG.values(), ids=list(WRONG))
def test_bad_input_is_one_line_and_is_not_sent(
    taiwa: Taiwa, model_server: ModelServer, words: tuple[str, ...], given: bytes, line: str
) -> None:
    model_server(delta("Hello!"))
    taiwa.ok("say", "chat", "-s", "old", "Hi")

    result = taiwa(*words, input=given)

    assert result.code == 2
    assert result.err.startswith("taiwa: ")
    assert result.err.count("\n") == 1
    assert line in result.err
    assert len(model_server.requests) == 1


def test_a_cost_limit_without_a_known_price_is_an_error(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))
    place.set(model=model_server.model.replace("127.0.0.1", "0.0.0.0"))

    result = taiwa("say", "--max-cost", "1", "Hi")

    assert result.code == 2
    assert "the price of" in result.err
    assert not model_server.requests


# --- what a server may do ---------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_one_line(taiwa: Taiwa, place: Place) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place.set(model=f"http://127.0.0.1:{port}/v1#x", attempts=1)

    result = taiwa("say", "chat", "Hi")

    assert result.code == 1
    assert result.err.count("\n") == 1
    assert f"127.0.0.1:{port}" in result.err


FAILURES = {
    "a wrong key": (REFUSED, 1, "401"),
    "nonsense": (raw(head(9, "text/html") + b"<html></>", close=True), 1, ""),
    "an answer that is cut off": (raw(head() + b'data: {"choices": [{"delta": {"content": "Hel'), 1, ""),
    "too many requests": (status(429, b"slow down", retry_after="1"), 1, ""),
    "a failure inside": (status(500, b"no"), 1, "500"),
}


@pytest.mark.parametrize(("act", "code", "part"), FAILURES.values(), ids=list(FAILURES))
def test_a_failed_call_is_one_line_and_leaves_the_conversation_unchanged(
    taiwa: Taiwa, model_server: ModelServer, act: object, code: int, part: str
) -> None:
    model_server(delta("One."), act)  # type: ignore[arg-type]
    taiwa.ok("say", "chat", "One")

    result = taiwa("say", "-c", "Two")

    assert result.code == code
    assert result.err.startswith("taiwa: ")
    assert result.err.count("\n") == 1
    assert part in result.err
    assert taiwa.ok("log").lines[1].split()[2] == "1"


def test_control_codes_of_an_answer_are_shown_and_not_sent(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("\x1b]0;owned\x07\x1b[2J\u202egnp"))

    result = taiwa.ok("say", "chat", "Hi")
    shown = taiwa.ok("show").out

    assert result.out == "␛]0;owned␇␛[2J\ufffdgnp\n"
    assert "\x1b" not in shown
    assert "\u202e" not in shown


# --- what a store may be ----------------------------------------------------------------------------------------------


def test_a_store_that_cannot_be_written_is_one_line(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))

    result = taiwa("say", "chat", "--store", "/proc/taiwa.db", "Hi")

    assert result.code == 2
    assert result.err.count("\n") == 1
    assert not model_server.requests


def test_a_file_that_is_not_a_store_is_an_error_of_one_line(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server(delta("Hello!"))
    place.store.write_bytes(b"no database at all, but long enough to be one" * 100)

    result = taiwa("say", "chat", "Hi")

    assert result.code == 2
    assert str(place.store) in result.err
    assert result.err.count("\n") == 1


def test_a_store_of_a_newer_version_is_left_alone(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))
    taiwa.ok("say", "chat", "Hi")
    with sqlite3.connect(place.store) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()

    result = taiwa("log")

    assert result.code == 2
    assert "has format 99, this version of taiwa reads up to" in result.err


def test_of_two_concurrent_turns_one_is_committed_and_the_other_is_a_conflict(
    taiwa: Taiwa, model_server: ModelServer, place: Place, tmp_path: Path
) -> None:
    asked, committed = Event(), Event()

    async def late(scene: Scene) -> None:
        asked.set()
        while not committed.is_set():
            await scene.pause(0.01)
        await speech(delta("Slow."))(scene)

    model_server(delta("One."), late, delta("Quick."))
    taiwa.ok("say", "chat", "One")
    slow = taiwa.fork("say", "chat", "-s", "chat-1", "Slow")
    assert asked.wait(300)

    taiwa.ok("say", "chat", "-s", "chat-1", "Quick")
    committed.set()
    _, err = slow.communicate(timeout=300)

    assert slow.returncode == 2
    assert b"another program changed it first" in err
    data = taiwa.ok("log", "chat-1", "--json").json
    assert [turn["user"] for turn in data] == [None, "One", "Quick"]
    assert json.loads(taiwa.ok("cost", "--json").out)[0]["requests"] == 3


def test_without_an_app_the_prompt_is_what_the_user_wrote(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One.\n@@delta\n{}", "Two.", "Three.")

    taiwa.ok("say", "first")
    taiwa.ok("say", "-c", "second")
    taiwa.ok("edit", "plain-1", "other")

    messages = [(each["role"], each["content"]) for each in model_server.requests[-1]["messages"]]
    assert messages == [("user", "first"), ("assistant", "One.\n@@delta\n{}"), ("user", "other")]
    assert taiwa.ok("show", "plain-1").out.count("\n\n") == 2
    assert taiwa.ok("undo").out == "back to turn 2\n"
    assert taiwa.ok("state").err == "app plain has no state\n"


def test_chat_begins_with_the_plain_app_too(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("Hello!")

    taiwa.ok("chat", input="Hi\n")

    assert model_server.requests[0]["messages"] == [{"role": "user", "content": "Hi"}]
    assert taiwa.ok("log").lines[1].split()[:2] == ["plain-1", "plain"]


def test_no_code_of_typed_answers_runs_without_an_app(place: Place, model_server: ModelServer) -> None:
    from tests.house.figures import trace

    model_server("Hello!")

    ran = trace(place.folder, "say", "Hi", "--model", model_server.model)

    assert not [file for file in ran.functions if "/taiwa/structured/" in file]


@pytest.mark.parametrize(
    ("words", "piped", "sent"),
    [
        (("Sum up:",), "one\ntwo\n", "Sum up:\n\none\ntwo"),
        (("Sum up:", "-"), "one\n", "Sum up:\n\none"),
        (("plain", "Sum up:"), "one\n", "Sum up:\n\none"),
        (("plain", "Sum up:", "-"), "one\n", "Sum up:\n\none"),
        (("plain", "-"), "one\n", "one"),
        (("-",), "one\n", "one"),
        ((), "one\n", "one"),
        (("Hi",), "", "Hi"),
        (("plain",), "one\n", "one"),
        (("plain",), "", "plain"),
        (("-c", "plain"), "one\n", "plain\n\none"),
    ],
)
def test_piped_text_follows_the_prompt(
    taiwa: Taiwa, model_server: ModelServer, words: tuple[str, ...], piped: str, sent: str
) -> None:
    model_server("Done.", "Done.")
    if "-c" in words:
        taiwa.ok("say", "Hi")

    taiwa.ok("say", *words, input=piped)

    assert model_server.last_message() == sent


def test_the_only_word_is_the_app_of_text_that_is_piped_or_in_a_file(
    taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server("Done.", "Done.")
    (place.folder / "in.txt").write_text("one\n")

    piped = taiwa.ok("say", "chat", "--json", input="one\n").json
    read = taiwa.ok("say", "chat", "-f", str(place.folder / "in.txt"), "--json").json

    assert [taiwa.ok("log", each["session"], "--json").json[-1]["user"] for each in (piped, read)] == ["one", "one"]
    assert {each["session"].rpartition("-")[0] for each in (piped, read)} == {"chat"}


def test_a_file_as_standard_input_is_piped_text(taiwa: Taiwa, place: Place, model_server: ModelServer) -> None:
    model_server("Done.", "Done.")
    (place.folder / "in.txt").write_text("one\n")

    for source in ("< in.txt", "< /dev/null"):
        command = f"{sys.executable} -m taiwa say --no-store 'Sum up:' {source}"
        subprocess.run(["bash", "-c", command], check=True, env=place.environment(), cwd=place.folder)

    assert [model_server.last_message(number) for number in (0, 1)] == ["Sum up:\n\none", "Sum up:"]


def test_a_prompt_that_waits_for_piped_text_says_so(taiwa: Taiwa, place: Place, model_server: ModelServer) -> None:
    model_server("Done.")
    command = [sys.executable, "-m", "taiwa", "say", "--no-store", "Sum up:"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=place.environment(), text=True
    )
    assert process.stderr is not None

    assert process.stderr.readline() == "waiting for the end of standard input; < /dev/null passes none\n"
    process.communicate("one\n", timeout=300)

    assert model_server.last_message() == "Sum up:\n\none"


def test_a_conversation_keeps_its_model(taiwa: Taiwa, place: Place, model_server: ModelServer) -> None:
    model_server("A", "B", "C", "D", "E")
    place.set(attempts=1)
    taiwa.ok("say", "-m", f"{model_server.url}#first", "one")
    place.set(attempts=1, model=f"{model_server.url}#configured")

    taiwa.ok("say", "-c", "two")
    taiwa.ok("retry")
    taiwa.ok("say", "-c", "-m", f"{model_server.url}#second", "three")
    taiwa.ok("edit", "3", "four")

    assert [request["model"] for request in model_server.requests] == ["first"] * 3 + ["second"] * 2
    rows = [line.split(" · ")[2] for line in taiwa.ok("log", "plain-1").lines if line.startswith("turn")]
    assert rows == [f"{model_server.url}#{name}" for name in ("first", "first", "second")]


def test_the_built_in_model_does_not_take_over_a_conversation(
    taiwa: Taiwa, place: Place, model_server: ModelServer
) -> None:
    model_server("A", "B")
    place.set(attempts=1)
    taiwa.ok("say", "-m", model_server.model, "one")

    assert taiwa.ok("say", "-c", "two").out == "B\n"


@pytest.mark.parametrize("capable", [True, False])
@pytest.mark.parametrize(
    "keys", ["about: nothing", "tools: [calculator]", "reply: json\nstate: { topics: { type: 'list[str]' } }"]
)
def test_a_dry_run_shows_the_request_that_is_sent(
    taiwa: Taiwa, model_server: ModelServer, apps: Callable[[str, str], Path], keys: str, capable: bool
) -> None:
    apps("own", f"---\ntaiwa: 1\nname: own\n{keys}\n---\nTalk.\n")
    model_server('{"answer": "A", "delta": {}}')
    capabilities = {model_server.model: {"tools": capable, "json_schema": capable}}
    model_server('{"answer": "A", "delta": {}}', capabilities=capabilities)

    shown = taiwa.ok("say", "own", "--dry-run", "--json", "Hi").json["body"]
    taiwa.ok("say", "own", "Hi")

    assert model_server.requests[0] == shown


def test_a_dry_run_of_an_app_that_searches_is_refused(taiwa: Taiwa) -> None:
    refused = taiwa("say", "ask", "--dry-run", "Hi")

    assert (refused.code, "searches documents before its first request" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("does", "message"),
    [("yield AskUser('Who?')", "the program ends, or asks the user,"), ("yield CallTool('price', {})", "the program waits for CallTool")],
)  # fmt: skip
def test_a_dry_run_of_a_program_without_a_first_request_is_one_line(
    taiwa: Taiwa, apps: Callable[[str, str], Path], does: str, message: str
) -> None:
    own = apps("own", "---\ntaiwa: 1\nname: own\nflow: asks.py:turn\n---\nTalk.\n")
    code = f"from taiwa.programs import AskUser, CallTool\n\n\ndef turn(conversation, text):\n    return ({does})\n"
    (own.parent / "asks.py").write_text(code)
    taiwa.ok("apps", "confirm", "own", "--yes")

    for command in (("say", "own", "--dry-run", "Hi"), ("apps", "render", "own")):
        refused = taiwa(*command)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert f"there is no request to show: {message}" in refused.err


def test_a_rendered_app_shows_its_tools(taiwa: Taiwa, apps: Callable[[str, str], Path]) -> None:
    apps("own", "---\ntaiwa: 1\nname: own\ntools: [calculator]\n---\nTalk.\n")

    assert "── tools: calculator ──" in taiwa.ok("apps", "render", "own").out


def test_conversations_with_equal_histories_keep_their_own_models(taiwa: Taiwa, model_server: ModelServer) -> None:
    with FaultServer() as other:
        other.plays(speech("A."), speech("from the other"))
        model_server("A.")
        taiwa.ok("say", "-s", "a", "Hi")
        taiwa.ok("say", "-s", "b", "-m", f"{other.base_url}#x", "Hi")

        assert "from the other" in taiwa.ok("say", "-s", "b", "again").out


def test_line_breaks_of_two_characters_are_line_breaks(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("One\r\nTwo\rThree\r\n")

    assert taiwa.ok("say", "Count.").out == "One\nTwo␍Three\n\n"


@pytest.mark.parametrize("command", [("say",), ("generate",), ("extract", "name, age int"), ("solve",)])
def test_a_refusal_is_no_answer_in_a_pipe(taiwa: Taiwa, model_server: ModelServer, command: tuple[str, ...]) -> None:
    refusal = event({"refusal": "I cannot help with that."})
    model_server(*[raw(head(), refusal, event({}, finish="stop"), DONE)] * 3)

    done = taiwa(*command, "Do it.")

    assert done.code == 4
    assert done.out == "" or command == ("solve",)
    assert "refused" in done.err


def test_the_text_of_a_model_before_its_calls_is_not_the_answer(taiwa: Taiwa, model_server: ModelServer) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "calculator", "arguments": '{"expression": "2+3"}'}}
    asks = event({"content": "Let me see.", "tool_calls": [call]}), event({}, finish="tool_calls"), DONE
    model_server(raw(head(), *asks), "It is 5.", capabilities={model_server.model: {"tools": True}})

    assert taiwa.ok("say", "--tool", "calculator", "What is 2+3?").out == "It is 5.\n"


def test_a_conversation_calls_the_tools_of_an_mcp_server(taiwa: Taiwa, model_server: ModelServer) -> None:
    pytest.importorskip("mcp")
    call = [{"index": 0, "id": "a", "function": {"name": "taiwa_calculator", "arguments": '{"expression": "6*7"}'}}]
    model_server(
        raw(head(), event({"tool_calls": call}), event({}, finish="tool_calls"), DONE), "It is 42.", "Yes.",
        capabilities={model_server.model: {"tools": True}},
    )  # fmt: skip
    server = ("--mcp-server", f"{sys.executable} -m taiwa mcp --tools calculator", "--trust-mcp")

    assert taiwa.ok("say", "-s", "sum", "Six times seven?", *server).out == "It is 42.\n"
    without = taiwa("say", "-s", "sum", "Sure?")
    again = taiwa.ok("say", "-s", "sum", "Sure?", *server)

    assert model_server.requests[1]["messages"][-1]["content"] == "42"
    assert (without.code, "--mcp-server" in without.err) == (2, True)
    assert again.out == "Yes.\n"
