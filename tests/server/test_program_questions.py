"""A program that asks the user, over the server: its question and options in each answer, and as choices on the page."""

import json
from pathlib import Path

import pytest

from taiwa.apps.catalog import own_code
from taiwa.conversation.code_files import confirm_file
from taiwa.models.scripted import scripted_model
from tests.server.serving import serving

PROGRAM = """
from taiwa import AskUser


def turn(conversation, text):
    size = yield AskUser("Which size?", ("small", "large"))
    return f"{text}, {size}"
"""


def shop(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> Path:
    """Write an app with a program of its own, which is confirmed."""
    monkeypatch.setenv("TAIWA_CONFIG", str(folder / "config" / "config.yaml"))
    (folder / "desk.py").write_text(program)
    path = folder / "desk.md"
    path.write_text("---\ntaiwa: 1\nflow: desk.py:turn\n---\n")
    for file in own_code(path):
        confirm_file(file)
    return path


def test_the_options_of_a_program_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shop(tmp_path, monkeypatch, PROGRAM)

    with serving(apps=(str(path),)) as server:
        asked = server.client.post(
            "/v1/chat/completions",
            json={"model": "desk", "messages": [{"role": "user", "content": "Tea"}], "taiwa": {}},
        ).json()["taiwa"]
        here = f"/api/conversations/{asked['session']}"
        completed = server.client.post("/v1/completions", json={"model": "desk", "prompt": "Tea", "stream": True}).text
        choices = server.client.get(f"/page/pending/{asked['session']}").text
        refused = server.client.post(f"{here}/turns", json={"option": 3})
        run = server.client.post(f"{here}/turns", json={"option": 2}).json()["run"]
        answered = server.client.get(f"/api/runs/{run}/events").text

    assert "Which size?" in completed
    options = [{"number": 1, "label": "small"}, {"number": 2, "label": "large"}]
    assert (asked["question"], asked["options"]) == ("Which size?", options)
    assert (choices.count("data-option="), "large" in choices) == (2, True)
    assert (refused.status_code, "choose from 1 to 2" in refused.text) == (409, True)
    assert '"text":"Tea, large"' in answered


SHOWING = """
from taiwa import AskUser
from taiwa.kernel.messages import Request, user
from taiwa.programs import Complete, perform, show


def turn(conversation, text):
    yield from perform(Complete(Request((user("Is it a question?"),))))
    yield from show(perform(Complete(Request((user(text),)))))
    size = yield AskUser("Which size?")
    return f"{text}, {size}"
"""


def test_what_a_program_shows_streams_to_clients_and_joins_to_its_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shop(tmp_path, monkeypatch, SHOWING)
    body = {"model": "desk", "messages": [{"role": "user", "content": "Tea"}], "stream": True}

    with serving(apps=(str(path),), model=scripted_model("Yes.", "We have green tea and black tea.")) as server:
        streamed = server.client.post("/v1/chat/completions", json=body)
        (ref,) = server.repository.store.refs.list()
        stored = server.repository.store.nodes.get(ref.tip).answer

    chunks = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
    pieces = [each["delta"].get("content") or "" for chunk in chunks for each in chunk["choices"]]
    assert "".join(pieces) == stored == "We have green tea and black tea.\n\nWhich size?"
    assert len(list(filter(None, pieces))) > 2
