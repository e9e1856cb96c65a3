"""Attempts of a call that the server may have charged are in the costs of a store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import taiwa
from taiwa.kernel.errors import OverloadedError
from taiwa.sessions.session import Session
from taiwa.store import Store
from taiwa.store.runs import CostLine
from tests.peers.faults import FaultServer, speech, status


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config.yaml"))
    with FaultServer() as server:
        yield server


def opened(server: FaultServer, *, retry_paid: bool = False) -> Session:
    return taiwa.open("chat", model=f"{server.base_url}#m", store=":memory:", retry_paid=retry_paid)


def line(store: Store) -> CostLine:
    [found] = store.costs("model")
    return found


def test_a_failed_call_that_may_have_been_charged_is_in_the_costs(server: FaultServer) -> None:
    server.plays(status(504))
    session = opened(server)

    with pytest.raises(OverloadedError):
        session.say("Hi")

    found = line(session.repository.store)
    assert (found.requests, found.failed, found.calls_without_usage, found.cost_nano) == (1, 1, 1, None)


def test_a_refused_call_costs_nothing(server: FaultServer) -> None:
    server.plays(status(400, b'{"error": {"message": "no"}}'))
    session = opened(server)

    with pytest.raises(taiwa.TaiwaError):
        session.say("Hi")

    found = line(session.repository.store)
    assert (found.failed, found.calls_without_usage, found.cost_nano) == (1, 0, 0)


def test_a_repeated_call_counts_once_for_each_attempt(server: FaultServer) -> None:
    server.plays(status(404), status(504), speech("Hello!\n@@delta\n{}"))  # the first asks what the server is
    session = opened(server, retry_paid=True)

    turn = session.say("Hi")

    found = line(session.repository.store)
    assert turn.text == "Hello!"
    assert (turn.spent.requests, turn.spent.calls_without_usage) == (2, 1)
    assert (found.requests, found.calls_without_usage, found.cost_nano) == (2, 1, None)
