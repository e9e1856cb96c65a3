"""An API as a type whose values are programs: what a class of annotated functions says of itself, to a model and to checks.

class Shop(Protocol):
    @reads
    def find(self, name: str) -> Drink: ...
    def buy(self, drink: Drink, cups: int = 1) -> Receipt: ...

shop = Api(Shop)
program = yield from extract(shop, "Two teas, please.")
outcome = yield from carry_out(shop, program.value)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from taiwa.flows.assignable import is_assignable
from taiwa.flows.programs import FUNCTION, GIVEN, MOST_STEPS, REFERENCE, STEPS, Plan, planned
from taiwa.flows.signatures import UNKNOWN, Access, Function, Signatures, signatures
from taiwa.kernel.errors import InputError, ShapeError, TaiwaError, ToolError
from taiwa.kernel.protocols import Tool
from taiwa.kernel.records import Json, canonical
from taiwa.kernel.values import ToolResult, ToolSpec
from taiwa.shape import Reading, Rules, Shape
from taiwa.shape.form import (
    About,
    ArrayNode,
    Form,
    LiteralNode,
    NeverNode,
    Node,
    NumberNode,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    UnionNode,
    children,
)
from taiwa.shape.native import DIALECTS, native
from taiwa.shape.typescript import typescript

__all__ = ["Api"]

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
"""What a function may raise in the course of its work; a model reads that it failed and never why."""


class Api:
    """The public functions of a class, a Protocol or a module; `extract(Api(Shop), words)` gives a checked `Plan`.

    Every function has types for its parameters and its result, and a docstring for the model. One that is declared neither
    `@reads` nor `@writes` is taken for `undeclared`.

    Raises:
        InputError: a function cannot be called by name with values of known types.
    """

    def __init__(self, source: type | ModuleType, *, undeclared: Access = "write") -> None:
        self.signatures = signatures(source, undeclared)
        self.name = f"{self.signatures.name}Program"
        self._steps = Shape.fields("Program", {STEPS: list[dict[str, Any]]}, {STEPS})

    def __repr__(self) -> str:
        return f"Api({self.signatures.name}: {', '.join(self.functions)})"

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by name."""
        return self.signatures.functions

    def render(self) -> str:
        """Write the form of a program and the functions as a model should see them."""
        returns = "returns"
        while any(each.name == returns for function in self.functions.values() for each in function.parameters):
            returns += "_"
        shown = tuple(Property(each.name, _shown(each, returns), required=True) for each in self.functions.values())
        form = Form(
            ObjectNode(shown, about=About(self.signatures.about)), self.signatures.name, self.signatures.form.named
        )
        text = typescript(form)
        name = text.split(" ", 2)[1]  # another type of that name has pushed it aside
        return PROGRAM.format(program=self.name, api=name, most=MOST_STEPS, unknown=UNKNOWN, returns=returns) + text

    def schema(self) -> Object:
        """Give the JSON Schema of programs: names, numbers of arguments and types, with references where a result may stand."""
        return native(self.form, DIALECTS["plain"]).schema

    @cached_property
    def form(self) -> Form:
        """The intermediate form of programs."""
        whole, link = self.signatures.form, _Links(self.signatures)
        calls = [_call(each, link) for each in self.functions.values()]
        calls.append(_closed({FUNCTION: LiteralNode((UNKNOWN,)), GIVEN: _tuple([StringNode()])}))
        steps = ArrayNode(UnionNode(tuple(calls), FUNCTION), most=MOST_STEPS)
        reference = _closed({REFERENCE: NumberNode(integer=True, low=0)})
        types = {name: link.inside(node) for name, node in whole.named.items()}
        return Form(_closed({STEPS: steps}), self.name, {**types, REFERRED: reference})

    def check(self, data: Json) -> Plan:
        """Check a program that is given as data.

        Raises:
            ShapeError: something in it is not as the API says; its diagnostics say what and where.
        """
        return planned(self.signatures, self._steps.check(data))

    def read(self, text: str, rules: Rules) -> Reading[Plan]:
        """Read a program and check it.

        Raises:
            ShapeError: there is none, or something in it is not as the API says.
        """
        found = self._steps.read(text, rules)
        try:
            plan = planned(self.signatures, found.value)
        except ShapeError as error:
            error.text = text
            raise
        return Reading(plan, found.fixes, found.complete, found.guessed)

    def bind(self, implementation: object) -> tuple[Tool, ...]:
        """Make tools of an object that has the functions: `Runtime(model, tools=Api(Shop).bind(MyShop()))`.

        Raises:
            InputError: it lacks one.
        """
        missing = [each for each in self.functions if not callable(getattr(implementation, each, None))]
        if missing:
            raise InputError(f"{type(implementation).__name__} has no {missing[0]}, which {self.signatures.name} names")
        named = self.signatures.form.named
        return tuple(_Bound(each, getattr(implementation, each.name), named) for each in self.functions.values())


