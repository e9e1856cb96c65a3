"""Calls of tools that need approval: asked for on a terminal, refused in a pipe."""

from pathlib import Path

import pytest

from tests.cli.conftest import ModelServer, Taiwa
from tests.cli.terminal import Terminal

TOOL = '''\
from pathlib import Path

import taiwa


@taiwa.tool(confirm=True)
def delete_all(folder: str) -> str:
    """Delete all files of a folder."""
    Path(__file__).with_name("deleted").write_text(folder)
    return "deleted"
'''
CALL = "I will. <<delete_all: /tmp>>"


@pytest.fixture
def shop(model_server: ModelServer, tmp_path: Path) -> Path:
    """A file with a tool that needs approval, and a model that calls it."""
    file = tmp_path / f"shop_{tmp_path.name}.py"
    file.write_text(TOOL)
    model_server(CALL, " Done.", " Done.", " Done.")
    return file


def deleted(shop: Path) -> bool:
    return shop.with_name("deleted").exists()


def test_a_call_that_needs_approval_is_refused_in_a_pipe_and_resumed_with_one(
    shop: Path, taiwa: Taiwa, model_server: ModelServer
) -> None:
    refused = taiwa("say", "-s", "k", "--tool", f"{shop}:delete_all", "Clean up.")

    assert refused.code == 2
    assert refused.err.splitlines()[-1].startswith('taiwa: approval is required for delete_all({"folder": "/tmp"}); ')
    assert "--approve always" in refused.err
    assert not deleted(shop)

    resumed = taiwa.ok("resume", "k", "--tool", f"{shop}:delete_all", "--approve", "always")

    assert "Done." in resumed.out
    assert deleted(shop)
    assert len(model_server.requests) == 2


@pytest.mark.parametrize(("mode", "made"), [("always", True), ("never", False)])
def test_all_calls_or_none_are_approved(mode: str, made: bool, shop: Path, taiwa: Taiwa) -> None:
    taiwa.ok("say", "--tool", f"{shop}:delete_all", "--approve", mode, "Clean up.")

    assert deleted(shop) == made


@pytest.mark.parametrize(("reply", "made"), [("y\n", True), ("\n", False), ("n\n", False), ("\x04", False)])
def test_a_call_is_shown_and_asked_for_on_a_terminal(reply: str, made: bool, shop: Path, taiwa: Taiwa) -> None:
    with Terminal(taiwa.place.environment(), "say", "--tool", f"{shop}:delete_all", "Clean up.") as terminal:
        terminal.see("a tool that needs approval")
        terminal.see("delete_all")
        terminal.see('folder: "/tmp"')
        terminal.see("call it?")
        terminal.type(reply)
        terminal.see("Done.")
        assert terminal.end() == 0

    assert deleted(shop) == made


def test_a_rationale_asks_for_approval_too(shop: Path, taiwa: Taiwa) -> None:
    refused = taiwa("solve", "--tool", f"{shop}:delete_all", "Clean up.")

    assert refused.code == 2
    assert "approval is required for delete_all" in refused.err
    assert not deleted(shop)
