"""SDKs in JavaScript: their helpers, and the calls of the model's server that their default clients cause."""

import json
from collections.abc import Iterator

import pytest

from tests.clients.serving import environment, front
from tests.peers.faults import FaultServer
from tests.server.node.programs import run_node
from tests.server.serving import Serving

OLDEST = 20
"""Of node, for these SDKs."""
CASES = {
    "status 400": (400, 1),
    "status 401": (401, 1),
    "status 429": (429, 3),
    "status 500": (502, 1),
    "SAY <<<many>>>": (422, 2),
}
"""What a request ends with, and the calls that it causes: the second one of an answer that does not fit asks for it in words."""

OWN = {"status 500": (500, 1)}
"""The protocol of Anthropic knows no 502."""


@pytest.fixture
def served(upstream: FaultServer) -> Iterator[Serving]:
    with front(upstream) as running:
        yield running


@pytest.mark.parametrize("sdk", ["openai", "anthropic", "ai"])
def test_helpers_for_tools_types_streams_and_errors_work(served: Serving, sdk: str) -> None:
    done = run_node("clients.mjs", sdk, oldest=OLDEST, env=environment(served))

    assert done.returncode == 0, done.stderr


def test_default_clients_add_no_calls_to_those_of_the_server(served: Serving, upstream: FaultServer) -> None:
    requests = [(wire, f"{text} {wire}") for wire in ("chat", "responses", "messages") for text in CASES]

    done = run_node("clients.mjs", "fail", json.dumps(requests), oldest=OLDEST, env=environment(served))

    assert done.returncode == 0, done.stderr
    bodies = [seen.body.decode() for seen in upstream.seen]
    calls = [sum(text in body for body in bodies) for _, text in requests]
    assert list(zip(json.loads(done.stdout), calls, strict=True)) == [*CASES.values()] * 2 + [*(CASES | OWN).values()]
