"""One browser and one server for all tests of the page; each test is a caller of its own, with its conversations and models."""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from secrets import token_hex
from typing import Any, TypeAlias

import httpx
import pytest

from taiwa.models.scripted import scripted_model
from taiwa.store.server_records import Caller
from tests.browser import chromium
from tests.server.page.tab import ANSWER, GatedModel, Tab, new_page
from tests.server.serving import Serving, serving

Serve: TypeAlias = Callable[..., Serving]
OpenTab: TypeAlias = Callable[..., Tab]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser until the last test of a file: its event loop would stop asynchronous tests of other files in this process."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def kept_page(browser: Any) -> Any:
    """A page that tests use one after another: a new one costs a third of what a short test does."""
    return new_page(browser)


@pytest.fixture(scope="session")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The server of all tests."""
    with serving(store=str(tmp_path_factory.mktemp("page") / "store.db"), quotes=True) as started:
        yield started


def offer(everybody: Serving, *models: Any) -> None:
    """Serve these models from now on; without one, answers are quotations."""
    catalogue = everybody.server.state.served
    catalogue._given = {model.name: model for model in models}
    catalogue.models = tuple(catalogue._given)


@contextmanager
def new_caller(everybody: Serving, *models: Any) -> Generator[Serving]:
    """Serve models to a caller who has no conversation yet."""
    name = token_hex(8)
    everybody.repository.store.callers.add(Caller(name), name)
    offer(everybody, *models)
    repository = everybody.server.state.repository(name)
    with httpx.Client(
        base_url=everybody.server.url, headers={"authorization": f"Bearer {name}"}, timeout=300
    ) as client:
        yield Serving(everybody.server, repository, models[0] if models else None, client)
    for model in models:
        if isinstance(model, GatedModel):
            model.gate.set()  # the server would wait at its end for what is still written


@pytest.fixture
def serve(everybody: Serving) -> Iterator[Serve]:
    with ExitStack() as opened:
        yield lambda *models: opened.enter_context(new_caller(everybody, *models))


@pytest.fixture
def server(serve: Serve) -> Serving:
    return serve(scripted_model(*[ANSWER.format(n=n) for n in range(20)]))


@pytest.fixture
def open_tab(browser: Any, kept_page: Any) -> Iterator[OpenTab]:
    """Open tabs in which nothing may fail."""
    opened: list[Tab] = []

    def open_(server: Serving, **options: Any) -> Tab:
        is_free = not options and all(tab.page is not kept_page for tab in opened)
        opened.append(Tab(kept_page if is_free else new_page(browser, **options), server))
        return opened[-1]

    yield open_
    for tab in opened:
        if tab.page is kept_page:
            tab.leave()
        else:
            tab.context.close()
    assert [problem for tab in opened for problem in tab.problems] == []


@pytest.fixture
def tab(open_tab: OpenTab, server: Serving) -> Tab:
    return open_tab(server)
