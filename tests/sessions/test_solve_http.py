"""Solving over HTTP: a local server streams, and the connection is closed at a call."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import taiwa
from docs.player import ScriptedExchange, ScriptedServer
from taiwa.flows.solve.loops import CONTINUE, TRANSCRIPT_CODES
from taiwa.flows.solve.rationale import Rationale
from taiwa.kernel.effects import Program
from taiwa.kernel.messages import Notice, TextDelta
from taiwa.kernel.usage_limits import Billing, UsageLimits
from taiwa.models.http_api.client import HttpModel
from taiwa.models.providers import resolve
from taiwa.tools.calculator import calculator

SAID = "The answer: <<calculator: 6 * 7>>"
LONG = " 41, I should think, and so on and so forth." * 50


@pytest.fixture
def player() -> Iterator[ScriptedServer]:
    """A server that can neither continue an answer nor take tools."""
    lines = [ScriptedExchange(SAID + LONG), ScriptedExchange("That is all: 42.", (CONTINUE,))]
    with ScriptedServer(lines, pace=0.001) as player:
        yield player


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config.yaml"))


def asked() -> Program[Rationale]:
    return taiwa.programs.solve("6*7?", [calculator.spec])


def test_an_answer_is_stopped_at_a_call_and_continues_after_the_result(player: ScriptedServer) -> None:
    found = taiwa.Client(f"{player.base_url}#m", tools=[calculator]).run(asked())

    assert found.text == f"{SAID} 42\nThat is all: 42."
    assert (found.tool_mode, found.answer, found.complete) == ("stop", "42", True)


def test_text_calls_and_results_are_streamed_as_they_happen(player: ScriptedServer) -> None:
    client = taiwa.AsyncClient(f"{player.base_url}#m", tools=[calculator])

    async def read() -> tuple[list[TextDelta | Notice], Rationale]:
        async with client.stream_run(asked()) as stream:
            return [each async for each in stream], await stream.result()

    events, rationale = asyncio.run(read())

    shown = [
        each.text
        for each in events
        if isinstance(each, TextDelta) or (isinstance(each, Notice) and each.code in TRANSCRIPT_CODES)
    ]
    assert "".join(shown) == rationale.text
    assert (client.spent.requests, client.spent.calls_without_usage) == (2, 1)
    assert client.spent.estimated.output_tokens < len(SAID + LONG)


def test_a_cost_limit_counts_a_stopped_answer(player: ScriptedServer) -> None:
    model = HttpModel(resolve(f"{player.base_url}#m"))
    runtime = taiwa.Runtime(
        model, tools=[calculator], limits=UsageLimits(cost=10**9), billing=Billing(lambda _, usage: usage.output_tokens)
    )

    found = runtime.run(asked())

    assert found.ending == "end"
