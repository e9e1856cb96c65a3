"""Documents, questions back and the inspector of the page, in a genuine browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.page.conftest import OpenTab, offer
from tests.server.page.tab import Tab
from tests.server.serving import Serving
from tests.server.test_ask_over_server import LEAVE, ask


@pytest.fixture(scope="module")
def server(everybody: Serving) -> Serving:
    """The caller who has the token of the server, whose indexes have their plain names."""
    offer(everybody, everybody.model)
    return everybody


@pytest.fixture(scope="module")
def tab(browser: Any, server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A person has uploaded a handbook, by the page."""
    path = tmp_path_factory.mktemp("files") / "leave.md"
    path.write_text(LEAVE)
    tab = Tab(browser, server)
    tab.page.click("text=Documents")
    tab.page.fill("[name=index]", "handbook")
    tab.page.set_input_files("[name=files]", str(path))
    tab.page.click("text=Upload")
    tab.page.wait_for_url("**/documents/handbook")
    yield tab
    tab.context.close()
    assert tab.problems == []


def opened(tab: Tab, server: Serving, question: str) -> str:
    session: str = ask(server, question)["session"]
    tab.page.goto(f"{tab.base}/c/{session}")
    tab.ready()
    return session


def test_an_upload_is_listed_and_found(tab: Tab) -> None:
    tab.page.goto(f"{tab.base}/documents/handbook?q=sick")

    tab.has(".hits mark", "Sick")
    tab.has("tbody", "leave.md")
    tab.page.click(".hits a")
    tab.has(".document mark", "sick leave a note of a doctor")


def test_a_file_that_cannot_be_read_is_refused_with_its_reason(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "setup.exe").write_bytes(b"MZ")
    tab.page.goto(f"{tab.base}/documents/handbook")
    tab.ready()
    tab.page.set_input_files("[name=files]", str(tmp_path / "setup.exe"))
    tab.page.click("text=Upload")

    tab.has("#notices", "is of a type that is not read")
    tab.problems[:] = [problem for problem in tab.problems if "415" not in problem]


def test_a_source_of_an_answer_opens_its_document_at_the_quotation(tab: Tab, server: Serving) -> None:
    opened(tab, server, "how many days of paid leave does everybody have")

    tab.page.click(".sources a >> nth=0")

    tab.has(".document mark", "Everybody has ten days of paid leave in a year.")


def test_the_documents_to_be_searched_are_chosen_where_a_conversation_begins(tab: Tab) -> None:
    tab.page.goto(tab.base)
    tab.ready()
    tab.page.check("[name=app][value=ask]")
    tab.page.select_option("#model", "builtin")
    tab.has(".indexes:visible", "handbook")

    tab.page.fill("#text", "how many days of paid leave does everybody have")
    tab.page.click("#send")

    tab.has(".sources", "leave.md › Paid leave")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("tab")
def test_documents_and_the_inspector_are_accessible(open_tab: OpenTab, server: Serving, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    session = ask(server, "how many days of paid leave does everybody have")["session"]
    for width in (1280, 360):
        one = open_tab(server, color_scheme=scheme, viewport={"width": width, "height": 740}, bypass_csp=True)
        text = "/documents/handbook/text/leave.md?start=0&end=12"
        for path in ("/documents", "/documents/handbook?q=sick", text, f"/c/{session}"):
            one.page.goto(f"{one.base}{path}")
            one.ready()
            if path.startswith("/c/"):
                if width == 360:
                    one.page.click("[data-toggle=side]")
                one.panel("turn")
                one.page.click("#side .steps .search summary")
            result = Axe().run(one.page)
            assert result.violations_count == 0, f"{path}: {result.generate_report()}"
            assert one.page.evaluate("() => document.documentElement.scrollWidth") <= width, path


def test_the_inspector_shows_scores_queries_passages_and_why(tab: Tab, server: Serving) -> None:
    opened(tab, server, "how many days of paid leave does everybody have")
    tab.page.click("#tab-turn")

    tab.has("#side .card", "answerable")
    tab.page.click("#side .steps .search summary")
    tab.has("#side .passages", "leave.md › Paid leave")


def test_a_question_back_is_answered_by_a_button(tab: Tab, server: Serving) -> None:
    opened(tab, server, "what about that leave")
    tab.has(".question", "For sick leave a note of a doctor is due")

    tab.page.select_option("#model", "builtin")
    tab.page.click(".question button:has-text('Sick leave')")

    tab.has("#turns", "a note of a doctor is due on day 3")
    tab.count(".question", 0)


def test_the_tokens_of_an_answer_show_what_was_forced_and_what_could_have_come(tab: Tab, server: Serving) -> None:
    body = {"app": "order", "model": "builtin", "text": "Two grande lattes, please."}
    made = server.client.post("/api/conversations", json=body).json()
    server.client.get(f"/api/runs/{made['run']}/events")
    tab.page.goto(f"{tab.base}/c/{made['session']}")
    tab.ready()
    tab.page.click("#tab-turn")
    tab.page.click("[data-load] summary")
    tab.has(".token.forced >> nth=0", "@@")

    tab.page.click(".token.p4 >> nth=0")

    tab.has(".about:not([hidden])", "chosen with")
    tab.has(".about:not([hidden]) table", "Without the mask")


def test_a_document_is_deleted_after_a_question(tab: Tab, server: Serving) -> None:
    run = server.client.post("/api/indexes/other/documents?path=a.md", content=b"# Tea\n").json()["run"]
    server.client.get(f"/api/runs/{run}/events")
    tab.page.goto(f"{tab.base}/documents/other")
    tab.ready()
    tab.page.click("[data-remove]")
    tab.page.click("#ask-ok")

    tab.has("tbody", "No documents yet.")


def test_a_first_message_that_fails_comes_back_into_its_field(tab: Tab) -> None:
    tab.page.goto(tab.base)
    tab.ready()
    tab.page.check("[name=app][value=plain]")
    tab.page.select_option("#model", "scripted")
    tab.page.fill("#text", "one")
    tab.page.click("#send")

    tab.has("#notices", "scripted")
    assert tab.page.input_value("#text") == "one"
