"""The server's own API: conversations with their branches, states and bills, and runs that are followed."""

import asyncio
import html
import json
import re
import threading
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from taiwa.kernel.errors import ConfigError
from taiwa.kernel.messages import Request, StreamEnd, TextDelta
from taiwa.models.scripted import scripted_model
from taiwa.server.access import ServerLimits
from tests.server.serving import Serving, serving

Json = dict[str, Any]


def answer(n: int) -> str:
    return f'Answer {n}\n@@delta\n{{"topics": ["tea {n}"], "summary": "about tea {n}"}}'


@pytest.fixture
def server() -> Iterator[Serving]:
    with serving(model=scripted_model(*[answer(n) for n in range(9)])) as started:
        yield started


def get(server: Serving, url: str, /, **params: str) -> Any:
    response = server.client.get(url, params=params)
    assert response.status_code == 200, response.text
    return response.json()


def post(server: Serving, url: str, status: int = 200, /, **body: object) -> Json:
    response = server.client.post(url, json=body)
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


def events(server: Serving, run: str, last: int | None = None) -> list[tuple[str, Json]]:
    headers = {} if last is None else {"last-event-id": str(last)}
    text = server.client.get(f"/api/runs/{run}/events", headers=headers).text
    found: list[tuple[str, Json]] = []
    for block in filter(None, text.split("\n\n")):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields["event"], json.loads(fields["data"])))
    return found


def begin(server: Serving, text: str = "one", **more: object) -> str:
    started = post(server, "/api/conversations", 202, app="chat", text=text, **more)
    events(server, started["run"])
    return str(started["session"])


def say(server: Serving, session: str, **body: object) -> list[tuple[str, Json]]:
    return events(server, post(server, f"/api/conversations/{session}/turns", 202, **body)["run"])


def texts(server: Serving, session: str) -> list[str]:
    return [node["user"] for node in get(server, f"/api/conversations/{session}") if node["kind"] == "turn"]


def test_a_conversation_is_begun_listed_continued_and_deleted(server: Serving) -> None:
    session = begin(server)
    happened = say(server, session, text="two")

    assert [name for name, _ in happened][-2:] == ["turn", "end"]
    assert "".join(data["text"] for name, data in happened if name == "text") == "Answer 1"
    assert texts(server, session) == ["one", "two"]
    assert [line["session"] for line in get(server, "/api/conversations")] == [session]
    assert get(server, f"/api/conversations/{session}/state")["state"]["summary"] == "about tea 1"
    server.client.delete(f"/api/conversations/{session}")
    assert get(server, "/api/conversations") == []


def test_a_run_is_taken_up_again_behind_any_event(server: Serving) -> None:
    session = begin(server)
    run = post(server, f"/api/conversations/{session}/turns", 202, text="two")["run"]
    whole = events(server, run)

    for last in range(len(whole) - 1):
        assert events(server, run, last) == whole[last + 1 :]
    far = server.client.get(f"/api/runs/{run}/events", headers={"last-event-id": "9" * 5_000})
    assert (far.status_code, far.text) == (200, "event: end\ndata: {}\n\n")


def test_an_edit_branches_and_can_repeat_what_followed(server: Serving) -> None:
    session = begin(server)
    say(server, session, text="two")
    say(server, session, text="ONE", edit=1, replay=True)

    assert texts(server, session) == ["ONE", "two"]


def test_the_last_message_is_answered_again(server: Serving) -> None:
    session = begin(server)
    say(server, session, retry=True)

    assert texts(server, session) == ["one"]
    assert get(server, f"/api/conversations/{session}")[-1]["answer"] == "Answer 1"


def test_a_message_after_an_earlier_node_begins_a_branch(server: Serving) -> None:
    session = begin(server)
    first = get(server, f"/api/conversations/{session}")[-1]["node"]
    say(server, session, text="two")
    say(server, session, text="otherwise", parent=first)

    assert texts(server, session) == ["one", "otherwise"]


def test_undo_redo_fork_rename_and_edits_of_the_state(server: Serving) -> None:
    session = begin(server)
    say(server, session, text="two")
    here = f"/api/conversations/{session}"
    post(server, f"{here}/undo")
    assert texts(server, session) == ["one"]
    post(server, f"{here}/redo", turns=1)
    assert texts(server, session) == ["one", "two"]
    post(server, f"{here}/fork", name="side")
    post(server, "/api/conversations/side/rename", name="aside")
    post(server, "/api/conversations/aside/state", path="summary", value="mine")
    assert get(server, "/api/conversations/aside/state")["state"]["summary"] == "mine"
    assert get(server, "/api/conversations/aside/why", path="summary")["node"]
    changed = get(server, "/api/diff", before=session, after="aside")["state"]
    assert [change["path"] for change in changed] == ["summary"]


