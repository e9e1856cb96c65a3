"""A browser for the tests of a module, a server, and a tab in which nothing may fail."""

from collections.abc import Iterator
from typing import Any

import pytest

from taiwa.models.scripted import scripted_model
from tests.browser import chromium
from tests.server.page.tab import ANSWER, Tab
from tests.server.serving import Serving, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(model=scripted_model(*[ANSWER.format(n=n) for n in range(20)])) as started:
        yield started


@pytest.fixture
def tab(browser: Any, server: Serving) -> Iterator[Tab]:
    opened = Tab(browser, server)
    yield opened
    opened.context.close()
    assert opened.problems == []
