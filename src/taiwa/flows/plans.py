"""Python functions as an API for a model: render them, check the plan of calls that it writes, and execute that with confirmation.

A plan is what TypeChat calls a program: JSON that lists calls of the functions, whose arguments may refer to earlier results.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeAlias, TypeGuard, TypeVar, cast, get_type_hints

from taiwa.kernel.effects import CallTool, Effect, Program, gather, perform
from taiwa.kernel.errors import InputError, LimitError, OutputValidationError, TaiwaError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.runtime import Tool
from taiwa.kernel.serialization import Json, canonical, objects_in, value
from taiwa.kernel.text import truncate
from taiwa.structured import OutputType, ParseOptions, ParseResult
from taiwa.structured.ir import (
    About,
    AnyNode,
    ArrayNode,
    LiteralNode,
    NeverNode,
    Node,
    NumberNode,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    TypeIR,
    UnionNode,
    describe,
    join_names,
    literal,
    members,
    with_description,
)
from taiwa.structured.rendering import to_json_schema, to_typescript
from taiwa.structured.validators import Path, diagnostics, find_mismatches, node_at, pointer

# --- plans ------------------------------------------------------------------------------------------------------------
# Plans of function calls that a model writes as JSON, as in TypeChat: functions, and the type check before a plan runs.


def is_assignable(form: TypeIR, source: Node, wanted: Node) -> bool:
    """Return whether every value of `given` is a value of `wanted`; both are nodes of one form."""
    return _Pairs(form).fits(source, wanted)


@dataclass(slots=True)
class _Pairs:
    """Assumes that pairs under comparison fit: a recursive type fits if no part of it differs."""

    form: TypeIR
    assumed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def fits(self, source: Node, wanted: Node) -> bool:
        if source == wanted:
            return True
        options = members(wanted, self.form)
        return all(any(self.one(each, option) for option in options) for each in members(source, self.form))

    def one(self, source: Node, wanted: Node) -> bool:
        """Compare nodes that are neither references nor unions."""
        if isinstance(source, NeverNode) or isinstance(wanted, AnyNode):
            return True
        if isinstance(source, LiteralNode):
            plain = _without_bounds(wanted)
            return plain is not None and not any(find_mismatches(self.form, value, plain) for value in source.values)
        if isinstance(source, StringNode) and isinstance(wanted, StringNode):
            return wanted.format in ("", source.format)
        if isinstance(source, NumberNode) and isinstance(wanted, NumberNode):
            return source.integer or not wanted.integer
        if isinstance(source, (ArrayNode, ObjectNode)) and isinstance(wanted, (ArrayNode, ObjectNode)):
            return self.inside(source, wanted)
        return type(source) is type(wanted) and not isinstance(wanted, LiteralNode)

    def inside(self, source: ArrayNode | ObjectNode, wanted: ArrayNode | ObjectNode) -> bool:
        """Compare the items of two containers. A form keeps its nodes, so their ids identify them."""
        pair = (id(source), id(wanted))
        if pair in self.assumed:
            return True
        before = set(self.assumed)
        self.assumed.add(pair)
        fits = False
        if isinstance(source, ArrayNode) and isinstance(wanted, ArrayNode):
            fits = self.array_fits(source, wanted)
        elif isinstance(source, ObjectNode) and isinstance(wanted, ObjectNode):
            fits = self.object_fits(source, wanted)
        if not fits:
            self.assumed = before  # results that rest on this assumption may be wrong
        return fits

    def array_fits(self, source: ArrayNode, wanted: ArrayNode) -> bool:
        """Compare item by item; every position of a tuple must exist, and no other if it is closed."""
        ends = isinstance(source.items, NeverNode)
        if isinstance(wanted.items, NeverNode) and not (ends and len(source.prefix) == len(wanted.prefix)):
            return False
        if len(source.prefix) < len(wanted.prefix):
            return False
        return all(self.fits(_item(source, at), _item(wanted, at)) for at in range(len(source.prefix) + 1))

    def object_fits(self, source: ObjectNode, wanted: ObjectNode) -> bool:
        for each in wanted.properties:
            found = source.get(each.name)
            if found is None:
                if each.required or (source.extra is not None and not self.fits(source.extra, each.node)):
                    return False
            elif (each.required and not found.required) or not self.fits(found.node, each.node):
                return False
        if wanted.extra is None or isinstance(wanted.extra, NeverNode):
            return True  # keys that the wanted type does not name are dropped when the call is made
        rest = [each.node for each in source.properties if wanted.get(each.name) is None]
        rest += [] if source.extra is None else [source.extra]
        return all(self.fits(node, wanted.extra) for node in rest)


def _item(node: ArrayNode, at: int) -> Node:
    return node.prefix[at] if at < len(node.prefix) else node.items


def _without_bounds(node: Node) -> Node | None:
    """Return the bare type of a node that a literal may fit; None if it depends on the value."""
    if isinstance(node, StringNode):
        return None if node.format else StringNode()
    return NumberNode(integer=node.integer) if isinstance(node, NumberNode) else node


F = TypeVar("F", bound=Callable[..., object])

Access: TypeAlias = Literal["read", "write"]
"""A function that reads has no side effects; one that writes may have."""

UNKNOWN = "unknown"

MARK = "__taiwa_access__"

FOREIGN = ("builtins", "typing", "typing_extensions")
"""Modules of base classes whose functions are not part of an API: object, Protocol, Generic."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


