"""Fixtures of the command line: real commands, a real store, and a model server over HTTP."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from taiwa.cli.main import main
from tests.cli.forked import ForkedCommand
from tests.peers.faults import Act, FaultServer, Seen, speech, status

MODEL = "test-model"
EXHAUSTED = b'{"error": {"message": "the written dialogue is over"}}'


@dataclass(frozen=True)
class Result:
    """The exit code of a command and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines of JSON on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def lines(self) -> list[str]:
        """Standard output by lines."""
        return self.out.splitlines()


@dataclass(frozen=True)
class Place:
    """The home of a test: its config file and its store."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config" / "taiwa" / "config.yaml"

    @property
    def store(self) -> Path:
        return self.folder / "taiwa.db"

    def set(self, **settings: object) -> None:
        """Write the config file; JSON is YAML."""
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items()))

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process of its own."""
        return {**os.environ, "COLUMNS": "100", **more}


class Taiwa:
    """Runs a command in this process, as `taiwa ARGUMENTS` would."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __call__(self, *arguments: str, input: str | bytes = b"") -> Result:  # noqa: A002  (the word for it)
        given = input.encode() if isinstance(input, str) else input
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given), "utf-8")
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
                main(arguments)
        finally:
            sys.stdin = kept
        printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Result(cast("int", end.value.code or 0), *printed)

    def ok(self, *arguments: str, input: str | bytes = b"") -> Result:  # noqa: A002  (as above)
        """Run a command that must succeed."""
        result = self(*arguments, input=input)
        assert result.code == 0, f"{arguments}: {result.err}"
        return result

    def fork(self, *arguments: str) -> ForkedCommand:
        """Run a command in a process of its own, for what only a process can show."""
        return ForkedCommand(arguments, self.place.environment(), reads=arguments[0] == "chat")

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
        """Run a command in a process of its own from its very beginning."""
        return subprocess.Popen(
            [sys.executable, "-m", "taiwa", *arguments],
            stdin=subprocess.PIPE if arguments[0] == "chat" else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.place.environment(**environment),
        )  # fmt: skip


class ModelServer:
    """A server that answers requests with given texts and records the requests."""

    def __init__(self, server: FaultServer, place: Place) -> None:
        self._server = server
        self._place = place

    def __call__(self, *answers: "str | Act", **settings: object) -> "ModelServer":
        """Play these answers, one per request, and let the config name this server."""
        acts = [speech(answer) if isinstance(answer, str) else answer for answer in answers]
        self._server.plays(*acts, status(400, EXHAUSTED))
        self._configure(settings)
        return self

    def plays(self, act: "Act", **settings: object) -> "ModelServer":
        """Answer every request in one way."""
        self._server.plays(act)
        self._configure(settings)
        return self

    def _configure(self, settings: Mapping[str, object]) -> None:
        """Name the server in the config, as one that has been asked what it is."""
        self._place.set(model=self.model, attempts=1, **settings)
        addresses = (self.url, self.url.replace("127.0.0.1", "0.0.0.0"))
        probes = {f"{address}#": {"server": "test"} for address in addresses}
        (self._place.config.parent / "probes.json").write_text(json.dumps(probes))

    @property
    def model(self) -> str:
        return f"{self._server.base_url}#{MODEL}"

    @property
    def url(self) -> str:
        return self._server.base_url

    @property
    def seen(self) -> list[Seen]:
        return self._server.seen

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The bodies of the requests, oldest first."""
        return [cast("Mapping[str, Any]", seen.json) for seen in self._server.seen]

    def last_message(self, number: int = -1) -> str:
        """The last message of a request, as one text."""
        content = self.requests[number]["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)


def delta(answer: str, **changes: object) -> str:
    """A reply of the mode `text+delta`."""
    return f"{answer}\n@@delta\n{json.dumps(changes, ensure_ascii=False)}"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty home of its own: no config, no store, no language but English, no hub, no package registry."""
    keys = [name for name in os.environ if name.endswith("_API_KEY")]
    for name in ("LC_ALL", "LC_MESSAGES", "NO_COLOR", "FORCE_COLOR", "TAIWA_CONFIG", "TAIWA_APPS", *keys):
        monkeypatch.delenv(name, raising=False)
    for name, part in {
        "XDG_CONFIG_HOME": "config",
        "XDG_DATA_HOME": "data",
        "XDG_CACHE_HOME": "cache",
        "TAIWA_STORE": "taiwa.db",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / part))
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    for name, text in {"TAIWA_LANG": "en", "LANG": "C.UTF-8", "COLUMNS": "100", "TERM": "dumb", **nowhere}.items():
        monkeypatch.setenv(name, text)
    return Place(tmp_path)


@pytest.fixture
def taiwa(place: Place) -> Taiwa:
    """Runs commands."""
    return Taiwa(place)


@pytest.fixture(scope="session")
def _server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture
def model_server(_server: FaultServer, place: Place) -> ModelServer:
    """The model of the tests: `model_server("first answer", "second")`."""
    return ModelServer(_server, place)


@pytest.fixture
def apps(place: Place) -> Callable[[str, str], Path]:
    """Write an app file, given its name and its whole text."""

    def write(name: str, text: str) -> Path:
        path = place.config.parent / "apps" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
