"""The evaluations of a model as real commands, with a model that speaks over the real wire; and what is left out is said."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.faults import FaultServer, speech
from training.builtin import evaluating
from training.builtin.evaluating import Plan, digest_of, evaluate, parts

QUESTION = {"id": 1, "question": "How many grams are 2 moles of water?", "answer": 36, "type": "Type_2"}
REFUSED = "I do not know the formula of it."


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as found:
        yield found


@pytest.fixture
def plan(tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Only questions of NumGLUE lie there, and a model that always says the same."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "numglue_task2.jsonl").write_text(json.dumps(QUESTION) + "\n")
    server.plays(speech(REFUSED))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(evaluating, "PACKAGE", data)  # a digest of all of the package is not needed here
    return Plan(tmp_path / "work", data, f"{server.base_url}#test", unknown=2)


def only(plan: Plan, *names: str) -> Plan:
    return Plan(plan.folder, plan.data, plan.model, unknown=plan.unknown, only=frozenset(names))


def test_a_part_is_a_real_command_and_is_gone_on_with(plan: Plan, server: FaultServer) -> None:
    chosen = only(plan, "unknown compounds", "orders")

    found = evaluate(chosen)
    asked = len(server.seen)
    again = evaluate(chosen)

    told: dict[str, Any] = found["parts"]["unknown compounds"]
    assert told["command"].startswith("taiwa eval reason --data unknown.jsonl --shots 0 --tools-on all --model http")
    assert (told["failed"], told["rows"][0]["n"]) == (0, 2)
    assert found["refusals"]["refused"]["count"] == 2
    assert found["refusals"]["number"]["share"] == 0
    assert found["confidence"]["unknown compounds: unanswerable"]["answered"]["count"] == 0
    assert found["validity"]["all"] == {**found["validity"]["all"], "count": 2, "of": 2}
    assert found["left_out"] == {"orders": "there is no typechat_inputs.jsonl here"}
    assert len(server.seen) == asked
    assert again["parts"]["unknown compounds"]["rows"] == told["rows"]
    assert json.loads((plan.folder / "evaluation.json").read_text())["refusals"] == found["refusals"]


def test_a_part_that_cannot_be_run_is_left_out_with_its_reason(plan: Plan) -> None:
    found = evaluate(Plan(plan.folder, plan.data, "nobody:nothing", unknown=1, only=frozenset({"unknown compounds"})))
    assert found["parts"] == {}
    assert "nobody" in found["left_out"]["unknown compounds"]
    assert (found["refusals"], found["validity"]) == (None, None)


def test_every_part_is_named_once_and_needs_files(plan: Plan) -> None:
    found = list(parts(plan))
    assert len({part.name for part in found}) == len(found) == 8
    assert [part.name for part in found if not part.missing()] == ["numglue", "numglue, no tool", "outside", "everyday"]


def test_parts_that_were_run_before_stay(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "_run", lambda *_: {"seconds": 1.0, "rows": []})
    evaluate(only(plan, "unknown compounds"))
    found = evaluate(only(plan, "orders"))
    assert list(found["parts"]) == ["unknown compounds"]
    assert list(found["left_out"]) == ["orders"]


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("Rust is Fe2O3.\n<<molar_mass: Fe2O3>> 159.687 g/mol\nTherefore, the answer is 3.", True),
        ("<<stoichiometry: A + B -> AB>> impossible", True),
        ("<<calculator: 3*4>> 12 / 60>> 7", False),
        ("<<calculator: 3*4", False),
        ("<<calculator: 3*<<calculator: 4>> 4", False),
    ],
)
def test_marks_that_belong_to_no_call_are_no_sound_text(text: str, sound: bool) -> None:
    found = {"ending": "end", "tool_errors": {}, "text": text}
    assert evaluating._sound(found) is sound


def test_the_digest_knows_every_file_but_the_card(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "a.py").write_text("1")
    first = digest_of(tmp_path)
    (tmp_path / "card.json").write_text("{}")
    (tmp_path / "model" / "a.pyc").write_text("x")
    assert digest_of(tmp_path) == first
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"1")
    assert digest_of(tmp_path) != first
