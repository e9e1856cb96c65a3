"""The intermediate form as JSON Schema in the dialect that a server's native mode takes, with a report of what it cannot say.

What a dialect has no keyword for moves into the description, where the model still reads it; the answer is validated anyway.
"""

from dataclasses import dataclass, field

from taiwa.kernel import Json
from taiwa.shape.form import (
    ABSENT,
    AnyNode,
    ArrayNode,
    BoolNode,
    Form,
    LiteralNode,
    NeverNode,
    Node,
    NullNode,
    NumberNode,
    ObjectNode,
    RefNode,
    StringNode,
    UnionNode,
    members,
)
from taiwa.shape.wording import BREAKS, constraints, literal

__all__ = ["DIALECTS", "Dialect", "Native", "native"]

Object = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a native mode takes: its keywords, and the form that it wants objects to have.

    `whole` objects have every key required and no other key; an optional key may be null there, which reading takes for left
    out. `rooted` schemas are an object at the top.
    """

    keywords: frozenset[str]
    whole: bool = False
    rooted: bool = False


@dataclass(frozen=True, slots=True)
class Native:
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
DIALECTS: dict[str, Dialect] = {
    "plain": Dialect(NUMBERS | STRINGS | LISTS | SHAPES),
    "openai": Dialect(NUMBERS | {"pattern", "format", "minItems", "maxItems"}, whole=True, rooted=True),
}
"""`plain` is JSON Schema 2020-12; `openai` what its strict mode documents."""


def native(form: Form, dialect: Dialect) -> Native:
    """Write a form in a dialect.

    >>> from taiwa.shape.form import NumberNode, Property
    >>> form = Form(ObjectNode((Property("n", NumberNode(integer=True), required=False),)))
    >>> native(form, DIALECTS["openai"]).schema["required"]
    ['n']
    """
    return _Writer(form, dialect).write()


@dataclass(slots=True)
class _Writer:
    form: Form
    dialect: Dialect
    moved: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])

    def write(self) -> Native:
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
        return Native(schema, tuple(self.moved), tuple(self.lost), wrapped)

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
