"""`@tool`: function → tool; strict parameters."""

import inspect
import re
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

from taiwa.isolation import ProcessLimits, in_child
from taiwa.kernel.errors import InputError, OutputValidationError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, canonical
from taiwa.structured import OutputType

if TYPE_CHECKING:
    from taiwa.tools.isolated import IsolatedTool

__all__ = ["FunctionTool", "strict", "tool"]


R = TypeVar("R")


def in_time(act: Callable[[], R], seconds: float, name: str) -> R:
    """Do something in a thread of its own and wait so long.

    A thread cannot be killed: what is late goes on unseen, and what never lets another thread run is not even late.

    Raises:
        ToolError: `timeout`; or what the act raised.
    """
    outcome: _Outcome[R] = _Outcome(act)
    Thread(target=copy_context().run, args=(outcome.run,), name=f"tool {name}", daemon=True).start()
    if not outcome.done.wait(seconds):
        raise ToolError(f"{name} timed out", code="timeout")
    return outcome.given(name)


class _Outcome(Generic[R]):
    """What an act gave or raised, for another thread: kept in a `with` block, because it may raise anything."""

    def __init__(self, act: Callable[[], R]) -> None:
        self.done = Event()
        self._act = act
        self._given: list[R] = []
        self._raised: BaseException | None = None

    def run(self) -> None:
        with self:
            self._given.append(self._act())

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._raised = error
        self.done.set()
        return True

    def given(self, name: str) -> R:
        if isinstance(self._raised, SystemExit):
            raise ToolError(f"{name} failed", code="crashed") from self._raised
        if self._raised is not None:
            raise self._raised
        return self._given[0]


P = ParamSpec("P")

USUAL = ProcessLimits()

LONGEST_ARGUMENTS = 1_000_000
"""Characters; they are checked as JSON, which takes time of its own."""

DEEPEST_ARGUMENTS = 100

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")


