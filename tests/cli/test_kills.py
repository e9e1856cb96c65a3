"""Commands that are killed at any instant: what was paid for and what was written is kept, and the store is sound.

`make explore` draws other instants, and more of them.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from taiwa.store import Store
from tests.cli.conftest import ModelServer, Taiwa, delta
from tests.cli.forked import NUMBER, ForkedCommand
from tests.peers.faults import Scene, speech

SEED = int(os.environ.get("EXPLORE_SEED", "20261129"))
ROUNDS = 75 if "EXPLORE_SEED" in os.environ else 5
PRICE = 10_000
"""What a call costs, in billionths, at the price of the tests."""
pytestmark = [pytest.mark.fuzz, pytest.mark.slow]


async def answer(scene: Scene) -> None:
    """Answer the text "one" with a delta that needs a repair, and every other one in one call."""
    body: Any = scene.seen.json
    text = json.dumps(body["messages"][-1])
    broken = 'Counted.\n@@delta\n{"nix": 1}'
    await speech("{}" if "cannot be used" in text else broken if "one" in text else delta("Fine."))(scene)


@dataclass
class Killer:
    """Runs a command in one fresh place after another, and kills it there at an instant."""

    taiwa: Taiwa
    server: ModelServer

    def place(self, number: int, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Make an empty store with a limit of a day, and forget what was asked before."""
        folder = self.taiwa.place.folder / str(number)
        folder.mkdir()
        monkeypatch.setenv("TAIWA_STORE", str(folder / "taiwa.db"))
        self.server.plays(answer, prices={"*": {"input": "1", "output": "1"}}, max_cost="5/day")
        return folder

    def start(self, folder: Path, number: int, *arguments: str) -> ForkedCommand:
        told = folder / "operations"
        told.write_bytes(bytes(NUMBER.size))
        more = {"TEST_OPERATIONS": str(told), "TEST_DIES_AT": str(number)}
        return ForkedCommand(arguments, self.taiwa.place.environment(**more))

    @contextmanager
    def serving(self, folder: Path, number: int) -> Iterator[str]:
        """Run a server, and end it; its address is "" if it is killed before it has one."""
        words = ["serve", "--port", "0", "--token", "key", "--app", "chat", "-m", self.server.model]
        server = self.start(folder, number, *words)
        yield next(iter(server.stdout.readline().decode().split()[-1:]), "")
        server.send_signal(signal.SIGTERM)
        server.communicate()

    def check(self, folder: Path) -> None:
        """Check the store, and that every request is counted: by its cost, or by what was reserved for it."""
        self.taiwa.ok("fsck")
        with Store.open(str(folder / "taiwa.db")) as store:
            assert sum(line.requests for line in store.costs("session")) >= len(self.server.seen)
            assert store.runs.spent_since(0) >= PRICE * len(self.server.seen)


def reached(folder: Path) -> int:
    """How many operations a command has begun."""
    return int(NUMBER.unpack((folder / "operations").read_bytes())[0])


def turns(store: Store, name: str) -> list[tuple[str | None, str]]:
    path = [node for _, node in store.nodes.path(store.refs.tip(name)) if node.kind == "turn"]
    return [(node.user, node.answer or "") for node in reversed(path)]


@pytest.fixture
def killer(taiwa: Taiwa, model_server: ModelServer) -> Killer:
    return Killer(taiwa, model_server)


def instants(first: int, last: int) -> list[int]:
    return Random(SEED).sample(range(first, last + 1), min(ROUNDS, last - first + 1))


def test_a_turn_that_is_killed_is_finished_once(killer: Killer, monkeypatch: pytest.MonkeyPatch) -> None:
    taiwa, seen = killer.taiwa, killer.server

    def killed(number: int) -> int:
        folder = killer.place(number, monkeypatch)
        taiwa.ok("say", "-s", "talk", "chat", "zero")
        killer.start(folder, number, "say", "-s", "talk", "one").communicate()
        killer.check(folder)
        with Store.open(str(folder / "taiwa.db")) as store:
            begun, texts = store.runs.open_runs("talk"), turns(store, "talk")
        if begun:
            taiwa.ok("resume", "talk")
        elif len(texts) == 1:
            taiwa.ok("say", "-s", "talk", "one")
        killer.check(folder)
        with Store.open(str(folder / "taiwa.db")) as store:
            assert turns(store, "talk") == [("zero", "Fine."), ("one", "Counted.")]
        assert len(seen.seen) <= 4, "of a killed turn, one call is made again at most"
        return reached(folder)

    for number in instants(1, killed(0)):
        killed(number)


