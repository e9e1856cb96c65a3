"""`taiwa demo`: a conversation on this machine, through the real commands, the real wire and a real store."""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from taiwa.cli.main import cli
from taiwa.cli.screen import say_line
from taiwa.kernel.errors import ProtocolError

__all__ = ["demo"]

INTRODUCTION = """\
A conversation with the app `translate`. Its answers are NOT written by a model: a server on this machine plays them from a
script over the real wire. All else is what you would run: commands, prompts, state, store. Nothing leaves this machine."""

PACE, PAUSE = 0.08, 0.5
"""Seconds from piece to piece of an answer, and before a step, for a person who watches; a pipe waits for nothing."""

DIALOGUE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('I write a sentence.\n@@delta\n{"dictionary": {"文": "sentence"}}', ("文(sentence)を書く。", "<state>")),
    (
        'The cat reads the sentence.\n@@delta\n{"dictionary": {"猫": "cat"}}',
        ("猫(cat)が文を読む。", '"文":"sentence"'),
    ),
    (
        'The kitty reads the text.\n@@delta\n{"dictionary": {"猫": "kitty", "文": "text"}}',
        ("猫(kitty)が文(text)を読む。",),
    ),
)
STEPS: tuple[tuple[str, str], ...] = (
    ("A turn. The words given in parentheses become typed state: the model sends only what changes.",
     'taiwa say translate -s demo -p target_lang=English "文(sentence)を書く。"'),
    ("The next turn sees that state.", 'taiwa say -s demo "猫(cat)が文を読む。" -v'),
    ("State is data.", "taiwa state -s demo"),
    ("Every value has an author.", "taiwa why dictionary.猫 -s demo"),
    ("Undo moves message, state and window together …", "taiwa undo -s demo"),
    ("… and a fork goes another way from there,", "taiwa fork demo other"),
    ("with other words.", 'taiwa say -s other "猫(kitty)が文(text)を読む。"'),
    ("The first way is still there.", "taiwa redo -s demo"),
    ("Two branches, compared: state and text.", "taiwa diff demo other"),
    ("Both histories.", "taiwa log --tree"),
    ("The bill, with what is not known said so.", "taiwa cost --by session"),
    ("All again from the records: no call, every hash checked.", "taiwa replay demo"),
    ("And the whole store.", "taiwa fsck"),
    ("Documents answer, too: a handbook that comes along, asked without any model.",
     'taiwa ask "How many days of annual leave do I have in Galway?" --judge none'),
)  # fmt: skip
NEXT = """\
Now your own: set a model (`taiwa models list` shows how one is named), then
  taiwa config set model http://127.0.0.1:8080/v1#name
  taiwa chat"""


@click.command()
def demo() -> None:
    """Watch a conversation: state that grows by deltas, why, undo, fork, diff, replay. No key, no network, no model.

    \b
    taiwa demo
    """
    from taiwa.lab.player import Line, Player

    watched = sys.stdout.isatty()
    say_line(INTRODUCTION)
    with (
        tempfile.TemporaryDirectory() as folder,
        Player([Line(*line) for line in DIALOGUE], PACE if watched else 0.0) as player,
        _home(Path(folder), player.base_url),
    ):
        for number, (about, command) in enumerate(STEPS, 1):
            time.sleep(PAUSE if watched else 0.0)
            say_line(f"\n{number}. {about}", "bold")
            say_line(f"$ {command}", "cyan")
            _run(command)
    say_line(f"\n{NEXT}")


def _run(command: str) -> None:
    """Run a command line as `taiwa` would, in this process."""
    sys.stdout.flush()
    code = cli.main(shlex.split(command)[1:], "taiwa", standalone_mode=False)
    if isinstance(code, int) and code:
        raise ProtocolError(f"the demonstration stopped: `{command}` ended with {code}")


@contextmanager
def _home(folder: Path, base_url: str) -> Generator[None]:
    """A home of its own: nothing of the person's settings, keys or conversations is read or written."""
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("TAIWA_")]:
        del os.environ[name]
    language = {"TAIWA_LANG": kept["TAIWA_LANG"]} if "TAIWA_LANG" in kept else {}
    model = f"{base_url}#a-written-dialogue"
    os.environ |= {
        "XDG_CONFIG_HOME": str(folder),
        "TAIWA_STORE": str(folder / "demo.db"),
        "TAIWA_MODEL": model,
    } | language
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= kept
