"""Diagnostics: where data does not match a type, one line per path.

A walk over the type finds the mismatches that a model can repair; problems that only the validator knows follow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from types import NoneType
from typing import TypeAlias

from taiwa.kernel.records import Json, is_number
from taiwa.kernel.text import truncate
from taiwa.structured import ir
from taiwa.structured.ir import describe, join_names, join_or, literal, members, resolve
from taiwa.structured.validators import ValidationIssue

Path: TypeAlias = tuple[str | int, ...]

MAX_MISMATCHES = 1_000
MAX_STEPS = 50_000
MAX_STEPS_OF_A_CHOICE = 500


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """A path where data does not match; `branch` names the member of a union that the data was taken for."""

    path: Path
    code: str
    expected: str
    got: Json = None
    branch: str = ""
    missing: tuple[str, ...] = ()
    """The keys that an object with an unknown key lacks."""


@dataclass(slots=True)
class _Walk:
    type_ir: ir.TypeIR
    steps: int = MAX_STEPS

    def mismatches(self, node: ir.Node, data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        self.steps -= 1
        if self.steps < 0:
            return
        options = members(node, self.type_ir)
        if len(options) != 1 or isinstance(node, ir.UnionNode):
            yield from self.union(options, data, path, branch)
            return
        only = options[0]
        if isinstance(only, ir.ObjectNode) and isinstance(data, dict):
            yield from self.object(only, data, path, branch)
        elif isinstance(only, ir.ArrayNode) and isinstance(data, list):
            yield from self.array(only, data, path, branch)
        elif not _fits(only, data):
            name = node.name if isinstance(node, ir.RefNode) else ""
            yield TypeMismatch(path, "value", describe(only, name), data, branch)

    def object(self, node: ir.ObjectNode, data: dict[str, Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        for each in node.properties:
            if each.name in data:
                yield from self.mismatches(each.node, data[each.name], (*path, each.name), branch)
            elif each.required:
                name = each.node.name if isinstance(each.node, ir.RefNode) else ""
                expected = describe(resolve(each.node, self.type_ir), name)
                yield TypeMismatch((*path, each.name), "missing", expected, None, branch)
        known = {each.name: each for each in node.properties}
        for key, inner in data.items():
            if key in known or node.extra is None:
                continue
            if isinstance(node.extra, ir.NeverNode):
                missing = tuple(name for name in known if name not in data)
                expected = f"the keys are {join_names(known)}" if known else "no keys are allowed"
                yield TypeMismatch((*path, key), "unknown", expected, inner, branch, missing)
            else:
                yield from self.mismatches(node.extra, inner, (*path, key), branch)
        if not _is_size(len(data), node.min_properties, node.max_properties):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def array(self, node: ir.ArrayNode, data: list[Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        closed = isinstance(node.items, ir.NeverNode)
        low = max(node.min_items, len(node.prefix) if closed else 0)
        high = len(node.prefix) if closed else node.max_items
        if not _is_size(len(data), low, high):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)
        for index, item in enumerate(data):
            if index < len(node.prefix):
                yield from self.mismatches(node.prefix[index], item, (*path, index), branch)
            elif not closed:
                yield from self.mismatches(node.items, item, (*path, index), branch)
        if node.unique and any(item in data[:index] for index, item in enumerate(data[:100])):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def union(self, options: tuple[ir.Node, ...], data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        unmatched = self.unmatched_tag(options, data)
        if unmatched is not None:
            tag, expected = unmatched
            code = "value" if isinstance(data, dict) and tag in data else "missing"
            yield TypeMismatch((*path, tag), code, expected, data.get(tag) if isinstance(data, dict) else None, branch)
            return
        chosen = self.choose(options, data)
        if chosen is None:
            words = list(dict.fromkeys(describe(each, self.name(each)) for each in options))
            yield TypeMismatch(path, "value", join_or(words), data, branch)
        else:
            name = self.name(chosen)
            several = sum(_kind(each, data) for each in options) > 1
            yield from self.mismatches(chosen, data, path, name if several and name else branch)

    def unmatched_tag(self, options: tuple[ir.Node, ...], data: Json) -> tuple[str, str] | None:
        """Return the discriminator of a union of objects and its values, if data has none of these values."""
        objects = [each for each in options if isinstance(each, ir.ObjectNode)]
        if not isinstance(data, dict) or len(objects) < 2:
            return None
        for each in objects[0].properties:
            same = [other.get(each.name) for other in objects]
            nodes = [resolve(one.node, self.type_ir) for one in same if one is not None and one.required]
            tags = [node for node in nodes if isinstance(node, ir.LiteralNode)]
            if len(tags) == len(objects) and all(data.get(each.name) not in node.values for node in tags):
                return each.name, describe(ir.LiteralNode(tuple(value for node in tags for value in node.values)))
        return None

    def choose(self, options: tuple[ir.Node, ...], data: Json) -> ir.Node | None:
        """Choose a branch by its literals, then by common keys, then by the number of mismatches."""
        fitting = [each for each in options if _kind(each, data)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        scores = [self.overlap(each, data) for each in fitting]
        best = max(scores)
        close = [each for each, score in zip(fitting, scores, strict=True) if score == best]
        if len(close) == 1:
            return close[0]
        counts = [sum(1 for _ in self.mismatches(each, data, (), "")) for each in close]
        return close[counts.index(min(counts))]

    def overlap(self, node: ir.Node, data: Json) -> tuple[int, int]:
        if not isinstance(node, ir.ObjectNode) or not isinstance(data, dict):
            return (0, int(isinstance(node, ir.LiteralNode) and data in node.values))
        tags = 0
        for each in node.properties:
            inner = resolve(each.node, self.type_ir)
            if isinstance(inner, ir.LiteralNode) and each.name in data:
                tags += 1 if data[each.name] in inner.values else -1
        known = {each.name for each in node.properties}
        common = sum(key in known for key in data)
        lacking = sum(each.required and each.name not in data for each in node.properties)
        return (tags, 2 * common - lacking)

    def name(self, node: ir.Node) -> str:
        return next((name for name, named in self.type_ir.named.items() if named is node), "")


def find_mismatches(type_ir: ir.TypeIR, data: Json, node: ir.Node | None = None) -> list[TypeMismatch]:
    """Return the mismatches of data, at most a thousand."""
    return list(islice(_Walk(type_ir).mismatches(type_ir.root if node is None else node, data, (), ""), MAX_MISMATCHES))


def branch(type_ir: ir.TypeIR, node: ir.Node, data: Json) -> ir.Node:
    """Return the member of a node that data most likely stands for; the first member if none is of its kind."""
    options = members(node, type_ir)
    return _Walk(type_ir, MAX_STEPS_OF_A_CHOICE).choose(options, data) or options[0]


def branch_name(type_ir: ir.TypeIR, node: ir.Node, data: Json) -> str:
    """Return the name of the member that data most likely stands for, or ''."""
    return _Walk(type_ir).name(branch(type_ir, node, data))


def node_at(type_ir: ir.TypeIR, data: Json, path: Path) -> ir.Node | None:
    """Return the node of a path of data; None if the type does not describe the path."""
    node: ir.Node = type_ir.root
    for part in path:
        chosen = branch(type_ir, node, data)
        if isinstance(chosen, ir.ObjectNode) and isinstance(part, str):
            named = chosen.get(part)
            inner = named.node if named else chosen.extra
            data = data.get(part) if isinstance(data, dict) else None
        elif isinstance(chosen, ir.ArrayNode) and isinstance(part, int):
            inner = chosen.prefix[part] if part < len(chosen.prefix) else chosen.items
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            return None
        if inner is None:
            return None
        node = inner
    return node


DATA_TYPES: dict[type, type] = {
    ir.AnyNode: object,
    ir.NullNode: NoneType,
    ir.BoolNode: bool,
    ir.StringNode: str,
    ir.ArrayNode: list,
    ir.ObjectNode: dict,
}


def _kind(node: ir.Node, data: Json) -> bool:
    """Return whether data has the JSON type of a node, whatever the constraints."""
    if isinstance(node, ir.LiteralNode):
        return any(type(value) is type(data) for value in node.values)
    if isinstance(node, ir.NumberNode):
        return is_number(data)
    return isinstance(data, DATA_TYPES.get(type(node), ()))


def _fits(node: ir.Node, data: Json) -> bool:
    if isinstance(node, ir.LiteralNode):
        return any(value == data and isinstance(value, bool) == isinstance(data, bool) for value in node.values)
    if not _kind(node, data):
        return False
    if isinstance(node, ir.StringNode) and isinstance(data, str):
        return node.min_length <= len(data) and (node.max_length is None or len(data) <= node.max_length)
    if isinstance(node, ir.NumberNode) and isinstance(data, (int, float)):
        return _in_range(node, data)
    return True


def _in_range(node: ir.NumberNode, data: int | float) -> bool:
    if node.integer and isinstance(data, float) and not data.is_integer():  # validators differ about 5.0
        return False
    if node.minimum is not None and (data <= node.minimum if node.exclusive_minimum else data < node.minimum):
        return False
    return not (node.maximum is not None and (data >= node.maximum if node.exclusive_maximum else data > node.maximum))


def _is_size(size: int, low: int, high: int | None) -> bool:
    return low <= size and (high is None or size <= high)


MAX_LINES = 12
MAX_VALUE_CHARS = 60
MAX_TEXT_CHARS = 200
CUSTOM = ("value_error", "assertion_error", "validator")
"""Codes of issues whose text was written by the author of a validator; other texts are replaced by our own."""


def diagnostics(type_ir: ir.TypeIR, data: Json, issues: tuple[ValidationIssue, ...] = ()) -> tuple[str, ...]:
    """Return the diagnostics of data: at most twelve lines, and a count of the rest.

    Mismatches with the type come first, then issues that only the validator finds (patterns, formats, functions).
    """
    mismatches = find_mismatches(type_ir, data)
    lines = [_line(mismatch, suggest=at < MAX_LINES) for at, mismatch in enumerate(mismatches)]
    lines += _issue_lines(type_ir, data, issues, {mismatch.path for mismatch in mismatches})
    lines = list(dict.fromkeys(lines))
    if len(lines) > MAX_LINES:
        return (*lines[:MAX_LINES], f"… and {len(lines) - MAX_LINES} more")
    return tuple(lines)


def pointer(path: Path) -> str:
    """Render a path: `$.items[0]["odd key"]`."""
    text = "$"
    for part in path:
        if isinstance(part, str) and part.isidentifier() and len(part) <= MAX_VALUE_CHARS:
            text += f".{part}"
        else:
            text += f"[{part if isinstance(part, int) else truncate(literal(part), MAX_VALUE_CHARS)}]"
    return text


def _line(mismatch: TypeMismatch, *, suggest: bool) -> str:
    branch = f" (read as {truncate(mismatch.branch, MAX_VALUE_CHARS)})" if mismatch.branch else ""
    where = pointer(mismatch.path)
    if mismatch.code == "missing":
        return f"{where}: missing ({truncate(mismatch.expected, MAX_TEXT_CHARS)}){branch}"
    if mismatch.code == "size":
        return f"{where}: has {mismatch.got}, must be {truncate(mismatch.expected, MAX_TEXT_CHARS)}{branch}"
    verb = "must be "
    if mismatch.code == "unknown":
        near = get_close_matches(str(mismatch.path[-1])[:MAX_VALUE_CHARS], mismatch.missing, 1) if suggest else []
        verb = f"no key here; did you mean {join_names(near)}? " if near else "no key here; "
    return f"{where} = {_value_text(mismatch.got)}: {verb}{truncate(mismatch.expected, MAX_TEXT_CHARS)}{branch}"


def _value_text(value: Json) -> str:
    if isinstance(value, list) and value:
        return f"[…] ({len(value)} items)"
    if isinstance(value, dict) and value:
        return f"{{…}} ({', '.join(truncate(literal(key), 20) for key in list(value)[:3])}{', …' if len(value) > 3 else ''})"
    if isinstance(value, str):
        return truncate(literal(value[: MAX_VALUE_CHARS + 1]), MAX_VALUE_CHARS)
    return truncate(literal(value), MAX_VALUE_CHARS)


def _issue_lines(type_ir: ir.TypeIR, data: Json, issues: tuple[ValidationIssue, ...], known: set[Path]) -> list[str]:
    """Render the issues at paths without a mismatch."""
    lines: list[str] = []
    unsure: list[str] = []
    above = {path[:depth] for path in known for depth in range(len(path) + 1)}
    for issue in issues:
        path, meant = _data_path(type_ir, data, issue.path)
        reported = path in above or any(path[:depth] in known for depth in range(len(path)))
        if reported or (known and not meant):
            continue
        node = node_at(type_ir, data, path)
        here = value_at(data, path)
        text = issue.text
        if issue.code not in CUSTOM and node is not None:
            text = f"must be {describe(branch(type_ir, node, here), branch_name(type_ir, node, here))}"
        line = f"{pointer(path)} = {_value_text(here)}: {truncate(ir.CONTROL.sub(' ', text), MAX_TEXT_CHARS)}"
        (lines if meant and node is not None else unsure).append(line)
    return lines or unsure


def _data_path(type_ir: ir.TypeIR, data: Json, path: Path) -> tuple[Path, bool]:
    """Drop the names of union branches from a path; also return whether data most likely stands for these branches."""
    steps: list[str | int] = []
    meant = True
    for part in path:
        here = value_at(data, tuple(steps))
        if (
            (part in here)
            if isinstance(here, dict)
            else isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            steps.append(part)
        else:
            node = node_at(type_ir, data, tuple(steps))
            tagged = isinstance(here, dict) and part in here.values()
            meant = meant and node is not None and (tagged or branch_name(type_ir, node, here) == part)
    return tuple(steps), meant


def value_at(data: Json, path: Path) -> Json:
    """Return the part of data at a path that it has."""
    for part in path:
        if isinstance(data, dict):
            data = data[str(part)]
        elif isinstance(data, list):
            data = data[int(part)]
    return data