@pytest.mark.parametrize("mode", ["fold", "map"])
def test_a_batch_that_is_killed_is_finished_with_each_row_once(
    killer: Killer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taiwa, seen = killer.taiwa, killer.server

    def killed(number: int) -> int:
        folder = killer.place(number, monkeypatch)
        (folder / "rows.txt").write_text("two\none\nthree\n")
        out = folder / "out.jsonl"
        words = ["batch", "chat", str(folder / "rows.txt"), "--mode", mode, "-j", "2", "-o", str(out)]
        killer.start(folder, number, *words).communicate()
        killer.check(folder)
        written = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        taiwa.ok(*words, "--resume")
        killer.check(folder)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["answer"] for row in rows] == ["Fine.", "Counted.", "Fine."]
        assert [row["answer"] for row in written] == [row["answer"] for row in rows[: len(written)]], (
            "what was written is kept"
        )
        assert len(seen.seen) <= 4 + 2, "of each row that was killed, one call is made again at most"
        return reached(folder)

    for number in instants(1, killed(0)):
        killed(number)


def test_a_response_of_a_killed_server_is_finished_by_the_next_one(
    killer: Killer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taiwa, seen = killer.taiwa, killer.server

    def killed(number: int) -> tuple[int, int]:
        folder = killer.place(number, monkeypatch)
        taiwa.ok("say", "-s", "talk", "chat", "zero")
        response, ready, last = "", 0, 0
        for instant in (number, 0):
            with killer.serving(folder, instant) as address:
                if address:
                    ready = reached(folder)
                    response = respond(f"{address}/v1/responses", response)
                last = reached(folder)
            killer.check(folder)
        with Store.open(str(folder / "taiwa.db")) as store:
            assert turns(store, "talk") == [("zero", "Fine."), ("one", "Counted.")]
        assert len(seen.seen) <= 4, "of a killed response, one call is made again at most"
        return ready, last

    for number in instants(*killed(0)):
        killed(number)


WIRES: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "one", "conversation": "talk"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "one"}]},
}


@pytest.mark.parametrize("path", WIRES)
@pytest.mark.parametrize("mark", ["idempotency-key", "x-stainless-retry-count"])
def test_a_request_that_is_marked_as_a_repeat_is_answered_by_one_turn_whenever_the_server_was_killed(
    killer: Killer, path: str, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taiwa, seen = killer.taiwa, killer.server

    def killed(number: int) -> tuple[int, int]:
        folder = killer.place(number, monkeypatch)
        taiwa.ok("say", "-s", "talk", "chat", "zero")
        answer, ready, last, left = "", 0, 0, 0
        for count, instant in enumerate((number, 0)):
            asked = len(seen.seen)
            with killer.serving(folder, instant) as address:
                if address:
                    ready = ready or reached(folder)
                    headers = {"authorization": "Bearer key", mark: "one" if mark == "idempotency-key" else str(count)}
                    with suppress(httpx.TransportError), httpx.Client(headers=headers, timeout=300) as client:
                        answer = client.post(f"{address}{path}", json={"model": "chat", **WIRES[path]}).text
                last = last or reached(folder)
            with Store.open(str(folder / "taiwa.db")) as store:
                left, before = 3 - sum(line.requests - line.failed for line in store.costs("session")), left
                said = [turn for ref in store.refs.list() for turn in turns(store, ref.name) if turn[0] == "one"]
        assert len(seen.seen) - asked == before, "what was recorded as paid is not paid again"
        assert (left, said) == (0, [("one", "Counted.")])
        assert "Counted." in answer
        killer.check(folder)
        return ready, last

    for number in instants(*killed(0)):
        killed(number)


def respond(url: str, name: str) -> str:
    """Begin a response in the background, unless it has a name, and follow it to its end; return its name."""
    with suppress(httpx.TransportError), httpx.Client(headers={"authorization": "Bearer key"}, timeout=300) as client:
        if not name:
            body = {"model": "chat", "input": "one", "conversation": "talk", "background": True}
            made = client.post(url, json=body)
            assert made.status_code == 200, made.text
            name = str(made.json()["id"])
        client.get(f"{url}/{name}", params={"stream": "true"})
        answer = client.get(f"{url}/{name}").json()
        assert (answer["status"], answer["output"][0]["content"][0]["text"]) == ("completed", "Counted.")
    return name
