"""What is written down stays true elsewhere: no file names this machine, a package registry, or who wrote it when.

Names of what the package defines keep to its vocabulary: a vague word says that the idea is not understood yet.
"""

import ast
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.house.source import ROOT, Function, Source, sources

# Each pattern is written so that it does not match itself.
PLACES = re.compile(r"(?<![\w.])/(?:work|root|opt/pypi|tmp/brief|tmp/bash_jobs)[/]")
REGISTRIES = re.compile(
    r"pypi[.](?:org|python)|python[h]osted|registry[.]npmjs|deb[.]debian|crates[.]io|proxy[.]golang"
)
OFFICE = re.compile(
    r"\bissues? ?#?[ ]?\d|\b[f]ounders?\b|\b[C]EO\b|\bsub-?[a]gents?\b|\b[B]RIEF\b|\bHOUSE[.]md|shared/[d]esign"
)
KEYS = re.compile(r"\bsk-(?:ant-|proj-)?[A-Za-z0-9]{24}")
OUTSIDE_TESTS = re.compile(r"[.][.]/shared\b|\bshared/data\b")
ANYWHERE = {"agent", "manager", "helper", "util", "utils", "service", "engine", "processor"}
AT_THE_END = {"chain", "data", "info", "misc"}  # a path in data says something, a path's data does not
BORROWED = {"get_extra_info", "handle_data"}
"""Names that a library demands of what it calls: httpcore's network stream, the HTML parser of the standard library."""


def betrayals(path: str, text: str) -> Iterator[str]:
    """What a file gives away, as `path:line: the words`."""
    rules = [PLACES, REGISTRIES, OFFICE, KEYS]
    if not path.startswith("tests/"):
        rules.append(OUTSIDE_TESTS)
    for number, line in enumerate(text.splitlines(), start=1):
        for rule in rules:
            if found := rule.search(line):
                yield f"{path}:{number}: {found.group()}"


def vague(name: str) -> bool:
    """Whether a word of an identifier, in snake case or camel case, could mean anything."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
    return any(word in ANYWHERE for word in words) or words[-1:] in [[word] for word in AT_THE_END]


def vague_names(source: Source) -> Iterator[str]:
    """Modules, classes and functions named by a word that could mean anything."""
    names = [(1, part) for part in source.module.split(".")]
    defined = (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef | Function))
    names += [(node.lineno, node.name) for node in defined]
    yield from (f"{source.module}:{line} {name}" for line, name in names if vague(name) and name not in BORROWED)


def tracked() -> Iterator[tuple[str, str]]:
    """Each file that is, or is about to be, committed: its path and its text."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file():
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
def test_a_betrayal_is_seen(line: str) -> None:
    assert list(betrayals("docs/page.md", line))


@pytest.mark.parametrize("line", ["the session goes to work/rest", "$HOME/.config", "an issue tracker", "sk-fake-key"])
def test_ordinary_words_pass(line: str) -> None:
    assert not list(betrayals("docs/page.md", line))


def test_only_tests_speak_of_the_data_beside_the_checkout() -> None:
    line = "shared/" + "data"

    assert list(betrayals("src/taiwa/apps/load.py", line))
    assert not list(betrayals("tests/models/test_wire.py", line))


def test_no_file_names_a_machine_a_registry_or_how_the_work_is_organised() -> None:
    found = [complaint for path, text in tracked() for complaint in betrayals(path, text)]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["class StoreManager: ...", "def helper(): ...", "class A:\n    def load_data(self): ..."]
)
def test_a_vague_name_is_seen(text: str) -> None:
    assert list(vague_names(Source("m", text)))


def test_a_name_that_says_something_passes() -> None:
    assert not list(vague_names(Source("m", "def reagent(): ...\nclass Validated: ...\ndef data_path(): ...")))


def test_what_the_package_defines_has_a_name_that_says_something() -> None:
    found = [complaint for source in sources() for complaint in vague_names(source)]

    assert not found, "\n".join(found)
