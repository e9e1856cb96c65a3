"""A user's own tools in processes that can be killed, a few of which are kept for the next calls."""

import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, cast
from weakref import finalize

from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, restore
from taiwa.tools.tool import FunctionTool

__all__ = ["IsolatedTool", "isolated"]


KEPT_WORKERS = 4

USUAL = ProcessLimits()


def isolated(tool: FunctionTool[Any, Any], limits: ProcessLimits = USUAL) -> "IsolatedTool":
    """Run a tool's calls in worker processes; a worker is started at the first call and kept for the next ones.

    Raises:
        InputError: the tool is no attribute of a module, so another process cannot find it.
    """
    return IsolatedTool(tool, limits)


class IsolatedTool:
    """A tool of which every call ends: with its result, or with a `ToolError` when its limits are reached.

    Codes beside the tool's own: `timeout`, `memory`, `too_large`, `crashed`. What a crashed worker printed is a note of the
    error, for a person's traceback, and never part of the message that a model reads. Calls from several threads run side by side.
    """

    def __init__(self, tool: FunctionTool[Any, Any], limits: ProcessLimits) -> None:
        self._tool = tool
        self._limits = limits
        self._address = _address(tool)
        self._idle: deque[IsolatedProcess] = deque()
        self._lock = Lock()
        self._close = finalize(self, _end_all, self._idle)

    def __repr__(self) -> str:
        return f"Isolated({self.spec.name})"

    def __enter__(self) -> "IsolatedTool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return self._tool.spec

    def close(self) -> None:
        """End the workers; a later call starts a new one."""
        with self._lock:
            _end_all(self._idle)

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the tool in a worker.

        Raises:
            ToolError: as the tool does, or its limits were reached.
        """
        worker = self._worker()
        try:
            answer = worker.ask({"arguments": dict(arguments)}, self._limits)
        except BaseException:
            worker.end()
            raise
        error = cast("dict[str, str] | None", answer.get("error"))
        if error is not None and error["code"] == "memory":
            worker.end()  # what it holds would count against the next call
        else:
            self._keep(worker)
        if error is not None:
            failed = ToolError(error["message"], code=error["code"], hint=error["hint"])
            if error["trace"]:
                failed.add_note(error["trace"])
            raise failed
        return cast("ToolResult", restore(answer["result"]))

    def _worker(self) -> IsolatedProcess:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
        return IsolatedProcess("taiwa.tools.isolated_child:entry", self._address, self.spec.name, self._limits)

    def _keep(self, worker: IsolatedProcess) -> None:
        with self._lock:
            if len(self._idle) < KEPT_WORKERS:
                self._idle.append(worker)
                return
        worker.end()


def _end_all(workers: "deque[IsolatedProcess]") -> None:
    while workers:
        workers.pop().end()


def _address(tool: FunctionTool[Any, Any]) -> dict[str, Json]:
    """Where another process finds the tool: its module, or the file of the program itself."""
    function = tool.function
    module, path = function.__module__, getattr(function, "__qualname__", "")
    main = sys.modules.get("__main__")
    file = str(getattr(main, "__file__", ""))
    found: object = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    there = isinstance(found, FunctionTool) and cast("Any", found).function is function
    if "<" in path or not there or (module == "__main__" and not Path(file).is_file()):
        raise InputError(f"{tool.spec.name} cannot be found by another process: define it at the top of a module")
    return {
        "module": module,
        "name": path,
        "file": file if module == "__main__" else "",
        "package": str(getattr(main, "__package__", None) or ""),
        "fixed": _plain(tool),
    }


def _plain(tool: FunctionTool[Any, Any]) -> dict[str, Json]:
    """The parameters that are fixed, where JSON can say them."""
    if not all(part is None or isinstance(part, (str, int, float)) for part in tool.fixed.values()):
        raise InputError(f"{tool.spec.name} has a fixed parameter that another process cannot be told")
    return cast("dict[str, Json]", dict(tool.fixed))
