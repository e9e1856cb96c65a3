"""Serialization of frozen dataclasses to canonical JSON and back, and the digest of a value.

`value` makes a class a frozen, slotted dataclass that is cheap to import. With a tag its instances can be recorded: `record`
writes them as JSON data and `restore` reads them back, `restore(record(x)) == x`. The tag is a literal, so a record does not
depend on the name or module of a class. Fields that equal their default are left out, so a value keeps its digest when its
class gains a field. A part whose default is a value without a tag is a group: the record has its fields in place of it. Tuples
become JSON arrays; a list, which only occurs inside JSON payloads, is tagged, and so are a set of strings and a mapping that
holds the tag itself.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from functools import cache, lru_cache, partial
from hashlib import blake2b
from json import encoder as json_encoder
from json.encoder import encode_basestring
from math import isfinite
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from taiwa.kernel.errors import CorruptError, InputError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A JSON value; treated as immutable once it is part of a frozen value."""

T = TypeVar("T")

TAG = "~"

KEPT = "kept_record"

CONTAINERS = frozenset({"list", "set", "dict"})

PLAIN_TYPES = (str, int, bool, NoneType)

LEAVES = frozenset({str, int, float, bool, type(None)})

PLAIN = (str, int, float, tuple, list, frozenset, Mapping)

DIGEST_BYTES = 16


class _Encoder(json.JSONEncoder):
    """An encoder that is made once: that of `json` makes another for each value, which takes as long as a short value."""

    def __init__(self, *, sort_keys: bool = False) -> None:
        super().__init__(ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
        make: Any = getattr(json_encoder, "c_make_encoder", None)
        self._write = make and make(None, self.default, encode_basestring, None, ":", ",", sort_keys, False, False)

    def encode(self, o: object) -> str:
        """Return the JSON of a value."""
        if self._write is not None:
            try:
                return "".join(self._write(o, 0))
            except RecursionError:  # `json` says whether the value contains itself
                pass
        return super().encode(o)


COMPACT = _Encoder()

CANONICAL = _Encoder(sort_keys=True)


registry: dict[str, type[Any]] = {}
"""Every value class that can be recorded, by its tag."""


@overload
def value(cls: type[T], /) -> type[T]: ...


@overload
def value(*, tag: str) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True)
def value(cls: type[T] | None = None, /, *, tag: str = "") -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class a frozen, slotted dataclass; with a `tag`, one whose instances can be recorded.

    The tag and the field names are the format on disk: they never change, and a new field requires a default.
    Fields and slots come from `dataclass`; the methods are closures, and `__init__` is compiled when the first instance is
    made. If `dataclass` compiled six methods for every class, importing the kernel would take twice as long.

    >>> @value(tag="point")
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> record(Point(3))
    {'~': 'point', 'x': 3}

    Raises:
        TypeError: another class has that tag.
    """
    if cls is None:
        return lambda cls: _make_value(cls, tag)
    return _make_value(cls, tag)


def _make_value(cls: type[T], tag: str) -> type[T]:
    known = registry.get(tag)
    if tag in CONTAINERS or (known is not None and _qualified_name(known) != _qualified_name(cls)):
        raise TypeError(
            f"the tag {tag!r} of {_qualified_name(cls)} is used by {_qualified_name(known) if known else tag}; choose another"
        )
    own = {name: part for name, part in cls.__dict__.items() if name not in {"__dict__", "__weakref__"}}
    made = dataclass(init=False, eq=False, repr=False, slots=True)(cls)
    layout = fields(cast("type[Any]", made))
    for method in (
        *(() if "__init__" in own else (_lazy_init(made, own),)),
        *_comparison_methods(made, layout),
        *_copy_methods(made, layout),
        *_freeze_methods(),
    ):
        if method.__name__ not in own:
            setattr(made, method.__name__, method)
    made.__tag__ = tag  # type: ignore[attr-defined]
    if tag:
        registry[tag] = made
    return made


def tag_of(cls: type[Any]) -> str:
    """Return the tag of a value class; empty if it has none.

    >>> from taiwa.kernel.messages import Usage
    >>> tag_of(Usage)
    'usage'
    """
    tag: str = cls.__dict__.get("__tag__", "")
    return tag


def _qualified_name(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _lazy_init(made: type[Any], own: dict[str, Any]) -> Callable[..., None]:
    names = {"__annotations__", *own.get("__annotations__", {})}
    like = {name: part for name, part in own.items() if name in names}

    @cache
    def compiled() -> Callable[..., None]:
        is_wide = len(fields(made)) >= WIDE
        initialize: Callable[..., None] = vars(
            dataclass(frozen=not is_wide, eq=False, repr=False)(type(made.__name__, (), dict(like)))
        )["__init__"]
        method = _thawing_init(made, initialize) if is_wide else initialize
        type.__setattr__(made, "__init__", method)
        return method

    def __init__(self: object, *arguments: object, **named: object) -> None:  # noqa: N807
        compiled()(self, *arguments, **named)

    type.__setattr__(made, "__signature__", _LazySignature(compiled))
    return __init__


WIDE = 5
"""Fields from which it is faster to set them while an instance is not frozen."""


def _thawing_init(made: type[Any], initialize: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that sets the fields while the instance belongs to a subclass that is not frozen.

    `object.__setattr__`, which the `__init__` of a frozen dataclass calls for each field, takes six times as long as an assignment.
    """
    thawed = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    draft, become = type(made.__name__, (made,), thawed), object.__setattr__

    def __init__(self: object, *arguments: object, **named: object) -> None:  # noqa: N807
        become(self, "__class__", draft)
        initialize(self, *arguments, **named)
        self.__class__ = made

    cast("Any", __init__).__wrapped__ = initialize  # which has the parameters
    return __init__


