"""The page in Chromium: bytes on the wire, first paint, interaction with 1,000 turns, heap, and the browser's cost of a streamed answer."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from benches.measure import Subject, median
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn
from taiwa.kernel.messages import Request, StreamEnd, TextDelta
from tests.browser import chromium
from tests.server.page.tab import Wire
from tests.server.serving import Serving, serving

TURNS = 1_000
ROUNDS = 7
TOKENS = 150
PER_SECOND = 30
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
NEXT_PAINT = """(key) => new Promise((done) => {
  const started = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  requestAnimationFrame(() => { const channel = new MessageChannel(); channel.port1.onmessage = () => done(performance.now() - started); channel.port2.postMessage(0); });
})"""
WORDS = "The tea grows on the hills, where **mist** keeps the leaves soft, and `water` does the rest of it. ".split()


class Streaming:
    """A model that writes at an even pace, like a fast local one."""

    name = "streaming"
    capabilities = frozenset[Any]()

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
        """Yield words, with occasional paragraph breaks."""
        del request
        for number in range(TOKENS):
            await asyncio.sleep(1 / PER_SECOND)
            yield TextDelta(WORDS[number % len(WORDS)] + ("\n\n" if number % 40 == 39 else " "))
        yield StreamEnd("stop", "streaming")


def wire(subject: Subject, served: Serving, browser: Any) -> None:
    """Measure what comes over the wire, and the first paint of a slow line."""
    headers = {"authorization": served.client.headers["authorization"]}
    page = browser.new_context(extra_http_headers=headers).new_page()
    line = Wire(page)
    requests, first = line.visit(f"{served.server.url}/c/long")
    subject.target("requests of a first visit", requests, 6, "")
    subject.target("first visit, 1,000 turns, on the wire", first / 1000, 25, "KB")
    subject.target("second visit, on the wire", line.visit(f"{served.server.url}/c/long")[1] / 1000, 0, "KB")
    page.context.close()
    paints: list[float] = []
    for _ in range(3):
        page = browser.new_context(extra_http_headers=headers).new_page()
        slow = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
        line = Wire(page)
        line.session.send("Network.emulateNetworkConditions", slow)
        line.visit(f"{served.server.url}/c/long")
        paints.append(page.evaluate(PAINT))
        page.context.close()
    subject.target("first contentful paint, 400 ms away at 50 KB/s", median(paints) / 1000, 1.5, "s")


def main() -> None:
    """Measure the page."""
    subject = Subject(
        "page",
        "the page in headless Chromium, on loopback; a conversation of 1,000 turns",
        peers=("playwright",),
    )
    with serving(model=Streaming()) as served, chromium() as browser:  # type: ignore[arg-type]
        conversation = served.repository.start(load_app("chat").with_params({}))
        for n in range(1, TURNS + 1):
            answer = f"An answer **{n}**.\n\n- one\n- two\n\n`code {n}`"
            conversation = add_turn(
                conversation, f"question {n}", answer, {"topics": [f"topic {n % 97}"], "summary": f"about {n}"}
            )
        served.repository.commit("long", conversation, expected=None)
        wire(subject, served, browser)
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.goto(served.server.login_url)
        paints: list[float] = []
        for _ in range(ROUNDS):
            page.goto(f"{served.server.url}/c/long")
            page.wait_for_selector("body[data-ready]")
            paints.append(page.evaluate(PAINT))
        subject.median("first contentful paint, 1,000 turns", paints, "ms")
        subject.target("first contentful paint, 1,000 turns", median(paints), 250, "ms")
        page.locator("#text").blur()
        walks = [page.evaluate(NEXT_PAINT, "k" if n % 2 else "j") for n in range(2 * ROUNDS)]
        subject.median("select the next turn: to the next paint", walks, "ms")
        subject.target("interaction to next paint, 1,000 turns", median(walks), 100, "ms")
        protocol = page.context.new_cdp_session(page)
        protocol.send("HeapProfiler.collectGarbage")
        heap = protocol.send("Runtime.getHeapUsage")["usedSize"] / 2**20
        subject.target("JavaScript heap, 1,000 turns", heap, 5, "MB")
        page.goto(served.server.url)
        page.check("[name=app][value=plain]")
        page.fill("#text", "write")
        page.press("#text", "Enter")
        page.wait_for_selector("#live .answer:not(:empty)")
        protocol = page.context.new_cdp_session(page)
        protocol.send("Performance.enable", {"timeDomain": "threadTicks"})

        def busy() -> float:
            return next(
                each["value"]
                for each in protocol.send("Performance.getMetrics")["metrics"]
                if each["name"] == "TaskDuration"
            )

        before, started = busy(), time.perf_counter()
        page.wait_for_selector("#turns .turn", timeout=60_000)
        share = (busy() - before) / (time.perf_counter() - started)
        subject.target(f"{PER_SECOND} tokens per second: share of a core", 100 * share, 10, "%")
    subject.write()
