"""Documents by the ids that the server gives them, the attributes of those, and filters over them: comparisons, `and` and `or`."""

import operator
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from taiwa.kernel.records import Json

UPLOADED = re.compile(r"[^/]*/(file-[0-9a-f]{24})/(.*)", re.DOTALL)
"""The index, the id and the name of a file that was attached to a vector store."""


def file_of(source: str, index: str) -> tuple[str, str]:
    """Return the id of a document and its path; the source begins with the name of its index where `index` is empty.

    A file that was uploaded by itself lies in a folder of the name of its id, which it keeps.

    >>> file_of("guide.md", "shop"), file_of("shop/guide.md", "")
    (('file-c2hvcC9ndWlkZS5tZA', 'guide.md'), ('file-c2hvcC9ndWlkZS5tZA', 'guide.md'))
    """
    whole = f"{index}/{source}" if index else source
    if found := UPLOADED.match(whole):
        return found[1], found[2]
    return f"file-{urlsafe_b64encode(whole.encode()).decode().rstrip('=')}", whole.partition("/")[2]


ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
COMPARISONS = ("eq", "ne", *ORDERS, "in", "nin")


def fits(filters: Json, attributes: Mapping[str, Json]) -> bool:
    """Report whether attributes fit a filter; texts and numbers are ordered among themselves only.

    >>> fits({"type": "gte", "key": "year", "value": 2024}, {"year": 2025})
    True
    >>> fits({"type": "and", "filters": [{"type": "ne", "key": "draft", "value": True}]}, {"draft": 1})
    True
    """
    if not isinstance(filters, dict):
        return False
    kind, inner, wanted = filters.get("type"), filters.get("filters"), filters.get("value")
    if kind in ("and", "or") and isinstance(inner, list):
        return (all if kind == "and" else any)(fits(each, attributes) for each in inner)
    found = attributes.get(str(filters.get("key")))
    if kind in ("eq", "ne"):
        return _same(found, wanted) == (kind == "eq")
    if kind in ("in", "nin"):
        return any(_same(found, each) for each in (wanted if isinstance(wanted, list) else ())) == (kind == "in")
    alike = (_is_number(found) and _is_number(wanted)) or (isinstance(found, str) and isinstance(wanted, str))
    return alike and kind in ORDERS and ORDERS[str(kind)](found, wanted)


def _same(one: Json, other: Json) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_number(data: Json) -> bool:
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def documents_that_fit(
    filters: Json, attributes: Callable[[str], Mapping[str, Mapping[str, Json]]]
) -> Callable[[str, str], bool]:
    """Return whether a document, given by its index and its path, fits; `attributes` are those of an index, by the ids of its documents."""
    known = cache(attributes)

    @cache  # a document has many passages
    def fits_document(index: str, path: str) -> bool:
        return fits(filters, known(index).get(file_of(path, index)[0], {}))

    return fits_document
