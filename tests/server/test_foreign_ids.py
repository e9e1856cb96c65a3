"""Every path of the server with the ids of another caller: they are those of what does not exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from taiwa.models.scripted import scripted_model
from taiwa.server.serve import WIRES
from taiwa.store.server_records import Caller
from tests.server.serving import Serving, serving

SECRET = "mushrooms for 12,000 yen"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    store = str(tmp_path / "taiwa.db")  # with documents of its own
    with serving(model=scripted_model(*[f"{SECRET} {n}" for n in range(9)]), store=store) as started:
        started.repository.store.callers.add(Caller("ann"), "ann-key")
        yield started


def ann(server: Serving) -> httpx.Client:
    return httpx.Client(base_url=server.server.url, headers={"authorization": "Bearer ann-key"}, timeout=300)


def own(client: httpx.Client) -> dict[str, Any]:
    """The ids of what a caller has: a conversation, a node, a run, a response, and an uploaded file."""
    run = client.post("/api/conversations", json={"app": "plain", "text": "a", "name": "mine"}).json()["run"]
    client.get(f"/api/runs/{run}/events")
    node = client.get("/api/conversations/mine").json()[-1]["node"]
    response = client.post("/v1/responses", json={"model": "scripted", "input": "b"}).json()["id"]
    conversation = client.post("/v1/conversations", json={}).json()["id"]
    file = client.post("/v1/files", data={"purpose": "user_data"}, files={"file": ("a.md", b"mushrooms")}).json()["id"]
    client.post("/v1/vector_stores", json={"name": "cellar", "file_ids": [file]})
    made = {"session": "mine", "node": node, "run": run, "response": response, "conversation": conversation}
    return made | {"file": file, "store": "cellar"}


PATHS = sorted(
    {(route.path, method) for wire in WIRES for route in wire.routes for method in route.methods if "{" in route.path}
)


def test_an_id_of_another_caller_is_one_that_does_not_exist(server: Serving) -> None:
    ids = own(server.client)
    before = server.client.get("/api/conversations").json(), server.client.get("/api/cost").json()
    with ann(server) as client:
        for path, method in PATHS:
            if path == "/page/{name}":
                continue  # assets
            for value in ids.values():
                url = re.sub(r"\{[^}]*\}", value, path)
                response = client.request(
                    method,
                    url,
                    **({} if method in ("GET", "DELETE") else {"json": {"text": "x", "name": "y", "path": "a"}}),
                )
                assert response.status_code in (400, 404, 405, 415), (
                    method,
                    url,
                    response.status_code,
                    response.text[:200],
                )
                assert "mushrooms" not in response.text
        for path in (
            "/",
            "/api/conversations",
            "/api/conversations?q=mushrooms",
            "/api/tree",
            "/api/cost",
            "/?q=mushrooms",
        ):
            found = client.get(path)
            assert found.status_code == 200
            assert "12,000" not in found.text
            assert ids["node"][:12] not in found.text
        assert client.get("/api/cost").json() == []

    assert (server.client.get("/api/conversations").json(), server.client.get("/api/cost").json()) == before


def test_a_caller_sees_its_own_bill_and_no_list_of_the_others(server: Serving) -> None:
    own(server.client)
    with ann(server) as client:
        own(client)
        assert [line["requests"] for line in client.get("/api/cost?by=app").json()] == [2]
        assert client.get("/api/cost?by=owner").status_code == 400
    assert [line["requests"] for line in server.client.get("/api/cost?by=app").json()] == [2]
    assert server.client.get("/api/cost?by=owner").status_code == 400


def test_two_callers_name_their_conversations_alike(server: Serving) -> None:
    own(server.client)
    with ann(server) as client:
        own(client)
        client.delete("/api/conversations/mine")
        assert client.get("/api/conversations/mine").status_code == 404
    assert server.client.get("/api/conversations/mine").status_code == 200


def test_a_history_that_another_caller_had_begins_anew(server: Serving) -> None:
    first = server.chat("a", taiwa={}).json()
    said = [{"role": "user", "content": "a"}, first["choices"][0]["message"], {"role": "user", "content": "b"}]
    with ann(server) as client:
        other = client.post("/v1/chat/completions", json={"model": "scripted", "messages": said, "taiwa": {}}).json()
    again = server.chat(said, taiwa={}).json()

    assert again["taiwa"]["session"] == first["taiwa"]["session"]
    assert other["taiwa"]["node"] != again["taiwa"]["node"]
