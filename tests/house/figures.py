"""Figures of the code: its size, its import cycles, and what commands load and cost.

`python -m tests.house.figures` prints a table, with `--json` one JSON object. The docstring of the function that counts a
figure defines it.
"""

import argparse
import ast
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from tests.house.source import SRC, Function, Source, called, sources, walked
from tests.peers.faults import FaultServer, speech

PACKAGE = "taiwa"
PARSE = "parse"
"""The command that parses an answer without a model."""
QUESTION = "How many days of annual leave do I have in Galway?"
PROCESSES = 9
MOST_PARAMETERS = 9
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
TRACER = """
import dataclasses, json, os, runpy, sys, threading
root, report, mark, *words = sys.argv[1:]
files, crossed, busy = {True: set(), False: set()}, [], False
HIDDEN = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
OPTIMIZED = 1  # the flag of a function's code, which the code of a class body lacks
def sees(value, depth=4):
    kind = type(value)
    if kind is str:
        return mark in value
    if depth and dataclasses.is_dataclass(kind):
        parts = [getattr(value, each.name, "") for each in dataclasses.fields(kind)]
    elif depth and kind in (tuple, list, dict):
        parts = [*(value.values() if kind is dict else value)][:50]
    else:
        return False
    return any(sees(each, depth - 1) for each in parts)
def profile(frame, event, _):
    global busy
    code = frame.f_code
    if busy or event != "call" or not code.co_filename.startswith(root) or code.co_name in HIDDEN:
        return
    files[bool(code.co_flags & OPTIMIZED)].add(code.co_filename)
    if mark and code.co_flags & OPTIMIZED:
        busy = True
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if crossed[-1:] != [code.co_filename] and any(sees(frame.f_locals.get(name)) for name in names):
            crossed.append(code.co_filename)
        busy = False
sys.argv[:] = ["taiwa", *words]
threading.setprofile(profile)
sys.setprofile(profile)
try:
    runpy.run_module("taiwa", run_name="__main__")
finally:
    sys.setprofile(None)
    with open(report, "w") as file:
        found = {"functions": sorted(files[True]), "classes": sorted(files[False]), "modules": sorted(sys.modules)}
        json.dump({**found, "crossed": crossed}, file)
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    value: float
    about: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What a command ran and loaded; `__init__.py` and `__main__.py` are left out of the files.

    - `functions`: files of the package of which the body of a function ran.
    - `bodies`: these, and files of which only the body of a class ran, which an import alone does.
    - `modules`: all modules that were loaded, those of other packages included.
    - `crossed`: the files of the functions that see a text in their arguments, or in what these hold four levels deep; each change
      of file is one more.
    """

    functions: frozenset[str]
    bodies: frozenset[str]
    modules: frozenset[str]
    crossed: tuple[str, ...]


# --- from the source --------------------------------------------------------------------------------------------------


def is_entry(path: Path) -> bool:
    """Return whether a file is `__init__.py` or `__main__.py`."""
    return path.stem in ("__init__", "__main__")


