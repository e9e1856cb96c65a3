"""The figures count as documented, and modules do not import each other in cycles."""

from itertools import pairwise
from pathlib import Path

from tests.house.figures import PARSE, code_lines, cycles, import_graph, long_constructors, trace, undocumented
from tests.house.source import Source, sources

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


def test_blank_lines_comments_and_docstrings_are_not_lines_of_code() -> None:
    assert code_lines(TEXT) == len(["import", "class", "name", "lines", "def", "self", ")", "return"])
    assert code_lines("") == 0


def test_an_import_leads_to_the_module_that_it_names_or_to_its_package() -> None:
    found = graph(
        a="from taiwa.b import c, D",
        b="import os",
        **{"b.c": "from importlib import import_module\nimport_module('taiwa.a')"},
    )

    assert found == {"taiwa.a": {"taiwa.b", "taiwa.b.c"}, "taiwa.b": set(), "taiwa.b.c": {"taiwa.a"}}


def test_cycles_through_functions_and_several_modules_are_found() -> None:
    found = graph(
        a="import taiwa.b", b="def f():\n    from taiwa import c", c="from taiwa.a import x", d="from taiwa.a import y"
    )

    assert cycles(found) == [("taiwa.a", "taiwa.b", "taiwa.c")]


def test_separate_cycles_are_counted_separately() -> None:
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


def test_the_lazy_table_of_the_package_does_not_close_a_cycle() -> None:
    found = import_graph([Source("taiwa", "from taiwa.a import x"), Source("taiwa.a", "import taiwa")])

    assert cycles(found) == []


def test_public_names_without_a_docstring_are_listed() -> None:
    text = "def a(): ...\ndef _b(): ...\nclass C:\n    '''Doc.'''\n    def d(self): ...\n    def __len__(self): ...\n"

    assert list(undocumented(Source("taiwa.m", text))) == ["taiwa.m.a", "taiwa.m.C.d"]


def test_a_constructor_is_long_if_it_takes_more_than_nine_parameters() -> None:
    fields = "".join(f"    f{n}: int = 0\n" for n in range(9))
    names = ", ".join(f"a{n}" for n in range(10))
    text = (
        f"@value\nclass A:\n{fields}    of: ClassVar[int] = 0\n@value(tag='b')\nclass B:\n{fields}    more: int = 0\n"
        f"class C(TypedDict):\n{fields}    more: int\nclass D:\n    def __init__(self, {names}): ...\n"
    )

    assert list(long_constructors(Source("taiwa.m", text))) == ["taiwa.m.B", "taiwa.m.D"]


def test_no_constructor_but_those_of_decision_0083_is_long() -> None:
    found = {name for source in sources() for name in long_constructors(source)}

    assert found == {
        "taiwa.cli.options.CommonOptions",
        "taiwa.client.base.BaseClient",
        "taiwa.conversation.app.App",
    }


def test_modules_do_not_import_each_other_in_cycles_for_types_either() -> None:
    assert cycles(import_graph(sources(), types=True)) == []


def test_a_trace_has_the_files_that_ran_the_modules_that_were_loaded_and_where_a_text_went(tmp_path: Path) -> None:
    found = trace(tmp_path, PARSE, "--help", text=PARSE)
    only_bodies = found.bodies - found.functions

    assert any(name.endswith("/cli/main.py") for name in found.functions)
    assert "taiwa.cli.main" in found.modules
    assert found.functions <= found.bodies
    assert not any(name.endswith("/cli/main.py") for name in only_bodies)
    assert found.crossed[0].endswith("/cli/main.py")
    assert set(found.crossed) < found.functions
    assert all(one != other for one, other in pairwise(found.crossed))
