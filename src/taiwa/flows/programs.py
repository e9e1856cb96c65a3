"""Programs as data: a list of calls in which later ones refer to the results of earlier ones, checked before any runs.

The model writes TypeChat's form, `{"@steps": [{"@func": "add", "@args": [1, {"@ref": 0}]}]}`. Names, numbers of arguments,
their types and the types of references are checked; nothing of it is ever evaluated as code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from taiwa.flows.assignable import is_assignable
from taiwa.flows.signatures import UNKNOWN, Function, Parameter, Signatures
from taiwa.kernel.errors import ShapeError
from taiwa.kernel.records import Json, value
from taiwa.shape.diagnose import diagnostics, pointer
from taiwa.shape.faults import branch
from taiwa.shape.form import AnyNode, ArrayNode, Form, NeverNode, Node, ObjectNode, members
from taiwa.shape.wording import cut, described, literal, named

__all__ = ["FUNCTION", "GIVEN", "MOST_STEPS", "REFERENCE", "STEPS", "Call", "Plan", "planned", "references"]

STEPS, FUNCTION, GIVEN, REFERENCE = "@steps", "@func", "@args", "@ref"
MOST_STEPS = 100
MOST_LINES = 12
VALUE_CHARS = 60


@value(tag="planned-call")
class Call:
    """One call; `{"@ref": n}` in its arguments stands for the result of call n of the plan, which comes before it.

    `step` is the number of the step that it was written in: a call that stands in the arguments of another has none of
    its own.
    """

    function: str
    arguments: tuple[Json, ...]
    step: int


@value(tag="plan")
class Plan:
    """A checked program; `unknown` are the wishes that the API cannot fulfil, in the model's words."""

    calls: tuple[Call, ...]
    unknown: tuple[str, ...] = ()


