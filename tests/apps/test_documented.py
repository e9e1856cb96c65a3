"""The example of the document is an app without problems, and every key is explained."""

import re
from pathlib import Path

import pytest

from taiwa.apps import app_file
from taiwa.apps.app_file import read_app

DOCUMENT = Path(__file__).parents[2] / "docs" / "apps.md"


@pytest.fixture(scope="module")
def text() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_complete_example_is_an_app_without_problems(text: str) -> None:
    found = re.search(r"````markdown\n(.*?)````\n", text, re.DOTALL)
    assert found is not None

    app, faults = read_app(found[1], "kitchen")

    assert faults == ()
    assert app is not None
    assert app.with_params({}).instructions.startswith("You plan meals for 2 people.")


@pytest.mark.parametrize(
    "key",
    [
        *app_file.TOP,
        *app_file.FIELD,
        *app_file.PARAM,
        *app_file.WINDOW,
        "user",
        "answer",
        "delta",
    ],
)
def test_every_key_is_explained(text: str, key: str) -> None:
    explained = text.partition("## The parts")[2]

    assert re.search(rf"`[^`\n]*\b{key}\b[^`\n]*`", explained)
