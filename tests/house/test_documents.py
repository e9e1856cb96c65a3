"""Links in the documents are valid, decisions have the required form, and changelog fragments can be collected."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.source import ROOT

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
ANCHOR = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)")
PARTS = ["Context", "Decision", "Rejected", "Consequence", "Measurement"]
MAX_DECISION_LINES = 60

DOCUMENTS = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *(path for part in ("docs", "benches", "evals", "examples") for path in ROOT.glob(f"{part}/**/*.md")),
    )
)
DECISIONS = sorted(ROOT.glob("docs/decisions/*.md"))


def dead_links(text: str, folder: Path) -> Iterator[str]:
    """Yield relative links to missing files."""
    yield from (target for target in LINK.findall(text) if not (folder / target).exists())


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").touch()

    found = list(dead_links("[a](there.md#part) [b](gone.md) [c](https://example.org)", tmp_path))

    assert found == ["gone.md"]


@cache
def anchors(path: Path) -> frozenset[str]:
    """The names of the headings of a document, as GitHub makes them."""
    text = re.sub(r"(?ms)^(`{3,}).*?^\1`*$", "", path.read_text(encoding="utf-8"))
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"(?m)^#+ (.*)", text)]
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles)


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_lead_to_files_and_headings_that_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = [(path.parent / page if page else path, name) for page, name in ANCHOR.findall(text)]

    assert not list(dead_links(text, path.parent))
    assert not [name for page, name in links if page.suffix == ".md" and name not in anchors(page.resolve())]


@pytest.mark.parametrize("path", DECISIONS, ids=relative)
def test_a_decision_has_its_number_its_five_parts_and_fits_a_page(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith(f"# {path.name[:4]}: ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == PARTS
    assert len(lines) <= MAX_DECISION_LINES


def test_no_two_decisions_share_a_number() -> None:
    numbers = [path.name[:4] for path in DECISIONS]

    assert len(numbers) == len(set(numbers))


def test_every_fragment_is_of_a_kind_that_a_release_gathers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in settings["type"]}

    fragments = [path for path in (ROOT / "changes").iterdir() if path.name not in ("README.md", "template.md")]

    strangers = [
        path.name for path in fragments if not re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(kinds)})\.md", path.name)
    ]
    assert not strangers, f"name a fragment like +short-name.added.md: {strangers}"


def test_every_page_is_in_the_contents_of_the_site() -> None:
    listed = set(re.findall(r"[\w./-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]))
    pages = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benches" / "README.md", ROOT / "evals" / "README.md"}

    assert listed == {page.relative_to(ROOT).as_posix() for page in pages}
