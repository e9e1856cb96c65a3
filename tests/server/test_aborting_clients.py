"""Clients that hang up anywhere in an answer, on any wire: what they have begun counts for their budget."""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from taiwa.kernel.usage_limits import ANSWER_TOKENS
from tests.server.serving import serving
from tests.server.test_callers import AG_UI, called, priced

SEED = int(os.environ.get("EXPLORE_SEED", "20261128"))
REQUESTS = 24
SAID = [{"role": "user", "content": "A story"}]
CHAT = {"model": "scripted", "messages": SAID}
WIRES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT | {"stream": True},
    "/v1/responses": {"model": "scripted", "input": "A story", "stream": True},
    "/v1/messages": CHAT | {"max_tokens": 30_000, "stream": True},
    "/api/chat": CHAT,
    "/api/generate": {"model": "scripted", "prompt": "A story"},
    "/ag-ui/agents/scripted": AG_UI,
    "/api/conversations": {"app": "plain", "text": "A story"},
}


def hang_up(address: tuple[str, int], path: str, key: str, random: Random) -> None:
    """Send a request, or the beginning of one, read some of the answer, and close or reset the connection."""
    body = json.dumps(WIRES[path]).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nAuthorization: Bearer {key}\r\n"
    whole = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with socket.create_connection(address) as connection:
        connection.sendall(whole[: random.choice((len(whole), len(whole), len(whole), random.randrange(len(whole))))])
        connection.settimeout(0.05)
        with suppress(TimeoutError, ConnectionError):
            for _ in range(random.choice((0, 1, 2, 3, 9, 200))):
                if not connection.recv(random.choice((1, 40, 400))):
                    break
        if random.random() < 0.5:  # a reset instead of an orderly end
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@pytest.mark.fuzz
def test_no_way_of_hanging_up_passes_a_budget_of_a_day(tmp_path: Path) -> None:
    random, budget = Random(SEED), 3 * ANSWER_TOKENS * 1000
    with serving(*["Once upon a time there was tea." * 50] * REQUESTS, store=str(tmp_path / "store.db")) as server:
        priced(server)
        place = urlsplit(server.server.url)
        with called(server, "ann", max_cost=budget) as ann:
            for _ in range(REQUESTS):
                path = random.choice([*WIRES])
                hang_up((str(place.hostname), int(place.port or 0)), path, "key-of-ann", random)
            assert server.client.get("/health").status_code == 200
            assert ann.get("/api/conversations").status_code == 200
        assert server.repository.store.owned_by("ann").runs.spent_since(0) <= budget
        assert 1 <= len(server.model.requests) <= 4
