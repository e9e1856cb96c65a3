"""The source files of the package: their trees, definitions, calls and imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its dotted module name and its text."""

    module: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return parsed(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        return walked(self.text)

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    def imports(self) -> Iterator[tuple[int, str]]:
        """Yield each import as (line, dotted module), `import_module("name")` included."""
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    yield from ((node.lineno, alias.name) for alias in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield node.lineno, module
                case ast.Call(args=[ast.Constant(value=str(module)), *_]) if called(node) == "import_module":
                    yield node.lineno, module
                case _:
                    pass


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def walked(text: str) -> tuple[ast.AST, ...]:
    """Return every node of a text's tree; walking it again takes as long as parsing it."""
    return tuple(ast.walk(parsed(text)))


def called(call: ast.Call) -> str:
    """Return the last name of the called function: `import_module` for `importlib.import_module(...)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def read(path: Path, root: Path) -> Source:
    parts = path.relative_to(root).with_suffix("").parts
    return Source(".".join(part for part in parts if part != "__init__"), path.read_text(encoding="utf-8"))


@cache
def sources() -> tuple[Source, ...]:
    """Return every file of the package."""
    return tuple(read(path, SRC) for path in sorted(SRC.rglob("*.py")))
