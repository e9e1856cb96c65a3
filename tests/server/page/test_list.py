"""The list of conversations: the menu of each row, and those beyond the first hundred."""

import json
from pathlib import Path

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import add_turn
from taiwa.models.scripted import scripted_model
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from tests.server.page.conftest import OpenTab, Serve
from tests.server.serving import Serving, serving


def hold(server: Serving, name: str, text: str) -> None:
    """Hold a conversation of one turn."""
    begun = server.repository.start(load_app("plain"))
    server.repository.commit(name, add_turn(begun, text, "An answer.", {}), expected=None)


def test_each_row_of_the_list_has_a_menu(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    for name in ("first", "second", "third"):
        hold(server, name, f"About {name}")
    tab = open_tab(server)
    tab.page.goto(f"{tab.base}/c/third")
    tab.ready()

    def open_row(row: str) -> None:
        tab.page.hover(f"#list li:has([href='/c/{row}'])")
        tab.page.click(f"#list li:has([href='/c/{row}']) [data-act=row]")

    def choose(row: str, action: str) -> None:
        open_row(row)
        tab.page.click(f"#row {action}")

    choose("first", "[data-pinned='1']")
    tab.has("#list li:first-child", "★")
    choose("first", "[data-act=title]")
    tab.page.fill("#ask-text", "煎茶について")
    tab.page.click("#ask-ok")
    tab.has("#list li:first-child", "煎茶について")
    choose("second", "[data-archived='1']")
    tab.page.wait_for_selector("#list li.archived", state="attached")
    tab.page.check("#archived")
    open_row("second")
    exported = server.client.get(tab.page.get_attribute("#row [data-form=md]", "href") or "")
    assert "About second" in exported.text
    tab.page.keyboard.press("Escape")
    choose("second", "[data-act=rename]")
    tab.page.fill("#ask-text", "renamed")
    tab.page.click("#ask-ok")
    tab.count("#list [href='/c/renamed']", 1)
    choose("renamed", "[data-act=remove]")
    tab.page.click("#ask-ok")
    tab.count("#list li", 2)
    assert tab.page.url.endswith("/c/third")
    choose("third", "[data-act=remove]")
    tab.page.click("#ask-ok")
    tab.count("#list li", 1)

    assert {ref.name: (ref.title, ref.pinned) for ref in server.repository.store.refs.list()} == {
        "first": ("煎茶について", True)
    }


def test_conversations_are_tagged_and_listed_by_a_tag(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    for name in ("first", "second", "third"):
        hold(server, name, f"About {name}")
    server.repository.store.refs.label("first", title="A title")
    tab = open_tab(server, bypass_csp=True)
    tab.page.goto(f"{tab.base}/c/third")
    tab.ready()

    def write(row: str, action: str, text: str) -> None:
        tab.page.hover(f"#list li:has([href='/c/{row}'])")
        tab.page.click(f"#list li:has([href='/c/{row}']) [data-act=row]")
        tab.page.click(f"#row [data-act={action}]")
        tab.page.fill("#ask-text", text)
        tab.page.click("#ask-ok")

    write("first", "tags", "仕事、tea & <trade>")
    tab.has("#list li:has([href='/c/first'])", "#仕事 #tea & <trade>")
    write("second", "tags", "other")
    tab.count("#list .tag", 3)
    write("first", "title", "")
    tab.has("#list li:has([href='/c/first'])", "About first")
    tab.page.click("#list .tag:text-is('tea & <trade>')")
    tab.count("#list li:has(a)", 2)  # the one that is shown stays
    assert tab.page.evaluate("document.activeElement.dataset.tag") == "tea & <trade>"
    assert tab.violations() == []
    tab.page.goto(tab.base)
    tab.ready()
    assert tab.page.locator("#list li:has(a)").all_inner_texts()[0].startswith("About first")
    tab.count("#list li:has(a)", 1)
    tab.page.click("#list .tag[aria-pressed=true]")
    tab.count("#list li:has(a)", 3)
    write("first", "tags", "")
    tab.count("#list .tag", 1)
    listed = server.client.get("/api/conversations?tag=OTHER").json()

    assert [(each["session"], each["tags"]) for each in listed] == [("second", ["other"])]


def test_conversations_beyond_the_first_hundred_are_reached_and_pinned_ones_are_always_first(
    open_tab: OpenTab, serve: Serve
) -> None:
    server = serve(scripted_model("never"))
    for number in range(230):
        hold(server, f"talk-{number}", f"question {number}")
    server.repository.store.refs.label("talk-0", place=1)
    tab = open_tab(server)
    tab.count("#list a", 100)
    assert "question 0" in tab.page.inner_text("#list li:first-child")
    tab.page.click("[data-act=older]")
    tab.count("#list a", 200)
    tab.page.click("[data-act=older]")
    tab.count("#list a", 230)

    tab.count("[data-act=older]", 0)


def test_a_search_opens_a_long_conversation_at_the_word(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    conversation = server.repository.start(load_app("plain"))
    for number in range(120):
        answer = "\n\n".join([*["Much about tea."] * 60, f"The word gyokuro{number} and more.", *["And more."] * 60])
        conversation = add_turn(conversation, f"question {number}", answer, {})
    server.repository.commit("long", conversation, expected=None)
    tab = open_tab(server)
    tab.page.fill("#q", "gyokuro7")
    tab.page.press("#q", "Enter")
    tab.page.click(".hits a")
    tab.page.wait_for_selector(".turn.selected")
    tab.ready()

    word = tab.page.locator(".turn.selected p", has_text="gyokuro7 ")
    place, frame = word.bounding_box(), tab.page.locator("#transcript").bounding_box()
    assert place is not None
    assert frame is not None
    assert frame["y"] < place["y"] < frame["y"] + frame["height"]
    assert tab.page.evaluate("[...CSS.highlights.get('found')].map(String)") == ["gyokuro7"]


def test_a_search_finds_a_turn_that_an_edit_has_left(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    hold(server, "teas", "Which tea?")
    began = server.repository.store.refs.tip("teas")
    edited = add_turn(server.repository.start(load_app("plain")), "Which coffee?", "An answer.", {})
    server.repository.commit("teas", edited, expected=began, reason="edit")
    tab = open_tab(server)
    tab.page.goto(f"{tab.base}/?q=tea")
    tab.has("h1", "Found")
    tab.page.click(".hits a")

    tab.has(".turn.selected .you", "Which tea?")
    tab.page.wait_for_selector("#behind:not([hidden])")


def test_hits_of_a_search_read_as_their_turns_do(open_tab: OpenTab, serve: Serve) -> None:
    server = serve(scripted_model("never"))
    answer = (
        "A **green** [kind](https://tea.example/kinds) for `__main__`:\n\n| tea | price |\n|---|---|\n| hojicha | *2* |"
    )
    begun = add_turn(server.repository.start(load_app("plain")), "Which **tea**?", answer, {})
    server.repository.commit("teas", begun, expected=None)
    tab = open_tab(server)

    for query, shown in (
        ("hojicha", "Which **tea**? A green kind (tea.example) for __main__: tea price hojicha 2"),
        ("kinds", "https://tea.example/kinds"),
    ):
        tab.page.goto(f"{tab.base}/?q={query}")
        tab.has(".hits a > span", shown)


MESSAGES = [{"role": "user", "content": "Which **tea**?"}, {"role": "assistant", "content": "Green."}]


def test_a_file_of_conversations_is_imported_whole_or_refused_in_one_line(
    open_tab: OpenTab, serve: Serve, tmp_path: Path
) -> None:
    server = serve(scripted_model("Black."))
    tab = open_tab(server)
    several, broken = tmp_path / "several.json", tmp_path / "broken.json"
    several.write_text(json.dumps([{"messages": MESSAGES, "title": f"Talk {n}"} for n in range(3)]))
    broken.write_text(json.dumps([{"messages": MESSAGES}, {"messages": [{"role": "usr"}]}]))

    def choose(file: Path) -> None:
        with tab.page.expect_file_chooser() as chooser:
            tab.page.click("[data-act=import]")
        chooser.value.set_files(str(file))

    drop = (
        "([text, name]) => { const dataTransfer = new DataTransfer(); dataTransfer.items.add(new File([text], name));"
        " for (const kind of ['dragover', 'drop']) document.querySelector('#nav').dispatchEvent("
        "new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true })); }"
    )
    tab.page.evaluate(drop, ["x" * 20_000_001, "large.json"])
    tab.has("#notices", "large.json is too large: at most 20 MB.")
    tab.page.click("#notices p")
    choose(broken)
    tab.has("#notices", "broken.json: conversation 2: message 1: unknown role 'usr'")
    tab.page.click("#notices p")
    tab.problems.clear()  # the refusal itself
    choose(several)
    tab.has("#notices", "Imported conversations: 3")
    tab.count("#list li", 3)
    tab.has("#list li", "Talk 2")
    tab.page.evaluate(drop, [json.dumps(MESSAGES), "one.json"])
    tab.has("h1", "Which **tea**?")
    tab.count(".turn", 1)
    tab.say("And now?", 2)

    assert [message.text for message in server.model.requests[0].messages] == ["Which **tea**?", "Green.", "And now?"]
    assert len(server.repository.store.refs.list()) == 4


def test_the_owner_trusts_an_imported_app_after_seeing_what_it_names(open_tab: OpenTab) -> None:
    armed = load_app("plain").with_options(AnswerOptions(tools=("calculator",)))
    with Store.open(":memory:") as store, serving("never") as server:
        sender = Repository(store)
        sender.commit("gift", add_turn(sender.start(armed), "2+2?", "4", None), expected=None)
        server.client.post("/api/import", json={"text": "\n".join(store.export("gift", apps=True))})
        tab = open_tab(server, bypass_csp=True)
        tab.page.goto(f"{tab.base}/c/gift")
        tab.ready()
        assert tab.violations() == []
        tab.has(".note:not([hidden])", "The app plain was imported")
        tab.page.click("[data-act=trust]")
        tab.reads("#ask-title", "Trust the app plain? tools: calculator")
        tab.page.click("#ask-ok")
        tab.count("[data-act=trust]", 0)

        tab.page.goto("about:blank")
        assert server.repository.store.nodes.is_trusted(server.repository.at("gift").app.hash)