class _Failure:
    """Maps what a function raises. It is foreign code and may raise anything: a model reads that it failed and never why.

    A `with` block, because an `except` that catches everything is for the drivers alone; here nothing is kept, the
    error goes on as the cause.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, ToolError):
            raise ToolError(f"{self._name} failed", code="internal") from error


class FunctionTool(Generic[P, R]):
    """A function that can also be called by name with JSON arguments; plain calls go to the function itself.

    `isolated` None means: in a worker process where one can find the function, else in a thread with a deadline.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str = "",
        fixed: Mapping[str, object] | None = None,
        *,
        isolated: bool | None = None,
        limits: ProcessLimits = USUAL,
    ) -> None:
        self._function = function
        self._fixed = dict(fixed or {})
        self._isolated = isolated
        self._limits = limits
        self._apart: IsolatedTool | None = None
        hints = _hints(function)
        self._returns: OutputType[Any] | None = (
            None if hints["return"] in (str, ToolResult) else OutputType(hints["return"])
        )
        given = {each: part for each, part in inspect.signature(function).parameters.items() if each not in self._fixed}
        self._parameters: dict[str, OutputType[Any]] = {each: OutputType(hints[each]) for each in given}
        required = frozenset(each for each, part in given.items() if part.default is part.empty)
        name = name or getattr(function, "__name__", "")
        if not NAME.match(name):
            raise InputError(f"{name!r} cannot be the name of a tool: letters, digits, _ and -, at most 64")
        description = inspect.getdoc(function)
        if not description:
            raise InputError(f"the tool {name} needs a docstring: a model reads it to know what the tool does")
        self._arguments = OutputType.fields(name, {each: hints[each] for each in given}, required)
        self._spec = ToolSpec(name, description, self._arguments.schema())
        # Strict function calling says null for what it leaves out, unless the parameter has a null of its own.
        self._absent = frozenset(
            each for each in given if each not in required and not _takes_null(self._parameters[each])
        )

    def __repr__(self) -> str:
        return f"FunctionTool({self._spec.name})"

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the function itself."""
        return self._function(*arguments, **named)

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return self._spec

    @property
    def function(self) -> Callable[P, R]:
        """The function itself."""
        return self._function

    @property
    def fixed(self) -> Mapping[str, object]:
        """The parameters that `preset` has given."""
        return self._fixed

    def preset(self, **fixed: object) -> "FunctionTool[..., R]":
        """Make a tool of the same name with some parameters fixed, which a model no longer sees.

        Raises:
            InputError: there is no such parameter.
        """
        unknown = next((each for each in fixed if each not in self._parameters), None)
        if unknown is not None:
            raise InputError(f"{self._spec.name} has no parameter {unknown!r}")
        kept = {**self._fixed, **fixed}
        return FunctionTool(self._function, self._spec.name, kept, isolated=self._isolated, limits=self._limits)

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function with JSON arguments, within its limits.

        Raises:
            ToolError: `bad_arguments`, `internal` where the function failed, what the function raised itself, or
                `timeout`, `memory`, `too_large`, `crashed`.
        """
        if self._isolated is False:
            return self.here(arguments)
        self._values(arguments)  # what does not fit needs no process
        if self._apart is None:
            self._apart = self._worker()
        if self._apart is not None:
            return self._apart.call(arguments)
        return in_time(lambda: self.here(arguments), self._limits.seconds, self._spec.name)

    def here(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function in this thread, without a deadline.

        Raises:
            ToolError: as `call` does.
        """
        values = self._values(arguments)
        call: Callable[..., R] = self._function
        with _Failure(self._spec.name):
            result = self._result(call(**values, **self._fixed))
        if len(result.text) > self._limits.characters:
            raise ToolError(f"{self._spec.name} gave too much", code="too_large", hint="ask for less")
        return result

    def _worker(self) -> "IsolatedTool | None":
        """The function in worker processes, where they can find it.

        Raises:
            InputError: they cannot, and it was asked for.
        """
        from taiwa.tools.isolated import IsolatedTool

        if in_child():
            return None
        try:
            return IsolatedTool(self, self._limits)
        except InputError:
            if self._isolated:
                raise
            return None

    def _values(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        if _size(arguments, LONGEST_ARGUMENTS) > LONGEST_ARGUMENTS:
            raise ToolError(
                "the arguments are too long", code="too_long", hint=f"at most {LONGEST_ARGUMENTS:,} characters"
            )
        try:
            said = {name: part for name, part in arguments.items() if part is not None or name not in self._absent}
            checked = self._arguments.validate(said)
            return {name: self._parameters[name].validate(part) for name, part in checked.items()}
        except OutputValidationError as error:
            message = "; ".join(error.diagnostics or (error.message,))
            hint = f"parameters: {', '.join(self._parameters) or 'none'}"
            raise ToolError(message, code="bad_arguments", hint=hint) from None

    def _result(self, given: object) -> ToolResult:
        name = self._spec.name
        if isinstance(given, ToolResult):
            return replace(given, name=name)
        if self._returns is None:
            return ToolResult(str(given), name, value=str(given))
        wire = self._returns.dump(given)
        plain = wire["value"] if self._returns.wrapped and isinstance(wire, dict) else wire
        return ToolResult(canonical(plain).decode(), name, value=plain)


@overload
def tool(function: Callable[P, R]) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    isolated: bool | None = None,
    seconds: float = USUAL.seconds,
    memory_mb: int = USUAL.memory_mb,
    characters: int = USUAL.characters,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    *,
    isolated: bool | None = None,
    seconds: float = USUAL.seconds,
    memory_mb: int = USUAL.memory_mb,
    characters: int = USUAL.characters,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function: parameters and result need types, its docstring tells a model what it does.

    What a model calls runs in a worker process that is killed at its deadline, where a worker can find the function: at the
    top of a module or of the program's file. What it changes in variables of the program stays there. Any other function
    runs here in a thread, with a deadline that only code which lets other threads run can notice. `isolated=True` refuses
    such functions; `isolated=False` runs in place, with the program's variables and without a deadline.

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

    def made(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(function, isolated=isolated, limits=limits)

    return made if function is None else made(function)


def _size(part: object, most: int, deep: int = 0) -> int:
    """The characters in JSON data, counted until there are too many; what is nested without end counts as too many."""
    if deep > DEEPEST_ARGUMENTS:
        return most + 1
    if isinstance(part, str):
        return len(part)
    if isinstance(part, Mapping):
        part = [*cast("Mapping[str, object]", part), *cast("Mapping[str, object]", part).values()]
    if not isinstance(part, list):
        return 1
    total = 0
    for each in cast("list[object]", part):
        total += 1 + _size(each, most, deep + 1)
        if total > most:
            break
    return total


def _takes_null(shape: OutputType[Any]) -> bool:
    try:
        shape.validate(None)
    except OutputValidationError:
        return False
    return True


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    name = getattr(function, "__name__", "") or repr(function)
    if inspect.iscoroutinefunction(function):
        raise InputError(f"{name} is asynchronous; a tool is a plain function")
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"the types of {name} cannot be read: {error}") from error
    for each, part in inspect.signature(function).parameters.items():
        if part.kind not in (part.POSITIONAL_OR_KEYWORD, part.KEYWORD_ONLY):
            raise InputError(f"{name}: a tool is called by name, so {each!r} must be an ordinary parameter")
    missing = [each for each in (*inspect.signature(function).parameters, "return") if each not in hints]
    if missing:
        raise InputError(f"{name}: {missing[0]!r} needs a type")
    return hints


DROPPED = frozenset(("default", "title"))

NULL: dict[str, Json] = {"type": "null"}


def strict(spec: ToolSpec) -> ToolSpec:
    """Require every parameter; one that may be left out takes null instead, which a tool reads as left out."""
    return replace(spec, parameters=cast("dict[str, Json]", _strict(dict(spec.parameters))))


def _strict(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _strict(part) if key != "properties" else part for key, part in schema.items() if key not in DROPPED}
    properties = kept.get("properties")
    if isinstance(properties, dict):
        needed = kept.get("required")
        required = needed if isinstance(needed, list) else []
        kept["properties"] = {
            name: _strict(part) if name in required else _nullable(_strict(part)) for name, part in properties.items()
        }
        kept["required"] = list(properties)
        kept["additionalProperties"] = False
    return kept


def _nullable(schema: Json) -> Json:
    """Let a schema take null; an enum or a union stays one behind `anyOf`."""
    if (
        isinstance(schema, dict)
        and isinstance(schema.get("type"), str)
        and "enum" not in schema
        and "const" not in schema
    ):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, NULL]}
