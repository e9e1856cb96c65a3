from pathlib import Path

import pytest

from taiwa.apps.catalog import (
    BUILT_IN,
    BUILT_IN_TEXTS,
    apps,
    check,
    find_path,
    load,
    load_app,
    load_unchanged,
    new,
    user_folder,
)
from taiwa.kernel.errors import ConfigError

BUILT_IN_NAMES = ["ask", "chat", "code", "extract", "linguistic", "novel", "order", "plain", "solve", "translate"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAIWA_APPS", str(tmp_path / "apps"))


def test_the_built_in_apps_are_listed_with_their_line() -> None:
    listed = apps()

    assert [app.name for app in listed] == BUILT_IN_NAMES
    assert {app.origin for app in listed} == {"built-in"}
    assert all(app.about and not app.problem for app in listed)
    asked = {param.ask for app in listed for param in load(app.path).params if param.ask}
    assert {app.about for app in listed} | asked == set(BUILT_IN_TEXTS)


def test_an_app_of_ones_own_hides_the_built_in_one_of_its_name() -> None:
    mine = user_folder() / "chat.md"
    new(mine, "chat")

    listed = {app.name: app for app in apps()}

    assert (listed["chat"].origin, listed["chat"].path) == ("yours", mine)
    assert load_app("chat").about == "One line for the list of apps"
    assert find_path("code") == BUILT_IN / "code.md"


def test_a_broken_app_is_listed_with_its_problem_and_hides_no_other() -> None:
    folder = user_folder()
    folder.mkdir()
    (folder / "broken.md").write_text("Hello")
    (folder / "folder.md").mkdir()
    (folder / "notes.txt").write_text("not listed")
    (folder / ".hidden.md").write_text("not listed")

    listed = {app.name: app.problem for app in apps()}

    assert sorted(listed) == sorted([*BUILT_IN_NAMES, "broken", "folder"])
    assert listed["broken"].startswith(f"{folder / 'broken.md'}:1: the front matter is missing; ")
    assert "is a folder" in listed["folder"]


@pytest.mark.parametrize(
    ("named", "folder"),
    [
        ({}, "/home/me/.config/taiwa/apps"),
        ({"XDG_CONFIG_HOME": "/etc/me"}, "/etc/me/taiwa/apps"),
        ({"TAIWA_CONFIG": "/srv/t.yaml"}, "/srv/apps"),
        ({"TAIWA_APPS": "/srv/mine"}, "/srv/mine"),
    ],
)
def test_ones_own_apps_lie_beside_the_config_file_unless_a_variable_says_where(
    monkeypatch: pytest.MonkeyPatch, named: dict[str, str], folder: str
) -> None:
    monkeypatch.setattr("os.environ", {"HOME": "/home/me", **named})

    assert user_folder() == Path(folder)


def test_an_app_is_found_by_its_path_too(tmp_path: Path) -> None:
    path = new(tmp_path / "deep" / "down" / "mine.md", "mine")

    assert load_app(str(path)).name == "mine"


def test_an_unknown_app_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"^app 'transalte' not found; did you mean 'translate'\?$"):
        load_app("transalte")
    with pytest.raises(
        ConfigError,
        match=r"^app 'x' not found; the apps are ask, chat, code, extract, linguistic, novel, order, plain, solve, translate$",
    ):
        load_app("x")


@pytest.mark.parametrize("name", ["mine", "null", "1", "日本語", "a.b-c_d", "NAME", "true"])
def test_a_new_app_has_no_problem_and_opens(tmp_path: Path, name: str) -> None:
    path = new(tmp_path / f"{name}.md", name)

    assert check(path) == ()
    assert load(path).with_params({}).name == name


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("precious")

    with pytest.raises(ConfigError, match="already exists; choose another name"):
        new(path, "mine")

    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\nb", '"', "x" * 65, "-a"])
def test_an_invalid_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid app name"):
        new(tmp_path / "a.md", name)

    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"cannot be written \(.+\); choose another place$"):
        new(tmp_path / "file" / "a.md", "a")


def test_a_file_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    path.write_text("---\ntaiwa: 1\nabout: Tea.\n---\nSell tea.\n", encoding="utf-8")
    first = load_unchanged(str(path))
    assert load_unchanged(str(path)) is first
    path.write_text("---\ntaiwa: 1\nabout: Tea.\n---\nSell green tea.\n", encoding="utf-8")
    assert load_unchanged(str(path)).instructions == "Sell green tea."