class _LazySignature:
    """The parameters of a class whose `__init__` is compiled when it is first needed."""

    def __init__(self, compiled: Callable[[], Callable[..., None]]) -> None:
        self._compiled = compiled

    def __get__(self, instance: object, owner: type[Any]) -> object:
        from inspect import signature

        of_method = signature(self._compiled())
        return of_method.replace(parameters=tuple(of_method.parameters.values())[1:])


def _comparison_methods(made: type[Any], layout: tuple[Field[Any], ...]) -> tuple[Callable[..., object], ...]:
    compared = [field.name for field in layout if field.compare]
    values: Callable[[object], object] = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return self is other or (other.__class__ is made and bool(values(self) == values(other)))

    def __hash__(self: object) -> int:  # noqa: N807
        return hash((made, values(self)))

    return __eq__, __hash__


def _copy_methods(made: type[Any], layout: tuple[Field[Any], ...]) -> tuple[Callable[..., object], ...]:
    names = tuple(field.name for field in layout if field.init)
    shown = tuple(field.name for field in layout if field.repr)

    def __repr__(self: object) -> str:  # noqa: N807
        return f"{made.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __reduce__(self: object) -> tuple[object, ...]:  # noqa: N807
        return made, tuple(getattr(self, name) for name in names)

    return __repr__, __reduce__


def _freeze_methods() -> tuple[Callable[..., object], ...]:
    def __setattr__(self: object, name: str, _: object) -> None:  # noqa: N807
        raise FrozenInstanceError(
            f"{type(self).__name__}.{name} cannot change; copy the value with dataclasses.replace"
        )

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be removed")

    return __setattr__, __delattr__


def record(item: object) -> Json:
    """Write a value as JSON data.

    Raises:
        InputError: the item is neither a value nor JSON.
        TypeError: the item is, or holds, a value whose class has no tag.
    """
    # The exact classes of text and values are checked first, because they are most of what a turn hashes.
    kind: Any = type(item)
    if kind in LEAVES:
        return cast("Json", item)
    if kind is dict and TAG not in cast("dict[object, object]", item):
        return _record_members(cast("dict[object, object]", item))
    tag, layout, _, values = _layout(kind)
    if not tag:
        return _record_plain(item)
    written: dict[str, Json] = {TAG: tag}
    for (field, default), part in zip(layout, values(item), strict=True):
        if _is_written(part, default):
            written[field] = cast("Json", part) if type(part) in LEAVES else record(part)
    return written


def _is_written(part: object, default: object) -> bool:
    """Return whether the record of a value has a field."""
    return part is not default and (default is MISSING or part != default or type(part) is not type(default))


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
    raise InputError(f"a {type(item).__name__} cannot be recorded; make its class a @value with a tag")


def _record_mapping(item: Mapping[object, object]) -> Json:
    plain = _record_members(item)
    return {TAG: "dict", "of": plain} if TAG in plain else plain


