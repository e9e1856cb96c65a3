"""The page by keyboard alone: every step of a conversation is reached by Tab and the keys that the page lists, and never by the mouse."""

import json
from pathlib import Path

import pytest

from taiwa.models.scripted import scripted_model
from tests.orders import ordered
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import ANSWER, GatedModel, Tab
from tests.server.page.test_settings import listing
from tests.server.serving import serving

FOCUSED = "(selector) => document.activeElement.matches(selector)"
SEEN = """() => {
  const focused = document.activeElement, shown = focused.closest("label, .composer") ?? focused;
  const ring = [focused, shown].map((each) => getComputedStyle(each));
  const is_at = ({ x, y, width, height }) => shown.contains(document.elementFromPoint(x + width / 2, y + height / 2));
  const is_marked = ring.some(({ outlineStyle }) => outlineStyle !== "none") || focused.id === "text" || focused.matches(".turn.selected");
  return focused === document.body || ([...focused.getClientRects(), ...shown.getClientRects()].some(is_at) && is_marked) || focused.outerHTML.slice(0, 300);
}"""
"""Whether what has the focus is in view, is not covered, and looks as if it had it."""
MOST_STEPS = 120


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.page.keyboard.press(key)


def reach(tab: Tab, selector: str, key: str = "Tab") -> None:
    """Press a key until an element has the focus."""
    # What is hidden loses the focus after the next frame.
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    for _ in range(MOST_STEPS):
        assert tab.page.evaluate(SEEN) is True
        if tab.page.evaluate(FOCUSED, selector):
            return
        press(tab, key)
    pytest.fail(f"{selector} was not reached by {key}")


def say(tab: Tab, text: str, turns: int) -> None:
    tab.page.keyboard.type(text)
    press(tab, "Enter")
    tab.count(".turn", turns)


@pytest.mark.parametrize("are_letters_keys", [True, False])
def test_a_conversation_is_held_edited_explained_and_found_by_keys_alone(
    open_tab: OpenTab, serve: Serve, are_letters_keys: bool
) -> None:
    tab = open_tab(serve(scripted_model(*[ANSWER.format(n=n) for n in range(9)])))
    if not are_letters_keys:
        press(tab, "Escape", "?")
        reach(tab, "#single")
        press(tab, "Space", "Escape")
    reach(tab, "[name=app]")
    while not tab.page.is_checked("[value=chat]"):
        press(tab, "ArrowDown")
    reach(tab, "#text")
    say(tab, "first question", 1)
    say(tab, "second question", 2)
    press(tab, "ArrowUp")
    tab.holds("#edit-text", "second question")
    press(tab, "Escape")
    tab.page.wait_for_selector("#text:focus")

    if are_letters_keys:  # edit the first turn
        press(tab, "Escape", "k", "e")
    else:
        reach(tab, "[data-edit='1']")
        press(tab, "Enter")
    reach(tab, "#edit-text")
    press(tab, "Control+a")
    tab.page.keyboard.type("another question")
    reach(tab, "[value=branch]")
    press(tab, "Enter")
    tab.count(".siblings", 1)
    tab.has(".you", "another question")

    if are_letters_keys:  # to the branch before
        press(tab, "[")
    else:
        reach(tab, ".siblings button:first-child:enabled", "Shift+Tab")
        press(tab, "Enter")
    tab.count(".turn", 2)
    tab.has(".you", "first question")

    if are_letters_keys:  # why a value is there
        press(tab, "s")
    else:
        reach(tab, "[role=tab][aria-selected=true]")
    reach(tab, "[data-why='summary']")
    press(tab, "Enter")
    tab.has("#why", "first question")

    if are_letters_keys:
        press(tab, "g")
    reach(tab, "#q")
    tab.page.keyboard.type("another")
    press(tab, "Enter")
    tab.count(".hits a", 1)
    reach(tab, ".hits a")
    press(tab, "Enter")
    tab.has(".you", "another question")
    reach(tab, "nav a[href='/settings']")
    press(tab, "Enter")
    tab.count("#theme", 1)
    reach(tab, "#theme")
    press(tab, "ArrowDown")
    tab.page.wait_for_selector("html[data-theme=light]")


def test_an_answer_is_stopped_by_a_key_and_by_its_button(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(GatedModel()))
    reach(tab, "#text")
    tab.page.keyboard.type("one")
    press(tab, "Enter")
    tab.has("#live", "The first part.")
    reach(tab, "#stop")
    press(tab, "Enter")
    tab.has("#turns .reason", "stopped")
    reach(tab, "#text")
    tab.page.keyboard.type("two")
    press(tab, "Enter")
    tab.has("#live", "The first part.")
    press(tab, "Escape")
    tab.count("#turns .reason", 2)


