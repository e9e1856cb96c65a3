"""Lists that a model repeats without end: find the repetition, and bound the list in its schema."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any, TypeAlias

from taiwa.json_schema import resolve_pointer
from taiwa.kernel.serialization import Json

Path: TypeAlias = tuple[str | int, ...]

TIMES = 3
"""How often the last complete items of a truncated list must be equal."""


def repeated_items(data: Json) -> tuple[Path, int] | None:
    """Find the outermost list that repeats an object at the end of truncated data; return its path, and its length without the
    repetitions.

    Numbers and words may well repeat themselves, as in a matrix; objects and lists do not.

    >>> repeated_items({"items": [{"tea": 1}, {"milk": 1}, {"milk": 1}, {"milk": 1}, {"mi": 0}]})
    (('items',), 2)
    """
    path: list[str | int] = []
    while isinstance(data, dict | list) and data:
        if isinstance(data, list):
            complete = data[:-1]
            run = next((at for at, item in enumerate(reversed(complete)) if item != complete[-1]), len(complete))
            if run >= TIMES and isinstance(complete[-1], dict | list):
                return tuple(path), len(complete) - run + 1
            path.append(len(data) - 1)
            data = data[-1]
        else:
            key = next(reversed(data))
            path.append(key)
            data = data[key]
    return None


def bound_items(schema: Mapping[str, Json], path: Path, most: int) -> dict[str, Json]:
    """Return a JSON Schema whose lists at a path have `most` items at most; other uses of their definitions are bounded too.

    >>> bound_items({"properties": {"items": {"type": "array"}}}, ("items",), 2)
    {'properties': {'items': {'type': 'array', 'maxItems': 2}}}
    """
    whole: dict[str, Any] = deepcopy(dict(schema))
    nodes = list(_alternatives(whole, whole, set()))
    for step in path:
        nodes = [
            found for node in nodes for child in _children(node, step) for found in _alternatives(child, whole, set())
        ]
    for node in nodes:
        if "array" in (node.get("type"), *_listed(node.get("type"))) or "items" in node:
            node["maxItems"] = max(min(most, node.get("maxItems", most)), node.get("minItems", 0))
    return whole


def _alternatives(node: Any, whole: Any, seen: set[int]) -> Iterator[dict[str, Any]]:  # noqa: ANN401  (JSON)
    """Yield a schema and those that it refers to or is composed of."""
    if not isinstance(node, dict) or id(node) in seen:
        return
    seen.add(id(node))
    yield node
    for keyword in ("anyOf", "oneOf", "allOf"):
        for child in _listed(node.get(keyword)):
            yield from _alternatives(child, whole, seen)
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        with suppress(LookupError):
            yield from _alternatives(resolve_pointer(whole, reference), whole, seen)


def _children(node: dict[str, Any], step: str | int) -> Iterator[Any]:
    if isinstance(step, int):
        prefix = _listed(node.get("prefixItems"))
        yield prefix[step] if step < len(prefix) else node.get("items")
    else:
        properties = node.get("properties")
        known = properties.get(step) if isinstance(properties, dict) else None
        yield node.get("additionalProperties") if known is None else known


def _listed(value: Any) -> list[Any]:  # noqa: ANN401  (JSON)
    return value if isinstance(value, list) else []