def test_a_conversation_is_verified_costed_searched_and_exported(server: Serving) -> None:
    session = begin(server, "Good morning")
    here = f"/api/conversations/{session}"

    assert get(server, f"{here}/verify") == {"verified": True, "problem": "", "nodes": 2, "replayed": 1}
    assert get(server, "/api/cost", by="model")
    assert [hit["sessions"] for hit in get(server, "/api/conversations", q="morning")] == [[session]]
    for form, word in (("jsonl", '"taiwa"'), ("md", "Good morning"), ("html", "<html"), ("verifiable", "digest")):
        response = server.client.get(f"{here}/export", params={"form": form})
        assert word in response.text, form
        assert response.headers["content-disposition"] == (
            f"attachment; filename*=UTF-8''Good%20morning.{'html' if form == 'verifiable' else form}"
        )
    assert "<h1>Good morning</h1>" in server.client.get(f"{here}/export", params={"form": "html"}).text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/conversations/nowhere", None, 404),
        ("POST", "/api/conversations/nowhere/turns", {"text": "x"}, 404),
        ("GET", "/api/nodes/0123456789abcdef0123456789abcdef", None, 404),
        ("GET", "/api/nodes/forged", None, 404),
        ("GET", "/api/runs/forged/events", None, 404),
        ("POST", "/api/conversations", {"app": "nowhere", "text": "x"}, 404),
        ("POST", "/api/conversations", {"app": "/etc/passwd", "text": "x"}, 404),
        ("POST", "/api/conversations", {"app": "plain"}, 400),
        ("POST", "/api/conversations", {"app": "plain", "text": 3}, 400),
        ("POST", "/api/conversations", {"app": "plain", "text": "x", "color": "red"}, 400),
        ("POST", "/api/conversations", {"app": "plain", "text": "x", "params": {"nonsense": 1}}, 400),
        ("GET", "/api/conversations?limit=0", None, 400),
        ("GET", "/api/cost?by=nothing", None, 400),
        ("GET", "/api/cost?by=owner", None, 400),
        ("GET", "/api/nowhere", None, 404),
    ],
)
def test_bad_input_gets_one_line_and_its_status(
    server: Serving, method: str, path: str, body: object, status: int
) -> None:
    response = server.client.request(method, path, json=body)

    assert response.status_code == status, response.text
    assert response.json()["error"]["message"]
    assert "Traceback" not in response.text


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b"null", b'{"text": "\\ud800"}'])
def test_a_body_that_is_no_object_is_refused(server: Serving, body: bytes) -> None:
    session = begin(server)
    headers = {"content-type": "application/json"}
    response = server.client.post(f"/api/conversations/{session}/turns", content=body, headers=headers)

    assert response.status_code == 400, response.text
    assert texts(server, session) == ["one"]


def test_the_served_apps_are_listed_with_their_parameters(server: Serving) -> None:
    apps = {app["name"]: app for app in get(server, "/api/apps")}

    assert apps["chat"]["documents"] is False
    assert all("problem" not in app for app in apps.values())


NAMES = ("a/b", "x/state", "turns/undo", "../x", "a?b#c", "%2F", "a%20b", "<script>", "a&b=c", "日本語/会話")


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_addressed_by_programs_and_by_the_page(server: Serving, name: str) -> None:
    part = quote(name, safe="")
    assert begin(server, name=name) == name
    assert say(server, part, text="two")[-1][0] == "end"

    assert texts(server, part) == ["one", "two"]
    assert get(server, f"/api/conversations/{part}/state")["state"]["turns"] == 2
    assert f'href="/c/{part}"' in server.client.get("/").text
    assert server.client.get(f"/c/{part}").status_code == 200
    assert server.client.get(f"/page/panel/state/{part}").status_code == 200
    assert len(get(server, f"/v1/conversations/{part}/items")["data"]) == 4


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_addresses_read_as_a_folder_is_refused(server: Serving, name: str) -> None:
    error = post(server, "/api/conversations", 400, app="chat", text="one", name=name)["error"]
    assert error["message"].startswith(f"a session name must not be {name!r}")


class SilentModel:
    """Is asked, and never answers."""

    name = "silent"
    capabilities = frozenset[Any]()

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
        del request
        self.asked.set()
        await asyncio.Event().wait()
        yield StreamEnd("stop", "silent")


def interrupt(store: str) -> str:
    """Begin a conversation whose server is stopped during its first answer."""
    model: Any = SilentModel()
    with serving(model=model, store=store, limits=ServerLimits(grace=0.0)) as stopped:
        session = str(post(stopped, "/api/conversations", 202, app="chat", text="Two <teas>")["session"])
        assert model.asked.wait(300)
    return session


