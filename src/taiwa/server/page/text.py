"""Values, costs and excerpts as the templates write them."""

import json
from collections.abc import Iterable
from decimal import Decimal

from taiwa.ask.result import HEADING
from taiwa.conversation.state import Missing
from taiwa.kernel.records import Json
from taiwa.kernel.usage_limits import currency_units
from taiwa.operations.inspect import format_value
from taiwa.operations.markdown_html import visible

SHORT = 80


def short(value: "Json | Missing", most: int = SHORT) -> str:
    """Write a value on one short line; "–" where there is none."""
    if isinstance(value, Missing):
        return "–"
    text = visible(value if isinstance(value, str) else format_value(value))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def excerpt(text: str, most: int = SHORT) -> str:
    """Write the beginning of a passage on one line, without its heading, which is shown beside it.

    >>> excerpt("## Leave\\n\\nTen days.")
    'Ten days.'
    """
    return short(" ".join(HEADING.sub("", text, 1).split()) or text, most)


def brief(value: "Json | Missing") -> str:
    """Write a value as a person would: objects and lists without quotation marks and braces, on one short line.

    >>> brief({"name": "latte", "options": [], "quantity": 2})
    'name latte, quantity 2'
    """
    return short(_plain(value)) if isinstance(value, (dict, list)) and value else short(value)


def _plain(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items() if each not in (None, "", [], {}))
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else format_value(value)


def pretty(value: Json) -> str:
    """Write a value as indented JSON."""
    return visible(json.dumps(value, ensure_ascii=False, indent=1))


def money(cost: Decimal) -> str:
    """Write a cost in currency units."""
    return f"{cost:f}".rstrip("0").rstrip(".") if "." in f"{cost:f}" else f"{cost:f}"


def nano(cost: int | None) -> str:
    """Write a cost in billionths of a currency unit; "?" where it is unknown."""
    units = currency_units(cost)
    return "?" if units is None else money(units)


def size(count: int) -> str:
    """Write a number of bytes.

    >>> size(312), size(20_480)
    ('312 B', '20 kB')
    """
    for unit in ("B", "kB", "MB"):
        if count < 1024 or unit == "MB":
            break
        count = round(count / 1024)
    return f"{count} {unit}"


def marked(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Cut a text at spans of characters; each part comes with whether it is one of them.

    >>> marked("green tea", [(6, 9)])
    [('green ', False), ('tea', True)]
    """
    parts: list[tuple[str, bool]] = []
    end = 0
    for first, last in spans:
        parts += [(visible(text[end:first]), False), (visible(text[first:last]), True)]
        end = last
    parts.append((visible(text[end:]), False))
    return [part for part in parts if part[0]]


def spans_of(text: str, value: "Json | Missing") -> list[tuple[int, int]]:
    """Find the words of a text that a value repeats."""
    plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    word = str(value).lower() if plain else ""
    lowered = text.lower()
    start = lowered.find(word) if word and len(lowered) == len(text) else -1
    return [] if start < 0 else [(start, start + len(word))]
