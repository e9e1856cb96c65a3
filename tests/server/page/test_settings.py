"""The settings page: what a browser keeps, and what the owner of a private server sets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from taiwa.models.http_api.api_keys import KeyRow, list_keys
from taiwa.models.scripted import scripted_model
from taiwa.server.access import LOCAL_CALLER
from taiwa.settings import load
from taiwa.store.server_records import Caller
from tests.server.page.conftest import OpenTab, Serve
from tests.server.serving import Serving, serving


@contextmanager
def listing(key: str) -> Iterator[str]:
    """A server of models that answers only with a key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("authorization") == f"Bearer {key}"
            data = (
                {"data": [{"id": "sencha"}, {"id": "bancha"}]}
                if known
                else {"error": {"message": f"no {self.headers['authorization']}"}}
            )
            body = json.dumps(data).encode()
            self.send_response(200 if known else 401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = (
                b'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
            )
            known = self.headers.get("authorization") == f"Bearer {key}"
            self.send_response(200 if known else 401)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(body) if known else 0))
            self.end_headers()
            self.wfile.write(body if known else b"")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(300)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serving]:
    """A private server, whose config file is empty."""
    monkeypatch.setenv("TAIWA_CONFIG", str(tmp_path / "config.yaml"))
    monkeypatch.setattr("taiwa.server.wires.page_settings.found_models", lambda _: ())
    monkeypatch.setattr("taiwa.server.wires.page_settings.offered_model", lambda: "")
    with serving(model=scripted_model("Hello.")) as started:
        yield started


def stored(server: Serving) -> tuple[KeyRow, ...]:
    return list_keys(server.server.state.served.settings, {}, {})


def test_the_owner_adds_a_server_with_its_key_and_uses_its_models(open_tab: OpenTab, own: Serving) -> None:
    with listing("right-key") as url:
        tab = open_tab(own)
        tab.page.goto(f"{tab.base}/settings")
        tab.ready()
        tab.page.fill("#server [name=server]", url)
        tab.page.fill("#server [name=key]", "wrong-key")
        tab.page.click("#server button")
        tab.has("#notices", "does not accept this key; it is not stored")
        assert stored(own) == ()
        assert "wrong-key" not in tab.page.inner_text("#notices")
        tab.problems.clear()  # the refusal itself
        tab.page.fill("#server [name=key]", "right-key")
        tab.page.click("#server button")
        tab.page.click("#listed [data-act=use]:text-is('bancha')")
        tab.has(".served", "bancha")
        assert [(row.origin, row.is_stored) for row in stored(own)] == [(url.removesuffix("/v1"), True)]
        tab.page.click(".served li:has-text('bancha') summary")
        tab.has(".served details[open]", f"{url}#bancha")
        tab.page.click("[data-act=unlock]")
        tab.count("[data-act=unlock]", 0)
        tab.page.goto("about:blank")

    assert stored(own) == ()
    assert load().model == f"{url}#bancha"
    assert own.server.state.served.models == ("scripted", f"{url}#bancha")


def test_a_key_that_cannot_be_tested_is_stored_and_a_model_is_named(open_tab: OpenTab, own: Serving) -> None:
    with socket() as closed:  # nothing listens there
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        tab = open_tab(own)
        tab.page.goto(f"{tab.base}/settings")
        tab.ready()
        tab.page.fill("#server [name=server]", url)
        tab.page.fill("#server [name=key]", "a-key")
        tab.page.click("#server button")
        tab.has("#notices", "The key is stored, but could not be tested.")
        tab.has("#listed .problem", "nothing listens at")
        tab.page.fill("#named [name=named]", "sencha")
        tab.page.click("#named button")
        tab.has(".served", "sencha")
        tab.page.goto("about:blank")

    assert [row.is_stored for row in stored(own)] == [True]
    assert load().model == f"{url}#sencha"


def test_models_are_called_by_their_own_names_and_the_first_one_is_chosen(open_tab: OpenTab, own: Serving) -> None:
    catalogue = own.server.state.served
    catalogue.models = ("openai:gpt-tea", "http://127.0.0.1:9/v1#sencha")
    tab = open_tab(own)
    assert tab.page.locator("#model option").all_inner_texts() == ["gpt-tea", "sencha"]
    tab.page.goto(f"{tab.base}/settings")
    tab.page.click("[data-act=serve][data-first]")
    tab.has(".served li:first-child", "sencha")
    tab.page.click(".served li:last-child [data-remove]")
    tab.count(".served li", 1)
    tab.page.goto("about:blank")

    assert (load().model, load().models.served_models) == ("http://127.0.0.1:9/v1#sencha", ())


def test_a_limit_on_cost_holds_at_once_and_after_a_restart(open_tab: OpenTab, own: Serving) -> None:
    tab = open_tab(own)
    tab.page.goto(f"{tab.base}/settings")
    tab.ready()
    tab.page.fill("#limit input", "a lot")
    tab.page.click("#limit button")
    tab.has("#notices", "must be a number such as 0.25")
    tab.problems.clear()
    tab.page.fill("#limit input", "5, 0.5/day")
    tab.page.click("#limit button")
    tab.has("#notices", "Saved.")
    tab.page.goto("about:blank")

    limits, budget = own.repository.limits, own.repository.budget
    assert limits is not None
    assert budget is not None
    assert (limits.day_cost, load().limits.cost) == (500_000_000, 5_000_000_000)


