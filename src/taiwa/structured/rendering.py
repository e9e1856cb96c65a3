"""IR → JSON Schema of a server dialect (OpenAI strict included), IR → TypeScript."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, items_at
from taiwa.kernel.text import truncate
from taiwa.structured.from_json_schema import form_of, identifier
from taiwa.structured.ir import (
    ABSENT,
    ANONYMOUS,
    BREAKS,
    About,
    AnyNode,
    ArrayNode,
    BoolNode,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    Property,
    RefNode,
    StringNode,
    TypeIR,
    UnionNode,
    children,
    constraints,
    literal,
    members,
)

__all__ = ["DIALECTS", "ServerSchema", "is_strict", "strict_form", "to_json_schema", "to_typescript"]


Object = dict[str, Json]


@dataclass(frozen=True, slots=True)
class SchemaDialect:
    """What a native mode takes: its keywords, and the form that it wants objects to have.

    `whole` objects have every key required and no other key; an optional key may be null there, which reading takes for left
    out. `rooted` schemas are an object at the top.
    """

    keywords: frozenset[str]
    whole: bool = False
    rooted: bool = False


@dataclass(frozen=True, slots=True)
class ServerSchema:
    """A schema for a native mode. `moved` lists keywords that went into a description, `lost` what no description mends.

    With something lost the mode would forbid valid answers: use another one. `wrapped` tells that the answer comes as
    `{"value": …}`, which reading takes off.
    """

    schema: Object
    moved: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    wrapped: bool = False


NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

STRINGS = frozenset({"minLength", "maxLength", "pattern", "format"})

LISTS = frozenset({"minItems", "maxItems", "uniqueItems", "prefixItems"})

SHAPES = frozenset({"minProperties", "maxProperties", "additionalProperties", "default", "const", "$ref+"})

DIALECTS: dict[str, SchemaDialect] = {
    "plain": SchemaDialect(NUMBERS | STRINGS | LISTS | SHAPES),
    "openai": SchemaDialect(NUMBERS | {"pattern", "format", "minItems", "maxItems"}, whole=True, rooted=True),
}
"""`plain` is JSON Schema 2020-12; `openai` what its strict mode documents."""


def to_json_schema(form: TypeIR, dialect: SchemaDialect) -> ServerSchema:
    """Write a form in a dialect.

    >>> from taiwa.structured.ir import NumberNode, Property
    >>> form = TypeIR(ObjectNode((Property("n", NumberNode(integer=True), required=False),)))
    >>> to_json_schema(form, DIALECTS["openai"]).schema["required"]
    ['n']
    """
    return _JsonSchemaWriter(form, dialect).write()


@dataclass(slots=True)
class _JsonSchemaWriter:
    form: TypeIR
    dialect: SchemaDialect
    moved: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])

    def write(self) -> ServerSchema:
        root = self.form.root
        wrapped = self.dialect.rooted and not isinstance(root, ObjectNode)
        if isinstance(root, RefNode) and isinstance(self.form.named.get(root.name), ObjectNode) and wrapped:
            root, wrapped = self.form.named[root.name], False
        if wrapped:
            schema: Object = {
                "type": "object",
                "properties": {"value": self.node(root, "$.value")},
                "required": ["value"],
                "additionalProperties": False,
            }
        else:
            schema = self.node(root, "$")
        named: Object = {name: self.node(node, f"#{name}") for name, node in self.form.named.items()}
        if named:
            schema["$defs"] = named
        return ServerSchema(schema, tuple(self.moved), tuple(self.lost), wrapped)

    def node(self, node: Node, path: str) -> Object:
        schema = self.plain(node, path)
        about = node.about
        said = [about.description, *(BREAKS.sub(" ", note) for note in about.notes), self.unsaid(node, schema, path)]
        self.moved += [f"{path}: {note.split(' ', 1)[0]}" for note in about.notes]
        if about.default is not ABSENT:
            if "default" in self.dialect.keywords:
                schema["default"] = about.default
            elif about.default is not None:
                self.moved.append(f"{path}: default")
                said.append(f"default {literal(about.default)}")
        if description := "; ".join(each for each in said if each):
            if "$ref" in schema and "$ref+" not in self.dialect.keywords:
                alone: Object = {"anyOf": [schema]}
                schema = alone
            schema["description"] = description
        return schema

    def unsaid(self, node: Node, schema: Object, path: str) -> str:
        """Take out the keywords that the dialect lacks; give the words for them."""
        known = self.dialect.keywords | {"additionalProperties"}
        gone = [word for word in schema if word in NUMBERS | STRINGS | LISTS | SHAPES and word not in known]
        for word in gone:
            del schema[word]
        self.moved += [f"{path}: {word}" for word in gone]
        return ", ".join(phrase for phrase in constraints(node) if phrase != "integer") if gone else ""

    def plain(self, node: Node, path: str) -> Object:
        if isinstance(node, RefNode):
            return {"$ref": f"#/$defs/{node.name}"}
        if isinstance(node, ObjectNode):
            return self.object(node, path)
        if isinstance(node, ArrayNode):
            return self.array(node, path)
        if isinstance(node, UnionNode):
            return {"anyOf": [self.node(each, path) for each in node.options]}
        if isinstance(node, LiteralNode):
            return _literal(node)
        if isinstance(node, StringNode):
            return {"type": "string", **_said(minLength=node.shortest or None, maxLength=node.longest), **_texts(node)}
        if isinstance(node, NumberNode):
            return _number(node)
        if isinstance(node, (BoolNode, NullNode)):
            return {"type": "boolean" if isinstance(node, BoolNode) else "null"}
        if self.dialect.whole:
            self.lost.append(f"{path}: {'any value' if isinstance(node, AnyNode) else 'no value'}")
        return {} if isinstance(node, AnyNode) else {"not": {}}

    def object(self, node: ObjectNode, path: str) -> Object:
        properties: Object = {}
        for each in node.properties:
            inner = self.node(each.node, f"{path}.{each.name}")
            nullable = self.dialect.whole and not each.required and not self.takes_null(each.node)
            properties[each.name] = _or_null(inner) if nullable else inner
        required: list[Json] = [each.name for each in node.properties if each.required or self.dialect.whole]
        schema: Object = {"type": "object", "properties": properties, "required": required}
        schema |= _said(minProperties=node.fewest or None, maxProperties=node.most)
        if isinstance(node.extra, NeverNode) or self.dialect.whole:
            schema["additionalProperties"] = False
        if node.extra is not None and not isinstance(node.extra, NeverNode):
            if self.dialect.whole:
                self.lost.append(f"{path}: keys that the type does not name")
            else:
                schema["additionalProperties"] = self.node(node.extra, f"{path}.*")
        return schema

    def takes_null(self, node: Node) -> bool:
        return any(isinstance(each, NullNode) for each in members(node, self.form))

    def array(self, node: ArrayNode, path: str) -> Object:
        schema: Object = {"type": "array"}
        positions = "prefixItems" in self.dialect.keywords
        if node.prefix and positions:
            schema["prefixItems"] = [self.node(each, f"{path}[{at}]") for at, each in enumerate(node.prefix)]
        if node.prefix and not positions:
            self.moved.append(f"{path}: prefixItems")
            every: list[Node] = []
            for each in (*node.prefix, node.items):
                if each not in every and not isinstance(each, NeverNode):
                    every.append(each)
            schema["items"] = self.node(every[0] if len(every) == 1 else UnionNode(tuple(every)), f"{path}[]")
        elif isinstance(node.items, NeverNode):
            schema["items"] = False
        else:
            schema["items"] = self.node(node.items, f"{path}[]")
        most = len(node.prefix) if isinstance(node.items, NeverNode) else node.most
        return schema | _said(minItems=node.fewest or None, maxItems=most, uniqueItems=node.unique or None)


def _literal(node: LiteralNode) -> Object:
    kinds = {_kind(value) for value in node.values}
    schema: Object = {"enum": list(node.values)}
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) else "number"
    names = {str: "string", list: "array", dict: "object"}
    return "null" if value is None else names[type(value)]


def _number(node: NumberNode) -> Object:
    low = "exclusiveMinimum" if node.low_open else "minimum"
    high = "exclusiveMaximum" if node.high_open else "maximum"
    kind = "integer" if node.integer else "number"
    return {"type": kind, **_said(**{low: node.low, high: node.high, "multipleOf": node.step})}


def _texts(node: StringNode) -> Object:
    return _said(pattern=node.pattern or None, format=node.format or None)


def _said(**words: Json) -> Object:
    return {word: value for word, value in words.items() if value is not None}


def _or_null(schema: Object) -> Object:
    """Let null in; what describes the value describes the whole."""
    about: Object = {"description": schema.pop("description")} if "description" in schema else {}
    options = schema.get("anyOf")
    inside: list[Json] = list(options) if isinstance(options, list) and len(schema) == 1 else [schema]
    return {"anyOf": [*inside, {"type": "null"}], **about}


INDENT = "  "

DEFAULT_CHARS = 80

PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")

WORDS: dict[type, str] = {
    AnyNode: "any",
    NeverNode: "never",
    NullNode: "null",
    BoolNode: "boolean",
    StringNode: "string",
}


def to_typescript(form: TypeIR) -> str:
    """Write `type` blocks, the root first."""
    return _TypescriptWriter(form).write()


class _TypescriptWriter:
    def __init__(self, form: TypeIR) -> None:
        self.form = form
        self.kept = _kept(form)
        self.root = identifier(form.name)
        while self.root in self.kept:
            self.root += "_"

    def write(self) -> str:
        root = self.form.root
        if isinstance(root, RefNode) and root.name in self.kept:
            blocks = [self.block(root.name, self.form.named[root.name], root.about)]
            rest = [name for name in self.kept if name != root.name]
        else:
            blocks, rest = [self.block(self.root, self.opened(root), root.about)], self.kept
        blocks += [self.block(name, self.form.named[name], About()) for name in rest]
        return "\n\n".join(blocks)

    def opened(self, node: Node) -> Node:
        """Put the node of an inlined name in the place of its reference."""
        while isinstance(node, RefNode) and node.name not in self.kept:
            node = self.form.named[node.name]
        return node

    def block(self, name: str, node: Node, about: About) -> str:
        said = _phrases(self.form, node, about, self.kept)
        if isinstance(node, ObjectNode):
            return f"type {name} = {self.object(node, 0, said)};"
        text = f"type {name} = {self.type(node, 0)};"
        return _with_comment(text, said)

    def type(self, node: Node, depth: int) -> str:
        node = self.opened(node)
        if isinstance(node, RefNode):
            return node.name
        if isinstance(node, NumberNode):
            return "number"
        if isinstance(node, LiteralNode):
            return " | ".join(literal(value) for value in node.values) or "never"
        if isinstance(node, UnionNode):
            return " | ".join(self.option(part, depth) for part in node.options)
        if isinstance(node, ArrayNode):
            return self.array(node, depth)
        if isinstance(node, ObjectNode):
            return self.object(node, depth, [])
        return WORDS[type(node)]

    def option(self, node: Node, depth: int) -> str:
        said = _own(node) if isinstance(self.opened(node), ObjectNode) and not isinstance(node, RefNode) else []
        opened = self.opened(node)
        return self.object(opened, depth, said) if isinstance(opened, ObjectNode) else self.type(node, depth)

    def array(self, node: ArrayNode, depth: int) -> str:
        inner = self.type(node.items, depth)
        inner = f"({inner})[]" if isinstance(self.opened(node.items), (UnionNode, LiteralNode)) else f"{inner}[]"
        if not node.prefix:
            return inner
        first = ", ".join(self.type(part, depth) for part in node.prefix)
        return f"[{first}]" if isinstance(node.items, NeverNode) else f"[{first}, ...{inner}]"

    def object(self, node: ObjectNode, depth: int, said: list[str]) -> str:
        extra = node.extra if node.extra is not None and not isinstance(node.extra, NeverNode) else None
        if not node.properties and not said:
            return f"Record<string, {self.type(extra, depth)}>" if extra is not None else "{}"
        pad = INDENT * (depth + 1)
        lines = [_with_comment("{", said)]
        lines += [pad + self.property(each, depth + 1) for each in node.properties]
        if extra is not None:
            said = _phrases(self.form, extra, About(), self.kept)
            lines.append(pad + _with_comment(f"[key: string]: {self.type(extra, depth + 1)};", said))
        return "\n".join([*lines, INDENT * depth + "}"])

    def property(self, each: Property, depth: int) -> str:
        node, default = each.node, each.node.about.default
        if not each.required and default is None:
            node = _without_null(node)
        said = _phrases(self.form, self.opened(node), node.about, self.kept)
        name = each.name if PLAIN_KEY.match(each.name) else literal(each.name)
        mark = "" if each.required else "?"
        opened = self.opened(node)
        if isinstance(opened, ObjectNode) and opened.properties:
            return f"{name}{mark}: {self.object(opened, depth, said)};"
        return _with_comment(f"{name}{mark}: {self.type(node, depth)};", said)


def _kept(form: TypeIR) -> list[str]:
    """Choose the names that get a block: objects and unions of them, whatever is used twice, whatever is recursive."""
    uses: Counter[str] = Counter()
    todo: list[Node] = [form.root, *form.named.values()]
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode):
            uses[node.name] += 1
        todo.extend(children(node))
    return [
        name
        for name, node in form.named.items()
        if uses[name] > 1 or (isinstance(node, ObjectNode) and not _anonymous(name)) or _reaches(form, node, name)
    ]


def _anonymous(name: str) -> bool:
    return name.removeprefix(ANONYMOUS).isdecimal() or name == ANONYMOUS


def _reaches(form: TypeIR, start: Node, name: str) -> bool:
    todo, seen = [start], set[str]()
    while todo:
        node = todo.pop()
        if isinstance(node, RefNode):
            if node.name == name:
                return True
            if node.name not in seen:
                seen.add(node.name)
                todo.append(form.named[node.name])
        todo.extend(children(node))
    return False


def _without_null(node: Node) -> Node:
    """Leave out a null that says the same as leaving the key out."""
    if not isinstance(node, UnionNode):
        return node
    rest = tuple(part for part in node.options if not isinstance(part, NullNode))
    about = About(node.about.description, ABSENT, node.about.notes)
    if len(rest) != 1:
        return UnionNode(rest, node.tag, about=about)
    only = rest[0]
    return UnionNode((only,), about=about)


def _with_comment(text: str, said: list[str]) -> str:
    comment = BREAKS.sub(" ", "; ".join(each for each in said if each)).strip()
    if not comment:
        return text
    if "\n" in text:  # the comment belongs to the head of what it is about
        head, rest = text.split("\n", 1)
        return f"{head} // {comment}\n{rest}" if "//" not in head else f"{head}; {comment}\n{rest}"
    return f"{text} // {comment}"


def _phrases(form: TypeIR, node: Node, about: About, kept: list[str]) -> list[str]:
    """Say constraints, description and default of a member, in this order."""
    whole = about if about == node.about else _laid(about, node.about)
    said = [", ".join(_constraints(form, node, kept, 0)), *whole.notes, whole.description]
    if whole.default is not ABSENT and whole.default is not None:
        said.append(f"default {truncate(literal(whole.default), DEFAULT_CHARS)}")
    return said


def _laid(over: About, own: About) -> About:
    default = own.default if over.default is ABSENT else over.default
    notes = (*own.notes, *(note for note in over.notes if note not in own.notes))
    return About(over.description or own.description, default, notes)


def _own(node: Node) -> list[str]:
    return [*constraints(node), *node.about.notes, node.about.description]


def _constraints(form: TypeIR, node: Node, kept: list[str], depth: int) -> list[str]:
    if depth > len(form.named) + 16:
        return []
    said = constraints(node)
    if isinstance(node, ArrayNode):
        said += _inner(form, node.items, "each", kept, depth)
        for at, part in enumerate(node.prefix):
            said += _inner(form, part, f"item {at + 1}", kept, depth)
    elif isinstance(node, ObjectNode) and node.extra is not None and not node.properties:
        said += _inner(form, node.extra, "values", kept, depth)
    elif isinstance(node, UnionNode):
        options = [part for part in node.options if not isinstance(part, NullNode)]
        for part in options:
            alone = len(options) == 1
            said += _inner(form, part, "" if alone else _word(part), kept, depth)
    return said


def _inner(form: TypeIR, node: Node, label: str, kept: list[str], depth: int) -> list[str]:
    if isinstance(node, RefNode) and node.name in kept:
        return [f"{label}: {node.about.description}"] if label and node.about.description else []
    while isinstance(node, RefNode):
        node = form.named[node.name]
    if isinstance(node, ObjectNode) and node.properties:
        return []  # its own lines say it
    said = [*_constraints(form, node, kept, depth + 1), *node.about.notes, node.about.description]
    text = ", ".join(each for each in said if each)
    return [f"{label}: {text}" if label else text] if text else []


def _word(node: Node) -> str:
    if isinstance(node, NumberNode):
        return "number"
    if isinstance(node, (ArrayNode, ObjectNode)):
        return "list" if isinstance(node, ArrayNode) else "object"
    return WORDS.get(type(node), "this")


NOT_STRICT = frozenset(
    ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "prefixItems",
     "uniqueItems", "contains", "propertyNames", "unevaluatedProperties", "minLength", "maxLength", "minProperties",
     "maxProperties", "default")
)  # fmt: skip

KINDS = frozenset(("type", "anyOf", "enum", "const", "$ref"))
"""One of these says what a value is; a schema without any takes every value."""


def _nodes(form: TypeIR) -> Iterator[Node]:
    todo = [form.root, *form.named.values()]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(children(node))


def _says_more(node: Node, form: TypeIR) -> bool:
    """Whether an object may have any keys, or a key that may be left out, or null, where these differ."""
    if not isinstance(node, ObjectNode):
        return False
    if not node.properties and node.extra is None:
        return True
    optional = (each.node for each in node.properties if not each.required)
    return any(each.about.default is not None and _takes_null(each, form) for each in optional)


def _takes_null(node: Node, form: TypeIR) -> bool:
    return any(
        isinstance(each, NullNode) or (isinstance(each, LiteralNode) and None in each.values)
        for each in members(node, form)
    )


def strict_form(schema: Mapping[str, Json]) -> tuple[dict[str, Json], bool]:
    """Give a schema that can be asked for strictly, and True; or the schema itself, and False.

    >>> strict_form({"type": "object", "properties": {"n": {"type": "integer"}}})[0]["required"]
    ['n']
    """
    given = dict(schema)
    if is_strict(given) and given.get("type") == "object":
        return given, True
    try:
        form = form_of(given)
    except InputError:
        return given, False
    made = to_json_schema(form, DIALECTS["openai"])
    if made.lost or any(_says_more(node, form) for node in _nodes(form)):
        return given, False
    return made.schema, True


def is_strict(schema: Json) -> bool:
    """Tell whether a schema is in the strict subset as it stands."""
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
