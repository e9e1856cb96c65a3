"""An app that came with an import opens nothing until the user trusts it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from taiwa.apps.catalog import BUILT_IN
from taiwa.client.clients import Client as TaiwaClient
from taiwa.conversation.code_files import load_function
from tests.cli.conftest import ModelServer, Place, Taiwa
from tests.server.serving import serving

FRONT = "---\ntaiwa: 1\nname: foreign\n{keys}\n---\nTalk.\n"


@pytest.fixture
def foreign(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> Callable[..., str]:
    """Import a conversation with an app of these keys, which another store wrote; the name of the session is `gift`."""

    def make(keys: str, *options: str) -> str:
        path, other, file = (
            apps("foreign", FRONT.format(keys=keys)),
            place.folder / "other.db",
            place.folder / "gift.jsonl",
        )
        model_server("Hello!")
        taiwa.ok("say", "foreign", "Hi", "--store", str(other), "-m", model_server.model)
        taiwa.ok("export", "foreign-1", "-o", str(file), "--store", str(other))
        path.unlink()
        return taiwa.ok("import", str(file), "gift", *options).err

    return make


def evil(server: ModelServer) -> str:
    return f'model: "{server.url}#evil"'


def test_the_model_of_an_imported_app_is_not_asked(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    warned = foreign(evil(model_server))
    model_server("A", "B")
    taiwa.ok("say", "-s", "gift", "with a configured model")
    place.set(attempts=1)

    answered = taiwa.ok("say", "-s", "gift", "one more")

    assert [request["model"] for request in model_server.requests] == ["test-model"] * 2
    assert "taiwa apps trust foreign" in warned
    assert "is not trusted: its model, tools and documents are ignored" in answered.err


def test_without_a_configured_model_no_other_answers_an_imported_app(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    foreign(evil(model_server))
    place.set(attempts=1)
    before = len(model_server.requests)

    assert "no model is set" in taiwa("say", "-s", "gift", "Hi").err
    assert len(model_server.requests) == before


def test_a_trusted_app_is_asked_at_its_model(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    foreign(evil(model_server))
    model_server("A")
    place.set(attempts=1)

    shown = taiwa.ok("apps", "trust", "foreign", "--yes").out
    taiwa.ok("say", "-s", "gift", "Hi")

    assert shown.splitlines()[1] == f"  model: {model_server.url}#evil (every text is sent to 127.0.0.1)"
    assert [request["model"] for request in model_server.requests][-1] == "evil"
    assert taiwa.ok("apps", "trust").out == "all apps are trusted\n"


def test_trust_needs_a_confirmation(taiwa: Taiwa, model_server: ModelServer, foreign: Callable[..., str]) -> None:
    foreign(evil(model_server))

    refused = taiwa("apps", "trust", "foreign")
    unknown = taiwa("apps", "trust", "other")

    assert (refused.code, refused.err) == (2, "taiwa: trusting an app requires a confirmation; add --yes\n")
    assert unknown.err == "taiwa: no untrusted app is named 'other'; `taiwa apps trust` lists them\n"
    assert [row["host"] for row in taiwa.ok("apps", "trust", "--json").json] == ["127.0.0.1"]


def test_an_import_can_be_trusted_at_once(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    foreign(evil(model_server), "--trust", "--yes")

    assert taiwa.ok("apps", "trust").out == "all apps are trusted\n"


def test_an_import_is_never_the_latest_conversation(
    taiwa: Taiwa, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    foreign("about: nothing")

    assert taiwa("say", "-c", "Hi").code == 2
    model_server("Mine.", "Mine again.")
    taiwa.ok("say", "Hi")

    assert taiwa.ok("say", "-c", "--json", "Hi").json["session"] == "plain-1"


def test_an_imported_app_gets_no_tools(taiwa: Taiwa, model_server: ModelServer, foreign: Callable[..., str]) -> None:
    foreign("tools: [calculator]")
    model_server("A", "B")

    taiwa.ok("say", "-s", "gift", "Hi")
    taiwa.ok("apps", "trust", "gift", "--yes")
    taiwa.ok("say", "-s", "gift", "Hi again")

    assert ["calculator" in json.dumps(request) for request in model_server.requests[-2:]] == [False, True]


def test_an_imported_app_searches_no_documents(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    secret = place.folder / "secret"
    secret.mkdir()
    (secret / "key.md").write_text("# Key\n\nThe key is swordfish.\n")
    other, file = place.folder / "other.db", place.folder / "gift.jsonl"
    asked = ("ask", "What is the key?", "--in", str(secret), "--as", "group:hr", "--store", str(other))
    taiwa(*asked)
    taiwa.ok("export", "ask-1", "-o", str(file), "--store", str(other))
    taiwa.ok("import", str(file), "gift")

    refused = taiwa("ask", "What is the key?", "-s", "gift")

    assert refused.code == 2
    assert refused.err.endswith(
        "taiwa: the app 'ask' was imported and may not search documents; see `taiwa apps trust ask`\n"
    )
    shown = taiwa.ok("apps", "trust").lines
    assert shown[0].startswith("ask (")
    assert shown[1:] == ["  documents: secret", "  searches as: group:hr"]


def test_an_app_names_a_user_and_never_a_file(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    keys = place.config.parent / "keys.json"
    keys.parent.mkdir(parents=True, exist_ok=True)
    keys.write_text('{"OPENAI_API_KEY": "sk-1"}')

    refused = taiwa("chat", "ask", "-p", f"user={keys}", input="Hi\n")

    assert refused.code == 1
    assert "is not a user of the store" in refused.err


def test_a_profile_in_a_file_is_stored_as_a_user(taiwa: Taiwa, place: Place) -> None:
    file = place.folder / "ann.yaml"
    file.write_text("name: ann\noffice: Galway\n")

    taiwa("ask", "How many days of annual leave do I have?", "--user", str(file))

    assert taiwa.ok("user", "show", "ann", "--json").json["facts"] == {"office": "Galway"}


def test_an_own_app_of_the_same_text_is_trusted(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path], foreign: Callable[..., str]
) -> None:
    foreign(evil(model_server))
    apps("foreign", FRONT.format(keys=evil(model_server)))
    model_server("A")
    place.set(attempts=1)

    taiwa.ok("say", "foreign", "Hi")

    assert model_server.requests[-1]["model"] == "evil"


def test_an_imported_app_that_is_updated_to_a_file_of_its_name_searches_no_documents(
    taiwa: Taiwa, place: Place, apps: Callable[[str, str], Path]
) -> None:
    secret = place.folder / "secret"
    secret.mkdir()
    (secret / "key.md").write_text("# Key\n\nThe key is swordfish.\n")
    other, file = place.folder / "other.db", place.folder / "gift.jsonl"
    older = apps("ask", (BUILT_IN / "ask.md").read_text(encoding="utf-8") + "\nAn older text.\n")
    taiwa("ask", "What is the key?", "--in", str(secret), "--as", "group:hr", "--store", str(other))
    taiwa.ok("export", "ask-1", "-o", str(file), "--store", str(other))
    older.unlink()
    taiwa.ok("import", str(file), "gift")

    refused = taiwa("apps", "update", "gift")

    assert refused.code == 2
    assert refused.err.endswith(
        "taiwa: the app 'ask' was imported; trust it before updating it: taiwa apps trust ask\n"
    )
    assert taiwa("ask", "What is the key?", "-s", "gift").code == 2


def test_an_imported_app_is_not_saved_as_an_own_one(
    taiwa: Taiwa, place: Place, model_server: ModelServer, foreign: Callable[..., str]
) -> None:
    foreign(evil(model_server))

    refused = taiwa("apps", "save", "mine", "gift")

    assert (refused.code, refused.err) == (
        2,
        "taiwa: the app 'foreign' was imported; trust it before saving it: taiwa apps trust foreign\n",
    )
    assert not (place.config.parent / "apps" / "mine.md").exists()
    taiwa.ok("apps", "trust", "gift", "--yes")
    taiwa.ok("apps", "save", "mine", "gift")


def test_an_imported_app_runs_no_program_though_its_file_was_confirmed(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path], foreign: Callable[..., str]
) -> None:
    own = apps("own", FRONT.format(keys="flow: desk.py:turn").replace("foreign", "own"))
    ran = place.folder / "ran"
    (own.parent / "desk.py").write_text(
        "from pathlib import Path\n\nfrom taiwa.kernel.effects import notify\n\n\n"
        "def turn(conversation, text):\n"
        f'    with Path({str(ran)!r}).open("a") as file:\n        file.write(conversation.app.name)\n'
        '    yield from notify("run")\n    return "Done."\n'
    )
    taiwa.ok("apps", "confirm", "own", "--yes")
    foreign("flow: desk.py:turn")
    ran.unlink()

    refused = taiwa("say", "-s", "gift", "Hi")
    changed = taiwa("say", "-s", "gift", "--max-tokens", "9", "Hi")

    assert refused.err.endswith(
        "the app 'foreign' was imported and may not run a program; see `taiwa apps trust foreign`\n"
    )
    assert "trust it before changing its options" in changed.err
    assert taiwa("say", "-s", "gift", "--dry-run", "Hi").code == 2
    assert (refused.code, changed.code, ran.exists()) == (2, 2, False)
    assert "  program: desk.py@" in taiwa.ok("apps", "trust").out
    taiwa.ok("apps", "trust", "gift", "--yes")
    taiwa.ok("say", "-s", "gift", "Hi")
    assert ran.read_text() == "foreign"


def test_an_app_whose_code_is_not_here_can_be_imported_and_read(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path], foreign: Callable[..., str]
) -> None:
    own = apps("own", "")
    (own.parent / "far.py").write_text(
        "from typing import TypedDict\n\nimport taiwa\nfrom taiwa.programs import DefaultTurn\n\n\nclass Order(TypedDict):\n    cups: int\n\n\n"
        '@taiwa.tool\ndef price(tea: str) -> int:\n    """Price of a tea."""\n    return 3\n\n\n'
        "def turn(conversation, text):\n    return (yield DefaultTurn(text))\n"
    )
    keys = "answer: far.py:Order\ntools: [far.py:price]\nflow: far.py:turn"
    own.write_text(FRONT.format(keys=keys).replace("foreign", "own"))
    model_server('{"cups": 2}')
    taiwa.ok("apps", "confirm", "own", "--yes")
    taiwa.ok("say", "own", "Two teas")
    taiwa.ok("export", "own-1", "-o", str(place.folder / "gift.jsonl"))

    shutil.rmtree(place.config.parent / "code")
    load_function.cache_clear()
    taiwa.ok("import", str(place.folder / "gift.jsonl"), "gift", "--store", str(place.folder / "new.db"))

    elsewhere = ("--store", str(place.folder / "new.db"))
    assert '{"cups": 2}' in taiwa.ok("log", "gift", *elsewhere).out
    assert "every state has its recorded hash" in taiwa.ok("replay", "gift", *elsewhere).out
    taiwa.ok("apps", "trust", "gift", "--yes", *elsewhere)
    refused = taiwa("say", "-s", "gift", "Three", *elsewhere)
    assert (refused.code, "far.py (sha256" in refused.err, refused.err.count("\n")) == (2, True, 1)


def test_an_imported_app_runs_no_file_of_a_type_though_it_was_named_earlier(
    taiwa: Taiwa, place: Place, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    ran, code = place.folder / "ran", place.folder / "orders.py"
    code.write_text(
        f"from pathlib import Path\nfrom typing import TypedDict\n\nPath({str(ran)!r}).touch()\n\n\n"
        "class Order(TypedDict):\n    name: str\n"
    )
    other, file = place.folder / "other.db", place.folder / "gift.jsonl"
    app = apps("foreign", FRONT.format(keys="about: orders"))
    model_server('{"name": "tea"}', '{"name": "tea"}', '{"name": "tea"}')
    taiwa.ok("say", "foreign", "Tea", "--type", f"{code}:Order", "--store", str(other))
    taiwa.ok("export", "foreign-1", "-o", str(file), "--store", str(other))
    app.unlink()
    ran.unlink()
    del sys.modules["orders"]
    taiwa.ok("import", str(file), "gift")

    answered = taiwa.ok("say", "-s", "gift", "Tea")

    assert (answered.out, ran.exists()) == ('{"name": "tea"}\n', False)
    taiwa.ok("apps", "trust", "gift", "--yes")
    taiwa.ok("say", "-s", "gift", "Tea")
    assert ran.exists()


INTERRUPTED = """
import os
from taiwa import settings
from taiwa.sessions.commit_turn import TurnInput, TurnOptions, begin_turn
from taiwa.sessions.repository import Repository
from taiwa.sessions.session import open_priced_model
from taiwa.store import Store

