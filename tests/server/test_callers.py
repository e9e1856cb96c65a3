"""Named callers: keys, what belongs to whom, budgets and rates, on every wire in its own form."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from taiwa.kernel.messages import Request, Response, Usage, assistant
from taiwa.server import conversation_turns
from taiwa.server.access import ServerLimits
from taiwa.server.conversation_turns import MOST_LONG_KEPT
from taiwa.settings import ModelSettings
from taiwa.store.refs import Refs
from taiwa.store.server_records import Caller
from tests.server.page.tab import GatedModel
from tests.server.serving import Serving, serving
from tests.waiting import wait_for

Json = dict[str, Any]
WORDS = "Tea and cake."
DEAR = Response(assistant(WORDS), usage=Usage(400_000, 100_000))
"""Half a unit at the prices of `priced`."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(*[WORDS] * 12, store=str(tmp_path / "store.db")) as started:
        yield started


@contextmanager
def called(server: Serving, name: str, **limits: Any) -> Iterator[httpx.Client]:
    key = f"key-of-{name}"
    server.repository.store.callers.add(Caller(name, **limits), key)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=server.server.url, headers=headers, timeout=300) as client:
        yield client


def say(client: httpx.Client, text: str, **more: object) -> Json:
    body = {"model": "scripted", "input": text, "taiwa": {}, **more}
    response = client.post("/v1/responses", json=body)
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def test_what_belongs_to_another_caller_does_not_exist(server: Serving) -> None:
    with called(server, "ann") as ann, called(server, "ben") as ben:
        made = say(ann, "one")
        conversation = ann.post("/v1/conversations", json={}).json()["id"]
        ann.post("/api/persons/eve", json={"facts": {"office": "Osaka"}})
        files = {"files": ("a.md", "# Tea\n\nGreen tea is hot.\n")}
        run = ann.post("/api/indexes/notes/documents", files=files).json()["run"]
        ann.get(f"/api/runs/{run}/events")
        (passage,) = ann.get("/api/find", params={"q": "green tea"}).json()["passages"]
        place = made["taiwa"]
        foreign = [
            ("GET", f"/v1/responses/{made['id']}"),
            ("DELETE", f"/v1/responses/{made['id']}"),
            ("POST", f"/v1/responses/{made['id']}/cancel"),
            ("GET", f"/v1/responses/{made['id']}/input_items"),
            ("GET", f"/v1/conversations/{conversation}"),
            ("DELETE", f"/v1/conversations/{conversation}"),
            ("GET", f"/v1/conversations/{conversation}/items"),
            ("GET", f"/api/conversations/{place['session']}"),
            ("DELETE", f"/api/conversations/{place['session']}"),
            ("POST", f"/api/conversations/{place['session']}/turns"),
            ("GET", f"/api/conversations/{place['session']}/export"),
            ("GET", f"/api/nodes/{place['node']}"),
            ("GET", f"/api/nodes/{place['node']}/trace"),
            ("GET", f"/api/runs/{run}/events"),
            ("POST", f"/api/runs/{run}/cancel"),
            ("GET", "/api/indexes/notes"),
            ("GET", "/api/indexes/notes@ann"),
            ("DELETE", "/api/indexes/notes@ann"),
            ("GET", "/api/indexes/notes@ann/documents/a.md"),
            ("GET", "/api/indexes/notes@ann/find?q=tea"),
            ("GET", f"/api/passages/{passage['id']}"),
            ("GET", "/api/persons/eve"),
            ("DELETE", "/api/persons/eve"),
        ]
        for method, path in foreign:
            for other in (ben, server.client):
                response = other.request(method, path, json={} if method == "POST" else None)
                assert response.status_code == 404, f"{method} {path}: {response.text}"
        for path in ("/api/conversations", "/api/indexes", "/api/persons", "/api/cost", "/api/tree"):
            assert ben.get(path).json() == [], path
        assert ben.get("/api/find", params={"q": "tea"}).json()["passages"] == []
        assert ann.get(f"/v1/responses/{made['id']}").status_code == 200
        assert ann.get("/api/indexes/notes").json()["index"] == "notes@ann"
        assert ann.get("/api/persons/eve").status_code == 200


