"""The page in Chromium: sizes, first paint, interaction with 1,000 turns, heap, and the browser's cost of a streamed answer."""

import asyncio
import gzip
import time
from collections.abc import AsyncGenerator
from typing import Any

from benches.measure import Subject, median
from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn
from taiwa.kernel.messages import Request, StreamEnd, TextDelta
from taiwa.server.page.page import STATIC
from tests.browser import chromium
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


def sizes(subject: Subject, served: Serving) -> None:
    """Return the compressed size in bytes."""
    packed = {name: len(gzip.compress(served.client.get(f"/page/{name}").content, 9)) for name in STATIC}
    scripts = sum(size for name, size in packed.items() if name.endswith(".js"))
    subject.target("scripts, compressed", scripts / 1024, 15, "KB")
    subject.target("style sheet, compressed", packed["page.css"] / 1024, 10, "KB")
    html = len(gzip.compress(served.client.get("/c/long").content, 9))
    subject.target("first load of 1,000 turns, compressed", (sum(packed.values()) + html) / 1024, 60, "KB")


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
        sizes(subject, served)
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