def is_string(node: ast.stmt) -> bool:
    """Return whether a statement is only a string: a docstring, or the description of a constant above it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code_lines(text: str) -> int:
    """Count the lines that hold a token of code; blank lines, comments and docstrings do not count.

    The lines of a string inside code count, unless they are blank.
    """
    strings: set[int] = set()
    for node in walked(text):
        if isinstance(node, ast.stmt) and is_string(node):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return sum(1 for line in code - strings if line <= len(lines) and lines[line - 1].strip())


def lines_by_package(modules: Iterable[Source]) -> dict[str, int]:
    """Add up the code lines of each package; modules outside any are counted together."""
    found: dict[str, int] = {}
    for source in modules:
        first = source.module.split(".")[1:2]
        name = first[0] if first and (SRC / PACKAGE / first[0]).is_dir() else "others"
        found[name] = found.get(name, 0) + code_lines(source.text)
    return dict(sorted(found.items()))


def import_graph(modules: Iterable[Source], *, types: bool = False) -> dict[str, set[str]]:
    """Map each module to those that it imports, in functions too; with `types` also under `TYPE_CHECKING`.

    `from taiwa.a import b` leads to the module `taiwa.a.b` if it exists, and else to `taiwa.a`; the implicit import of a
    package before its modules does not count. The package `taiwa` itself is left out: its table of public names is lazy.
    """
    known = {source.module: source for source in modules if source.module != PACKAGE}
    return {
        name: {
            whole if whole in known else module
            for module, whole in named(source.tree, types=types)
            if whole in known or module in known
        }
        for name, source in known.items()
    }


def named(node: ast.AST, *, types: bool) -> Iterator[tuple[str, str]]:
    """Yield what a tree imports: modules, each with the whole dotted name that is taken from it."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) if not types:
            return
        case ast.Import(names=names):
            yield from ((alias.name, alias.name) for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from ((module, f"{module}.{alias.name}") for alias in names)
        case ast.Call(args=[ast.Constant(value=str(module)), *_]) if called(node) == "import_module":
            yield module, module
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from named(child, types=types)


def cycles(graph: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules that import each other, directly or through others, each sorted."""
    reached = {name: reachable(name, graph) for name in graph}
    groups = {
        tuple(sorted({other for other in reached[name] if name in reached.get(other, ())}))
        for name in graph
        if name in reached[name]
    }
    return sorted(groups)


def reachable(start: str, graph: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the modules that can be reached in one step or more."""
    seen: set[str] = set()
    ahead = list(graph[start])
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead.extend(graph.get(name, ()))
    return seen


def undocumented(source: Source) -> Iterator[str]:
    """Yield the public functions, classes and methods of a module that lack a docstring.

    Overloads and setters need none; names that begin with an underscore are private.
    """
    if any(part.startswith("_") for part in source.module.split(".")):
        return
    for node in source.tree.body:
        yield from (f"{source.module}.{name}" for name in without_docstring(node))


def without_docstring(node: ast.stmt) -> Iterator[str]:
    """Yield the names without a docstring in one statement."""
    if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
        return
    decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    if not decorators & {"overload", "setter"} and ast.get_docstring(node) is None:
        yield node.name
    if isinstance(node, ast.ClassDef):
        for each in node.body:
            yield from (f"{node.name}.{name}" for name in without_docstring(each))


# --- from processes ---------------------------------------------------------------------------------------------------


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a new user, with this source and a home of its own."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("TAIWA_", "XDG_"))}
    home = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return inherited | home | {"PYTHONPATH": str(SRC), "NO_PROXY": "127.0.0.1"}


def trace(folder: Path, *words: str, text: str = "") -> Trace:
    """Run a command and return what it ran and loaded, and where a text went; processes that it starts are not followed.

    Raises:
        RuntimeError: the command failed.
    """
    report = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-c", TRACER, str(SRC / PACKAGE), str(report), text, *words],
        check=False, cwd=folder, env=environment(folder), capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"taiwa {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    loaded = json.loads(report.read_text(encoding="utf-8"))
    functions, classes = (
        frozenset(name for name in loaded[kind] if not is_entry(Path(name))) for kind in ("functions", "classes")
    )
    crossed = tuple(name for name in loaded["crossed"] if not is_entry(Path(name)))
    changes = tuple(name for name, _ in groupby(crossed))
    return Trace(functions, functions | classes, frozenset(loaded["modules"]), changes)


def processor_ms(folder: Path, *words: str) -> float:
    """Return the processor time of a fresh interpreter in milliseconds, user and system: the median of several processes."""
    times: list[float] = []
    for _ in range(PROCESSES + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, env=environment(folder), capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1000 * statistics.median(times[1:])  # the first one compiles


# --- all of them ------------------------------------------------------------------------------------------------------


def long_constructors(source: Source) -> Iterator[str]:
    """Yield the classes of a module whose constructor has more than nine parameters: of a dataclass, the fields that it takes."""
    for node in source.nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        made = next((each for each in node.body if isinstance(each, Function) and each.name == "__init__"), None)
        if made is not None:
            count = len((*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs)) - 1
        elif any("dataclass" in name or "value" in name for name in map(ast.unparse, node.decorator_list)):
            fields = (ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign))
            count = sum("ClassVar" not in each and "init=False" not in each for each in fields)
        else:
            continue
        if count > MOST_PARAMETERS:
            yield f"{source.module}.{node.name}"


def source_figures() -> Iterator[Figure]:
    """Yield the figures that are counted without running anything."""
    paths = sorted(SRC.rglob("*.py"))
    missing = [name for source in sources() for name in undocumented(source)]
    yield Figure("modules", sum(not is_entry(path) for path in paths), "__init__ and __main__ excluded")
    yield Figure("files", len(paths), "these included")
    yield Figure(
        "code lines",
        sum(code_lines(source.text) for source in sources()),
        "blank lines, comments and docstrings excluded",
    )
    for name, lines in lines_by_package(sources()).items():
        yield Figure(f"  {name}", lines, "of these")
    yield Figure(
        "import cycles", len(cycles(import_graph(sources()))), "groups of modules; imports in functions included"
    )
    typed = cycles(import_graph(sources(), types=True))
    yield Figure("with types", len(typed), "the same, imports under TYPE_CHECKING included")
    yield Figure("undocumented", len(missing), "public functions, classes and methods")
    long = [name for source in sources() for name in long_constructors(source)]
    yield Figure("long constructors", len(long), f"of more than {MOST_PARAMETERS} parameters")


def process_figures(folder: Path) -> Iterator[Figure]:
    """Yield what commands load and cost."""
    with FaultServer() as server:
        server.plays(speech("Hello!\n@@delta\n{}"))
        say = trace(folder, "say", QUESTION, "--model", f"{server.base_url}#test-model", text=QUESTION)
    ask = trace(folder, "ask", QUESTION, text=QUESTION)
    (folder / "answer.txt").write_text('{"a": 1}', encoding="utf-8")
    (folder / "schema.json").write_text(
        '{"type": "object", "properties": {"a": {"type": "integer"}}}', encoding="utf-8"
    )
    loaded = trace(folder, PARSE, "answer.txt", "--type", "schema.json").modules
    ours = sum(name == PACKAGE or name.startswith(f"{PACKAGE}.") for name in loaded)
    note = "a function body runs; class bodies and the module level, which an import runs, do not count"
    yield Figure("files run by say", len(say.functions), f"taiwa say over HTTP: {note}")
    yield Figure("say, with classes", len(say.bodies), "class bodies included")
    yield Figure("files run by ask", len(ask.functions), "taiwa ask of the built-in handbook; counted likewise")
    yield Figure("ask, with classes", len(ask.bodies), "class bodies included")
    for name, found in (("say", say), ("ask", ask)):
        yield Figure(
            f"files that {name} crosses", len(set(found.crossed)), "the text is in the arguments of a function"
        )
        yield Figure(f"changes of file, {name}", len(found.crossed) - 1, "from one of these to another")
    yield Figure(f"modules of {PARSE}", ours, f"of taiwa; with all others {len(loaded)}")

    bare = processor_ms(folder, "-c", "pass")
    library = processor_ms(folder, "-c", f"import {PACKAGE}")
    shown, libraries = processor_ms(folder, "-m", PACKAGE, "--help"), processor_ms(folder, "-c", "import click, rich")
    yield Figure("import taiwa, ms", round(library - bare, 1), f"processor time beyond the interpreter's {bare:.0f} ms")
    yield Figure("taiwa --help, ms", round(shown, 1), "processor time of the whole process")
    yield Figure("import click, rich, ms", round(libraries, 1), "the same, for comparison")
    yield Figure("help / click and rich", round(shown / libraries, 2), "ratio")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.house.figures", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as folder:
        figures = [*source_figures(), *process_figures(Path(folder))]
    if as_json:
        print(json.dumps({figure.name: figure.value for figure in figures}, indent=2))
    else:
        for figure in figures:
            print(f"{figure.name:<24}{figure.value:>9,}  {figure.about}")
        for group in cycles(import_graph(sources(), types=True)):
            print(f"cycle: {', '.join(group)}")


if __name__ == "__main__":
    main()
