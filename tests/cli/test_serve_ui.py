"""`taiwa ui` and `taiwa demo --page`: the page of a server that is opened in a browser, or whose address is printed."""

import re
import signal
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from taiwa import settings as configured
from taiwa.cli import demo, serve
from taiwa.cli.demo import at_home
from taiwa.kernel.errors import ConfigError
from tests.cli.conftest import Place, Taiwa

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/login\?code=\S+")


def visit(url: str) -> httpx.Response:
    return httpx.get(url, timeout=300, follow_redirects=True)


def test_the_page_is_served_at_the_printed_address_until_it_is_interrupted(taiwa: Taiwa) -> None:
    process = taiwa.start("ui", "--no-browser", "--port", "0")
    assert process.stdout is not None
    with process:
        address = next(found[0] for line in process.stdout if (found := ADDRESS.search(line.decode())))
        with httpx.Client(follow_redirects=True, timeout=300) as client:
            assert 'id="text"' in client.get(address).text
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0


def test_the_key_of_the_server_is_kept_in_a_private_file(tmp_path: Path) -> None:
    settings = replace(configured.load(), path=tmp_path / "taiwa" / "config.yaml")
    key = serve.kept_key(settings)

    assert serve.kept_key(settings) == key
    assert len(key) > 20
    file = tmp_path / "taiwa" / "server.key"
    assert file.stat().st_mode & 0o77 == 0
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="delete it"):
        serve.kept_key(settings)


def test_the_browser_is_opened_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "get", lambda: None)
    monkeypatch.setattr(webbrowser, "open", opened.append)

    class Server:
        login_url = "http://127.0.0.1:1/login?code=x"

    start = serve.opener(Server())  # type: ignore[arg-type]
    assert start is not None
    start()
    thread: Any = getattr(start, "__self__")  # noqa: B009  (the bound method of a thread)
    thread.join(300)

    assert opened == [Server.login_url]


def test_without_a_window_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")

    assert not serve.has_browser()


def test_the_demonstration_shows_conversations_and_deletes_them(
    taiwa: Taiwa, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    folders: list[Path] = []

    def look(server: Any) -> Callable[[], None]:
        def visits() -> None:
            folders.append(server.state.repositories.of("").store.path)
            seen.append(visit(server.login_url).text)
            server.stop()

        return Thread(target=visits).start

    monkeypatch.setattr(demo, "CONVERSATIONS", demo.CONVERSATIONS[:2])
    monkeypatch.setattr(serve, "opener", look)
    result = taiwa("demo", "--page")

    assert result.code == 0, result.err
    assert ADDRESS.search(result.out)
    assert "annual leave do I have in Galway?" in seen[0]
    assert not folders[0].exists()
    assert not place.store.exists()


def test_every_prepared_conversation_can_be_held_without_a_model(taiwa: Taiwa, tmp_path: Path) -> None:
    with at_home(tmp_path):
        demo.prepare()
        log = taiwa.ok("log", "--tree").out

    assert [name for name in ("handbook", "hotel", "question-back") if f"← {name}" not in log] == []
    assert log.count(" turn ") == 4
