"""The page by keyboard alone: every step of a conversation is reached by Tab and the keys that the page lists, and never by the mouse."""

import pytest

from taiwa.models.scripted import scripted_model
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import ANSWER, GatedModel, Tab

FOCUSED = "(selector) => document.activeElement.matches(selector)"
MOST_STEPS = 120


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.page.keyboard.press(key)


def reach(tab: Tab, selector: str, key: str = "Tab") -> None:
    """Press a key until an element has the focus."""
    for _ in range(MOST_STEPS):
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
