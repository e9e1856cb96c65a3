"""A schema in the form in which OpenAI holds a model to it: every object closed, every key required, few keywords.

What the form cannot say goes into descriptions, and the answer is checked against the whole type anyway. Where it would
mean something else, for instance forbid a valid answer, the schema stays as it is and is only asked for loosely.
"""

from collections.abc import Iterator, Mapping

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json
from taiwa.models.loose import items_at
from taiwa.shape.form import Form, LiteralNode, Node, NullNode, ObjectNode, children, members
from taiwa.shape.fromschema import form_of
from taiwa.shape.native import DIALECTS, native

__all__ = ["is_strict", "strict_form"]

NOT_STRICT = frozenset(
    ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "prefixItems",
     "uniqueItems", "contains", "propertyNames", "unevaluatedProperties", "minLength", "maxLength", "minProperties",
     "maxProperties", "default")
)  # fmt: skip
KINDS = frozenset(("type", "anyOf", "enum", "const", "$ref"))
"""One of these says what a value is; a schema without any takes every value."""


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
    made = native(form, DIALECTS["openai"])
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


def _nodes(form: Form) -> Iterator[Node]:
    todo = [form.root, *form.named.values()]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(children(node))


def _says_more(node: Node, form: Form) -> bool:
    """Whether an object may have any keys, or a key that may be left out, or null, where these differ."""
    if not isinstance(node, ObjectNode):
        return False
    if not node.properties and node.extra is None:
        return True
    optional = (each.node for each in node.properties if not each.required)
    return any(each.about.default is not None and _takes_null(each, form) for each in optional)


def _takes_null(node: Node, form: Form) -> bool:
    return any(
        isinstance(each, NullNode) or (isinstance(each, LiteralNode) and None in each.values)
        for each in members(node, form)
    )
