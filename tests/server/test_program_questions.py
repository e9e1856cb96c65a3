"""A program that asks the user, over the server: its question and options in each answer, and as choices on the page."""

from pathlib import Path

import pytest

from taiwa.apps.catalog import own_code
from taiwa.conversation.code_files import confirm_file
from tests.server.serving import serving

PROGRAM = """
from taiwa import AskUser


def turn(conversation, text):
    size = yield AskUser("Which size?", ("small", "large"))
    return f"{text}, {size}"
"""


def test_the_options_of_a_program_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config" / "config.yaml"))
    (tmp_path / "desk.py").write_text(PROGRAM)
    path = tmp_path / "desk.md"
    path.write_text("---\ntaiwa: 1\nflow: desk.py:turn\n---\n")
    for file in own_code(path):
        confirm_file(file)

    with serving(apps=(str(path),)) as server:
        asked = server.client.post(
            "/v1/chat/completions",
            json={"model": "desk", "messages": [{"role": "user", "content": "Tea"}], "taiwa": {}},
        ).json()["taiwa"]
        here = f"/api/conversations/{asked['session']}"
        choices = server.client.get(f"/page/pending/{asked['session']}").text
        refused = server.client.post(f"{here}/turns", json={"option": 3})
        run = server.client.post(f"{here}/turns", json={"option": 2}).json()["run"]
        answered = server.client.get(f"/api/runs/{run}/events").text

    options = [{"number": 1, "label": "small"}, {"number": 2, "label": "large"}]
    assert (asked["question"], asked["options"]) == ("Which size?", options)
    assert (choices.count("data-option="), "large" in choices) == (2, True)
    assert (refused.status_code, "choose from 1 to 2" in refused.text) == (409, True)
    assert '"text":"Tea, large"' in answered
