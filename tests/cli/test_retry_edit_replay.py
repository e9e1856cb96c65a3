"""Doing turns again: retry, edit, resume after a crash, replay without a call, rerun on a new branch."""

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.peers.faults import silence
from tests.waiting import wait_for


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1` with two turns."""
    model_server(delta("A", topics=["a"]), delta("B", topics=["b"]))
    taiwa.ok("say", "chat", "one")
    taiwa.ok("say", "-c", "two")
    return taiwa


def turn_texts(taiwa: Taiwa, session: str = "chat-1") -> list[tuple[str, str]]:
    rows = taiwa.ok("log", session, "--json").json
    return [(row["user"], row["answer"]) for row in rows if row["kind"] == "turn"]


# --- retry and edit ---------------------------------------------------------------------------------------------------


def test_retry_asks_from_the_same_state_and_takes_the_place_of_the_answer(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("B, better", topics=["c"]))

    assert talked.ok("retry").out == "B, better\n"

    assert turn_texts(talked) == [("one", "A"), ("two", "B, better")]
    assert talked.ok("state", "get", "topics").out == '["a", "c"]\n'
    assert talked.ok("show", "chat-1@{1}", "--json").json["answer"] == "B"


def test_retry_goes_back_over_an_edit_of_the_state(talked: Taiwa, model_server: ModelServer) -> None:
    talked.ok("state", "set", "topics", '["mine"]')
    model_server(delta("B2"))

    talked.ok("retry")

    assert turn_texts(talked) == [("one", "A"), ("two", "B2")]


def test_retry_that_fails_leaves_the_old_answer(talked: Taiwa, model_server: ModelServer) -> None:
    model_server()

    assert talked("retry").code == 1

    assert turn_texts(talked)[-1] == ("two", "B")


def test_edit_replaces_the_text_and_drops_later_turns(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("C"))

    assert talked.ok("edit", "chat-1~1", "other").out == "C\n"

    assert turn_texts(talked) == [("other", "C")]
    assert talked.ok("show", "chat-1@{1}", "--json").json["user"] == "two"


def test_edit_on_a_fork_leaves_the_conversation_as_it_is(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("C"))

    talked.ok("edit", "chat-1", "other", "--fork", "what-if")

    assert turn_texts(talked) == [("one", "A"), ("two", "B")]
    assert turn_texts(talked, "what-if") == [("one", "A"), ("other", "C")]


def test_an_answer_to_an_empty_edit_is_not_asked_for(talked: Taiwa, model_server: ModelServer) -> None:
    model_server()

    done = talked("edit", "chat-1", " ")

    assert done.code == 2
    assert "the text is empty" in done.err
    assert not model_server.requests


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("edit", "chat-1~2", "x"), "'chat-1~2' is not a turn of chat-1"),
        (("edit", "chat-9", "x"), "session 'chat-9' not found"),
        (("retry", "-s", "chat-9"), "session 'chat-9' not found"),
        (("resume",), "nothing to resume: no turn was cut off"),
        (("rerun", "chat-9", "-o", "x"), "session 'chat-9' not found"),
        (("rerun", "-p", "a=1", "-o", "x"), "-p requires --app"),
        (("replay", "chat-9"), "session 'chat-9' not found"),
    ],
)
def test_an_impossible_retry_is_an_error_of_one_line(
    talked: Taiwa, model_server: ModelServer, command: tuple[str, ...], line: str
) -> None:
    model_server()

    done = talked(*command)

    assert done.code == 2
    assert line in done.err
    assert not model_server.requests


# --- resume -----------------------------------------------------------------------------------------------------------


def killed(taiwa: Taiwa, model_server: ModelServer, *command: str, requests: int = 2) -> None:
    """Start a turn and kill it while it waits for its second answer."""
    process = taiwa.fork(*command)
    wait_for(lambda: len(model_server.seen) >= requests)
    process.kill()
    process.communicate()


def test_a_killed_turn_is_finished_without_asking_again_what_was_answered(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("Hello!", topics="wrong"), silence())
    killed(taiwa, model_server, "say", "chat", "Hi")
    assert "cannot be used" in model_server.last_message(1)
    model_server('{"topics": ["tea"]}')

    resumed = taiwa.ok("resume", "--json").json

    assert (resumed["session"], resumed["text"], resumed["delta"]) == ("chat-1", "Hello!", {"topics": ["tea"]})
    assert len(model_server.requests) == 1
    assert "cannot be used" in model_server.last_message(0)
    assert turn_texts(taiwa) == [("Hi", "Hello!")]
    (line,) = taiwa.ok("cost", "--json").json
    assert (line["requests"], line["failed"]) == (3, 1)  # the one that was stopped may have been paid for
    assert taiwa("resume").code == 2


def test_a_killed_retry_is_finished_too(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("B2", topics="wrong"), silence())
    killed(talked, model_server, "retry")
    model_server("{}")

    talked.ok("resume")

    assert turn_texts(talked) == [("one", "A"), ("two", "B2")]
    assert len(model_server.requests) == 1


def test_an_interrupted_turn_prints_how_to_continue(taiwa: Taiwa, model_server: ModelServer) -> None:
    import signal

    model_server(silence())
    process = taiwa.fork("say", "chat", "Hi")
    wait_for(lambda: model_server.seen)

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)

    assert process.returncode == 130
    assert b"taiwa resume finishes it without paying again" in err
    assert b"Traceback" not in err
    assert taiwa("say", "-c", "Hi").err == "taiwa: the first turn of 'chat-1' was cut off; `taiwa resume` finishes it\n"
    model_server(delta("Hello!"))
    assert taiwa.ok("resume").out == "Hello!\n"


def test_a_cut_off_turn_without_answers_is_not_appended_to_a_conversation_that_continued(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    model_server(delta("D"), delta("C"))
    talked.ok("say", "-c", "four")

    done = talked.ok("resume")

    assert done.out == "C\n"
    assert done.err == "chat-1 has moved since this turn was cut off; the turn is kept as chat-1-1\n"
    assert [text for text, _ in turn_texts(talked, "chat-1")] == ["one", "two", "four"]
    assert turn_texts(talked, "chat-1-1")[-1] == ("three", "C")
    assert "no turn was cut off" in talked("resume").err


def test_a_cut_off_turn_can_still_be_resumed_after_a_resume_that_failed(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    model_server(delta("D"), silence())
    talked.ok("say", "-c", "four")
    killed(talked, model_server, "resume")
    model_server(delta("C"))

    assert talked.ok("resume").out == "C\n"


def test_two_cut_off_turns_of_a_conversation_are_both_finished(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(silence(), silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    killed(talked, model_server, "say", "-c", "four")
    model_server(delta("D"), delta("C"))

    first = talked.ok("resume")
    second = talked.ok("resume")

    assert (first.out, first.err) == (
        "D\n", "turns of chat-1 were cut off too; finish them with taiwa resume NAME\n"
    )  # fmt: skip
    assert second.out == "C\n"
    assert turn_texts(talked, "chat-1-1")[-1] == ("three", "C")


PASSED_OVER = "a turn of chat-1 was cut off: three; the conversation goes on without it, taiwa resume chat-1 keeps it as a branch\n"


@pytest.mark.parametrize(
    "command",
    [("say", "-c", "four"), ("say", "-s", "chat-1", "four"), ("retry",), ("edit", "chat-1:2", "four")],
    ids=["continued", "named", "retry", "edit"],
)
def test_the_next_turn_says_that_it_passes_over_one_that_was_cut_off(
    talked: Taiwa, model_server: ModelServer, command: tuple[str, ...]
) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    model_server(delta("D"), delta("E"))

    done, after = talked.ok(*command), talked.ok("say", "-c", "five")

    assert (done.out, done.err) == ("D\n", PASSED_OVER)
    assert after.err == ""


def test_a_turn_of_another_conversation_does_not_mention_one_that_was_cut_off(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    model_server(delta("D"), delta("E"))

    assert talked.ok("say", "chat", "-s", "other", "Hi").err == ""
    assert talked.ok("say", "chat", "Hi").err == ""


def test_a_first_turn_that_was_cut_off_is_mentioned_and_listed(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(silence())
    killed(taiwa, model_server, "say", "chat", "-s", "k", "first", requests=1)

    listed, named = taiwa.ok("log"), taiwa.ok("log", "k")
    (of_all,), (of_one,) = taiwa.ok("log", "--json").json, taiwa.ok("log", "k", "--json").json

    assert listed.out.splitlines()[1].split()[:4] == ["k", "chat", "cut", "off"]
    assert listed.out.splitlines()[1].endswith("first")
    assert named.out == "cut off: first\n"
    assert listed.err == "taiwa resume NAME finishes a turn that was cut off, and with --discard drops it\n"
    assert of_all == of_one
    assert {name: of_one[name] for name in ("session", "kind", "app", "text", "node", "answer", "calls")} == {
        "session": "k", "kind": "interrupted", "app": "chat", "text": "first", "node": None, "answer": None, "calls": 0,
    }  # fmt: skip
    model_server(delta("N"))
    assert taiwa.ok("say", "-s", "k", "next").err.startswith("a turn of k was cut off: first; ")


def test_the_log_of_a_conversation_ends_with_the_turn_that_was_cut_off(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)

    *_, last = talked.ok("log", "chat-1", "--json").json

    assert (last["kind"], last["text"]) == ("interrupted", "three")
    assert [each["session"] for each in talked.ok("log", "--json").json] == ["chat-1", "chat-1"]
    assert "cut off" not in talked.ok("log", "chat-1:2").out


def test_a_cut_off_turn_can_be_discarded(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(silence())
    killed(talked, model_server, "say", "-c", "three", requests=1)
    model_server(delta("D"))

    done = talked.ok("resume", "--discard")

    assert done.out == "discarded a turn of chat-1: three\n"
    assert "no turn was cut off" in talked("resume", "--discard").err
    assert talked.ok("say", "-c", "four").err == ""
    assert "cut off" not in talked.ok("log", "chat-1").out


def test_a_cut_off_turn_with_answers_becomes_a_branch_of_a_conversation_that_continued(
    talked: Taiwa, model_server: ModelServer
) -> None:
    model_server(delta("C", topics="wrong"), silence())
    killed(talked, model_server, "say", "-c", "three")
    model_server(delta("D"), delta("", topics=["c"]))
    talked.ok("say", "-c", "four")

    done = talked.ok("resume")

    assert done.out == "C\n"
    assert "chat-1 has moved since this turn was cut off; the turn is kept as chat-1-1" in done.err
    assert "three" in talked.ok("show", "chat-1-1").out
    assert "four" in talked.ok("show", "chat-1").out


def test_other_conversations_that_were_cut_off_are_named(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(silence(), silence())
    killed(taiwa, model_server, "say", "chat", "-s", "one", "Hi", requests=1)
    killed(taiwa, model_server, "say", "chat", "-s", "two", "Hi")
    model_server(delta("b"), delta("a"))

    first = taiwa.ok("resume")
    second = taiwa.ok("resume", "-s", "one")

    assert first.err == "turns of one were cut off too; finish them with taiwa resume NAME\n"
    assert second.err == ""


# --- replay and rerun -------------------------------------------------------------------------------------------------


def test_replay_checks_every_hash_and_calls_nothing(talked: Taiwa, model_server: ModelServer) -> None:
    model_server()

    done = talked.ok("replay")

    assert done.out == "3 nodes, 2 recorded answers, 0 model calls: every state has its recorded hash\n"
    assert [row["problem"] for row in talked.ok("replay", "--json").json] == ["", "", ""]
    assert talked.ok("replay", "chat-1~1", "-v").lines[0].split() == ["turn", "node", "kind", "calls", "result"]
    assert not model_server.requests


def test_replay_follows_repairs_and_edits_and_changes_of_app(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("A", topics="x"), '{"topics": ["a"]}', delta("B", topics="y"), '{"topics": "z"}', delta("C"))
    taiwa.ok("say", "chat", "one")
    taiwa.ok("say", "-c", "two")
    taiwa.ok("state", "set", "topics", '["mine"]')
    taiwa.ok("chat", "-c", input="/app code\nthree\n")

    rows = taiwa.ok("replay", "--json").json

    assert [(row["kind"], row["calls"]) for row in rows] == [
        ("root", 0), ("turn", 2), ("turn", 2), ("edit", 0), ("app", 0), ("turn", 1),
    ]  # fmt: skip
    assert [row["problem"] for row in rows] == [""] * 6


def test_replay_reports_a_turn_with_another_result(talked: Taiwa, place: Place) -> None:
    import sqlite3

    with sqlite3.connect(place.store) as db:
        first, second = [row[0] for row in db.execute("SELECT answer FROM call WHERE kind = 'complete' ORDER BY seq")]
        db.execute("UPDATE call SET answer = ? WHERE answer = ?", (first, second))
    db.close()

    done = talked("replay")

    assert done.code == 2
    assert "it ends in" in done.out
    assert done.err.startswith("taiwa: 1 turn does not give the recorded state")


def test_rerun_sends_all_texts_again_on_a_new_branch(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("A2", topics=["x"]), delta("B2", topics=["y"]))

    done = talked.ok("rerun", "chat-1", "-m", f"{model_server.url}#other", "-o", "again")

    assert done.out == "A2\nB2\n"
    assert done.err == "compare them: taiwa diff chat-1 again\n"
    assert turn_texts(talked, "again") == [("one", "A2"), ("two", "B2")]
    assert turn_texts(talked) == [("one", "A"), ("two", "B")]
    assert [request["model"] for request in model_server.requests] == ["other", "other"]
    assert '~ topics[0]: "a" → "x"' in talked.ok("diff", "chat-1", "again").out


def test_rerun_with_another_app_and_json_lines(talked: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("1"), delta("2"))

    done = talked.ok("rerun", "--app", "translate", "-p", "target_lang=French", "-o", "fr", "--json")

    assert [row["text"] for row in done.rows] == ["1", "2"]
    assert "into French" in model_server.requests[0]["messages"][0]["content"]


def test_rerun_under_a_taken_name_sends_nothing(talked: Taiwa, model_server: ModelServer) -> None:
    model_server()

    assert talked("rerun", "-o", "chat-1").code == 2
    assert not model_server.requests


def test_a_turn_can_be_edited_by_the_beginning_of_its_hash(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("One."), delta("Two."), delta("Other."))
    node = taiwa.ok("say", "chat", "first", "--json").json["node"]
    taiwa.ok("say", "-c", "second")

    taiwa.ok("edit", node[:10], "instead")

    assert [row["user"] for row in taiwa.ok("log", "chat-1", "--json").json if row["user"]] == ["instead"]
