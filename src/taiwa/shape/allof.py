"""Several JSON Schemas that hold at once, joined into one as far as one can say it."""

from collections.abc import Callable
from typing import cast

from taiwa.kernel import InputError, Json

__all__ = ["joined"]

Object = dict[str, Json]
MAX_OPTIONS = 64
OPTIONS = ("anyOf", "oneOf")


def joined(parts: list[Json]) -> Json:
    """Join schemas that must all hold; of two words that cannot be joined the first stays, for the validator knows both.

    >>> joined([{"minimum": 1}, {"minimum": 3, "type": "integer"}])
    {'minimum': 3, 'type': 'integer'}
    """
    whole: Object = {}
    for part in parts:
        if part is False:
            return False
        if not isinstance(part, dict):
            continue
        whole = _both(whole, part)
    return whole or True


def _both(left: Object, right: Object) -> Object:
    whole = dict(left)
    for word, part in right.items():
        if word not in whole:
            whole[word] = part
        elif whole[word] != part:
            _merge(whole, word, part)
    return whole


def _merge(whole: Object, word: str, part: Json) -> None:
    have = whole[word]
    if word in OPTIONS and isinstance(have, list) and isinstance(part, list):
        if len(have) * len(part) <= MAX_OPTIONS:
            whole[word] = [joined([one, other]) for one in have for other in part]
        return
    if word == "$ref":
        _merge_all_of(whole, [{"$ref": part}])
        return
    if word == "allOf" and isinstance(part, list):
        _merge_all_of(whole, part)
        return
    if word in ("properties", "$defs") and isinstance(have, dict) and isinstance(part, dict):
        whole[word] = have | {key: joined([have[key], inner]) if key in have else inner for key, inner in part.items()}
        return
    rule = RULES.get(word)
    if rule is not None:
        whole[word] = rule(have, part)


def _merge_all_of(whole: Object, parts: list[Json]) -> None:
    have = whole.get("allOf")
    together = list(have) if isinstance(have, list) else []
    together += [each for each in parts if each not in together]
    if len(together) > MAX_OPTIONS:
        raise InputError(f"schema: more than {MAX_OPTIONS} schemas under one `allOf`")
    whole["allOf"] = together


def _types(have: Json, part: Json) -> Json:
    ours, theirs = (each if isinstance(each, list) else [each] for each in (have, part))
    kept = [each for each in ours if each in theirs or (each == "integer" and "number" in theirs)]
    kept += [each for each in theirs if each == "integer" and "number" in ours and each not in kept]
    return kept[0] if len(kept) == 1 else kept


def _in_both(have: Json, part: Json) -> Json:
    if not isinstance(have, list) or not isinstance(part, list):
        return have
    return [each for each in have if each in part]


def _in_either(have: Json, part: Json) -> Json:
    if not isinstance(have, list) or not isinstance(part, list):
        return have
    return [*have, *(each for each in part if each not in have)]


def _larger(have: Json, part: Json) -> Json:
    return max(cast("float", have), cast("float", part)) if _numbers(have, part) else have


def _smaller(have: Json, part: Json) -> Json:
    return min(cast("float", have), cast("float", part)) if _numbers(have, part) else have


def _numbers(*parts: Json) -> bool:
    return all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts)


def _every(have: Json, part: Json) -> Json:
    return joined([have, part])


RULES: dict[str, Callable[[Json, Json], Json]] = {
    "type": _types,
    "enum": _in_both,
    "required": _in_either,
    "items": _every,
    "additionalProperties": _every,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _larger),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _smaller),
    "uniqueItems": lambda have, part: have is True or part is True,
}
