"""What was imported into the store of a server gets no rights through a request."""

from taiwa.apps.catalog import load_app
from taiwa.sessions.repository import Repository
from taiwa.store import Store
from tests.server.serving import serving


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
