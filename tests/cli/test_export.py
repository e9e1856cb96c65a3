"""Conversations as files: what is written can be read back, and a page for people is inert."""

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from taiwa.operations.export import inert_markdown
from tests.cli.conftest import ModelServer, Place, Taiwa, delta

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> \"'&\x1b[2J ```\n# head ~~~"


@pytest.fixture
def talked(taiwa: Taiwa, model_server: ModelServer) -> Taiwa:
    """`chat-1`: an innocent turn and a hostile one."""
    model_server(delta("こんにちは", topics=["tea"]), delta(HOSTILE, topics=[HOSTILE]))
    taiwa.ok("say", "chat", "やあ")
    taiwa.ok("say", "-c", HOSTILE)
    return taiwa


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_an_imported_conversation_equals_the_exported_one(talked: Taiwa, place: Place, tmp_path: Path) -> None:
    exported = talked.ok("export", "chat-1").out
    file = tmp_path / "chat-1.jsonl"
    file.write_text(exported)

    brought = talked.ok("import", str(file), "again", "--store", str(tmp_path / "other.db"))

    assert brought.out.splitlines()[-1] == "again: 2 turns, every hash is right"
    written = talked.ok("export", "again", "--store", str(tmp_path / "other.db")).out
    assert written.replace('"again"', '"chat-1"') == exported


def test_importing_the_same_conversation_twice_is_not_a_conflict(talked: Taiwa) -> None:
    exported = talked.ok("export", "chat-1").out

    assert talked.ok("import", "-", input=exported).out == "chat-1: 2 turns, every hash is right\n"


