"""Documents, clarifying questions and the inspector of the page, in a genuine browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.models.inprocess.stub_model import StubModel
from tests.orders import TEAS
from tests.server.page.conftest import OpenTab, offer
from tests.server.page.tab import Tab, new_page
from tests.server.serving import Serving
from tests.server.test_ask_over_server import LEAVE, ask


@pytest.fixture(scope="module")
def server(everybody: Serving) -> Serving:
    """The caller who has the token of the server, whose indexes have their plain names."""
    offer(everybody)
    return everybody


@pytest.fixture
def decoding(server: Serving) -> Iterator[None]:
    """A model in this process is served during a test."""
    offer(server, StubModel(TEAS))
    yield
    offer(server)


@pytest.fixture(scope="module")
def tab(browser: Any, server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A person has uploaded a handbook, by the page."""
    path = tmp_path_factory.mktemp("files") / "leave.md"
    path.write_text(LEAVE)
    tab = Tab(new_page(browser), server)
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


def test_a_person_is_added_changed_chosen_and_deleted(tab: Tab, server: Serving) -> None:
    tab.page.goto(f"{tab.base}/persons")
    tab.ready()
    tab.page.fill("[name=name]", "Ann")
    tab.page.fill("[data-person=''] [name=facts]", "office: Osaka")
    tab.page.click("[data-person=''] button")
    tab.has("[data-person=Ann] [name=facts]", "office: Osaka")
    tab.page.fill("[data-person=Ann] [name=facts]", "group：legal")
    tab.page.select_option("[data-person=Ann] [name=language]", "ja")
    tab.page.click("[data-person=Ann] .primary")
    tab.has("[data-person=Ann] [name=facts]", "group: legal")
    assert server.client.get("/api/persons/Ann").json()["facts"] == {"group": "legal"}
    tab.page.click("[data-person=Ann] a >> nth=0")
    tab.has(".note", "What user:Ann may see")
    tab.has("tbody", "leave.md")

    session = ask(server, "how many days of paid leave does everybody have", person="Ann")["session"]
    tab.page.goto(f"{tab.base}/c/{session}")
    tab.holds("#person", "Ann")
    tab.page.select_option("#person", "")
    tab.has(".aside-note", "The next turns answer no known person.")
    assert not server.repository.at(session).app.values["user"]
    tab.page.select_option("#person", "Ann")
    tab.count(".aside-note", 2)
    tab.has(".turn:last-child .aside-note", "The next turns answer Ann.")
    assert server.repository.at(session).app.values["user"] == "Ann"
    tab.page.goto(tab.base)
    tab.ready()
    tab.page.check("[name=app][value=ask]")
    assert tab.page.locator("[data-param=user] option").all_inner_texts() == ["–", "Ann"]
    tab.page.goto(f"{tab.base}/persons")
    tab.ready()
    tab.page.click("[data-forget=Ann]")
    tab.page.click("#ask-ok")
    tab.has("#main", "No person yet.")


def test_a_file_that_cannot_be_read_is_refused_with_its_reason(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "setup.exe").write_bytes(b"MZ")
    tab.page.goto(f"{tab.base}/documents/handbook")
    tab.ready()
    tab.page.set_input_files("[name=files]", str(tmp_path / "setup.exe"))
    tab.page.click("text=Upload")

    tab.has("#progress", "setup.exe: files of this type are not read")


def test_an_upload_whose_progress_is_not_told_leads_to_what_was_read(
    open_tab: OpenTab, server: Serving, tmp_path: Path
) -> None:
    tab = open_tab(server, locale="en-GB")  # a page of its own: a route that answers leaves traces
    (tmp_path / "trains.md").write_text("# Trains\n\nTrains are booked in Galway.\n")
    tab.page.goto(f"{tab.base}/documents")
    tab.ready()
    tab.page.route("**/api/runs/*/events", lambda route: route.fulfill(status=503))
    tab.page.fill("[name=index]", "lost")
    tab.page.set_input_files("[name=files]", str(tmp_path / "trains.md"))
    with tab.page.expect_console_message(lambda message: "503" in message.text):
        tab.page.click("#upload button.primary")
    tab.page.wait_for_url("**/documents/lost")
    tab.problems.clear()  # the lost connection itself


@pytest.mark.parametrize("way", ["picked", "dropped"])
def test_a_folder_is_uploaded_with_its_folders_and_says_what_was_not_read(tab: Tab, tmp_path: Path, way: str) -> None:
    folder = tmp_path / "handbook"
    (folder / "travel").mkdir(parents=True)
    (folder / "leave.md").write_text(LEAVE)
    (folder / "travel" / "trains.md").write_text("# Trains\n\nTrains are booked in Galway.\n")
    (folder / "map.png").write_bytes(b"\x89PNG")
    tab.page.goto(f"{tab.base}/documents")
    tab.ready()
    tab.page.fill("[name=index]", way)
    if way == "picked":
        tab.page.set_input_files("[name=folder]", str(folder))
    else:
        box = tab.page.locator("#upload").bounding_box()
        mouse = tab.context.new_cdp_session(tab.page)
        data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            at = {"x": box["x"] + 50, "y": box["y"] + 20}
            mouse.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})
    tab.has("#progress", "Files to upload: 3")
    tab.page.click("#upload button.primary")
    tab.page.wait_for_url(f"**/documents/{way}")

    tab.has("#refused", "handbook/map.png: files of this type are not read")
    assert [each.inner_text() for each in tab.page.locator("tbody th small").all()] == [
        "handbook/leave.md",
        "handbook/travel/trains.md",
    ]


