"""What a client repeats, and what it must not: statuses and headers by which SDKs decide, counted as calls of the model's server."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request as HttpRequest

from taiwa.apps.catalog import load_app
from taiwa.kernel.errors import OverloadedError
from taiwa.kernel.messages import Request
from taiwa.models.http_api.client import Clock, HttpModel
from taiwa.models.providers import resolve
from taiwa.server import repeats as repeats_module
from taiwa.server.repeats import MAX_KEPT_BYTES, Repeats
from tests.lazily import Lazily
from tests.peers.faults import Act, FaultServer, event, raw, speech, status
from tests.server.serving import KEY, Serving, serving

anthropic: Any = Lazily("anthropic")
openai: Any = Lazily("openai")


async def at_once(_: float) -> None:
    """A sleep that takes no time."""


@pytest.fixture(scope="module")
def served(upstream: FaultServer) -> Iterator[Serving]:
    name = f"{upstream.base_url}#test-model"
    model = HttpModel(resolve(name), clock=Clock(sleep=at_once))
    with serving(model=model) as running:
        yield running


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients do not sleep before they repeat."""
    for client in (openai.OpenAI, anthropic.Anthropic):
        monkeypatch.setattr(client, "_calculate_retry_timeout", lambda *_, **__: 0.0)


def refusal(number: int, message: str, **fields: str) -> Act:
    return status(number, json.dumps({"error": {"message": message, **fields}}).encode())


