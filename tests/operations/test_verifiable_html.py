"""The export that verifies itself, opened as a file in a genuine browser."""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

import taiwa
from taiwa.i18n import LANGUAGES, translator
from taiwa.kernel.errors import ConfigError
from taiwa.operations import markdown_html
from taiwa.operations.export import export
from tests.browser import chromium

ANSWER = 'Hello </script><!-- <b>bold</b> 日本語 😀 & "quoted"\r\nline\n@@delta\n{"topics": ["tea"]}'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def exported() -> str:
    return written("verifiable")


def written(form: str, language: str = "en") -> str:
    with taiwa.open("chat", model=taiwa.scripted_model(*[ANSWER] * 4), store=":memory:") as session:
        session.say("Do you like tea?")
        session.say("x" * 1000)
        session.edit("<script>alert(1)</script>", turn=2)
        return export(session.repository, session.name, form, language=language)


def opened(browser: Any, folder: Path, html: str) -> tuple[Any, list[str]]:
    file = folder / "export.html"
    file.write_text(html, encoding="utf-8", newline="")
    page = browser.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(file.as_uri())
    return page, problems


def test_an_export_verifies_itself_and_loads_nothing(browser: Any, tmp_path: Path, exported: str) -> None:
    page, problems = opened(browser, tmp_path, exported)

    assert page.inner_text("#verdict").startswith("verified: 2 turns, 3 hashes")
    assert page.text_content("[data-field=user] >> nth=1") == "<script>alert(1)</script>"
    assert '"tea"' in page.text_content("[data-state]")
    assert problems == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Do you like tea?</div>", "Do you like gin?</div>", "the text of node"),
        ('\\"tea\\"', '\\"gin\\"', "was changed"),
        ('data-field="answer" dir="auto">Hello', 'data-field="answer" dir="auto">Hallo', "the text of node"),
        ("<article data-node=", "<article data-nothing=", "is not shown"),
    ],
)
def test_a_changed_export_names_what_was_changed(
    browser: Any, tmp_path: Path, exported: str, old: str, new: str, problem: str
) -> None:
    assert old in exported
    page, _ = opened(browser, tmp_path, exported.replace(old, new, 1))

    assert page.inner_text("#verdict").startswith("not verified")
    assert problem in page.inner_text("#verdict")


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_export_is_labelled_in_the_language_of_its_reader(browser: Any, tmp_path: Path, language: str) -> None:
    sentence = translator("cli", language)
    page, problems = opened(browser, tmp_path, written("verifiable", language))

    assert page.get_attribute("html", "lang") == language
    assert page.inner_text("#verdict").startswith(sentence("verified: {turns}, {hashes}, last node {node}")[:3])
    assert page.inner_text("summary") == sentence("State")
    assert f"<summary>{sentence('State')}</summary>" in written("html", language)
    assert f"## {sentence('State')}\n" in written("md", language)
    assert problems == []


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 255, 256, 257, 1000])
def test_the_script_computes_blake2b(browser: Any, tmp_path: Path, exported: str, length: int) -> None:
    page, _ = opened(browser, tmp_path, exported)
    text = "日本語a"[: length % 4] + "b" * (length - length % 4)

    assert page.evaluate("text => digest(text)", text) == blake2b(text.encode(), digest_size=16).hexdigest()


def test_an_export_is_written_where_no_process_can_render_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(_: object) -> dict[str, object]:
        raise ConfigError("the renderer needs Linux or macOS")

    monkeypatch.setattr(markdown_html, "_rendered", {})  # of other tests
    monkeypatch.setattr(markdown_html._processes, "ask", ask)

    assert "<pre>Hello &lt;/script&gt;" in written("html")
