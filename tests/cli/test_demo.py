"""`taiwa demo`: it shows what happens, without a model, and changes nothing of the user's."""

import os
import re
from pathlib import Path

import pytest

from taiwa.cli.demo import PARTS, Demo, DemoPart, DemoStep, at_home
from tests.cli.conftest import Place, Taiwa
from tests.cli.terminal import Terminal
from tests.house.source import ROOT

STEPS = [step for part in PARTS for step in part.steps]
OTHERWISE = "unexpected output"
SAME = "The same."


SHOWN = (ROOT / "docs" / "sessions" / "demo.out").read_text(encoding="utf-8").partition("$ taiwa demo\n")[2]
"""What it prints through a pipe; tests/docs/test_sessions.py runs it and compares every line, and its exit code."""


def test_every_step_has_its_expected_output() -> None:
    assert OTHERWISE not in SHOWN


def test_it_shows_the_commands_that_it_runs() -> None:
    commands = [line[2:].rpartition(" | ")[2] for line in SHOWN.splitlines() if line.startswith("$ ")]

    assert commands == [step.command for step in STEPS]


def test_it_prints_that_no_model_answers_and_what_to_try_next() -> None:
    assert SHOWN.startswith("This is what taiwa does without a language model")
    assert SHOWN.count("try next: taiwa ") == len(PARTS)


@pytest.mark.parametrize(
    "part",
    [
        "98.072 g/mol",
        '"cups": 2',
        "back to turn 0",
        "0 model calls: every state has its recorded hash",
        "[1] en/",
        "accepted: the text is complete",
    ],
)
def test_tools_types_questions_and_a_history_are_shown(part: str) -> None:
    assert part in SHOWN


def test_over_a_pipe_it_is_plain() -> None:
    assert "\x1b" not in SHOWN


def test_it_leaves_nothing_behind(taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.set(model="openai:mine")
    place.store.write_text("this is no store")
    monkeypatch.setenv("TAIWA_TIMEOUT", "7")
    monkeypatch.setattr("taiwa.cli.demo.PARTS", (only(PARTS[2].steps[0]),))
    before = dict(os.environ)

    taiwa("demo")

    assert dict(os.environ) == before
    assert place.store.read_text() == "this is no store"
    assert place.config.read_text() == 'model: "openai:mine"\n'


def only(*steps: DemoStep) -> DemoPart:
    return DemoPart(SAME, steps, "taiwa demo")


def test_an_unexpected_output_is_a_warning_of_one_line_and_the_rest_is_shown(
    taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (
        only(DemoStep(SAME, 'taiwa tools call calculator "1+1"', shows="3")),
        only(DemoStep(SAME, "taiwa why nothing -s nobody")),
        only(DemoStep(SAME, 'taiwa tools call calculator "1+1"', shows="2")),
    )
    monkeypatch.setattr("taiwa.cli.demo.PARTS", parts)

    shown = taiwa("demo")

    assert shown.code == 1
    assert "'3' was expected" in shown.err
    assert "exit code 2; 0 was expected" in shown.err
    assert "2 of 3 steps" in shown.err
    assert len(list(filter(None, shown.err.splitlines()))) == 4
    assert shown.out.count("try next") == 3


def test_a_reply_is_skipped_if_no_question_was_asked_back(taiwa: Taiwa, monkeypatch: pytest.MonkeyPatch) -> None:
    call = DemoStep(SAME, 'taiwa tools call calculator "1+1"')
    monkeypatch.setattr("taiwa.cli.demo.PARTS", (only(call, DemoStep(SAME, "taiwa ask -c 1", reply=True)),))

    assert "taiwa ask" not in taiwa.ok("demo").out


def test_a_store_that_is_damaged_during_the_demo_is_an_error_of_each_step(
    tmp_path: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo.db").write_text("no store at all" * 100)
    show = Demo()

    with at_home(tmp_path):
        show.part(3, PARTS[2])

    data = capsys.readouterr()
    assert show.failed == show.steps == len(PARTS[2].steps) - 1
    assert "Traceback" not in data.out + data.err


def test_on_a_terminal_it_has_colours_and_can_be_interrupted(place: Place) -> None:
    with Terminal(place.environment(), "demo") as shown:
        shown.see("$ taiwa tools call calculator")
        shown.see("1140.75")
        shown.type("\x03")
        assert shown.end() == 130

    assert b"\x1b[1m" in shown.raw
    assert "taiwa chat order" not in shown.text
    assert "Traceback" not in shown.text


def test_no_color_disables_colours(place: Place) -> None:
    with Terminal(place.environment(NO_COLOR="1"), "apps", "list") as shown:
        assert shown.end() == 0

    assert "built-in" in shown.text
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", shown.raw)
