"""The inside of a worker process: find a tool, and call it for each question."""

import ast
import json
import sys
import traceback
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import CodeType, ModuleType
from typing import Any, cast

from taiwa.isolation import Handler
from taiwa.kernel.errors import ToolError
from taiwa.kernel.messages import ToolResult
from taiwa.kernel.records import Json, record

MAIN = "__taiwa_tool__"

MEGABYTE = 1 << 20

KEPT_WORDS = 2_000

CONSTANTS = (
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.UnaryOp,
    ast.BinOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)


def entry(start: dict[str, Any]) -> Handler:
    """Find the tool that another process named."""
    tool = _found(start)

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        return _answer(tool, cast("dict[str, Json]", question["arguments"]), characters)

    return answer


def _answer(tool: Any, arguments: dict[str, Json], characters: int) -> dict[str, Json]:  # noqa: ANN401  (a user's tool)
    try:
        result = cast("ToolResult", tool.here(arguments))
        written = record(result)
        if len(result.text) > characters or len(json.dumps(written)) > 2 * characters + MEGABYTE:
            return _error("gave too much", "too_large", tool.spec.name, "ask for less")
    except ToolError as error:
        cause = error.__cause__
        trace = "".join(traceback.format_exception(cause))[-KEPT_WORDS:] if cause is not None else ""
        if isinstance(cause, MemoryError):
            return _error("needs too much memory", "memory", tool.spec.name)
        return {"error": {"message": error.message, "code": error.code, "hint": error.hint, "trace": trace}}
    except MemoryError:
        return _error("needs too much memory", "memory", tool.spec.name)
    return {"result": written}


def _error(what: str, code: str, name: str, hint: str = "") -> dict[str, Json]:
    return {"error": {"message": f"{name} {what}", "code": code, "hint": hint, "trace": ""}}


def _found(given: dict[str, Any]) -> Any:  # noqa: ANN401  (whatever the program defines there)
    found: Any = _program(given) if given["file"] else import_module(given["module"])
    for name in given["name"].split("."):
        found = getattr(found, name)
    return found.preset(**given["fixed"]) if given["fixed"] else found


class _Definitions(SourceFileLoader):
    """Loads of a program what a tool of it may need, and does not do again what the program does.

    All that stands before the tool is run, for the tool may need it; of what stands behind it only definitions, imports
    and constants.
    """

    def __init__(self, file: str, tool: str) -> None:
        super().__init__(MAIN, file)
        self._tool = tool

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (a loader's signature)
        """Not from the cache of compiled files, which holds whole programs."""
        tree = ast.parse(self.get_data(self.path), self.path)
        names = [getattr(node, "name", "") for node in tree.body]
        first = names.index(self._tool) if self._tool in names else len(names)
        tree.body = [node for at, node in enumerate(tree.body) if at <= first or _defines(node)]
        return self.source_to_code(tree, self.path)


def _defines(node: ast.stmt) -> bool:
    """Whether a statement does nothing but give something a name."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or all(isinstance(part, CONSTANTS) for part in ast.walk(node.value))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _program(given: dict[str, Any]) -> ModuleType:
    """Import the program's own file under another name."""
    spec = spec_from_loader(MAIN, _Definitions(given["file"], given["name"].partition(".")[0]))
    if spec is None or spec.loader is None:
        raise ImportError(f"{given['file']} is no Python file")
    module = module_from_spec(spec)
    module.__package__ = given["package"]
    sys.modules[MAIN] = module
    spec.loader.exec_module(module)
    return module
