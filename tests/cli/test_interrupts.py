"""A key that is pressed anywhere during a turn ends the answer, and nothing but the answer."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

import taiwa
from taiwa.cli.chat import InterruptHandler
from taiwa.kernel.messages import Chunk, Request, TextDelta
from taiwa.models.scripted import ALL_CAPABILITIES
from taiwa.sessions.commit_turn import TurnOptions, TurnResult
from taiwa.sessions.session import Session

ANSWER = "one two three four\n@@delta\n{}"


class Model:
    """Plays words, and presses the key at one of its own words if it is told to."""

    name = "words"
    capabilities = ALL_CAPABILITIES - {"json_schema"}  # its replies are text

    def __init__(self, press_at: int = -1, silent_at: int = -1, *, press_at_close: bool = False) -> None:
        self.press_at_close = press_at_close
        self.press_at = press_at
        self.silent_at = silent_at

    def stream(self, request: Request) -> Iterator[Chunk]:
        for number, word in enumerate(ANSWER.split(" ")):
            if number == self.press_at:
                press()
            if number == self.silent_at:
                assert Event().wait(300), "nobody ended this"
            try:
                yield TextDelta(f"{word} ")
            except GeneratorExit:
                if self.press_at_close:
                    press()
                raise

    def astream(self, request: Request) -> None:
        raise NotImplementedError


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def turn(model: Model, *, press_at: str = "") -> tuple[TurnResult, InterruptHandler]:
    """Have a turn; the key is pressed while the reader of the answer holds a certain word."""
    stopper = InterruptHandler()
    first = taiwa.open("chat", model=taiwa.scripted_model(), store=":memory:")
    talk = Session(
        first.repository, "chat-1", first.conversation, taiwa.open("chat", model=model, store=":memory:").priced_model,
        options=TurnOptions(interrupts="keep"), observers=(stopper.watch,),
    )  # fmt: skip
    result: TurnResult | None = None
    with stopper.listening():
        for event in talk.stream("Count"):
            if isinstance(event, TextDelta) and press_at and press_at in event.text:
                press()
            result = event if isinstance(event, TurnResult) else result
    assert result is not None
    return result, stopper


def test_pressed_between_two_words_it_ends_an_answer_of_which_no_further_word_comes() -> None:
    result, stopper = turn(Model(silent_at=2), press_at="two")

    assert stopper.pressed
    assert result.text.split() == ["one", "two"]


def test_pressed_while_the_model_writes_the_answer_ends_there() -> None:
    result, stopper = turn(Model(press_at=2))

    assert result.text == "one two"
    assert "the answer was interrupted" in result.warnings
    assert stopper.pressed


def test_pressed_while_a_word_is_printed_it_ends_the_answer_at_the_next_word() -> None:
    result, stopper = turn(Model(), press_at="one")

    assert result.text == "one two"
    assert stopper.pressed


def test_pressed_again_while_the_answer_is_closed_the_text_is_kept() -> None:
    result, stopper = turn(Model(press_at_close=True), press_at="one")

    assert result.text == "one two"
    assert "the answer was interrupted" in result.warnings
    assert stopper.pressed


def test_a_model_whose_stream_returns_the_iterator_of_another_is_stopped_too() -> None:
    class Returning(Model):
        def stream(self, request: Request) -> Iterator[Chunk]:
            return Model(press_at=2).stream(request)

    said, stopper = turn(Returning())

    assert said.text == "one two"
    assert stopper.pressed


def test_not_pressed_the_whole_answer_comes_and_the_key_is_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)

    result, stopper = turn(Model())

    assert result.text == "one two three four"
    assert not stopper.pressed
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_of_a_turn_the_key_is_the_program_s() -> None:
    turn(Model())

    with pytest.raises(KeyboardInterrupt):
        press()


def test_in_another_thread_signals_are_not_handled() -> None:
    before = signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        output, stopper = pool.submit(turn, Model()).result()

    assert (output.text, stopper.pressed) == ("one two three four", False)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_system_without_timers_that_send_signals_has_turns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.delattr(signal, "SIGALRM")
    monkeypatch.delattr(signal, "setitimer")

    result, stopper = turn(Model())

    assert result.text == "one two three four"
    assert not stopper.pressed


PRESSED_AGAIN = """
import atexit, os, signal
import click
from taiwa.cli.main import main

@click.command()
def wait():
    raise KeyboardInterrupt

atexit.register(os.kill, os.getpid(), signal.SIGINT)
main(group=wait)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends no process by this signal")
def test_a_key_that_is_pressed_again_while_the_program_ends_shows_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", PRESSED_AGAIN], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (-signal.SIGINT, "taiwa: interrupted\n")
