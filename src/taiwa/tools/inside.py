"""The inside of a worker process: find a tool, and call it for each question."""

import json
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, cast

from taiwa.apart.inside import Answers
from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json, record
from taiwa.kernel.values import ToolResult

__all__ = ["door"]

MAIN = "__taiwa_tool__"
MEGABYTE = 1 << 20
KEPT_WORDS = 2_000


def door(start: dict[str, Any]) -> Answers:
    """Find the tool that another process named."""
    tool = _found(start)

    def answer(question: dict[str, Json], characters: int) -> dict[str, Json]:
        return _answer(tool, cast("dict[str, Json]", question["arguments"]), characters)

    return answer


def _answer(tool: Any, arguments: dict[str, Json], characters: int) -> dict[str, Json]:  # noqa: ANN401  (a user's tool)
    try:
        result = cast("ToolResult", tool.call(arguments))
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
    found: Any = _program(given["file"]) if given["file"] else import_module(given["module"])
    for name in given["name"].split("."):
        found = getattr(found, name)
    return found


def _program(file: str) -> ModuleType:
    """Import the program's own file under another name, so that what it does when it is run is not done again."""
    spec = spec_from_file_location(MAIN, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = module_from_spec(spec)
    sys.modules[MAIN] = module
    spec.loader.exec_module(module)
    return module
