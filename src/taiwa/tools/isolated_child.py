"""The worker process of an isolated tool: import the tool, then call it once per request."""

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
MAX_TRACE_CHARS = 2_000
CONSTANTS = (
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip


def entry(start: dict[str, Any]) -> Handler:
    """Import the tool at an address (see `taiwa.tools.function_tool`) and return what answers requests with it."""
    tool: Any = _import_program(start) if start["file"] else import_module(start["module"])
    for name in start["name"].split("."):
        tool = getattr(tool, name)
    if start["fixed"]:
        tool = tool.preset(**start["fixed"])
    return lambda request, max_chars: _call(tool, cast("dict[str, Json]", request["arguments"]), max_chars)


def _call(tool: Any, arguments: dict[str, Json], max_chars: int) -> dict[str, Json]:  # noqa: ANN401  (a user's tool)
    try:
        result = cast("ToolResult", tool.call_in_place(arguments))
        recorded = record(result)
        if len(result.text) > max_chars or len(json.dumps(recorded)) > 2 * max_chars + MEGABYTE:
            return _error("returned too much", "too_large", tool.spec.name, "ask for less")
    except ToolError as error:
        cause = error.__cause__
        trace = "".join(traceback.format_exception(cause))[-MAX_TRACE_CHARS:] if cause is not None else ""
        if isinstance(cause, MemoryError):
            return _error("needs too much memory", "memory", tool.spec.name)
        return {"error": {"message": error.message, "code": error.code, "hint": error.hint, "trace": trace}}
    except MemoryError:
        return _error("needs too much memory", "memory", tool.spec.name)
    return {"result": recorded}


def _error(what: str, code: str, name: str, hint: str = "") -> dict[str, Json]:
    return {"error": {"message": f"{name} {what}", "code": code, "hint": hint, "trace": ""}}


class _Definitions(SourceFileLoader):
    """Loads what a tool needs of a program without running the program again.

    Everything before the tool is run, because the tool may need it; of what follows, only definitions, imports and constants.
    """

    def __init__(self, file: str, tool: str) -> None:
        super().__init__(MAIN, file)
        self._tool = tool

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (a loader's signature)
        """Compile the file without the bytecode cache, which holds whole programs."""
        tree = ast.parse(self.get_data(self.path), self.path)
        names = [getattr(node, "name", "") for node in tree.body]
        first = names.index(self._tool) if self._tool in names else len(names)
        tree.body = [node for at, node in enumerate(tree.body) if at <= first or _defines(node)]
        return self.source_to_code(tree, self.path)


def _defines(node: ast.stmt) -> bool:
    """Whether a statement only binds a name."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return node.value is None or all(isinstance(part, CONSTANTS) for part in ast.walk(node.value))
    return isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _import_program(start: dict[str, Any]) -> ModuleType:
    """Import the program's own file under another name."""
    spec = spec_from_loader(MAIN, _Definitions(start["file"], start["name"].partition(".")[0]))
    if spec is None or spec.loader is None:
        raise ImportError(f"{start['file']} is not a Python file")
    module = module_from_spec(spec)
    module.__package__ = start["package"]
    sys.modules[MAIN] = module
    spec.loader.exec_module(module)
    return module
