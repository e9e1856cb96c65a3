"""The overhead of `taiwa serve`: beside a direct call of the model, beside a bare ASGI application, and with a large store.

With TAIWA_BENCH_PEERS=1 the proxy of LiteLLM is measured too, in a separate environment (400 MB).

Every server is a separate process on the loopback interface; a ratio compares two measurements of this run.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import httpx2

from benches.measure import ROOT, Subject, median
from benches.wire_servers import EVENTS
from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import START, TurnParts, add_turn, next_address, turn_digest
from taiwa.kernel.messages import Message, assistant, user
from taiwa.operations.resent_history import ResentHistory
from taiwa.sessions.repository import Repository
from taiwa.store import Store

CALLS = 100
LITELLM = "litellm[proxy]>=1.70,<2"
STREAMS = 1_000
ROUNDS = 5
CONVERSATIONS, TURNS = 1_000, 100
MATCHED = 60
IDLE = 1_000
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Served:
    """A server in a separate process."""

    process: "subprocess.Popen[str]"
    port: int

    @property
    def cpu(self) -> float:
        """Return the CPU seconds used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def resident(self) -> int:
        """Return the resident memory in bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(*words: str) -> Generator[Served]:
    """Run a server with `python -m`, which prints its port."""
    command = [sys.executable, "-m", *words]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Served(process, int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(30)


def body(model: str, text: str = "Where are the maples?", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def litellm() -> Path | None:
    """Return the environment of LiteLLM's proxy, whose dependencies conflict with ours; None if it is not available."""
    if not os.environ.get("TAIWA_BENCH_PEERS"):
        print("  LiteLLM is left out: TAIWA_BENCH_PEERS=1 puts it into an environment of its own")
        return None
    home = ROOT / "build" / "peers" / "litellm"
    if not (home / "bin" / "litellm").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        command = [str(home / "bin" / "pip"), "install", "--quiet", LITELLM]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            print("  LiteLLM could not be installed: left out")
            return None
    return home / "bin" / "litellm"


@contextmanager
def proxying(address: str, folder: Path) -> Generator[str | None]:
    """Run LiteLLM's proxy before a model and yield its address; None if it cannot run."""
    program = litellm()
    if program is None:
        yield None
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    passed_on = {"model": "openai/played", "api_base": address, "api_key": "none"}
    settings = {"model_list": [{"model_name": "played", "litellm_params": passed_on}]}
    (folder / "litellm.yaml").write_text(json.dumps(settings))
    command = [str(program), "--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    alone = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}
    process = subprocess.Popen(command, cwd=folder, env=os.environ | alone, **quiet)
    try:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            try:
                httpx2.get(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).raise_for_status()
                break
            except httpx2.HTTPError:
                time.sleep(0.5)
        else:
            print("  LiteLLM did not start: left out")
            yield None
            return
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


def overhead(subject: Subject, folder: Path) -> None:
    """(a) Time a non-streamed call: of the model itself, through the server, and through a proxy, each with its own text."""
    with serving("benches.model_server") as played:
        address = f"http://127.0.0.1:{played.port}/v1"
        with (
            serving("benches.wire_servers", "taiwa", str(folder / "calls.db"), f"{address}#played") as served,
            proxying(address, folder) as proxy,
            httpx2.Client(timeout=60) as client,
        ):
            asked = {
                "direct": (address, "played"),
                "ours": (f"http://127.0.0.1:{served.port}/v1", f"{address}#played"),
            }
            asked |= {} if proxy is None else {"litellm": (proxy, "played")}
            walls: dict[str, list[float]] = {kind: [] for kind in asked}
            for number in range(CALLS):
                for kind, (url, model) in asked.items():
                    started = time.perf_counter()
                    answer = client.post(f"{url}/chat/completions", json=body(model, f"Where are the maples? {number}"))
                    walls[kind].append((time.perf_counter() - started) * 1_000)
                    answer.raise_for_status()
    direct, ours = median(walls["direct"]), median(walls["ours"])
    subject.median("a call of a model that answers after 200 ms, by httpx2", walls["direct"], "ms")
    more = f"+{ours - direct:.1f} ms"
    subject.median("the same through taiwa serve, stored and journaled", walls["ours"], "ms", more)
    subject.target("a call through the server, as a multiple of a call of the model", ours / direct, 1.5, "")
    if "litellm" in walls:
        theirs = median(walls["litellm"])
        more = f"+{theirs - direct:.1f} ms"
        subject.median(
            "the same through the proxy of LiteLLM, which stores nothing", walls["litellm"], "ms", more, ours=ours
        )
        subject.target("a call through the server, as a multiple of one through LiteLLM", ours / theirs, 1, "")


HISTORY = 20
WIDTHS = {1: 20, 8: 80, 32: 160}
"""The number of turns by how many are asked for at a time."""
FOX = "the quick brown fox jumps over the lazy dog. " * 6
OFFERED = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}", "description": FOX,
            "parameters": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
        },
    }
    for number in range(5)
]  # fmt: skip


