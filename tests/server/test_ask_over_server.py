"""Questions to documents over the server: citations that open, clarifying questions with options, and the persons who ask."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.serving import Serving, serving

Json = dict[str, Any]
LEAVE = """# Paid leave

Everybody has ten days of paid leave in a year.

# Sick leave

For sick leave a note of a doctor is due on day 3.

# Travel

Trains are booked by the office in Galway.
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server with one index, whose answers are quotations."""
    with serving(store=str(tmp_path_factory.mktemp("ask") / "store.db"), quotes=True) as started:
        parts = {"files": ("leave.md", LEAVE)}
        run = started.client.post("/api/indexes/handbook/documents", files=parts).json()["run"]
        started.client.get(f"/api/runs/{run}/events")
        yield started


def get(server: Serving, path: str, status: int = 200) -> Any:
    response = server.client.get(path)
    assert response.status_code == status, response.text
    return response.json()


def post(server: Serving, path: str, status: int, /, **body: object) -> Json:
    response = server.client.post(path, json=body)
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


def turn(server: Serving, run: str) -> Json:
    text = server.client.get(f"/api/runs/{run}/events").text
    fields = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    found = [json.loads(each["data"]) for each in fields if each["event"] == "turn"]
    assert found, text
    return dict(found[0])


def ask(server: Serving, text: str, **more: object) -> Json:
    body = {"app": "ask", "text": text, "params": {"in": ["handbook"]}, **more}
    return turn(server, post(server, "/api/conversations", 202, **body)["run"])


def test_the_citations_of_an_answer_open_their_documents(server: Serving) -> None:
    found = ask(server, "how many days of paid leave does everybody have")
    (citation,) = found["ask"]["citations"]

    assert citation["words"] in found["text"]
    opened = get(server, f"/api/passages/{citation['id']}")
    assert citation["words"] in opened["text"]
    quoted = get(server, f"/api/indexes/handbook/documents/leave.md?start={citation['start']}&end={citation['end']}")
    at = quoted["offset"]
    assert citation["words"] in quoted["text"][citation["start"] - at : citation["end"] - at]
    cited = [each["id"] for each in found["ask"]["passages"] if each["cited"]]
    assert cited == [citation["id"]]
    assert get(server, f"/api/nodes/{found['node']}")["ask"] == found["ask"]


def test_a_question_back_is_a_pause_with_options_and_their_passages(server: Serving) -> None:
    found = ask(server, "what about that leave")
    asked = found["ask"]

    assert (asked["act"], asked["question"] is not None) == ("ask", True)
    assert {each["label"] for each in asked["options"]} >= {"Paid leave", "Sick leave"}
    assert [each["number"] for each in asked["options"]] == list(range(1, len(asked["options"]) + 1))
    for option in asked["options"]:
        assert option["passages"][0]["text"]
        assert get(server, f"/api/passages/{option['passages'][0]['id']}")["path"] == "leave.md"
    assert "1. " in found["text"]
    here = f"/api/conversations/{found['session']}"
    assert get(server, f"{here}/question")["ask"] == asked
    sick = next(each["number"] for each in asked["options"] if each["label"] == "Sick leave")
    answered = turn(server, post(server, f"{here}/turns", 202, option=sick)["run"])
    assert "a note of a doctor is due on day 3" in answered["text"]
    assert get(server, f"{here}/question")["ask"] is None
    refused = post(server, f"{here}/turns", 409, option=9)["error"]
    assert refused["message"] == "option 9 does not exist; the last turn offers none"


def test_a_question_back_is_text_on_the_wires(server: Serving) -> None:
    body = {"model": "ask", "messages": [{"role": "user", "content": "what about that leave"}]}
    answer = post(server, "/v1/chat/completions", 200, **body, taiwa={"params": {"in": ["handbook"]}})

    text = answer["choices"][0]["message"]["content"]
    assert "Sick leave (1)" in text
    assert [each["label"] for each in answer["taiwa"]["options"]]
    assert answer["taiwa"]["question"] in text


def test_what_was_found_behind_the_shown_passages_is_a_near_miss(server: Serving) -> None:
    found = ask(server, "how many days of paid leave does everybody have")["ask"]

    shown = [each["id"] for each in found["passages"]]
    assert not set(shown) & {each["id"] for each in found["near_misses"]}
    assert all(each["score"] >= 0 and each["text"] for each in found["passages"])


def test_a_person_has_facts_and_feedback(server: Serving) -> None:
    shown = post(
        server, "/api/persons/ann", 200, facts={"office": "Osaka"}, language="en", thresholds={"eagerness": 0.8}
    )
    assert (shown["facts"], shown["language"], shown["thresholds"]["eagerness"]) == ({"office": "Osaka"}, "en", 0.8)
    rated = post(server, "/api/persons/ann/feedback", 200, verdict="should_have_asked")
    assert rated["learned"]["welcome"] > shown["learned"]["welcome"]
    assert [each["user"] for each in get(server, "/api/persons")] == ["ann"]
    changed = post(server, "/api/persons/ann", 200, facts={"office": None, "team": "Sales"})
    assert changed["facts"] == {"team": "Sales"}
    assert server.client.delete("/api/persons/ann/feedback").json()["feedback"] == {}
    assert server.client.delete("/api/persons/ann").json() == {"deleted": "ann"}
    assert get(server, "/api/persons/ann", 404)["error"]["code"] == "person_not_found"


def test_a_person_and_indexes_are_chosen_for_a_conversation(server: Serving) -> None:
    post(server, "/api/persons/ben", 200, facts={"office": "Galway"})
    found = ask(server, "who books trains", person="ben")
    here = f"/api/conversations/{found['session']}"
    assert server.repository.at(found["session"]).app.values["user"] == "ben"
    moved = post(server, f"{here}/params", 200, person="", params={"in": []})
    values = server.repository.at(moved["node"]).app.values
    assert (values["user"], values["in"]) == ("", [])
    assert [each["kind"] for each in get(server, here)][-1] == "app"
    for params, problem in (({"in": ["/etc"]}, "index '/etc' not found"), ({"as": ["group:hr"]}, "a request may not")):
        status = 404 if "not found" in problem else 400
        assert post(server, f"{here}/params", status, params=params)["error"]["message"].startswith(problem)
    assert server.client.delete("/api/persons/ben").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"facts": 1},
        {"facts": {"office": 3}},
        {"facts": {"": "x"}},
        {"facts": {"a.b": "x"}},
        {"language": "klingon"},
        {"thresholds": {"eagerness": 7}},
        {"thresholds": {"eagerness": "much"}},
        {"thresholds": {"eagerness": True}},
        {"thresholds": {"patience": 1}},
        {"color": "red"},
    ],
)
def test_a_bad_value_of_a_person_changes_nothing(server: Serving, body: Json) -> None:
    error = post(server, "/api/persons/nobody", 400, **body)["error"]

    assert error["message"]
    assert get(server, "/api/persons/nobody", 404)


@pytest.mark.parametrize("name", ["%20", "a%0Ab", "x" * 101])
def test_a_bad_name_of_a_person_is_refused(server: Serving, name: str) -> None:
    assert post(server, f"/api/persons/{name}", 400, facts={"office": "Osaka"})["error"]["message"]