def planned(api: Signatures, data: Json) -> Plan:
    """Check a program.

    Raises:
        ShapeError: something in it is not as the API says; its diagnostics say what and where.
    """
    check = _Check(api)
    check.program(data)
    if check.faults:
        lines = tuple(dict.fromkeys(check.faults))
        if len(lines) > MOST_LINES:
            lines = (*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more")
        raise ShapeError(f"not a program of {api.name}: {lines[0]}", diagnostics=lines)
    return Plan(tuple(call for call in check.calls if call is not None), tuple(check.unknown))


def references(argument: Json) -> Iterator[int]:
    """Give the numbers of all calls that an argument refers to."""
    todo = [argument]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            at = here.get(REFERENCE)
            if isinstance(at, int):
                yield at
            todo += here.values()
        elif isinstance(here, list):
            todo += here


def _is_open(data: Json) -> bool:
    """Whether a reference or a call stands somewhere in the data, or what looks like one."""
    todo = [data]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            if REFERENCE in here or FUNCTION in here:
                return True
            todo += here.values()
        elif isinstance(here, list):
            todo += here
    return False


@dataclass(slots=True)
class _Check:
    """A check under way. `calls` grows as calls are understood; one with a fault leaves None, whose type is not known."""

    api: Signatures
    calls: list[Call | None] = field(default_factory=list["Call | None"])
    places: list[int | None] = field(default_factory=list["int | None"])
    unknown: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    step: int = 0

    def fault(self, path: str, got: Json, complaint: str) -> None:
        self.faults.append(f"{path} = {_shown(got)}: {complaint}")

    def program(self, data: Json) -> None:
        steps = data.get(STEPS) if isinstance(data, dict) else None
        if not isinstance(steps, list):
            self.faults.append(f'$["{STEPS}"]: missing (a list of steps)')
            return
        if len(steps) > MOST_STEPS:
            self.faults.append(f'$["{STEPS}"]: has {len(steps)}, must be at most {MOST_STEPS} steps')
            return
        for self.step, step in enumerate(steps):
            self.places.append(self.call(step, f'$["{STEPS}"][{self.step}]'))

    def call(self, data: Json, path: str) -> int | None:
        """Check a call and those in its arguments; give its number, or None where it has no result."""
        if not isinstance(data, dict) or not isinstance(data.get(FUNCTION), str):
            self.fault(path, data, f'must be {{"{FUNCTION}": name, "{GIVEN}": [arguments]}}')
            return None
        name, given = str(data[FUNCTION]), data.get(GIVEN, [])
        if not isinstance(given, list):
            self.fault(f'{path}["{GIVEN}"]', given, "must be a list")
            return None
        if name == UNKNOWN:
            self.cannot(given, path)
            return None
        function = self.api.functions.get(name)
        if function is None:
            self.fault(f'{path}["{FUNCTION}"]', name, f"must be {UNKNOWN} or one of {named(self.api.functions)}")
            return None
        return self.known(function, given, path)

    def cannot(self, given: list[Json], path: str) -> None:
        text = given[0] if len(given) == 1 else None
        if isinstance(text, str):
            self.unknown.append(text)
        else:
            self.fault(f'{path}["{GIVEN}"]', given, "must be one string: what the API cannot do")

    def known(self, function: Function, given: list[Json], path: str) -> int:
        before = len(self.faults)
        path = f'{path}["{GIVEN}"]'
        if not function.fewest <= len(given) <= len(function.parameters):
            self.faults.append(f"{path}: has {len(given)}, must be the arguments of {function.head}")
        # A call in an argument comes before the call that it is an argument of.
        arguments = tuple(
            self.argument(argument, parameter, f"{path}[{at}]")
            for at, (argument, parameter) in enumerate(zip(given, function.parameters, strict=False))
        )
        sound = len(self.faults) == before
        self.calls.append(Call(function.name, arguments, self.step) if sound else None)
        return len(self.calls) - 1

    def argument(self, data: Json, parameter: Parameter, path: str) -> Json:
        """Check an argument; give it with every reference as a number of this plan."""
        if _is_open(data):
            whole = self.linked(data, path)
            self.fits(whole, parameter.node, path)
            return whole
        try:
            parameter.shape.check(data)
        except ShapeError as error:
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
        return {key: self.linked(each, f"{path}{_step(key)}") for key, each in data.items()}

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
        if isinstance(data, dict) and REFERENCE in data:
            self.result_fits(data, node, path)
            return
        if not _is_open(data):
            form = Form(node, named=self.api.form.named)
            self.faults += [f"{path}{line.removeprefix('$')}" for line in diagnostics(form, data)]
            return
        chosen = branch(self.api.form, node, data)
        if isinstance(chosen, AnyNode):
            return
        if isinstance(chosen, ObjectNode) and isinstance(data, dict):
            self.object_fits(data, chosen, path)
        elif isinstance(chosen, ArrayNode) and isinstance(data, list):
            self.array_fits(data, chosen, path)
        else:
            self.fault(path, data, f"must be {self.words(node)}")

    def result_fits(self, data: dict[str, Json], node: Node, path: str) -> None:
        at = data[REFERENCE]
        call = self.calls[at] if isinstance(at, int) else None
        if call is None:  # it has a fault of its own
            return
        result = self.api.functions[call.function].node
        if not is_assignable(self.api.form, result, node):
            told = f"{call.function} gives {self.words(result)}; must be {self.words(node)}"
            self.faults.append(f"{path}: {cut(told, 240)}")

    def object_fits(self, data: dict[str, Json], node: ObjectNode, path: str) -> None:
        for each in node.properties:
            if each.name in data:
                self.fits(data[each.name], each.node, f"{path}{_step(each.name)}")
            elif each.required:
                self.faults.append(f"{path}{_step(each.name)}: missing ({self.words(each.node)})")
        for key, inner in data.items():
            if node.get(key) is None and isinstance(node.extra, NeverNode):
                self.fault(f"{path}{_step(key)}", inner, "no key here")
            elif node.get(key) is None and node.extra is not None:
                self.fits(inner, node.extra, f"{path}{_step(key)}")
        if len(data) < node.fewest or (node.most is not None and len(data) > node.most):
            self.fault(path, cast("Json", data), f"must be {described(node)}")

    def array_fits(self, data: list[Json], node: ArrayNode, path: str) -> None:
        fixed = isinstance(node.items, NeverNode)
        least = max(node.fewest, len(node.prefix) if fixed else 0)
        most = len(node.prefix) if fixed else node.most
        if len(data) < least or (most is not None and len(data) > most):
            self.fault(path, cast("Json", data), f"must be {described(node)}")
        for at, item in enumerate(data):
            if at < len(node.prefix) or not fixed:
                self.fits(item, node.prefix[at] if at < len(node.prefix) else node.items, f"{path}[{at}]")

    def words(self, node: Node) -> str:
        """Say what a node is, every member of a union."""
        form = self.api.form
        names = {id(each): name for name, each in form.named.items()}
        words = dict.fromkeys(described(each, names.get(id(each), "")) for each in members(node, form))
        return " or ".join(words)


def _step(key: str) -> str:
    return pointer((key,)).removeprefix("$")


def _shown(data: Json) -> str:
    text = literal(data)
    return text if len(text) <= VALUE_CHARS else f"{text[: VALUE_CHARS - 1]}…"
