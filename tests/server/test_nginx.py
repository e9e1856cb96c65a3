"""The server behind nginx with its default settings, which buffer answers and speak HTTP/1.0 with it."""

import asyncio
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from taiwa.kernel.messages import Chunk, Request, StreamEnd, TextDelta, Usage
from taiwa.models.scripted import ALL_CAPABILITIES, ScriptedModel
from tests.server.serving import KEY, serving

CONFIG = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{}}
http {{
    access_log off; client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
    uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
    server {{ listen unix:{folder}/front; location / {{ proxy_pass {url}; }} }}
}}
"""
SAID = {"model": "paused", "stream": True, "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]}
STREAMS = {
    "/v1/chat/completions": SAID,
    "/v1/messages": SAID,
    "/v1/responses": {"model": "paused", "stream": True, "input": "Hi"},
    "/api/chat": {name: value for name, value in SAID.items() if name != "max_tokens"},
}


class Paused(ScriptedModel):
    """A model that writes its second piece when the first one has arrived."""

    arrived = threading.Event()

    async def astream(self, request: Request) -> AsyncIterator[Chunk]:
        yield TextDelta("First, ")
        assert await asyncio.to_thread(self.arrived.wait, 300)
        yield TextDelta("second.")
        yield StreamEnd("stop", None, Usage(1, 2), self.name)


@contextmanager
def behind_nginx(url: str, folder: Path) -> Iterator[httpx.Client]:
    """Run nginx before a server; yield a client of it."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("no nginx: on Debian, apt-get install nginx-light")
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, url=url))
    process = subprocess.Popen([nginx, "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)
    front = folder / "front"
    try:
        while not accepts(front):
            assert process.poll() is None, (folder / "log").read_text()
        headers = {"authorization": f"Bearer {KEY}"}
        transport = httpx.HTTPTransport(uds=str(front))
        with httpx.Client(base_url="http://front", transport=transport, headers=headers, timeout=300) as client:
            yield client
    finally:
        process.terminate()
        process.wait(300)


def accepts(front: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(front)) == 0


@pytest.mark.parametrize("path", STREAMS)
def test_each_piece_of_a_stream_passes_at_once(tmp_path: Path, path: str) -> None:
    model = Paused((), "paused", ALL_CAPABILITIES, 7, None)
    model.arrived = threading.Event()
    with (
        serving(model=model) as served,
        behind_nginx(served.server.url, tmp_path) as client,
        client.stream("POST", path, json=STREAMS[path]) as response,
    ):
        assert response.status_code == 200
        lines = response.iter_lines()
        while "First" not in next(lines):
            pass
        model.arrived.set()
        assert "second." in "".join(lines)
