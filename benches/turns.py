"""What a whole turn costs in CPU beside others: many conversations at once with a server that thinks for 200 ms.

taiwa does the whole of it: prompt from state and window, call, reading, delta, commit to SQLite on disk. The others make one
call with one system and one user message and keep nothing. Each runs in a fresh process; the server in one of its own.
"""

import subprocess
import sys
import time
from statistics import median

from benches.measure import ROOT, Subject, fresh

CODE = """
import asyncio, json, sys, tempfile, time
PORT, C, N = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
BASE = f"http://127.0.0.1:{PORT}/v1"
SYSTEM, USER = "You are a friendly companion. " * 20, "When should I go to Kyoto to see the maples?"
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
%s
async def main():
    room = asyncio.Semaphore(C)
    async def one(n):
        async with room:
            await turn(n)
    await asyncio.gather(*(one(n) for n in range(C)))
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one(n) for n in range(N)))
    print(json.dumps([(time.process_time() - cpu) / N * 1e3, N / (time.perf_counter() - wall)]))
asyncio.run(main())
"""
PEERS: dict[str, tuple[str, str]] = {
    "raw httpx2": (
        "streamed",
        """
import httpx2
client = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=C, max_keepalive_connections=C), timeout=60, trust_env=False)
async def turn(n):
    body = {"model": "with-delta", "messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True}}
    words = []
    async with client.stream("POST", f"{BASE}/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                for choice in json.loads(line[6:])["choices"]:
                    words.append(choice["delta"].get("content") or "")
    assert len("".join(words)) > 100
""",
    ),
    "taiwa: Talk.asay": (
        "streamed, stored",
        """
from pathlib import Path
from taiwa.apps.catalogue import find
from taiwa.models.http import HttpModel
from taiwa.models.names import resolve
from taiwa.store import Store
from taiwa.talk.desk import Desk
from taiwa.talk.talk import Talk
from taiwa.talk.turn import Voice
folder = tempfile.TemporaryDirectory()
desk, app = Desk(Store.open(Path(folder.name) / "bench.db")), find("chat").opened({})
voice = Voice(HttpModel(resolve(f"{BASE}#with-delta")))
idle = [Talk(desk, f"s{n}", desk.start(app), voice) for n in range(C)]
async def turn(n):
    talk = idle.pop()
    said = await talk.asay(USER)
    idle.append(talk)
    assert len(said.text) > 100 and said.delta
""",
    ),
    "openai": (
        "streamed",
        """
from openai import AsyncOpenAI
client = AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0)
async def turn(n):
    words = []
    answer = await client.chat.completions.create(
        model="with-delta", messages=MESSAGES, stream=True, stream_options={"include_usage": True})
    async for event in answer:
        for choice in event.choices:
            words.append(choice.delta.content or "")
    assert len("".join(words)) > 100
""",
    ),
    "pydantic-ai": (
        "one object",
        """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
agent = Agent(OpenAIChatModel("plain", provider=OpenAIProvider(base_url=BASE, api_key="none")), instructions=SYSTEM)
async def turn(n):
    assert len((await agent.run(USER)).output) > 100
""",
    ),
    "langchain-openai": (
        "one object",
        """
from langchain_openai import ChatOpenAI
model = ChatOpenAI(base_url=BASE, api_key="none", model="plain", max_retries=0)
async def turn(n):
    assert len((await model.ainvoke(MESSAGES)).content) > 100
""",
    ),
    "instructor": (
        "one object, typed",
        """
import instructor
from openai import AsyncOpenAI
from pydantic import BaseModel
class Reply(BaseModel):
    answer: str
    topics: list[str]
client = instructor.from_openai(AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0))
async def turn(n):
    reply = await client.chat.completions.create(model="plain", messages=MESSAGES, response_model=Reply, max_retries=0)
    assert len(reply.answer) > 100
""",
    ),
}
ROUNDS = 3
SIZES = {10: 200, 100: 600}


def main() -> None:
    subject = Subject(
        "turns", "CPU milliseconds of the client's process per turn, with a server that thinks for 200 ms"
    )
    server = subprocess.Popen(
        [sys.executable, "-m", "benches.model_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    try:
        for together, turns in SIZES.items():
            _compare(subject, port, together, turns)
    finally:
        server.terminate()
        server.wait()
    subject.write()


def _compare(subject: Subject, port: str, together: int, turns: int) -> None:
    measured: dict[str, list[list[float]]] = {name: [] for name in PEERS}
    for _ in range(ROUNDS):
        for name, (_mode, code) in PEERS.items():
            measured[name].append(_run(code, port, together, turns))
            time.sleep(0.2)
    cost = {name: median(cpu for cpu, _ in runs) for name, runs in measured.items()}
    for name, runs in measured.items():
        rate = median(rate for _, rate in runs)
        subject.row(f"{name}, {together} at once", cost[name], "ms", f"{PEERS[name][0]}; {rate:.0f} turns/s")
    frameworks = {name: cost[name] for name in PEERS if name not in ("raw httpx2", "taiwa: Talk.asay")}
    best = min(frameworks, key=lambda name: frameworks[name])
    own = cost["taiwa: Talk.asay"]
    subject.target(f"{together} at once: against the cheapest framework ({best})", own / frameworks[best], 1, "x")
    subject.target(f"{together} at once: against raw httpx2", own / cost["raw httpx2"], 1.5, "x")


def _run(code: str, port: str, together: int, turns: int) -> list[float]:
    import json

    printed = fresh(CODE % code, arguments=(port, str(together), str(turns)))
    found: list[float] = json.loads(printed.splitlines()[-1])
    return found
