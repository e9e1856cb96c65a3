"""Where data does not fit a type, one line per path."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from taiwa.kernel.records import Json
from taiwa.kernel.text import truncate
from taiwa.structured.ir import (
    BREAKS,
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    RefNode,
    StringNode,
    TypeIR,
    UnionNode,
    describe,
    join_names,
    literal,
    members,
    resolve,
)
from taiwa.structured.validators import ValidationIssue

__all__ = ["Path", "branch", "diagnostics", "find_mismatches", "node_at", "pointer"]


Path: TypeAlias = tuple[str | int, ...]

MOST_FAULTS = 1_000

STEPS = 50_000

STEPS_OF_A_CHOICE = 500


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """One path where data does not fit; `branch` names the member of a union that it was read as."""

    path: Path
    code: str
    expected: str
    got: Json = None
    branch: str = ""


@dataclass(slots=True)
class _Walk:
    form: TypeIR
    steps: int = STEPS

    def faults(self, node: Node, data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        self.steps -= 1
        if self.steps < 0:
            return
        options = members(node, self.form)
        if len(options) != 1 or isinstance(node, UnionNode):
            yield from self.union(options, data, path, branch)
            return
        only = options[0]
        if isinstance(only, ObjectNode) and isinstance(data, dict):
            yield from self.object(only, data, path, branch)
        elif isinstance(only, ArrayNode) and isinstance(data, list):
            yield from self.array(only, data, path, branch)
        elif not _fits(only, data):
            name = node.name if isinstance(node, RefNode) else ""
            yield TypeMismatch(path, "value", describe(only, name), data, branch)

    def object(self, node: ObjectNode, data: dict[str, Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        for each in node.properties:
            if each.name in data:
                yield from self.faults(each.node, data[each.name], (*path, each.name), branch)
            elif each.required:
                name = each.node.name if isinstance(each.node, RefNode) else ""
                yield TypeMismatch(
                    (*path, each.name), "missing", describe(resolve(each.node, self.form), name), None, branch
                )
        known = {each.name for each in node.properties}
        for key, inner in data.items():
            if key in known or node.extra is None:
                continue
            if isinstance(node.extra, NeverNode):
                yield TypeMismatch(
                    (*path, key), "unknown", f"no key here; the keys are {join_names(known)}", inner, branch
                )
            else:
                yield from self.faults(node.extra, inner, (*path, key), branch)
        if len(data) < node.fewest or (node.most is not None and len(data) > node.most):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def array(self, node: ArrayNode, data: list[Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        least = max(node.fewest, len(node.prefix) if isinstance(node.items, NeverNode) else 0)
        most = len(node.prefix) if isinstance(node.items, NeverNode) else node.most
        if len(data) < least or (most is not None and len(data) > most):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)
        for index, item in enumerate(data):
            if index < len(node.prefix):
                yield from self.faults(node.prefix[index], item, (*path, index), branch)
            elif not isinstance(node.items, NeverNode):
                yield from self.faults(node.items, item, (*path, index), branch)
        if node.unique and any(item in data[:index] for index, item in enumerate(data[:100])):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def union(self, options: tuple[Node, ...], data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        untold = self.untold(options, data)
        if untold is not None:
            tag, expected = untold
            code = "value" if isinstance(data, dict) and tag in data else "missing"
            yield TypeMismatch((*path, tag), code, expected, data.get(tag) if isinstance(data, dict) else None, branch)
            return
        chosen = self.choose(options, data)
        if chosen is None:
            words = [describe(each, self.name(each)) for each in options]
            yield TypeMismatch(path, "value", _either(words), data, branch)
        else:
            name = self.name(chosen)
            several = sum(_kind(each, data) for each in options) > 1
            yield from self.faults(chosen, data, path, name if several and name else branch)

    def untold(self, options: tuple[Node, ...], data: Json) -> tuple[str, str] | None:
        """Give the key that tells objects of a union apart, and its values, where data says none of them."""
        objects = [each for each in options if isinstance(each, ObjectNode)]
        if not isinstance(data, dict) or len(objects) < 2:
            return None
        for each in objects[0].properties:
            found = [other.get(each.name) for other in objects]
            literals = [resolve(one.node, self.form) for one in found if one is not None and one.required]
            told = [node for node in literals if isinstance(node, LiteralNode)]
            if len(told) == len(objects) and all(data.get(each.name) not in node.values for node in told):
                return each.name, describe(LiteralNode(tuple(value for node in told for value in node.values)))
        return None

    def choose(self, options: tuple[Node, ...], data: Json) -> Node | None:
        """Choose by the literal that tells the branches apart, then by common keys, then by the number of faults."""
        fitting = [each for each in options if _kind(each, data)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        scores = [self.overlap(each, data) for each in fitting]
        best = max(scores)
        close = [each for each, score in zip(fitting, scores, strict=True) if score == best]
        if len(close) == 1:
            return close[0]
        counts = [sum(1 for _ in self.faults(each, data, (), "")) for each in close]
        return close[counts.index(min(counts))]

    def overlap(self, node: Node, data: Json) -> tuple[int, int]:
        if not isinstance(node, ObjectNode) or not isinstance(data, dict):
            return (0, int(isinstance(node, LiteralNode) and data in node.values))
        told = 0
        for each in node.properties:
            inner = resolve(each.node, self.form)
            if isinstance(inner, LiteralNode) and each.name in data:
                told += 1 if data[each.name] in inner.values else -1
        known = {each.name for each in node.properties}
        common = sum(key in known for key in data)
        lacking = sum(each.required and each.name not in data for each in node.properties)
        return (told, 2 * common - lacking)

    def name(self, node: Node) -> str:
        return next((name for name, named in self.form.named.items() if named is node), "")


def find_mismatches(form: TypeIR, data: Json, node: Node | None = None) -> list[TypeMismatch]:
    """List the faults of data, at most a thousand."""
    found: list[TypeMismatch] = []
    for fault in _Walk(form).faults(form.root if node is None else node, data, (), ""):
        found.append(fault)
        if len(found) >= MOST_FAULTS:
            break
    return found


def branch(form: TypeIR, node: Node, data: Json) -> Node:
    """Choose the member of a node that data was meant to be; a node without a fitting member is its own."""
    options = members(node, form)
    return _Walk(form, STEPS_OF_A_CHOICE).choose(options, data) or options[0]


def branch_name(form: TypeIR, node: Node, data: Json) -> str:
    """Give the name of the member that data was meant to be, or '' for one without a name."""
    return _Walk(form).name(branch(form, node, data))


def node_at(form: TypeIR, data: Json, path: Path) -> Node | None:
    """Find the node that governs a path of data."""
    node: Node = form.root
    for part in path:
        chosen = branch(form, node, data)
        if isinstance(chosen, ObjectNode) and isinstance(part, str):
            found = chosen.get(part)
            inner = found.node if found else chosen.extra
            data = data.get(part) if isinstance(data, dict) else None
        elif isinstance(chosen, ArrayNode) and isinstance(part, int):
            inner = chosen.prefix[part] if part < len(chosen.prefix) else chosen.items
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            return None
        if inner is None:
            return None
        node = inner
    return node


def _kind(node: Node, data: Json) -> bool:
    """Tell whether data is of the kind of a node, whatever its constraints."""
    if isinstance(node, LiteralNode):
        return any(type(value) is type(data) for value in node.values)
    if isinstance(node, ObjectNode):
        return isinstance(data, dict)
    if isinstance(node, ArrayNode):
        return isinstance(data, list)
    if isinstance(node, StringNode):
        return isinstance(data, str)
    if isinstance(node, NumberNode):
        return isinstance(data, (int, float)) and not isinstance(data, bool)
    if isinstance(node, BoolNode):
        return isinstance(data, bool)
    return data is None if isinstance(node, NullNode) else isinstance(node, AnyNode)


def _fits(node: Node, data: Json) -> bool:
    if isinstance(node, LiteralNode):
        return any(value == data and isinstance(value, bool) == isinstance(data, bool) for value in node.values)
    if not _kind(node, data):
        return False
    if isinstance(node, StringNode) and isinstance(data, str):
        return node.shortest <= len(data) and (node.longest is None or len(data) <= node.longest)
    if isinstance(node, NumberNode) and isinstance(data, (int, float)):
        return _in_range(node, data)
    return True


def _in_range(node: NumberNode, data: int | float) -> bool:
    if node.integer and isinstance(data, float) and not data.is_integer():  # of 5.0 the judges think differently
        return False
    if node.low is not None and (data <= node.low if node.low_open else data < node.low):
        return False
    return not (node.high is not None and (data >= node.high if node.high_open else data > node.high))


def _either(words: list[str]) -> str:
    seen = list(dict.fromkeys(words))
    return " or ".join([", ".join(seen[:-1]), seen[-1]] if len(seen) > 1 else seen) if seen else "nothing at all"


MOST_LINES = 12

VALUE_CHARS = 60

TEXT_CHARS = 200

CUSTOM = ("value_error", "assertion_error", "validator")


def diagnostics(form: TypeIR, data: Json, complaints: tuple[ValidationIssue, ...] = ()) -> tuple[str, ...]:
    """Say what is wrong with data, at most twelve lines and a count of the rest.

    The form's own walk comes first; what only the judge can know (patterns, formats, validators) follows.
    """
    found = find_mismatches(form, data)
    lines = [_line(fault) for fault in found]
    lines += _from_judge(form, data, complaints, {fault.path for fault in found})
    lines = list(dict.fromkeys(lines))
    if len(lines) > MOST_LINES:
        return (*lines[:MOST_LINES], f"… and {len(lines) - MOST_LINES} more")
    return tuple(lines)


def pointer(path: Path) -> str:
    """Write a path: `$.items[0]["odd key"]`."""
    parts = [
        f"[{part}]"
        if isinstance(part, int)
        else f".{part}"
        if _plain(part)
        else f"[{truncate(literal(part), VALUE_CHARS)}]"
        for part in path
    ]
    return "$" + "".join(parts)


def _plain(key: str) -> bool:
    return key.isidentifier() and len(key) <= VALUE_CHARS


def _line(fault: TypeMismatch) -> str:
    branch = f" (read as {truncate(fault.branch, VALUE_CHARS)})" if fault.branch else ""
    where = pointer(fault.path)
    if fault.code == "missing":
        return f"{where}: missing ({truncate(fault.expected, TEXT_CHARS)}){branch}"
    if fault.code == "size":
        return f"{where}: has {fault.got}, must be {truncate(fault.expected, TEXT_CHARS)}{branch}"
    verb = "" if fault.code == "unknown" else "must be "
    return f"{where} = {_shown(fault.got)}: {verb}{truncate(fault.expected, TEXT_CHARS)}{branch}"


def _shown(value: Json) -> str:
    if isinstance(value, list) and value:
        return f"[…] ({len(value)} items)"
    if isinstance(value, dict) and value:
        return f"{{…}} ({', '.join(truncate(literal(key), 20) for key in list(value)[:3])}{', …' if len(value) > 3 else ''})"
    if isinstance(value, str):
        return truncate(literal(value[: VALUE_CHARS + 1]), VALUE_CHARS)
    return truncate(literal(value), VALUE_CHARS)


def _from_judge(form: TypeIR, data: Json, complaints: tuple[ValidationIssue, ...], known: set[Path]) -> list[str]:
    """Word what the judge says about paths of which the walk says nothing."""
    lines: list[str] = []
    strange: list[str] = []
    above = {path[:depth] for path in known for depth in range(len(path) + 1)}
    for complaint in complaints:
        path, meant = _data_path(form, data, complaint.path)
        told = path in above or any(path[:depth] in known for depth in range(len(path)))
        if told or (known and not meant):
            continue
        node = node_at(form, data, path)
        here = _at(data, path)
        text = complaint.text
        if complaint.code not in CUSTOM and node is not None:
            text = f"must be {describe(branch(form, node, here), branch_name(form, node, here))}"
        line = f"{pointer(path)} = {_shown(here)}: {truncate(BREAKS.sub(' ', text), TEXT_CHARS)}"
        (lines if meant and node is not None else strange).append(line)
    return lines or strange


def _data_path(form: TypeIR, data: Json, path: Path) -> tuple[Path, bool]:
    """Leave out what only names a branch of a union; tell whether the branches named are the ones that were meant."""
    kept: list[str | int] = []
    meant = True
    for part in path:
        here = _at(data, tuple(kept))
        if _has(here, part):
            kept.append(part)
        else:
            node = node_at(form, data, tuple(kept))
            told = isinstance(here, dict) and part in here.values()
            meant = meant and node is not None and (told or branch_name(form, node, here) == part)
    return tuple(kept), meant


def _has(data: Json, part: str | int) -> bool:
    if isinstance(data, dict):
        return isinstance(part, str) and part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _at(data: Json, path: Path) -> Json:
    for part in path:
        if isinstance(data, dict):
            data = data[str(part)]
        elif isinstance(data, list):
            data = data[int(part)]
    return data
