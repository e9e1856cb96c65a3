"""The documents show what the program prints: sessions are recorded anew, and every command has its place."""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from taiwa.cli.main import COMMANDS, SECTIONS, cli
from taiwa.kernel.usage_limits import Prices
from taiwa.models.providers import find_prices
from taiwa.settings import load
from tests.house.source import ROOT

SESSIONS = ROOT / "docs" / "sessions"
PAGES = [page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md") if page.name != "command-line.md"]
REFERENCE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def record() -> Any:
    """The recorder, which is a script and no part of the package."""
    spec = importlib.util.spec_from_file_location("record", ROOT / "docs" / "record.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["record"] = module
    spec.loader.exec_module(module)
    return module


def test_a_session_is_commands_with_the_answers_that_they_get(record: Any) -> None:
    script = (
        "# a remark\n#== first\n#> one\n#| more\n#> two\ntaiwa say x\n\n#! fails\ncat <<'END'\ntext\nEND\n#@ hidden\n"
    )

    said, here, hidden = record.steps(script)

    assert said == record.Step("first", "taiwa say x", ("one\nmore", "two"))
    assert here == record.Step("first", "cat <<'END'\ntext\nEND", fails=True)
    assert hidden == record.Step("first", "hidden", shown=False)


def test_a_record_that_differs_is_told(record: Any, tmp_path: Path) -> None:
    out = tmp_path / "a.out"
    out.write_text("$ taiwa state\ntopics: []\n", encoding="utf-8")

    assert "-topics: []" in record.stale(out, "$ taiwa state\ntopics: [1]\n")
    assert not list(record.stale(out, "$ taiwa state\ntopics: []\n"))
    assert list(record.stale(tmp_path / "new.out", "$ taiwa state\n"))


@contextmanager
def no_modules_of_temporary_folders() -> Iterator[None]:
    """Import files as a new process does: other tests write files with the same names."""

    def pop() -> dict[str, Any]:
        files = {name: Path(getattr(module, "__file__", None) or ROOT) for name, module in sys.modules.items()}
        place = Path(tempfile.gettempdir())
        found = [name for name, file in files.items() if file.is_relative_to(place) and not file.is_relative_to(ROOT)]
        return {name: sys.modules.pop(name) for name in found}

    before = pop()
    yield
    pop()
    sys.modules |= before


@pytest.mark.slow
def test_no_recorded_session_is_stale(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with no_modules_of_temporary_folders():
        stale = record.main(["--check", "--quick"])

    assert not stale, f"{capsys.readouterr().out}\nrun `make docs` and look at what changed"


def test_every_record_has_its_session_and_every_session_its_record() -> None:
    assert {path.stem for path in SESSIONS.glob("*.sh")} == {path.stem for path in SESSIONS.glob("*.out")}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_reference_and_in_another_document(name: str) -> None:
    assert f"| `taiwa {name}` |" in REFERENCE
    assert any(f"taiwa {name}" in page for page in PAGES)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_examples_of_its_use(name: str) -> None:
    command = cli.get_command(click.Context(cli, **cli.context_settings), name)

    assert command is not None
    assert f"taiwa {name}" in (command.help or "")


def test_the_settings_that_are_shown_can_be_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    path = tmp_path / "config.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")

    chosen = load(environ={"HOME": str(tmp_path)}, path=path)

    assert chosen.model == "openai:gpt-x"
    assert find_prices(chosen.models.prices, chosen.model) == Prices("0.25", "2.00", "0.025")


def test_every_command_stands_in_one_section() -> None:
    listed = [name for names in SECTIONS.values() for name in names]

    assert sorted(listed) == sorted(COMMANDS)
