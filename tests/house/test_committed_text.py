"""No file names a machine, a package registry, a key, or how the work is organised."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.house.source import ROOT

# Each pattern is written so that it does not match itself.
PATHS = re.compile(r"(?<![\w.])/(?:work|root|opt/pypi|tmp/brief|tmp/bash_jobs)[/]")
REGISTRIES = re.compile(
    r"pypi[.](?:org|python)|python[h]osted|registry[.]npmjs|deb[.]debian|crates[.]io|proxy[.]golang"
)
ORGANISATION = re.compile(
    r"\bissues? ?#?[ ]?\d|\b[f]ounders?\b|\b[C]EO\b|\bsub-?[a]gents?\b|\b[B]RIEF\b|\bHOUSE[.]md|shared/[d]esign"
)
KEYS = re.compile(r"\bsk-(?:ant-|proj-)?[A-Za-z0-9]{24}")
OUTSIDE_TESTS = re.compile(r"[.][.]/shared\b|\bshared/data\b")


def forbidden_text(path: str, text: str) -> Iterator[str]:
    """Yield the forbidden words of a file, as `path:line: the words`."""
    rules = [PATHS, REGISTRIES, ORGANISATION, KEYS]
    if not path.startswith("tests/"):
        rules.append(OUTSIDE_TESTS)
    for rule in rules:
        for found in rule.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"


def tracked() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file that is committed or not ignored; weights are numbers."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path.suffix != ".safetensors":
            yield name, path.read_bytes().decode("utf-8", errors="ignore")


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "work/main",
        "'/" + "root/.cache'",
        "https://py" + "pi.org/simple",
        "see issue" + " 7",
        "see issue" + " #7",
        "the fou" + "nder decided",
        "sk-" + "a1" * 12,
        "../" + "shared/x",
    ],
)
def test_a_forbidden_name_is_found(line: str) -> None:
    assert list(forbidden_text("docs/server.md", line))


@pytest.mark.parametrize("line", ["the session goes to work/rest", "$HOME/.config", "an issue tracker", "sk-fake-key"])
def test_ordinary_words_are_allowed(line: str) -> None:
    assert not list(forbidden_text("docs/server.md", line))


def test_only_tests_may_name_the_data_beside_the_checkout() -> None:
    line = "shared/" + "data"

    assert list(forbidden_text("src/taiwa/apps/load.py", line))
    assert not list(forbidden_text("tests/models/test_wire.py", line))


def test_no_file_names_a_machine_a_registry_or_how_the_work_is_organised() -> None:
    found = [complaint for path, text in tracked() for complaint in forbidden_text(path, text)]

    assert not found, "\n".join(found)