def _record_members(item: Mapping[object, object]) -> dict[str, Json]:
    for key in item:
        if not isinstance(key, str):
            raise InputError(f"keys of a JSON object must be strings, got {key!r}")
    return {str(key): cast("Json", part) if type(part) in LEAVES else record(part) for key, part in item.items()}


_Layout: TypeAlias = tuple[str, tuple[tuple[str, object], ...], bool, Callable[[object], tuple[object, ...]]]


@cache
def _layout(cls: Any) -> _Layout:  # noqa: ANN401  (a class, which mypy holds to be unhashable)
    """Return the tag and the recorded fields of a value class, whether it has a field `KEPT`, and a function that reads the fields of
    an instance; an empty tag for JSON types.
    """
    if issubclass(cls, PLAIN) or "__tag__" not in cls.__dict__:
        return "", (), False, _no_values
    tag = tag_of(cls)
    if not tag:
        raise TypeError(f'{_qualified_name(cls)} has no tag and cannot be recorded; use @value(tag="…")')
    recorded = sorted(recorded_fields(cls), key=itemgetter(0))
    fields_of = tuple((name, default) for name, _, default in recorded)
    return tag, fields_of, KEPT in cls.__dict__, _reader([path for _, path, _ in recorded])


def recorded_fields(cls: Any) -> Iterator[tuple[str, str, object]]:  # noqa: ANN401
    """Yield the name of each field of a record, the path of its attribute, and its default."""
    groups = _groups(cls)
    for field in fields(cls):
        if field.name in groups:
            for name, path, default in recorded_fields(groups[field.name]):
                yield name, f"{field.name}.{path}", default
        elif field.compare:
            yield field.name, field.name, _default(field)


@cache
def _groups(cls: Any) -> dict[str, type[Any]]:  # noqa: ANN401
    """Return the classes of the groups of fields, by name."""
    defaults = {field.name: type(field.default) for field in fields(cls) if field.compare}
    return {name: kind for name, kind in defaults.items() if kind.__dict__.get("__tag__") == ""}