def test_a_long_conversation_is_scrolled_by_keys_from_wherever_the_focus_is(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model("\n\n".join(f"Paragraph {n}." for n in range(80)))))
    tab.begin("Tell me.", "plain")
    press(tab, "Escape")
    for key, is_above in (("Home", True), ("End", False), ("PageUp", True)):
        press(tab, key)
        tab.page.wait_for_function(
            "(above) => { const { scrollTop, scrollHeight, clientHeight } = document.querySelector('#transcript');"
            " return above ? scrollTop < scrollHeight - clientHeight - 50 : scrollTop > scrollHeight - clientHeight - 3; }",
            arg=is_above,
        )


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_everything_that_a_conversation_needs_goes_by_keys_alone(
    open_tab: OpenTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # the model that is added, and its key
    is_narrow, file = width < 960, tmp_path / "tea.json"
    file.write_text(json.dumps([{"role": "user", "content": "Which tea?"}, {"role": "assistant", "content": "Green."}]))
    two, three = ordered("Two teas.", _1=(2, "green tea")), ordered("Three teas.", _1=(3, "green tea"))
    with listing("a-key") as address, serving(model=scripted_model(two, three), store=str(tmp_path / "s.db")) as server:
        tab = open_tab(server, viewport={"width": width, "height": 740})

        def reach_in(part: str, selector: str) -> None:
            if is_narrow and not tab.page.locator(f"#{part}.open").count():
                reach(tab, f"[data-toggle={part}]")
                press(tab, "Enter")
            reach(tab, selector)

        def choose(selector: str) -> None:
            reach(tab, "#more")
            reach(tab, f".menu {selector}", "ArrowDown")
            press(tab, "Enter")

        reach(tab, "[data-example]")
        press(tab, "Enter")
        tab.count("#turns .turn", 1)
        reach_in("side", "[data-why='items.1.quantity']")
        press(tab, "Enter")
        tab.has("#why", "Set in turn 1")
        if is_narrow:
            press(tab, "Escape")
            assert tab.page.evaluate(FOCUSED, "[data-toggle=side]")
        reach(tab, "[data-edit='1']")
        press(tab, "Enter")
        tab.count("#edit[open]", 1)
        press(tab, "Escape")
        tab.count("#edit[open]", 0)
        assert tab.page.evaluate(FOCUSED, "[data-edit='1']")
        press(tab, "Enter")
        tab.count("#edit[open]", 1)
        press(tab, "Control+a")
        tab.page.keyboard.type("three green teas")
        reach(tab, "[value=branch]")
        press(tab, "Enter")
        tab.has("#turns .siblings", "2/2")  # Escape began none
        assert tab.page.evaluate(FOCUSED, ".turn.selected")
        reach(tab, ".siblings button:enabled")
        press(tab, "Enter")
        tab.has("#turns .siblings", "1/2")
        assert tab.page.evaluate(FOCUSED, ".siblings button:enabled")

        reach_in("nav", "#q")
        tab.page.keyboard.type("three")
        press(tab, "Enter")
        tab.has("h1", "Found")
        press(tab, "Tab", "Enter")  # past the bar and the list
        reach(tab, ".hits a")
        press(tab, "Enter")
        tab.has(".turn.selected .you", "three green teas")

        reach_in("nav", "nav [href='/settings']")
        press(tab, "Enter")
        tab.count("#served", 1)
        reach(tab, "[name=server]")
        tab.page.keyboard.type(address)
        reach(tab, "[name=key]")
        tab.page.keyboard.type("a-key")
        press(tab, "Enter")
        tab.count("#listed [data-act=use]", 2)
        reach(tab, "#listed [data-act=use]")
        press(tab, "Enter")
        tab.has(".served", "sencha")
        assert tab.page.evaluate(FOCUSED, "#served")

        with tab.page.expect_file_chooser() as chooser:
            reach_in("nav", "[data-act=import]")
            press(tab, "Enter")
        chooser.value.set_files(str(file))
        tab.has(".turn .you", "Which tea?")
        with tab.page.expect_download() as download:
            choose("a")
        assert download.value.url.endswith("/export?form=md")
        assert tab.page.evaluate(FOCUSED, "#more")
        choose("[data-archived='1']")
        tab.count("#list .archived", 1)
        tab.count(".menu [data-archived='0']", 1)
        assert tab.page.evaluate(FOCUSED, "#more")
        choose("[data-act=remove]")
        reach(tab, "#ask-ok")
        press(tab, "Enter")
        tab.count("[data-example]", 4)
        assert [ref.name for ref in server.repository.store.refs.list()] == ["order-1"]
        tab.page.goto("about:blank")