def test_a_node_of_another_caller_is_no_place_of_ones_own_conversation(server: Serving) -> None:
    with called(server, "ann") as ann, called(server, "ben") as ben:
        node = say(ann, "a secret")["taiwa"]["node"]
        own = f"/api/conversations/{say(ben, 'one')['taiwa']['session']}"
        asked = [
            ("POST", f"{own}/rewrite", {"edit": 1, "text": "x", "parent": node}),
            ("POST", f"{own}/turns", {"text": "x", "parent": node}),
            ("POST", f"{own}/turns", {"retry": True, "parent": node}),
            ("POST", f"{own}/turns", {"edit": 1, "text": "x", "replay": True, "parent": node}),
            ("POST", f"{own}/fork", {"name": "other", "node": node}),
            ("POST", f"{own}/state", {"path": "a", "value": 1, "parent": node}),
            ("GET", f"{own}/estimate?turn=1&node={node}", None),
            ("GET", f"{own}/state?node={node}", None),
            ("GET", f"{own}/end?node={node}", None),
            ("GET", f"/api/diff?before={node}&after={node}", None),
        ]

        for method, path, body in asked:
            response = ben.request(method, path, json=body)
            assert response.status_code == 404, f"{path}: {response.text}"
            assert node[:8] in response.text


def test_an_index_of_another_caller_cannot_be_searched_by_a_question(server: Serving) -> None:
    with called(server, "ann") as ann, called(server, "ben") as ben:
        files = {"files": ("a.md", "# Tea\n\nGreen tea is hot.\n")}
        ann.get(f"/api/runs/{ann.post('/api/indexes/notes/documents', files=files).json()['run']}/events")
        body = {"app": "ask", "text": "Is green tea hot?", "params": {"in": ["notes@ann"]}}
        for other in (ben, server.client):
            refused = other.post("/api/conversations", json=body)
            assert refused.status_code == 404
            assert "index 'notes@ann' not found" in refused.json()["error"]["message"]
        assert ann.post("/api/conversations", json=body).status_code == 202


def test_two_callers_can_use_one_name(server: Serving) -> None:
    files = {"files": ("a.md", "# Tea\n\nGreen tea is hot.\n")}
    with called(server, "ann") as ann, called(server, "ben") as ben:
        for each in (ann, ben, server.client):
            assert each.post("/api/indexes/notes/documents", files=files).status_code == 202
            begun = each.post("/api/conversations", json={"app": "plain", "text": "hi", "name": "talk"})
            assert begun.json()["session"] == "talk", begun.text
            each.get(f"/api/runs/{begun.json()['run']}/events")
        assert [len(each.get("/api/conversations").json()) for each in (ann, ben, server.client)] == [1, 1, 1]


def test_a_revoked_key_opens_nothing_from_then_on(server: Serving) -> None:
    with called(server, "ann") as ann:
        assert ann.get("/v1/models").status_code == 200
        server.repository.store.callers.revoke("ann")
        refused = ann.get("/v1/models")
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"


def test_a_key_decides_for_whom_documents_are_searched(server: Serving) -> None:
    secret = "---\naccess: [group:hr]\n---\n# Pay\n\nThe pay of a director is 9,000.\n"
    with called(server, "ann", principals=("group:hr",)) as ann, called(server, "ben") as ben:
        for each in (ann, ben):
            files = {"files": ("pay.md", secret)}
            each.get(f"/api/runs/{each.post('/api/indexes/pay/documents', files=files).json()['run']}/events")
        query = {"q": "pay of a director"}
        assert len(ann.get("/api/find", params=query).json()["passages"]) == 1
        assert ben.get("/api/find", params=query).json()["passages"] == []
        refused = ben.get("/api/find", params={**query, "as": "group:hr"})
        assert refused.status_code == 403


def priced(server: Serving) -> None:
    """Let a million tokens of the scripted model cost one unit."""
    catalogue = server.server.state.served
    catalogue.settings = replace(
        catalogue.settings, models=ModelSettings(prices={"scripted": {"input": 1, "output": 1}})
    )


AG_UI: Json = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}


