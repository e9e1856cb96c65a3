"""A server that is stopped or killed: its runs go on when it is started again, and nothing is paid for twice."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from taiwa.kernel.messages import Chunk, Request, TextDelta
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel
from taiwa.server.access import ServerLimits
from taiwa.store import Store
from tests.server.processes import ServerProcess, server_processes
from tests.server.serving import serving

ROOT = Path(__file__).parents[2]
APP = '---\ntaiwa: 1\nname: cafe\nstate:\n  items: {type: "list[str]", reduce: append}\n---\nTake the order.\n'
FIRST = 'Two teas.\n@@delta\n{"items": 3}'
REPAIR = '{"items": ["tea"]}'
KILLED = """
import sys, threading
sys.path.insert(0, {root!r})
from tests.server.serving import serving

def wait_for_ever(_):
    print("waiting", flush=True)
    threading.Event().wait()

with serving({first!r}, wait_for_ever, store={store!r}, apps=({app!r},)) as served:
    body = {{"model": "cafe", "input": "Two teas", "background": True}}
    print(served.client.post("/v1/responses", json=body).json()["id"], flush=True)
    threading.Event().wait()
"""


def test_after_kill_9_a_response_is_completed_without_paying_twice(tmp_path: Path) -> None:
    app, store = tmp_path / "cafe.md", tmp_path / "store.db"
    app.write_text(APP)
    code = KILLED.format(root=str(ROOT), first=FIRST, store=str(store), app=str(app))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        lines = {killed.stdout.readline().strip(), killed.stdout.readline().strip()}
        killed.kill()
    (name,) = lines - {"waiting"}
    with serving(REPAIR, store=str(store), apps=(str(app),)) as served:
        with served.client.stream("GET", f"/v1/responses/{name}", params={"stream": "true"}) as response:
            response.read()
        made = served.client.get(f"/v1/responses/{name}").json()
        assert (made["status"], made["output"][0]["content"][0]["text"]) == ("completed", "Two teas.")
        assert isinstance(served.model, ScriptedModel)
        assert len(served.model.requests) == 1
        assert served.turns() == [["Two teas"]]
        (ref,) = served.repository.store.refs.list()
        assert served.repository.at(ref.name).state == {"items": ["tea"]}
        follows = {"model": "cafe", "input": "And a cake", "previous_response_id": name}
        assert served.client.post("/v1/responses", json=follows).status_code == 502  # the script is exhausted


def test_a_server_that_is_stopped_leaves_open_runs_to_be_resumed(tmp_path: Path) -> None:
    store, asked = tmp_path / "store.db", threading.Event()

    class Silent(ScriptedModel):
        async def astream(self, request: Request) -> AsyncIterator[Chunk]:
            asked.set()
            await asyncio.Event().wait()
            yield TextDelta(request.messages[0].text)

    silent = Silent((), "scripted", ALL_CAPABILITIES, 7, None)
    with serving(model=silent, store=str(store), limits=ServerLimits(grace=0.0)) as served:
        conversation = served.client.post("/v1/conversations", json={}).json()["id"]
        waiting = {"items": [{"type": "message", "role": "user", "content": "First of all"}]}
        served.client.post(f"/v1/conversations/{conversation}/items", json=waiting).raise_for_status()
        body = {"model": "scripted", "input": "a", "background": True, "include": ["taiwa:state"]}
        name = served.client.post("/v1/responses", json=body | {"conversation": conversation}).json()["id"]
        assert asked.wait(300)
    with serving("In time.", store=str(store)) as served:
        with served.client.stream("GET", f"/v1/responses/{name}", params={"stream": "true"}) as response:
            response.read()
        made = served.client.get(f"/v1/responses/{name}").json()
        items = served.client.get(f"/v1/conversations/{conversation}/items", params={"order": "asc"}).json()["data"]
        assert (made["status"], made["taiwa"]["state"]) == ("completed", {})
        assert [item["content"][0]["text"] for item in items] == ["First of all", "a", "In time."]


HELLO = [{"role": "user", "content": "Hello"}]
WIRES: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "Hello"},  # first, as the next server resumes it
    "/v1/chat/completions": {"messages": HELLO},
    "/v1/messages": {"messages": HELLO, "max_tokens": 9},
    "/api/chat": {"messages": HELLO, "stream": False},
}


def test_requests_that_are_repeated_after_kill_9_are_answered_once_and_leave_no_run_open(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")

    def send(server: ServerProcess, path: str) -> httpx.Response:
        key = {"idempotency-key": path}
        return server.client.post(path, json={"model": "dictated", **WIRES[path]}, headers=key)

    with ThreadPoolExecutor(len(WIRES)) as threads:
        with server_processes(place, 1) as (killed,):
            lost = [threads.submit(send, killed, path) for path in WIRES]
            for _ in WIRES:
                killed.wait_until_asked()
            killed.kill()
            assert all(isinstance(each.exception(300), httpx.TransportError) for each in lost)
        with server_processes(place, 1) as (again,):
            for path in WIRES:
                found = threads.submit(send, again, path)
                again.wait_until_asked()
                again.dictate("One.")
                assert "One." in found.result(300).text

    with Store.open(place) as store:
        assert [store.nodes.get(ref.tip).answer for ref in store.refs.list()] == ["One."] * len(WIRES)
        assert store.runs.open_runs() == ()
        assert sum(line.requests for line in store.costs("model")) == 2 * len(WIRES)


def test_a_client_that_waits_for_the_next_server_follows_its_response_to_the_end(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with server_processes(store, 1) as (killed,):
        name = killed.begin("Count.")
        killed.wait_until_asked()
        killed.kill()
        killed.child.wait()

    with server_processes(store, 1) as (again,), again.events(f"/v1/responses/{name}", stream="true") as events:
        again.wait_until_asked()
        again.dictate("One.")

        assert [*events][-1]["type"] == "response.completed"


def test_ctrl_c_and_sigterm_end_the_command_with_success(tmp_path: Path) -> None:
    for stop in (signal.SIGINT, signal.SIGTERM):
        words = [
            sys.executable,
            "-m",
            "taiwa",
            "serve",
            "--port",
            "0",
            "--token",
            "x",
            "--store",
            str(tmp_path / "s.db"),
        ]
        environ = {**os.environ, "HOME": str(tmp_path)}
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ) as served:
            assert served.stdout is not None
            url = served.stdout.readline().split()[-1]
            assert httpx.get(f"{url}/health", timeout=300).status_code == 200
            served.send_signal(stop)
            _, errors = served.communicate(timeout=300)
        assert served.returncode == 0
        assert "interrupted" not in errors
        assert "Traceback" not in errors


def test_a_model_that_cannot_be_opened_ends_the_start(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "taiwa", "serve", "--port", "0", "-m", "nothing:x"]
    environ = {**os.environ, "HOME": str(tmp_path)}
    ended = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300, env=environ)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("taiwa: ")