def reads(function: F) -> F:
    """Declare that a function of an API changes nothing: it runs in dry runs, in parallel, and without confirmation."""
    setattr(function, MARK, "read")
    return function


def writes(function: F) -> F:
    """Declare that a function of an API changes something: it is confirmed, runs alone, and never in a dry run."""
    setattr(function, MARK, "write")
    return function


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `node` is its type in the form of all signatures."""

    name: str
    output_type: OutputType[Any]
    node: Node
    required: bool


@dataclass(frozen=True, slots=True)
class Function:
    """One function of an API."""

    name: str
    about: str
    access: Access
    parameters: tuple[Parameter, ...]
    arguments: OutputType[dict[str, Json]]
    returns: OutputType[Any]
    node: Node

    @property
    def fewest(self) -> int:
        """The number of required arguments."""
        return sum(each.required for each in self.parameters)

    @property
    def head(self) -> str:
        """Its name and parameters in short: `buy(drink, cups?)`."""
        return f"{self.name}({', '.join(each.name + ('' if each.required else '?') for each in self.parameters)})"


@dataclass(frozen=True, slots=True)
class Signatures:
    """All functions of an API by name, and the one form in which their types can be compared."""

    name: str
    about: str
    functions: dict[str, Function]
    form: TypeIR


@dataclass(frozen=True, slots=True)
class _Found:
    """A Python function without `self`."""

    name: str
    function: Callable[..., object]
    parameters: tuple[inspect.Parameter, ...]
    types: dict[str, Any]

    @property
    def all_types(self) -> list[Any]:
        """The types of its parameters, then that of its result."""
        return [*(self.types[each.name] for each in self.parameters), self.types["return"]]

    def finish(self, nodes: Iterator[Node], undeclared: Access) -> Function:
        """Make the function of an API; `nodes` yields the nodes of its types."""
        parameters: list[Parameter] = []
        for each in self.parameters:
            output_type, node = (
                OutputType(self.types[each.name], name=each.name),
                _with_default(next(nodes), each.default),
            )
            parameters.append(Parameter(each.name, output_type, node, each.default is each.empty))
        about = " ".join((inspect.getdoc(self.function) or "").split())
        access: Access = getattr(self.function, MARK, undeclared)
        required = {each.name for each in parameters if each.required}
        arguments = OutputType.fields(self.name, {each.name: self.types[each.name] for each in parameters}, required)
        returns = OutputType(self.types["return"], name="result")
        return Function(self.name, about, access, tuple(parameters), arguments, returns, next(nodes))


def signatures(source: type | ModuleType, undeclared: Access) -> Signatures:
    """Read the public functions of a class or module, in the order of the source.

    Raises:
        InputError: a function cannot be called by name with values of known types.
    """
    name = source.__name__.rpartition(".")[2]
    found = tuple(_found(name, each, method, source) for each, method in _given(source).items())
    if not found:
        raise InputError(f"{name} has no public functions")
    types = tuple(part for each in found for part in each.all_types)
    form = OutputType(cast("Any", tuple)[types]).bare_ir  # one form for all, in which a name means one type
    assert isinstance(form.root, ArrayNode), "a tuple is a list"
    nodes = iter(form.root.prefix)
    functions = {each.name: each.finish(nodes, undeclared) for each in found}
    about = " ".join(inspect.cleandoc(vars(source).get("__doc__") or "").split())
    return Signatures(name, about, functions, form)


def _given(source: type | ModuleType) -> dict[str, object]:
    """Return the public attributes that are functions; a class inherits those of its bases."""
    if isinstance(source, ModuleType):
        own = {name: part for name, part in vars(source).items() if getattr(part, "__module__", "") == source.__name__}
        places = [own]
    else:
        bases = [each for each in reversed(source.__mro__) if each.__module__ not in FOREIGN]
        places = [dict(vars(each)) for each in bases]
    found = {name: part for place in places for name, part in place.items()}
    kinds = (FunctionType, staticmethod, classmethod)
    return {name: part for name, part in found.items() if not name.startswith("_") and isinstance(part, kinds)}


def _found(api: str, name: str, method: Any, source: type | ModuleType) -> _Found:  # noqa: ANN401  (any kind of method)
    function: Callable[..., object] = getattr(method, "__func__", method)
    where = f"{api}.{name}"
    if name == UNKNOWN or not NAME.match(name):
        why = "it says that the API cannot do something" if name == UNKNOWN else "use at most 64 letters, digits and _"
        raise InputError(f"{where}: invalid function name {name!r}: {why}")
    if inspect.iscoroutinefunction(function):
        raise InputError(f"{where} is asynchronous; a program calls plain functions")
    parameters = tuple(inspect.signature(function).parameters.values())
    if not isinstance(source, ModuleType) and not isinstance(method, staticmethod):
        parameters = parameters[1:]
    try:
        types = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"{where}: its types cannot be read: {error}") from error
    for each in parameters:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise InputError(f"{where}: {each.name!r} must be an ordinary parameter, which can be given by its name")
    missing = [each for each in (*(part.name for part in parameters), "return") if each not in types]
    if missing:
        raise InputError(f"{where}: {missing[0]!r} needs a type")
    required = [each.default is each.empty for each in parameters]
    if required != sorted(required, reverse=True):
        raise InputError(f"{where}: parameters with a default come last, because arguments are given in order")
    return _Found(name, function, parameters, types)


def _with_default(node: Node, default: object) -> Node:
    if not isinstance(default, (bool, int, float, str, type(None))):
        return node
    return with_description(node, About(default=default))


STEPS, FUNCTION, ARGUMENTS, REFERENCE = "@steps", "@func", "@args", "@ref"

MAX_STEPS = 100

MAX_LINES = 12

VALUE_CHARS = 60


@value(tag="planned-call")
class PlannedCall:
    """One call; `{"@ref": n}` in its arguments stands for the result of call n of the plan, which comes before it.

    `step` is the number of the step that contains it: a call in the arguments of another has no step of its own.
    """

    function: str
    arguments: tuple[Json, ...]
    step: int


@value(tag="plan")
class Plan:
    """A checked program; `unknown` lists what the API cannot do, in the model's words."""

    calls: tuple[PlannedCall, ...]
    unknown: tuple[str, ...] = ()


