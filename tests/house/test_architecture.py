"""The page on architecture names every package in the order of the layers, and only modules that exist."""

import re
import tomllib

from tests.house.source import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "taiwa"
FILE = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?|[a-z_]+\.py)`")


def section(title: str) -> list[str]:
    """The rows of the table below a heading."""
    text = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [
        line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| package", "| question"))
    ]


def test_the_table_of_layers_is_that_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")

    rows = [re.findall(r"`(\w+)`", line.split(" | ")[0]) for line in section("Layers")]

    assert [set(row) for row in rows] == [set(re.findall(r"\w+", layer)) for layer in layers]


def test_every_package_has_a_row() -> None:
    named = {name for line in section("Layers") for name in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert named == present - {"__init__", "__main__"}


def test_every_module_that_answers_a_question_exists() -> None:
    names = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    known = names | {name.rpartition("/")[2] for name in names}

    missing = [
        name
        for line in section("Where is …?")
        for name in FILE.findall(line)
        if name not in known and not (PACKAGE / name).is_dir() and not (ROOT / name).exists()
    ]

    assert not missing
