"""`taiwa tools`: what is there, what a model is told of it, and a call by hand."""

import sys
from pathlib import Path

import pytest

from taiwa.tools.registry import builtin_tools
from tests.cli.conftest import Taiwa


def test_an_error_of_an_own_tool_is_printed(taiwa: Taiwa, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text(
        'from taiwa import tool\n\n\n@tool\ndef boom(x: str) -> str:\n    """Boom."""\n    return 1 // 0\n'
    )

    done = taiwa("tools", "call", f"{tmp_path}/raising.py:boom", "a")

    assert done.code == 2
    assert "boom failed (ZeroDivisionError: integer division or modulo by zero)" in done.err
    assert len(done.err.splitlines()) == 1


def test_every_built_in_tool_is_listed(taiwa: Taiwa) -> None:
    assert [row["tool"] for row in taiwa.ok("tools", "list", "--json").json] == list(builtin_tools())
    assert all(name in taiwa.ok("tools", "list").out for name in builtin_tools())


def test_the_specification_of_a_tool_is_shown(taiwa: Taiwa) -> None:
    shown = taiwa.ok("tools", "show", "molar_mass")

    assert "Give the molar mass" in shown.out
    assert '"iupac" | "integer"' in shown.out
    assert taiwa.ok("tools", "show", "molar_mass", "--json").json["parameters"]["required"] == ["formula"]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("calculator", "1,000 × 5%", "50"),
        ("calculator", "-2^2", "-4"),
        ("calculator", "（１＋２）×３", "9"),
        ("molar_mass", "CuSO4·5H2O", "249.677 g/mol"),
        ("molar_mass", '{"formula": "NaCl", "weights": "integer"}', "58 g/mol"),
        ("stoichiometry", "Fe + O2 -> Fe2O3", "4Fe + 3O2 -> 2Fe2O3"),
        ("unit_conversion", "108 km/h to m/s", "30 m/s"),
    ],
)
def test_a_tool_is_called_with_the_text_it_needs(taiwa: Taiwa, name: str, given: str, expected: str) -> None:
    assert taiwa.ok("tools", "call", name, given).out == f"{expected}\n"


def test_the_input_may_come_from_standard_input(taiwa: Taiwa) -> None:
    assert taiwa.ok("tools", "call", "calculator", "-", input="6 * 7\n").out == "42\n"


def test_the_exact_value_is_there_for_programs(taiwa: Taiwa) -> None:
    result = taiwa.ok("tools", "call", "calculator", "700/27", "--json").json

    assert result == {"tool": "calculator", "text": "25.9259", "value": "700/27"}


def test_what_a_tool_refuses_is_bad_input_with_the_way_out(taiwa: Taiwa) -> None:
    refused = taiwa("tools", "call", "molar_mass", "SO42-")

    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "taiwa: molar_mass: SO42- is ambiguous (write SO42^- or SO4^2-)\n"


def test_json_has_the_error_of_a_tool(taiwa: Taiwa) -> None:
    refused = taiwa("tools", "call", "calculator", "9**9**9**9", "--json")

    assert refused.code == 2
    assert refused.json["error"] == "too_large"


def test_an_unknown_tool_is_named_with_those_there_are(taiwa: Taiwa) -> None:
    refused = taiwa("tools", "call", "abacus", "1+1")

    assert refused.code == 2
    assert "calculator, stoichiometry" in refused.err


OWN = """
from taiwa import tool

@tool
def shout(word: str) -> str:
    "Say it loud."
    return word.upper()

quiet = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / f"own_{tmp_path.name}.py"  # a module of this name is imported once
    file.write_text(OWN, encoding="utf-8")
    return file


def test_a_tool_of_one_s_own_is_called_by_its_file_and_name(taiwa: Taiwa, own: Path) -> None:
    assert taiwa.ok("tools", "call", f"{own}:shout", "hey").out == "HEY\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quiet", "it is not a tool"),
        ("nothing", "name not found"),
    ],
)
def test_an_object_that_is_not_a_tool_is_bad_input(taiwa: Taiwa, own: Path, name: str, expected: str) -> None:
    refused = taiwa("tools", "call", f"{own}:{name}", "hey")

    assert refused.code == 2
    assert expected in refused.err


@pytest.mark.parametrize("address", ["no_such_file.py:x", "no.such.module:x"])
def test_a_missing_file_is_bad_input(taiwa: Taiwa, address: str) -> None:
    refused = taiwa("tools", "show", address)

    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1


def test_the_tools_of_a_server_are_listed_and_called_like_others(taiwa: Taiwa, own: Path) -> None:
    server = f"{sys.executable} -m taiwa mcp --tools calculator --tool {own}:shout"

    assert [row["tool"] for row in taiwa.ok("tools", "list", "--mcp-server", server, "--json").json][-2:] == [
        "taiwa_calculator",
        "shout",
    ]
    assert taiwa.ok("tools", "call", "taiwa_calculator", "6*7", "--mcp-server", server).out == "42\n"


def test_a_server_that_does_not_start_is_bad_input(taiwa: Taiwa) -> None:
    refused = taiwa("tools", "list", "--mcp-server", "no-such-command-anywhere")

    assert refused.code == 2
    assert "command not found" in refused.err