def requests_on_every_wire(client: httpx.Client) -> dict[str, httpx.Response]:
    said = [{"role": "user", "content": "hi"}]
    return {
        "chat": client.post("/v1/chat/completions", json={"model": "scripted", "messages": said}),
        "stream": client.post("/v1/chat/completions", json={"model": "scripted", "messages": said, "stream": True}),
        "responses": client.post("/v1/responses", json={"model": "scripted", "input": "hi"}),
        "api": client.post("/api/conversations", json={"app": "plain", "text": "hi"}),
        "messages": client.post("/v1/messages", json={"model": "scripted", "messages": said, "max_tokens": 9}),
        "ollama": client.post("/api/chat", json={"model": "scripted", "messages": said}),
        "ag-ui": client.post("/ag-ui/agents/scripted", json=AG_UI),
    }


def test_a_spent_budget_is_the_error_of_each_wire(tmp_path: Path) -> None:
    with serving(*[DEAR] * 4, store=str(tmp_path / "store.db")) as server:
        priced(server)
        with called(server, "ann", max_cost=10**9) as ann:
            say(ann, "one")
            say(ann, "two")
            for name, response in requests_on_every_wire(ann).items():
                status = 402 if name == "messages" else 429  # Anthropic's billing_error
                assert response.status_code == status, f"{name}: {response.text}"
                assert "the limit on cost per day is reached: 1 of 1" in response.text, name
                assert 0 < int(response.headers["retry-after"]) <= 86_401
            assert len(server.model.requests) == 2
        say(server.client, "three")


