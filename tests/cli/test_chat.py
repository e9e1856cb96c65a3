"""`taiwa chat` over a pipe: lines in, answers out, slash commands, and failures that do not end the talk."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.peers.faults import Scene, speech, status


def test_each_line_is_a_turn_of_one_conversation(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"), delta("Fine."))

    talked = taiwa.ok("chat", "chat", input="Hi\n\nHow are you?\n")

    assert talked.out == "Hello!\nFine.\n"
    assert [len(request["messages"]) for request in model_server.requests] == [2, 4]
    assert taiwa.ok("log").lines[1].split()[:3] == ["chat-1", "chat", "2"]


def test_what_a_turn_changed_is_shown_after_its_answer_and_what_is_only_counted_is_not(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("Hello!", topics=["tea"]))

    talked = taiwa.ok("chat", "chat", input="Hi\n")

    assert talked.err == '  + topics[0]: "tea"\n'


def test_verbose_shows_the_bill_and_every_change(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    talked = taiwa.ok("chat", "chat", "-v", input="Hi\n")

    assert "1 call · 7 in (4 cached) + 3 out tokens · 0 USD" in talked.err
    assert "~ turns: 0 → 1" in talked.err


def test_a_block_of_lines_is_one_text(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Two lines."))

    taiwa.ok("chat", "chat", input='"""\none\n\ntwo\n"""\n')

    assert model_server.last_message().startswith("one\n\ntwo")


def test_two_slashes_send_a_text_that_begins_with_one(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("A path."))

    taiwa.ok("chat", "chat", input="//etc/hosts\n")

    assert model_server.last_message().startswith("/etc/hosts")


def test_undo_and_redo_move_message_and_state(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics=["tea"]))

    talked = taiwa.ok("chat", "chat", input="Hi\n/undo\n/state topics\n/redo\n/state topics\n")

    assert talked.lines == ["Hello!", "[]", '["tea"]']
    assert talked.err.splitlines()[1:] == ["back to turn 0", "forward to turn 1"]


def test_undo_and_redo_end_with_the_first_and_last_turn(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    talked = taiwa("chat", "chat", input="/undo\n/redo\nHi\n/undo 2\n/undo\n/undo\n")

    assert talked.err.splitlines() == [
        "taiwa: there is nothing to undo",
        "taiwa: there is nothing to redo",
        "taiwa: there are not that many turns",
        "back to turn 0",
        "taiwa: there is nothing to undo",
    ]


def test_retry_and_edit_take_the_place_of_the_last_turn(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("One."), delta("One, better."), delta("Two."))

    talked = taiwa.ok("chat", "chat", input="Say one\n/retry\n/edit Say two\n/log\n")

    assert talked.lines[:3] == ["One.", "One, better.", "Two."]
    assert talked.lines[3].startswith("turn 1 · ")
    assert talked.lines[-2:] == ["you: Say two", "chat: Two."]
    assert [len(request["messages"]) for request in model_server.requests] == [2, 2, 2]


def test_edit_goes_back_to_the_turn_of_that_number(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), delta("b"), delta("c"))

    talked = taiwa.ok("chat", "chat", input="one\ntwo\n/edit 1 three\n/log\n")

    assert talked.lines[-2:] == ["you: three", "chat: c"]
    assert talked.lines[-3].startswith("turn 1 · ")


def test_a_fork_leaves_the_other_branch_alone_and_switch_goes_back_to_it(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("a", topics=["tea"]), delta("b", topics=["coffee"]))

    talked = taiwa.ok("chat", "chat", input="one\n/fork plan-b\ntwo\n/state topics\n/switch chat-1\n/state topics\n")

    assert talked.lines == ["a", "b", '["tea", "coffee"]', '["tea"]']
    assert "now on plan-b; chat-1 is unchanged" in talked.err
    assert "now on chat-1, turn 1" in talked.err


def test_why_names_the_turn(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics=["tea"]))

    talked = taiwa.ok("chat", "chat", input="Hi\n/why topics\n")

    assert 'topics = ["tea"]' in talked.lines
    assert any(line.startswith("  set by turn 1") for line in talked.lines)


def test_another_app_keeps_the_state_that_fits(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!", topics=["tea"]), delta("def tea(): ...", topics=["python"]))

    talked = taiwa.ok("chat", "chat", input="Hi\n/app code\nWrite it\n/state topics\n")

    assert talked.lines[-1] == '["tea", "python"]'
    assert "switched to app code" in talked.err


def test_a_configured_model_goes_before_that_of_an_app(
    taiwa: Taiwa, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    model_server(delta("a"), "b", delta("c"))
    apps("poet", f'---\ntaiwa: 1\nname: poet\nmodel: "{model_server.url}#poet-model"\n---\nRhyme.\n')

    taiwa.ok("chat", "chat", input="one\n/fork other\n/app poet\ntwo\n/switch chat-1\nthree\n")

    assert [request["model"] for request in model_server.requests] == ["test-model"] * 3


def test_the_model_of_an_app_answers_where_none_is_set(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    model_server("a")
    place.set(attempts=1)
    apps("poet", f'---\ntaiwa: 1\nname: poet\nmodel: "{model_server.url}#poet-model"\n---\nRhyme.\n')

    taiwa.ok("chat", "poet", input="two\n")

    assert [request["model"] for request in model_server.requests] == ["poet-model"]


def test_save_writes_the_form_that_the_ending_says(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    model_server(delta("Hello!"))

    talked = taiwa("chat", "chat", input=f"Hi\n/export {tmp_path}/talk.md\n/export {tmp_path}/talk.txt\n")

    assert "> Hi\n\nHello!" in (tmp_path / "talk.md").read_text()
    assert "talk.txt: unknown suffix" in talked.err


def test_an_unknown_slash_command_suggests_the_nearest_and_is_not_sent(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    talked = taiwa("chat", "chat", input="/udno\n/etc/hosts\n/fork\n/undo x\nHi\n")

    assert talked.err.startswith(
        "taiwa: unknown command /udno; did you mean /undo?\ntaiwa: unknown command /etc/hosts; /help lists"
    )
    assert "taiwa: usage: /fork NAME\n" in talked.err
    assert "taiwa: usage: /undo [n]\n" in talked.err
    assert len(model_server.requests) == 1


@pytest.mark.parametrize("line", ["/retry", "/edit x", "/fork b", "/why topics", "/log", "/export x.md"])
def test_before_the_first_turn_there_is_nothing_to_look_back_to(
    taiwa: Taiwa, model_server: ModelServer, line: str
) -> None:
    model_server()

    talked = taiwa("chat", "chat", input=f"{line}\n")

    assert talked.err == "taiwa: there are no turns yet\n"


def test_at_the_beginning_there_is_nothing_to_retry(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    talked = taiwa("chat", "chat", input="Hi\n/undo\n/retry\n/edit x\n")

    assert talked.err.splitlines()[-2:] == ["taiwa: there are no turns yet"] * 2


def test_lines_after_quit_are_not_sent(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server()

    taiwa.ok("chat", "chat", input="/quit\nHi\n")

    assert not model_server.requests


def test_a_failed_turn_is_one_line_and_the_conversation_continues(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(status(400, b'{"error": {"message": "no"}}'), delta("Hello!"))

    talked = taiwa("chat", "chat", input="Hi\nHi again\n")

    assert talked.code == 1
    assert talked.out == "Hello!\n"
    assert talked.err.startswith("taiwa: ")
    assert talked.err.count("\n") == 1
    assert taiwa.ok("log").lines[1].split()[2] == "1"


def test_json_prints_a_line_per_turn(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a", topics=["tea"]), delta("b"))

    talked = taiwa.ok("chat", "chat", "--json", input="one\ntwo\n")

    assert [row["text"] for row in talked.rows] == ["a", "b"]
    assert talked.rows[1]["parent"] == talked.rows[0]["node"]
    assert talked.err == ""


def test_continue_opens_the_latest_conversation(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("a"), delta("b"), delta("c"))
    taiwa.ok("say", "chat", "-s", "zebra", "one")
    taiwa.ok("say", "chat", "-s", "aardvark", "two")
    taiwa.ok("switch", "zebra")

    taiwa.ok("chat", "-c", input="three\n")

    assert "one" in [message["content"] for message in model_server.requests[-1]["messages"]]


def test_no_store_writes_nothing(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))

    taiwa.ok("chat", "chat", "--no-store", input="Hi\n/undo\n")

    assert not place.store.exists()


def test_a_line_that_is_not_utf8_is_an_error_with_its_number(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Hello!"))

    talked = taiwa("chat", "chat", input=b"Hi\nab\xff\n")

    assert talked.code == 2
    assert talked.err.splitlines()[-1].startswith("taiwa: line 2 of standard input is not UTF-8 at byte 2")


@pytest.mark.parametrize(("lang", "line"), [("ja_JP.UTF-8", "ターン 0 に戻りました"), ("zh_CN", "已回到第 0 轮")])
def test_messages_have_the_language_of_the_locale(
    taiwa: Taiwa, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, lang: str, line: str
) -> None:
    monkeypatch.delenv("TAIWA_LANG")
    monkeypatch.setenv("LANG", lang)
    model_server(delta("Hello!"))

    talked = taiwa.ok("chat", "chat", input="Hi\n/undo\n")

    assert talked.err.splitlines()[-1] == line


def test_help_names_every_command_in_columns(
    taiwa: Taiwa, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taiwa.cli.chat import SLASHES

    monkeypatch.setenv("TAIWA_LANG", "ja")
    model_server()

    shown = taiwa.ok("chat", "chat", input="/help\n").lines

    assert [line.split()[0] for line in shown[: len(SLASHES)]] == [f"/{name}" for name in SLASHES]
    assert shown[0].index("直前") == shown[3].index("直前")


def test_a_fork_keeps_the_bill_of_the_session(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("One."), delta("Two."))

    printed = taiwa.ok("chat", "chat", input="one\n/fork other\ntwo\n/cost\n").out

    assert "2 calls" in printed


def test_sessions_that_begin_at_once_get_different_names(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    async def act(scene: Scene) -> None:
        await scene.pause(0.3)
        await speech(delta("Hello!"))(scene)

    model_server.plays(act)
    talks = [taiwa.fork("say", "chat", f"Hi {number}") for number in range(4)]

    ends = [(talk.communicate(timeout=300), talk.returncode) for talk in talks]

    assert [code for _, code in ends] == [0] * 4, ends
    assert sorted(row["session"] for row in taiwa.ok("log", "--json").json) == [f"chat-{n}" for n in (1, 2, 3, 4)]
    assert len(model_server.requests) == 4


def test_switching_before_the_first_turn_does_not_report_a_new_name(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("One."), delta("Two."))
    taiwa.ok("say", "chat", "-s", "old", "one")

    assert "is called" not in taiwa.ok("chat", "chat", input="/switch old\ntwo\n").err


def test_a_name_taken_by_another_process_gives_a_notice(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("One."), delta("Two."))
    waiting = taiwa.fork("chat", "chat")
    assert waiting.stdin is not None
    waiting.stdin.write(b"/state\n")
    waiting.stdin.flush()
    assert waiting.stdout is not None
    waiting.stdout.readline()
    taiwa.ok("say", "chat", "one")

    _, err = waiting.communicate(b"two\n", timeout=300)

    assert b"this conversation is named chat-2" in err
    assert taiwa.ok("show", "chat-2", "--json").json["user"] == "two"


def test_edit_counts_turns_as_log_does(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(*[delta(answer) for answer in ("A", "B", "C", "D")])

    taiwa("chat", "chat", input="one\ntwo\nthree\n/edit 2 other\n/edit 9 none\n")

    rows = taiwa.ok("log", "chat-1", "--json").json
    assert [row["user"] for row in rows[1:]] == ["one", "other"]


def test_a_slash_command_that_fails_in_a_pipe_is_a_failure(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server("Hello!")

    talked = taiwa("chat", input="Hi\n/nonsense\n")

    assert (talked.code, talked.out) == (1, "Hello!\n")
    assert "unknown command /nonsense" in talked.err


@pytest.mark.parametrize(
    "text", ["x" * 8_000_001, '"""' + f"\n{'x' * 1_999}" * 4_001], ids=["one line", "lines of one text"]
)
def test_a_pipe_that_does_not_end_a_text_is_one_line(taiwa: Taiwa, model_server: ModelServer, text: str) -> None:
    model_server(delta("a"))

    done = taiwa("chat", "chat", input=text)

    assert done.code == 2
    assert done.err.splitlines()[-1].endswith("is too large; a text has at most 8,000,000 bytes")
    assert not model_server.requests
