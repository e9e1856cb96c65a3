"""Render an IR: as JSON Schema of a server dialect (strict mode of OpenAI included), and as TypeScript for prompts."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType

from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import Json, items_at
from taiwa.kernel.text import truncate
from taiwa.structured import ir
from taiwa.structured.from_json_schema import identifier, type_ir_from_schema
from taiwa.structured.ir import constraints, literal, merge_about

Object = dict[str, Json]


@dataclass(frozen=True, slots=True)
class ServerSchema:
    """A schema for a server.

    `relaxed` lists keywords that became part of a description, `unsupported` those that strict mode cannot express:
    enforcing such a schema would refuse valid answers.
    """

    schema: Object
    relaxed: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()


NO_STRICT_CONSTRAINTS = ("minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties")


def to_json_schema(type_ir: ir.TypeIR, *, strict: bool = False) -> ServerSchema:
    """Render an IR as JSON Schema 2020-12, or in the documented subset that the strict mode of OpenAI accepts.

    There the top is an object, every key is required and no other key is allowed; an optional key may be null instead, which
    parsing treats as omitted.

    >>> from taiwa.structured import ir
    >>> type_ir = ir.TypeIR(ir.ObjectNode((ir.Property("n", ir.NumberNode(integer=True), required=False),)))
    >>> to_json_schema(type_ir, strict=True).schema["required"]
    ['n']
    """
    return _JsonSchemaWriter(type_ir, strict).write()


@dataclass(slots=True)
class _JsonSchemaWriter:
    type_ir: ir.TypeIR
    strict: bool
    relaxed: list[str] = field(default_factory=list[str])
    unsupported: list[str] = field(default_factory=list[str])

    def write(self) -> ServerSchema:
        root = self.type_ir.root
        if self.strict:
            target = ir.resolve(root, self.type_ir)
            wrapping = ir.ObjectNode((ir.Property("value", root, required=True),))
            root = target if isinstance(target, ir.ObjectNode) else wrapping
        schema = self.node(root, "$")
        named: Object = {name: self.node(node, f"#{name}") for name, node in self.type_ir.named.items()}
        if named:
            schema["$defs"] = named
        return ServerSchema(schema, tuple(self.relaxed), tuple(self.unsupported))

    def node(self, node: ir.Node, path: str) -> Object:
        schema = self.plain(node, path)
        about = node.about
        notes = [ir.CONTROL.sub(" ", note) for note in about.notes]
        phrases = [about.description, *notes, self.relax(node, schema, path)]
        self.relaxed += [f"{path}: {note.split(' ', 1)[0]}" for note in about.notes]
        if about.default is not ir.ABSENT:
            if not self.strict:
                schema["default"] = about.default
            elif about.default is not None:
                self.relaxed.append(f"{path}: default")
                phrases.append(f"default {literal(about.default)}")
        if description := "; ".join(each for each in phrases if each):
            if "$ref" in schema and self.strict:
                reference: Object = {"anyOf": [schema]}
                schema = reference
            schema["description"] = description
        return schema

    def relax(self, node: ir.Node, schema: Object, path: str) -> str:
        """Remove the keywords that strict mode lacks; return a description of them."""
        removed = [keyword for keyword in schema if self.strict and keyword in NO_STRICT_CONSTRAINTS]
        for keyword in removed:
            del schema[keyword]
        self.relaxed += [f"{path}: {keyword}" for keyword in removed]
        return ", ".join(phrase for phrase in constraints(node) if phrase != "integer") if removed else ""

    def plain(self, node: ir.Node, path: str) -> Object:
        if isinstance(node, ir.RefNode):
            return {"$ref": f"#/$defs/{node.name}"}
        if isinstance(node, ir.ObjectNode):
            return self.object(node, path)
        if isinstance(node, ir.ArrayNode):
            return self.array(node, path)
        if isinstance(node, ir.UnionNode):
            return {"anyOf": [self.node(each, path) for each in node.options]}
        if isinstance(node, ir.LiteralNode):
            kinds = {KINDS_OF[type(each)] for each in node.values}
            return {**({"type": kinds.pop()} if len(kinds) == 1 else {}), "enum": list(node.values)}
        if isinstance(node, ir.StringNode):
            size = _present(minLength=node.min_length or None, maxLength=node.max_length)
            return {"type": "string", **size, **_present(pattern=node.pattern or None, format=node.format or None)}
        if isinstance(node, ir.NumberNode):
            return _number(node)
        if isinstance(node, (ir.BoolNode, ir.NullNode)):
            return {"type": "boolean" if isinstance(node, ir.BoolNode) else "null"}
        if self.strict:
            self.unsupported.append(f"{path}: {'any value' if isinstance(node, ir.AnyNode) else 'no value'}")
        return {} if isinstance(node, ir.AnyNode) else {"not": {}}

    def object(self, node: ir.ObjectNode, path: str) -> Object:
        properties: Object = {}
        for each in node.properties:
            inner = self.node(each.node, f"{path}.{each.name}")
            nullable = self.strict and not each.required and not ir.takes_null(each.node, self.type_ir)
            properties[each.name] = _or_null(inner) if nullable else inner
        required: list[Json] = [each.name for each in node.properties if each.required or self.strict]
        schema: Object = {"type": "object", "properties": properties, "required": required}
        schema |= _present(minProperties=node.min_properties or None, maxProperties=node.max_properties)
        if isinstance(node.extra, ir.NeverNode) or self.strict:
            schema["additionalProperties"] = False
        if node.extra is not None and not isinstance(node.extra, ir.NeverNode):
            if self.strict:
                self.unsupported.append(f"{path}: keys that the type does not name")
            else:
                schema["additionalProperties"] = self.node(node.extra, f"{path}.*")
        return schema

    def array(self, node: ir.ArrayNode, path: str) -> Object:
        schema: Object = {"type": "array"}
        if node.prefix and not self.strict:
            schema["prefixItems"] = [self.node(each, f"{path}[{at}]") for at, each in enumerate(node.prefix)]
        if node.prefix and self.strict:
            self.relaxed.append(f"{path}: prefixItems")
            items = [each for each in (*node.prefix, node.items) if not isinstance(each, ir.NeverNode)]
            schema["items"] = self.node(ir.union(items), f"{path}[]")
        elif isinstance(node.items, ir.NeverNode):
            schema["items"] = False
        else:
            schema["items"] = self.node(node.items, f"{path}[]")
        high = len(node.prefix) if isinstance(node.items, ir.NeverNode) else node.max_items
        return schema | _present(minItems=node.min_items or None, maxItems=high, uniqueItems=node.unique or None)


KINDS_OF = {
    NoneType: "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def _number(node: ir.NumberNode) -> Object:
    low = "exclusiveMinimum" if node.exclusive_minimum else "minimum"
    high = "exclusiveMaximum" if node.exclusive_maximum else "maximum"
    kind = "integer" if node.integer else "number"
    return {"type": kind, **_present(**{low: node.minimum, high: node.maximum, "multipleOf": node.multiple_of})}


def _present(**keywords: Json) -> Object:
    return {keyword: value for keyword, value in keywords.items() if value is not None}


def _or_null(schema: Object) -> Object:
    """Allow null; the description moves to the union."""
    about: Object = {"description": schema.pop("description")} if "description" in schema else {}
    options = schema.get("anyOf")
    inside: list[Json] = list(options) if isinstance(options, list) and len(schema) == 1 else [schema]
    return {"anyOf": [*inside, {"type": "null"}], **about}


INDENT = "  "
MAX_DEFAULT_CHARS = 80
ANONYMOUS = re.compile(rf"{ir.ANONYMOUS}\d*")
PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
WORDS: dict[type, str] = {
    ir.AnyNode: "any",
    ir.NeverNode: "never",
    ir.NullNode: "null",
    ir.BoolNode: "boolean",
    ir.StringNode: "string",
}


def to_typescript(type_ir: ir.TypeIR) -> str:
    """Render an IR as TypeScript `type` blocks, the root first."""
    return _TypescriptWriter(type_ir).write()


class _TypescriptWriter:
    def __init__(self, type_ir: ir.TypeIR) -> None:
        self.type_ir = type_ir
        self.block_names = _block_names(type_ir)
        self.root = identifier(type_ir.name)
        while self.root in self.block_names:
            self.root += "_"

    def write(self) -> str:
        root = self.type_ir.root
        if isinstance(root, ir.RefNode) and root.name in self.block_names:
            blocks = [self.block(root.name, self.type_ir.named[root.name], root.about)]
            rest = [name for name in self.block_names if name != root.name]
        else:
            blocks, rest = [self.block(self.root, self.opened(root), root.about)], self.block_names
        blocks += [self.block(name, self.type_ir.named[name], ir.About()) for name in rest]
        return "\n\n".join(blocks)

    def opened(self, node: ir.Node) -> ir.Node:
        """Replace references to inlined names by their nodes."""
        while isinstance(node, ir.RefNode) and node.name not in self.block_names:
            node = self.type_ir.named[node.name]
        return node

    def block(self, name: str, node: ir.Node, about: ir.About) -> str:
        phrases = _phrases(self.type_ir, node, about, self.block_names)
        if isinstance(node, ir.ObjectNode):
            return f"type {name} = {self.object(node, 0, phrases)};"
        text = f"type {name} = {self.type(node, 0)};"
        return _with_comment(text, phrases)

    def type(self, node: ir.Node, depth: int) -> str:
        node = self.opened(node)
        if isinstance(node, ir.RefNode):
            return node.name
        if isinstance(node, ir.NumberNode):
            return "number"
        if isinstance(node, ir.LiteralNode):
            return " | ".join(literal(value) for value in node.values) or "never"
        if isinstance(node, ir.UnionNode):
            return " | ".join(self.option(part, depth) for part in node.options)
        if isinstance(node, ir.ArrayNode):
            return self.array(node, depth)
        if isinstance(node, ir.ObjectNode):
            return self.object(node, depth, [])
        return WORDS[type(node)]

    def option(self, node: ir.Node, depth: int) -> str:
        opened = self.opened(node)
        if not isinstance(opened, ir.ObjectNode):
            return self.type(node, depth)
        own = [] if isinstance(node, ir.RefNode) else [*constraints(node), *node.about.notes, node.about.description]
        return self.object(opened, depth, own)

    def array(self, node: ir.ArrayNode, depth: int) -> str:
        inner = self.type(node.items, depth)
        inner = f"({inner})[]" if isinstance(self.opened(node.items), (ir.UnionNode, ir.LiteralNode)) else f"{inner}[]"
        if not node.prefix:
            return inner
        first = ", ".join(self.type(part, depth) for part in node.prefix)
        return f"[{first}]" if isinstance(node.items, ir.NeverNode) else f"[{first}, ...{inner}]"

    def object(self, node: ir.ObjectNode, depth: int, phrases: list[str]) -> str:
        extra = node.extra if node.extra is not None and not isinstance(node.extra, ir.NeverNode) else None
        if not node.properties and not phrases:
            return f"Record<string, {self.type(extra, depth)}>" if extra is not None else "{}"
        pad = INDENT * (depth + 1)
        lines = [_with_comment("{", phrases)]
        lines += [pad + self.property(each, depth + 1) for each in node.properties]
        if extra is not None:
            phrases = _phrases(self.type_ir, extra, ir.About(), self.block_names)
            lines.append(pad + _with_comment(f"[key: string]: {self.type(extra, depth + 1)};", phrases))
        return "\n".join([*lines, INDENT * depth + "}"])

    def property(self, each: ir.Property, depth: int) -> str:
        node = each.node
        phrases = _phrases(self.type_ir, self.opened(node), node.about, self.block_names)
        name = each.name if PLAIN_KEY.match(each.name) else literal(each.name)
        # Models write null, which grammars demand, only if they read it.
        mark = "" if each.required or _is_nullable(node) else "?"
        opened = self.opened(node)
        if isinstance(opened, ir.ObjectNode) and opened.properties:
            return f"{name}{mark}: {self.object(opened, depth, phrases)};"
        return _with_comment(f"{name}{mark}: {self.type(node, depth)};", phrases)


def _block_names(type_ir: ir.TypeIR) -> list[str]:
    """Return the names that get a separate block: named objects, and types used twice or recursively."""
    uses = Counter(node.name for node in ir.nodes(type_ir) if isinstance(node, ir.RefNode))
    return [
        name
        for name, node in type_ir.named.items()
        if uses[name] > 1
        or (isinstance(node, ir.ObjectNode) and not ANONYMOUS.fullmatch(name))
        or name in ir.reachable(node, type_ir.named)
    ]


def _is_nullable(node: ir.Node) -> bool:
    """Whether null, as the default, stands for a key that is left out."""
    is_union = isinstance(node, ir.UnionNode) and any(isinstance(part, ir.NullNode) for part in node.options)
    return is_union and node.about.default is None


def _with_comment(text: str, phrases: list[str]) -> str:
    comment = ir.CONTROL.sub(" ", "; ".join(each for each in phrases if each)).strip()
    if not comment:
        return text
    if "\n" in text:  # the comment belongs to the first line
        head, rest = text.split("\n", 1)
        return f"{head} // {comment}\n{rest}" if "//" not in head else f"{head}; {comment}\n{rest}"
    return f"{text} // {comment}"


def _phrases(type_ir: ir.TypeIR, node: ir.Node, about: ir.About, block_names: list[str]) -> list[str]:
    """Return constraints, notes, description and default of a member."""
    whole = about if about == node.about else merge_about(about, node.about)
    phrases = [", ".join(_constraints(type_ir, node, block_names, 0)), *whole.notes, whole.description]
    if whole.default is not ir.ABSENT and whole.default is not None:
        phrases.append(f"default {truncate(literal(whole.default), MAX_DEFAULT_CHARS)}")
    return phrases


def _constraints(type_ir: ir.TypeIR, node: ir.Node, block_names: list[str], depth: int) -> list[str]:
    if depth > len(type_ir.named) + 16:
        return []
    phrases = constraints(node)
    if isinstance(node, ir.ArrayNode):
        phrases += _inner(type_ir, node.items, "each", block_names, depth)
        for at, part in enumerate(node.prefix):
            phrases += _inner(type_ir, part, f"item {at + 1}", block_names, depth)
    elif isinstance(node, ir.ObjectNode) and node.extra is not None and not node.properties:
        phrases += _inner(type_ir, node.extra, "values", block_names, depth)
    elif isinstance(node, ir.UnionNode):
        options = [part for part in node.options if not isinstance(part, ir.NullNode)]
        for part in options:
            alone = len(options) == 1
            phrases += _inner(type_ir, part, "" if alone else _kind_label(part), block_names, depth)
    return phrases


def _inner(type_ir: ir.TypeIR, node: ir.Node, label: str, block_names: list[str], depth: int) -> list[str]:
    if isinstance(node, ir.RefNode) and node.name in block_names:
        return [f"{label}: {node.about.description}"] if label and node.about.description else []
    while isinstance(node, ir.RefNode):
        node = type_ir.named[node.name]
    if isinstance(node, ir.ObjectNode) and node.properties:
        return []  # rendered on separate lines
    phrases = [*_constraints(type_ir, node, block_names, depth + 1), *node.about.notes, node.about.description]
    text = ", ".join(each for each in phrases if each)
    return [f"{label}: {text}" if label else text] if text else []


def _kind_label(node: ir.Node) -> str:
    if isinstance(node, ir.NumberNode):
        return "number"
    if isinstance(node, (ir.ArrayNode, ir.ObjectNode)):
        return "list" if isinstance(node, ir.ArrayNode) else "object"
    return WORDS.get(type(node), "this")


NOT_STRICT = """allOf oneOf not if then else dependentRequired dependentSchemas patternProperties prefixItems uniqueItems contains
    propertyNames unevaluatedProperties minLength maxLength minProperties maxProperties default""".split()

KINDS = frozenset(("type", "anyOf", "enum", "const", "$ref"))
"""A schema without any of these keywords accepts every value."""


def _is_wider(node: ir.Node, type_ir: ir.TypeIR) -> bool:
    """Return whether strict mode narrows an object: any key is allowed, or a key whose null differs from leaving it out."""
    if not isinstance(node, ir.ObjectNode):
        return False
    if not node.properties and node.extra is None:
        return True
    optional = (each.node for each in node.properties if not each.required)
    return any(each.about.default is not None and ir.takes_null(each, type_ir) for each in optional)


def strict_form(schema: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """Return an equivalent schema for strict mode, and True; or the schema itself, and False.

    >>> strict_form({"type": "object", "properties": {"n": {"type": "integer"}}})[0]["required"]
    ['n']
    """
    original = dict(schema)
    if is_strict(original) and original.get("type") == "object":
        return original, True
    try:
        type_ir = type_ir_from_schema(original)
    except InputError:
        return original, False
    strict = to_json_schema(type_ir, strict=True)
    if strict.unsupported or any(_is_wider(node, type_ir) for node in ir.nodes(type_ir)):
        return original, False
    return strict.schema, True


def is_strict(schema: Json) -> bool:
    """Return whether a schema is in the strict subset."""
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, dict):
        names = list(properties) if isinstance(properties, dict) else []
        required = [name for name in items_at(schema, "required") if isinstance(name, str)]
        if schema.get("additionalProperties") is not False or sorted(names) != sorted(required):
            return False
    if any(key in NOT_STRICT for key in schema) or not KINDS & schema.keys():
        return False
    parts = [schema.get("items"), *items_at(schema, "anyOf")]
    for key in ("properties", "$defs", "definitions"):
        named = schema.get(key)
        parts += named.values() if isinstance(named, dict) else ()
    return all(is_strict(part) for part in parts)
