"""`taiwa laws` on what holds and on what does not."""

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Taiwa


def test_the_laws_of_an_app_are_tried_and_counted(taiwa: Taiwa) -> None:
    result = taiwa.ok("laws", "translate", "-n", "5", "--json")

    assert result.json["laws"]
    assert all(row["ok"] and row["examples"] >= 1 for row in result.json["laws"])


def test_a_name_without_laws_is_an_error(taiwa: Taiwa) -> None:
    result = taiwa("laws", "nothing-of-that-name")

    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "nothing-of-that-name" in result.err


def test_the_laws_of_a_file_can_be_tried(taiwa: Taiwa, apps: Callable[[str, str], Path]) -> None:
    path = apps(
        "list", "---\ntaiwa: 1\nname: list\nstate:\n  items: { type: 'list[str]', reduce: union }\n---\nKeep a list."
    )

    result = taiwa.ok("laws", str(path), "-n", "5")

    assert "union" in result.out or "items" in result.out
