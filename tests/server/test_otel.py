"""Spans of turns: made from the journal, the same ones live and afterwards, and without texts unless they are asked for."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Message, Response, ToolCall, Usage, assistant
from taiwa.operations.otel import Collector, LiveSpans, as_otlp, otlp_lines, turn_spans
from tests.server.serving import Serving, serving

Json = dict[str, Any]
VARIABLE = "OTEL_EXPORTER_OTLP_HEADERS"


class Received:
    """What a collector got: the path, the headers and the body of each request, and the status of its answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.requests: Queue[tuple[str, dict[str, str], str]] = Queue()
        self.status = 200

    def next_body(self) -> str:
        return self.requests.get(timeout=300)[2]


@contextmanager
def collector(status: int = 200) -> Iterator[Received]:
    """A collector on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            received.requests.put((self.path, headers, body))  # the next request may follow the response at once
            self.send_response(received.status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base class)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Received(f"http://127.0.0.1:{server.server_address[1]}")
        received.status = status
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()


def respond(server: Serving, text: str = "Hello", **more: object) -> str:
    """Say something and return the node of the turn."""
    response = server.client.post("/v1/responses", json={"model": "scripted", "input": text, "taiwa": {}, **more})
    assert response.status_code == 200, response.text
    return str(response.json()["taiwa"]["node"])


def counting(folder: Path) -> str:
    """An app that calls a tool."""
    app = folder / "sums.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nCount.\n", "utf-8")
    return str(app)


CALL = Response(
    Message("assistant", (ToolCall("calculator", '{"expression": "6*7"}', "c1"),)),
    finish="tool_calls", usage=Usage(10, 4, reasoning_tokens=1), model="scripted-1",
)  # fmt: skip
ANSWER = Response(assistant("It is 42."), usage=Usage(20, 5, cache_read_tokens=8), model="scripted-1")


def spans_in(line: str) -> list[Json]:
    (resource,) = json.loads(line)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    listed: list[Json] = scope["spans"]
    return listed


def attributes(span: Json) -> Json:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_turn_is_a_span_and_its_calls_are_the_spans_within_it(tmp_path: Path) -> None:
    with serving(CALL, ANSWER, apps=(counting(tmp_path),)) as server:
        node = respond(server, "Six times seven?", model="sums")
        stored = server.repository.store.nodes.get(node)
        (ref,) = server.repository.store.refs.list()
        line, *_ = otlp_lines(server.repository, node)

    turn, *calls = spans_in(line)
    assert [span["name"] for span in (turn, *calls)] == [
        "invoke_agent sums", "chat scripted", "execute_tool calculator", "chat scripted",
    ]  # fmt: skip
    assert {span["traceId"] for span in (turn, *calls)} == {node}
    assert "parentSpanId" not in turn
    assert {span["parentSpanId"] for span in calls} == {turn["spanId"]}
    assert len({span["spanId"] for span in (turn, *calls)}) == 4
    assert all(len(bytes.fromhex(span["spanId"])) == 8 for span in (turn, *calls))
    first, last = int(turn["startTimeUnixNano"]), int(turn["endTimeUnixNano"])
    for call in calls:
        assert first <= int(call["startTimeUnixNano"]) <= int(call["endTimeUnixNano"]) <= last
    found = attributes(turn)
    assert (found["taiwa.node"], found["taiwa.parent"]) == (node, stored.parent)
    assert found["taiwa.state.hash"] == stored.state_hash
    assert (found["gen_ai.conversation.id"], found["gen_ai.agent.version"]) == (ref.name, stored.app)
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == ("30", "9")
    assert attributes(calls[0])["gen_ai.usage.reasoning.output_tokens"] == "1"
    assert attributes(calls[0])["gen_ai.response.finish_reasons"] == {"values": [{"stringValue": "tool_calls"}]}
    assert attributes(calls[2])["gen_ai.usage.cache_read.input_tokens"] == "8"


def test_spans_have_no_texts_unless_they_are_asked_for(tmp_path: Path) -> None:
    with serving(CALL, ANSWER, apps=(counting(tmp_path),)) as server:
        node = respond(server, "Six times seven?", model="sums")
        plain = "".join(otlp_lines(server.repository, node))
        line, *_ = otlp_lines(server.repository, node, content=True)

    for text in ("Six times", "It is 42", "6*7", "Count."):
        assert text not in plain
    turn, first, tool, second = map(attributes, spans_in(line))
    assert json.loads(turn["gen_ai.input.messages"])[0]["parts"] == [{"type": "text", "content": "Six times seven?"}]
    assert json.loads(turn["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": "It is 42."}]
    assert "Count." in first["gen_ai.input.messages"]
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"expression": "6*7"}
    assert tool["gen_ai.tool.call.result"] == "42"
    (said,) = json.loads(second["gen_ai.output.messages"])
    assert (said["role"], said["finish_reason"]) == ("assistant", "stop")


def test_spans_sent_after_each_turn_equal_those_that_are_exported_afterwards(tmp_path: Path) -> None:
    app = counting(tmp_path)
    with collector() as received, serving(CALL, ANSWER, "Yes.", apps=(app,), otel=received.address) as server:
        nodes = [respond(server, "Six times seven?", model="sums"), respond(server, "Is it?")]
        live = [received.next_body() for _ in (*nodes, *nodes)]  # the spans of a turn, then its metrics
        afterwards = [line for node in nodes for line in otlp_lines(server.repository, node)]
        again = [line for node in nodes for line in otlp_lines(server.repository, node)]

    assert live == afterwards == again
    assert received.requests.empty()


def test_each_call_of_a_model_is_measured_by_its_time_and_its_tokens(tmp_path: Path) -> None:
    with serving(CALL, ANSWER, apps=(counting(tmp_path),)) as server:
        spans, line = otlp_lines(server.repository, respond(server, "Six times seven?", model="sums"))

    (resource,) = json.loads(line)["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    duration, tokens = scope["metrics"]
    assert (duration["name"], duration["unit"]) == ("gen_ai.client.operation.duration", "s")
    assert (tokens["name"], tokens["unit"]) == ("gen_ai.client.token.usage", "{token}")
    calls = [span for span in spans_in(spans) if span["name"] == "chat scripted"]
    points = duration["histogram"]["dataPoints"]
    for span, point in zip(calls, points, strict=True):
        assert (point["startTimeUnixNano"], point["timeUnixNano"]) == (
            span["startTimeUnixNano"],
            span["endTimeUnixNano"],
        )
        assert attributes(point)["gen_ai.response.model"] == "scripted-1"
    counted = tokens["histogram"]["dataPoints"]
    assert [(attributes(point)["gen_ai.token.type"], point["sum"]) for point in counted] == [
        ("input", 10.0), ("output", 4.0), ("input", 20.0), ("output", 5.0),
    ]  # fmt: skip
    for point in (*points, *counted):
        counts = [int(each) for each in point["bucketCounts"]]
        place = counts.index(1)
        bounds = [float("-inf"), *point["explicitBounds"], float("inf")]
        assert sum(counts) == 1
        assert len(counts) == len(bounds) - 1
        assert bounds[place] < point["sum"] <= bounds[place + 1]


def test_a_server_sends_what_waits_before_it_ends() -> None:
    with collector() as received:
        with serving("Hi.", otel=received.address) as server:
            node = respond(server)
        (turn, _) = spans_in(received.next_body())

    assert turn["traceId"] == node


def test_a_collector_that_refuses_costs_one_warning_and_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level("WARNING", "taiwa.server"),
        collector(503) as received,
        serving("One.", "Two.", otel=received.address) as server,
    ):
        assert respond(server) != respond(server, "And?")
        for _ in range(2):
            received.next_body()

    warnings = [record.getMessage() for record in caplog.records if "spans are not sent" in record.getMessage()]
    assert len(warnings) == 1
    assert "HTTP 503" in warnings[0]


def test_sessions_that_share_a_node_have_the_spans_of_their_own_runs() -> None:
    with serving("Hi.", "Hi.") as server:
        for _ in range(2):
            assert server.chat("Hello").status_code == 200
        first, second = server.repository.store.refs.list()
        lines = ["".join(otlp_lines(server.repository, ref.name)) for ref in (first, second)]
        both = turn_spans(server.repository, first.tip)

    assert first.tip == second.tip
    assert first.name in lines[0]
    assert first.name not in lines[1]
    assert len({span.id for span in both}) == len(both) == 4


def test_a_call_that_failed_has_the_kind_of_its_error_and_not_its_message(tmp_path: Path) -> None:
    call = Response(
        Message("assistant", (ToolCall("calculator", '{"expression": "1/secret"}', "c1"),)), finish="tool_calls"
    )
    with serving(call, "It cannot be done.", apps=(counting(tmp_path),)) as server:
        line, *_ = otlp_lines(server.repository, respond(server, model="sums"))

    failed = [span for span in spans_in(line) if "status" in span]
    assert [span["name"] for span in failed] == ["execute_tool calculator"]
    assert failed[0]["status"] == {"code": 2}
    assert attributes(failed[0])["error.type"]
    assert "secret" not in line


def test_a_search_in_documents_is_a_span(tmp_path: Path) -> None:
    with serving(store=str(tmp_path / "store.db"), quotes=True) as server:
        files = {"files": ("leave.md", "# Paid leave\n\nEverybody has ten days of paid leave in a year.\n")}
        run = server.client.post("/api/indexes/handbook/documents", files=files).json()["run"]
        server.client.get(f"/api/runs/{run}/events")
        body = {"app": "ask", "text": "how many days of paid leave", "params": {"in": ["handbook"]}}
        asked = server.client.post("/api/conversations", json=body).json()
        server.client.get(f"/api/runs/{asked['run']}/events")
        (ref,) = server.repository.store.refs.list()
        line, *_ = otlp_lines(server.repository, ref.name)
        full, *_ = otlp_lines(server.repository, ref.name, content=True)

    assert "retrieval" in [span["name"] for span in spans_in(line)]
    assert "ten days" not in line
    (found,) = [attributes(span) for span in spans_in(full) if span["name"] == "retrieval"]
    assert "ten days" in found["gen_ai.retrieval.documents"]
    assert found["gen_ai.retrieval.query.text"]


def test_headers_for_the_collector_come_from_the_environment_and_are_in_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "authorization=Bearer%20s3cret, x-team=blue")
    with collector(401) as received:
        with pytest.raises(ConfigError, match="refused spans with HTTP 401") as refused:
            Collector(received.address).send([as_otlp(())])
        path, headers, body = received.requests.get(timeout=300)

    assert (path, headers["authorization"], headers["x-team"]) == ("/v1/traces", "Bearer s3cret", "blue")
    assert headers["content-type"] == "application/json"
    assert "s3cret" not in body + refused.value.message


@pytest.mark.parametrize(
    "address", ["localhost:4318", "ftp://localhost", "http://", "http://user:s3cret@localhost:4318", "http://[::1"]
)
def test_an_address_that_no_collector_can_have_is_refused_before_a_turn(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        LiveSpans(address)

    assert "s3cret" not in refused.value.message


def test_headers_that_cannot_be_sent_are_refused_without_repeating_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "s3cret")
    with pytest.raises(ConfigError, match=VARIABLE) as refused:
        Collector("http://localhost:4318")

    assert "s3cret" not in refused.value.message


def test_an_address_may_be_the_whole_one() -> None:
    assert Collector("https://otel.example/x/v1/traces").url == "https://otel.example/x/v1/traces"
    assert Collector("https://otel.example/x/").url == "https://otel.example/x/v1/traces"