chosen = settings.load()
repository = Repository(Store.open(chosen.store))
begin_turn(repository, "gift", TurnInput(repository.at("gift"), "Hi"), open_priced_model(None, chosen), TurnOptions())
os._exit(0)
"""
DOORS = (
    "say -s gift Hi", "chat -s gift", "batch plain rows.txt --mode fold -s gift --resume", "retry gift", "edit gift:1 Hello",
    "replay gift", "rerun gift --as again", "rerun gift --as again --app plain", "resume gift", "say -s fork Hi", "say -s gift --max-tokens 9 Hi",
    "apps update gift", "apps save mine gift", "python", "server turns", "server resume", "server conversation", "server previous", "server again",
    "server thread", "server mcp",
)  # fmt: skip


def _ask_server(place: Place, how: str) -> None:
    """Let a client of a server go on with the imported conversation in every protocol that may name it."""
    with serving(*"ABC", store=str(place.store)) as server:
        tip = server.repository.at("gift").tip
        said = {"id": "1", "role": "user", "content": "Hi"}
        call = {"name": "ask", "arguments": {"question": "Hi", "conversation": "gift"}}
        requests: dict[str, tuple[str, dict[str, object]]] = {
            "turns": ("/api/conversations/gift/turns", {"text": "Hi"}),
            "resume": ("/api/conversations/gift/resume", {}),
            "conversation": ("/v1/responses", {"model": "scripted", "input": "Hi", "conversation": "gift"}),
            "previous": ("/v1/responses", {"model": "scripted", "input": "Hi", "previous_response_id": tip}),
            "again": ("/api/conversations/gift/turns", {"text": "Hi", "edit": 1}),
            "thread": (
                "/ag-ui",
                {"threadId": "gift", "runId": "1", "messages": [said], "state": {}, "tools": [], "context": []},
            ),
            "mcp": ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}),
        }
        path, body = requests[how]
        answer = server.client.post(path, json=body)
        if answer.status_code == 202:
            server.client.get(f"/api/runs/{answer.json()['run']}/events")

        assert answer.status_code < 500, answer.text
        assert not any(request.tools for request in server.model.requests)
        assert server.model.requests or how in ("conversation", "previous", "mcp"), answer.text


@pytest.mark.parametrize("door", DOORS)
def test_no_door_asks_the_model_or_offers_the_tools_of_an_imported_app(
    taiwa: Taiwa,
    place: Place,
    model_server: ModelServer,
    foreign: Callable[..., str],
    door: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place.folder)
    (place.folder / "rows.txt").write_text("Hi\nHello\n")
    foreign(f"{evil(model_server)}\ntools: [calculator]")
    model_server(
        *"ABCDEF", capabilities={model_server.model: {"tools": True}, f"{model_server.url}#evil": {"tools": True}}
    )
    before = len(model_server.requests)
    if "resume " in f"{door} ":
        subprocess.run([sys.executable, "-c", INTERRUPTED], env=place.environment(), check=True)
    match door.split():
        case ["python"]:
            with TaiwaClient(store=str(place.store)) as client:
                client.session(name="gift").say("Hi")
        case ["server", how]:
            _ask_server(place, how)
        case words:
            taiwa("fork", "gift", "fork")
            done = taiwa(*words, input="Hi\n" if words[0] == "chat" else "")
            assert done.code == 0 or "the app 'foreign' was imported" in done.err or "has another app" in done.err, done

    asked = [(request["model"], "calculator" in json.dumps(request)) for request in model_server.requests[before:]]
    assert set(asked) <= {("test-model", False)}
