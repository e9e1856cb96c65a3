"""Who decides that JSON fits: pydantic, jsonschema; what valid JSON may hold."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaError

from taiwa.kernel.errors import ConfigError, InputError, TaiwaError
from taiwa.kernel.records import Json

__all__ = [
    "FieldsValidator",
    "InvalidValueError",
    "JsonSchemaValidator",
    "PydanticValidator",
    "ValidationIssue",
    "Validator",
    "depth_of",
    "flaws",
    "has_duplicate_keys",
    "has_odd_numbers",
    "is_deeper",
]


T = TypeVar("T")

T_co = TypeVar("T_co", covariant=True)

UNUSABLE = (PydanticUserError, SchemaError, NameError, TypeError, ValueError, AttributeError, RecursionError)
"""What pydantic raises for a type that it cannot take."""


@dataclass(frozen=True, slots=True)
class ValidationIssue:
    """One fault as the judge words it; `path` may hold names of union branches beside keys and indices."""

    path: tuple[str | int, ...]
    text: str
    code: str = ""


class InvalidValueError(Exception):
    """The JSON does not have the type. `malformed` means that it is not JSON at all."""

    def __init__(self, complaints: tuple[ValidationIssue, ...], *, malformed: bool = False) -> None:
        super().__init__("; ".join(complaint.text for complaint in complaints))
        self.complaints = complaints
        self.malformed = malformed


class Validator(Protocol[T_co]):
    """Decides, and never coerces: JSON text in, the value out, or `InvalidValueError`."""

    @property
    def schema(self) -> dict[str, Json]:
        """The JSON Schema of the type."""
        ...

    def from_json(self, text: bytes) -> T_co:
        """Validate JSON text in UTF-8."""
        ...

    def dump(self, value: object) -> Json:
        """Write a value as JSON data."""
        ...


class _Foreign:
    """Whatever somebody else's validator raises is a fault of the value, and no crash of ours."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ValidationError):
            raise _invalid(error) from None
        if isinstance(error, Exception) and not isinstance(error, (TaiwaError, InvalidValueError)):
            text = f"a validator raised {type(error).__name__}: {error}"
            raise InvalidValueError((ValidationIssue((), text, "validator"),)) from error


def _invalid(error: ValidationError) -> InvalidValueError:
    rows = error.errors(include_url=False, include_input=False)
    complaints = tuple(ValidationIssue(row["loc"], _worded(row), row["type"]) for row in rows)
    return InvalidValueError(complaints, malformed=any(row["type"] == "json_invalid" for row in rows))


def _worded(row: Mapping[str, Any]) -> str:
    raised = row.get("ctx", {}).get("error")
    return str(raised) if isinstance(raised, Exception) else str(row["msg"])


class PydanticValidator(Generic[T]):
    """Validates with pydantic in strict JSON mode: `"2"` is no number, a date is a string in ISO form."""

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401  (no static type says "a type expression")
        try:
            self.adapter: TypeAdapter[T] = TypeAdapter(annotation)
            self.schema = cast("dict[str, Json]", self.adapter.json_schema())
        except UNUSABLE as error:
            first = str(error).strip().split("\n")[0]
            raise InputError(f"{annotation!r} cannot be a shape: {first}") from error

    def from_json(self, text: bytes) -> T:
        """Validate JSON text in UTF-8."""
        with _Foreign():
            return self.adapter.validate_json(text, strict=True)
        raise AssertionError  # the guard above always raises

    def dump(self, value: object) -> Json:
        """Write a value as JSON data."""
        try:
            return cast(
                "Json", self.adapter.dump_python(cast("T", value), mode="json", by_alias=True, warnings="error")
            )
        except (PydanticSerializationError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"this value does not have the type of the shape: {str(error).splitlines()[0]}") from error


class FieldsValidator:
    """Judges like a type and gives the plain JSON back, not a Python value made of it."""

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401
        self.inner: PydanticValidator[Any] = PydanticValidator(annotation)
        self.schema = self.inner.schema

    def from_json(self, text: bytes) -> dict[str, Json]:
        """Validate JSON text in UTF-8."""
        self.inner.from_json(text)
        return cast("dict[str, Json]", json.loads(text))

    def dump(self, value: object) -> Json:
        """Give the plain JSON as it is, once it is judged."""
        return _dumped(self, value)


