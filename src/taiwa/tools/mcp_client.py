"""Words from somebody else, made harmless for a text that a model reads: bounded, visible, and without marks of ours.

What a person sees must be what the model reads, so what is invisible is left out: control signs, directions of writing,
tags, joiners. Marks that begin a call or a role are broken up, so that foreign words can begin neither.
"""

import json
from collections.abc import Mapping
from itertools import islice

from taiwa.json_schema.keywords import Schema, map_subschemas
from taiwa.kernel.records import Json
from taiwa.kernel.text import clean_untrusted

__all__ = ["harmless_schema"]


DEEPEST = 8

MOST_KEYS = 64

LONGEST_WORD = 500

ALLOWED = frozenset(
    """
    type properties required items enum const anyOf oneOf allOf description title default minimum maximum exclusiveMinimum
    exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems uniqueItems additionalProperties $ref $defs
    """.split()
)

WORDS = frozenset(("description", "title"))


def harmless_schema(schema: Json) -> dict[str, Json]:
    """Somebody else's JSON Schema of arguments: the known keywords, each word of it harmless, never very deep or wide."""
    made = _schema(schema, DEEPEST)
    plain: dict[str, Json] = made if isinstance(made, dict) else {}
    properties = plain.get("properties")
    return {**plain, "type": "object", "properties": properties if isinstance(properties, dict) else {}}


def _schema(schema: "Json | Schema", deep: int) -> Json:
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or deep == 0:
        return {}
    kept: dict[str, Json] = {}
    for key, part in schema.items():
        if key in ("properties", "$defs") and isinstance(part, dict):
            kept[key] = {
                _word(name): inner if isinstance(inner, dict | bool) else {}
                for name, inner in islice(part.items(), MOST_KEYS)
            }
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(part, list):
            kept[key] = [inner if isinstance(inner, dict | bool) else {} for inner in part[:MOST_KEYS]]
        elif key in ("items", "additionalProperties"):
            kept[key] = part if isinstance(part, dict | bool) else {}
        elif key in WORDS:
            kept[key] = _word(str(part))
        elif key in ALLOWED:
            kept[key] = _plain(part)
    return map_subschemas(kept, lambda _, inner: _schema(inner, deep - 1))


def _plain(part: Json) -> Json:
    """A keyword's value: short words and numbers, or a list of them."""
    if isinstance(part, str):
        return _word(part)
    if isinstance(part, list):
        return [_plain(inner) for inner in part[:MOST_KEYS] if not isinstance(inner, list | dict)]
    if isinstance(part, dict):
        return part if len(json.dumps(part)) <= LONGEST_WORD else {}
    return part


def _word(text: str) -> str:
    return " ".join(clean_untrusted(text, LONGEST_WORD).split())
