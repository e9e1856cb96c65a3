"""The inside of a worker process: find a tool, then answer each line of standard input with one line.

    python -m taiwa.tools.inside '{"module": "my_tools", "name": "look_up", …}'

It lowers its own limits first, so a tool can neither take all memory, nor leave a core file, nor fill a disk.
"""

import json
import math
import os
import resource
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, cast

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json, record
from taiwa.kernel.values import ToolResult

__all__ = ["main"]

MAIN = "__taiwa_tool__"
MEGABYTE = 1 << 20
LARGEST_FILE_MB = 64
MORE_CPU_SECONDS = 2
KEPT_WORDS = 2_000


def main(start: str) -> None:
    """Serve until standard input ends."""
    given = json.loads(start)
    sys.path[:] = given["path"]
    answers = given["answers"]
    os.set_inheritable(answers, False)
    _limit(given["bounds"])
    tool = _found(given)
    _say(answers, {"ready": True})
    for line in sys.stdin.buffer:
        question = json.loads(line)
        bounds = question["bounds"]
        _limit_time(float(bounds.get("seconds", 10.0)))
        _say(answers, _answer(tool, question["arguments"], int(bounds.get("characters", 100_000))))


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


def _limit(bounds: dict[str, Any]) -> None:
    _lower(resource.RLIMIT_AS, int(bounds.get("memory_mb", 1_024)) * MEGABYTE)
    _lower(resource.RLIMIT_FSIZE, LARGEST_FILE_MB * MEGABYTE)
    _lower(resource.RLIMIT_CORE, 0)


def _limit_time(seconds: float) -> None:
    """Processor time beyond the deadline ends the process by itself, should nobody be left to kill it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = used.ru_utime + used.ru_stime
    _lower(resource.RLIMIT_CPU, math.ceil(spent + seconds) + MORE_CPU_SECONDS)


def _lower(which: int, wanted: int) -> None:
    hard = resource.getrlimit(which)[1]
    resource.setrlimit(which, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _say(answers: int, words: dict[str, Json]) -> None:
    line = json.dumps(words).encode() + b"\n"
    while line:
        line = line[os.write(answers, line) :]


if __name__ == "__main__":
    main(sys.argv[1])
