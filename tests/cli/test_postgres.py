"""The same commands on a PostgreSQL server, whose password no command shows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta
from tests.database import Database

CANARY = "canary-7d1f0a5c93b24e68"


@pytest.fixture
def url(database: Database, place: Place, monkeypatch: pytest.MonkeyPatch) -> str:  # after the place, which sets a file
    """The address of an empty database, with a password, set as a person would."""
    address = database.url.replace("taiwa@", f"taiwa:{CANARY}@")
    monkeypatch.setenv("TAIWA_STORE", address)
    return address


@pytest.fixture
def ok(taiwa: Taiwa) -> Callable[..., str]:
    """Runs a command that goes well and shows no password."""

    def run(*words: str, **given: str) -> str:
        result = taiwa.ok(*words, **given)
        assert CANARY not in result.out + result.err
        return result.out

    return run


@pytest.mark.usefixtures("url")
def test_a_conversation_is_continued_on_another_machine(
    ok: Callable[..., str], taiwa: Taiwa, model_server: ModelServer, place: Place
) -> None:
    model_server(delta("Hello!", topics=["greeting"]), delta("Kyoto."), delta("Nara."))
    ok("say", "chat", "Hi")
    ok("say", "-c", "京都はどこ?")
    ok("retry")

    assert "Nara." in ok("show", "chat-1")
    assert "greeting" in ok("state", "-s", "chat-1", "--json")
    ok("undo")
    ok("redo")
    ok("fork", "other")
    assert "京都" in ok("search", "京都")
    assert taiwa.ok("cost", "--json").json
    exported = place.folder / "one.jsonl"
    exported.write_text(ok("export", "chat-1"), encoding="utf-8")
    ok("delete", "other", "--yes")
    assert "log" in ok("delete", "chat-1", "--yes")
    ok("import", str(exported))
    assert "Nara." in ok("show", "chat-1")
    assert "every hash is right" in ok("fsck")
    ok("gc")
    assert not place.store.exists()


@pytest.mark.usefixtures("url")
def test_documents_are_indexed_and_found_there(ok: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "leave.md").write_text("# 休暇\n\n有給休暇は年に十日です。", encoding="utf-8")

    assert "1 new" in ok("index", str(folder))
    assert "十日" in ok("find", "有給休暇")
    assert "documents" in ok("index", "list")
    ok("index", "remove", "documents")


def test_the_password_of_a_server_is_never_shown(taiwa: Taiwa, place: Place, url: str) -> None:
    shown = taiwa.ok("config", "show", "--json")
    assert shown.json["store"]["value"].startswith("postgresql://taiwa@/of_")
    changed = taiwa.ok("config", "set", "store", url)
    assert url in place.config.read_text()
    wrong = taiwa("log", "--store", f"postgresql://ann:{CANARY}@127.0.0.1:1/x")
    none = taiwa("log", "--store", f"postgresql://ann:{CANARY}/@127.0.0.1:1/x")

    assert "the server postgresql://ann@127.0.0.1:1/x cannot be reached" in wrong.err
    assert (none.code, none.err.count("\n")) == (2, 1)
    for result in (shown, changed, wrong, none):
        assert CANARY not in result.out + result.err
