"""`python -m evals extract|state|solve|constrain|answer|turn|real` on a scripted server: ways, rows, failures of peers, resumption."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ModelServer, Place, delta
from tests.evals_published.conftest import Evals
from tests.peers.faults import Act, status

INSTALLED = ("taiwa", "openai", "pydantic-ai", *(["instructor"] if find_spec("instructor") else []))
"""Only `make bench` installs instructor."""
TEA = {"kind": "green"}
SCHEMA = {
    "type": "object", "properties": {"kind": {"enum": ["green", "black"]}}, "required": ["kind"],
    "additionalProperties": False,
}  # fmt: skip
DIALOGUE = {
    "id": "d1", "services": {"Trains": {"description": "Book trains", "fields": [
        {"name": "to", "description": "Where to"}, {"name": "class", "description": "Fare", "values": ["Value", "Flexible"]},
    ]}},
    "turns": [
        {"user": "To Rome, please.", "system": "When?", "state": {"Trains": {"to": ["Rome"]}}},
        {"user": "Flexible.", "system": "Done.", "state": {"Trains": {"to": ["Rome"], "class": ["Flexible"]}}},
    ],
}  # fmt: skip


def whole(text: str, tokens: int = 7) -> Act:
    """Answer in one piece, as the openai client asks for."""
    message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [message], "usage": usage}
    return status(200, json.dumps(body).encode())


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def teas(place: Place) -> tuple[str, ...]:
    rows = [{"id": "a", "domain": "tea", "input": "a green tea", "expected": TEA}]
    kind = {"domain": "tea", "root": "Tea", "kind": "object", "json_schema": SCHEMA}
    data = write(place.folder / "inputs.jsonl", *rows), write(place.folder / "schemas.jsonl", kind)
    return ("extract", "--data", data[0], "--data", data[1])


def by_way(found: Any) -> dict[str, Any]:
    return {row["setting"]: row for row in found["rows"]}


def test_all_ways_extract_from_one_server_and_are_counted_alike(
    evals: Evals, model_server: ModelServer, teas: tuple[str, ...]
) -> None:
    green = json.dumps(TEA)
    model_server(green, *[whole(green)] * (len(INSTALLED) - 1))
    found = by_way(evals.ok(*teas, "-m", model_server.model, "--way", ",".join(INSTALLED), "--json").json)
    assert {name: (row["right"], row["requests"]) for name, row in found.items()} == dict.fromkeys(INSTALLED, (1.0, 1))
    assert (found["openai"]["input_tokens"], found["openai"]["output_tokens"]) == (20, 7)
    sent = model_server.requests
    assert all((each["temperature"], each["seed"]) == (0, 0) for each in sent[1:])
    assert {each.get("max_tokens", each.get("max_completion_tokens")) for each in sent} == {400}
    assert sent[1]["response_format"]["type"] == "json_schema"


def test_a_failure_of_a_peer_is_an_invalid_answer_with_its_reason(
    evals: Evals, model_server: ModelServer, teas: tuple[str, ...]
) -> None:
    model_server(status(400, b'{"error": {"message": "no such grammar"}}'))
    row = by_way(evals.ok(*teas, "-m", model_server.model, "--way", "openai", "--json").json)["openai"]
    assert (row["valid"], row["right"], row["failed"]) == (0.0, 0.0, 0)
    assert row["reasons"] == {"BadRequestError": 1}


def test_a_dead_server_fails_the_row_and_the_same_command_goes_on(
    evals: Evals, model_server: ModelServer, teas: tuple[str, ...], place: Place
) -> None:
    out = ("--out", str(place.folder / "run"), "--way", "openai", "--json", "-m", model_server.model)
    gone = evals(*teas, "-m", "http://127.0.0.1:9/v1#m", "--way", "openai", "--json")
    assert (gone.code, gone.json["failed"]) == (1, 1)
    model_server(whole(json.dumps(TEA)))
    assert evals.ok(*teas, *out).json["rows"][0]["right"] == 1.0
    before = len(model_server.requests)
    assert evals.ok(*teas, *out).json["rows"][0]["right"] == 1.0
    assert len(model_server.requests) == before


def test_the_state_is_carried_on_by_deltas_and_replies_are_those_of_the_data(
    evals: Evals, model_server: ModelServer, place: Place
) -> None:
    data = write(place.folder / "trains.jsonl", DIALOGUE)
    states = [{"Trains_to": "Rome", "Trains_class": None}, {"Trains_to": "Paris", "Trains_class": "Flexible"}]
    model_server(
        'Sure.\n@@delta\n{"Trains_to": "rome"}', 'Yes.\n@@delta\n{"Trains_class": "Flexible"}',
        *(whole(json.dumps(state)) for state in states),
    )  # fmt: skip
    told = evals.ok("state", "--data", data, "-m", model_server.model, "--way", "taiwa:text+delta,openai", "--json")
    found = by_way(told.json)
    assert (found["taiwa:text+delta"]["joint"], found["taiwa:text+delta"]["f1"]) == (1.0, 1.0)
    assert (found["openai"]["joint"], found["openai"]["joint_of"]) == (0.5, [1, 2])
    second = json.dumps(model_server.requests[1])
    assert "When?" in second
    assert "Sure." not in second
    assert "Trains_to" in model_server.requests[1]["messages"][-1]["content"]


def test_the_limit_counts_turns_of_dialogues(evals: Evals, model_server: ModelServer, place: Place) -> None:
    data = write(place.folder / "trains.jsonl", DIALOGUE, {**DIALOGUE, "id": "d2"})
    model_server(*(whole("{}") for _ in range(3)))
    (row,) = evals.ok(
        "state", "--data", data, "-m", model_server.model, "--way", "openai", "--limit", "3", "--json"
    ).json["rows"]
    assert (row["n"], row["turns"], row["silent"]) == (2, 3, 3)


def test_problems_are_solved_by_both_and_compared_as_numbers(
    evals: Evals, model_server: ModelServer, place: Place
) -> None:
    data = write(place.folder / "sums.jsonl", {"question": "What is 6 times 7?", "answer": 42})
    model_server("It is 42.", whole("6 * 7 = 42\nAnswer: 42 apples"))
    found = by_way(
        evals.ok("solve", "--data", data, "-m", model_server.model, "--way", "taiwa:no-tools,openai", "--json").json
    )
    assert {name: row["right"] for name, row in found.items()} == {"taiwa:no-tools": 1.0, "openai": 1.0}


def test_constrained_answers_are_checked_whoever_enforced_them(
    evals: Evals, model_server: ModelServer, place: Place
) -> None:
    data = write(place.folder / "teas.jsonl", {"id": "tea", "schema": SCHEMA})
    model_server(json.dumps(TEA), whole(json.dumps(TEA)), whole('{"kind": "red"}'))
    ways = ("--way", "taiwa,openai,openai:free")
    found = by_way(evals.ok("constrain", "--data", data, "-m", model_server.model, *ways, "--json").json)
    assert {name: row["valid"] for name, row in found.items()} == {"taiwa": 1.0, "openai": 1.0, "openai:free": 0.0}


def test_whole_turns_are_asked_beside_a_rag(evals: Evals, model_server: ModelServer, place: Place) -> None:
    write(place.folder / "leave_passages.jsonl", {"id": "p1", "text": "Sick leave needs a note from the doctor."})
    row = {"id": "q1", "q": "who writes the note for sick leave", "rel": ["p1"], "answers": ["the doctor"]}
    data = write(place.folder / "leave_questions.jsonl", row)
    model_server(whole("The doctor writes it."))
    found = by_way(
        evals.ok("answer", "--data", data, "-m", model_server.model, "--way", "taiwa:no-model,rag", "--json").json
    )
    assert {name: row["right"] for name, row in found.items()} == {"taiwa:no-model": 1.0, "rag": 1.0}
    assert found["taiwa:no-model"]["right_passage"] == 1.0
    assert "Sick leave needs a note" in model_server.last_message()


def test_a_turn_at_a_desk_reads_state_documents_and_a_tool_and_must_keep_the_state(
    evals: Evals, model_server: ModelServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = {
        "id": "ferry", "language": "en", "instructions": "Be brief.", "documents": {"fares.md": "# Fares\nA car pays 1,200 crowns a night."},
        "state": {"nights": "int | null", "cars": "int | null"}, "said": "Two nights with one car.", "reply": "Of course.",
        "recorded": {"nights": 2, "cars": 1},
        "questions": [{"question": "What does a car pay for both nights?", "accepted": ["2400"], "rejected": ["1200"]}],
    }  # fmt: skip
    write(place.folder / "desks.jsonl", desk)
    monkeypatch.setattr("evals.real.turn.BUNDLED", place.folder / "desks.jsonl")
    model_server(
        "<<calculator: 2 * 1200>>",
        delta("It pays 2,400 crowns."),
        delta("It pays 2400.", nights=1),
        whole("It pays 1,200."),
    )
    found = by_way(evals.ok("turn", "-m", model_server.model, "--way", "taiwa,taiwa:no-tools,openai", "--json").json)
    marks = {name: (row["right"], row["state_kept"], row["tool_calls"]) for name, row in found.items()}
    assert marks == {"taiwa": (1.0, 1.0, 1), "taiwa:no-tools": (1.0, 0.0, 0), "openai": (0.0, None, 0)}
    told = json.dumps([each["messages"] for each in model_server.requests])
    assert "1,200 crowns a night" in json.dumps(model_server.requests[1]["messages"])
    assert told.count("Two nights with one car.") == len(model_server.requests)


def test_the_run_of_all_writes_results_and_goes_on(
    evals: Evals, model_server: ModelServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = place.folder / "data"
    folder.mkdir()
    write(folder / "typechat_inputs.jsonl", {"id": "a", "domain": "tea", "input": "a green tea", "expected": TEA})
    kind = {"domain": "tea", "root": "Tea", "kind": "object", "json_schema": SCHEMA}
    write(folder / "typechat_schemas.jsonl", kind)
    model_server(json.dumps(TEA), *[whole(json.dumps(TEA))] * 3)
    monkeypatch.setattr("evals.real.extract.DEFAULT_WAYS", ("taiwa", "openai"))
    command = (
        "real", "--data", str(folder), "--only", "extract", "--out", str(place.folder / "out"), "-m", model_server.model,
    )  # fmt: skip
    shown = evals.ok(*command)
    assert "| typechat | openai | 1 | 100.00" in shown.out
    (path,) = (place.folder / "out").glob("*.json")
    kept = json.loads(path.read_text())
    assert (kept["seed"], kept["limit"], list(kept["evaluations"])) == (0, 30, ["extract"])
    before = len(model_server.requests)
    evals.ok(*command)
    assert len(model_server.requests) == before

    solved = dict(kept["evaluations"]["extract"], evaluation="solve")
    earlier = kept | {"date": "2026-01-02T03:04:05+00:00", "load": [9.5], "evaluations": {"solve": solved}}
    path.write_text(json.dumps(earlier))
    evals.ok(*command)
    assert json.loads(path.read_text())["evaluations"].keys() == {"solve", "extract"}
    shown = path.with_suffix(".md").read_text().partition("### extract")
    assert "\n2026-01-02 · " in shown[0]
    assert "load 9.5 at the start" in shown[0]
    assert "2026-01-02" not in shown[2]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (("--way", "rag"), "unknown way 'rag'"),
        (("--way", "taiwa-gguf"), "requires a GGUF file"),
        (("-m", "nowhere.gguf"), "nowhere.gguf: no such file"),
        (("--data", "nowhere.jsonl"), "nowhere.jsonl: No such file"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(
    evals: Evals, model_server: ModelServer, teas: tuple[str, ...], more: tuple[str, ...], complaint: str
) -> None:
    model_server()
    done = evals(*teas, "-m", model_server.model, *more)
    assert done.code == 2
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_a_peer_that_is_not_installed_is_named_with_its_command(
    evals: Evals, model_server: ModelServer, teas: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model_server()
    monkeypatch.setitem(sys.modules, "instructor", None)
    done = evals(*teas, "-m", model_server.model, "--way", "instructor")
    assert done.code == 2
    assert "pip install 'instructor'" in done.err
