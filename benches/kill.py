"""The cost of SIGKILL at any moment: turns, batches, indexing, imports and garbage collection, over HTTP and on disk.

`python -m benches.kill 300` kills 300 processes; `python -m benches.kill 1000 3600` kills 1,000, or as many as an hour allows.
After each kill the store is checked, the interrupted task is completed with the command that a user would type, and the requests
that the server answered in full are counted. A call that was answered twice was paid for twice, which can only happen if a
process dies between the server's last byte and its own write.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from benches.measure import Subject, median
from taiwa.sessions.repository import Repository
from taiwa.store import Store

KILLS = 100
PIECES = 12
PAUSE = 0.01
ROWS = 6
PAGES = 20
TASKS = ("turn", "batch", "index", "import", "gc")
MOST_MS = 100
QUESTION = re.compile(r"(?:old|turn|row) [0-9]+(?: of [0-9]+)?")


class Server(ThreadingHTTPServer):
    """A model that streams a short answer slowly and records when it has sent the last byte of each."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answered: dict[str, list[float]] = {}

    @property
    def model(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1#m"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error of a killed client."""


class Handler(BaseHTTPRequestHandler):
    """A handler that answers every chat completion with the same words."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number in range(PIECES):
            self._send({"choices": [{"index": 0, "delta": {"content": f"word {number} "}}]})
            time.sleep(PAUSE)
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._send({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 20}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.server.answered.setdefault(_last_text(body), []).append(time.monotonic())

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base class)
        """Write no log."""

    def _send(self, event: object) -> None:
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())


def _last_text(body: dict[str, list[dict[str, str]]]) -> str:
    return QUESTION.findall(str(body["messages"][-1]["content"]))[-1]


class Home:
    """A store with a history, documents, input lines and an export, and the commands that use them."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.server = server
        self.environment = {
            **os.environ, "TAIWA_STORE": str(folder / "taiwa.db"), "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_DATA_HOME": str(folder / "data"), "TAIWA_LANG": "en",
        }  # fmt: skip
        for number in range(8):
            self.ok("say", "chat", "-s", "old", "-m", server.model, f"old {number}")
        exported = self.ok("export", "old").splitlines()
        (folder / "old.jsonl").write_text("\n".join(exported))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "taiwa", *arguments], env=self.environment, cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ok(self, *arguments: str) -> str:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        if process.returncode:
            raise RuntimeError(f"{arguments}: {err}")
        return out

    def command(self, task: str, number: int) -> list[str]:
        """Return the command of a task; each number has its own texts."""
        if task == "turn":
            return ["say", "chat", "-s", f"turn-{number}", "-m", self.server.model, f"turn {number}"]
        if task == "batch":
            lines = self.folder / f"lines-{number}.txt"
            lines.write_text("".join(f"row {row} of {number}\n" for row in range(ROWS)))
            return ["batch", "chat", str(lines), "--mode", "map", "--resume", "-j", "2", "-m", self.server.model]
        if task == "index":
            documents = self.folder / f"documents-{number}"
            documents.mkdir(exist_ok=True)
            for page in range(PAGES):
                (documents / f"{page}.md").write_text(f"# Page {page}\n\n" + f"Paragraph on subject{page}.\n\n" * 20)
            return ["index", str(documents), "--name", f"index-{number}"]
        if task == "import":
            return ["import", str(self.folder / "old.jsonl"), f"import-{number}"]
        return ["gc", "--keep", "0"]

    def prepare(self, task: str, number: int) -> None:
        """Create garbage to collect."""
        if task == "gc":
            with Store.open(self.folder / "taiwa.db") as store:
                store.refs.create(f"gone-{number}", store.refs.tip("old"))
                Repository(store).set_state(f"gone-{number}", {"topics": [str(number)]})
                store.refs.delete(f"gone-{number}")

    def finish(self, task: str, number: int) -> None:
        """Run the command that a user would run after the kill, and check that the task is done."""
        if task == "turn":
            with Store.open(self.folder / "taiwa.db") as store:
                name = f"turn-{number}"
                open_runs, done = store.runs.open_runs(name), store.refs.has(name)
            if open_runs:
                self.ok("resume", "-s", name, "-m", self.server.model)
            elif not done:
                self.ok(*self.command(task, number))
            assert self.ok("log", name).count(f"turn {number}") == 1
        else:
            out = self.ok(*self.command(task, number))
            if task == "batch":
                assert len([line for line in out.splitlines() if "word 11" in line]) == ROWS, out
            if task == "index":
                assert f"subject{number % PAGES}" in self.ok(
                    "find", f"subject{number % PAGES}", "--in", f"index-{number}"
                )