def test_a_dash_is_standard_output(talked: Taiwa, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    exported = talked.ok("export", "-o", "-")

    assert exported.out == talked.ok("export").out
    assert not Path("-").exists()


def test_calls_are_exported_on_request(talked: Taiwa, tmp_path: Path) -> None:
    exported = talked.ok("export", "chat-1", "--calls").out

    assert "input" in exported
    assert "input" not in talked.ok("export", "chat-1").out.replace('"input', "")
    talked.ok("import", "-", "--store", str(tmp_path / "other.db"), input=exported)


def test_a_page_shows_hostile_text_and_does_not_obey_it(talked: Taiwa, tmp_path: Path) -> None:
    file = tmp_path / "chat-1.html"

    talked.ok("export", "chat-1", "-o", str(file))

    page = Page(file.read_text())
    assert page.tags.isdisjoint({"script", "img", "iframe", "object", "link", "form"})
    assert not {name for name in page.attributes if name.startswith("on") or name in {"src", "action"}}
    assert "<script>alert(1)</script>" in page.text
    assert "default-src 'none'" in file.read_text()


def test_markdown_keeps_answers_and_shows_what_changed(talked: Taiwa) -> None:
    text = talked.ok("export", "chat-1", "--format", "md").out

    assert "> やあ\n\nこんにちは" in text
    assert '+ topics[0]: "tea"' in text
    assert "~ turns:" not in text
    fences = re.findall(r"^(`{3,})diff$", text, re.MULTILINE)
    assert max(map(len, fences)) > HOSTILE.count("`")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("export", "chat-1", "-o", "chat.txt"), "chat.txt: unknown suffix '.txt'; use one of .jsonl, .md, .html"),
        (("export", "chat-1", "-o", "/proc/x.md"), "cannot write /proc/x.md"),
        (("export", "chat-9"), "session 'chat-9' not found"),
        (("import", "/nowhere.jsonl"), "/nowhere.jsonl: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_is_one_line(talked: Taiwa, command: tuple[str, ...], line: str) -> None:
    done = talked(*command)

    assert done.code == 2
    assert line in done.err


def test_a_changed_line_is_refused_and_nothing_is_kept(talked: Taiwa, tmp_path: Path) -> None:
    lines = talked.ok("export", "chat-1").out.splitlines()
    changed = [line.replace("こんにちは", "さようなら") for line in lines]
    other = ("--store", str(tmp_path / "other.db"))

    done = talked("import", "-", *other, input="\n".join(changed))

    assert done.code == 2
    assert re.search(r"line \d+", done.err)
    assert talked.ok("log", "--json", *other).json == []


@pytest.mark.parametrize("given", [b"", b"\xff\xfe", b"{}", b"[1]\n", b'{"taiwa": 99}\n'])
def test_a_file_that_is_not_an_export_is_an_error_of_one_line(taiwa: Taiwa, given: bytes) -> None:
    done = taiwa("import", "-", input=given)

    assert done.code == 2
    assert done.err.count("\n") == 1


def test_an_import_under_a_taken_name_changes_nothing(talked: Taiwa, model_server: ModelServer) -> None:
    exported = talked.ok("export", "chat-1~1").out
    model_server(delta("Other."))
    talked.ok("say", "chat", "-s", "mine", "Hi")

    done = talked("import", "-", "mine", input=exported)

    assert done.code == 2
    assert json.loads(talked.ok("show", "mine", "--json").out)["user"] == "Hi"


def test_no_form_of_an_export_can_drive_a_terminal(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("\x1b[2J\x9b31mred\u202e"))
    taiwa.ok("say", "chat", "Hi")

    forms = {form: taiwa.ok("export", "chat-1", "--format", form).out for form in ("jsonl", "md", "html")}
    again = taiwa.ok("import", "-", "copy", input=forms["jsonl"])

    assert not [form for form, text in forms.items() if set(text) & set("\x1b\x9b\u202e")]
    assert again.code == 0
    assert taiwa.ok("replay", "copy").code == 0


def test_a_page_that_verifies_itself_is_written_by_the_command_line_too(talked: Taiwa, tmp_path: Path) -> None:
    talked.ok("export", "chat-1", "--format", "verifiable", "-o", str(tmp_path / "chat-1.html"))

    assert 'id="verdict"' in (tmp_path / "chat-1.html").read_text(encoding="utf-8")
    assert "requires a file" in talked("export", "chat-1", "--format", "verifiable").err


def test_the_name_of_a_conversation_is_a_text_in_every_form(taiwa: Taiwa, model_server: ModelServer) -> None:
    model_server(delta("Yes."))
    taiwa.ok("say", "chat", "-s", "<img/src=x/onerror=alert(1)>", "Hi")

    shown = [taiwa.ok("export", "<img/src=x/onerror=alert(1)>", "--format", form).out for form in ("md", "html")]

    assert shown[0].startswith(r"# \<img/src=x/onerror=alert(1)\>")
    assert "<img" not in shown[1]


@pytest.mark.parametrize("suffix", ["jsonl", "md", "html"])
def test_an_exported_file_is_for_its_owner_only(talked: Taiwa, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"chat-1.{suffix}"
    talked.ok("export", "chat-1", "-o", str(file))
    assert file.stat().st_mode & 0o777 == 0o600

    file.chmod(0o644)
    talked.ok("export", "chat-1", "-o", str(file))
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_bill_is_exported_only_on_request_and_the_app_unless_it_is_left_out(talked: Taiwa, tmp_path: Path) -> None:
    whole, exported = (talked.ok("export", "chat-1", *more).out for more in ((), ("--no-app",)))

    assert talked.ok("import", "-", "--store", str(tmp_path / "empty.db"), input=whole).code == 0
    assert not [line for line in map(json.loads, whole.splitlines()) if "call" in line]
    assert not [line for line in map(json.loads, exported.splitlines()) if "source" in line]
    assert talked.ok("import", "-", "copy", input=exported).code == 0  # this store has the app
    refused = talked("import", "-", "--store", str(tmp_path / "other.db"), input=exported)
    assert refused.code == 2
    assert "the file was exported with --no-app" in refused.err


ATTACKS = (
    "<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "![x](http://evil.example/?leak)", "[x](http://evil.example)",
    "![x][1]\n\n[1]: http://evil.example/x.png", "[1]: http://evil.example", "# Forged", "Forged\n===", "Forged\n---", "---",
    "```\nleft open", "~~~\nleft open", "- item\n\n      <b>", "<!-- left open", "<details>", "http://evil.example", "&lt;b&gt; <b",
    "````\n```\n# in a fence\n```", "> # quoted heading", "- # heading", "\ta\n# b", "<http://evil.example>", "a\\\n<b>", "1. ![x](y)",
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_adds_structure_to_markdown(taiwa: Taiwa, model_server: ModelServer, attack: str) -> None:
    model_server(delta(attack), delta("Fine."))
    taiwa.ok("say", "chat", "--", attack)
    taiwa.ok("say", "-c", "Good?")

    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(taiwa.ok("export", "chat-1", "--format", "md").out)

    headings = [after.content for token, after in pairwise(tokens) if token.tag in {"h1", "h2"} and token.nesting == 1]
    assert headings == ["chat-1", "1", "2", "State"]
    assert_inert_tokens(tokens)


def assert_inert_tokens(tokens: Iterable[Token]) -> None:
    parts = [part for token in tokens for part in (token, *(token.children or ()))]
    assert not {part.type for part in parts} & {"html_block", "html_inline", "image"}
    links = [str(part.attrGet("href")) for part in parts if part.type == "link_open"]
    assert all(link.startswith(("http://", "https://", "mailto:")) for link in links)


@given(st.text("ab #*`~<>![]()-=\n\t\\&;1.:/_+|'\"", max_size=60))
def test_any_text_is_inert_in_markdown(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{inert_markdown(text)}\n\n# Next")

    assert [token.content for token in tokens if token.type == "inline"][-1] == "Next"
    assert sum(token.type == "heading_open" and token.tag in {"h1", "h2"} for token in tokens) == 1
    assert_inert_tokens(tokens)


def test_ordinary_markdown_stays_as_it_is() -> None:
    text = "Two *teas*:\n\n- green\n- black\n\n```python\nx < 1  # not a heading\n```"

    assert inert_markdown(text) == text


def test_headings_links_tables_and_mathematics_of_an_answer_are_rendered_in_markdown() -> None:
    table = "| tea | °C |\n|---|--:|\n| sencha | 70 |"
    answer = f"# Tea\n\n{table}\n\nSee [it](https://tea.example/a?b=c): \\(x^2\\)\n\n\\[\\frac{{1}}{{2}}\\]\n\nText\n---\nEnd"

    shown = inert_markdown(answer)

    assert shown == (
        f"### Tea\n\n{table}\n\nSee [it](https://tea.example/a?b=c): $x^2$\n\n$$\\frac{{1}}{{2}}$$\n\n#### Text\n\nEnd"
    )


def test_only_a_block_that_could_load_something_is_in_a_fence() -> None:
    assert inert_markdown("- one\n\n![x](http://e.example/x.png)\n\n**two**") == (
        "- one\n\n```text\n![x](http://e.example/x.png)\n```\n\n**two**"
    )


def test_a_page_renders_answers_and_says_which_model_wrote_them_and_when(
    taiwa: Taiwa, model_server: ModelServer
) -> None:
    model_server(
        "# Tea\n\n**Green** [tea](http://example.org) ![x](http://example.org/x.png)\n\n| a |\n|---|\n| 1 |\n\n"
        "\\(x^2\\)\n\n```python\ndef f(): pass\n```\n"
    )
    taiwa.ok("say", "Hi")

    html, markdown = (taiwa.ok("export", "plain-1", "--format", form).out for form in ("html", "md"))

    page = Page(html)
    assert {"h1", "strong", "table", "footer", "msup", "a"} <= page.tags
    assert "img" not in page.tags
    assert '<span class="k">def</span>' in html
    assert all(re.search(r"test-model · \d{4}-\d\d-\d\d \d\d:\d\d", text) for text in (page.text, markdown))
