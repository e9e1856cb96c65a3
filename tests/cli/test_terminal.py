"""`taiwa chat` on a real terminal: keys, history, and Ctrl-C in the middle of an answer."""

import re
from collections.abc import Callable

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.cli.terminal import Terminal
from tests.peers.faults import head, silence, status, words
from tests.waiting import wait_for

CTRL_C, CTRL_D, ESCAPE_ENTER = "\x03", "\x04", "\x1b\r"
PASTE = "\x1b[200~{}\x1b[201~"


@pytest.fixture
def open_chat(place: Place) -> Callable[..., Terminal]:
    return lambda *arguments, whole=False: Terminal(place.environment(), "chat", "chat", *arguments, whole=whole)


def test_a_whole_conversation_on_a_terminal(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    model_server(delta("Hello!", topics=["tea"]))

    with open_chat(whole=True) as chat:
        chat.see("/help")
        chat.prompted()
        chat.type("Hi\r")
        chat.see("Hello!")
        chat.see('+ topics[0]: "tea"')
        chat.prompted()
        chat.type(CTRL_D)
        chat.see("saved as chat-1")
        code = chat.end()

    assert code == 0
    assert taiwa.ok("log", "chat-1", "--json").json[-1]["user"] == "Hi"


def test_ctrl_c_stops_an_answer_and_keeps_what_came(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    model_server(silence(head() + words("Once upon a time")), delta("The end."))

    with open_chat() as chat:
        chat.prompted()
        chat.type("Tell me a story\r")
        chat.see("Once upon a")
        chat.type(CTRL_C)
        chat.see("stopped; the answer so far is kept")
        assert model_server.seen[0].closed.wait(300)
        chat.prompted()
        chat.type("And then?\r")
        chat.see("The end.")
        chat.prompted()
        chat.type(CTRL_D)
        code = chat.end()

    data = taiwa.ok("log", "chat-1", "--json").json
    assert code == 0
    assert [turn["user"] for turn in data] == [None, "Tell me a story", "And then?"]
    assert data[1]["answer"].startswith("Once upon a")
    assert len(model_server.requests) == 2


def test_ctrl_c_before_the_first_word_changes_nothing_and_offers_the_text_again(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    model_server(delta("First."), silence(head()), delta("Now."))

    with open_chat() as chat:
        chat.prompted()
        chat.type("One\r")
        chat.see("First.")
        chat.prompted()
        chat.type("Two\r")
        chat.see("Two")
        wait_for(lambda: len(model_server.seen) == 2)
        chat.type(CTRL_C)
        chat.see("nothing changed")
        chat.see("› Two")
        assert not re.search(b"so far is kept|the state is unchanged|resume", chat.raw)
        chat.type("!\r")
        chat.see("Now.")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert [turn["user"] for turn in taiwa.ok("log", "chat-1", "--json").json] == [None, "One", "Two!"]
    assert model_server.last_message().startswith("Two!")


def test_a_failed_turn_offers_its_text_again(model_server: ModelServer, open_chat: Callable[..., Terminal]) -> None:
    model_server(status(400, b'{"error": {"message": "no"}}'), delta("Now."))

    with open_chat() as chat:
        chat.prompted()
        chat.type("Hi\r")
        chat.see("taiwa: ")
        chat.see("› Hi")
        chat.type("\r")
        chat.see("Now.")
        chat.prompted()
        chat.type(CTRL_D)
        assert chat.end() == 0


def test_ctrl_c_at_the_prompt_clears_the_line(model_server: ModelServer, open_chat: Callable[..., Terminal]) -> None:
    model_server(delta("Hello!"))

    with open_chat() as chat:
        chat.prompted()
        chat.type("wrong" + CTRL_C)
        chat.see("wrong")
        chat.prompted()
        chat.type("right\r")
        chat.see("Hello!")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert model_server.last_message().startswith("right")


def test_a_new_line_a_paste_and_a_block_are_one_text_each(
    model_server: ModelServer, open_chat: Callable[..., Terminal]
) -> None:
    model_server(delta("a"), delta("b"), delta("c"))

    with open_chat() as chat:
        chat.prompted()
        chat.type(f"一{ESCAPE_ENTER}二\r")
        chat.see("a")
        chat.prompted()
        chat.type(PASTE.format("x\ny") + "\r")
        chat.see("b")
        chat.prompted()
        chat.type('"""\rp\rq\r"""\r')
        chat.see("c")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    received = [model_server.last_message(number).partition("<state>")[0] for number in range(3)]
    assert [text.strip() for text in received] == ["一\n二", "x\ny", "p\nq"]


def test_what_was_typed_is_kept_for_its_owner_alone_and_forgotten_with_the_conversation(
    model_server: ModelServer, open_chat: Callable[..., Terminal], place: Place, taiwa: Taiwa
) -> None:
    model_server(delta("a"), delta("b"))
    with open_chat() as chat:
        chat.prompted()
        chat.type("my secret\r")
        chat.see("a")
        chat.prompted()
        chat.type("/cost\r")
        chat.see("1 call")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()
    history = place.store.with_name("taiwa.db.history")
    assert history.stat().st_mode & 0o077 == 0
    assert "my secret" in history.read_text()

    taiwa.ok("delete", "chat-1", "--yes")

    assert "my secret" not in history.read_text()
    assert "/cost" in history.read_text()


def test_the_answer_s_control_codes_are_shown_and_not_obeyed(
    model_server: ModelServer, open_chat: Callable[..., Terminal]
) -> None:
    model_server(delta("\x1b[2Jgone\x07"))

    with open_chat() as chat:
        chat.prompted()
        chat.type("Hi\r")
        chat.see("␛[2Jgone␇")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert b"\x1b[2Jgone" not in chat.raw


def cut_off(taiwa: Taiwa, model_server: ModelServer) -> None:
    """Kill a turn of `chat-1` that has one answer and waits for the repair of its state."""
    model_server(delta("Hello!", topics="wrong"), silence())
    process = taiwa.fork("chat", "chat", "-s", "chat-1")
    assert process.stdin is not None
    process.stdin.write(b"Hi\n")
    process.stdin.flush()
    wait_for(lambda: len(model_server.seen) == 2)
    process.kill()
    process.communicate()


def test_a_turn_that_was_cut_off_is_offered_and_finished(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    cut_off(taiwa, model_server)
    model_server("{}")

    with open_chat("-s", "chat-1") as chat:
        chat.see("a turn was cut off: Hi")
        chat.see("[Y/n]")
        chat.type("\r")
        chat.see("Hello!")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert len(model_server.requests) == 1
    assert taiwa.ok("log", "chat-1", "--json").json[-1]["answer"] == "Hello!"


def test_a_turn_that_was_cut_off_can_be_abandoned(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    cut_off(taiwa, model_server)
    model_server()

    with open_chat("-s", "chat-1") as chat:
        chat.see("[Y/n]")
        chat.type("n\r")
        chat.see("the turn was abandoned")
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert not model_server.requests
    assert taiwa("resume").code == 2


def test_over_a_pipe_a_turn_that_was_cut_off_only_gives_a_notice(model_server: ModelServer, taiwa: Taiwa) -> None:
    cut_off(taiwa, model_server)
    model_server()

    talked = taiwa.ok("chat", "chat", "-s", "chat-1", input="/cost\n")

    assert talked.err == "a turn was cut off (Hi); taiwa resume finishes it without paying again\n"
    assert not model_server.requests


def test_a_turn_that_was_cut_off_is_not_mentioned_in_another_conversation(
    model_server: ModelServer, open_chat: Callable[..., Terminal], taiwa: Taiwa
) -> None:
    cut_off(taiwa, model_server)
    model_server()

    with open_chat("-s", "other") as chat:
        chat.prompted()
        chat.type(CTRL_D)
        chat.end()

    assert "cut off" not in chat.text
    assert taiwa.ok("chat", "chat", "-s", "other", input="").err == ""