def kill_once(home: Home, task: str, number: int, after: float, counts: Counter[str]) -> list[float]:
    """Kill a task, complete it, and return the milliseconds between last byte and kill of each call that was paid for twice."""
    home.prepare(task, number)
    with Store.open(home.folder / "taiwa.db") as store:
        before = {ref.name: ref.tip for ref in store.refs.list()}
    process = home.start(*home.command(task, number))
    try:
        process.wait(after)
        counts["finished before the kill"] += 1
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    process.communicate()
    time.sleep(PAUSE * 2)
    with Store.open(home.folder / "taiwa.db") as store:
        repository = Repository(store)
        counts["corrupt"] += bool(repository.fsck())
        now = {ref.name: ref.tip for ref in store.refs.list()}
        counts["lost"] += any(now.get(name) != tip for name, tip in before.items())
    home.finish(task, number)
    with Store.open(home.folder / "taiwa.db") as store:
        counts["corrupt"] += bool(Repository(store).fsck())
    late: list[float] = []
    for times in home.server.answered.values():
        counts["paid twice"] += len(times) - 1
        late += [(killed - times[0]) * 1000] * (len(times) - 1)
    home.server.answered.clear()
    return late


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def main(kills: int = KILLS, seconds: float = math.inf) -> None:
    """Kill `count` processes, cycling through the tasks, or as many as the seconds allow."""
    end, rng, done, late = time.monotonic() + seconds, Random(kills), 0, list[float]()
    counts = {task: Counter[str]() for task in TASKS}
    with tempfile.TemporaryDirectory() as made, serving() as server:
        home = Home(Path(made), server)
        longest = {task: max(_duration(home, task, number) for number in range(2)) for task in TASKS}
        server.answered.clear()
        for done in range(1, -(-kills // len(TASKS)) + 1):
            for task in TASKS:
                late += kill_once(home, task, done, rng.uniform(0, longest[task]), counts[task])
            if time.monotonic() > end:
                break
    total = sum(counts.values(), Counter[str]())
    subject = Subject(
        "kill",
        f"{done * len(TASKS)} processes killed (SIGKILL) at a random moment of their work, then finished by the user",
    )
    for task, each in counts.items():
        note = ", ".join(
            f"{each[what]} {what}" for what in ("finished before the kill", "lost", "corrupt", "paid twice")
        )
        subject.row(f"{task}: killed", done - each["finished before the kill"], "times", note)
    subject.row(
        "paid twice", total["paid twice"], "calls", f"median {median(late):.1f} ms after the last byte" if late else ""
    )
    subject.target("lost", total["lost"], 0, "kills")
    subject.target("corrupt", total["corrupt"], 0, "kills")
    subject.target("from the last byte to the kill of a call paid twice", max(late, default=0), MOST_MS, "ms")
    subject.write()


def _duration(home: Home, task: str, number: int) -> float:
    """Return the seconds that a task takes undisturbed."""
    home.prepare(task, 10**6 + number)
    start = time.monotonic()
    home.ok(*home.command(task, 10**6 + number))
    return time.monotonic() - start


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(float, sys.argv[2:3]))
