"""Python functions as an API for a model: render them, check its plan, execute it with confirmation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, TypeAlias, cast

from taiwa.flows.call_plan import (
    ARGUMENTS,
    FUNCTION,
    MAX_STEPS,
    REFERENCE,
    STEPS,
    UNKNOWN,
    Access,
    Function,
    Plan,
    PlannedCall,
    Signatures,
    check_plan,
    is_assignable,
    references,
    signatures,
)
from taiwa.kernel.effects import CallTool, Effect, Program, gather, perform
from taiwa.kernel.errors import InputError, LimitError, OutputValidationError, TaiwaError, ToolError
from taiwa.kernel.messages import ToolResult, ToolSpec
from taiwa.kernel.records import Json, canonical, value
from taiwa.kernel.runtime import Tool
from taiwa.structured import OutputType, ParseOptions, ParseResult
from taiwa.structured.ir import (
    About,
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
)
from taiwa.structured.rendering import to_json_schema, to_typescript

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
"""Errors of a function that are mapped; the model reads that it failed and never why."""


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
        steps = ArrayNode(UnionNode(tuple(calls), FUNCTION), max_items=MAX_STEPS)
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
        """Make tools of an object that implements the functions: `Runtime(model, tools=Api(Shop).bind(MyShop()))`.

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
            ToolError: `bad_arguments`, `internal` where the function failed, or its own ToolError.
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
    """Adds references to types, wherever the result of some function fits."""

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
    """Return the type of one call; optional arguments make one list for each number of arguments."""
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
    """The outcome of one call. `arguments` have results in place of references, as far as there are results."""

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
    def finished(self) -> bool:
        """Whether every call ran."""
        return all(step.status == "done" for step in self.calls)

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
    """Run one call, after those that it refers to, where that is allowed."""
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
