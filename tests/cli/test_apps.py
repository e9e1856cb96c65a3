"""`taiwa apps`: what is there, a file to begin with, every fault with its mend, and the exact request."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Place, Taiwa, delta

BROKEN = "---\ntaiwa: 1\nname: tutor\nstat:\n  level: { type: int }\nwindow: { max_size: 3, keep: 7 }\n---\nTeach {{topic}}.\n"


def test_own_apps_come_before_built_in_ones(taiwa: Taiwa, apps: Callable[[str, str], Path]) -> None:
    apps("chat", "---\ntaiwa: 1\nname: chat\nabout: Mine\n---\nTalk.\n")
    apps("broken", BROKEN)

    rows = {row["app"]: row for row in taiwa.ok("apps", "list", "--json").json}

    assert set(rows) == {
        "ask",
        "broken",
        "chat",
        "code",
        "extract",
        "linguistic",
        "novel",
        "order",
        "plain",
        "solve",
        "translate",
    }
    assert (rows["chat"]["origin"], rows["chat"]["about"]) == ("yours", "Mine")
    assert rows["broken"]["problem"]
    assert taiwa.ok("apps", "list").lines[0].split() == ["app", "origin", "about"]


def test_a_new_app_is_valid_and_can_be_used(taiwa: Taiwa, model_server: ModelServer, place: Place) -> None:
    model_server(delta("Hello!"))

    made = taiwa.ok("apps", "new", "tutor")

    path = place.config.parent / "apps" / "tutor.md"
    assert made.out == f"{path}\n"
    assert taiwa.ok("apps", "check", "tutor").out == f"{path}: no errors\n"
    assert taiwa("apps", "new", "tutor").code == 2


def test_every_problem_is_listed_with_its_line(taiwa: Taiwa, apps: Callable[[str, str], Path]) -> None:
    path = apps("tutor", BROKEN)

    checked = taiwa("apps", "check", "tutor")

    assert checked.code == 2
    assert f"{path}:4" in checked.out
    assert "did you mean" in checked.out
    assert checked.err.endswith("the app cannot be opened\n")
    data = taiwa("apps", "check", "tutor", "--json").json
    assert {4, 6} <= {problem["line"] for problem in data["problems"]}


def test_a_broken_app_is_not_opened_and_its_line_is_named(
    taiwa: Taiwa, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    path = apps("tutor", BROKEN)
    model_server(delta("Hello!"))

    result = taiwa("say", "tutor", "Hi")

    assert result.code == 2
    assert f"{path}:" in result.err
    assert not model_server.requests


def test_a_yaml_bomb_is_one_line(taiwa: Taiwa, apps: Callable[[str, str], Path]) -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    apps("bomb", f"---\n{bomb}---\nTalk.\n")

    done = taiwa("apps", "render", "bomb")

    assert done.code == 2
    assert len(done.err) < 2_000


def test_the_exact_request_of_a_first_turn_is_shown(taiwa: Taiwa) -> None:
    shown = taiwa.ok("apps", "render", "translate", "-p", "target_lang=German", "文です。").out

    assert "into German" in shown
    assert "文です。" in shown
    data = taiwa.ok("apps", "render", "translate", "-p", "target_lang=German", "--json").json
    assert data["cached_tokens"] == 0
    assert data["tokens"] > 300


def test_an_unknown_app_is_an_error(taiwa: Taiwa) -> None:
    done = taiwa("apps", "check", "translte")

    assert done.code == 2
    assert done.err == "taiwa: app 'translte' not found; did you mean 'translate'?\n"


def test_an_app_file_of_this_folder_is_suggested_by_its_path(
    taiwa: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.md").write_text("---\ntaiwa: 1\n---\nTeach.\n")
    monkeypatch.chdir(tmp_path)

    done = taiwa("say", "mine", "Hi")

    assert (done.code, done.err) == (2, "taiwa: app 'mine' not found; did you mean the file mine.md?\n")


def test_a_conversation_says_that_its_app_file_was_changed_and_can_take_it(
    taiwa: Taiwa, model_server: ModelServer, apps: Callable[[str, str], Path]
) -> None:
    text = "---\ntaiwa: 1\nname: tutor\n---\nTeach.\n"
    apps("tutor", text)
    model_server("A.", "B.", "C.")
    first = taiwa.ok("say", "tutor", "-s", "t", "Hi")
    apps("tutor", text.replace("Teach.", "Teach well."))

    second = taiwa.ok("say", "-s", "t", "Hi")
    updated = taiwa.ok("apps", "update", "t")
    again = taiwa.ok("apps", "update")
    third = taiwa.ok("say", "-s", "t", "Hi")

    assert first.err == third.err == ""
    assert second.err.endswith("t keeps the old text until: taiwa apps update t\n")
    assert (updated.out, again.out) == (
        "t now uses the current app file\n", "the app file of t has not changed\n"
    )  # fmt: skip
    systems = [request["messages"][0]["content"] for request in model_server.requests]
    assert systems == ["Teach.", "Teach.", "Teach well."]


def test_an_app_of_a_path_is_not_taken_for_the_built_in_one_of_its_name(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "order.md"
    file.write_text("---\ntaiwa: 1\n---\nTake orders.\n")
    model_server("A.", "B.")

    taiwa.ok("say", str(file), "-s", "t", "Hi")

    assert taiwa.ok("say", "-s", "t", "Hi").err == ""


def test_an_app_that_was_opened_by_its_path_can_be_changed_too(
    taiwa: Taiwa, model_server: ModelServer, tmp_path: Path
) -> None:
    text, file = "---\ntaiwa: 1\nname: mine\n---\nTeach.\n", tmp_path / "mine.md"
    file.write_text(text)
    model_server("A.", "B.", "C.")
    taiwa.ok("say", str(file), "-s", "t", "Hi")
    file.write_text(text.replace("Teach.", "Teach well."))

    second = taiwa.ok("say", str(file), "-s", "t", "Hi")
    unnamed = taiwa("apps", "update", "t")
    updated = taiwa.ok("apps", "update", "t", str(file))
    third = taiwa.ok("say", str(file), "-s", "t", "Hi")

    assert unnamed.err == "taiwa: app 'mine' not found among your apps; name its file: taiwa apps update t FILE\n"
    assert second.err.endswith(f"t keeps the old text until: taiwa apps update t {file}\n")
    assert updated.out == "t now uses the current app file\n"
    assert third.err == ""
    assert [request["messages"][0]["content"] for request in model_server.requests] == [
        "Teach.",
        "Teach.",
        "Teach well.",
    ]
    assert taiwa("apps", "update", "t", str(tmp_path / "gone.md")).code == 2
