"""The CPU time of a whole turn beside other libraries: many concurrent conversations with a server that waits 200 ms.

taiwa does everything: prompt from state and window, call, parsing, checked delta, commit to SQLite on disk. The others make the
call with the same system text and history, store nothing on disk, and have no state. Each runs in its own processes, in turn; the
server runs in another.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from benches.measure import ROOT, Subject, median
from benches.model_server import LATENCY
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import begin
from taiwa.conversation.turn_prompt import turn_request

ROUNDS = 5
SIZES = {10: 100, 100: 500}
OWN, RAW = "taiwa, `AsyncSession.say`", "raw httpx2, streamed"


@dataclass(frozen=True)
class Peer:
    """A library, its request mode, and whether it counts as a framework."""

    module: str
    mode: str
    stream: bool = True
    framework: bool = True


PEERS = {
    RAW: Peer("raw_httpx2", "a stream, joined; nothing checked or stored", framework=False),
    OWN: Peer("own", "a stream; state checked, turn committed to SQLite", framework=False),
    "raw httpx2, one object": Peer("raw_httpx2", "one JSON object", stream=False, framework=False),
    "openai": Peer("openai_sdk", "one JSON object, its default", stream=False),
    "openai, streamed": Peer("openai_sdk", "a stream"),
    "instructor": Peer("instructor_client", "one JSON object, its default; typed", stream=False),
    "langchain-openai": Peer("langchain", "one JSON object, its default", stream=False),
    "pydantic-ai": Peer("pydantic_ai_agent", "one JSON object, its default", stream=False),
}
DRIPPED = (RAW, OWN, "openai, streamed")
"""The libraries measured with evenly spread events."""


def main() -> None:
    subject = Subject(
        "turns",
        f"milliseconds of CPU per turn in the client's process; the server answers after {LATENCY * 1e3:.0f} ms",
        peers=("httpx2", "openai", "instructor", "langchain-openai", "pydantic-ai-slim"),
    )
    with server() as address:
        sizes = [word for pair in SIZES.items() for word in map(str, pair)]
        runs = compared(address, tuple(PEERS), "with-delta", sizes)
        dripped = compared(address, DRIPPED, "drip-with-delta", sizes[:2])
    for place, together in enumerate(SIZES):
        at_once = {name: [run[place] for run in found] for name, found in runs.items()}
        report(subject, f"{together} in parallel", at_once)
    report(
        subject,
        "10 in parallel, evenly spread events",
        {name: [run[0] for run in found] for name, found in dripped.items()},
    )
    subject.write()


def compared(
    address: str, names: tuple[str, ...], model: str, sizes: list[str]
) -> dict[str, list[list[tuple[float, float]]]]:
    """Run all libraries in turn, several times; each run has one (CPU, rate) per size."""
    found: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in names}
    opening = words_before()
    for _ in range(ROUNDS):
        for name in names:
            found[name].append(run(PEERS[name], address, model, sizes, opening))
    return found


def run(peer: Peer, address: str, model: str, sizes: list[str], opening: str) -> list[tuple[float, float]]:
    """Run turns in a fresh process."""
    command = [sys.executable, "-m", "benches.peers", peer.module, address, *sizes]
    variables = {"BENCH_MODEL": model, "BENCH_STREAM": str(int(peer.stream))}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, input=opening, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{peer.module} failed:\n{done.stderr[-2000:]}")
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def report(subject: Subject, when: str, runs: dict[str, list[tuple[float, float]]]) -> None:
    """Record the row of each, and compare taiwa with the raw call and the cheapest framework."""
    cost = {name: median([cpu for cpu, _ in found]) for name, found in runs.items()}
    own = cost[OWN]
    for name, found in runs.items():
        rate = median([rate for _, rate in found])
        note = f"{PEERS[name].mode}; {rate:.0f} turns/s"
        subject.median(f"{when}: {name}", [cpu for cpu, _ in found], "ms", note, ours=0.0 if name == OWN else own)
    ratios = [mine / raw for (mine, _), (raw, _) in zip(runs[OWN], runs[RAW], strict=True)]
    subject.target(f"{when}: against raw httpx2 with the same stream", median(ratios), 1.5, "x")
    frameworks = {name: cost[name] for name in runs if PEERS[name].framework}
    cheapest = min(frameworks, key=lambda name: frameworks[name])
    subject.target(f"{when}: against the cheapest framework ({cheapest})", own / frameworks[cheapest], 1, "x")


def words_before() -> str:
    """Return the system text of taiwa's `chat`; the others send as much."""
    request = turn_request(begin(load_app("chat").with_params({})), "x")
    return "\n\n".join(message.text for message in request.messages[:-1])


@contextmanager
def server() -> Generator[str]:
    """Start the model server and yield its address."""
    command = [sys.executable, "-m", "benches.model_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.stdin.close()
