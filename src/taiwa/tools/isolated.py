"""Tools that run in worker processes, which can be killed; a few idle workers are kept for the next calls."""

import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, cast
from weakref import finalize

from taiwa.isolation import IsolatedProcess, ProcessLimits
from taiwa.kernel.errors import InputError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, restore

MAX_IDLE_WORKERS = 4
DEFAULT_LIMITS = ProcessLimits()


class ToolFunction(Protocol):
    """What a worker must know of a tool: `taiwa.tools.FunctionTool` has it."""

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        ...

    @property
    def function(self) -> Callable[..., Any]:
        """The function, which the worker imports by module and name."""
        ...

    @property
    def fixed(self) -> Mapping[str, object]:
        """The parameters that are fixed."""
        ...


def isolated(tool: ToolFunction, limits: ProcessLimits = DEFAULT_LIMITS) -> "IsolatedTool":
    """Run the calls of a tool in worker processes; a worker is started at the first call and kept for the next ones.

    Raises:
        InputError: the tool is not an attribute of a module, so another process cannot import it.
    """
    return IsolatedTool(tool, limits)


class IsolatedTool:
    """A tool of which every call ends: with its result, or with a `ToolError` when a limit is reached.

    Codes beside those of the tool: `timeout`, `memory`, `too_large`, `crashed`. What a crashed worker printed is a note on the
    error, for the traceback, and never part of the message that a model reads. Calls from several threads run side by side.
    """

    def __init__(self, tool: ToolFunction, limits: ProcessLimits) -> None:
        self._tool = tool
        self._limits = limits
        self._address = _address(tool)
        self._idle: deque[IsolatedProcess] = deque()
        self._lock = Lock()
        self._finalizer = finalize(self, _end_all, self._idle)

    def __repr__(self) -> str:
        return f"IsolatedTool({self.spec.name})"

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
            ToolError: raised by the tool, or a limit was reached.
        """
        worker = self._take_worker()
        try:
            answer = worker.ask({"arguments": dict(arguments)}, self._limits)
        except BaseException:
            worker.end()
            raise
        error = cast("dict[str, str] | None", answer.get("error"))
        if error is None:
            self._put_back(worker)
            return cast("ToolResult", restore(answer["result"]))
        if error["code"] == "memory":
            worker.end()  # its memory would count against the next call
        else:
            self._put_back(worker)
        failed = ToolError(error["message"], code=error["code"], hint=error["hint"])
        if error["trace"]:
            failed.add_note(error["trace"])
        raise failed

    def _take_worker(self) -> IsolatedProcess:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                worker.end()
        return IsolatedProcess("taiwa.tools.isolated_child:entry", self._address, self.spec.name, self._limits)

    def _put_back(self, worker: IsolatedProcess) -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE_WORKERS:
                self._idle.append(worker)
                return
        worker.end()


def _end_all(workers: "deque[IsolatedProcess]") -> None:
    while workers:
        workers.pop().end()


def _address(tool: ToolFunction) -> dict[str, Json]:
    """Return where another process finds the tool: its module, or the file of the program itself."""
    function = tool.function
    module, path = function.__module__, getattr(function, "__qualname__", "")
    main = sys.modules.get("__main__")
    file = str(getattr(main, "__file__", ""))
    attribute: object = sys.modules.get(module)
    for name in path.split("."):
        attribute = getattr(attribute, name, None)
    is_importable = "<" not in path and getattr(attribute, "function", None) is function
    if not is_importable or (module == "__main__" and not Path(file).is_file()):
        raise InputError(f"another process cannot import {tool.spec.name}; define it at the top of a module")
    if not all(value is None or isinstance(value, (str, int, float)) for value in tool.fixed.values()):
        raise InputError(
            f"a fixed parameter of {tool.spec.name} cannot be sent to another process; use text or a number"
        )
    return {
        "module": module,
        "name": path,
        "file": file if module == "__main__" else "",
        "package": str(getattr(main, "__package__", None) or ""),
        "fixed": cast("dict[str, Json]", dict(tool.fixed)),
    }
