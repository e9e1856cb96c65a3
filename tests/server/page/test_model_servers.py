"""Model servers that break, over HTTP: what the page then shows in the transcript."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from taiwa.models.http_api.client import Clock, HttpModel
from taiwa.models.providers import resolve
from tests.peers.faults import Act, FaultServer, event, head, raw, speech, status, words
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import Tab

TEXT = "The first part of it. "
BEGUN = head() + words(TEXT)


@pytest.fixture
def upstream() -> Any:
    with FaultServer() as server:
        yield server


@pytest.fixture
def gate() -> threading.Event:
    """What a model waits for before its server is called again: it is open."""
    opened = threading.Event()
    opened.set()
    return opened


@pytest.fixture
def ask(open_tab: OpenTab, serve: Serve, upstream: FaultServer, gate: threading.Event) -> Callable[..., Tab]:
    """Ask the model of the server, which plays some acts."""

    async def sleep(seconds: float) -> None:
        while not gate.is_set():  # noqa: ASYNC110  (an event of another thread)
            await asyncio.sleep(0.01)

    model = HttpModel(resolve(f"{upstream.base_url}#m"), clock=Clock(sleep=sleep))

    def play(*acts: Act) -> Tab:
        upstream.plays(*acts)
        tab = open_tab(serve(model))
        tab.begin_only("Which tea?")
        return tab

    return play


@pytest.mark.parametrize(
    ("act", "text", "reason"),
    [
        (raw(BEGUN + event({}, finish="length")), TEXT, "cut off at its length limit"),
        (raw(BEGUN + event({}, finish="content_filter")), TEXT, "refused to continue"),
        (status(401, b'{"error": {"message": "Incorrect API key"}}'), "", "refuses the key"),
        (status(500, b'{"error": {"message": "boom"}}'), "", "cannot answer now"),
        (raw(b""), "", "broke off"),
    ],
    ids=["cut", "refused", "401", "500", "hung up"],
)
def test_a_turn_that_its_server_broke_stays_with_its_reason_and_what_can_be_done(
    ask: Callable[..., Tab], act: Act, text: str, reason: str
) -> None:
    tab = ask(act)
    for _ in range(2):  # also after a reload
        tab.has(".reason", reason)
        assert [each.inner_text().strip() for each in tab.page.locator(".turn .answer").all()] == [text.strip()] * bool(
            text
        )
        assert tab.page.locator(".you").inner_text() == "Which tea?"
        assert tab.page.locator(".ways button").count() >= 1
        tab.count("#notices p:not(.hidden)", 0)
        tab.page.reload()
        tab.ready()


def test_the_seconds_until_a_busy_model_is_called_again_are_counted_in_the_transcript(
    ask: Callable[..., Tab], gate: threading.Event
) -> None:
    gate.clear()
    busy = status(429, b'{"error": {"message": "slow down"}}', retry_after="60")
    tab = ask(busy, speech("The whole answer."))
    tab.until("/called again in [1-5]. s/.test(all[0]?.textContent)", "#live .thinking")  # it began at 60
    gate.set()
    tab.has("#turns .answer", "The whole answer.")
    tab.count("#notices p:not(.hidden)", 0)


def test_a_key_that_is_refused_leads_to_the_settings(ask: Callable[..., Tab]) -> None:
    tab = ask(status(401, b'{"error": {"message": "Incorrect API key"}}'))
    tab.has(".reason .ways", "Settings")


def test_an_answer_goes_on_also_at_a_server_that_cannot_prefill_it(ask: Callable[..., Tab]) -> None:
    tab = ask(raw(BEGUN + event({}, finish="length")), speech("The rest."))
    tab.has(".reason", "cut off")
    tab.page.click("[data-act=more]")
    tab.has("#turns .answer", f"{TEXT}The rest.")
