"""The start page: examples, options of the answers, and what is there without a model."""

import threading
from pathlib import Path

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Grammar, Regex
from taiwa.models.providers import FoundModel
from taiwa.models.scripted import scripted_model
from taiwa.models.weights.fetch import FetchEvent, Listener
from taiwa.operations.model_files import PulledFile
from taiwa.settings import Settings
from tests.orders import ordered
from tests.server.page.conftest import OpenTab, Serve
from tests.server.serving import serving
from tests.server.test_approval import calling_model


def test_an_example_begins_with_a_click_and_opens_the_panel_that_shows_it(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(
        serve(scripted_model(ordered("2 lattes and 1 muffin.", _1=(2, "latte"), _2=(1, "blueberry muffin"))))
    )
    tab.page.wait_for_function(
        "() => document.activeElement.id === 'text' && !document.querySelector('.start').scrollTop"
    )
    tab.page.click(".examples button:first-child")
    tab.has("#turns .answer", "2 lattes")
    tab.has("#panel[data-panel=state]", "latte")


def test_tools_are_chosen_for_a_conversation_and_their_calls_are_chips(open_tab: OpenTab) -> None:
    with serving(model=calling_model()) as server:
        tab = open_tab(server)
        tab.page.click(".options summary")
        tab.page.check("[data-option-of=tools][value=calculator]")
        tab.begin_only("6*7?")
        tab.has(".call summary", "calculator")
        assert "42" in tab.page.inner_text(".call summary b")
        tab.page.click(".call summary")
        assert "6*7" in tab.page.inner_text(".call pre:first-of-type")
        tab.panel("turn")
        tab.until(r"[...all].some(each => /Tool · \d+ ms$/.test(plain(each.textContent)))", "#panel summary")
        tab.page.goto("about:blank")


@pytest.mark.parametrize(
    "written",
    ["name, seconds int", '{"name": "Sencha", "seconds": 60}', "interface Tea { name: string; seconds: number }"],
)
def test_answers_get_a_type_from_fields_an_example_or_typescript(open_tab: OpenTab, serve: Serve, written: str) -> None:
    pytest.importorskip("tree_sitter_typescript", reason="the extra typescript") if "interface" in written else None
    tab = open_tab(serve(scripted_model('{"name": "Sencha", "seconds": 60}')))
    tab.page.click(".options summary")
    tab.page.wait_for_function(
        "() => document.querySelector('.options').getBoundingClientRect().bottom < document.querySelector('.composer').getBoundingClientRect().top"
    )
    tab.page.fill("[data-option-of=type]", written)
    tab.begin("Invent a tea.", "plain")

    assert tab.page.inner_text("#turns .answer pre").strip() == '{\n  "name": "Sencha",\n  "seconds": 60\n}'


def test_a_type_that_cannot_be_read_is_refused_in_a_line_and_leaves_nothing_behind(
    open_tab: OpenTab, serve: Serve
) -> None:
    server = serve(scripted_model("never"))
    tab = open_tab(server)
    tab.page.click(".options summary")
    tab.page.fill("[data-option-of=type]", "os:system")
    tab.page.fill("#text", "hello")
    tab.page.click("#send")
    tab.has("#notices", "invalid type 'os:system'")

    tab.holds("#text", "hello")
    assert server.repository.store.refs.list() == ()
    tab.problems.clear()  # the refusal itself


@pytest.mark.parametrize(
    ("kind", "written", "constraint"),
    [
        ("regex", "[0-9]{4}-[0-9]{2}", Regex("[0-9]{4}-[0-9]{2}")),
        ("grammar", 'start: /[0-9]+/ "-" /[0-9]+/', Grammar('start: /[0-9]+/ "-" /[0-9]+/')),
        ("grammar", 'root ::= [0-9]+ "-" [0-9]+', Grammar('root ::= [0-9]+ "-" [0-9]+')),
    ],
)
def test_answers_are_bound_to_a_regular_expression_or_a_grammar(
    open_tab: OpenTab, serve: Serve, kind: str, written: str, constraint: object
) -> None:
    model = scripted_model("2024-05", "2024-06")
    tab = open_tab(serve(model))
    tab.page.click(".options summary")
    tab.page.select_option("#written", kind)
    tab.page.fill("[data-option-of=type]", written)
    tab.begin("When?", "plain")
    tab.say("And then?", 2)

    assert [each.constraint for each in model.requests] == [constraint] * 2
    assert tab.page.inner_text(".turn:last-child .answer").strip() == "2024-06"


@pytest.mark.parametrize(
    ("app", "options", "problem"),
    [
        ("plain", {"regex": "[0-9"}, "unclosed"),
        ("plain", {"grammar": "one: two"}, "the grammar has no rule 'start' to start with"),
        ("plain", {"regex": "[0-9]+", "tools": ["calculator"]}, "it takes no response format"),
        ("order", {"regex": "[0-9]+"}, "it takes no response format"),
    ],
)
def test_a_constraint_that_cannot_hold_is_refused_in_a_line(
    serve: Serve, app: str, options: dict[str, object], problem: str
) -> None:
    server = serve(scripted_model("never"))
    answer = server.client.post("/api/conversations", json={"app": app, "text": "When?", "options": options})

    assert answer.status_code == 400
    assert problem in answer.json()["error"]["message"]
    assert server.repository.store.refs.list() == ()


def test_without_a_model_documents_are_asked_and_what_was_found_is_used_with_a_click(
    open_tab: OpenTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "taiwa.server.wires.page_settings.found_models", lambda _: (FoundModel("ollama:tea", "127.0.0.1:11434"),)
    )
    monkeypatch.setattr("taiwa.server.served.set_value", lambda _, key, name: opened.append(f"{key}={name}"))
    with serving(quotes=True) as server:
        monkeypatch.setattr(
            server.server.state.served,
            "offer",
            lambda name: setattr(server.server.state.served, "models", (name,)),
        )
        tab = open_tab(server)
        assert tab.page.is_checked("[name=app][value=ask]")
        tab.count(".examples button", 1)
        tab.has("[data-now]", "127.0.0.1:11434")
        tab.page.click(".examples button")
        tab.has("#turns .sample", "a company that does not exist")
        tab.has("#panel[data-panel=turn]", "Passages used")
        tab.page.goto(tab.base)
        tab.has("[data-now]", "127.0.0.1:11434")
        tab.page.click("[data-act=use]")
        tab.page.wait_for_selector("#model option[value='ollama:tea']:text-is('tea')", state="attached")
        tab.ready()
        assert tab.page.is_checked("[name=app][value=plain]")
        tab.page.goto("about:blank")

    assert opened == ["model=ollama:tea"]


def test_a_small_model_is_fetched_with_its_progress_and_used(
    open_tab: OpenTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gate, attempts = threading.Event(), iter([True, False])

    def pull(name: str, _: Settings, listener: Listener) -> PulledFile:
        if next(attempts):
            raise ConfigError("no source is known")
        listener(FetchEvent("progress", 500_000_000, 1_000_000_000))
        assert gate.wait(300)
        return PulledFile(name, tmp_path / "tea.gguf", 1, "", "")

    monkeypatch.setattr("taiwa.server.wires.page_settings.found_models", lambda _: ())
    monkeypatch.setattr("taiwa.server.wires.page_settings.offered_model", lambda: "tea, 1 GB")
    monkeypatch.setattr("taiwa.server.page.start.pull_model", pull)
    monkeypatch.setattr("taiwa.server.served.set_value", lambda *_: None)
    with serving(quotes=True) as server:
        catalogue = server.server.state.served
        monkeypatch.setattr(catalogue, "offer", lambda name: setattr(catalogue, "models", (name,)))
        tab = open_tab(server)
        tab.page.click("[data-act=fetch]")
        tab.has("[data-now] .problem", "no source is known")
        tab.page.click("[data-act=fetch]")
        tab.page.wait_for_selector("progress[value='500000000']")
        gate.set()
        tab.page.wait_for_selector("#model option", state="attached")
        tab.ready()
        tab.count("[data-now]", 0)
        tab.page.goto("about:blank")
