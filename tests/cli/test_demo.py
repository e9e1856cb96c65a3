"""`taiwa demo`: what it shows is what happens, and nothing of the person's is touched."""

import os
import re

import pytest

from taiwa.cli.demo import STEPS
from tests.cli.conftest import Place, Taiwa
from tests.cli.terminal import Terminal


def test_it_shows_state_that_grows_undo_fork_diff_why_cost_and_replay(taiwa: Taiwa) -> None:
    shown = taiwa.ok("demo")

    assert "are NOT written by a model" in shown.out
    assert [line[2:] for line in shown.lines if line.startswith("$ ")] == [command for _, command in STEPS]
    for part in (
        "I write a sentence.",
        'dictionary: {"文": "sentence", "猫": "cat"}',
        "set by turn 2",
        "back to turn 1",
        "now on other, turn 1",
        '~ dictionary.文: "sentence" → "text"',
        "3 nodes, 2 recorded answers, 0 model calls: every state has its recorded hash",
        "4 nodes: every hash is right",
    ):
        assert part in shown.out
    assert re.search(r"^demo +2 .*\n^other +1 ", shown.out, re.MULTILINE)


def test_over_a_pipe_it_is_plain(taiwa: Taiwa) -> None:
    assert "\x1b" not in taiwa.ok("demo").out


def test_it_leaves_nothing_behind(taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.set(model="openai:mine")
    monkeypatch.setenv("TAIWA_TIMEOUT", "7")
    before = dict(os.environ)

    taiwa.ok("demo")

    assert dict(os.environ) == before
    assert not place.store.exists()
    assert place.config.read_text() == 'model: "openai:mine"\n'


def test_on_a_terminal_it_has_the_pace_of_a_reader_and_can_be_left(place: Place) -> None:
    with Terminal(place.environment(), "demo") as shown:
        shown.see("I write")
        shown.see("a sentence.")
        shown.type("\x03")
        assert shown.end() == 130

    assert b"\x1b[1m" in shown.raw
    assert "Now your own" not in shown.text
    assert "Traceback" not in shown.text


def test_no_colour_is_shown_to_who_wants_none(place: Place) -> None:
    with Terminal(place.environment(NO_COLOR="1"), "apps", "list") as shown:
        assert shown.end() == 0

    assert "built-in" in shown.text
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", shown.raw)
