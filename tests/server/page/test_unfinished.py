"""Turns that failed or were stopped, on the page: the text so far and the reason stay, with what can be done next."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from taiwa.kernel.errors import (
    AuthenticationError,
    ModelError,
    OverloadedError,
    ProtocolError,
    RateLimitError,
    RefusalError,
    TimeoutError,
)
from taiwa.kernel.messages import Request, StreamEnd, TextDelta
from taiwa.models.scripted import ALL_CAPABILITIES, scripted_model
from taiwa.server.access import ServerLimits
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import VIEWPORT, GatedModel
from tests.server.serving import serving


class BreakingModel:
    """Writes the beginning of each answer, then breaks in one way after another, and at last answers."""

    name = "breaking"
    capabilities = ALL_CAPABILITIES

    def __init__(self, *breaks: Any, begin: str = "The first part. ") -> None:
        self.breaks: Iterator[Any] = iter(breaks)
        self.begin = begin
        self.requests: list[Request] = []

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
        self.requests.append(request)
        if request.prefix:
            yield TextDelta("The rest.")
        elif (broken := next(self.breaks, None)) is None:
            yield TextDelta("The whole answer.")
        else:
            if self.begin:
                yield TextDelta(self.begin)
            if isinstance(broken, Exception):
                raise broken
            yield StreamEnd(broken, self.name)
            return
        yield StreamEnd("stop", self.name)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelError("the connection to breaking was lost"), "The model could not answer."),
        (
            ProtocolError("the server at tea.example broke off in the middle of its answer; try again"),
            "The connection to the server of the model broke off.",
        ),
        (AuthenticationError("breaking: HTTP 401: the key is wrong", status=401), "refuses the key"),
        (OverloadedError("breaking: HTTP 529"), "cannot answer now"),
        (TimeoutError("breaking did not answer within 60 s"), "did not answer in time"),
        (RefusalError("breaking: refused"), "refused to answer"),
    ],
)
def test_a_turn_that_failed_stays_with_its_text_and_its_reason(
    open_tab: OpenTab, serve: Serve, error: Exception, words: str
) -> None:
    tab = open_tab(serve(BreakingModel(error)))
    tab.begin_only("Which tea?")
    for _ in range(2):  # also after a reload
        tab.has(".unfinished .reason", words)
        tab.reads(".unfinished .answer", "The first part.")
        tab.reads(".unfinished .you", "Which tea?")
        tab.page.reload()
        tab.ready()
    tab.count("#notices p", 0)
    tab.has("#list", "Which tea?")
    tab.page.click("[data-act=repeat]:has-text('Retry')")
    tab.has("#turns .answer", "The whole answer.")
    tab.count(".unfinished", 0)
    tab.count(".you", 1)


@pytest.mark.parametrize("locale", ["ja-JP", "zh-CN"])
def test_a_failure_is_told_in_the_language_of_the_page_and_the_words_of_the_server_stay(
    open_tab: OpenTab, serve: Serve, locale: str
) -> None:
    message = "tea.example receives too many requests (429), try again in 2 s: slow down, please (tried 3 times)"
    tab = open_tab(serve(BreakingModel(RateLimitError(message, status=429), begin="")), locale=locale)
    tab.begin_only("Which tea?")
    tab.reads(".unfinished .reason small", "tea.example · 429 · “slow down, please”")


def test_a_failed_answer_is_continued_behind_its_text(open_tab: OpenTab, serve: Serve) -> None:
    model = BreakingModel(ModelError("the connection was lost"))
    tab = open_tab(serve(model))
    tab.begin_only("Which tea?")
    tab.has(".unfinished .answer", "The first part.")
    tab.page.click("[data-prefix]")
    tab.has("#turns .answer", "The first part. The rest.")

    assert model.requests[-1].prefix == "The first part. "


def test_another_model_answers_what_one_could_not(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(BreakingModel(OverloadedError("HTTP 529")), scripted_model("from another", name="another")))
    tab.begin_only("Which tea?")
    tab.has(".unfinished", "cannot answer now")
    tab.page.click(".ways summary")
    tab.page.click(".ways [data-model=another]")
    tab.has("#turns .answer", "from another")
    tab.has("#turns footer", "another")


def test_a_rate_limit_counts_down_until_the_next_try(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(BreakingModel(*[RateLimitError("HTTP 429", retry_after=3_000.0)] * 9, begin=""))
    tab = open_tab(server, viewport=VIEWPORT)  # a page of its own, whose clock may be another
    tab.page.clock.install()
    tab.begin_only("Which tea?")
    tab.has(".unfinished", "Too many requests")
    tab.has("[data-until]:disabled", " s)")
    tab.page.clock.fast_forward(3_000_000)
    tab.has("[data-until]:enabled", "Retry")


@pytest.mark.parametrize(("finish", "words"), [("length", "cut off"), ("repetition", "repeated itself")])
def test_an_answer_that_was_cut_off_says_so_and_goes_on(
    open_tab: OpenTab, serve: Serve, finish: str, words: str
) -> None:
    tab = open_tab(serve(BreakingModel(finish, begin=f"It is {finish}: ")))
    tab.begin_only("Which tea?")
    tab.has("#turns .reason", words)
    tab.page.reload()
    tab.has("#turns .reason", words)
    tab.page.click("[data-act=more]")
    tab.has("#turns .answer", f"It is {finish}: The rest.")
    tab.has(".siblings", "2/2")


def test_a_stopped_answer_says_that_it_was_stopped(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(GatedModel()))
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.click("#stop")
    tab.has("#turns .reason", "stopped")


def test_what_a_killed_server_had_heard_is_shown_by_the_next_one(
    open_tab: OpenTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taiwa.sessions.commit_turn.KEEP_SECONDS", 0)
    store = str(tmp_path / "store.db")
    with serving(model=GatedModel(), store=store, limits=ServerLimits(grace=0.0)) as server:
        tab = open_tab(server)
        tab.begin_only("one")
        tab.has("#live", "The first part.")
        tab.page.goto("about:blank")
    with serving("The whole answer.", store=store) as server:
        tab = open_tab(server)
        tab.page.click("nav li a")
        tab.has(".unfinished .answer", "The first part.")
        tab.has(".unfinished .reason", "The server was stopped")
        tab.page.click("[data-act=resume]")
        tab.has("#turns .answer", "The whole answer.")
        tab.page.goto("about:blank")


def test_no_conversation_is_left_behind_by_a_message_that_is_refused(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    answer = server.client.post("/api/conversations", json={"app": "plain", "text": "   "})

    assert answer.status_code == 400
    assert server.repository.store.refs.list() == ()


@pytest.mark.parametrize("width", [1280, 360])
def test_the_reason_of_a_failure_is_in_view_behind_a_long_answer_and_after_a_reload(
    open_tab: OpenTab, serve: Serve, width: int
) -> None:
    long = "\n\n".join(f"Paragraph {n} of an answer that is longer than the screen." for n in range(60))
    tab = open_tab(serve(BreakingModel("stop", ModelError("the connection was lost"), begin=long)),
                   viewport={"width": width, "height": 700})  # fmt: skip
    tab.begin("Which tea?", "plain")
    tab.page.fill("#text", "And another?")
    tab.page.click("#send")
    for _ in range(2):
        tab.has(".unfinished .reason", "could not answer")
        tab.page.wait_for_function(IN_VIEW, arg=".unfinished .ways")
        tab.page.reload()
        tab.ready()


IN_VIEW = """(selector) => {
  const [part, frame] = [selector, "#transcript"].map((each) => document.querySelector(each).getBoundingClientRect());
  return part.top >= frame.top && part.bottom <= frame.bottom;
}"""


def test_a_stopped_answer_says_so_once(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(GatedModel()))
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.keyboard.press("Escape")
    tab.has("#turns .reason", "stopped")

    tab.count("#notices p:not(.hidden)", 0)
