"""Declared shapes of JSON: the same declaration writes the JSON of a value, and the JSON Schema of the OpenAPI document.

A shape is a `TypedDict`, or a dataclass whose fields are its members. A member is read from the attribute of its name;
`Annotated[T, "path.to.attribute"]` names another one, or a path, which ends at None. A function in `Annotated` converts it, and a
dict there holds more keywords of its schema. A member that is `NotRequired` is left out if it is None.

>>> from typing import Annotated, TypedDict
>>> class Length(TypedDict):
...     digits: Annotated[int, "numerator", lambda number: len(str(number))]
>>> as_json(256, Length)
{'digits': 3}
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from taiwa.kernel.serialization import Json

PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
REFERENCE = "#/components/schemas/"


class Member:
    """A member of a shape: how it is read from a value, and written."""

    def __init__(self, name: str, hint: Any) -> None:  # noqa: ANN401  (a type, or a form of one)
        kind = _stripped(hint)
        notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
        self.name = name
        self.optional = get_origin(hint) is NotRequired
        self.path = next((each for each in notes if isinstance(each, str)), name).split(".")
        self._convert = [each for each in notes if callable(each)]
        self._write = _writer(get_args(kind)[0] if notes else kind)

    def of(self, value: object) -> Any:  # noqa: ANN401  (JSON)
        """Return the member of a value as JSON."""
        item: Any = value
        for step in self.path:
            item = None if item is None else getattr(item, step)
        for convert in self._convert:
            item = convert(item)
        return None if item is None else self._write(item)


def as_json(value: object, kind: Any) -> Any:  # noqa: ANN401  (a type, and JSON of it)
    """Return a value as JSON of a type: a shape, a list of a type, or a type of JSON itself."""
    return _writer(kind)(value)


@cache
def members_of(shape: Any) -> tuple[Member, ...]:  # noqa: ANN401
    """Return the members of a shape."""
    return tuple(Member(name, hint) for name, hint in get_type_hints(shape, include_extras=True).items())


def _writer(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    if is_typeddict(kind) or is_dataclass(kind):
        return lambda value: _object_of(value, kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple):
        write = _writer(arguments[0])
        return lambda values: [write(each) for each in values]
    if origin in (Union, UnionType) and NoneType in arguments and len(arguments) == 2:
        return _writer(next(each for each in arguments if each is not NoneType))
    return lambda value: value


def _object_of(value: object, shape: Any) -> dict[str, Any]:  # noqa: ANN401
    found = ((member, member.of(value)) for member in members_of(shape))
    return {member.name: item for member, item in found if not (item is None and member.optional)}


def schema_of(kind: Any, schemas: dict[str, Any], *, given: bool = False) -> dict[str, Any]:  # noqa: ANN401
    """Return the JSON Schema of a type; those of shapes go to `schemas` and are referred to. In what is `given` in a request, null
    counts as missing.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        found = schema_of(arguments[0], schemas, given=given)
        for keywords in arguments[1:]:
            found |= keywords if isinstance(keywords, dict) else {}
        return found
    if isinstance(kind, type) and kind in PLAIN:
        return {"type": PLAIN[kind]}
    if is_typeddict(kind) or is_dataclass(kind):
        name = cast("type[Any]", kind).__name__
        if name not in schemas:
            schemas[name] = {}  # it may be recursive
            schemas[name] = _object_schema(kind, schemas, given=given)
        return {"$ref": f"{REFERENCE}{name}"}
    if _is_json(kind):
        return {}
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(arguments[0], schemas, given=given)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], schemas, given=given)}
    if origin is Literal:
        return {"enum": list(arguments)}
    assert origin in (Union, UnionType), f"{kind} has no schema"
    parts = [schema_of(each, schemas, given=given) for each in arguments]
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


def _is_json(kind: Any) -> bool:  # noqa: ANN401
    """Report whether a type is `Json`, by name or by definition."""
    if getattr(kind, "__forward_arg__", kind) in (Json, "Json"):
        return True
    return {list, dict} <= {get_origin(each) for each in get_args(kind)}


def _object_schema(kind: Any, schemas: dict[str, Any], *, given: bool) -> dict[str, Any]:  # noqa: ANN401
    hints = get_type_hints(kind, include_extras=True)
    members = {name: schema_of(_stripped(hint), schemas, given=given) for name, hint in hints.items()}
    required = getattr(kind, "__required_keys__", frozenset(members))
    if given:
        optional = {name for name in members if name not in required and members[name]}
        members |= {name: _or_null(members[name]) for name in optional}
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": members,
        "required": sorted(required),
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind := schema.get("type"), str):
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _stripped(hint: Any) -> Any:  # noqa: ANN401
    """Return the type of a member without the mark of whether it is required."""
    return get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint
