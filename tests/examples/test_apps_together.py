"""The four apps that are more than one system at once: each with what a small model wrote, and with undo, fork, replay and why."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import taiwa
from taiwa.apps.catalog import check, load, own_code
from taiwa.conversation.code_files import confirm_file
from taiwa.kernel.messages import Capability
from taiwa.kernel.serialization import Json
from taiwa.models.scripted import scripted_model
from taiwa.operations.state_values import why
from taiwa.sessions.session import Session
from tests.house.source import ROOT

NAMES = ("intake", "lab-notebook", "support-desk", "travel-desk")
LOCAL: frozenset[Capability] = frozenset({"json_schema", "regex", "local", "prefix", "stop"})


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Open a conversation with one of the apps, whose code is confirmed, and a model of this machine with these answers."""
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config" / "config.yaml"))

    def opened(name: str, *answers: str) -> Session:
        shutil.copytree(ROOT / "examples" / name, tmp_path / name, dirs_exist_ok=True)
        path = tmp_path / name / f"{name}.md"
        for file in own_code(path):
            confirm_file(file)
        model = scripted_model(*answers, capabilities=LOCAL)
        return taiwa.open(load(path), model=model, store=tmp_path / "store.db", session=name)

    return opened


def changes(**values: Json) -> str:
    import json

    return json.dumps([{"field": name, "value": part} for name, part in values.items()])


def sources(session: Session, path: str) -> list[tuple[str, str, str]]:
    found = why(session.repository, path, session.name).origin.sources
    return [(each.path, each.kind, each.words) for each in found]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_no_problem(name: str, begin: Callable[..., Session], tmp_path: Path) -> None:
    begin(name)

    assert check(tmp_path / name / f"{name}.md") == ()


def test_the_travel_desk_takes_no_price_that_no_source_holds(begin: Callable[..., Session]) -> None:
    session = begin(
        "travel-desk",
        changes(people=2, nights=3, town="Atlantis"),
        "The Harbour Inn has twelve rooms above the quay. [2] A double room costs 104 pounds a night.",
        changes(inn="Harbour Inn", pounds=104),
        changes(),
        "The stay is 360 pounds.",
        changes(pounds=360),
        changes(),
        "It is <<calculator: 3 * 104>>",
        " pounds.",
        changes(pounds=312),
    )

    first = session.say("We are two and would like three nights in Brenbay.")
    wrong = session.say("And in all?")
    fork = session.fork("again")
    right = fork.say("Use the calculator, please.")

    assert first.text.startswith(
        "The Harbour Inn has twelve rooms above the quay. [1] A double room costs 104 pounds a night."
    )
    assert first.warnings == ('town: no source holds "Atlantis", so it was left out',)
    assert wrong.warnings == ("pounds: no source holds 360, so it was left out",)
    assert session.state == {"town": None, "people": 2, "nights": 3, "inn": "Harbour Inn", "pounds": 104}
    assert [(each.name, each.text) for each in right.calls] == [("calculator", "312")]
    assert sources(fork, "pounds") == [("", "tool", "312")]
    assert sources(fork, "inn") == [("", "passage", "The Harbour Inn has twelve rooms above the quay.")]
    assert sources(fork, "people") == [("", "user", "We are two and would like three nights in Brenbay.")]
    assert not [each.difference for each in fork.replay() if each.difference]
    fork.undo()
    assert fork.state["pounds"] == 104


def test_the_notebook_keeps_a_result_with_the_call_that_gave_it(begin: Callable[..., Session]) -> None:
    session = begin(
        "lab-notebook",
        "It is <<molar_mass: NaCl>>",
        ".",
        changes(results={"molar mass of NaCl": "58.4398 g/mol", "mood": "good"}),
    )

    turn = session.say("What is the molar mass of NaCl?")

    assert session.state == {"results": {"molar mass of NaCl": "58.4398 g/mol"}}
    assert turn.warnings == ('results: no source holds {"mood": "good"}, so it was left out',)
    assert sources(session, "results") == [("molar mass of NaCl", "tool", "58.4398 g/mol")]
    assert not [each.difference for each in session.replay() if each.difference]


def test_the_form_asks_until_it_is_complete_and_reads_once(begin: Callable[..., Session]) -> None:
    session = begin("intake", '{"name": "Mina", "born": null, "reason": null}')

    texts = [session.say(text).text for text in ("I am Mina.", "yesterday", "2190-01-01", "1988-02-29", "2")]

    assert texts == [
        "When were you born? Write the date as 1990-12-31.",
        "When were you born? Write the date as 1990-12-31.",
        "2190-01-01 cannot be a date of birth. Which is it?",
        "Why do you come?\n1. a check-up\n2. pain\n3. something else",
        "Thank you, Mina. The visit is booked: pain.",
    ]
    assert session.state == {"visit": {"name": "Mina", "born": "1988-02-29", "reason": "pain"}}
    assert not [each.difference for each in session.replay() if each.difference]
    session.undo()
    assert session.say("My tooth").text == "Thank you, Mina. The visit is booked: My tooth."


def test_the_support_desk_can_write_nothing_but_sentences_of_the_manual(begin: Callable[..., Session]) -> None:
    session = begin(
        "support-desk",
        changes(kettle="K2"),
        "The K2 is descaled with citric acid only; vinegar damages its seal.\nVinegar is fine.",
        changes(),
        "Just use vinegar.",
    )

    first = session.say("How do I descale my K2?")
    second = session.say("How do I descale it with vinegar?")

    assert first.text.splitlines()[0] == "The K2 is descaled with citric acid only; vinegar damages its seal. [1]"
    assert "fine" not in first.text
    assert "Just use" not in second.text
    assert (session.state, sources(session, "kettle")) == ({"kettle": "K2"}, [("", "user", "How do I descale my K2?")])
    request: Any = session.priced_model.model
    assert "citric acid" in request.requests[1].constraint.pattern.replace("\\", "")
    assert all(
        claim.supported for turn in (first, second) if turn.ask and turn.ask.answer for claim in turn.ask.answer.claims
    )
