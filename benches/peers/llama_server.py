"""A llama.cpp server for one file, the peer of our loop on the same library; run as `llama_server.py FILE THREADS`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self
from urllib.request import Request, urlopen


class LlamaServer:
    """The server, from entering to leaving."""

    def __init__(self, file: Path, threads: int) -> None:
        self._command = [sys.executable, __file__, str(file), str(threads)]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self.url = next(line.decode().strip() for line in self._process.stdout if line.startswith(b"http://"))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a chat completion, with the timings of llama.cpp."""
        request = Request(
            f"{self.url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urlopen(request) as response:
            found: dict[str, Any] = json.load(response)
            return found


def serve(file: str, threads: int) -> None:
    """Serve until standard input ends."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()  # its module has no stubs
    params.model.path = file
    params.n_ctx, params.n_parallel, params.hostnames, params.port, params.ui = 8192, 1, ["127.0.0.1"], 0, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server: Any = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
