"""The last rungs: an answer without any JSON, and the repair of another library; all of it marked as a guess."""

import json
import re
from importlib import import_module
from typing import Any, TypeVar

from taiwa.kernel import Json
from taiwa.shape.form import AnyNode, BoolNode, LiteralNode, NullNode, NumberNode, ObjectNode, StringNode, members
from taiwa.shape.reading import Fix, Level
from taiwa.shape.scan import NUMBER
from taiwa.shape.target import Target

__all__ = ["from_json_repair", "from_words"]

T = TypeVar("T")
MOST_REPAIRED = 8 * 1024
LEFT_OVER = re.compile(r"[\"':,{\[]")
MOST_WORDS = 2_000
WRAPPING = " \t\r\n\"'`*_.!。！「」『』“”‘’()（）<>"
BOOLEANS: dict[str, bool] = {"true": True, "false": False, "yes": True, "no": False}


def from_words(target: Target[T], text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Read a text without JSON as the scalar that is wanted: a label, a number, or the text itself."""
    options = members(target.form.root, target.form)
    if end - start > MOST_WORDS or any(isinstance(each, (ObjectNode, AnyNode)) for each in options):
        return None
    words = text[start:end].strip()
    plain = words.strip(WRAPPING)
    if not plain:
        return None
    for node in options:
        if isinstance(node, LiteralNode):
            found = _label(node, plain)
            if found is not None:
                return found[0], Fix("bare-label", start, found[1])
        if isinstance(node, NumberNode) and (number := NUMBER.fullmatch(plain)):
            return json.loads(number[0]), Fix("bare-value", start, "likely")
        if isinstance(node, BoolNode) and plain.casefold() in BOOLEANS:
            return BOOLEANS[plain.casefold()], Fix("bare-value", start, "likely")
        if isinstance(node, NullNode) and plain.casefold() in ("null", "none"):
            return None, Fix("bare-value", start, "likely")
    if any(isinstance(each, StringNode) for each in options) and words[0] not in "{[\"'`":
        return words, Fix("bare-text", start, "guess")
    return None


def _label(node: LiteralNode, plain: str) -> tuple[Json, Level] | None:
    """Find the one label that the text is, or the only one that it holds as a word of its own."""
    labels = [value for value in node.values if isinstance(value, str) and value]
    for value in node.values:
        if plain == value or (not isinstance(value, str) and plain == json.dumps(value)):
            return value, "likely"
    same = [label for label in labels if label.casefold() == plain.casefold()]
    if len(same) == 1:
        return same[0], "likely"
    held = [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", plain, re.IGNORECASE)]
    return (held[0], "guess") if len(held) == 1 else None


def from_json_repair(text: str, start: int, end: int) -> tuple[Json, Fix] | None:
    """Ask json_repair (the extra `repair`) about the widest span of brackets; None without it, or where it finds nothing.

    Short texts only, for its time grows with the square of the length; and none that looks cut, for it closes what is open.
    """
    opened = min((at for at in (text.find("{", start, end), text.find("[", start, end)) if at >= 0), default=-1)
    closed = max(text.rfind("}", start, end), text.rfind("]", start, end))
    if opened < 0 or closed < opened or closed - opened > MOST_REPAIRED:
        return None
    span = text[opened : closed + 1]
    if span.count("{") + span.count("[") > span.count("}") + span.count("]") or LEFT_OVER.search(text, closed + 1, end):
        return None
    try:
        library: Any = import_module("json_repair")
    except ImportError:
        return None
    try:
        data: Json = library.loads(span)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    return (data, Fix("json-repair", opened, "guess")) if isinstance(data, (dict, list)) else None
