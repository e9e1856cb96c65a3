"""What was imported into the store of a server gets no rights through a request."""

from pathlib import Path

import httpx

from taiwa.apps.catalog import load_app
from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import add_turn
from taiwa.kernel.messages import Sampling
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from taiwa.store.server_records import Caller
from tests.server.serving import KEY, serving


def test_other_parameters_do_not_let_an_imported_app_search_for_whom_it_names() -> None:
    app = load_app("ask").with_params({"in": ["secret"], "as": ["group:hr"]})
    with Store.open(":memory:") as store, serving("never", apps=("ask",)) as server:
        sender = Repository(store)
        sender.commit("gift", sender.start(app), expected=None, reason="begin")
        server.repository.import_lines(list(store.export("gift")), "gift")

        changed = server.client.post("/api/conversations/gift/params", json={"params": {"max_questions": 1}})

        assert (changed.status_code, "the app 'ask' was imported; trust it" in changed.text) == (400, True)
        assert not server.repository.store.nodes.is_trusted(server.repository.at("gift").app.hash)
        asked = server.client.post("/api/conversations/gift/turns", json={"text": "What is the key?"})
        assert asked.status_code in (202, 400)
        assert server.model.requests == []


def test_an_app_that_came_with_a_file_is_trusted_if_a_new_conversation_could_have_it() -> None:
    own = load_app("chat").with_options(AnswerOptions("Be brief.", Sampling(0.3)))
    searching = load_app("ask").with_params({"in": ["secret"], "as": ["group:hr"]})
    armed = load_app("plain").with_options(AnswerOptions(tools=("calculator",)))
    with Store.open(":memory:") as store, serving("never") as server:
        sender = Repository(store)
        for name, app in (("own", own), ("searching", searching), ("armed", armed)):
            sender.commit(name, sender.start(app), expected=None, reason="begin")
            made = server.client.post("/api/import", json={"text": "\n".join(store.export(name, apps=True))}).json()

            assert made == {"sessions": [name], "turns": 0, "trusted": app is own}


def test_the_holder_of_the_token_exports_the_app_and_another_caller_does_not() -> None:
    with serving("Yes.", "Yes.") as server:
        server.repository.store.callers.add(Caller("ann"), "key-of-ann")
        for key, has in ((KEY, True), ("key-of-ann", False)):
            headers = {"authorization": f"Bearer {key}"}
            run = server.client.post("/api/conversations", json={"text": "Hi", "name": "talk"}, headers=headers).json()
            server.client.get(f"/api/runs/{run['run']}/events", headers=headers)

            text = server.client.get("/api/conversations/talk/export", headers=headers).text

            assert ('"app":' in text) == has


def test_a_conversation_whose_name_is_taken_gets_another_one_unless_it_is_the_same(tmp_path: Path) -> None:
    with serving("never") as server:
        texts: list[str] = []
        for said in ("one", "two"):
            with Store.open(tmp_path / f"{said}.db") as store:
                sender = Repository(store)
                sender.commit("talk", add_turn(sender.start(load_app("plain")), said, "Yes.", None), expected=None)
                texts.append("\n".join(store.export("talk", apps=True)))

        def send(text: str, **name: str) -> httpx.Response:
            return server.client.post("/api/import", json={"text": text, **name})

        assert [send(text).json()["sessions"] for text in (*texts, texts[0])] == [["talk"], ["imported-1"], ["talk"]]
        assert send(texts[1], name="talk").status_code == 409
        refused = send(texts[0].replace("Yes.", "No."))
        assert (refused.status_code, "was changed or damaged; nothing was imported" in refused.text) == (400, True)
        assert len(server.client.get("/api/conversations").json()) == 2