async def ask(address: str, model: str, width: int, count: int, *, stream: bool = False) -> None:
    """Ask for turns after histories of their own, some at a time."""
    said_before = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {FOX}"} for n in range(1, HISTORY - 1)]
    room = asyncio.Semaphore(width)

    async def turn(client: httpx2.AsyncClient, number: int) -> None:
        first = {"role": "user", "content": f"{width} {number} {stream} {FOX}"}
        history = [first, *said_before, {"role": "user", "content": "Where are the maples?"}]
        async with room:
            body = {"model": model, "messages": history, "tools": OFFERED, "stream": stream}
            answer = await client.post(address, json=body)
            answer.raise_for_status()

    async with httpx2.AsyncClient(timeout=120, limits=httpx2.Limits(max_connections=width)) as client:
        await asyncio.gather(*(turn(client, number) for number in range(count)))


def proxied_turns(subject: Subject, folder: Path) -> None:
    """(e) Compare the CPU of a turn with tools and 20 messages with that of a proxy that only passes requests on."""
    with serving("benches.model_server") as played:
        address = f"http://127.0.0.1:{played.port}/v1"
        kinds = {
            "taiwa serve": (("taiwa", str(folder / "turns.db"), f"{address}#played"), f"{address}#played"),
            "a pass-through proxy": (("proxy", address), "played"),
        }
        spent: dict[str, dict[tuple[int, str], float]] = {kind: {} for kind in kinds}
        cases = [(width, how) for how in ("whole", "streamed") for width in WIDTHS]
        for kind, (words, model) in kinds.items():
            with serving("benches.wire_servers", *words) as served:
                url = f"http://127.0.0.1:{served.port}/v1/chat/completions"
                asyncio.run(ask(url, model, 4, 20))
                for width, how in cases:
                    count, before, started = WIDTHS[width], served.cpu, time.perf_counter()
                    asyncio.run(ask(url, model, width, count, stream=how == "streamed"))
                    seconds = time.perf_counter() - started
                    spent[kind][width, how] = (served.cpu - before) / count * 1_000
                    what = f"CPU of a turn, {width} at a time, {how}, {kind}"
                    subject.row(what, spent[kind][width, how], "ms", f"{count / seconds:.0f} turns a second")
    for width, how in cases:
        ratio = spent["taiwa serve"][width, how] / spent["a pass-through proxy"][width, how]
        subject.target(f"CPU of a turn, {width} at a time, {how}, as a multiple of the proxy's", ratio, 2, "")


async def follow(port: int, number: int, opened: asyncio.Barrier) -> tuple[list[float], int]:
    """Read one stream; return the times of its events, and 1 if it was incomplete."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    payload = json.dumps(body("drip", f"stream {number}", stream=True)).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    await opened.wait()
    writer.write(f"{head}content-length: {len(payload)}\r\n\r\n".encode() + payload)
    times: list[float] = []
    done = False
    while not done:
        line = await reader.readline()
        if not line:
            break
        if b'"content":"word ' in line:
            times.append(time.perf_counter())
        done = line.startswith(b"data: [DONE]")
    writer.close()
    return times, int(not done or len(times) != EVENTS)


async def streams(port: int) -> tuple[list[float], int]:
    """Read all streams concurrently; return the gaps between events, and the number of incomplete streams."""
    opened = asyncio.Barrier(STREAMS)
    read = await asyncio.gather(*(follow(port, number, opened) for number in range(STREAMS)))
    gaps = [(after - before) * 1_000 for times, _ in read for before, after in pairwise(times)]
    return gaps, sum(failed for _, failed in read)


def part(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


@dataclass(frozen=True)
class Streamed:
    """A server's costs of concurrent streams: CPU microseconds per event, 99th percentile of gaps in ms, KB per stream."""

    cpu: float
    gap: float
    failed: int
    memory: float


def measure_streams(*words: str) -> Streamed:
    """Open all streams of a new server, and read them to the end."""
    with serving("benches.wire_servers", *words) as served:
        url = f"http://127.0.0.1:{served.port}/v1/chat/completions"
        httpx2.post(url, json=body("drip", "first", stream=True), timeout=60)
        before, cpu = served.resident, served.cpu
        peak = [before]

        async def both() -> tuple[list[float], int]:
            reading = asyncio.create_task(streams(served.port))
            while not reading.done():
                await asyncio.wait((reading,), timeout=0.5)
                peak.append(served.resident)
            return await reading

        gaps, failed = asyncio.run(both())
        each = (served.cpu - cpu) / (STREAMS * EVENTS) * 1e6
        return Streamed(each, part(gaps, 0.99), failed, (max(peak) - before) / STREAMS / 1_024)


