"""Route a text to one of several output types and extract its value in one request, or ask for clarification.

match (yield from route({"order": Order, "booking": Booking, "sums": Api(Math)}, "A table for two, please.")):
    case Routed("booking", booking): ...
    case NeedsClarification(question): ...
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from taiwa.flows.extract import DEFAULT_REPAIR, ModeChoice, RepairPolicy, extract
from taiwa.flows.plans import Api
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import Message, Sampling
from taiwa.kernel.serialization import Json, value
from taiwa.kernel.text import truncate
from taiwa.structured import OutputType, ParseOptions, ParseResult
from taiwa.structured.ir import (
    About,
    AnyNode,
    ArrayNode,
    LiteralNode,
    NeverNode,
    Node,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    TypeIR,
    UnionNode,
    describe,
    literal,
)
from taiwa.structured.rendering import to_json_schema, to_typescript

TO, CONTENT, QUESTION, NONE = "to", "content", "question", "none"
NONE_ABOUT = "when it is none of the others, or something that they need was not said"
QUESTION_ABOUT = "a short question back, in the user's language"


@value(tag="routed")
class Routed:
    """The chosen target and its value."""

    to: str
    value: object


@value(tag="needs-clarification")
class NeedsClarification:
    """No target fits, or information is missing; `question` asks for it."""

    question: str


RouteResult: TypeAlias = Routed | NeedsClarification


def route(
    targets: Mapping[str, object],
    prompt: str | Sequence[Message],
    *,
    repair: RepairPolicy = DEFAULT_REPAIR,
    mode: ModeChoice = "auto",
    sampling: Sampling = Sampling(),
) -> Program[RouteResult]:
    """Choose a target and read its value, in one request; `extract(Routes(targets), prompt)` returns the attempts as well.

    A target is a type, an `OutputType` or an `Api`; its name should tell the model when to choose it.

    Raises (when run):
        InputError: there is no target, or one is named `none`.
        ExtractError: no attempt was valid. RefusalError: the model refused to answer.
    """
    found = yield from extract(Routes(targets), prompt, repair=repair, mode=mode, sampling=sampling)
    return found.value


class Routes:
    """A union of named types; `none` stands for a clarifying question."""

    def __init__(self, targets: Mapping[str, object]) -> None:
        if not targets or NONE in targets:
            raise InputError(
                f"targets must not be empty or contain the name {NONE!r}, which is reserved for clarifying questions"
            )
        self.name = "Route"
        self.targets: dict[str, OutputType[Any] | Api] = {}
        for name, target in targets.items():
            self.targets[name] = target if isinstance(target, (OutputType, Api)) else OutputType[Any](target)
        self._names = LiteralNode((*self.targets, NONE))
        self._head = OutputType.fields("Route", {TO: str, CONTENT: Any, QUESTION: str}, {TO})

    def __repr__(self) -> str:
        return f"Routes({', '.join(self.targets)})"

    def render(self) -> str:
        """Write the types for a model."""
        programs = {name: target for name, target in self.targets.items() if isinstance(target, Api)}
        links = {name: AnyNode(about=About(f"a {each.name}, see below")) for name, each in programs.items()}
        shown = to_typescript(self._form(links))
        return "\n\n".join([shown, *(each.render() for each in programs.values())])

    def schema(self) -> dict[str, Json]:
        """Return their JSON Schema."""
        return to_json_schema(self._form({})).schema

    def parse(self, text: str, options: ParseOptions) -> ParseResult[RouteResult]:
        """Parse the chosen target and its value.

        Raises:
            OutputValidationError: the text holds no value of a target.
        """
        head = self._head.parse(text, options)
        to, fields = head.value[TO], head.value
        if to == NONE:
            question = fields.get(QUESTION)
            if not isinstance(question, str) or not question.strip():
                raise _fault(f"$.{QUESTION}: missing (string, {QUESTION_ABOUT})", text)
            return ParseResult(NeedsClarification(question), head.fixes, head.complete, head.guessed, head.stage)
        target = self.targets.get(str(to))
        if target is None:
            raise _fault(f"$.{TO} = {truncate(literal(to), 60)}: must be {describe(self._names)}", text)
        if CONTENT not in fields:
            raise _fault(f"$.{CONTENT}: missing ({target.name})", text)
        try:
            inner: ParseResult[Any] = target.parse(json.dumps(fields[CONTENT], ensure_ascii=False), options)
        except OutputValidationError as error:
            lines = tuple(f"$.{CONTENT}{line.removeprefix('$')}" for line in error.diagnostics)
            raise OutputValidationError(error.message, text=text, diagnostics=lines) from None
        fixes = head.fixes + tuple(replace(fix, position=0) for fix in inner.fixes)
        guessed = head.guessed or inner.guessed
        return ParseResult(Routed(str(to), inner.value), fixes, head.complete, guessed, head.stage)

    def _form(self, instead: Mapping[str, Node]) -> TypeIR:
        """Return the union of all targets; `instead` replaces some of them by another node."""
        merge = _Merge()
        forms = {name: each.form if isinstance(each, Api) else each.bare_ir for name, each in self.targets.items()}
        nodes = {name: instead.get(name) or merge.add(form) for name, form in forms.items()}
        options = [_option(name, Property(CONTENT, node, required=True)) for name, node in nodes.items()]
        asked = Property(QUESTION, StringNode(about=About(QUESTION_ABOUT)), required=True)
        options.append(replace(_option(NONE, asked), about=About(NONE_ABOUT)))
        return TypeIR(UnionNode(tuple(options)), self.name, merge.named)


@dataclass(slots=True)
class _Merge:
    """Merges the named types of several forms; if two different types have one name, the second is renamed."""

    named: dict[str, Node] = field(default_factory=dict[str, Node])

    def add(self, form: TypeIR) -> Node:
        differ = any(self.named.get(name, node) != node for name, node in form.named.items())
        names = {name: self.free(name) if differ else name for name in form.named}
        self.named |= {names[name]: _renamed(node, names) for name, node in form.named.items()}
        return _renamed(form.root, names)

    def free(self, name: str) -> str:
        number, found = 2, name
        while found in self.named:
            found, number = f"{name}{number}", number + 1
        return found


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, RefNode):
        return replace(node, name=names.get(node.name, node.name))
    if isinstance(node, ObjectNode):
        properties = tuple(replace(each, node=_renamed(each.node, names)) for each in node.properties)
        return replace(node, properties=properties, extra=None if node.extra is None else _renamed(node.extra, names))
    if isinstance(node, ArrayNode):
        prefix = tuple(_renamed(each, names) for each in node.prefix)
        return replace(node, prefix=prefix, items=_renamed(node.items, names))
    if isinstance(node, UnionNode):
        return replace(node, options=tuple(_renamed(each, names) for each in node.options))
    return node


def _option(name: str, member: Property) -> ObjectNode:
    return ObjectNode((Property(TO, LiteralNode((name,)), required=True), member), NeverNode())


def _fault(line: str, text: str) -> OutputValidationError:
    return OutputValidationError(f"not of the type Route: {line}", text=text, diagnostics=(line,))
