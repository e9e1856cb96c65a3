"""A server in the test process: genuine uvicorn on a free port, with a scripted model, or without one."""

import asyncio
import faulthandler
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import httpx
import uvicorn.server

from taiwa import settings as configured
from taiwa.kernel.messages import Chunk, Request
from taiwa.kernel.runtime import AnyModel
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel
from taiwa.server.access import Address, Served, ServerOptions
from taiwa.server.serve import TaiwaServer
from taiwa.sessions.repository import Repository
from taiwa.store import Store

KEY = "test-key"
# uvicorn looks ten times a second whether it was stopped, and waits as long for its connections: a tenth of what most tests take.
vars(uvicorn.server)["asyncio"] = SimpleNamespace(
    **{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(min(seconds, 0.01))}
)


class PatientModel(ScriptedModel):
    """A scripted model whose functions may wait: they are called in a thread, and the server goes on meanwhile."""

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        for chunk in self._play(await asyncio.to_thread(self._next, request), request):
            await asyncio.sleep(0)
            yield chunk


@dataclass
class Serving:
    """A running server, its store, its scripted model, and a client with the key."""

    server: TaiwaServer
    repository: Repository
    model: Any
    client: httpx.Client

    @property
    def url(self) -> str:
        return f"{self.server.url}/v1"

    def chat(self, messages: list[dict[str, Any]] | str, **more: object) -> httpx.Response:
        listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self.client.post("/v1/chat/completions", json={"model": "scripted", "messages": listed, **more})

    def turns(self) -> list[list[str]]:
        """The texts of the users of each session, newest session first."""
        refs = self.repository.store.refs.list()
        paths = ([node for _, node in self.repository.store.nodes.path(ref.tip)] for ref in refs)
        return [[node.user or "" for node in reversed(path) if node.kind == "turn"] for path in paths]


@contextmanager
def serving(
    *entries: object,
    model: AnyModel | None = None,
    quotes: bool = False,
    store: str = ":memory:",
    token: str = KEY,
    port: int = 0,
    **options: object,
) -> Generator[Serving]:
    """Serve a scripted model in a thread, until the block ends; with `quotes` no model, so that answers are quotations."""
    scripted = model or PatientModel(entries, "scripted", ALL_CAPABILITIES, 7, None)  # type: ignore[arg-type]
    settings = replace(configured.load(), model=None)
    if store != ":memory:":
        settings = replace(settings, store=Path(store))
    repository = Repository(Store.open(store))

    def taken(kind: type[Any], **given: object) -> Any:
        return kind(**given, **{name: options.pop(name) for name in kind.__match_args__ if name in options})

    given = ServerOptions(taken(Address, port=port), taken(Served), token, **options)  # type: ignore[arg-type]
    models = {} if quotes else {scripted.name: scripted}
    server = TaiwaServer(repository, settings, given, models=models)
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        await server.serve(ready.set)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(300)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=server.url, headers=headers, timeout=300) as client:
            yield Serving(server, repository, scripted, client)
    finally:
        server.stop()
        thread.join(60)
        stacks = what_runs(loops[0]) if thread.is_alive() else ""
        repository.store.close()
        assert not stacks, f"the server does not end:\n{stacks}"


def what_runs(loop: asyncio.AbstractEventLoop) -> str:
    """The stacks of the tasks of a loop, and of all threads."""
    with TemporaryFile("w+") as file:
        for task in asyncio.all_tasks(loop):
            task.print_stack(file=file)
        file.flush()
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()


def sse(response: httpx.Response) -> Iterator[str]:
    """The data of the events of a response."""
    for block in response.text.split("\n\n"):
        for line in block.splitlines():
            if line.startswith("data: "):
                yield line.removeprefix("data: ")


def requests_of(serving: Serving) -> list[list[str]]:
    """The texts of the messages of each request that the scripted model got."""
    assert isinstance(serving.model, ScriptedModel)
    return [[f"{message.role}: {message.text}" for message in request.messages] for request in serving.model.requests]
