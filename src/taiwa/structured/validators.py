"""Validators of JSON against a type (pydantic, jsonschema), and checks of JSON text that both leave out."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from types import NoneType, TracebackType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError
from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError, TaiwaError, describe
from taiwa.kernel.records import Json

T = TypeVar("T")

ANNOTATION_ERRORS = (
    PydanticUserError,
    SchemaError,
    NameError,
    TypeError,
    ValueError,
    AttributeError,
    RecursionError,
    SyntaxError,
)
"""What pydantic raises for an annotation that it does not support."""


@dataclass(frozen=True, slots=True)
class ValidationIssue:
    """One problem in the words of the validator; `path` may contain names of union branches beside keys and indices."""

    path: tuple[str | int, ...]
    text: str
    code: str = ""


class InvalidValueError(Exception):
    """The JSON does not have the type; if `malformed`, the text is not JSON."""

    def __init__(self, issues: tuple[ValidationIssue, ...], *, malformed: bool = False) -> None:
        super().__init__("; ".join(issue.text for issue in issues))
        self.issues = issues
        self.malformed = malformed


class _InvalidOnError:
    """Raise `InvalidValueError` for any exception of a validator, the user's own functions included."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, ValidationError):
            details = error.errors(include_url=False, include_input=False)
            raised = [detail.get("ctx", {}).get("error") for detail in details]
            issues = tuple(
                ValidationIssue(each["loc"], str(own) if isinstance(own, Exception) else each["msg"], each["type"])
                for each, own in zip(details, raised, strict=True)
            )
            raise InvalidValueError(issues, malformed=any(issue.code == "json_invalid" for issue in issues)) from None
        if isinstance(error, Exception) and not isinstance(error, (TaiwaError, InvalidValueError)):
            text = f"a validator raised {type(error).__name__}: {error}"
            raise InvalidValueError((ValidationIssue((), text, "validator"),)) from error