def test_more_answers_in_a_minute_than_a_key_may_begin_are_refused(server: Serving) -> None:
    with called(server, "ann", rate=2) as ann:
        say(ann, "one")
        left = ann.post("/v1/chat/completions", json={}).headers
        assert (left["x-ratelimit-limit-requests"], left["x-ratelimit-remaining-requests"]) == ("2", "1")
        assert 0 < float(left["x-ratelimit-reset-requests"].removesuffix("s")) <= 60
        assert left["anthropic-ratelimit-requests-remaining"] == "1"
        say(ann, "two")
        assert not any("ratelimit" in name for name in server.client.post("/v1/chat/completions", json={}).headers)
        for name, response in requests_on_every_wire(ann).items():
            assert response.status_code == 429, f"{name}: {response.text}"
            assert "this key may begin 2 answers in a minute" in response.text, name
            assert 0 < int(response.headers["retry-after"]) <= 60
            assert response.headers["x-ratelimit-remaining-requests"] == "0"
        arguments = {"text": "tea", "json_schema": {"type": "object"}}
        params = {"name": "extract", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        extracted = ann.post("/mcp", json=message, headers=accept)
        assert "this key may begin 2 answers in a minute" in extracted.text
        there = ann.get("/api/conversations").json()
        history = [{"role": role, "content": "tea"} for role in ("user", "assistant")]
        assert ann.post("/v1/responses/compact", json={"model": "scripted", "input": history}).status_code == 429
        assert ann.get("/api/conversations").json() == there
        assert len(server.model.requests) == 2
        say(server.client, "three")


def test_the_streams_of_one_caller_leave_places_for_others(tmp_path: Path) -> None:
    with (
        serving(*[WORDS] * 3, store=str(tmp_path / "store.db"), limits=ServerLimits(streams=20)) as server,
        called(server, "ann") as ann,
        called(server, "ben") as ben,
        ExitStack() as opened,
    ):
        statuses = [
            opened.enter_context(client.stream("GET", "/api/events")).status_code for client in [ann] * 12 + [ben] * 6
        ]

        assert statuses == [200] * 10 + [429] * 2 + [200] * 5 + [429]
        assert server.client.get("/health").status_code == 200
        assert httpx.get(f"{server.server.url}/api/events").status_code == 401
        assert server.chat("hi").status_code == 200


def test_streams_that_wait_cost_the_turns_of_others_nothing(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    moves = Refs.moves
    monkeypatch.setattr(Refs, "moves", lambda refs: (looks.append(refs), moves(refs))[1])
    monkeypatch.setattr(conversation_turns, "LOOK_SECONDS", 3_600, raising=False)
    with called(server, "ann") as ann, called(server, "ben") as ben, ExitStack() as opened:
        streams = [opened.enter_context(ann.stream("GET", "/api/events")).iter_lines() for _ in range(10)]
        assert all("event: ready" in lines for lines in streams)
        looks.clear()

        say(ben, "one")
        say(ben, "two")
        own, looks[:] = looks[:], []
        say(ann, "three")

        assert own == []
        wait_for(lambda: len(looks) >= 10)


def test_the_answers_of_one_caller_leave_places_for_others(tmp_path: Path) -> None:
    model = GatedModel()
    with (
        serving(model=model, store=str(tmp_path / "store.db"), limits=ServerLimits(runs=16)) as server,
        called(server, "ann") as ann,
        called(server, "ben") as ben,
        ExitStack() as opened,
    ):
        body = {"model": "gated", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        asked = [
            opened.enter_context(client.stream("POST", "/v1/chat/completions", json=body)).status_code
            for client in [ann] * 10 + [ben] * 2
        ]
        model.gate.set()

        assert asked == [200] * 8 + [429] * 2 + [200] * 2


def test_a_revoked_key_ends_open_streams(tmp_path: Path) -> None:
    with serving(model=GatedModel(), store=str(tmp_path / "store.db")) as server, called(server, "ann") as ann:
        body = {"model": "gated", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        with (
            ann.stream("POST", "/v1/chat/completions", json=body) as answer,
            ann.stream("GET", "/api/events") as events,
            server.client.stream("GET", "/api/events") as others,
        ):
            parts, looked, kept = answer.iter_raw(), events.iter_raw(), others.iter_raw()
            assert all(map(next, (parts, looked, kept)))

            server.repository.store.callers.revoke("ann")

            for each in (parts, looked):
                with pytest.raises(httpx.RemoteProtocolError):
                    list(each)
            assert not others.is_closed
        assert ann.get("/api/conversations").status_code == 401
        server.model.gate.set()
        server.repository.store.callers.add(Caller("ann"), "key-of-ann")
        assert ann.get("/api/conversations").status_code == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"])
def test_a_request_that_waits_when_its_key_is_revoked_is_refused(tmp_path: Path, path: str) -> None:
    body: dict[str, Any] = {"model": "scripted", "stream": False}
    body |= {"input": "hi"} if "responses" in path else {"messages": [{"role": "user", "content": "hi"}]}
    body |= {"max_tokens": 9} if path == "/v1/messages" else {}
    asked, may_answer = threading.Event(), threading.Event()

    def answer(_: Request) -> str:
        asked.set()
        may_answer.wait(300)
        return "Too late."

    with serving(answer, store=str(tmp_path / "store.db")) as server, called(server, "ann") as ann:
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(ann.post, path, json=body)
            assert asked.wait(300)

            server.repository.store.callers.revoke("ann")

            refused = waiting.result(300)
        may_answer.set()

    assert (refused.status_code, "the key was revoked" in refused.text) == (401, True)


def test_garbage_is_collected_when_the_memory_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        def __init__(self) -> None:
            self.itself = self

    with serving() as server:
        gc.disable()
        try:
            left = weakref.ref(Node())
            asyncio.run(server.server._server.on_tick(10))
            assert left() is not None
            monkeypatch.setattr("taiwa.server.serve.used_memory", lambda: 1 << 50)
            asyncio.run(server.server._server.on_tick(10))
            assert left() is None
        finally:
            gc.enable()


def test_of_long_requests_few_are_kept_in_memory() -> None:
    with serving(*["Hello."] * 20, apps=("plain",)) as server:
        for number in range(18):
            said = [{"role": "system", "content": f"{number} {'x' * 150_000}"}, {"role": "user", "content": "Hi"}]
            assert (
                server.client.post("/v1/chat/completions", json={"model": "plain", "messages": said}).status_code == 200
            )
        server.client.post("/v1/chat/completions", json={"model": "plain", "messages": said[1:]})

        assert len(server.server.state.followed._runs) == MOST_LONG_KEPT + 1
        assert [len(app.instructions) for app in server.repository._apps.values()] == [0]
