"""TypeScript → JSON Schema, for types as in TypeChat's schemas.

Interfaces (also with `extends`), type aliases, object types, unions, intersections of objects, literals, enums of literals, arrays,
tuples, `Record`, `keyof` an object, `T["member"]`, optional members and comments. The parser is tree-sitter's (extra
`typescript`). Only types that the requested type refers to are converted; unsupported TypeScript is refused with line and
column.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from taiwa.extras import missing_extra
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json

if TYPE_CHECKING:
    from tree_sitter import Node

Object = dict[str, Json]

MAX_CHARS = 128 * 1024
MAX_DEPTH = 64
PREDEFINED: Mapping[str, Object] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
    "unknown": {},
    "never": {"not": {}},
}
DECLARATIONS = ("interface_declaration", "type_alias_declaration", "enum_declaration")
HINTS: Mapping[str, str] = {
    "Date": "JSON has no dates; write string",
    "Map": "JSON has no maps; write Record<string, T>",
    "Set": "JSON has no sets; write T[]",
    "bigint": "write number",
    "import_statement": "put the types into one file",
    "template_literal_type": "write string, or a union of literals",
    "this_type": "write the name of the type",
    "Partial": "write the members with `?`",
    "Required": "write the members without `?`",
    "Readonly": "write T",
    **dict.fromkeys(("method_signature", "function_type"), "functions are declared by a Python class; see taiwa.Api"),
    **dict.fromkeys(("type_query", "Exclude", "Extract"), "write the values as a union of literals"),
    **dict.fromkeys(("conditional_type", "infer_type", "Promise"), "write the type that it gives"),
    **dict.fromkeys(("Pick", "Omit"), "write the members, or an interface that others extend"),
}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
COMMENT_MARKS = re.compile(r"(?m)^\s*(?:/\*+|\*+(?!/)|//+)?[ \t]*|[ \t]*(?:\*+/)?[ \t]*$")


class TypeScriptError(InputError):
    """TypeScript that cannot be read as a type of JSON; `line` and `column` begin at 1, and `reason` is the message without them."""

    line: int = 0
    column: int = 0
    reason: str = ""


def schema_from_typescript(text: str, name: str) -> Object:
    """Return the JSON Schema of a type that TypeScript declares; objects have no keys but their own.

    Raises:
        ConfigError: the extra `typescript` is not installed.
        TypeScriptError: the text is not TypeScript, does not declare the type, or uses types that JSON lacks.
    """
    try:
        tree_sitter, grammar = import_module("tree_sitter"), import_module("tree_sitter_typescript")
    except ImportError as error:
        raise missing_extra("a type in TypeScript", "typescript") from error
    if len(text) > MAX_CHARS:
        raise _error(f"{len(text):,} characters, at most {MAX_CHARS:,}; leave out what the type does not need", 1, 1)
    try:
        source = text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        raise _error(f"half a character (U+{ord(text[error.start]):04X})", line, column) from None
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language_typescript()))
    return _Converter(source, parser.parse(source).root_node).schema(name)


def _error(reason: str, line: int, column: int) -> TypeScriptError:
    error = TypeScriptError(f"TypeScript, line {line}, column {column}: {reason}")
    error.line, error.column, error.reason = line, column, reason
    return error


@dataclass(slots=True)
class _Members:
    """The members of an object type; `extra` is the schema of other keys, None if there are none."""

    properties: Object = field(default_factory=dict[str, Json])
    required: list[Json] = field(default_factory=list[Json])
    extra: Json = False

    def add(self, other: "_Members") -> None:
        """Add members, which replace those of the same name."""
        self.required = [name for name in self.required if name not in other.properties] + other.required
        self.properties |= other.properties
        self.extra = other.extra if self.extra is False else self.extra

    def schema(self) -> Object:
        return {
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": self.extra,
        }


class _Converter:
    def __init__(self, source: bytes, root: "Node") -> None:
        self.source = source
        self.declared: dict[str, tuple[Node, str]] = {}
        """The declarations and the comments above them, by name."""
        self.definitions: dict[str, Object] = {}
        self.waiting: list[str] = []
        if root.has_error:
            self.fail(_first_error(root), "not TypeScript; the syntax breaks here")
        for node, comment in self.commented(root):
            inner = next((child for child in node.named_children if child.type in DECLARATIONS), node)
            if inner.type in DECLARATIONS:
                name = self.text(self.named(inner, "name"))
                if name in self.declared:
                    self.fail(inner, f"{name} is declared twice; give them different names")
                self.declared[name] = inner, comment

    def schema(self, name: str) -> Object:
        if name not in self.declared:
            near = get_close_matches(name, self.declared, 1)
            hint = (
                f"did you mean {near[0]}?" if near else f"it declares {', '.join(sorted(self.declared)) or 'no type'}"
            )
            raise _error(f"the text does not declare {name!r}; {hint}", 1, 1)
        self.reference(name)
        while self.waiting:
            waiting = self.waiting.pop()
            self.definitions[waiting] = self.declaration(waiting)
        for each in self.definitions:
            self.refuse_circle(each)
        definitions: Object = dict(self.definitions)
        whole: Object = {"$ref": f"#/$defs/{name}"}
        if json.dumps(f"#/$defs/{name}") not in json.dumps(definitions):
            del definitions[name]
            whole = dict(self.definitions[name])
        if definitions:
            whole["$defs"] = definitions
        return whole

    def declaration(self, name: str) -> Object:
        node, comment = self.declared[name]
        self.refuse_parameters(node)
        schema: Object
        if node.type == "interface_declaration":
            schema = self.members(node, (name,), 0).schema()
        elif node.type == "enum_declaration":
            schema = {"enum": list[Json](self.enum(node).values())}
        else:
            schema = self.convert(self.named(node, "value"), 0)
        return _described(schema, comment)

    def enum(self, node: "Node") -> Object:
        """Return the values of an enum by the names of its members."""
        values: Object = {}
        for member in self.named(node, "body").named_children:
            if member.type == "comment":
                continue
            value = member.child_by_field_name("value")
            if value is None:
                self.fail(
                    member, f'{self.text(member)} has no value; write {self.text(member)} = "…", as it stands in JSON'
                )
            if value.type not in ("string", "number", "unary_expression"):
                self.fail(value, f"{self.text(value)[:40]} is computed; write a string or a number")
            key = self.named(member, "name")
            name = self.string(key) if key.type == "string" else self.text(key)
            values[name] = self.string(value) if value.type == "string" else self.number(value)
        return values

    def refuse_parameters(self, node: "Node") -> None:
        parameters = node.child_by_field_name("type_parameters")
        if parameters is not None:
            self.fail(parameters, "generic types are not supported; write one type for each use")

    def refuse_circle(self, name: str) -> None:
        """Refuse an alias that refers to itself outside of an object or an array: it has no value."""
        seen, todo = set[str](), list(_direct(self.definitions[name]))
        while todo:
            each = todo.pop()
            if each == name:
                self.fail(self.declared[name][0], f"{name} refers to itself")
            if each not in seen:
                seen.add(each)
                todo.extend(_direct(self.definitions[each]))

    def reference(self, name: str) -> Object:
        if name not in self.definitions:
            self.definitions[name] = {}
            self.waiting.append(name)
        return {"$ref": f"#/$defs/{name}"}

    # --- types

    def convert(self, node: "Node", depth: int) -> Object:
        if depth > MAX_DEPTH:
            self.fail(node, f"nested deeper than {MAX_DEPTH}")
        converters: dict[str, Callable[[Node, int], Object]] = {
            "predefined_type": self.predefined,
            "literal_type": self.literal,
            "type_identifier": self.identifier,
            "parenthesized_type": lambda inner, at: self.convert(self.only(inner), at + 1),
            "readonly_type": lambda inner, at: self.convert(self.only(inner), at + 1),
            "array_type": lambda inner, at: {"type": "array", "items": self.convert(self.only(inner), at + 1)},
            "union_type": self.union,
            "tuple_type": self.tuple_type,
            "generic_type": self.generic,
            "object_type": lambda inner, at: self.members(inner, (), at).schema(),
            "intersection_type": lambda inner, at: self.members(inner, (), at).schema(),
            "nested_type_identifier": self.enum_member,
            "index_type_query": self.keys,
            "lookup_type": self.lookup,
        }
        if node.type not in converters:
            self.unsupported(node)
        return converters[node.type](node, depth)

    def predefined(self, node: "Node", _depth: int) -> Object:
        known = PREDEFINED.get(self.text(node))
        if known is None:
            self.fail(node, f"JSON has no type {self.text(node)}")
        return dict(known)

    def identifier(self, node: "Node", _depth: int) -> Object:
        self.find(node)
        return self.reference(self.text(node))

    def find(self, node: "Node") -> "Node":
        """Return the declaration of a type."""
        name = self.text(node)
        if name not in self.declared:
            near = get_close_matches(name, self.declared, 1)
            hint = HINTS.get(name) or (f"did you mean {near[0]}?" if near else "declare it in the same text")
            self.fail(node, f"unknown type {name}; {hint}")
        return self.declared[name][0]

    def literal(self, node: "Node", _depth: int) -> Object:
        inner = self.only(node)
        if inner.type == "string":
            return {"const": self.string(inner)}
        if inner.type in ("number", "unary_expression"):
            return {"const": self.number(inner)}
        if inner.type not in ("true", "false", "null"):
            self.fail(node, f"JSON has no type {self.text(node)}")
        return {"type": "null"} if inner.type == "null" else {"const": inner.type == "true"}

    def union(self, node: "Node", depth: int) -> Object:
        parts = [self.convert(each, depth + 1) for each in self.options(node) if self.text(each) != "undefined"]
        return _union(parts)

    def options(self, node: "Node") -> "list[Node]":
        """Return the members of a union, which the parser nests to the left."""
        options: list[Node] = []
        todo = [node]
        while todo:
            here = todo.pop()
            if here.type == "union_type":
                todo.extend(child for child in here.named_children if child.type != "comment")
            else:
                options.append(here)
        return options[::-1]

    def enum_member(self, node: "Node", _depth: int) -> Object:
        enum, name = self.named(node, "module"), self.text(self.named(node, "name"))
        declared = self.find(enum)
        values = self.enum(declared) if declared.type == "enum_declaration" else {}
        if name not in values:
            self.fail(node, f"{self.text(enum)} has no member {name}; it has {', '.join(values) or 'none'}")
        return {"const": values[name]}

    def keys(self, node: "Node", depth: int) -> Object:
        inner = self.only(node)
        if inner.type == "type_query":
            self.unsupported(inner)
        return {"enum": list[Json](self.members(inner, (), depth + 1).properties)}

    def lookup(self, node: "Node", depth: int) -> Object:
        of, index = (child for child in node.named_children if child.type != "comment")
        members = self.members(of, (), depth + 1).properties
        parts: list[Object] = []
        for each in self.options(index):
            name = self.literal(each, depth).get("const") if each.type == "literal_type" else None
            part = members.get(name) if isinstance(name, str) else None
            if not isinstance(part, dict):
                near = ", ".join(members) or "none"
                self.fail(each, f'{self.text(of)} has no member {self.text(each)}; it has {near}; write T["member"]')
            parts.append(part)
        return _union(parts)

    def tuple_type(self, node: "Node", depth: int) -> Object:
        items: list[Json] = []
        for each in node.named_children:
            if each.type in ("optional_type", "rest_type"):
                self.fail(each, "tuples have a fixed length; write an array")
            if each.type != "comment":
                items.append(self.convert(each, depth + 1))
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}

    def generic(self, node: "Node", depth: int) -> Object:
        name, arguments = self.text(self.named(node, "name")), self.named(node, "type_arguments").named_children
        if name in ("Array", "ReadonlyArray") and len(arguments) == 1:
            return {"type": "array", "items": self.convert(arguments[0], depth + 1)}
        if name != "Record" or len(arguments) != 2:
            self.fail(node, f"{name}<…> is not supported; {HINTS.get(name, 'Array<T> and Record<string, T> are')}")
        values = self.convert(arguments[1], depth + 1)
        if self.text(arguments[0]) == "string":
            return {"type": "object", "additionalProperties": values}
        keys = [self.literal(each, depth) for each in self.options(arguments[0]) if each.type == "literal_type"]
        names: list[Json] = [key["const"] for key in keys if isinstance(key.get("const"), str)]
        if not names or len(names) != len(self.options(arguments[0])):
            self.fail(arguments[0], "the keys of a Record must be string, or literals")
        return _Members({str(each): values for each in names}, names).schema()

    # --- objects

    def members(self, node: "Node", above: tuple[str, ...], depth: int) -> _Members:
        """Return the members of an object type, of an interface with its bases, or of an intersection of such."""
        if depth > MAX_DEPTH:
            self.fail(node, f"nested deeper than {MAX_DEPTH}")
        members = _Members()
        if node.type == "interface_declaration":
            bases = [child for child in node.named_children if child.type == "extends_type_clause"]
            for base in bases[0].named_children if bases else ():
                members.add(self.members(base, above, depth + 1))
            members.add(self.members(self.named(node, "body"), above, depth))
        elif node.type in ("object_type", "interface_body"):
            for child, comment in self.commented(node):
                self.member(child, comment, members, depth)
        elif node.type == "type_identifier":
            name = self.text(node)
            if name in above:
                self.fail(node, f"{name} extends itself")
            declared = self.find(node)
            self.refuse_parameters(declared)
            if declared.type == "enum_declaration":
                self.fail(node, f"{name} is an enum and not an object type")
            inner = declared if declared.type == "interface_declaration" else self.named(declared, "value")
            members = self.members(inner, (*above, name), depth + 1)
        elif node.type in ("intersection_type", "parenthesized_type"):
            for child in node.named_children:
                members.add(self.members(child, above, depth + 1))
        else:
            self.fail(node, f"{self.text(node)[:40]} is not an object type, so nothing can extend it")
        return members

    def member(self, node: "Node", comment: str, members: _Members, depth: int) -> None:
        annotation = node.child_by_field_name("type")
        if node.type == "index_signature" and annotation is not None:
            members.extra = self.convert(self.only(annotation), depth + 1)
            return
        if node.type != "property_signature":
            self.unsupported(node)
        key = self.named(node, "name")
        name = self.string(key) if key.type == "string" else self.text(key)
        if key.type not in ("property_identifier", "string", "number"):
            self.fail(key, f"the key {name[:40]} is computed; write its name")
        if annotation is None:
            self.fail(node, f"{name} has no type")
        value = self.only(annotation)
        if name in members.properties:
            self.fail(node, f"{name} is declared twice")
        members.properties[name] = _described(self.convert(value, depth + 1), comment)
        undefined = any(self.text(each) == "undefined" for each in self.options(value))
        if not undefined and not any(child.type == "?" for child in node.children):
            members.required.append(name)

    # --- text

    def commented(self, node: "Node") -> "Iterator[tuple[Node, str]]":
        """Yield the declarations or members in a node with their comments: directly above, or after them on the line."""
        found: list[tuple[Node, list[str]]] = []
        above: list[str] = []
        row = -1
        for child in node.named_children:
            start = child.start_point.row
            if start - row > 1:
                above = []
            if child.type != "comment":
                found.append((child, above))
                above = []
            elif found and found[-1][0].end_point.row == start:
                found[-1][1].append(_comment(self.text(child)))
            else:
                above.append(_comment(self.text(child)))
            row = child.end_point.row
        yield from ((child, " ".join(comments)) for child, comments in found)

    def text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode()

    def string(self, node: "Node") -> str:
        pieces = [
            self.escape(child) if child.type == "escape_sequence" else self.text(child) for child in node.named_children
        ]
        try:
            return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.fail(node, "half a character; write the whole character")

    def escape(self, node: "Node") -> str:
        text = self.text(node)[1:]
        if text[0] in "ux":
            return chr(min(int(text[1:].strip("{}"), 16), 0x10FFFF))
        return ESCAPES.get(text, text)

    def number(self, node: "Node") -> int | float:
        text = self.text(node).replace("_", "").replace(" ", "")
        try:
            return int(text, 0)
        except ValueError:
            try:
                return float(text)
            except ValueError:
                self.fail(node, f"JSON has no number {text[:40]}")

    def only(self, node: "Node") -> "Node":
        """Return the only node in another one."""
        return next(child for child in node.named_children if child.type != "comment")

    def named(self, node: "Node", name: str) -> "Node":
        child = node.child_by_field_name(name)
        if child is None:
            self.fail(node, f"the {name} is missing")
        return child

    def unsupported(self, node: "Node") -> NoReturn:
        hint = HINTS.get(node.type, "")
        self.fail(node, f"{node.type.replace('_', ' ')} is not supported{hint and f'; {hint}'}")

    def fail(self, node: "Node", reason: str) -> NoReturn:
        line = self.source.rfind(b"\n", 0, node.start_byte) + 1
        column = len(self.source[line : node.start_byte].decode()) + 1
        raise _error(reason, node.start_point.row + 1, column)


def _first_error(root: "Node") -> "Node":
    node = root
    while not (node.is_error or node.is_missing):
        node = next(child for child in node.children if child.has_error or child.is_missing)
    return node.children[-1] if node.children else node  # the part read so far is inside


def _comment(text: str) -> str:
    return " ".join(COMMENT_MARKS.sub("", text).split())


def _described(schema: Object, comment: str) -> Object:
    return schema | {"description": comment} if comment else schema


def _union(parts: list[Object]) -> Object:
    """Return the union of schemas; literals become one `enum`."""
    if len(parts) == 1:
        return parts[0]
    if all(set(part) == {"const"} for part in parts):
        return {"enum": [part["const"] for part in parts]}
    return {"anyOf": list[Json](parts)} if parts else {"not": {}}


def _direct(schema: Json) -> Iterator[str]:
    """Yield the names that a schema refers to outside of objects and arrays."""
    if isinstance(schema, dict):
        reference, options = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str):
            yield reference.removeprefix("#/$defs/")
        for option in options if isinstance(options, list) else ():
            yield from _direct(option)