CHANGES = {
    "/page/models": {"model": "http://127.0.0.1:9/v1#m", "server": "http://127.0.0.1:9/v1"},
    "/page/keys": {"server": "http://127.0.0.1:9/v1", "key": "k"},
    "/page/limits": {"max_cost": "none"},
}


@pytest.mark.parametrize(
    "options", [{"token": ""}, {"names": ("tea.example",)}, {"origins": ("https://tea.example",)}, {}]
)
def test_a_server_that_others_reach_takes_no_models_keys_or_limits(options: dict[str, Any]) -> None:
    with serving(**options) as server:
        if not options:
            server.repository.store.callers.add(Caller("ann"), "key of ann")
        for path, body in CHANGES.items():
            answer = server.client.post(path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        assert server.client.get("/page/models?server=http://127.0.0.1:9/v1").status_code == 403
        assert "Add a server" not in server.client.get("/settings").text
        assert server.server.state.served.models == ("scripted",)


def test_a_caller_of_a_server_and_a_page_of_another_site_set_nothing(serve: Serve, own: Serving) -> None:
    caller = serve(scripted_model("never"))
    for path, body in CHANGES.items():
        assert caller.client.post(path, json=body).status_code == 403
        assert own.client.post(path, json=body, headers={"origin": "https://evil.example"}).status_code == 403
    assert own.server.access is not None
    assert LOCAL_CALLER == ""
    caller.server.state.served.models = ()
    page = caller.client.get("/", headers={"accept": "text/html"}).text
    assert "No model is set up." in page
    assert "/page/models" not in page  # which would be refused


def test_a_theme_is_kept_and_drawn_at_once(open_tab: OpenTab, serve: Serve) -> None:
    tab = open_tab(serve(scripted_model("Hello.")))
    light = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.page.goto(f"{tab.base}/settings")
    tab.ready()
    tab.page.select_option("#theme", "dark")
    tab.page.wait_for_selector("html[data-theme=dark]")
    tab.page.goto(tab.base)

    assert light != tab.page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_new_conversations_begin_as_the_browser_remembers_and_go_on_otherwise(open_tab: OpenTab, serve: Serve) -> None:
    model = scripted_model("One.", "Two.")
    tab = open_tab(serve(model))
    tab.page.goto(f"{tab.base}/settings")
    tab.ready()
    tab.page.fill("#defaults [data-option-of=system]", "Answer in one word.")
    tab.page.fill("#defaults [data-option-of=temperature]", "0.9")
    tab.page.goto(tab.base)
    tab.ready()
    tab.begin("Hello?", "plain")
    tab.page.click(".bar .menu summary")
    tab.page.click("[data-act=answers]")
    tab.holds("#answers [data-option-of=temperature]", "0.9")
    tab.page.fill("#answers [data-option-of=system]", "Answer in verse.")
    tab.page.fill("#answers [data-option-of=temperature]", "")
    tab.page.click("#answers .primary")
    tab.count(".turn", 2)
    tab.say("And now?", 3)

    first, second = model.requests
    assert (first.messages[0].text, first.sampling.temperature) == ("Answer in one word.", 0.9)
    assert (second.messages[0].text, second.sampling.temperature) == ("Answer in verse.", None)


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("/page/keys", {"server": "opnai", "key": "k"}, "unknown provider 'opnai': did you mean 'openai'?"),
        ("/page/keys", {"server": "openai", "key": "a b"}, "contains white space"),
        ("/page/keys", {"server": "openai", "remove": True}, "no key for https://api.openai.com is stored"),
        ("/page/limits", {"max_cost": "much"}, "must be a number such as 0.25"),
        ("/page/models", {"model": "ollama:tea"}, "was not found on this machine"),
        ("/page/models", {"model": "m", "server": "tea.example"}, "unknown provider 'tea.example'"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(
    own: Serving, path: str, body: dict[str, object], problem: str
) -> None:
    answer = own.client.post(path, json=body)

    assert answer.status_code == 400
    assert problem in answer.json()["error"]["message"]


@pytest.mark.parametrize("locale", ["en-US", "ja-JP", "zh-CN"])
def test_the_settings_are_accessible_and_nothing_is_cut(open_tab: OpenTab, own: Serving, locale: str) -> None:
    own.server.state.served.models = ("openai:gpt-tea", "http://127.0.0.1:9/v1#a-model-with-a-rather-long-name")
    tab = open_tab(own, bypass_csp=True, locale=locale)
    tab.page.goto(f"{tab.base}/settings")
    tab.ready()

    for width in (1280, 768, 360):
        tab.page.set_viewport_size({"width": width, "height": 800})
        assert tab.page.evaluate("document.querySelector('.settings').scrollWidth <= innerWidth"), width
        assert width == 768 or tab.violations(in_dark=width == 1280) == [], width


def test_options_of_the_answers_that_are_not_named_stay(own: Serving) -> None:
    options = {"system": "Be brief.", "temperature": 0.9, "tools": ["calculator"]}
    begun = own.client.post("/api/conversations", json={"app": "plain", "text": "Hello?", "options": options})
    name = begun.json()["session"]
    own.client.get(f"/api/runs/{begun.json()['run']}/events")
    for body in ({"options": {"max_tokens": 50, "temperature": None}}, {"params": {}}):
        assert own.client.post(f"/api/conversations/{name}/params", json=body).status_code == 200

    changed = own.repository.at(name).app.options
    assert (changed.system, changed.tools) == ("Be brief.", ("calculator",))
    assert (changed.sampling.temperature, changed.sampling.max_tokens) == (None, 50)
