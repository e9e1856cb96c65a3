"""Talking on the page: files, drafts, models, parameters, earlier messages, two tabs, lost servers and long conversations."""

import os
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from taiwa.apps.catalog import load_app
from taiwa.conversation.history import add_turn
from taiwa.kernel.messages import TextDelta, ThinkingDelta
from taiwa.models.scripted import scripted_model
from taiwa.server.access import ServerLimits
from tests.server.page.conftest import OpenTab, Serve
from tests.server.page.tab import ANSWER, GatedModel, Tab
from tests.server.serving import Serving, serving

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)
DROP = """([selector, kind, name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type: name.endsWith(".png") ? "image/png" : "text/plain" }));
  const target = document.querySelector(selector);
  const event = kind === "paste" ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
                                 : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
  target.dispatchEvent(event);
}"""


def file(name: str, data: bytes) -> Any:
    return {"name": name, "mimeType": "image/png" if name.endswith("png") else "text/plain", "buffer": data}


def own_port() -> int:
    """A free port below those that the system gives to connections, which could take it while no server listens."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


def users(tab: Tab) -> list[str]:
    return [each.inner_text() for each in tab.page.locator("#turns .you").all()]


def test_files_are_picked_dropped_pasted_taken_back_and_sent(tab: Tab, server: Serving) -> None:
    tab.begin("one", "plain")
    tab.page.set_input_files("#picker", [file("tea.png", PNG)])
    tab.count("#files li", 1)
    tab.page.evaluate(DROP, ["#main", "drop", "list.txt", list(b"two teas")])
    tab.count("#files li", 2)
    tab.page.evaluate(DROP, ["#text", "paste", "more.txt", list(b"three")])
    tab.count("#files li", 3)
    tab.page.click("#files li:last-child button")
    tab.count("#files li", 2)
    tab.say("what is this?", 2)

    tab.count("#files li", 0)
    assert [each.label for each in server.model.requests[-1].messages[-1].attachments] == ["tea.png", "list.txt"]
    assert tab.page.evaluate("() => document.querySelector('.files img').decode().then(() => true)")
    assert tab.page.locator(".files a[download]").inner_text().startswith("list.txt")


def test_what_the_model_cannot_read_is_refused_in_a_line_and_nothing_is_lost(tab: Tab) -> None:
    tab.page.set_input_files("#picker", [file("tea.png", PNG), file("odd.bin", b"\x00\x01")])
    tab.count("#files li", 2)
    tab.page.fill("#text", "look")
    tab.page.click("#send")
    tab.has("#notices", "odd.bin is neither a PNG")

    tab.holds("#text", "look")
    tab.count("#files li", 2)
    tab.problems.clear()  # the refusal itself


def test_a_draft_belongs_to_its_branch(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.fill("#text", "for the end")
    tab.page.click("[data-edit='1']")
    tab.page.fill("#edit-text", "ONE")
    tab.page.click("#edit button[value=branch]")
    tab.has(".elsewhere", "2 turns continue elsewhere")
    tab.page.click(".siblings button:first-child")
    tab.has("#behind:not([hidden])", "earlier place")
    tab.page.fill("#text", "for the old branch")
    tab.page.click("#behind button")
    tab.count("#behind[hidden]", 1)
    tab.holds("#text", "for the end")
    tab.page.click(".siblings button:first-child")
    tab.count("#behind:not([hidden])", 1)
    tab.holds("#text", "for the old branch")
    tab.page.reload()
    tab.ready()
    tab.holds("#text", "for the old branch")
    tab.page.press("#text", "Enter")
    tab.count("#behind[hidden]", 1)
    tab.count(".turn", 3)

    assert users(tab) == ["one", "two", "for the old branch"]


def test_an_app_takes_its_parameters_from_a_form_and_the_model_is_changed_in_mid_conversation(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    app = tmp_path / "tutor.md"
    app.write_text(
        '---\ntaiwa: 1\nname: tutor\nparams:\n  level: { type: int, ask: "Which level?", default: 1 }\n  tone: { type: \'"kind" | "strict"\', '
        "default: kind }\n  brief: { type: bool, default: false }\n---\nTeach at level {{level}}, {{tone}}, {{brief}}.\n"
    )
    first, second = scripted_model("from one", name="one"), scripted_model("from two", name="two")
    with serving(model=first, apps=(str(app),)) as server:
        server.server.state.served._given["two"] = second
        server.server.state.served.models = ("one", "two")
        tab = open_tab(server)
        tab.page.fill("[data-param=level]", "3")
        tab.page.click(".params summary")
        tab.page.select_option("[data-param=tone]", "strict")
        tab.page.check("[data-param=brief]")
        tab.page.fill("#text", "hello")
        tab.page.click("#send")
        tab.has("#turns .answer", "from one")
        assert "level 3, strict, true" in first.requests[0].messages[0].text
        tab.page.select_option("#model", "two")
        tab.say("again", 2)
        tab.has(".turn:last-child .answer", "from two")
        tab.page.reload()
        tab.ready()
        tab.holds("#model", "two")
        tab.page.goto("about:blank")


def test_an_edit_says_what_it_costs_and_can_change_the_text_alone(tab: Tab, server: Serving) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-edit='1']")
    tab.has("#cost-replay", "tokens")
    tab.page.fill("#edit-text", "ONE")
    calls = len(server.model.requests)
    tab.page.click("#edit button[value=save]")
    tab.has("#turns .you", "ONE")

    assert users(tab) == ["ONE", "two"]
    assert len(server.model.requests) == calls
    tab.has(".elsewhere", "2 turns continue elsewhere")
    tab.page.click("[data-act=verify]")
    tab.has("#badge.good", "verified: 3 nodes")


def test_any_answer_is_asked_for_again(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-act=again][data-number='1']")
    tab.has(".elsewhere", "2 turns continue elsewhere")
    tab.count(".turn", 1)
    tab.page.click("[data-act=again][data-number='1']")
    tab.has(".siblings", "3/3")

    assert users(tab) == ["one"]


def test_two_models_answer_side_by_side_and_one_answer_is_kept(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(
        serve(scripted_model(ANSWER.format(n=1), name="one"), scripted_model(ANSWER.format(n=2), name="two"))
    )
    tab.begin("Which tea?")
    tab.has(".turn footer small", "one")
    tab.page.click(".turn footer summary")
    tab.page.click("footer [data-model=two]")
    tab.has(".siblings", "2/2")
    tab.has(".turn footer small", "two")
    tab.holds("#model", "two")
    tab.page.click("[data-act=beside]")
    tab.count("#beside .column", 2)
    assert [each.inner_text() for each in tab.page.locator(".column h3").all()] == ["one", "two"]
    assert "about tea 2" in tab.page.locator(".column .changes").all_inner_texts()[1]
    tab.page.locator(".column [data-act=keep]").first.click()
    tab.has(".siblings", "1/2")

    assert tab.page.locator("#behind").is_hidden()
    tab.has(".state", "about tea 1")
    tab.holds("#model", "one")
    tab.page.reload()
    tab.ready()
    tab.holds("#model", "one")


def test_the_same_answer_again_says_so(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model("Green tea.", "Green tea.")))
    tab.begin("Which tea?", "plain")
    tab.page.click("[data-act=again]")
    tab.has("#notices", "the same answer as before")


def test_a_conversation_is_renamed_and_deleted_after_a_question(tab: Tab) -> None:
    tab.begin("one")
    tab.page.fill("#text", "a draft")
    tab.page.click(".menu summary")
    tab.page.click("[data-act=rename]")
    tab.page.fill("#ask-text", "茶")
    tab.page.press("#ask-text", "Enter")
    tab.page.wait_for_url(f"**/c/{quote('茶')}")
    tab.has("h1", "one")
    tab.holds("#text", "a draft")
    tab.page.click(".menu summary")
    tab.page.click("[data-act=remove]")
    tab.has("#ask h2", "conversation one?")
    tab.page.click("#ask button[value=cancel]")
    tab.has("#list small:last-child", "茶")
    tab.page.click(".menu summary")
    tab.page.click("[data-act=remove]")
    tab.page.click("#ask-ok")
    tab.count("#begin", 1)

    tab.count("#list a", 0)
    assert tab.page.evaluate("() => Object.keys(localStorage).filter((key) => key.startsWith('draft:'))") == []


def test_the_title_follows_an_edit_of_the_first_message(tab: Tab) -> None:
    tab.begin("one")
    tab.page.hover(".turn")
    tab.page.click(".turn [data-edit]")
    tab.page.fill("#edit-text", "two")
    tab.page.click("#edit button[value=save]")

    tab.has("h1", "two")
    assert tab.page.title() == "two · taiwa"


def test_tabs_follow_a_conversation_that_another_tab_renames_and_leave_one_that_it_deletes(
    open_tab: OpenTab, server: Serving
) -> None:
    tab = open_tab(server)
    tab.begin("one")
    other = open_tab(server)
    other.page.goto(tab.page.url)
    other.page.fill("#text", "a draft")
    tab.page.click(".menu summary")
    tab.page.click("[data-act=rename]")
    tab.page.fill("#ask-text", "茶")
    tab.page.press("#ask-text", "Enter")

    other.page.wait_for_url(f"**/c/{quote('茶')}")
    other.holds("#text", "a draft")
    other.page.go_back()
    other.page.wait_for_url(f"**/c/{quote('茶')}")
    other.has("h1", "one")

    server.client.delete(f"/api/conversations/{quote('茶')}")
    other.count("#begin", 1)


def test_a_conversation_gets_a_title_is_pinned_and_archived(tab: Tab, server: Serving) -> None:
    tab.begin("one")
    tab.page.click(".menu summary")
    tab.page.click("[data-act=title]")
    tab.page.fill("#ask-text", "Tea, and what goes with it")
    tab.page.press("#ask-text", "Enter")
    tab.has("h1", "Tea, and what goes with it")
    tab.ready()
    tab.page.goto(tab.base)
    tab.begin("two")
    assert tab.page.locator("#list li span").first.inner_text().strip() == "two"
    tab.page.click("#list li:nth-child(2) a")
    tab.has("h1", "Tea")
    tab.page.click(".menu summary")
    tab.page.click("[data-pinned]")
    tab.has("#list li:first-child", "★")
    tab.ready()
    tab.page.click(".menu summary")
    tab.page.click("[data-archived]")
    tab.has("#list li:first-child", "two")
    tab.page.goto(tab.base)
    assert tab.page.locator("#list li.archived").is_hidden()
    tab.page.check("#archived")
    tab.page.click("#list li.archived a")
    tab.has("h1", "Tea")
    assert [each["archived"] for each in server.client.get("/api/conversations").json()] == [False, True]


def test_a_search_marks_the_words_and_leads_to_the_turn(tab: Tab) -> None:
    tab.begin("Do you like green tea?")
    tab.say("And coffee?", 2)
    tab.page.fill("#q", "green")
    tab.page.press("#q", "Enter")
    tab.has(".hits mark", "green")
    tab.page.click(".hits a")
    tab.count(".turn.selected[data-number='1']", 1)


def test_a_turn_in_one_tab_appears_in_the_other_and_a_conflict_loses_nothing(tab: Tab, server: Serving) -> None:
    tab.begin("one")
    other = Tab.__new__(Tab)
    other.page = tab.context.new_page()
    other.page.goto(tab.page.url)
    other.ready()
    tab.say("two", 2)
    other.has(".turn:last-child .you", "two")
    server.client.post("/api/conversations/chat-1/undo", json={})
    tab.count(".turn", 1)
    # A tab that does not know yet where the conversation stands is refused, and what was written stays.
    stale = {"text": "three", "expected": server.repository.store.nodes.get(server.repository.at("chat-1").tip).parent}
    answer = server.client.post("/api/conversations/chat-1/turns", json=stale)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "moved")
    other.page.route("**/turns", lambda route: route.fulfill(status=409, json=answer.json()))
    other.page.fill("#text", "three")
    other.page.press("#text", "Enter")
    other.has("#notices", "moved on meanwhile")
    other.holds("#text", "three")
    tab.problems.clear()  # the refusal itself


def test_what_is_written_while_the_conversation_moves_is_in_the_field_when_it_has_moved(
    tab: Tab, server: Serving
) -> None:
    tab.begin("one")
    tab.say("two", 2)
    held: list[Any] = []
    tab.page.route("**/page/transcript/**", lambda route: held.append(route))  # noqa: PLW0108  (Playwright wraps functions only)
    with tab.page.expect_request("**/page/transcript/**"):
        server.client.post("/api/conversations/chat-1/undo", json={})
    tab.page.fill("#text", "three")
    held[0].continue_()
    tab.count(".turn", 1)

    tab.holds("#text", "three")
    tab.page.reload()
    tab.ready()
    tab.holds("#text", "three")


def test_a_server_that_is_killed_in_mid_stream_is_missed_and_its_turn_resumed(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    store = str(tmp_path / "store.db")
    port = own_port()
    with serving(model=GatedModel(), store=store, port=port, limits=ServerLimits(grace=0.0)) as server:
        tab = open_tab(server)
        server.model.gate.set()
        tab.begin("zero")
        server.model.gate.clear()
        tab.page.fill("#text", "one")
        tab.page.click("#send")
        tab.has("#live", "The first part.", ready=False)
        tab.page.evaluate("() => document.querySelector('#notices').replaceChildren()")  # those of the first turn
    tab.has("#lost:not([hidden])", "No connection to the server", ready=False)
    tab.page.fill("#text", "two")
    tab.page.press("#text", "Enter")
    tab.page.click("#badge")
    tab.reads("#badge", "Verify")
    tab.count("#notices p", 0, ready=False)
    tab.has("main", "The first part.", ready=False)  # or as an unfinished turn, if the server could still say so
    with serving("The whole answer.", store=store, port=port) as server:
        tab.has(".unfinished", "one")
        tab.page.wait_for_selector("#lost", state="hidden")
        tab.page.wait_for_selector("#queued", state="hidden")
        tab.holds("#text", "two")
        assert tab.page.locator("#send").is_visible()
        tab.page.click(".unfinished [data-act=resume]")
        tab.has("#turns .turn:last-child .answer", "The whole answer.")
        tab.page.goto("about:blank")
    tab.problems.clear()  # the lost connection itself


def test_an_answer_that_ended_while_nobody_looked_is_shown_and_what_waited_is_sent(
    open_tab: OpenTab, serve: Serve
) -> None:
    model = GatedModel()
    tab = open_tab(serve(model))
    model.gate.set()
    tab.begin("zero", "plain")
    model.gate.clear()
    tab.page.fill("#text", "one")
    tab.page.click("#send")
    tab.has("#live", "The first part.", ready=False)
    tab.page.fill("#text", "two")
    tab.page.press("#text", "Enter")
    tab.page.evaluate(LOOK, "hidden")
    model.gate.set()
    tab.page.wait_for_function("async () => (await (await fetch('/page/list')).text()).includes('2 turns')")
    tab.page.evaluate(LOOK, "visible")
    tab.count(".turn", 3)
    tab.page.wait_for_selector("#queued", state="hidden")
    assert users(tab) == ["zero", "one", "two"]


LOOK = """(state) => {
  Object.defineProperty(document, "hidden", { value: state === "hidden", configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.parametrize("path", ["pending", "transcript"])
def test_what_cannot_be_read_once_is_read_again_when_the_server_is_back(tab: Tab, path: str) -> None:
    tab.begin("one", "plain")
    tab.page.route(f"**/page/{path}/**", lambda route: route.abort(), times=1)
    tab.page.fill("#text", "two")
    tab.page.press("#text", "Enter")
    tab.page.wait_for_selector("#lost:not([hidden])")
    tab.page.wait_for_selector("#lost", state="hidden")
    tab.count(".turn", 2)
    tab.count("#live > *", 0)
    tab.count("#notices p:not(.hidden)", 0)
    tab.problems.clear()  # the lost connection itself


def test_a_stream_that_a_proxy_refuses_while_the_server_starts_is_followed_again(
    open_tab: OpenTab, server: Serving
) -> None:
    tab = open_tab(server, locale="en-GB")
    tab.begin("one", "plain")
    refused = []
    tab.page.route("**/page/follow/**", lambda route: refused.append(route.fulfill(status=502)), times=1)
    tab.page.reload()
    tab.has("#lost:not([hidden])", "No connection to the server", ready=False)
    tab.page.wait_for_selector("#lost", state="hidden")
    tab.say("two", 2)
    assert len(refused) == 1
    tab.problems.clear()  # the refusals themselves


def test_a_server_that_was_started_anew_with_another_key_says_so(open_tab: OpenTab, server: Serving) -> None:
    tab = open_tab(server, locale="en-GB")
    tab.begin("one", "plain")
    for path in ("**/page/follow/**", "**/v1/models"):
        tab.page.route(path, lambda route: route.fulfill(status=401))
    tab.page.reload()
    tab.has("#lost", "The server was restarted. Open the address that it printed.", ready=False)
    tab.problems.clear()  # the refusals themselves


def test_a_copy_is_made_over_http_from_another_machine_too(tab: Tab) -> None:
    tab.begin("one", "plain")
    tab.page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    tab.page.click("[data-copy]")
    tab.has("#notices", "copied")
    tab.page.fill("#text", "")
    tab.page.press("#text", "Control+v")

    tab.page.wait_for_function("() => document.querySelector('#text').value.includes('A **bold** word')")


def test_words_come_behind_each_other_in_a_long_paragraph(open_tab: OpenTab, serve: Serve) -> None:
    begin = " ".join(f"word-{n}" for n in range(200))
    tab = open_tab(serve(GatedModel(TextDelta(begin), *[TextDelta(f" more-{n}") for n in range(5)])))
    tab.begin_only("one")
    tab.has("#live .answer p", "word-199 more-0 more-1 more-2 more-3 more-4", ready=False)


def test_a_reload_in_mid_stream_goes_on_where_the_answer_is(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel()
    tab = open_tab(serve(scripted_model("from another model"), model))
    tab.page.select_option("#model", "gated")
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.reload()
    tab.has("#live", "The first part.")
    tab.holds("#model", "gated")
    model.gate.set()
    tab.has("#turns .answer", "The second part.")
    assert users(tab) == ["one"]


def test_a_reader_who_has_scrolled_up_stays_there_when_an_answer_ends(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel()
    tab = open_tab(serve(scripted_model("\n\n".join(f"line {n}" for n in range(200)), name="long"), model))
    tab.begin("one", "plain")
    tab.page.select_option("#model", "gated")
    tab.page.fill("#text", "two")
    tab.page.press("#text", "Enter")
    tab.has("#live", "The first part.")
    tab.page.evaluate("() => { document.querySelector('#transcript').scrollTop = 0 }")
    tab.page.wait_for_selector("#newest:not([hidden])")
    model.gate.set()
    tab.count(".turn", 2)
    assert tab.page.evaluate("() => document.querySelector('#transcript').scrollTop") < 100
    tab.page.click("#newest")
    tab.page.wait_for_selector("#newest", state="hidden")


def test_a_message_that_is_sent_during_an_answer_waits_its_turn(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel()
    tab = open_tab(serve(model))
    tab.begin_only("one")
    tab.has("#live", "The first part.")
    tab.page.fill("#text", "two")
    tab.page.press("#text", "Enter")
    tab.page.wait_for_selector("#queued:not([hidden])")
    tab.holds("#text", "two")
    model.gate.set()
    tab.count("#turns .turn", 2)

    assert users(tab) == ["one", "two"]


def test_enter_makes_a_line_on_a_phone(open_tab: OpenTab, server: Serving) -> None:
    tab = open_tab(server, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    tab.page.fill("#text", "one")
    tab.page.press("#text", "Enter")
    tab.holds("#text", "one\n")


def test_code_is_copied_with_a_button(tab: Tab) -> None:
    tab.begin("one")
    tab.page.click("pre.code >> xpath=preceding-sibling::button")
    tab.has("#notices", "copied")

    assert tab.page.evaluate("() => navigator.clipboard.readText()") == "def f(): return 1\n"


def test_of_a_thousand_turns_a_window_is_in_the_document(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("A summary.", ANSWER.format(n=0)))
    here = server.repository.start(load_app("chat").with_params({}))
    for n in range(1, 1001):
        here = add_turn(here, f"question {n}", f"answer {n}", {"topics": [f"topic {n}"], "summary": f"about {n}"})
    server.repository.commit("long", here, expected=None)
    tab = open_tab(server)
    tab.page.goto(f"{tab.base}/c/long")
    tab.ready()
    tab.count(".turn", 50)
    tab.page.evaluate("() => { document.querySelector('#transcript').scrollTop = 0 }")
    tab.count(".turn[data-number='901']", 1)
    tab.page.locator("#text").blur()
    for _ in range(3):
        tab.page.keyboard.press("k")
    tab.panel("tree")
    assert tab.page.locator("[role=treeitem]").count() < 12
    tab.panel("state")
    tab.page.fill("#scrub", "9")
    tab.has("#side output", "10")
    tab.page.click("[data-why=summary]")
    tab.has("#why", "Set in turn 10")
    tab.page.fill("#text", "one more")
    tab.page.press("#text", "Enter")
    tab.has(".turn:last-child .you", "one more")
    assert tab.page.locator(".turn").count() <= 181


def test_the_whole_conversation_is_printed(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    here = server.repository.start(load_app("plain").with_params({}))
    for n in range(1, 121):
        here = add_turn(here, f"question {n}", f"answer {n}", {})
    server.repository.commit("printed", here, expected=None)
    tab = open_tab(server)
    tab.page.goto(f"{tab.base}/c/printed")
    tab.ready()
    tab.page.evaluate("() => { window.print = () => { document.body.dataset.printed = 'yes' } }")
    held: list[Any] = []
    tab.page.route("**/page/transcript/**", lambda route: held.append(route), times=1)  # noqa: PLW0108
    with tab.page.expect_request("**/page/transcript/**"):
        tab.page.evaluate("() => document.querySelector('#earlier').click()")  # while these are on their way
    tab.page.click(".bar .menu summary")
    tab.page.click("[data-act=print]")
    held[0].continue_()
    tab.page.wait_for_selector("body[data-printed]")

    tab.count(".turn", 120)
    tab.page.emulate_media(media="print", color_scheme="dark")
    assert tab.page.evaluate("() => document.querySelector('#transcript').clientHeight") > 120 * 40
    assert tab.page.locator("nav").is_hidden()
    assert tab.page.locator("h1").is_visible()
    assert tab.page.evaluate("() => getComputedStyle(document.body).color") == "rgb(29, 37, 34)"  # dark, on paper


def test_two_branches_are_compared_field_by_field_with_the_turn_since_which_they_differ(tab: Tab) -> None:
    tab.begin("one")
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("f")
    tab.page.fill("#ask-text", "side")
    tab.page.press("#ask-text", "Enter")
    tab.has("h1", "side")
    tab.say("two", 2)
    tab.panel("tree")
    tab.page.select_option("#compare select", "chat-1")
    tab.page.click("#compare button")
    tab.has("#difference", "The branches part after turn 1.")

    row = tab.page.locator("#difference tr", has_text="summary")
    assert re.split(r"\s*\t\s*", row.inner_text()) == ["summary", "about tea 1", "about tea 0", "#2"]


def test_an_edit_is_compared_with_the_branch_that_it_left(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-edit='2']")
    tab.page.fill("#edit-text", "another")
    tab.page.click("#edit button[value=branch]")
    tab.has(".elsewhere", "1 turn continues elsewhere")
    tab.panel("tree")
    tab.page.select_option("#compare select", label="two")
    tab.page.click("#compare button")

    tab.has("#difference", "The branches part after turn 1.")
    tab.has("#difference h2", "↔ two")


def test_a_value_set_by_hand_has_its_author_and_its_own_node(tab: Tab) -> None:
    tab.begin("one")
    tab.page.click("[data-why=summary]")
    tab.page.fill("#set input[name=value]", "coffee")
    tab.page.fill("#set input[name=author]", "Ann")
    tab.page.click("#set button")
    tab.has(".aside-note", "edited by Ann")
    tab.has("#side", "coffee")  # the panel is written again after the note
    tab.page.click("[data-why=summary]")
    tab.has("#why", "by Ann")


def test_the_panel_fits_the_app_and_stays_as_it_was_left(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model("Hello.", ANSWER.format(n=1))))
    tab.begin("one", "plain")
    assert tab.page.locator("#side").is_hidden()
    tab.count("#tab-state", 0)
    tab.page.goto(tab.base)
    tab.ready()
    tab.begin("two")
    tab.has("#panel[data-panel=state]", "about tea 1")
    tab.page.click("[data-act=fold]")
    tab.page.reload()
    tab.ready()
    assert tab.page.locator("#side").is_hidden()
    tab.page.click("[data-act=tokens]")
    tab.has("#panel[data-panel=turn] [data-load*='/steps/']", "step by step")
    tab.page.wait_for_selector("#panel details[open]:not([data-load])")


def test_no_key_sends_and_single_keys_can_be_switched_off(tab: Tab, server: Serving) -> None:
    tab.begin("one")
    calls = len(server.model.requests)
    tab.page.locator("#text").blur()
    tab.page.keyboard.press("r")
    tab.page.keyboard.press("Escape")
    assert len(server.model.requests) == calls
    tab.page.keyboard.press("?")
    tab.page.uncheck("#single")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("n")
    assert "/c/" in tab.page.url


def test_the_bill_is_per_turn_conversation_model_and_day(tab: Tab) -> None:
    tab.begin("one")
    tab.say("two", 2)
    tab.panel("bill")

    assert [each.inner_text() for each in tab.page.locator(".lines th button").all()] == ["#1", "#2"]
    assert "2 calls" in tab.page.inner_text(".total")
    assert [each.inner_text() for each in tab.page.locator("#panel > table thead th:first-child").all()] == [
        "Model",
        "Day",
    ]


def test_a_screen_reader_gets_names_roles_and_one_live_region(tab: Tab) -> None:
    tab.begin("one")
    tree = tab.page.locator("body").aria_snapshot()

    for part in (
        "banner",
        "navigation",
        'region "Conversation"',
        "complementary",
        "tablist",
        'textbox "Message"',
        'article "Turn 1"',
    ):
        assert part in tree
    assert tab.page.get_attribute("#live", "aria-busy") == "false"


def test_while_the_state_delta_is_written_the_answer_says_so(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel(TextDelta("Green tea.\n\n@@delta\n"), rest='{"topics": ["tea"], "summary": "about tea"}')
    tab = open_tab(serve(model))
    tab.begin_only("Which tea?", "chat")
    tab.has("#live .thinking", "updating the state …", ready=False)
    assert "@@delta" not in tab.page.inner_text("#live")
    model.gate.set()
    tab.count(".turn", 1)

    tab.count("#live .thinking", 0)


def test_a_reader_who_scrolls_up_a_little_is_left_there_also_by_what_waited_its_turn(
    open_tab: OpenTab, serve: Serve
) -> None:
    long = TextDelta("\n\n".join(f"Paragraph {n} of a long answer." for n in range(60)) + "\n\n")
    model = GatedModel(long, rest="\n\n".join(f"Line {n} of the rest." for n in range(60)))
    tab = open_tab(serve(model))
    tab.begin_only("Which tea?", "plain")
    tab.has("#live", "Paragraph 59", ready=False)
    at = "(s => [s.scrollTop, s.scrollHeight - s.scrollTop - s.clientHeight])(document.querySelector('#transcript'))"
    tab.page.wait_for_function(f"() => {at}[1] < 2")
    tab.page.mouse.move(700, 300)
    tab.page.mouse.wheel(0, -40)
    tab.page.wait_for_function(f"() => {at}[1] > 30")
    before = tab.page.evaluate(at)[0]
    tab.page.fill("#text", "And another?")
    tab.page.press("#text", "Enter")
    model.gate.set()
    tab.count(".turn", 2)

    assert tab.page.evaluate(at)[0] == pytest.approx(before, abs=40)
    tab.page.click("#newest")
    tab.page.wait_for_function(f"() => {at}[1] < 2")


def test_a_conversation_is_called_by_its_first_words_from_its_beginning(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(model := GatedModel())
    tab = open_tab(server)
    tab.begin_only("Which tea keeps me awake?", "plain")
    tab.has("#live", "The first part.", ready=False)
    for place in (".bar h1", "#list li:first-child a > :first-child"):
        tab.reads(place, "Which tea keeps me awake?")
    model.gate.set()
    tab.count(".turn", 1)
    tab.page.fill("#q", "awake")
    tab.page.press("#q", "Enter")
    tab.has(".hits small", "Which tea keeps me awake?")
    server.repository.store.refs.label("plain-1", title="Tea at night")
    tab.page.reload()
    tab.has(".hits small", "Tea at night")


def test_menus_and_panels_over_the_page_are_closed_by_escape_and_by_a_click_beside_them(
    open_tab: OpenTab, server: Serving
) -> None:
    tab = open_tab(server, viewport={"width": 768, "height": 900})
    tab.begin("Which tea?", "chat")
    for opener, opened, beside in (
        ("[data-toggle=nav]", "nav.open", 700), ("[data-toggle=side]", "aside.open", 100), (".bar .menu summary", ".menu[open]", 100),
    ):  # fmt: skip
        tab.page.click(opener)
        tab.page.wait_for_selector(opened)
        tab.page.keyboard.press("Escape")
        tab.count(opened, 0)
        assert tab.page.evaluate("(opener) => document.activeElement === document.querySelector(opener)", opener)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(opened)
        tab.page.mouse.click(beside, 600)
        tab.count(opened, 0)
        assert tab.page.get_attribute(opener, "aria-expanded") in ("false", None)


TABLE = """| Tea | Steeping | Temperature | Price | Origin | Notes |
|---|---|---|---|---|---|
| Gyokuro | 120 | 55 | 38.00 | Shizuoka | umami, shaded for three weeks before the harvest |"""
LINES = """(cell) => {
  const words = document.createRange();
  words.selectNodeContents(cell);
  return words.getClientRects().length;
}"""


def test_a_table_scrolls_before_it_breaks_a_word(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model(TABLE)), viewport={"width": 360, "height": 740})
    tab.begin("Which tea?", "plain")

    cells = tab.page.locator(".answer :is(th, td):not(:last-child)").all()
    assert [cell.evaluate(LINES) for cell in cells] == [1] * 10
    assert tab.page.locator(".answer td:last-child").evaluate(LINES) <= 3
    assert tab.page.evaluate("document.querySelector('#transcript').scrollWidth <= innerWidth")


def test_two_answers_side_by_side_use_the_whole_width(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model("One.", "Two.")))
    tab.begin("Which tea?", "plain")
    tab.page.click("[data-act=again]")
    tab.has(".siblings", "2/2")
    tab.page.click("[data-act=beside]")
    tab.count("#beside .column", 2)

    frame, column = (tab.page.locator(each).first.bounding_box() for each in ("#beside", "#beside .column"))
    assert frame is not None
    assert column is not None
    assert column["width"] > frame["width"] * 0.45


def test_thoughts_fold_when_the_answer_begins_and_stay_with_how_long_they_took(open_tab: OpenTab, serve: Serve) -> None:
    model = GatedModel(ThinkingDelta("It should be mild."), TextDelta("A mild one.\n\n"))
    tab = open_tab(serve(model))
    tab.begin_only("Which tea?", "plain")
    tab.has("#live", "A mild one.", ready=False)
    tab.has("#live .thoughts:not([open]) summary", "Thought for 1 s", ready=False)
    tab.page.click("#live .thoughts summary")
    tab.has("#live .thoughts", "It should be mild.", ready=False)
    model.gate.set()
    tab.count(".turn", 1)

    tab.page.reload()
    tab.has("#turns .thoughts summary", "Thought for 1 s")
    assert "It should be mild." in (tab.page.text_content("#turns .thoughts") or "")


def test_an_open_explanation_of_a_value_follows_to_another_turn_with_what_was_typed(
    open_tab: OpenTab, server: Serving
) -> None:
    tab = open_tab(server)
    tab.begin("one")
    tab.say("two", 2)
    tab.page.click("[data-why=summary]")
    tab.has("#why", "Set in turn 2")
    tab.page.fill("#set [name=value]", '"my own"')
    tab.page.click(".turn[data-number='1'] [data-select]")
    tab.has("#why", "Set in turn 1")
    tab.holds("#set [name=value]", '"my own"')
    tab.say("three", 3)
    tab.has("#why", "Set in turn 3")
