"""`@tool`: a typed function as a tool that a model can call, and the strict form of its parameters."""

import ast
import inspect
import json
import re
import sys
import traceback
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast, get_origin, get_type_hints, overload

from taiwa.isolation import Handler, ProcessLimits, ProcessPool, in_child
from taiwa.kernel.attachments import MAX_COUNT, MAX_RESULT_BYTES, Attachment
from taiwa.kernel.errors import InputError, OutputValidationError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.runtime import start_in_thread
from taiwa.kernel.serialization import Json, canonical, item_at, record, restore, text_at
from taiwa.structured import OutputType

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_LIMITS = ProcessLimits()
MAX_IDLE_WORKERS = 4
MAX_ARGUMENT_CHARS = 1_000_000
MAX_ARGUMENT_DEPTH = 100
BLOCKED_SECONDS = 1.0
"""Seconds that a late asynchronous tool may block its loop from cancelling it."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")


class FunctionTool(Generic[P, R]):
    """A function that a model can call with JSON arguments; plain calls go to the function itself.

    `isolated=None` means: in a worker process if it can import the function, else in a thread with a deadline.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str = "",
        fixed: Mapping[str, object] | None = None,
        *,
        description: str = "",
        isolated: bool | None = None,
        limits: ProcessLimits = DEFAULT_LIMITS,
        secrets: Sequence[str] = (),
        confirm: bool = False,
    ) -> None:
        self.function = function
        self.fixed: Mapping[str, object] = dict(fixed or {})
        """The parameters that `preset` has fixed."""
        self._isolated = isolated
        self._limits = limits
        self.secrets = tuple(secrets)
        self.confirm = confirm
        """Whether a call by a model needs approval."""
        self._worker: IsolatedTool | None = None
        hints = _hints(function)
        returns = hints["return"]
        self._returns: OutputType[Any] | None = (
            None
            if returns in (str, ToolResult, Attachment)
            else OutputType(Any if hasattr(get_origin(returns) or returns, "tolist") else returns)  # an array of numpy
        )
        declared = inspect.signature(function).parameters
        parameters = {each: part for each, part in declared.items() if each not in self.fixed}
        self._parameters: dict[str, OutputType[Any]] = {each: OutputType(hints[each]) for each in parameters}
        required = frozenset(each for each, part in parameters.items() if part.default is part.empty)
        name = name or getattr(function, "__name__", "")
        if not NAME.match(name):
            raise InputError(f"invalid tool name {name!r}; use letters, digits, _ and -, at most 64")
        description = description or inspect.getdoc(function) or ""
        if not description:
            raise InputError(f"the tool {name} needs a docstring, or description=…, which describes it to the model")
        self._arguments = OutputType.fields(name, {each: hints[each] for each in parameters}, required)
        schema = self._arguments.schema()
        for each, part in parameters.items():
            _add_default(schema, each, part.default, self._parameters[each])
        self.spec = ToolSpec(name, description, schema)
        """How a model sees the tool."""
        if isolated and isinstance(self, AsyncFunctionTool):
            raise InputError(f"{name} is asynchronous and runs in this process; leave out `isolated`")

    def __repr__(self) -> str:
        return f"FunctionTool({self.spec.name})"

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the function itself."""
        return self.function(*arguments, **named)

    def preset(self, **fixed: object) -> "FunctionTool[..., R]":
        """Return a tool of the same name with some fixed parameters, which are hidden from models.

        Raises:
            InputError: the tool has no such parameter.
        """
        unknown = next((each for each in fixed if each not in self._parameters), None)
        if unknown is not None:
            raise InputError(f"{self.spec.name} has no parameter {unknown!r}")
        fixed = {**self.fixed, **fixed}
        return type(self)(
            self.function, self.spec.name, fixed, description=self.spec.description, isolated=self._isolated,
            limits=self._limits, secrets=self.secrets, confirm=self.confirm,
        )  # fmt: skip

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function with JSON arguments, within its limits.

        Raises:
            ToolError: `bad_arguments`, `internal` if the function failed, the function's own ToolError, or `timeout`,
            `memory`, `too_large`, `crashed`.
        """
        if self._isolated is False:
            return self.call_in_place(arguments)
        plain, _ = self._check(arguments)  # checked before a process is started
        if self._worker is None:
            self._worker = self._start_worker()
        if self._worker is not None:
            return self._worker.call(plain)
        name = self.spec.name
        # A thread cannot be killed: a late call continues in the background, and a call that never releases the GIL is not
        # even detected as late.
        future = start_in_thread(lambda: self.call_in_place(arguments), f"tool {name}")
        try:
            return future.result(self._limits.seconds)
        except TimeoutError:
            raise ToolError(f"{name} timed out", code="timeout") from None

    def call_in_place(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function in this thread, without a deadline.

        Raises:
            ToolError: as `call` does.
        """
        _, values = self._check(arguments)
        call: Callable[..., R] = self.function
        try:
            result = self._result(call(**values, **self.fixed))
        except ToolError:
            raise
        except SystemExit as error:
            raise ToolError(f"{self.spec.name} failed", code="crashed") from error
        except Exception as error:  # the model receives that the tool failed, but not why
            raise ToolError(f"{self.spec.name} failed", code="internal") from error
        return self._bounded(result)

    def _bounded(self, result: ToolResult) -> ToolResult:
        size = sum(each.size for each in result.attachments)
        if len(result.text) > self._limits.characters or size > MAX_RESULT_BYTES or len(result.attachments) > MAX_COUNT:
            raise ToolError(f"{self.spec.name} returned too much", code="too_large", hint="ask for less")
        return result

    def _start_worker(self) -> "IsolatedTool | None":
        """Return the tool in worker processes; None if they cannot import it, or inside a worker.

        Raises:
            InputError: they cannot import it, but `isolated` requires it.
        """
        if in_child():
            return None
        try:
            return IsolatedTool(self, self._limits)
        except InputError:
            if self._isolated:
                raise
            return None

    def _check(self, arguments: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Any]]:
        """Return the arguments as JSON, in which a decimal is its text, and as values."""
        if json_size(arguments, MAX_ARGUMENT_CHARS) > MAX_ARGUMENT_CHARS:
            hint = f"at most {MAX_ARGUMENT_CHARS:,} characters and {MAX_ARGUMENT_DEPTH} levels"
            raise ToolError("the arguments are too long or nested too deeply", code="too_long", hint=hint)
        try:
            # Strict function calling sends null for an omitted parameter, and models write numbers and lists as strings.
            checked = self._arguments.validate(self._arguments.repair(dict(arguments)))
            return checked, {name: self._parameters[name].validate(part) for name, part in checked.items()}
        except OutputValidationError as error:
            message = "; ".join(error.diagnostics or (error.message,))
            hint = f"parameters: {', '.join(self._parameters) or 'none'}"
            raise ToolError(message, code="bad_arguments", hint=hint) from None

    def _result(self, returned: object) -> ToolResult:
        name = self.spec.name
        if isinstance(returned, ToolResult):
            return replace(returned, name=name)
        if isinstance(returned, Attachment):
            return ToolResult("", name, attachments=(returned,))
        if self._returns is None:
            return ToolResult(str(returned), name, value=str(returned))
        plain = self._returns.dump_result(returned)
        return ToolResult(canonical(plain).decode(), name, value=plain)


class AsyncFunctionTool(FunctionTool[P, R]):
    """An `async def` function as a tool: an `AsyncRuntime` awaits it on its own event loop.

    Elsewhere `call` runs it on a separate loop in a thread. It stays in this process, and is cancelled at its deadline.

    Raises:
        InputError: `isolated` requires a separate process.
    """

    @property
    def _seconds(self) -> float | None:
        return None if self._isolated is False else self._limits.seconds

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """As `FunctionTool.call`, on a separate event loop."""
        return self.call_in_place(arguments)

    def call_in_place(self, arguments: Mapping[str, Json]) -> ToolResult:
        """As `call`."""
        import asyncio

        # The loop cancels the call at its deadline, unless the function blocks the loop.
        seconds = None if self._seconds is None else self._seconds + BLOCKED_SECONDS
        future = start_in_thread(lambda: asyncio.run(self.acall(arguments)), f"tool {self.spec.name}")
        try:
            return future.result(seconds)
        except TimeoutError:
            raise ToolError(f"{self.spec.name} timed out", code="timeout") from None

    async def acall(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function with JSON arguments on this event loop, within its limits.

        Raises:
            ToolError: as `FunctionTool.call`.
        """
        import asyncio  # imported here, because a command that needs no event loop should not load asyncio

        _, values = self._check(arguments)
        call: Callable[..., Any] = self.function
        bound = asyncio.timeout(self._seconds)
        try:
            async with bound:
                result = self._result(await call(**values, **self.fixed))
        except ToolError:
            raise
        except SystemExit as error:
            raise ToolError(f"{self.spec.name} failed", code="crashed") from error
        except Exception as error:  # as in `call_in_place`
            if bound.expired():
                raise ToolError(f"{self.spec.name} timed out", code="timeout") from None
            raise ToolError(f"{self.spec.name} failed", code="internal") from error
        return self._bounded(result)


class IsolatedTool(AbstractContextManager["IsolatedTool"]):
    """A tool whose calls always terminate: with a result, or with a `ToolError` when a limit is reached.

    Additional error codes: `timeout`, `memory`, `too_large`, `crashed`. The output of a crashed worker is a note on the
    error, for the traceback, and never part of the message for the model. Calls from several threads run concurrently. A
    worker is started at the first call, and a few are kept for later calls.

    Raises:
        InputError: the tool is not an attribute of a module, so another process cannot import it.
    """

    def __init__(self, tool: FunctionTool[Any, Any], limits: ProcessLimits = DEFAULT_LIMITS) -> None:
        self.spec, self.confirm = tool.spec, tool.confirm
        self._workers = ProcessPool(
            f"{__name__}:entry", tool.spec.name, limits, MAX_IDLE_WORKERS,
            start=_address(tool), secrets=tool.secrets, is_bounded=False,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"IsolatedTool({self.spec.name})"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; a later call starts a new one."""
        self._workers.close()

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the tool in a worker.

        Raises:
            ToolError: raised by the tool, or a limit was reached.
        """
        answer = self._workers.ask({"arguments": dict(arguments)}, _is_out_of_memory)
        error = cast("dict[str, str] | None", answer.get("error"))
        if error is None:
            result = cast("ToolResult", restore(answer["result"]))
            files = zip(result.attachments, cast("list[str]", answer["files"]), strict=True)
            return replace(result, attachments=tuple(replace(each, data=b64decode(data)) for each, data in files))
        failed = ToolError(error["message"], code=error["code"], hint=error["hint"])
        if error["trace"]:
            failed.add_note(error["trace"])
        raise failed


def _is_out_of_memory(answer: dict[str, Json]) -> bool:
    """Return whether the memory that a worker uses would count against the next call."""
    return item_at(answer, "error", "code") == "memory"


def _address(tool: FunctionTool[Any, Any]) -> dict[str, Json]:
    """Return the address of the tool for another process: its module, or the file of the program itself."""
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
        why = f"a fixed parameter of {tool.spec.name} cannot be sent to another process"
        raise InputError(f"{why}; use text or a number")
    package, fixed = str(getattr(main, "__package__", None) or ""), cast("dict[str, Json]", dict(tool.fixed))
    file = file if module == "__main__" else ""
    return {"module": module, "name": path, "file": file, "package": package, "fixed": fixed}


@overload
def tool(function: Callable[P, R]) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, name: str = ..., description: str = ..., isolated: bool | None = ..., seconds: float = ..., memory_mb: int = ...,
    characters: int = ..., secrets: Sequence[str] = ..., confirm: bool = ...,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...  # fmt: skip


def tool(
    function: Callable[P, R] | None = None,
    *,
    name: str = "",
    description: str = "",
    isolated: bool | None = None,
    seconds: float = DEFAULT_LIMITS.seconds,
    memory_mb: int = DEFAULT_LIMITS.memory_mb,
    characters: int = DEFAULT_LIMITS.characters,
    secrets: Sequence[str] = (),
    confirm: bool = False,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: parameters and result need types, its docstring describes it to the model.

    `name` and `description` override those of the function. A call of a tool with `confirm` needs approval: by a user on a terminal or
    the page, or by the function `approve` of a client.

    A model's call runs in a worker process that is killed at its deadline, if a worker can import the function: from the top
    of a module or of the program's file. Changes to variables of the program stay in the worker. Any other function runs in a
    thread of this process, with a deadline that takes effect only while the function lets other threads run. `isolated=True`
    refuses such functions; `isolated=False` runs in place, with the program's variables and without a deadline. A worker process
    gets the environment without API keys, tokens and passwords, except those that `secrets` names. An `async def` function
    stays in this process: it is awaited on the event loop of an `AsyncClient`, and elsewhere runs on a separate loop.

    >>> @tool
    ... def double(number: int) -> int:
    ...     "Double a number."
    ...     return 2 * number
    >>> double.call({"number": 21}).text
    '42'

    Raises:
        InputError: a parameter or the result has no type, or the function cannot be called by name.
    """
    limits = ProcessLimits(seconds, memory_mb, characters)

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        kind = AsyncFunctionTool[P, R] if inspect.iscoroutinefunction(cast("object", function)) else FunctionTool[P, R]
        return kind(
            function, name, description=description, isolated=isolated, limits=limits, secrets=secrets, confirm=confirm
        )  # fmt: skip

    return make if function is None else make(function)


def json_size(part: object, most: int, depth: int = 0) -> int:
    """Count the characters in JSON data until they exceed `most`; data nested too deeply counts as too long."""
    if depth > MAX_ARGUMENT_DEPTH:
        return most + 1
    if isinstance(part, str):
        return len(part)
    if isinstance(part, Mapping):
        part = [*cast("Mapping[str, object]", part), *cast("Mapping[str, object]", part).values()]
    if not isinstance(part, list):
        return 1
    total = 0
    for each in cast("list[object]", part):
        total += 1 + json_size(each, most, depth + 1)
        if total > most:
            break
    return total


def _add_default(schema: dict[str, Json], name: str, default: object, output_type: OutputType[Any]) -> None:
    """Add the default of a parameter to the schema of the parameters, if JSON can express it; not beside a reference, which some
    servers refuse, but to a copy of what it names.
    """
    properties = schema.get("properties")
    if default is inspect.Parameter.empty or not isinstance(properties, dict):
        return
    declared = properties.get(name)
    with suppress(InputError):  # such as an object that stands for "not given"
        if isinstance(declared, dict):
            reference = text_at(declared, "$ref")
            named = item_at(schema, *reference.split("/")[1:]) if reference else declared
            if isinstance(named, dict):
                properties[name] = {**named, "default": named.get("default", output_type.dump(default))}
            definitions = schema.get("$defs")
            if reference and isinstance(definitions, dict) and json.dumps(reference) not in json.dumps(schema):
                del definitions[reference.rpartition("/")[2]]


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    name = getattr(function, "__name__", "") or repr(function)
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"cannot resolve the types of {name}: {error}") from error
    for each, part in inspect.signature(function).parameters.items():
        if part.kind not in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY):
            raise InputError(f"{name}: {each!r} must be an ordinary parameter; a tool is called with named arguments")
    missing = [each for each in (*inspect.signature(function).parameters, "return") if each not in hints]
    if missing:
        raise InputError(f"{name}: {missing[0]!r} needs a type")
    return hints


MAIN = "__taiwa_tool__"
MEGABYTE = 1 << 20
MAX_TRACE_CHARS = 2_000
CONSTANTS = (
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip


def entry(start: dict[str, Any]) -> Handler:
    """Import the tool at an address (see `taiwa.tools.function_tool`) and return its request handler."""
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
    except (ToolError, MemoryError) as error:
        cause = error.__cause__
        if isinstance(error, MemoryError) or isinstance(cause, MemoryError):
            return _error("needs too much memory", "memory", tool.spec.name)
        trace = "".join(traceback.format_exception(cause))[-MAX_TRACE_CHARS:] if cause is not None else ""
        return {"error": {"message": error.message, "code": error.code, "hint": error.hint, "trace": trace}}
    return {"result": recorded, "files": [each.base64 for each in result.attachments]}


def _error(what: str, code: str, name: str, hint: str = "") -> dict[str, Json]:
    return {"error": {"message": f"{name} {what}", "code": code, "hint": hint, "trace": ""}}


class _Definitions(SourceFileLoader):
    """Loads the parts of a program that a tool needs without running the program again:

    everything before the tool, and of the rest only definitions, imports and constants.
    """

    def __init__(self, file: str, tool: str) -> None:
        super().__init__(MAIN, file)
        self._tool = tool

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (a loader's signature)
        """Compile the file without the bytecode cache, which contains complete programs."""
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