def _reader(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Return a function that reads some attributes of an object."""
    if not names:
        return _no_values
    read: Callable[[object], Any] = attrgetter(*names)
    return read if len(names) > 1 else lambda item: (read(item),)


def _no_values(_: object) -> tuple[object, ...]:
    return ()


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return cast("Callable[[], object]", field.default_factory)()
    return cast("object", field.default)


def restore(data: Json) -> Any:  # noqa: ANN401  (the type of a record is known to the caller)
    """Rebuild a value from its record.

    Raises:
        CorruptError: the record names an unknown class or does not fit it.
    """
    if isinstance(data, list):
        return tuple(restore(part) for part in data)
    if not isinstance(data, dict):
        return data
    tag = data.get(TAG)
    if tag is None:
        return {key: restore(part) for key, part in data.items()}
    inner = data.get("of")
    if tag == "list" and isinstance(inner, list):
        return [restore(part) for part in inner]
    if tag == "set" and isinstance(inner, list):
        return frozenset(inner)
    if tag == "dict" and isinstance(inner, dict):
        return {key: restore(part) for key, part in inner.items()}
    cls: Any = registry.get(str(tag))
    if cls is None:
        raise CorruptError(f"unknown tag {tag!r} in a record")
    parts = {key: restore(part) for key, part in data.items() if key != TAG}
    # A wrong type would otherwise fail far from here, in code that trusts its values.
    for name, fits in _checks(str(tag)).items():
        if name in parts and not fits(parts[name]):
            raise CorruptError(f"a record of {tag!r} does not fit: its {name} is a {type(parts[name]).__name__}")
    for name, group in _groups(cls).items():
        if members := {field: parts.pop(field) for field in group.__match_args__ if field in parts}:
            parts[name] = group(**members)
    try:
        return cls(**parts)
    except TypeError as error:
        raise CorruptError(f"a record of {tag!r} does not fit: {error}") from None


@cache
def _checks(tag: str) -> dict[str, Callable[[object], bool]]:
    """Return the checks of restored fields by name, for the fields of a tag's class that are plain values or records."""
    cls: Any = registry[tag]
    try:
        hints = {name: hint for part in (cls, *_groups(cls).values()) for name, hint in get_type_hints(part).items()}
    except NameError:  # a type that is imported only for type checkers
        return {}
    return {name: check for name, hint in hints.items() if (check := _check(hint)) is not None}


def _check(hint: object) -> Callable[[object], bool] | None:
    origin = get_origin(hint)
    if origin is Literal:
        return get_args(hint).__contains__
    if origin in (Union, UnionType):
        checks = [_check(part) for part in get_args(hint)]
        known = [check for check in checks if check is not None]
        return (lambda part: any(check(part) for check in known)) if len(known) == len(checks) else None
    if origin is tuple:
        inner = _check(get_args(hint)[0]) if get_args(hint)[1:] == (...,) else None
        return lambda part: (
            isinstance(part, tuple) and (inner is None or all(map(inner, cast("tuple[object, ...]", part))))
        )
    if hint is float:
        return partial(_is_a, (int, float))
    return partial(_is_a, hint) if isinstance(hint, type) and hint in (*PLAIN_TYPES, *registry.values()) else None


def _is_a(cls: type | tuple[type, ...], part: object) -> bool:
    return isinstance(part, cls)


def to_json(data: Json, encoder: json.JSONEncoder = COMPACT) -> bytes:
    """Write JSON as compact UTF-8, keys in their given order.

    Servers generate a constrained answer in the order of its schema, and a type that asks for the reason before the verdict
    relies on this.

    Raises:
        InputError: the text contains a lone surrogate, a number is not finite, or the value is nested too deeply.
    """
    return to_utf8(encoder.encode, data)


def to_utf8(write: Callable[[T], str], item: T) -> bytes:
    """Return the JSON that a function writes as UTF-8.

    Raises:
        InputError: as `to_json`.
    """
    try:
        return write(item).encode("utf-8")
    except RecursionError:
        raise InputError("the value is nested too deeply") from None
    except UnicodeEncodeError as error:
        bad = f"U+{ord(error.object[error.start]):04X}"
        raise InputError(f"the text contains half a character ({bad}); give valid Unicode") from None
    except ValueError as error:
        raise InputError(f"not a JSON value: {error}") from None


RECENT = 512
SHORTEST_RECENT, LONGEST_RECENT = 64, 4096
"""Characters of the texts whose JSON is kept until that of `RECENT` others is; hashes and names are as fast to encode."""
_recent_text = lru_cache(RECENT)(encode_basestring)


def encode_text(text: str) -> str:
    """Return the JSON of a text; that of a recent one is kept, since a turn is hashed, stored and sent within milliseconds."""
    return (_recent_text if SHORTEST_RECENT <= len(text) <= LONGEST_RECENT else encode_basestring)(text)


def text_to_json(text: str) -> bytes:
    """Return what `to_json` returns for a text, with fewer calls.

    Raises:
        InputError: as `to_json`.
    """
    try:
        return encode_basestring(text).encode()
    except UnicodeEncodeError:
        return to_utf8(encode_basestring, text)  # which says what is wrong


def canonical(data: Json) -> bytes:
    """Write JSON in canonical form: sorted keys, no spaces, UTF-8.

    Raises:
        InputError: the text contains a lone surrogate, or a number is not finite.
    """
    return to_json(data, CANONICAL)


def parse_json(text: str | bytes) -> Json:
    """Parse JSON; bytes that are not UTF-8 are decoded with replacement characters.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        data: Json = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return data


def refuse_constant(word: str) -> NoReturn:
    """Refuse NaN and infinities, which `json` accepts but JSON does not have; for `parse_constant`."""
    raise ValueError(f"{word} is not JSON")


FLOAT_DIGITS = 15


class Digits(float):
    """A fraction with the text that it was written as, because a float has fewer digits or no zero at the end."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Digits":
        """Return the fraction of a text."""
        fraction = super().__new__(cls, text)
        fraction.text = text
        return fraction


def read_fraction(text: str) -> float:
    """Return a fraction of JSON, with its text if a float loses digits of it."""
    loses = len(text) > FLOAT_DIGITS or (text[-1] == "0" and "e" not in text.lower())
    return Digits(text) if loses else float(text)


def read_exact_json(text: str) -> Json:
    """Read JSON with the digits of its fractions; NaN and infinities are none.

    Raises:
        ValueError: the text is not JSON.
    """
    return cast("Json", json.loads(text, parse_float=read_fraction, parse_constant=refuse_constant))


def has_digits(data: Json) -> bool:
    """Whether data has a fraction of which a float loses digits."""
    if isinstance(data, (dict, list)):
        return any(map(has_digits, data.values() if isinstance(data, dict) else data))
    return isinstance(data, Digits)


def exact_json(data: Json, *, allow_nan: bool = False) -> str:
    """Write JSON with the digits of its fractions.

    >>> exact_json(read_exact_json('{"price": 1.10, "of": ["tea"]}'))
    '{"price": 1.10, "of": ["tea"]}'
    >>> exact_json([Digits("1.10"), float("nan")], allow_nan=True)
    '[1.10, NaN]'

    Raises:
        ValueError: a number is not finite, without `allow_nan`.
    """

    def written(part: Json) -> str:
        if isinstance(part, dict):
            members = (f"{json.dumps(key, ensure_ascii=False)}: {written(each)}" for key, each in part.items())
            return f"{{{', '.join(members)}}}"
        if isinstance(part, list):
            return f"[{', '.join(map(written, part))}]"
        if isinstance(part, Digits) and isfinite(part):
            return part.text
        return json.dumps(part, ensure_ascii=False, allow_nan=allow_nan)

    return written(data) if has_digits(data) else json.dumps(data, ensure_ascii=False, allow_nan=allow_nan)


def is_number(data: object) -> TypeGuard[int | float]:
    """Return whether data is a JSON number; `True` is not."""
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def digest(item: object) -> str:
    """Return the BLAKE2b hash of the canonical record of a value, 32 hex characters.

    Raises:
        InputError: it cannot be recorded, or is nested too deeply.
    """
    return digest_and_size(item)[0]


def digest_and_size(item: object) -> tuple[str, int]:
    """Return the digest of a value, and the bytes of its canonical record.

    Raises:
        InputError: as `digest`.
    """
    plain = to_utf8(canonical_record, item)
    return blake2b(plain, digest_size=DIGEST_BYTES).hexdigest(), len(plain)


def canonical_record(item: Any) -> str:  # noqa: ANN401  (a cast is a call, and this is most of what a turn does)
    """Return the text of `canonical(record(item))`; a value with a field `KEPT` keeps it there, as one that is part of many others."""
    kind: Any = type(item)
    if kind is str:  # most of what is hashed
        return encode_text(item)
    if kind is tuple:
        return f"[{','.join(map(canonical_record, item))}]"
    tag, layout, keeps, values = _layout(kind)
    if not tag:
        return CANONICAL.encode(record(item))
    if keeps and (kept := getattr(item, KEPT, "")):
        return kept
    parts: list[str] = []
    for (field, default), part in zip(layout, values(item), strict=True):
        if part is default:
            continue
        if type(part) is str:
            if part != default:
                parts.append(f'"{field}":{encode_text(part)}')
        elif default is MISSING or part != default or type(part) is not type(default):
            parts.append(f'"{field}":{canonical_record(part)}')
    parts.append(f'"{TAG}":"{tag}"')  # sorts after every name of a field
    text = f"{{{','.join(parts)}}}"
    if keeps:
        object.__setattr__(item, KEPT, text)
    return text


def objects_in(data: Json) -> Iterator[dict[str, Json]]:
    """Yield the objects in JSON data, itself included, in no order; without recursion, since data may be deep."""
    todo = [data]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            yield here
            todo += here.values()
        elif isinstance(here, list):
            todo += here


def item_at(data: Json, *path: str) -> Json:
    """Return the value at a path of keys, or None."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def items_at(data: Json, *path: str) -> list[Json]:
    """Return the list at a path, or an empty one."""
    found = item_at(data, *path)
    return found if isinstance(found, list) else []


def text_at(data: Json, *path: str) -> str:
    """Return the string at a path, or an empty one."""
    found = item_at(data, *path)
    return found if isinstance(found, str) else ""


MOST_COUNT_DIGITS = 20


def count_at(data: Json, *path: str) -> int | None:
    """Return the non-negative whole number at a path, which may be a text, or None."""
    found = item_at(data, *path)
    if isinstance(found, str) and found.isdecimal() and len(found) < MOST_COUNT_DIGITS:
        found = int(found)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None
