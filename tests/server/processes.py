"""Servers in processes of their own, whose model says what a test dictates."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

KEY = "test-key"
ROOT = Path(__file__).parents[2]
SERVER = """
import asyncio, json, sys, threading
from dataclasses import replace
from taiwa import settings as configured
from taiwa.kernel.messages import StreamEnd, TextDelta, Usage
from taiwa.models.scripted import ScriptedModel, ALL_CAPABILITIES
from taiwa.server.access import Address, Served, ServerLimits, ServerOptions
from taiwa.server.serve import TaiwaServer
from taiwa.sessions.repository import Repository
from taiwa.store import Store

lines = asyncio.Queue()

def read(loop):
    for line in sys.stdin:  # once, so that a turn that is cancelled takes no line from the next one
        loop.call_soon_threadsafe(lines.put_nowait, line)

class Dictated(ScriptedModel):
    async def astream(self, request):
        if not self.requests:
            threading.Thread(target=read, args=(asyncio.get_running_loop(),), daemon=True).start()
        self.requests.append(request)
        print("asked", flush=True)
        while (line := await lines.get()) != "end\\n":
            yield TextDelta(json.loads(line))
        yield StreamEnd("stop", None, Usage(10, 5), self.name)

store, *apps = sys.argv[1:]
settings = replace(configured.load(), model=None)
model = Dictated((), "dictated", ALL_CAPABILITIES, 7, None)
options = ServerOptions(Address(port=0), Served(tuple(apps)), "test-key", limits=ServerLimits(grace=0.0))
server = TaiwaServer(Repository(Store.open(store)), settings, options, models={"dictated": model})
print(server.login_url, flush=True)
server.run()
print("ended", flush=True)
"""


class ServerProcess:
    """A server in a process, and a client of it."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self.child = child
        self.login_url = self.line()
        self.client = httpx.Client(
            base_url=self.login_url.partition("/login")[0],
            headers={"authorization": f"Bearer {KEY}"},
            timeout=httpx.Timeout(300),
        )

    def line(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def wait_until_asked(self) -> None:
        """Wait until the model was asked."""
        assert self.line() == "asked"

    def dictate(self, *pieces: str, end: bool = True) -> None:
        """Let the model say some pieces, and end its answer."""
        assert self.child.stdin is not None
        self.child.stdin.writelines(f"{json.dumps(piece)}\n" for piece in pieces)
        self.child.stdin.write("end\n" if end else "")
        self.child.stdin.flush()

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.child.pid, sign)

    def begin(self, text: str, **more: object) -> str:
        """Begin a response that is written in the background, and return its id."""
        body = {"model": "dictated", "input": text, "background": True, **more}
        made = self.client.post("/v1/responses", json=body)
        assert made.status_code == 200, made.text
        return str(made.json()["id"])

    @contextmanager
    def events(self, path: str, **params: object) -> Generator[Iterator[dict[str, Any]]]:
        """Read the events of a stream as they come."""
        with self.client.stream("GET", path, params=params) as response:  # type: ignore[arg-type]
            assert response.status_code == 200

            def read() -> Iterator[dict[str, Any]]:
                for line in response.iter_lines():
                    if line.startswith("data: {"):
                        yield json.loads(line.removeprefix("data: "))

            yield read()


@contextmanager
def server_processes(store: str, count: int, *apps: str) -> Generator[list[ServerProcess]]:
    """Start servers over one store."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SERVER, store, *apps],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(count)
    ]
    servers: list[ServerProcess] = []
    try:
        servers += [ServerProcess(child) for child in children]
        yield servers
    finally:
        for server in servers:
            server.client.close()
        for child in children:
            child.kill()
        for child in children:
            for pipe in (child.stdin, child.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()
            child.wait()