def _dumped(judge: "Validator[Json] | Validator[dict[str, Json]]", value: object) -> Json:
    try:
        judge.from_json(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError, InvalidValueError) as error:
        raise InputError(f"this value does not have the type of the shape: {error}") from error
    return cast("Json", value)


class JsonSchemaValidator:
    """Validates with the jsonschema library, which the extra `schema` brings."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        try:
            exceptions, validators = import_module("jsonschema.exceptions"), import_module("jsonschema.validators")
        except ImportError as error:
            raise ConfigError("a raw JSON Schema needs the extra `schema`: pip install 'taiwa[schema]'") from error
        self.schema = dict(schema)
        kind = validators.validator_for(self.schema, default=validators.Draft202012Validator)
        try:
            kind.check_schema(self.schema)
        except exceptions.SchemaError as error:
            raise InputError(f"not a JSON Schema: {error.message} at {error.json_path}") from error
        except RecursionError as error:
            raise InputError("schema: nested too deep") from error
        self.validator = kind(self.schema, format_checker=kind.FORMAT_CHECKER)  # what is shown is checked

    def from_json(self, text: bytes) -> Json:
        """Validate JSON text in UTF-8."""
        try:
            data: Json = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # refuses half a character, which json.loads takes
        except (ValueError, RecursionError) as error:
            raise InvalidValueError((ValidationIssue((), str(error), "json_invalid"),), malformed=True) from None
        with _Foreign():
            errors = list(self.validator.iter_errors(data))
        if errors:
            raise InvalidValueError(
                tuple(ValidationIssue(tuple(each.absolute_path), each.message, str(each.validator)) for each in errors)
            )
        return data

    def dump(self, value: object) -> Json:
        """Give the plain JSON as it is, once it is judged."""
        return _dumped(self, value)


BRACKETS = b"[]{}"

OTHERS = bytes(set(range(256)) - set(BRACKETS))

SHAPES = bytes.maketrans(b"123456789E", b"000000000e")

LONGEST_FLOAT = 309

HALF = re.compile(r"[\ud800-\udfff]")


def has_odd_numbers(raw: bytes) -> bool:
    """Tell whether JSON may hold a number that is not finite as a float; True is a suspicion, False is certain."""
    if b"NaN" in raw or b"Infinity" in raw:
        return True
    shapes = raw.translate(SHAPES)
    return b"e000" in shapes or b"e+000" in shapes or b"0" * LONGEST_FLOAT in shapes


def is_deeper(raw: bytes, depth: int) -> bool:
    """Tell whether brackets may nest deeper than `depth`; brackets in strings can make a true answer wrong, not a false one."""
    left = raw.translate(None, OTHERS)
    for _ in range(depth):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def has_duplicate_keys(raw: bytes) -> bool:
    """Tell whether an object in valid JSON has a key twice."""
    try:
        json.loads(raw, object_pairs_hook=_once)
    except _TwiceError:
        return True
    except (ValueError, RecursionError):  # what this cannot read the reader looks at closely
        return True
    return False


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _TwiceError
    return made


def depth_of(data: Json, most: int) -> int:
    """Count how many objects and lists lie in one another, up to `most` + 1."""
    level, depth = [data], 0
    while depth <= most:
        outer = [each for each in level if isinstance(each, (dict, list))]
        if not outer:
            break
        depth += 1
        level = [inner for each in outer for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def flaws(data: Json) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Give the paths of what JSON cannot say: numbers that are not finite, halves of characters."""
    todo: list[tuple[tuple[str | int, ...], Json]] = [((), data)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, float) and not isfinite(here):
            yield path, "is no number that JSON has; give a finite number, or null where it is allowed"
        elif isinstance(here, str) and (found := HALF.search(here)):
            yield path, f"holds half a character (U+{ord(found[0]):04X}); give whole characters"
        elif isinstance(here, dict):
            for key in here:
                if HALF.search(key):
                    yield path, "has a key with half a character; give whole characters"
            todo.extend(((*path, key), inner) for key, inner in reversed(here.items()))
        elif isinstance(here, list):
            todo.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(here))))