def check_plan(api: Signatures, data: Json) -> Plan:
    """Check a program.

    Raises:
        OutputValidationError: it does not match the API; the diagnostics say what and where.
    """
    check = _Check(api)
    check.program(data)
    if check.faults:
        lines = tuple(dict.fromkeys(check.faults))
        if len(lines) > MAX_LINES:
            lines = (*lines[:MAX_LINES], f"… and {len(lines) - MAX_LINES} more")
        raise OutputValidationError(f"not a program of {api.name}: {lines[0]}", diagnostics=lines)
    return Plan(tuple(call for call in check.calls if call is not None), tuple(check.unknown))


def references(argument: Json) -> Iterator[int]:
    """Return the numbers of the calls that an argument refers to."""
    return (at for each in objects_in(argument) if isinstance(at := each.get(REFERENCE), int))


def _is_reference(data: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(data, dict) and REFERENCE in data


def _references(data: Json, place: Path = ()) -> Iterator[tuple[Path, dict[str, Json]]]:
    """Yield the references in an argument, each with its path."""
    if _is_reference(data):
        yield place, data
    elif isinstance(data, dict | list):
        for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _references(inner, (*place, key))


def _is_open(data: Json) -> bool:
    """Return whether the data contains a reference or a call, or something similar."""
    return any(REFERENCE in each or FUNCTION in each for each in objects_in(data))


@dataclass(slots=True)
class _Check:
    """The state of a check. `calls` holds the calls so far; None for one with a fault, whose type is unknown."""

    api: Signatures
    calls: list[PlannedCall | None] = field(default_factory=list["PlannedCall | None"])
    places: list[int | None] = field(default_factory=list["int | None"])
    unknown: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    step: int = 0

    def fault(self, path: str, got: Json, complaint: str) -> None:
        self.faults.append(f"{path} = {truncate(literal(got), VALUE_CHARS)}: {complaint}")

    def program(self, data: Json) -> None:
        steps = data.get(STEPS) if isinstance(data, dict) else None
        if not isinstance(steps, list):
            self.faults.append(f'$["{STEPS}"]: missing (a list of steps)')
            return
        if len(steps) > MAX_STEPS:
            self.faults.append(f'$["{STEPS}"]: has {len(steps)}, must be at most {MAX_STEPS} steps')
            return
        for self.step, step in enumerate(steps):
            self.places.append(self.call(step, f'$["{STEPS}"][{self.step}]'))

    def call(self, data: Json, path: str) -> int | None:
        """Check a call and those in its arguments; return its number, or None if it has no result."""
        if not isinstance(data, dict) or not isinstance(data.get(FUNCTION), str):
            self.fault(path, data, f'must be {{"{FUNCTION}": name, "{ARGUMENTS}": [arguments]}}')
            return None
        name, arguments = str(data[FUNCTION]), data.get(ARGUMENTS, [])
        if not isinstance(arguments, list):
            self.fault(f'{path}["{ARGUMENTS}"]', arguments, "must be a list")
            return None
        if name == UNKNOWN:
            self.cannot(arguments, path)
            return None
        function = self.api.functions.get(name)
        if function is None:
            self.fault(f'{path}["{FUNCTION}"]', name, f"must be {UNKNOWN} or one of {join_names(self.api.functions)}")
            return None
        return self.known(function, arguments, path)

    def cannot(self, arguments: list[Json], path: str) -> None:
        text = arguments[0] if len(arguments) == 1 else None
        if isinstance(text, str):
            self.unknown.append(text)
        else:
            self.fault(f'{path}["{ARGUMENTS}"]', arguments, "must be one string: what the API cannot do")

    def known(self, function: Function, values: list[Json], path: str) -> int:
        before = len(self.faults)
        path = f'{path}["{ARGUMENTS}"]'
        if not function.fewest <= len(values) <= len(function.parameters):
            self.faults.append(f"{path}: has {len(values)}, must be the arguments of {function.head}")
        # A call in an argument comes before the call that it is an argument of.
        pairs = enumerate(zip(values, function.parameters, strict=False))
        arguments = tuple(self.argument(value, parameter, f"{path}[{at}]") for at, (value, parameter) in pairs)
        sound = len(self.faults) == before
        self.calls.append(PlannedCall(function.name, arguments, self.step) if sound else None)
        return len(self.calls) - 1

    def argument(self, data: Json, parameter: Parameter, path: str) -> Json:
        """Check an argument; return it with its references as numbers of calls of this plan."""
        if _is_open(data):
            whole = self.linked(data, path)
            self.fits(whole, parameter.node, path)
            return whole
        try:
            parameter.output_type.validate(data)
        except OutputValidationError as error:
            self.faults += [f"{path}{line.removeprefix('$')}" for line in error.diagnostics]
        return data

    def linked(self, data: Json, path: str) -> Json:
        """Replace calls by references to them, and the numbers of steps by those of calls."""
        if isinstance(data, list):
            return [self.linked(each, f"{path}[{at}]") for at, each in enumerate(data)]
        if not isinstance(data, dict):
            return data
        if FUNCTION in data:
            before = len(self.faults)
            inner = self.call(data, path)
            if inner is None and len(self.faults) == before:
                self.fault(path, cast("Json", data), "gives no result")
            return {REFERENCE: inner}
        if REFERENCE in data:
            return {REFERENCE: self.referred(data, path)}
        return {key: self.linked(each, f"{path}{_path(key)}") for key, each in data.items()}

    def referred(self, data: dict[str, Json], path: str) -> int | None:
        at = data[REFERENCE]
        if not isinstance(at, int) or isinstance(at, bool) or len(data) != 1:
            self.fault(path, cast("Json", data), f'must be {{"{REFERENCE}": number of a step}} and nothing else')
        elif not 0 <= at < self.step:
            earlier = f"0 to {self.step - 1}" if self.step else "none, for this is the first"
            self.fault(path, cast("Json", data), f"must refer to an earlier step: {earlier}")
        elif self.places[at] is None:
            self.fault(path, cast("Json", data), f"step {at} gives no result")
        else:
            return self.places[at]
        return None

    def fits(self, data: Json, node: Node, path: str) -> None:
        """Check data that holds references against a node."""
        form = TypeIR(node, named=self.api.form.named)
        self.faults += [f"{path}{line.removeprefix('$')}" for line in diagnostics(form, data, is_open=_is_reference)]
        for place, reference in _references(data):
            wanted = node_at(form, data, place)
            if wanted is not None:
                self.result_fits(reference, wanted, f"{path}{pointer(place).removeprefix('$')}")

    def result_fits(self, data: dict[str, Json], node: Node, path: str) -> None:
        at = data[REFERENCE]
        call = self.calls[at] if isinstance(at, int) else None
        if call is None:  # it has a fault of its own
            return
        result = self.api.functions[call.function].node
        if not is_assignable(self.api.form, result, node):
            message = f"{call.function} gives {self.words(result)}; must be {self.words(node)}"
            self.faults.append(f"{path}: {truncate(message, 240)}")

    def words(self, node: Node) -> str:
        """Describe a node, and every member of a union."""
        form = self.api.form
        names = {id(each): name for name, each in form.named.items()}
        words = dict.fromkeys(describe(each, names.get(id(each), "")) for each in members(node, form))
        return " or ".join(words)


def _path(key: str) -> str:
    return pointer((key,)).removeprefix("$")


# --- the API ----------------------------------------------------------------------------------------------------------

Object = dict[str, Json]

REFERRED = "Reference_"

PROGRAM = """\
// A list of steps. Each calls one function of {api}, and its result can be used by later steps.
type {program} = {{
  "@steps": {{ // at most {most}
    "@func": string; // the name of a function of {api}, or "{unknown}"
    "@args": any[]; // its parameters in order, without "{returns}"; optional ones may be left out at the end
  }}[];
}};
// An argument has the type of its parameter. {{"@ref": n}}, alone or within an argument, is the result of step n, counted
// from 0; only steps before can be referred to. What cannot be done with {api} is said by one step
// {{"@func": "{unknown}", "@args": ["what it is"]}}.

"""

ACCESS = {"read": "", "write": "changes something"}

FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""Errors of a function that are mapped; the model receives that it failed, but not why."""


class Api:
    """The public functions of a class, a Protocol or a module; `extract(Api(Shop), text)` returns a checked `Plan`.

    Every function has types for its parameters and its result, and a docstring for the model. One that is declared neither
    `@reads` nor `@writes` has the access `undeclared`.

    Raises:
        InputError: a function cannot be called by name with values of known types.
    """

    def __init__(self, source: type | ModuleType, *, undeclared: Access = "write") -> None:
        self.signatures = signatures(source, undeclared)
        self.name = f"{self.signatures.name}Program"
        self._steps = OutputType.fields("Program", {STEPS: list[dict[str, Any]]}, {STEPS})

    def __repr__(self) -> str:
        return f"Api({self.signatures.name}: {', '.join(self.functions)})"

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by name."""
        return self.signatures.functions

    def render(self) -> str:
        """Write the type of a program and the functions for a model."""
        returns = "returns"
        while any(each.name == returns for function in self.functions.values() for each in function.parameters):
            returns += "_"
        shown = tuple(Property(each.name, _shown(each, returns), required=True) for each in self.functions.values())
        api = ObjectNode(shown, about=About(self.signatures.about))
        text = to_typescript(TypeIR(api, self.signatures.name, self.signatures.form.named))
        name = text.split(" ", 2)[1]  # it is renamed where another type has its name
        return PROGRAM.format(program=self.name, api=name, most=MAX_STEPS, unknown=UNKNOWN, returns=returns) + text

    def schema(self) -> Object:
        """Return the JSON Schema of programs: names, arities and types, with references where a result is allowed."""
        return to_json_schema(self.form).schema

    @cached_property
    def form(self) -> TypeIR:
        """The intermediate representation of programs."""
        whole, link = self.signatures.form, _Links(self.signatures)
        calls = [_call(each, link) for each in self.functions.values()]
        calls.append(_closed({FUNCTION: LiteralNode((UNKNOWN,)), ARGUMENTS: _tuple([StringNode()])}))
        steps = ArrayNode(UnionNode(tuple(calls)), max_items=MAX_STEPS)
        reference = _closed({REFERENCE: NumberNode(integer=True, minimum=0)})
        types = {name: link.inside(node) for name, node in whole.named.items()}
        return TypeIR(_closed({STEPS: steps}), self.name, {**types, REFERRED: reference})

    def validate(self, data: Json) -> Plan:
        """Check a program that is JSON data.

        Raises:
            OutputValidationError: it does not match the API; the diagnostics say what and where.
        """
        return check_plan(self.signatures, self._steps.validate(data))

    def parse(self, text: str, options: ParseOptions) -> ParseResult[Plan]:
        """Parse and check a program.

        Raises:
            OutputValidationError: there is none, or it does not match the API.
        """
        found = self._steps.parse(text, options)
        try:
            plan = check_plan(self.signatures, found.value)
        except OutputValidationError as error:
            error.text = text
            raise
        return ParseResult(plan, found.fixes, found.complete, found.guessed, found.stage)

    def bind(self, implementation: object) -> tuple[Tool, ...]:
        """Turn an object that implements the functions into tools: `Runtime(model, tools=Api(Shop).bind(MyShop()))`.

        Raises:
            InputError: a function is missing.
        """
        missing = [each for each in self.functions if not callable(getattr(implementation, each, None))]
        if missing:
            name = type(implementation).__name__
            raise InputError(f"{name} has no function {missing[0]}, which {self.signatures.name} declares")
        return tuple(_Bound(each, getattr(implementation, each.name)) for each in self.functions.values())


@dataclass(frozen=True, slots=True)
class _Bound:
    """A function of an API as a tool: JSON in, JSON out, both of the declared types."""

    function: Function
    method: Callable[..., object]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.function.name, self.function.about, self.function.arguments.schema())

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function.

        Raises:
            ToolError: `bad_arguments`, `internal` if the function failed, or its own ToolError.
        """
        name = self.function.name
        try:
            self.function.arguments.validate(dict(arguments))
            types = {each.name: each.output_type for each in self.function.parameters}
            values = {key: types[key].validate(part) for key, part in arguments.items()}
        except OutputValidationError as error:
            raise ToolError("; ".join(error.diagnostics) or error.message, code="bad_arguments") from None
        try:
            plain = self.function.returns.dump(self.method(**values))
        except ToolError:
            raise
        except InputError as error:
            raise ToolError(f"{name} returned a value of another type than declared", code="internal") from error
        except (TaiwaError, *FAILURES) as error:
            raise ToolError(f"{name} failed", code="internal") from error
        return ToolResult(canonical(plain).decode(), name, value=plain)


def _shown(function: Function, returns: str) -> ObjectNode:
    parameters = [Property(each.name, each.node, each.required) for each in function.parameters]
    about = "; ".join(each for each in (function.about, ACCESS[function.access]) if each)
    return ObjectNode((*parameters, Property(returns, function.node, required=True)), about=About(about))


@dataclass(frozen=True, slots=True)
class _Links:
    """Adds references to types wherever the result of a function fits."""

    api: Signatures

    def at(self, node: Node) -> Node:
        inside = self.inside(node)
        fits = any(is_assignable(self.api.form, each.node, node) for each in self.api.functions.values())
        return UnionNode((inside, RefNode(REFERRED))) if fits else inside

    def inside(self, node: Node) -> Node:
        if isinstance(node, ObjectNode):
            named = tuple(replace(each, node=self.at(each.node)) for each in node.properties)
            return replace(node, properties=named, extra=None if node.extra is None else self.at(node.extra))
        if isinstance(node, ArrayNode):
            items = node.items if isinstance(node.items, NeverNode) else self.at(node.items)
            return replace(node, items=items, prefix=tuple(self.at(each) for each in node.prefix))
        if isinstance(node, UnionNode):
            return replace(node, options=tuple(self.inside(each) for each in node.options))
        return node


def _call(function: Function, links: _Links) -> ObjectNode:
    """Return the type of one call; with optional arguments, one list for each number of arguments."""
    types = [links.at(each.node) for each in function.parameters]
    lists = [_tuple(types[:count]) for count in range(function.fewest, len(types) + 1)]
    arguments = lists[0] if len(lists) == 1 else UnionNode(tuple(lists))
    return _closed({FUNCTION: LiteralNode((function.name,)), ARGUMENTS: arguments})


def _tuple(items: list[Node]) -> ArrayNode:
    return ArrayNode(NeverNode(), tuple(items), min_items=len(items))


def _closed(nodes: Mapping[str, Node]) -> ObjectNode:
    return ObjectNode(tuple(Property(name, node, required=True) for name, node in nodes.items()), NeverNode())


Status: TypeAlias = Literal["done", "failed", "declined", "dry_run", "skipped"]
"""Ran · failed · was not confirmed · would run · was not reached, or needs the result of a call that did not run."""


@value(tag="confirm")
class Confirm(Effect[bool]):
    """Ask whether a function that writes may be called; a runtime answers with `handlers={Confirm: ask_user}`."""

    function: str
    arguments: dict[str, Json]
    about: str = ""


@value(tag="call-outcome")
class CallOutcome:
    """The outcome of one call. In `arguments`, references are replaced by results, if available."""

    call: PlannedCall
    status: Status
    arguments: dict[str, Json]
    result: Json = None
    error: str = ""


@value(tag="plan-result")
class PlanResult:
    """The outcomes of the calls of a program, in the order of the plan."""

    calls: tuple[CallOutcome, ...]

    @property
    def result(self) -> Json:
        """The result of the last call.

        Raises:
            ToolError: a call did not run.
        """
        for step in self.calls:
            if step.status != "done":
                why = f"{step.call.function} {step.status}{step.error and f': {step.error}'}"
                raise ToolError(f"the program did not finish: {why}", code="unfinished")
        return self.calls[-1].result if self.calls else None


def execute_plan(api: Api, plan: Plan, *, dry: bool = False) -> Program[PlanResult]:
    """Run a program. The runtime needs the functions as tools (`Api.bind`) and, unless `dry`, a handler for `Confirm`.

    A dry run executes calls that read and lists calls that write. Nothing is called after a call that failed or was declined.

    Raises (when run):
        InputError: the API cannot do what was requested, or the plan is of another API.
        ConfigError: a call writes, and the runtime has no handler for `Confirm`.
    """
    if plan.unknown:
        raise InputError(f"{api.signatures.name} cannot do what was requested: {'; '.join(plan.unknown)}")
    for at, call in enumerate(plan.calls):
        if call.function not in api.functions or any(not 0 <= other < at for other in references([*call.arguments])):
            raise InputError(f"call {at} of the plan, {call.function}, does not belong to {api.signatures.name}")
    steps = [CallOutcome(call, "skipped", {}) for call in plan.calls]
    for level in _levels(api, plan):
        made = yield from gather(_step(api, at, tuple(steps), dry=dry) for at in level)
        for at, step in zip(level, made, strict=True):
            steps[at] = step
        if any(step.status in ("failed", "declined") for step in made):
            break
    return PlanResult(tuple(steps))


def _levels(api: Api, plan: Plan) -> list[list[int]]:
    """Group calls so that each comes after those that it depends on; the calls of a group run in parallel."""
    levels: list[int] = []
    first = 0  # later calls run at this level or after it
    for call in plan.calls:
        level = max((levels[other] + 1 for other in references([*call.arguments])), default=first)
        level = max(level, first)
        if api.functions[call.function].access == "write":
            level = max(levels, default=-1) + 1
            first = level + 1
        levels.append(level)
    groups: list[list[int]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for at, level in enumerate(levels):
        groups[level].append(at)
    return groups


def _step(api: Api, at: int, steps: tuple[CallOutcome, ...], *, dry: bool) -> Program[CallOutcome]:
    """Run one call, after those that it refers to, if that is allowed."""
    step = steps[at]
    function = api.functions[step.call.function]
    needed = [steps[other] for other in references([*step.call.arguments])]
    names = (parameter.name for parameter in function.parameters)
    arguments = {name: _filled(each, steps) for name, each in zip(names, step.call.arguments, strict=False)}
    step = replace(step, arguments=arguments)
    if dry and (function.access == "write" or any(each.status != "done" for each in needed)):
        return replace(step, status="dry_run")
    try:
        arguments = _checked(function, arguments)
        step = replace(step, arguments=arguments)
        if function.access == "write" and not (yield from perform(Confirm(function.name, arguments, function.about))):
            return replace(step, status="declined")
        result = yield from perform(CallTool(function.name, arguments))
        if result.error:
            raise ToolError(result.text, code=result.error)
        function.returns.validate(result.value)
    except (ToolError, OutputValidationError, LimitError) as error:
        return replace(step, status="failed", error=error.message)
    return replace(step, status="done", result=result.value)


def _checked(function: Function, arguments: dict[str, Json]) -> dict[str, Json]:
    """Check the types of arguments again, because results came from outside; drop keys that only a wider type has."""
    types = {each.name: each.output_type for each in function.parameters}
    narrowed = {name: types[name].narrow(data) for name, data in arguments.items()}
    for name, data in narrowed.items():
        types[name].validate(data)
    return narrowed


def _filled(data: Json, steps: tuple[CallOutcome, ...]) -> Json:
    """Replace references by results; a reference without a result stays."""
    if isinstance(data, list):
        return [_filled(each, steps) for each in data]
    if not isinstance(data, dict):
        return data
    at = data.get(REFERENCE)
    if isinstance(at, int):
        return steps[at].result if steps[at].status == "done" else cast("Json", data)
    return {key: _filled(each, steps) for key, each in data.items()}