CASES = {
    "invalid": (refusal(400, "bad field", code="invalid_value"), 400, 1),
    "too long": (refusal(400, "maximum context length is 10 tokens", code="context_length_exceeded"), 400, 1),
    "filtered": (refusal(400, "no", code="content_filter"), 400, 1),
    "wrong key": (refusal(401, "no", code="invalid_api_key"), 401, 1),
    "forbidden": (refusal(403, "no", code="permission_denied"), 403, 1),
    "missing": (refusal(404, "The model `test-model` does not exist", code="model_not_found"), 404, 1),
    "unavailable": (refusal(451, "not in your country"), 451, 1),
    "failed": (refusal(500, "oops", type="server_error"), 502, 1),
    "busy": (refusal(503, "later", type="server_error"), 503, 3),
    "limited": (refusal(429, "slow down", code="rate_limit_exceeded"), 429, 3),
    "no credit": (refusal(429, "pay", code="insufficient_quota"), 429, 1),
    "cut": (raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", event({"content": "Hel"})), 502, 1),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("wire", ["chat", "responses", "messages"])
def test_the_default_client_of_an_sdk_adds_no_calls_to_those_of_the_server(
    served: Serving, upstream: FaultServer, case: str, wire: str, streams: bool
) -> None:
    act, code, calls = CASES[case]
    upstream.plays(act)

    found = failure(served, wire, streams=streams)

    assert len(upstream.seen) == calls
    if streams and (case == "cut" or wire == "responses"):
        return  # the error is an event of the stream
    own = {502: 500, 503: 529} | ({429: 402} if case == "no credit" else {})
    assert found.status_code == (own.get(code, code) if wire == "messages" else code)
    if case in CODES and wire != "messages":
        assert found.body["code"] == CODES[case]


CODES = {
    "too long": "context_length_exceeded",
    "filtered": "content_filter",
    "wrong key": "invalid_api_key",
    "missing": "model_not_found",
    "limited": "rate_limit_exceeded",
    "no credit": "insufficient_quota",
}


def failure(served: Serving, wire: str, *, streams: bool, **more: Any) -> Any:
    """The error of the default client of an SDK; for a failure in the middle of a stream, an error of it or its last event."""
    said: list[Any] = [{"role": "user", "content": "Hi"}]
    given: dict[str, Any] = {"model": served.model.name, "stream": streams, **more}
    last: Any = None
    try:
        if wire == "messages":
            with anthropic.Anthropic(base_url=served.server.url, api_key=KEY) as client:
                last = [*client.messages.create(max_tokens=9, messages=said, **given)][-1]
        else:
            with openai.OpenAI(base_url=served.url, api_key=KEY) as client:
                answers = (
                    client.chat.completions.create(messages=said, **given)
                    if wire == "chat"
                    else client.responses.create(input="Hi", **given)
                )
                last = [*answers][-1]
    except (openai.APIError, anthropic.APIError) as error:
        return error
    assert streams
    assert last.type == "response.failed"
    return last


SCHEMA = {"type": "object", "properties": {"cups": {"type": "integer"}}, "required": ["cups"]}


def test_an_answer_that_does_not_fit_its_schema_is_paid_for_twice_at_most(
    served: Serving, upstream: FaultServer
) -> None:
    upstream.plays(speech("many"))
    form = {"type": "json_schema", "json_schema": {"name": "order", "schema": SCHEMA}}

    found = failure(served, "chat", streams=False, response_format=form)

    assert (found.status_code, found.body["code"], len(upstream.seen)) == (422, "json_validate_failed", 2)


# --- requests that are sent again -----------------------------------------------------------------------------------------

ASK = {"model": "scripted", "messages": [{"role": "user", "content": "Two green teas, please."}]}
FIRST, AGAIN = {"x-stainless-retry-count": "0"}, {"x-stainless-retry-count": "1"}


class Waiting:
    """An answer of the model that is given when the test says so."""

    def __init__(self, text: str = "Yes.") -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.text = text

    def __call__(self, _: Request) -> str:
        self.asked.set()
        assert self.may_answer.wait(300)
        return self.text


@contextmanager
def sending(served: Serving, path: str, body: dict[str, Any], headers: dict[str, str]) -> Iterator[None]:
    """Send a request; its client disconnects at the end of the block, and the server has seen it afterwards."""
    content = httpx.Request("POST", path, json=body).content
    host, port = "127.0.0.1", served.server.port
    lines = {"host": f"{host}:{port}", "authorization": f"Bearer {KEY}", "content-type": "application/json", **headers}
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    with socket.create_connection((host, port)) as connection:
        connection.sendall(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        yield
    for _ in range(5):
        served.client.get("/health")


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(("first", "again"), [(FIRST, AGAIN), ({"idempotency-key": "k"}, {"idempotency-key": "k"})])
def test_a_repeated_request_gets_the_answer_of_the_first_one(
    left: bool, first: dict[str, str], again: dict[str, str]
) -> None:
    waiting = Waiting()
    with serving(waiting, "Never.") as served, ThreadPoolExecutor() as pool:
        with ExitStack() as clients:
            clients.enter_context(sending(served, "/v1/chat/completions", ASK, first))
            assert waiting.asked.wait(300)
            if left:
                clients.close()
            repeat = partial(served.client.post, "/v1/chat/completions", json=ASK, headers=again)
            second = pool.submit(repeat)
            waiting.may_answer.set()
            answers = [second.result(), repeat()]

        assert [each.json()["choices"][0]["message"]["content"] for each in answers] == ["Yes.", "Yes."]
        assert answers[0].json()["id"] == answers[1].json()["id"]
        assert (len(served.model.requests), served.turns()) == (1, [["Two green teas, please."]])


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/v1/responses"]
)
def test_a_repeat_is_streamed_from_its_beginning(path: str) -> None:
    said = {"/v1/responses": {"input": "Hi"}, "/v1/completions": {"prompt": "Hi"}}.get(path, ASK)
    body = {"max_tokens": 99} if path == "/v1/messages" else {}
    with serving("Yes, please.", "Never.") as served:
        answers = [
            served.client.post(
                path, json={**said, **body, "model": "scripted", "stream": True}, headers={"idempotency-key": "k"}
            ).text
            for _ in range(2)
        ]
    events = [
        [re.sub(r'"(created_at|total_duration)":[^,}]+', "", line) for line in each.splitlines()] for each in answers
    ]
    assert events[0] == events[1]
    assert len(served.model.requests) == 1


def test_the_same_body_from_a_connected_client_is_another_sample() -> None:
    with serving("One.", "Two.") as served:
        texts = [served.client.post("/v1/chat/completions", json=ASK, headers=FIRST).json() for _ in range(2)]
        assert [each["choices"][0]["message"]["content"] for each in texts] == ["One.", "Two."]


def test_a_response_that_goes_on_without_its_client_is_given_to_the_client_that_asks_again() -> None:
    waiting, body = Waiting(), {"model": "scripted", "input": "Tea."}
    with serving(waiting, "Never.") as served:
        with sending(served, "/v1/responses", body, {}):
            assert waiting.asked.wait(300)
        waiting.may_answer.set()
        answer = served.client.post("/v1/responses", json=body).json()

        assert answer["output"][0]["content"][0]["text"] == "Yes."
        assert served.client.get(f"/v1/responses/{answer['id']}").json()["status"] == "completed"
        assert (len(served.model.requests), served.turns()) == (1, [["Tea."]])


def test_an_order_that_is_sent_twice_by_a_retry_counts_once() -> None:
    reply = 'Noted.\n@@delta {"items": {"1": {"name": "green tea", "quantity": 2}}}'
    waiting = Waiting(reply)
    with serving(waiting, reply) as served, ThreadPoolExecutor() as pool:
        conversation = served.client.post("/v1/conversations", json={}).json()["id"]
        body = {"model": "order", "input": "Two green teas, please.", "conversation": conversation}
        with sending(served, "/v1/responses", body, FIRST):
            assert waiting.asked.wait(300)
        second = pool.submit(served.client.post, "/v1/responses", json=body, headers=AGAIN)
        waiting.may_answer.set()

        assert second.result().json()["status"] == "completed"
        assert served.turns() == [["Two green teas, please."]]


WIRES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": ASK,
    "/v1/responses": {"model": "scripted", "input": "Two green teas, please."},
    "/v1/messages": ASK | {"max_tokens": 9},
    "/api/chat": ASK | {"stream": False},
}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("path", WIRES)
def test_the_next_server_knows_the_turn_of_a_key(path: str, streams: bool, tmp_path: Path) -> None:
    answers, body = list[httpx.Response](), WIRES[path] | {"stream": streams}
    for said in ("One.", "Two."):
        with serving(said, store=str(tmp_path / "store.db")) as served:
            answers.append(served.client.post(path, json=body, headers={"idempotency-key": "k"}))
            turns = served.turns()

    assert ["One." in each.text for each in answers] == [True, True]
    assert answers[0].text.count("One.") == answers[1].text.count("One.")
    assert turns == [["Two green teas, please."]]


@pytest.mark.parametrize("path", ["/v1/responses", "/api/conversations/talk/turns"])
def test_the_next_server_repeats_no_turn_of_a_conversation(path: str, tmp_path: Path) -> None:
    body = (
        {"model": "scripted", "input": "Tea.", "conversation": "talk"} if path.startswith("/v1") else {"text": "Tea."}
    )
    for said in ("One.", "Two."):
        with serving(said, store=str(tmp_path / "store.db")) as served:
            if said == "One.":
                served.repository.commit("talk", served.repository.start(load_app("plain")), expected=None)
            made = served.client.post(path, json=body, headers={"idempotency-key": "k"}).json()
            if run := made.get("run"):
                served.client.get(f"/api/runs/{run}/events")
            assert served.turns() == [["Tea."]]
            assert served.repository.at("talk").turns[-1].answer == "One."


def test_the_next_server_repeats_no_turn_of_an_edit(tmp_path: Path) -> None:
    here = "/api/conversations/talk/turns"
    for said in ("One.", "Two."):
        with serving(*[said] * 4, store=str(tmp_path / "store.db")) as served:
            if said == "One.":
                served.repository.commit("talk", served.repository.start(load_app("plain")), expected=None)
                for text in ("Tea.", "Cake."):
                    run = served.client.post(here, json={"text": text}).json()["run"]
                    served.client.get(f"/api/runs/{run}/events")
                tip = served.repository.at("talk").tip
            body = {"text": "Green tea.", "edit": 1, "replay": True, "expected": tip}
            run = served.client.post(here, json=body, headers={"idempotency-key": "k"}).json()["run"]
            served.client.get(f"/api/runs/{run}/events")
            assert [turn.user for turn in served.repository.at("talk").turns] == ["Green tea.", "Cake."]
            assert {turn.answer for turn in served.repository.at("talk").turns} == {"One."}


def test_a_key_is_not_used_for_two_requests() -> None:
    with serving("One.", "Two.") as served:
        key = {"idempotency-key": "k"}
        assert served.client.post("/v1/chat/completions", json=ASK, headers=key).status_code == 200
        refused = served.client.post("/v1/chat/completions", json=ASK | {"temperature": 1}, headers=key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
        assert len(served.model.requests) == 1


def test_a_key_creates_an_object_once() -> None:
    item = {"type": "message", "role": "user", "content": "Tea?"}
    with serving() as served:
        post, key = served.client.post, {"idempotency-key": "made"}
        first, again = (post("/v1/conversations", json={}, headers=key).json() for _ in range(2))
        others = {post("/v1/conversations", json={}).json()["id"] for _ in range(2)}
        assert first == again
        assert len({first["id"], *others}) == 3

        path = f"/v1/conversations/{first['id']}/items"
        added = [post(path, json={"items": [item]}, headers={"idempotency-key": "added"}).json() for _ in range(2)]
        assert added[0] == added[1]
        assert len(served.client.get(path).json()["data"]) == 1
        store = {"idempotency-key": "store"}
        stores = [post("/v1/vector_stores", json={}, headers=store).json()["id"] for _ in range(2)]
        assert stores[0] == stores[1]
        assert post("/v1/conversations", json={"metadata": {"a": "b"}}, headers=key).status_code == 422


def test_a_key_keeps_a_file_once() -> None:
    with serving() as served:

        def upload(content: bytes, key: str) -> Any:
            files, data = {"file": ("tea.md", content)}, {"purpose": "user_data"}
            return served.client.post("/v1/files", files=files, data=data, headers={"idempotency-key": key})

        first, again, other = (upload(b"Tea is green.", key).json()["id"] for key in ("a", "a", "b"))
        assert first == again != other
        assert len(served.client.get("/v1/files").json()["data"]) == 2
        assert upload(b"Tea is black.", "a").json()["error"]["code"] == "idempotency_key_reused"


@pytest.mark.parametrize("is_form", [True, False])
def test_a_key_indexes_documents_once(is_form: bool) -> None:
    with serving(quotes=True) as served:

        def upload(content: bytes, key: str, index: str = "notes") -> Any:
            path = f"/api/indexes/{index}/documents"
            sent = (
                {"files": {"file": ("tea.md", content)}}
                if is_form
                else {"content": content, "params": {"path": "tea.md"}}
            )
            return served.client.post(path, **sent, headers={"idempotency-key": key}).json()

        first, again, other = (upload(b"Tea is green.", key) for key in ("a", "a", "b"))
        assert first == again
        assert first["run"] != other["run"]
        reused = [upload(b"Tea is black.", "a"), upload(b"Tea is green.", "a", "letters")]
        assert [each["error"]["code"] for each in reused] == ["idempotency_key_reused"] * 2


def test_a_key_calls_a_tool_over_mcp_once() -> None:
    waiting = Waiting('{"a": 1}')
    with serving(waiting, '{"a": 2}') as served, ThreadPoolExecutor() as pool:

        def call(key: str, text: str = "Tea?") -> Any:
            params = {"name": "extract", "arguments": {"text": text, "json_schema": {"type": "object"}}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            accept = {"accept": "application/json, text/event-stream"}
            return served.client.post("/mcp", json=message, headers=accept | {"idempotency-key": key})

        first = pool.submit(call, "a")
        assert waiting.asked.wait(300)
        again = pool.submit(call, "a")
        waiting.may_answer.set()

        assert first.result().text == again.result().text == call("a").text
        assert len(served.model.requests) == 1
        assert call("a", "Coffee?").status_code == 422
        call("b")
        assert len(served.model.requests) == 2


def test_a_key_moves_a_conversation_once() -> None:
    with serving("Green.", "Black.") as served:

        def post(path: str, body: dict[str, Any], key: str) -> Any:
            found = served.client.post(path, json=body, headers={"idempotency-key": key})
            assert found.is_success, found.text
            return found.json()

        begun = [post("/api/conversations", {"text": "Tea?", "name": "talk"}, "begin") for _ in range(2)]
        assert begun[0] == begun[1]
        served.client.get(f"/api/runs/{begun[0]['run']}/events")
        said = [post("/api/conversations/talk/turns", {"text": "More?"}, "more") for _ in range(2)]
        assert said[0] == said[1]
        served.client.get(f"/api/runs/{said[0]['run']}/events")
        assert served.turns() == [["Tea?", "More?"]]
        for _ in range(2):
            post("/api/conversations/talk/undo", {}, "undo")
        assert served.turns() == [["Tea?"]]


def test_a_failed_request_is_answered_anew() -> None:
    with serving(OverloadedError("busy"), "Yes.") as served:
        key = {"idempotency-key": "k"}
        codes = [served.client.post("/v1/chat/completions", json=ASK, headers=key).status_code for _ in range(2)]
        assert codes == [503, 200]


def test_a_conversation_answers_one_request_at_a_time() -> None:
    waiting = Waiting()
    with serving(waiting, "Later.") as served, ThreadPoolExecutor(40) as pool:
        conversation = served.client.post("/v1/conversations", json={}).json()["id"]
        body = {"model": "scripted", "conversation": conversation}
        first = pool.submit(served.client.post, "/v1/responses", json=body | {"input": "First."})
        assert waiting.asked.wait(300)
        others = [pool.submit(served.client.post, "/v1/responses", json=body | {"input": f"{n}"}) for n in range(30)]
        refused = [each.result() for each in others]
        waiting.may_answer.set()

        assert {(each.status_code, each.json()["error"]["code"]) for each in refused} == {(409, "conversation_locked")}
        assert "x-should-retry" not in refused[0].headers
        assert first.result().json()["status"] == "completed"
        assert served.client.post("/v1/responses", json=body | {"input": "Next."}).json()["status"] == "completed"
        assert served.turns() == [["First.", "Next."]]


def test_answers_in_large_conversations_are_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats_module, "MAX_KEPT_BYTES", 400_000)
    with serving(*["Yes."] * 9) as served:
        last = served.client.post("/v1/responses", json={"model": "scripted", "input": "x" * 100_000}).json()["id"]
        asked = {"model": "scripted", "input": "And?", "previous_response_id": last}
        for key in "abcdefa":
            served.client.post("/v1/responses", json=asked, headers={"idempotency-key": key})
        kept = [each for attempts in served.server.state.repeats._attempts.values() for each in attempts]

    assert len(served.model.requests) == 7  # the first one was forgotten, and its turn found in the store
    assert 3 <= len(kept) <= 5


def test_the_oldest_answers_to_large_requests_are_forgotten_when_too_much_is_kept() -> None:
    made: list[str] = []
    repeats = Repeats()

    async def ask(key: str, size: int) -> None:
        async def make() -> None:
            made.append(key)

        headers = [(b"idempotency-key", key.encode())]
        request = HttpRequest({"type": "http", "headers": headers, "caller": "a"})
        request.state.digest, request.state.size = key.encode(), size
        await repeats.once(request, make)

    async def play() -> None:
        await ask("small", 100)
        for number in range(5):
            await ask(str(number), MAX_KEPT_BYTES // 4)
        for key in ("small", "4", "0"):
            await ask(key, 100 if key == "small" else MAX_KEPT_BYTES // 4)

    asyncio.run(play())

    assert made == ["small", "0", "1", "2", "3", "4", "0"]
