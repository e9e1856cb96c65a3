"""The figures count what they say, and no module imports another in a circle."""

from pathlib import Path

from tests.house.figures import PARSE, code_lines, cycles, import_graph, traced, undocumented
from tests.house.source import Source, sources

CIRCLES = [("taiwa.operations.generate", "taiwa.operations.results")]
"""Those that are still there: the list only ever becomes shorter."""

TEXT = '''"""A module.

Of three lines.
"""

import os  # counts

# does not


class One:
    """Not this."""

    name = """two

    lines"""
    """Nor this."""

    def method(
        self,
    ) -> None:
        "Nor this."
        return
'''


def graph(types: bool = False, **texts: str) -> dict[str, set[str]]:
    return import_graph([Source(f"taiwa.{name}", text) for name, text in texts.items()], types=types)


def test_a_line_of_code_is_no_blank_one_no_comment_and_no_docstring() -> None:
    assert code_lines(TEXT) == len(["import", "class", "name", "lines", "def", "self", ")", "return"])
    assert code_lines("") == 0


def test_an_import_leads_to_the_module_that_it_names_or_to_its_package() -> None:
    found = graph(
        a="from taiwa.b import c, D",
        b="import os",
        **{"b.c": "from importlib import import_module\nimport_module('taiwa.a')"},
    )

    assert found == {"taiwa.a": {"taiwa.b", "taiwa.b.c"}, "taiwa.b": set(), "taiwa.b.c": {"taiwa.a"}}


def test_circles_are_found_through_functions_and_over_several_modules() -> None:
    found = graph(
        a="import taiwa.b", b="def f():\n    from taiwa import c", c="from taiwa.a import x", d="from taiwa.a import y"
    )

    assert cycles(found) == [("taiwa.a", "taiwa.b", "taiwa.c")]


def test_two_circles_are_two_and_none_is_none() -> None:
    found = graph(a="import taiwa.b", b="import taiwa.a", c="import taiwa.c", d="import taiwa.a")

    assert cycles(found) == [("taiwa.a", "taiwa.b"), ("taiwa.c",)]
    assert cycles(graph(a="import taiwa.b", b="import taiwa.c", c="")) == []


def test_an_import_for_the_type_checker_counts_only_when_asked_for() -> None:
    texts = {
        "a": "import taiwa.b",
        "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from taiwa.a import x",
    }

    assert cycles(graph(**texts)) == []
    assert cycles(graph(types=True, **texts)) == [("taiwa.a", "taiwa.b")]


def test_the_lazy_table_of_the_package_closes_no_circle() -> None:
    found = import_graph([Source("taiwa", "from taiwa.a import x"), Source("taiwa.a", "import taiwa")])

    assert cycles(found) == []


def test_what_is_public_and_silent_is_named() -> None:
    text = "def a(): ...\ndef _b(): ...\nclass C:\n    '''Doc.'''\n    def d(self): ...\n    def __len__(self): ...\n"

    assert list(undocumented(Source("taiwa.m", text))) == ["taiwa.m.a", "taiwa.m.C.d"]


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycles(import_graph(sources())) == CIRCLES


def test_every_file_of_the_package_can_be_counted() -> None:
    assert all(0 <= code_lines(source.text) <= len(source.text.splitlines()) for source in sources())


def test_what_runs_in_a_process_is_traced(tmp_path: Path) -> None:
    files, modules = traced(tmp_path, PARSE, "--help")

    assert any(name.endswith("/cli/main.py") for name in files)
    assert "taiwa.cli.main" in modules