class _SchemaGenerator(GenerateJsonSchema):
    """Writes that a class has no keys but its own, unless it sets `extra` itself, and what `Doc` says of a field."""

    def model_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401  (pydantic's core schemas have no common type)
        """Write a pydantic model."""
        return _of_class(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Write a dataclass."""
        return _of_class(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
        """Write a TypedDict."""
        return _of_class(super().typed_dict_schema(schema), schema)


def _of_class(written: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    cls = schema.get("cls")
    config: Mapping[str, Any] = {**schema.get("config", {}), **getattr(cls, "__pydantic_config__", {})}
    properties = written.get("properties")
    if properties is None:
        return written
    if "extra" not in config and "extra_fields_behavior" not in config:
        written.setdefault("additionalProperties", False)
    with suppress(NameError, TypeError):  # a name that only pydantic can resolve: the field stays without a comment
        fields = getattr(cls, "__pydantic_fields__", {})
        for name, annotation in get_type_hints(cls, include_extras=True).items():
            field = fields.get(name)
            add_comments(
                properties.get(field.validation_alias if field and field.validation_alias else name, {}), annotation
            )
    return written


def add_comments(schema: dict[str, Any], annotation: object) -> None:
    """Add the comments of an annotation, `Doc("…")` or a text in `Annotated`, to its schema as descriptions."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        comments = [getattr(mark, "documentation", mark) for mark in arguments[1:]]
        for comment in comments:
            if isinstance(comment, str):
                schema.setdefault("description", comment)
    if origin in (Annotated, NotRequired, Required):
        add_comments(schema, arguments[0])
    elif origin in (Union, UnionType):
        parts = schema.get("anyOf", ())
        for part, argument in zip(parts, arguments, strict=False) if len(parts) == len(arguments) else ():
            add_comments(part, argument)
    elif isinstance(schema.get("items"), dict):
        add_comments(schema["items"], arguments[0] if arguments else None)
    elif isinstance(schema.get("additionalProperties"), dict):
        add_comments(schema["additionalProperties"], arguments[-1] if arguments else None)


def _is_closed(schema: Json) -> bool:
    """Return whether no class of a schema accepts keys that it does not name."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    is_class = isinstance(schema.get("properties"), dict)
    return not (is_class and schema.get("additionalProperties") is not False) and all(map(_is_closed, schema.values()))


class PydanticValidator(Generic[T]):
    """Validates with pydantic in strict JSON mode: `"2"` is not a number, a date is an ISO 8601 string.

    A key that no field has is invalid, as in TypeScript's object literals, unless the class sets `extra` itself.
    """

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401  (no static type says "a type expression")
        try:
            self.adapter: TypeAdapter[T] = TypeAdapter(with_bases_resolved(annotation))
            self.schema = cast("dict[str, Json]", self.adapter.json_schema(schema_generator=_SchemaGenerator))
            add_comments(self.schema, annotation)
            self.checks_keys = _is_closed(self.schema)
        except ANNOTATION_ERRORS as error:
            first = str(error).strip().split("\n")[0]
            if isinstance(error, PydanticUserError) and error.code == REFUSED:
                first = TAKE_OTHER
            elif isinstance(annotation, str) or first.startswith("Unable to generate"):
                first = "use a dataclass, a pydantic model, a TypedDict, an enum, or a type made of those and JSON's"
            raise InputError(f"{describe(annotation)} cannot be an output type: {first}") from error

    def from_json(self, text: bytes) -> T:
        """Validate JSON text in UTF-8."""
        with _InvalidOnError():
            return self.adapter.validate_json(text, strict=True, extra="forbid" if self.checks_keys else None)

    def dump(self, value: object) -> Json:
        """Return a value as JSON data."""
        try:
            return cast(
                "Json", self.adapter.dump_python(cast("T", value), mode="json", by_alias=True, warnings="error")
            )
        except (PydanticSerializationError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"the value does not have the output type: {str(error).splitlines()[0]}") from error


class FieldsValidator(PydanticValidator[Json]):
    """Validates like `PydanticValidator`, but the value is the plain JSON."""

    def from_json(self, text: bytes) -> Json:
        """Validate JSON text in UTF-8."""
        super().from_json(text)
        return cast("Json", json.loads(text))

    def dump(self, value: object) -> Json:
        """Return plain JSON unchanged if it is valid."""
        try:
            self.from_json(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except (ValueError, TypeError, RecursionError, InvalidValueError) as error:
            raise InputError(f"the value does not have the output type: {error}") from error
        return cast("Json", value)


class JsonSchemaValidator(FieldsValidator):
    """Validates with the jsonschema library; the value is the plain JSON."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        self.checks_keys = True
        exceptions, validators = import_module("jsonschema.exceptions"), import_module("jsonschema.validators")
        self.schema = dict(schema)
        validator_class = validators.validator_for(self.schema, default=validators.Draft202012Validator)
        try:
            validator_class.check_schema(self.schema)
        except exceptions.SchemaError as error:
            raise InputError(f"not a JSON Schema: {error.message} at {error.json_path}") from error
        except RecursionError as error:
            raise InputError("schema: nested too deep") from error
        # formats are rendered for the model, so they are checked as well
        self.validator = validator_class(self.schema, format_checker=validator_class.FORMAT_CHECKER)

    def from_json(self, text: bytes) -> Json:
        """Validate JSON text in UTF-8."""
        try:
            data: Json = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # raises for a lone surrogate, which json.loads accepts
        except (ValueError, RecursionError) as error:
            raise InvalidValueError((ValidationIssue((), str(error), "json_invalid"),), malformed=True) from None
        with _InvalidOnError():
            errors = list(self.validator.iter_errors(data))
        if errors:
            raise InvalidValueError(
                tuple(ValidationIssue(tuple(each.absolute_path), each.message, str(each.validator)) for each in errors)
            )
        return data


BRACKETS = b"[]{}"
NOT_BRACKETS = bytes(set(range(256)) - set(BRACKETS))
DIGITS_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
MAX_FLOAT_DIGITS = 309
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


def has_odd_numbers(raw: bytes) -> bool:
    """Return whether JSON may contain a number that is not finite as a float; False is certain, True is not."""
    if b"NaN" in raw or b"Infinity" in raw:
        return True
    zeros = raw.translate(DIGITS_AS_ZERO)
    return b"e000" in zeros or b"e+000" in zeros or b"0" * MAX_FLOAT_DIGITS in zeros


def is_deeper(raw: bytes, depth: int) -> bool:
    """Return whether brackets may be nested deeper than `depth`; False is certain, True may be due to brackets in strings."""
    left = raw.translate(None, NOT_BRACKETS)
    for _ in range(depth):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def has_duplicate_keys(raw: bytes) -> bool:
    """Return whether an object in valid JSON repeats a key, or json.loads cannot read the JSON."""
    try:
        json.loads(raw, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError):
        return True
    return False


def unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the object of a JSON decoder; raise ValueError if it repeats a key."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("duplicate key")
    return data


def depth_of(data: Json, limit: int) -> int:
    """Return how deep objects and lists are nested, at most `limit` + 1."""
    level, depth = [data], 0
    while depth <= limit:
        containers = [each for each in level if isinstance(each, (dict, list))]
        if not containers:
            break
        depth += 1
        level = [inner for each in containers for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def not_json(data: Json) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and description of what JSON cannot express: numbers that are not finite, lone surrogates, other objects."""
    todo: list[tuple[tuple[str | int, ...], Json]] = [((), data)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, float) and not isfinite(here):
            yield path, "is not a JSON number; use a finite number, or null where it is allowed"
        elif isinstance(here, str) and (surrogate := LONE_SURROGATE.search(here)):
            yield path, f"contains half a character (U+{ord(surrogate[0]):04X}); use whole characters"
        elif isinstance(here, dict):
            for key in here:
                if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (of a caller without types)
                    yield path, f"has the key {key!r}, which is not a text"
                elif LONE_SURROGATE.search(key):
                    yield path, "has a key with half a character; use whole characters"
            todo.extend(((*path, key), inner) for key, inner in reversed(here.items()))
        elif isinstance(here, list):
            todo.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(here))))
        elif not isinstance(here, (str, int, float, NoneType)):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield path, f"is not JSON but {type(here).__name__}"


REFUSED = "typed-dict-version"
"""The code of pydantic's error."""
TAKE_OTHER = (
    "on Python 3.11 a TypedDict of typing loses its type parameters and its bases, so one that is generic, refers to itself, or "
    "is a field of a dataclass must come from typing_extensions"
)


def with_bases_resolved(annotation: Any, within: tuple[type, ...] = ()) -> Any:  # noqa: ANN401  (no static type says "a type expression")
    """Return an annotation with each `typing.TypedDict` as one of typing_extensions that has the same keys.

    Whether a key is required is that of the class which declares it, or its own `Required` and `NotRequired`.

    Raises:
        InputError: a TypedDict has a generic one as its base, whose argument is lost.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if is_typeddict(annotation) and type(annotation).__module__ == "typing":
        if annotation in within or _parameters(annotation):
            return annotation  # pydantic refuses it
        return _copied(annotation, (*within, annotation))
    arguments = get_args(annotation)
    resolved = tuple(with_bases_resolved(each, within) for each in arguments)
    if resolved == arguments:
        return annotation
    origin: Any = get_origin(annotation)
    constructor: Any = {Annotated: Annotated, UnionType: Union}.get(origin, origin)
    return constructor[resolved]


def _parameters(hint: Any) -> tuple[object, ...]:  # noqa: ANN401
    return (hint,) if isinstance(hint, TypeVar) else cast("tuple[object, ...]", getattr(hint, "__parameters__", ()))


def _copied(cls: Any, within: tuple[type, ...]) -> Any:  # noqa: ANN401
    """Make a TypedDict of typing_extensions with the keys of one of typing, inherited ones too."""
    keys: dict[str, Any] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if _parameters(hint):
            raise InputError(f"the class {cls.__name__} cannot be an output type: {TAKE_OTHER}")
        kind = get_origin(hint)
        if kind in (Required, NotRequired):
            keys[name] = kind[with_bases_resolved(get_args(hint)[0], within)]
        else:
            resolved = with_bases_resolved(hint, within)
            keys[name] = resolved if name in cls.__required_keys__ else NotRequired[resolved]
    made = cast("Any", TypedDict)(cls.__name__, keys)
    for name in ("__module__", "__qualname__", "__doc__", "__pydantic_config__"):
        if hasattr(cls, name):
            setattr(made, name, getattr(cls, name))
    return made
