"""The page in a genuine browser, used as a person does; nothing leaves this machine, nothing is blocked, nothing fails."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from taiwa.models.scripted import scripted_model
from taiwa.server.access import ServerLimits
from tests.operations.test_markdown_html import HOSTILE
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import GatedModel, Tab, Wire
from tests.server.serving import KEY, Serving, serving


def test_a_conversation_is_begun_and_goes_on(tab: Tab) -> None:
    tab.begin("Do you like tea?")
    tab.say("And now?", 2)

    assert [each.inner_text() for each in tab.page.locator(".you").all()] == ["Do you like tea?", "And now?"]
    assert tab.page.locator(".answer strong").first.inner_text() == "bold"
    tab.count(".answer math msup", 2)
    assert tab.page.locator(".answer .code .k").count() > 0


def test_shift_enter_begins_a_line_and_a_draft_survives_a_reload(tab: Tab) -> None:
    tab.begin("one")
    tab.page.fill("#text", "first")
    tab.page.press("#text", "Shift+Enter")
    tab.page.keyboard.type("second")
    tab.page.reload()
    tab.ready()

    tab.holds("#text", "first\nsecond")
    tab.count(".turn", 1)


def test_enter_belongs_to_an_input_method_while_it_composes(tab: Tab) -> None:
    tab.begin("one")
    keys = tab.context.new_cdp_session(tab.page)
    for turns, text in enumerate(("にほん", "你好", "안녕"), 1):
        tab.page.focus("#text")
        keys.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229, "nativeVirtualKeyCode": 229}
        keys.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **enter})
        keys.send("Input.insertText", {"text": text})

        tab.count(".turn", turns)
        tab.holds("#text", text)
        tab.page.press("#text", "Enter")
        tab.count(".turn", turns + 1)
        tab.has(".turn:last-child .you", text)


def test_an_edited_message_branches_and_the_old_branch_is_one_click_away(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-edit='1']")
    tab.page.fill("#edit-text", "ONE")
    tab.page.click("#edit button[value=branch]")
    tab.has(".elsewhere", "2 turns continue elsewhere")
    tab.page.click(".siblings button:first-child")
    tab.has("#behind:not([hidden])", "earlier place")

    assert [each.inner_text() for each in tab.page.locator(".you").all()] == ["one", "two"]
    tab.panel("tree")
    assert tab.page.locator("[role=treeitem]").all_inner_texts() == ["Beginning", "one", "two", "ONE chat-1"]


def test_an_edit_can_repeat_what_followed(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-edit='1']")
    tab.page.fill("#edit-text", "ONE")
    tab.page.click("#edit-replay")
    tab.has(".elsewhere", "2 turns continue elsewhere")

    assert [each.inner_text() for each in tab.page.locator(".you").all()] == ["ONE", "two"]


def test_a_message_in_the_past_begins_a_branch_there(tab: Tab) -> None:
    tab.begin("one")
    first = tab.page.locator(".turn").get_attribute("data-node")
    tab.say("two", 2)
    tab.page.goto(f"{tab.base}/c/chat-1?at={first}")
    tab.ready()
    tab.page.fill("#text", "otherwise")
    tab.page.press("#text", "Enter")
    tab.has(".elsewhere", "1 turn continues elsewhere")

    assert [each.inner_text() for each in tab.page.locator(".you").all()] == ["one", "otherwise"]


def test_a_value_leads_to_the_turn_that_set_it_and_is_set_by_hand(tab: Tab) -> None:
    tab.begin("I like tea 0")
    tab.say("and?", 2)
    tab.page.click("[data-why='topics[0]']")
    tab.has("#why", "Set in turn 1")
    assert tab.page.locator("#why mark").inner_text() == "tea 0"
    tab.page.fill("#set input[name=value]", '"coffee"')
    tab.page.click("#set button")
    tab.has(".aside-note", "edited by hand")
    tab.has(".state", "coffee")


def test_since_when_a_value_is_wrong_is_found_by_questions(tab: Tab) -> None:
    tab.begin("zero")
    for number, text in enumerate(("one", "two", "three"), 2):
        tab.say(text, number)
    tab.page.click("[data-why=summary]")
    tab.page.click("[data-act=bisect]")
    while tab.page.locator("[data-bisect=right]").is_visible():  # right up to turn 2
        shown = tab.page.inner_text("#bisect p")
        tab.page.click(
            f"[data-bisect={'right' if 'turn 1' in shown or 'turn 2' in shown or 'turn 0' in shown else 'wrong'}]"
        )

    tab.has("#bisect p", "Wrong since turn 3.")
    assert tab.page.locator(".turn.selected").get_attribute("data-number") == "3"


def test_a_conversation_is_verified_and_a_damaged_one_is_named(tab: Tab, server: Serving) -> None:
    tab.begin("This will be damaged.")
    tab.page.click("[data-act=verify]")
    tab.has("#badge.good", "verified: 2 nodes")
    store = server.repository.store
    with store._db.transaction():
        store._db.run("UPDATE node SET state = zeroblob(16) WHERE seq = ?", store.nodes.seq(store.refs.tip("chat-1")))
    tab.page.click("[data-act=verify]")
    tab.has("#badge.bad", "node ")


def test_undo_redo_and_fork_move_the_whole_conversation(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("u")
    tab.count(".turn", 1)
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("U")
    tab.count(".turn", 2)
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("f")
    tab.page.fill("#ask-text", "another plan")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/c/another-plan")
    tab.has("h1", "another plan")


def test_everything_is_reached_by_keys_and_question_mark_lists_them(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("?")
    tab.has("#keys", "next and previous turn")
    tab.page.keyboard.press("Escape")
    tab.count("#keys[open]", 0)
    tab.page.keyboard.press("k")
    tab.count(".turn.selected[data-number='1']", 1)
    tab.has("#side output", "1")
    tab.page.keyboard.press("t")
    tab.page.focus("[role=treeitem][tabindex='0']")
    tab.page.keyboard.press("ArrowUp")
    assert tab.page.evaluate("() => document.activeElement.getAttribute('role')") == "treeitem"
    tab.page.keyboard.press("/")
    assert tab.page.evaluate("() => document.activeElement.id") == "text"


def test_a_key_counts_that_is_pressed_before_the_frame_without_a_closed_dialog_is_drawn(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.locator("#text").blur()
    for opens, dialog, key, number in (("?", "#keys", "k", 1), ("f", "#ask", "j", 2)):
        tab.page.keyboard.press(opens)
        tab.count(f"{dialog}[open]", 1)
        tab.page.evaluate(
            """([dialog, key]) => {
                document.querySelector(dialog).close();
                document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            }""",
            [dialog, key],
        )
        tab.count(f".turn.selected[data-number='{number}']", 1)


@pytest.mark.parametrize(
    ("locale", "word"), [("ja-JP", "新しい会話"), ("zh-CN", "新对话"), ("fr-FR", "New conversation")]
)
def test_the_page_speaks_the_language_of_the_browser_and_can_be_switched(
    open_tab: OpenTab, server: Serving, locale: str, word: str
) -> None:
    tab = open_tab(server, locale=locale)
    tab.has("h2", word)
    tab.page.select_option("#language", "zh")
    tab.has("h2", "新对话")


def test_the_page_is_accessible_in_light_and_dark_and_on_a_narrow_screen(open_tab: OpenTab, server: Serving) -> None:
    for width in (1280, 360):
        tab = open_tab(server, color_scheme="light", viewport={"width": width, "height": 740}, bypass_csp=True)
        assert tab.violations(in_dark=width == 1280) == []
        tab.begin("one")
        assert tab.violations(in_dark=width == 1280) == []
        assert tab.page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_an_answer_goes_on_without_a_tab_and_a_new_tab_follows_it(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel()
    tab = open_tab(serve(model))
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.reload()
    tab.has("#live", "The first part.")
    url = tab.page.url
    tab.page.goto("about:blank")
    model.gate.set()
    tab.page.goto(url)
    tab.has(".answer", "The second part.")


def test_a_stopped_answer_keeps_what_came(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(GatedModel()))
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.click("#stop")
    tab.has(".turn .answer", "The first part.")


def test_an_interrupted_turn_is_resumed_by_its_button_in_a_conversation_of_any_name(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    store, body = str(tmp_path / "store.db"), {"app": "plain", "text": "one", "name": "tea/現在"}
    with serving(model=GatedModel(), store=store, limits=ServerLimits(grace=0.0)) as server:
        run = server.client.post("/api/conversations", json=body).json()["run"]
        with server.client.stream("GET", f"/api/runs/{run}/events") as response:
            assert "The first part." in "".join(islice(response.iter_lines(), 3))
    with serving("The whole answer.", store=store) as server:
        tab = open_tab(server)
        tab.page.click("nav li a")
        tab.has(".unfinished", "one")
        tab.page.click(".unfinished [data-act=resume]")
        tab.has("#turns .answer", "The whole answer.")
        tab.count(".unfinished", 0)
        tab.page.goto("about:blank")


def test_hostile_texts_load_run_and_break_nothing(open_tab: OpenTab, serve: Serve) -> None:
    reply = "\n\n".join(HOSTILE)
    tab = open_tab(serve(scripted_model(reply, reply)))
    tab.begin(reply, "plain")
    for panel in ("turn", "tree", "bill"):
        tab.panel(panel)
    tab.page.goto(f"{tab.base}/?q=script")
    tab.has(".hits", "script")


@pytest.mark.parametrize(
    ("path", "words"),
    [("/c/gone", "The conversation does not exist."), ("/documents/gone", "These documents do not exist."),
     ("/nowhere", "There is nothing at this address."), ("/?q=%00", "")],
)  # fmt: skip
def test_an_address_that_leads_nowhere_is_a_page_to_a_browser(tab: Tab, server: Serving, path: str, words: str) -> None:
    tab.page.goto(tab.base + path)
    tab.page.wait_for_selector("a[href='/']")
    tab.problems = [each for each in tab.problems if "404" not in each]  # which Chromium reports
    plain = server.client.get(path)

    assert words in tab.page.inner_text("main")
    assert plain.status_code in (200, 404)
    assert not words or plain.json()["error"]["message"]


def test_without_a_key_there_is_no_page(browser: Any, server: Serving) -> None:
    page = browser.new_page()

    assert page.goto(server.server.url).status == 401
    used = server.server.login_url
    page.goto(used)
    assert page.locator("#text").count() == 1
    page.context.clear_cookies()
    assert page.goto(used).status == 401
    page.close()


def test_a_browser_without_a_cookie_is_asked_for_the_key_and_stays_after_a_restart(
    browser: Any, tmp_path: Path
) -> None:
    store, page = str(tmp_path / "store.db"), browser.new_page()
    with serving("one", store=store) as server:
        port = server.server.port
        assert page.goto(f"{server.server.url}/documents").status == 401
        page.fill("[name=key]", "wrong")
        page.click("button")
        page.wait_for_selector("#problem:not(:empty)")
        page.route("**/login", lambda route: route.abort(), times=1)
        page.click("button")
        page.wait_for_selector("#problem:text('No connection')")
        page.fill("[name=key]", KEY)
        page.click("button")
        page.wait_for_selector("#upload")
        assert server.client.post("/login", json={"key": "wrong"}).status_code == 401
    with serving("one", store=store, port=port) as server:
        assert page.goto(server.server.url).status == 200
        page.context.clear_cookies()
        assert page.goto(f"{server.server.url}/login?code=used").status == 401
        assert "used before" in page.inner_text("main")
        page.goto("about:blank")
    page.close()


def test_a_first_visit_is_small_on_the_wire_and_a_second_one_brings_nothing(
    open_tab: OpenTab, server: Serving, browser: Any
) -> None:
    open_tab(server).begin("one")
    context = browser.new_context(extra_http_headers={"authorization": server.client.headers["authorization"]})
    wire = Wire(context.new_page())

    requests, size = wire.visit(f"{server.server.url}/c/chat-1")
    assert requests <= 6, wire.requests
    assert 5_000 < size <= 25_000
    assert wire.visit(f"{server.server.url}/c/chat-1")[1] == 0
    assert wire.visit(server.server.url)[1] <= 10_000  # the assets are here
    assert wire.visit(server.server.url)[1] == 0
    context.close()
