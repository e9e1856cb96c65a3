"""Conversations as spans of OpenTelemetry, on the command line."""

import json
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Taiwa, delta
from tests.peers.faults import status


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1`, with two turns."""
    model_server(delta("Tea is fine."), delta("So is coffee."))
    taiwa.ok("say", "chat", "Is tea fine?")
    taiwa.ok("say", "-c", "And coffee?")
    return taiwa


def test_each_turn_is_a_line_of_spans_and_one_of_metrics_and_every_export_is_the_same(
    talked: Taiwa, tmp_path: Path
) -> None:
    written = talked.ok("export", "chat-1", "--otel")
    talked.ok("export", "chat-1", "--otel", "-o", str(tmp_path / "spans.json"))

    assert [next(iter(row)) for row in written.rows] == ["resourceSpans", "resourceMetrics"] * 2
    assert (tmp_path / "spans.json").read_text("utf-8") == written.out
    names = [span["name"] for row in written.rows[::2] for span in row["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert names == ["invoke_agent chat", "chat test-model"] * 2
    assert "coffee" not in written.out
    assert "127.0.0.1" not in written.out
    assert "So is coffee." in talked.ok("export", "chat-1", "--otel", "--otel-content").out


def test_spans_are_sent_to_a_collector(talked: Taiwa, model_server: ModelServer) -> None:
    lines = talked.ok("export", "chat-1", "--otel").lines
    model_server.plays(status(200, b"{}"))
    before = len(model_server.seen)

    sent = talked.ok("export", "chat-1", "--otel-endpoint", model_server.url)

    assert sent.err == "2 turns sent\n"
    assert [seen.json for seen in model_server.seen[before:]] == [json.loads(line) for line in lines]


def test_a_collector_that_is_not_there_is_one_line(talked: Taiwa) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        refused = talked("export", "chat-1", "--otel-endpoint", f"http://127.0.0.1:{bound.getsockname()[1]}")

    assert refused.code != 0
    assert "cannot be reached" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("more", [["--otel", "--format", "md"], ["--otel", "--calls"], ["--otel-content"]])
def test_options_that_do_not_go_together_are_refused(talked: Taiwa, more: list[str]) -> None:
    refused = talked("export", "chat-1", *more)

    assert (refused.code, refused.out) == (2, "")


def test_an_imported_history_has_no_spans(talked: Taiwa, tmp_path: Path) -> None:
    file = tmp_path / "chat-1.jsonl"
    file.write_text(talked.ok("export", "chat-1").out)
    store = str(tmp_path / "other.db")
    talked.ok("import", str(file), "again", "--store", store)

    refused = talked("export", "again", "--otel", "--store", store)

    assert refused.code == 2
    assert "the journal of these turns is not in this store" in refused.err