def test_a_source_of_an_answer_opens_its_document_at_the_quotation(tab: Tab, server: Serving) -> None:
    opened(tab, server, "how many days of paid leave does everybody have")

    tab.page.click(".sources a >> nth=0")

    tab.has(".document mark", "Everybody has ten days of paid leave in a year.")


def test_the_documents_to_be_searched_are_chosen_where_a_conversation_begins(tab: Tab) -> None:
    tab.page.goto(tab.base)
    tab.ready()
    tab.page.check("[name=app][value=ask]")
    tab.page.wait_for_selector(".indexes:visible >> text=handbook")

    tab.page.fill("#text", "how many days of paid leave does everybody have")
    tab.page.click("#send")

    tab.has(".sources", "leave.md › Paid leave")


@pytest.mark.usefixtures("tab")
def test_an_index_leads_to_a_question_to_its_documents_alone(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    path.write_text("# Tea\n\nGyokuro is shaded for three weeks before the harvest.\n")
    tab.page.goto(f"{tab.base}/documents")
    tab.page.fill("[name=index]", "tea")
    tab.page.set_input_files("[name=files]", str(path))
    tab.page.click("text=Upload")
    tab.page.wait_for_url("**/documents/tea")
    tab.page.click("text=Ask about these documents")
    tab.ready()

    assert tab.page.is_checked("[name=app][value=ask]")
    tab.page.wait_for_function(ABOVE_THE_FIELD, arg=".indexes")
    tab.page.click("[name=app][value=translate] >> xpath=..")
    tab.page.wait_for_function(ABOVE_THE_FIELD, arg="[data-param=target_lang]")
    tab.page.click("[name=app][value=ask] >> xpath=..")
    assert [box.get_attribute("value") for box in tab.page.locator(".indexes input:checked:visible").all()] == ["tea"]
    tab.page.fill("#text", "How long is gyokuro shaded?")
    tab.page.click("#send")
    tab.has(".sources", "tea.md")


ABOVE_THE_FIELD = """(selector) => {
  const [part, field] = [selector, ".composer"].map((each) => document.querySelector(each).getBoundingClientRect());
  return part.bottom > 0 && part.bottom <= field.top;
}"""


@pytest.mark.usefixtures("tab")
def test_documents_and_the_inspector_are_accessible(open_tab: OpenTab, server: Serving) -> None:
    session = ask(server, "how many days of paid leave does everybody have")["session"]
    for width in (1280, 360):
        one = open_tab(server, color_scheme="light", viewport={"width": width, "height": 740}, bypass_csp=True)
        text = "/documents/handbook/text/leave.md?start=0&end=12"
        for path in ("/", "/persons", "/documents", "/documents/handbook?q=sick", text, f"/c/{session}"):
            one.page.goto(f"{one.base}{path}")
            one.ready()
            if path.startswith("/c/"):
                if width == 360:
                    one.page.click("[data-toggle=side]")
                one.panel("turn")
                one.load("steps")
                one.page.click("#side .steps .search summary")
            elif path == "/":
                one.page.check("[name=app][value=ask]")
                one.page.click(".params:not([hidden]) summary")
                send = one.page.locator("#send").bounding_box()
                assert send["y"] + send["height"] <= 740
            assert one.violations(in_dark=width == 1280) == [], path
            assert one.page.evaluate("() => document.documentElement.scrollWidth") <= width, path


def test_the_inspector_shows_scores_queries_passages_and_why(tab: Tab, server: Serving) -> None:
    opened(tab, server, "how many days of paid leave does everybody have")
    tab.panel("turn")

    tab.has("#side .card", "Answered by the documents")
    tab.has("#side .passages", "leave.md › Paid leave")
    tab.count("#side .steps", 0)
    tab.load("steps")
    tab.page.click("#side .steps .search summary")
    tab.has("#side .steps .figures", "Words covered by the best passages")


def test_what_was_opened_in_a_panel_stays_open_when_the_panel_is_read_again(tab: Tab, server: Serving) -> None:
    opened(tab, server, "how many days of paid leave does everybody have")
    tab.panel("turn")
    held: list[Any] = []
    tab.page.route("**/page/panel/**", lambda route: held.append(route), times=1)  # noqa: PLW0108  (Playwright wraps functions only)
    tab.page.click("#tab-turn")
    tab.load("steps")
    while not held:
        tab.page.wait_for_timeout(10)
    tab.page.evaluate("document.querySelector('#panel').dataset.before = ''")
    held.pop().continue_()

    tab.has("#panel:not([data-before]) .steps .figures", "Words covered by the best passages")


def test_passages_read_as_if_they_were_rendered(tab: Tab, server: Serving) -> None:
    text = "# Tea\n\nGyokuro steeps **two** minutes.\n\n| tea | price |\n|---|---|\n| sencha | 12 |\n"
    run = server.client.post("/api/indexes/teas/documents?path=tea.md", content=text.encode()).json()["run"]
    server.client.get(f"/api/runs/{run}/events")
    tab.page.goto(f"{tab.base}/documents/teas?q=sencha")
    tab.reads(".hits p", "Tea Gyokuro steeps two minutes. tea price sencha 12")
    tab.reads(".hits mark", "sencha")

    session = ask(server, "how many minutes does gyokuro steep", params={"in": ["teas"]})["session"]
    tab.page.goto(f"{tab.base}/c/{session}")
    tab.panel("turn")
    tab.reads("#side .passages li > p", "Gyokuro steeps two minutes. tea price sencha 12")


def test_passages_that_came_next_are_near_misses_with_their_scores(tab: Tab, server: Serving) -> None:
    leaves = "".join(f"# Leave {n}\n\nLeave {n} has {n} paid days.\n\n" for n in range(10, 30))
    run = server.client.post("/api/indexes/long/documents?path=long.md", content=leaves.encode()).json()["run"]
    server.client.get(f"/api/runs/{run}/events")
    session = ask(server, "how many paid days has leave 17", params={"in": ["long"]})["session"]
    tab.page.goto(f"{tab.base}/c/{session}")
    tab.ready()
    tab.panel("turn")
    used, near = tab.page.locator("#side .passages").all()

    assert (used.locator("li").count(), near.locator("li").count()) == (8, 2)
    assert not set(used.locator("a").all_inner_texts()) & set(near.locator("a").all_inner_texts())
    assert float(near.locator("small").first.inner_text()) > 0
    near.locator("a").first.click()
    tab.has(".document mark", "paid days")


def test_a_question_back_is_answered_by_a_button(tab: Tab, server: Serving) -> None:
    opened(tab, server, "what about that leave")
    tab.has(".question", "For sick leave a note of a doctor is due")

    tab.page.click(".question button:has-text('Sick leave')")

    tab.has("#turns", "a note of a doctor is due on day 3")
    tab.count(".question", 0)
    assert tab.page.locator(".you").all_inner_texts() == ["what about that leave", "Sick leave"]
    assert "⟦" not in tab.page.inner_text("#turns")


@pytest.mark.usefixtures("decoding")
def test_the_tokens_of_an_answer_show_what_was_forced_and_what_could_have_come(tab: Tab, server: Serving) -> None:
    schema = {"type": "object", "properties": {"drink": {"enum": ["tea", "coffee"]}}, "required": ["drink"]}
    wanted = {"format": {"type": "json_schema", "name": "Order", "schema": schema}}
    body = {"model": "plain", "input": "Tea, please.", "text": wanted, "taiwa": {}}
    made = server.client.post("/v1/responses", json=body).json()
    tab.page.goto(f"{tab.base}/c/{made['taiwa']['session']}")
    tab.ready()
    tab.panel("turn")
    tab.load("tokens")
    tab.has(".token.forced", "{")

    tab.page.click(".token:not(.forced) >> nth=0")

    tab.has(".about:not([hidden])", "chosen with")
    tab.has(".about:not([hidden]) table", "Without the mask")


@pytest.mark.usefixtures("decoding")
def test_an_answer_branches_at_another_token(tab: Tab, server: Serving) -> None:
    body = {"app": "order", "text": "Two green teas, please."}
    made = server.client.post("/api/conversations", json=body).json()
    server.client.get(f"/api/runs/{made['run']}/events")
    tab.page.goto(f"{tab.base}/c/{made['session']}")
    tab.ready()
    tab.page.click("#tab-turn")
    tab.page.click("[data-load*=tokens] summary")
    tab.page.click(".token >> nth=1")
    first = tab.page.locator(".token").first.inner_text()
    other = tab.page.locator(".about:not([hidden]) [data-branch]").first
    text = str(other.get_attribute("data-text"))
    other.click()
    tab.has(".siblings", "2/2")

    node = server.repository.store.nodes.get(server.repository.store.refs.tip(made["session"]))
    assert node.parts.prefix == first + text
    assert (node.answer or "").startswith(first + text)
    tab.has(".turn .cache", "The answer was made to begin with")
    tab.page.click("[data-act=verify]")
    tab.has("#badge.good", "verified: 2 nodes")
    tab.page.click("[data-load*=tokens] summary")
    tab.has(".token.forced", first + text)


def test_a_document_is_deleted_after_a_question(tab: Tab, server: Serving) -> None:
    run = server.client.post("/api/indexes/other/documents?path=a.md", content=b"# Tea\n").json()["run"]
    server.client.get(f"/api/runs/{run}/events")
    tab.page.goto(f"{tab.base}/documents/other")
    tab.ready()
    tab.page.click("[data-remove]")
    tab.page.click("#ask-ok")

    tab.has("tbody", "No documents yet.")