def streaming(subject: Subject, folder: Path) -> None:
    """(b) Serve a thousand streams of ten events a second, and (d) measure the memory of an open one.

    The two servers take turns, since the load and clock of a machine change; a ratio is the median over the rounds.
    """
    raw, ours = list[Streamed](), list[Streamed]()
    for number in range(ROUNDS):
        raw.append(measure_streams("raw"))
        ours.append(measure_streams("taiwa", str(folder / f"streams{number}.db"), "ollama:any"))
    for kind, rounds in (("a bare ASGI application", raw), ("taiwa serve", ours)):
        subject.median(f"CPU per event of {STREAMS:,} streams, {kind}", [each.cpu for each in rounds], "us")
        what = f"gap between two events, 100 ms of it from the model, {kind}"
        subject.median(what, [each.gap for each in rounds], "ms", "of 99 %")
        subject.row(f"incomplete streams, {kind}", sum(each.failed for each in rounds), "")
    subject.target("incomplete streams", sum(each.failed for each in ours), 0, "")
    subject.target("memory of an open stream", max(each.memory for each in ours), 60, "KB")
    pairs = list(zip(ours, raw, strict=True))
    for what, ratios, bound in (
        ("CPU per event, as a multiple of the bare application's", [our.cpu / bare.cpu for our, bare in pairs], 2),
        (
            "99th percentile of gaps, as a multiple of the bare application's",
            [our.gap / bare.gap for our, bare in pairs],
            3,
        ),
    ):
        subject.median(what, ratios, "x")
        subject.target(what, median(ratios), bound, "")


def said(conversation: int, turn: int) -> tuple[Message, Message]:
    words = "the quick brown fox jumps over the lazy dog. " * 8
    return user(f"ask {conversation} {turn} {words}"), assistant(f"answer {conversation} {turn} {words}")


def matching(subject: Subject, store: str) -> None:
    """(c) Match a history of 200 messages in a store of 100,000 nodes."""
    repository = Repository(Store.open(store))
    app = load_app("plain").with_params({}).with_options(AnswerOptions(request=AnswerOptions()))
    for number in range(CONVERSATIONS):
        conversation, address, known = repository.start(app), START, list[tuple[str, str, str]]()
        for turn in range(TURNS):
            messages = said(number, turn)
            conversation = add_turn(conversation, messages[0].text, messages[1].text, {}, TurnParts(messages=messages))
            digest = turn_digest(messages)
            address = next_address(address, digest)
            known.append((address, digest, conversation.tip))
        with repository.store.transaction():
            repository.commit(f"s{number}", conversation, expected=None)
            for entry in known:
                repository.store.transcripts.put(app.name, *entry, f"s{number}")
    histories = {
        f"s{number}": (*(message for turn in range(TURNS) for message in said(number, turn)), user("And now?"))
        for number in range(0, CONVERSATIONS, CONVERSATIONS // MATCHED)
    }
    walls: dict[str, list[float]] = {"active conversation": [], "inactive conversation": []}
    for session, history in histories.items():
        started = time.perf_counter()
        placed = ResentHistory(repository, app, history).place()
        walls["inactive conversation"].append((time.perf_counter() - started) * 1_000)
        assert placed.session == session
        repository.remember(placed.turn_input.base)
        started = time.perf_counter()
        ResentHistory(repository, app, history).place()
        walls["active conversation"].append((time.perf_counter() - started) * 1_000)
    nodes = repository.store.nodes.count()
    for kind, values in walls.items():
        subject.median(f"match 200 messages among {nodes:,} nodes, {kind}", values, "ms")
    for kind, values in walls.items():
        subject.target(f"match 200 messages, {kind}", median(values), 2, "ms")
    repository.store.close()


def idle(subject: Subject, store: str) -> None:
    """(d) Measure the server's memory of an idle conversation."""
    with (
        serving("benches.model_server") as played,
        serving("benches.wire_servers", "taiwa", store, f"http://127.0.0.1:{played.port}/v1#played") as served,
    ):
        model = f"http://127.0.0.1:{played.port}/v1#played"

        async def begin(first: int, count: int) -> None:
            async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=16)) as client:
                url = f"http://127.0.0.1:{served.port}/v1/chat/completions"
                posts = (client.post(url, json=body(model, f"conversation {n}")) for n in range(first, first + count))
                for answer in await asyncio.gather(*posts):
                    answer.raise_for_status()

        asyncio.run(begin(0, IDLE))  # warm up before reading the memory
        before = served.resident
        asyncio.run(begin(IDLE, IDLE))
        held = (served.resident - before) / IDLE / 1_024
        subject.row(f"memory of an idle conversation, {IDLE:,} of them", held, "KB")
        subject.target("memory of an idle conversation", held, 8, "KB")


def main() -> None:
    subject = Subject(
        "server_wires",
        "milliseconds, microseconds and kilobytes; Chat Completions of `taiwa serve` on a SQLite file, compared with uvicorn and httpx2 alone",
        peers=("uvicorn", "httpx2"),
    )
    with tempfile.TemporaryDirectory() as folder:
        overhead(subject, Path(folder))
        proxied_turns(subject, Path(folder))
        streaming(subject, Path(folder))
        matching(subject, f"{folder}/large.db")
        idle(subject, f"{folder}/idle.db")
    subject.write()


if __name__ == "__main__":
    main()
