"""Walks of a person who was told nothing, from an empty home, in at most six clicks each."""

from pathlib import Path
from typing import Any

from taiwa.models.scripted import scripted_model
from tests.orders import ordered
from tests.server.page.conftest import OpenTab
from tests.server.page.tab import Tab
from tests.server.serving import serving
from tests.server.test_ask_over_server import LEAVE

MOST_CLICKS = 6


class Walk:
    """The clicks of a walk."""

    def __init__(self, tab: Tab) -> None:
        self._page: Any = tab.page
        self.clicks = 0

    def click(self, selector: str) -> None:
        self.clicks += 1
        self._page.locator(selector).first.click()


def test_from_an_own_folder_to_an_answer_with_its_source(open_tab: OpenTab, tmp_path: Path) -> None:
    (tmp_path / "leave.md").write_text(LEAVE)
    with serving(quotes=True, store=str(tmp_path / "store.db")) as server:
        tab = open_tab(server)
        walk = Walk(tab)
        walk.click("text=Documents")
        with tab.page.expect_file_chooser() as chooser:
            walk.click("[name=files]")
        chooser.value.set_files(str(tmp_path / "leave.md"))
        walk.click("text=Upload")
        tab.page.wait_for_url("**/documents/documents")
        walk.click("nav .new")
        tab.ready()
        tab.page.fill("#text", "When is a note of a doctor due for sick leave?")
        tab.page.press("#text", "Enter")
        tab.has("#turns .claim, #turns .answer", "doctor")
        walk.click("#turns .sources a")
        tab.has(".document mark", "doctor")
        tab.page.goto("about:blank")

    assert walk.clicks <= MOST_CLICKS


def test_a_wrong_value_is_traced_and_corrected_on_a_branch(open_tab: OpenTab) -> None:
    wrong, right = ordered("Two teas.", _1=(2, "green tea")), ordered("Three teas.", _1=(3, "green tea"))
    with serving(model=scripted_model(wrong, right)) as server:
        tab = open_tab(server)
        walk = Walk(tab)
        walk.click("[name=app][value=order] >> xpath=..")
        tab.page.fill("#text", "a few green teas")
        tab.page.press("#text", "Enter")
        tab.count("#turns .turn", 1)
        walk.click("[data-why='items.1.quantity']")
        tab.has("#why", "Set in turn 1")
        walk.click("[data-edit='1']")
        tab.page.fill("#edit-text", "three green teas")
        walk.click("#edit button[value=branch]")
        tab.has(".elsewhere", "1 turn continues elsewhere")
        tab.has("[data-why='items.1.quantity']", "3")
        tab.page.goto("about:blank")

    assert walk.clicks <= MOST_CLICKS


def test_two_models_answer_the_same_question_side_by_side(open_tab: OpenTab) -> None:
    with serving(model=scripted_model("Green.", name="one")) as server:
        server.server.state.served._given["two"] = scripted_model("Black.", name="two")
        server.server.state.served.models = ("one", "two")
        tab = open_tab(server)
        walk = Walk(tab)
        tab.page.fill("#text", "Which tea?")
        tab.page.press("#text", "Enter")
        tab.count("#turns .turn", 1)
        walk.click(".turn footer summary")
        walk.click("footer [data-model=two]")
        tab.has(".siblings", "2/2")
        walk.click("[data-act=beside]")
        tab.count("#beside .column", 2)
        assert [each.inner_text() for each in tab.page.locator(".column .answer").all()] == ["Green.", "Black."]
        tab.page.goto("about:blank")

    assert walk.clicks <= MOST_CLICKS
