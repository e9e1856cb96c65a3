"""Three languages say the same things, with the same gaps to be filled."""

import ast
import string
from pathlib import Path
from typing import get_args

import pytest

import taiwa.cli
from taiwa.cli import slash
from taiwa.cli.words import LANGUAGES, WARNINGS, WORDS, language, warning, words
from taiwa.flows.rationale import Ending

SOURCES = Path(taiwa.cli.__file__).parent


def gaps(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize("key", WORDS)
def test_each_language_has_the_words_and_the_same_gaps(key: str) -> None:
    texts = WORDS[key]

    assert len(texts) == len(LANGUAGES)
    assert all(text.strip() for text in texts)
    assert len({tuple(gaps(text)) for text in texts}) == 1


@pytest.mark.parametrize("key", WORDS)
def test_japanese_and_chinese_are_not_english(key: str) -> None:
    english, *others = WORDS[key]

    assert all(any(ord(letter) > 0x2FFF for letter in text) for text in others if text != english)


def used() -> set[str]:
    """The keys that the code asks for."""
    found: set[str] = set()
    for path in SOURCES.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "words":
                found |= {str(node.value) for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)}
    return found & set(WORDS)


def test_no_words_are_left_that_nobody_says() -> None:
    endings = {f"ending_{name}" for name in get_args(Ending)}
    spoken = used() | endings | {f"help_{name}" for name in slash.SLASHES} | set(WARNINGS.values())

    # Said through a variable: the moves, and what the flow warns of.
    assert set(WORDS) - spoken <= {"undone", "redone", "switched", "warn_state", "no_undo", "no_redo", "too_far"}


@pytest.mark.parametrize(
    ("environ", "chosen"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "zh_CN.UTF-8", "TAIWA_LANG": "en"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "ja"}, "ja"),
    ],
)
def test_the_nearest_setting_chooses_the_language(environ: dict[str, str], chosen: str) -> None:
    assert language(environ) == chosen


def test_what_a_turn_warns_of_is_said_in_the_person_s_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_LANG", "ja")

    assert warning("the state was left as it was: no") == "状態は更新されませんでした: no"
    assert warning("the model refused to go on") == "モデルが続きを拒否しました"
    assert warning("something else") == "something else"


def test_the_warnings_that_are_known_are_those_of_the_flow() -> None:
    flow = (SOURCES.parent / "flows" / "chat.py").read_text(encoding="utf-8")

    assert [text for text in WARNINGS if text not in flow] == []


def test_a_gap_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_LANG", "zh")

    assert words("undone", turn=3) == "已回到第 3 轮"
