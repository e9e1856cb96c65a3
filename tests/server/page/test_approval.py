"""A turn that waits for the approval of a tool call, on the page."""

from pathlib import Path

import pytest

from taiwa.tools.calculator import calculator
from tests.server.page.conftest import OpenTab
from tests.server.serving import serving
from tests.server.test_approval import calling_model


@pytest.mark.parametrize("yes", ["1", "0"])
def test_a_call_that_needs_approval_is_shown_with_buttons(
    yes: str, open_tab: OpenTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calculator, "confirm", True)
    app = tmp_path / "desk.md"
    app.write_text("---\ntaiwa: 1\ntools: [calculator]\n---\nAnswer.\n")

    with serving(model=calling_model(), apps=(str(app),)) as server:
        tab = open_tab(server)
        tab.begin_only("6*7?", "desk")
        tab.has(".unfinished code", 'calculator({"expression": "6*7"})')
        tab.count(".ways button", 2)
        tab.page.reload()
        tab.has(".unfinished code", "calculator")
        tab.page.click(f".unfinished [data-yes='{yes}']")
        tab.has(".turn .answer", "It is 42.")
        tab.count(".unfinished", 0)
        tab.page.goto("about:blank")
        result = str(server.model.requests[-1].messages[-1])

    assert ("the user refused" in result) == (yes == "0")