@dataclass(frozen=True, slots=True)
class _Bound:
    """A function of an API as a tool: JSON in, JSON out, both of the types that the API says."""

    function: Function
    method: Callable[..., object]
    named: dict[str, Node]

    @property
    def spec(self) -> ToolSpec:
        name, given = self.function.name, self.function.parameters
        keys = tuple(Property(each.name, each.node, each.required) for each in given)
        root = ObjectNode(keys, NeverNode())
        schema = native(Form(root, name, _used(root, self.named)), DIALECTS["plain"]).schema
        return ToolSpec(name, self.function.about, schema)

    def call(self, arguments: Mapping[str, Json]) -> ToolResult:
        """Call the function.

        Raises:
            ToolError: `bad_arguments`, `internal` where the function failed, or what it raised itself.
        """
        name = self.function.name
        values = self._values(arguments)
        try:
            made = self.function.returns.dump(self.method(**values))
        except ToolError:
            raise
        except InputError as error:
            raise ToolError(f"{name} gave something else than it says", code="internal") from error
        except (TaiwaError, *FAILURES) as error:
            raise ToolError(f"{name} failed", code="internal") from error
        plain = made["value"] if self.function.returns.wrapped and isinstance(made, dict) else made
        return ToolResult(canonical(plain).decode(), name, value=plain)

    def _values(self, arguments: Mapping[str, Json]) -> dict[str, object]:
        given = {each.name: each for each in self.function.parameters}
        wrong = [
            *(arguments.keys() - given),
            *(each.name for each in given.values() if each.required and each.name not in arguments),
        ]
        if wrong:
            raise ToolError(f"the arguments must be those of {self.function.head}", code="bad_arguments")
        try:
            return {key: given[key].shape.check(part) for key, part in arguments.items()}
        except ShapeError as error:
            raise ToolError("; ".join(error.diagnostics) or error.message, code="bad_arguments") from None


def _used(root: Node, named: dict[str, Node]) -> dict[str, Node]:
    """The named nodes that can be reached."""
    used: dict[str, Node] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode) and node.name not in used:
            used[node.name] = named[node.name]
            todo.append(named[node.name])
        todo.extend(children(node))
    return used


def _shown(function: Function, returns: str) -> ObjectNode:
    given = [Property(each.name, each.node, each.required) for each in function.parameters]
    about = "; ".join(each for each in (function.about, ACCESS[function.access]) if each)
    return ObjectNode((*given, Property(returns, function.node, required=True)), about=About(about))


@dataclass(frozen=True, slots=True)
class _Links:
    """Types in which a reference may stand wherever the result of some function fits."""

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
    """The form of one call. Arguments that may be left out make one list for each number of arguments."""
    given = [links.at(each.node) for each in function.parameters]
    lists = [_tuple(given[:count]) for count in range(function.fewest, len(given) + 1)]
    return _closed(
        {FUNCTION: LiteralNode((function.name,)), GIVEN: lists[0] if len(lists) == 1 else UnionNode(tuple(lists))}
    )


def _tuple(items: list[Node]) -> ArrayNode:
    return ArrayNode(NeverNode(), tuple(items), fewest=len(items))


def _closed(nodes: Mapping[str, Node]) -> ObjectNode:
    return ObjectNode(tuple(Property(name, node, required=True) for name, node in nodes.items()), NeverNode())
