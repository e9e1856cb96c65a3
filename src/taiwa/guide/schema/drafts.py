"""What a schema does not say because its own draft of JSON Schema, which it names, gives that no meaning.

A validator that follows the draft passes over it, so a guide that kept it would keep valid values out.
"""

import re
from collections.abc import Iterator, Mapping

from taiwa.guide.schema.keywords import KINDS, Schema, is_object
from taiwa.kernel.records import Json

__all__ = ["THIRD", "draft_of", "renew", "unread"]

THIRD = 3
FOURTH = 4
SEVENTH = 7
NAMES: Mapping[str, int] = {
    "draft-03": THIRD,
    "draft-04": FOURTH,
    "draft-06": 6,
    "draft-07": SEVENTH,
    "draft/2019-09": 8,
    "draft/2020-12": 9,
}
ADDRESS = r"https?://json-schema\.org/(draft(?:-0\d|/20\d\d-\d\d))/schema#?\Z"
SINCE: Mapping[str, int] = {
    **dict.fromkeys("allOf anyOf oneOf not multipleOf minProperties maxProperties".split(), FOURTH),
    **dict.fromkeys("const contains propertyNames".split(), 6),
    **dict.fromkeys("if then else".split(), SEVENTH),
    **dict.fromkeys(
        "dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties $recursiveRef".split(), 8
    ),
    **dict.fromkeys("prefixItems $dynamicRef".split(), 9),
}
UNTIL: Mapping[str, int] = {"dependencies": SEVENTH, "additionalItems": 8, "$recursiveRef": 8}


def draft_of(schema: Schema) -> int | None:
    """The place in time of the draft that a schema names; None where it names none, and everything has its meaning."""
    named = schema.get("$schema") if is_object(schema) else None
    found = re.match(ADDRESS, named) if isinstance(named, str) else None
    return NAMES.get(found[1]) if found else None


def unread(schema: Mapping[str, Json], draft: int) -> Iterator[tuple[str, str]]:
    """The keywords of a schema that its draft passes over, and why."""
    alone = draft <= SEVENTH and isinstance(schema.get("$ref"), str)
    for keyword, held in schema.items():
        if keyword not in KINDS or keyword == "$ref":
            continue
        bound = keyword in ("exclusiveMinimum", "exclusiveMaximum") and not isinstance(held, bool)
        if alone:
            yield keyword, "its draft reads nothing beside $ref"
        elif SINCE.get(keyword, 0) > draft or (bound and draft <= FOURTH):
            yield keyword, "its draft does not know it yet"
        elif draft > UNTIL.get(keyword, draft):
            yield keyword, "its draft does not know it any more"


def renew(schema: dict[str, Json]) -> None:
    """Say in today's keywords what a schema of the third draft says in its own."""
    properties = schema.get("properties")
    parts = properties.items() if isinstance(properties, dict) else ()
    needed: list[Json] = [
        name for name, part in parts if isinstance(part, dict) and part.pop("required", False) is True
    ]
    schema.pop("required", None)
    if needed:
        schema["required"] = needed
    if "divisibleBy" in schema:
        schema["multipleOf"] = schema.pop("divisibleBy")
    if "extends" in schema:
        extended = schema.pop("extends")
        schema["allOf"] = extended if isinstance(extended, list) else [extended]
    if "disallow" in schema:
        schema["not"] = {"type": schema.pop("disallow")}
    for holder in (schema, schema.get("not")):
        if isinstance(holder, dict) and "any" in _listed(holder.get("type")):
            del holder["type"]


def _listed(held: Json) -> list[Json]:
    return held if isinstance(held, list) else [held]
