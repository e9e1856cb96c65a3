"""The notebook, the web application and the tested application of the examples, with answers as a model might write them."""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from starlette.testclient import TestClient

import taiwa
from tests.house.source import ROOT

EXAMPLES = ROOT / "examples"


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text("utf-8")

    for path in EXAMPLES.iterdir():
        if not path.name.startswith(("_", ".", "README")):
            assert f"({path.name}" in listed, path


def test_every_cell_of_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text("utf-8"))
    model = taiwa.scripted_model('{"drink": "green tea", "cups": 2}', 'Gladly.\n@@delta\n{"topics": ["tea", "coffee"]}')
    client = taiwa.Client
    monkeypatch.setattr(taiwa, "Client", lambda **options: client(model, **options))
    names: dict[str, object] = {}
    printed = io.StringIO()

    with contextlib.redirect_stdout(printed):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)

    assert "topics = ['tea', 'coffee'] | turn 1" in printed.getvalue()
    assert all(not cell.get("outputs") for cell in notebook["cells"])


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ModuleType]:
    spec = spec_from_file_location("web_app", EXAMPLES / "web-app" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["web_app"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["web_app"]


def served(web: ModuleType, store: Path, *answers: str | Exception) -> TestClient:
    """Open the application with a model that gives these answers."""
    client = taiwa.AsyncClient(taiwa.scripted_model(*answers), store=store / "store.db")
    web.app.dependency_overrides[web.opened] = lambda: client
    return TestClient(web.app)


def test_the_web_application_reads_orders_and_keeps_chats(web: ModuleType, tmp_path: Path) -> None:
    turn = 'Two teas.\n@@delta\n{"items": {"1": {"name": "green tea", "quantity": 2, "options": []}}}'
    http = served(web, tmp_path, '{"value": [{"drink": "tea", "cups": 2}]}', turn)

    order = http.post("/orders", json={"text": "Two teas"})
    chat = http.post("/chats/mina", json={"text": "Two green teas, please."})
    why = http.get("/chats/mina/why/items.1.quantity")

    assert order.json() == [{"drink": "tea", "size": "medium", "cups": 2}]
    assert chat.json()["state"]["items"]["1"]["name"] == "green tea"
    assert why.json() == {"value": 2, "turn": 1, "said": ["Two green teas, please."]}
    assert http.get("/chats/ken/why/items").status_code == 404


def test_an_error_of_the_model_is_one_line_of_the_web_application(web: ModuleType, tmp_path: Path) -> None:
    http = served(web, tmp_path, taiwa.OverloadedError("the model is busy"))

    answer = http.post("/chats/mina", json={"text": "Two green teas, please."})

    assert (answer.status_code, answer.json()) == (502, {"error": "the model is busy"})


@pytest.mark.slow
def test_the_tests_of_the_tested_application_pass(real_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "examples/tested-app", "-p", "no:cacheprovider"],
        check=False, capture_output=True, text=True, cwd=ROOT, env=real_environment,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert "rootdir: " + str(EXAMPLES / "tested-app") in done.stdout  # without what the tests of taiwa install
    assert "5 passed" in done.stdout
