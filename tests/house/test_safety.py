"""Text is not evaluated, only the runtimes catch every exception, and no test depends on how fast it runs."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.source import ROOT, Source, called, sources

# The runtimes throw the error of a handler into the program; the error of a program is its outcome, for its parent, and that
# of a call in a thread the outcome of its future. A run of the server publishes it, and logs it, as an internal error.
CATCHERS = {
    "taiwa.kernel.effects",
    "taiwa.kernel.runtime",
    "taiwa.kernel.async_runtime",
    "taiwa.kernel.execution",
    "taiwa.server.runs",
}
EVALUATORS = {"eval", "exec", "compile", "__import__"}
BROAD = {"Exception", "BaseException"}
LOADERS = {"pickle", "marshal", "shelve", "dill", "code", "codeop"}
UNSAFE_YAML = {"load", "load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all"}


def evaluations(source: Source) -> Iterator[str]:
    """Yield calls that run text as code, and imports of modules that read code from bytes."""
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in EVALUATORS:
                yield f"{source.module}:{node.lineno} calls {name}"
            case ast.Attribute(value=ast.Name(id="builtins" | "__builtins__"), attr=name) if name in EVALUATORS:
                yield f"{source.module}:{node.lineno} reads {name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"))) if called(node) in UNSAFE_YAML:
                yield f"{source.module}:{node.lineno} calls yaml.{called(node)}: use a safe loader"
            case _:
                pass
    for line, module in source.imports():
        if module.partition(".")[0] in LOADERS:
            yield f"{source.module}:{line} imports {module}"


def broad_excepts(source: Source) -> Iterator[str]:
    """Yield handlers that catch every exception: bare, `Exception`, `BaseException`, or a tuple with one of them.

    A handler that always ends in a bare `raise`, such as a rollback, or maps the error by `raise … from error` is accepted.
    """
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and not raises_again(node):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or ast.unparse(kind).rpartition(".")[2] in BROAD for kind in caught):
                yield f"{source.module}:{node.lineno} catches every exception; name the errors, or map them at the edge"


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler always raises the error again, or another from it: such a `raise` last, no exit before it."""
    last = handler.body[-1]
    leaves = any(isinstance(node, ast.Return | ast.Break | ast.Continue) for node in ast.walk(handler))
    if not isinstance(last, ast.Raise) or leaves:
        return False
    return last.exc is None or (isinstance(last.cause, ast.Name) and last.cause.id == handler.name)


@pytest.mark.parametrize(
    "text",
    [
        "eval('1')",
        "exec('x = 1')",
        "compile('1', '', 'eval')",
        "import builtins\nf = builtins.eval",
        "import pickle",
        "from importlib import import_module\nimport_module('pickle')",
        "import yaml\nyaml.load(text, Loader=yaml.Loader)",
    ],
)
def test_evaluated_code_is_found(text: str) -> None:
    assert list(evaluations(Source("m", text)))


@pytest.mark.parametrize("text", ["import re\nre.compile('a')", "guide.compile(shape)", "yaml.safe_load(text)"])
def test_similar_calls_are_accepted(text: str) -> None:
    assert not list(evaluations(Source("m", text)))


@pytest.mark.parametrize(
    "caught", ["", " Exception", " BaseException as e", " (OSError, Exception)", " builtins.Exception"]
)
def test_a_broad_except_is_found(caught: str) -> None:
    assert list(broad_excepts(Source("m", f"try:\n    pass\nexcept{caught}:\n    pass")))


def test_an_except_that_may_leave_before_it_raises_again_is_found() -> None:
    text = "def f():\n    try:\n        g()\n    except Exception:\n        if h():\n            return\n        raise"

    assert list(broad_excepts(Source("m", text)))


def test_the_exceptions_of_a_library_are_not_broad() -> None:
    assert not list(broad_excepts(Source("m", "try:\n    pass\nexcept click.ClickException:\n    pass")))


def test_an_except_that_cleans_up_and_raises_again_is_accepted() -> None:
    text = "try:\n    f()\nexcept BaseException:\n    g()\n    raise"

    assert not list(broad_excepts(Source("m", text)))


@pytest.mark.parametrize(("cause", "accepted"), [(" from error", True), (" from None", False), ("", False)])
def test_an_except_that_maps_every_error_is_accepted_if_it_keeps_the_cause(cause: str, accepted: bool) -> None:
    text = f"try:\n    f()\nexcept Exception as error:\n    raise ToolError('failed'){cause}"

    assert (not list(broad_excepts(Source("m", text)))) == accepted


def test_the_package_does_not_evaluate_text() -> None:
    found = [complaint for source in sources() for complaint in evaluations(source)]

    assert not found, "\n".join(found)


def test_only_runtimes_catch_every_exception() -> None:
    found = [complaint for source in sources() if source.module not in CATCHERS for complaint in broad_excepts(source)]

    assert not found, "\n".join(found)


def test_no_test_measures_time() -> None:
    """On a busy machine it fails; `tests/steps.py` counts work. `time.monotonic` is for the deadlines of waiting loops."""
    clock = re.compile("process_" + "time|perf_" + "counter|time" + "it|getr" + "usage")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "figures.py"]

    assert [path.name for path in tests if clock.search(path.read_text(encoding="utf-8"))] == []


def test_no_test_sets_the_clock_of_the_process() -> None:
    """An event loop of another thread, a server's, would wait for hours. A module's `time` can be replaced: `setattr(module, "time", …)`."""
    clock = re.compile(r"setattr\((?:[\"'][\w.]*\btime\.\w+[\"']|[\w.]*\btime, )")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "test_safety.py"]

    assert [path.name for path in tests if clock.search(path.read_text(encoding="utf-8"))] == []
