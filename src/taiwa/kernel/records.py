"""Values as canonical JSON and back, and the digest that names them.

`record` writes any registered value as JSON data and `revive` reads it back: `revive(record(x)) == x`. Fields that equal
their default are left out, so a value keeps its digest when its class gains a field. Tuples become JSON arrays; a list,
which only occurs inside JSON payloads, is tagged, and so are a set of strings and a mapping that holds the tag itself.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from hashlib import blake2b
from typing import Any, TypeAlias, cast

from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.frozen import name_of, registry, value

__all__ = ["Json", "canonical", "digest", "record", "revive", "value"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON can say; treated as immutable once it is part of a value."""

TAG = "~"
LEAVES = frozenset({str, int, float, bool, type(None)})
PLAIN = (str, int, float, tuple, list, frozenset, Mapping)
DIGEST_BYTES = 16
CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def record(item: object) -> Json:
    """Write a value as JSON data.

    Raises:
        InputError: the item is neither a registered value nor JSON.
    """
    # Most of what a turn hashes is text and values, so these are told apart by their exact class, before anything else.
    if type(item) in LEAVES:
        return cast("Json", item)
    name, layout = _layout(cast("Any", type(item)))
    if not name:
        return _record_plain(item)
    written: dict[str, Json] = {TAG: name}
    for field, default in layout:
        part = getattr(item, field)
        if default is MISSING or part != default or type(part) is not type(default):
            written[field] = record(part)
    return written


def _record_plain(item: object) -> Json:
    if isinstance(item, (bool, int, float, str)):
        return item
    if isinstance(item, tuple):
        return [record(part) for part in cast("tuple[object, ...]", item)]
    if isinstance(item, list):
        return {TAG: "list", "of": [record(part) for part in cast("list[object]", item)]}
    if isinstance(item, frozenset):
        members: list[Json] = [*sorted(cast("frozenset[str]", item))]
        return {TAG: "set", "of": members}
    if isinstance(item, Mapping):
        return _record_mapping(cast("Mapping[object, object]", item))
    raise InputError(f"a {type(item).__name__} cannot be recorded: make its class a @value")


def _record_mapping(item: Mapping[object, object]) -> Json:
    for key in item:
        if not isinstance(key, str):
            raise InputError(f"a JSON object has string keys, not {key!r}")
    plain: dict[str, Json] = {str(key): record(part) for key, part in item.items()}
    return {TAG: "dict", "of": plain} if TAG in plain else plain


@cache
def _layout(cls: Any) -> tuple[str, tuple[tuple[str, object], ...]]:  # noqa: ANN401  (a class, which mypy holds to be unhashable)
    """The name and the fields of a registered value; no name for what is JSON."""
    if issubclass(cls, PLAIN) or name_of(cls) not in registry:
        return "", ()
    return name_of(cls), tuple((field.name, _default(field)) for field in fields(cls) if field.compare)


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return cast("Callable[[], object]", field.default_factory)()
    return cast("object", field.default)


def revive(data: Json) -> Any:  # noqa: ANN401  (what a record holds is known only to who wrote it)
    """Read a value back from what `record` wrote.

    Raises:
        CorruptError: the record names an unknown class or does not fit it.
    """
    if isinstance(data, list):
        return tuple(revive(part) for part in data)
    if not isinstance(data, dict):
        return data
    tag = data.get(TAG)
    if tag is None:
        return {key: revive(part) for key, part in data.items()}
    inner = data.get("of")
    if tag == "list" and isinstance(inner, list):
        return [revive(part) for part in inner]
    if tag == "set" and isinstance(inner, list):
        return frozenset(inner)
    if tag == "dict" and isinstance(inner, dict):
        return {key: revive(part) for key, part in inner.items()}
    cls = registry.get(str(tag))
    if cls is None:
        raise CorruptError(f"a record names the unknown value {tag!r}")
    try:
        return cls(**{key: revive(part) for key, part in data.items() if key != TAG})
    except TypeError as error:
        raise CorruptError(f"a record of {tag!r} does not fit: {error}") from None


def canonical(data: Json) -> bytes:
    """Write JSON in its one canonical form: sorted keys, no spaces, UTF-8.

    Raises:
        InputError: the text holds a lone surrogate, or a number that JSON cannot say.
    """
    try:
        return CANONICAL.encode(data).encode("utf-8")
    except UnicodeEncodeError as error:
        bad = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(f"the text holds half a character ({bad}); give valid Unicode") from None
    except ValueError as error:
        raise InputError(f"not a JSON value: {error}") from None


def digest(item: object) -> str:
    """Name a value by the BLAKE2b hash of its canonical record (32 hex characters).

    Raises:
        InputError: it cannot be recorded, or is nested too deeply.
    """
    try:
        plain = canonical(record(item))
    except RecursionError:
        raise InputError("the value is nested too deeply to be recorded") from None
    return blake2b(plain, digest_size=DIGEST_BYTES).hexdigest()
