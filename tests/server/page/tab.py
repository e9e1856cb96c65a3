"""A tab of a genuine browser at the page, and models whose answers a test controls."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import Any

from taiwa.kernel.messages import Request, StreamEnd, TextDelta, ThinkingDelta
from tests.server.serving import Serving

PLAIN = "const plain = (text) => text.replace(/\\s+/g, ' ').trim()"
PATIENCE = 300_000
"""Milliseconds after which a test gives up waiting."""
ANSWER = """A **bold** word, $x^2$.

```python
def f(): return 1
```

@@delta
{{"topics": ["tea {n}"], "summary": "about tea {n}"}}"""


class GatedModel:
    """Streams the beginning and the rest of an answer, which waits until the test opens the gate."""

    name = "gated"
    capabilities = frozenset[Any]()

    def __init__(self, *begin: TextDelta | ThinkingDelta, rest: str = "The second part.") -> None:
        self.gate = threading.Event()
        self._begin = begin or (TextDelta("The first part.\n\n"),)
        self._rest = rest

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | ThinkingDelta | StreamEnd]:
        del request
        for part in self._begin:
            yield part
        while not self.gate.is_set():  # noqa: ASYNC110  (an event of another thread)
            await asyncio.sleep(0.01)
        yield TextDelta(self._rest)
        yield StreamEnd("stop", "gated")


VIEWPORT = {"width": 1280, "height": 800}
FORGET = "() => { if (location.protocol === 'http:') { localStorage.clear(); sessionStorage.clear(); } }"


def new_page(browser: Any, **options: Any) -> Any:
    """Open a page of a context of its own."""
    context = browser.new_context(**{"locale": "en-US", "viewport": VIEWPORT} | options)
    context.set_default_timeout(PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context.new_page()


class Tab:
    """A tab that remembers what must not happen: a request elsewhere, a blocked action, an error."""

    def __init__(self, page: Any, serving: Serving) -> None:
        self.page, self.context = page, page.context
        self.context.set_extra_http_headers({"authorization": serving.client.headers["authorization"]})
        self.problems: list[str] = []
        self._listeners = {
            "console": lambda each: self.problems.append(f"{each.type}: {each.text} {each.location['url']}"),
            "pageerror": lambda error: self.problems.append(str(error)),
            "request": self._check,
        }
        for name, listener in self._listeners.items():
            self.page.on(name, listener)
        self.base = serving.server.url
        self.page.goto(self.base)
        self.ready()

    def leave(self) -> None:
        """Make the page as it was before, for another tab."""
        for name, listener in self._listeners.items():
            self.page.remove_listener(name, listener)
        for other in self.context.pages:
            if other is not self.page:
                other.close()
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.evaluate(FORGET)
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.emulate_media(media="null", color_scheme="null")
        self.page.set_viewport_size(VIEWPORT)

    def _check(self, request: Any) -> None:
        if not request.url.removeprefix("blob:").startswith(self.base):
            self.problems.append(f"request to {request.url}")

    def count(self, selector: str, number: int, *, ready: bool = True) -> None:
        self.until("all.length === wanted", selector, number)
        if ready:
            self.ready()

    def reads(self, selector: str, text: str) -> None:
        """Wait until an element is drawn, and has this text and no other."""
        self.until("all[0] && plain(all[0].innerText) === plain(wanted)", selector, text)

    def holds(self, selector: str, value: str) -> None:
        """Wait until a field has this value."""
        self.until("all[0]?.value === wanted", selector, value)

    def has(self, selector: str, text: str, *, ready: bool = True) -> None:
        self.until("all[0] && plain(all[0].textContent).includes(plain(wanted))", selector, text)
        if ready and selector != "#live":
            self.ready()

    def ready(self) -> None:
        """Wait until the script of the page listens, and no answer is on its way."""
        self.until("all.length", "body[data-ready]")

    def until(self, condition: str, selector: str, wanted: object = None) -> None:
        """Wait until a condition of the elements of a CSS selector is met; the page looks whenever it could draw.

        The assertions of Playwright look after 0.1 s, then 0.25 s, 0.5 s and each second.
        """
        from playwright.sync_api import TimeoutError as LateError

        look = f"([selector, wanted]) => {{ {PLAIN}; const all = document.querySelectorAll(selector); return {condition}; }}"
        try:
            self.page.wait_for_function(look, arg=[selector, wanted])
        except LateError as error:
            found = self.page.locator(selector).evaluate_all("all => all.map(each => each.outerHTML)")
            raise AssertionError(f"{condition}: {selector}, {wanted!r}, but there are {found!r:.5000}") from error

    def violations(self, *, in_dark: bool = True) -> list[str]:
        """What is not accessible here, in light and `in_dark`; nothing but colours depends on that (needs `bypass_csp`)."""
        from axe_playwright_python.sync_playwright import Axe

        found = [Axe().run(self.page)]
        if in_dark:
            self.page.emulate_media(color_scheme="dark")
            rules = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
            found.append(Axe().run(self.page, options={"runOnly": rules, "resultTypes": ["violations"]}))
            self.page.emulate_media(color_scheme="light")
        return [result.generate_report() for result in found if result.violations_count]

    def panel(self, name: str) -> None:
        if self.page.locator("body.folded").count():
            self.page.click("[data-act=fold]")
        self.page.click(f"#tab-{name}")
        self.count(f"#panel[data-panel={name}]", 1)

    def load(self, name: str) -> None:
        """Open a part of a panel that is loaded when it is opened."""
        self.page.click(f"[data-load*='/{name}/'] > summary")
        self.count(f"[data-load*='/{name}/']", 0)
        self.count("#side [open] > .loaded > .quiet:only-child:not(p.small)", 0)

    def say(self, text: str, turns: int) -> None:
        self.page.fill("#text", text)
        self.page.press("#text", "Enter")
        self.count(".turn", turns)

    def begin(self, text: str, app: str = "chat") -> None:
        self.begin_only(text, app)
        self.count(".turn", 1)

    def begin_only(self, text: str, app: str = "plain") -> None:
        """Send the first message, and do not wait for the end of its answer."""
        self.page.check(f"[name=app][value={app}]")
        self.page.fill("#text", text)
        self.page.click("#send")


class Wire:
    """The requests of a browser page, and the bytes of their bodies as they come over the wire, without streams."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.requests: list[str] = []
        self.bytes = 0
        self._streams: set[str] = set()
        self.session = page.context.new_cdp_session(page)
        self.session.on("Network.requestWillBeSent", self._sent)
        self.session.on("Network.dataReceived", self._received)
        self.session.send("Network.enable")

    def _sent(self, event: Any) -> None:
        self.requests.append(event["request"]["url"])
        if event["type"] == "EventSource":
            self._streams.add(event["requestId"])

    def _received(self, event: Any) -> None:
        self.bytes += 0 if event["requestId"] in self._streams else event["encodedDataLength"]

    def visit(self, url: str) -> tuple[int, int]:
        """Open a page; return the number of requests and the bytes that came."""
        self.requests, self.bytes = [], 0
        self._page.goto(url)
        self._page.wait_for_selector("body[data-ready]")
        return len(self.requests), self.bytes
