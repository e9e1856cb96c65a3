"""Completion: in a shell, of commands, options and conversations; in a chat, of slash commands and what they take."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from taiwa.cli.keyboard import Slashes
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.cli.terminal import Terminal


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str, taiwa: Taiwa) -> None:
    assert "_TAIWA_COMPLETE" in taiwa.ok("completion", shell).out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("taiwa ren", "rename"),
        ("taiwa say --temp", "--temperature"),
        ("taiwa log -s mon", "monads"),
        ("taiwa show mon", "monads"),
    ],
)
def test_bash_completes_commands_options_and_conversations(
    line: str, wanted: str, taiwa: Taiwa, model_server: ModelServer, place: Place, tmp_path: Path
) -> None:
    model_server("A.")
    taiwa.ok("say", "-s", "monads", "Hi")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "taiwa").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m taiwa "$@"\n')
    (folder / "taiwa").chmod(0o755)
    words = line.split()
    script = f"""
{taiwa.ok("completion", "bash").out}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
_taiwa_completion taiwa {words[-1]} {words[-2]}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""

    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False,
        env=place.environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"),
    )  # fmt: skip

    assert wanted in done.stdout.splitlines(), done.stderr


def test_slash_commands_and_their_arguments_are_completed() -> None:
    slashes = Slashes({"fork": "fork", "model": "model"}, lambda name: [("chat-1", "plain")] if name == "fork" else ())

    def completed(text: str) -> list[str]:
        return [found.text for found in slashes.get_completions(Document(text), CompleteEvent())]

    assert completed("/f") == ["/fork"]
    assert completed("/fork ch") == ["chat-1"]
    assert completed("/fork x") == []
    assert completed("/model ") == []
    assert completed("text") == completed("/f\n") == []


def test_tab_completes_a_conversation_on_a_terminal(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server("A.")
    taiwa.ok("say", "-s", "monads", "Hi")

    with Terminal(place.environment(), "chat") as chat:
        chat.prompted()
        chat.type("/switch mo\t")
        chat.see("monads")
        chat.type("\r")
        chat.see("now on monads, turn 1")
        chat.prompted()
        chat.type("\x04")
        assert chat.end() == 0


def test_a_chat_changes_its_model_and_its_instructions(taiwa: Taiwa, model_server: ModelServer, tmp_path: Path) -> None:
    model_server("A.", "B.", "C.")
    other = model_server.model.replace("test-model", "other-model")

    said = taiwa.ok(
        "chat",
        input=f'/system Be brief.\nHi\n/system Be long.\nOn\n/system ""\n/model {other}\nAgain\n/export {tmp_path}/x.md\n',
    )

    first, second, third = model_server.requests
    assert first["messages"][0]["content"] == "Be brief."
    assert second["messages"][0]["content"] == "Be long."
    assert third["messages"][0]["role"] == "user"
    assert (second["model"], third["model"]) == ("test-model", "other-model")
    assert "Be brief." in said.err
    assert (tmp_path / "x.md").exists()
    assert [row.get("model") for row in taiwa.ok("log", "plain-1", "--json").json if row["kind"] == "turn"][-1] == other
