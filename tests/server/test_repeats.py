"""What a client repeats, and what it must not: statuses and headers by which SDKs decide, counted as calls of the model's server."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from taiwa.models.http_api.client import Clock, HttpModel
from taiwa.models.providers import resolve
from tests.peers.faults import Act, FaultServer, event, raw, speech, status
from tests.server.serving import KEY, Serving, serving


async def at_once(_: float) -> None:
    """A sleep that takes no time."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


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
