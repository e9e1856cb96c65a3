"""The demonstration runs the real commands against a played dialogue, and says that it is one."""

import os
import re
from collections.abc import Callable

import pytest

from taiwa.kernel.errors import ModelError
from taiwa.kernel.values import Request, fold, user
from taiwa.lab.player import Line, Player
from taiwa.models.http import HttpModel
from taiwa.models.names import resolve
from tests.cli.conftest import Taiwa


def test_the_demonstration_runs_to_its_end_and_says_what_it_is(taiwa: Taiwa) -> None:
    result = taiwa.ok("demo")

    assert "NOT written by a model" in result.out
    assert len(re.findall(r"^\$ taiwa ", result.out, re.MULTILINE)) == 13
    assert '~ dictionary.猫: "cat" → "kitty"' in result.out
    assert "set by turn 2" in result.out
    assert "0 model calls" in result.out
    assert "\x1b" not in result.out


def test_the_demonstration_leaves_nothing_of_the_person_changed(taiwa: Taiwa) -> None:
    before = dict(os.environ)

    taiwa.ok("demo")

    assert dict(os.environ) == before
    assert "no conversation yet" in taiwa.ok("log").err


@pytest.fixture
def ask_player() -> Callable[[Player, str], str]:
    def ask(player: Player, text: str) -> str:
        model = HttpModel(resolve(f"{player.base_url}#any"))
        try:
            return fold(model.stream(Request((user(text),)))).text
        except ModelError as error:
            return error.message

    return ask


def test_a_player_refuses_what_its_dialogue_does_not_expect(ask_player: Callable[[Player, str], str]) -> None:
    with Player([Line("yes", ("the right words",))]) as player:
        wrong = ask_player(player, "other words")
        right = ask_player(player, "the right words")
        over = ask_player(player, "the right words")

    assert "expects 'the right words'" in wrong
    assert right == "yes"
    assert "the written dialogue is over" in over