def test_a_turn_that_a_stopped_server_left_open_is_shown_and_resumed(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    session = interrupt(store)

    with serving(model=scripted_model(answer(1)), store=store) as server:
        assert texts(server, session) == []
        with server.client.stream("GET", f"/page/follow/{session}") as stream:
            assert "event: left" in list(islice(stream.iter_lines(), 4))
        assert "Two &lt;teas&gt;" in server.client.get(f"/page/pending/{session}").text
        happened = events(server, post(server, f"/api/conversations/{session}/resume", 202)["run"])
        assert [name for name, _ in happened][-2:] == ["turn", "end"]
        assert texts(server, session) == ["Two <teas>"]
        again = post(server, f"/api/conversations/{session}/resume", 409)["error"]
        assert again["message"] == f"{session!r} has no interrupted turn"


def test_an_interrupted_turn_is_not_offered_once_its_conversation_went_on(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    session = interrupt(store)

    with serving(model=scripted_model(answer(1)), store=store) as server:
        say(server, session, text="one")
        post(server, f"/api/conversations/{session}/resume", 409)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"as": ["group:hr"]}, "a request may not set 'as' of the app 'ask'"),
        ({"in": ["."]}, "index '.' not found"),
        ({"in": ["/etc"]}, "index '/etc' not found"),
        ({"user": "ann"}, "user 'ann' not found"),
    ],
)
def test_a_request_does_not_choose_what_is_searched_for_whom(server: Serving, params: Json, problem: str) -> None:
    asked = {"model": "ask", "taiwa": {"params": params}}
    messages = [{"role": "user", "content": "What is the pay?"}]
    status = 404 if "not found" in problem else 400
    begun = post(server, "/api/conversations", status, app="ask", text="What is the pay?", params=params)
    chat = server.client.post("/v1/chat/completions", json={**asked, "messages": messages})
    responses = server.client.post("/v1/responses", json={**asked, "input": "What is the pay?"})

    assert [chat.status_code, responses.status_code] == [status, status]
    for refused in (begun, chat.json(), responses.json()):
        assert problem in refused["error"]["message"]
    assert get(server, "/api/conversations") == []


OWN_GRANTS = """---
taiwa: 1
name: pay
about: Questions on the pay of one department
documents: {}
params:
  in: { type: "list[str]", default: [pay] }
  as: { type: "list[str]", default: ["group:hr"] }
---
Answer.
"""


@pytest.mark.parametrize("params", [{"in": ["handbook"]}, {"as": ["group:all"]}])
def test_what_the_file_of_an_app_grants_is_not_for_a_request_to_change(tmp_path: Path, params: Json) -> None:
    (tmp_path / "pay.md").write_text(OWN_GRANTS)
    with serving("Answer.", apps=(str(tmp_path / "pay.md"),)) as server:
        refused = post(server, "/api/conversations", 400, app="pay", text="What is the pay?", params=params)
        assert refused["error"]["message"].startswith(f"a request may not set {next(iter(params))!r} of the app 'pay'")


def test_an_export_has_no_control_codes(server: Serving) -> None:
    begin(server, "\x1b[2J\u202eone")

    for form in ("jsonl", "md", "html"):
        text = server.client.get("/api/conversations/chat-1/export", params={"form": form}).text
        assert "one" in text
        assert not set(text) & set("\x1b\u202e")


def test_a_page_gets_the_text_of_a_long_block_at_once_and_its_html_now_and_then() -> None:
    code = "x = '<b>' # a line\n" * 200

    class TypingModel(SilentModel):
        async def astream(self, request: Request) -> AsyncGenerator[TextDelta | StreamEnd]:
            text = f"Here:\n\n```python\n{code}```\n"
            for place in range(0, len(text), 8):
                yield TextDelta(text[place : place + 8])
                await asyncio.sleep(0)
            yield StreamEnd("stop", "silent")

    model: Any = TypingModel()
    with serving(model=model) as server:
        begun = server.client.post("/api/conversations", json={"app": "plain", "text": "hi"}).json()
        closed, tail, rendered = "", "", 0
        with server.client.stream("GET", f"/page/follow/{begun['session']}?run={begun['run']}") as stream:
            name = ""
            for line in stream.iter_lines():
                name = line.removeprefix("event: ") if line.startswith("event: ") else name
                data = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
                if name == "block" and data:
                    closed, tail = closed + data["html"], ""
                elif name == "tail" and data:
                    rendered += "html" in data
                    tail = data.get("html", tail + data.get("more", ""))
                if name == "tip" and data:
                    break

    shown = html.unescape(re.sub(r"<[^>]*>|\s", "", closed + tail))  # the text behind a rendered part begins a line
    assert shown.count("x='<b>'#aline") == 200
    assert 0 < rendered < 150


def test_a_model_without_a_key_does_not_keep_the_others_from_being_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving("Green tea.", models=("openai:gpt-x", "ollama:tea")) as server:
        assert server.client.get("/v1/models").json()["data"][0]["id"] == "scripted"
        post(server, "/api/conversations", 202, app="plain", text="Which tea?", model="scripted")
        refused = post(server, "/api/conversations", 500, app="plain", text="Which tea?", model="openai:gpt-x")
        assert "no key for openai:gpt-x" in refused["error"]["message"]
    with pytest.raises(ConfigError, match="no key"), serving("never", models=("openai:gpt-x",)):
        pass
