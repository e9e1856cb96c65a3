"""Validators of JSON against a type (pydantic, JSON Schema), checks of JSON text that both leave out, and diagnostics
for a model.
"""

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from itertools import islice
from math import isfinite
from types import NoneType, TracebackType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    NotRequired,
    Required,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.errors import describe as describe_object
from taiwa.kernel.serialization import Digits, Json, is_number, objects_in, read_fraction
from taiwa.kernel.text import SURROGATE, truncate
from taiwa.kernel.wording import Wording
from taiwa.structured import ir
from taiwa.structured.ir import describe, join_names, join_or, literal, members, resolve

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema


T = TypeVar("T")


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
        if error is None:
            return
        from pydantic import ValidationError

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


@cache
def _schema_generator() -> "type[GenerateJsonSchema]":
    """Return the class that writes JSON Schemas: a class has no unknown keys, unless it sets `extra` itself, and the `Doc` of
    fields is added.
    """
    from pydantic.json_schema import GenerateJsonSchema

    class SchemaGenerator(GenerateJsonSchema):
        def model_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401  (pydantic's core schemas have no common type)
            return _of_class(super().model_schema(schema), schema)

        def dataclass_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
            return _of_class(super().dataclass_schema(schema), schema)

        def dataclass_args_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
            fields = [field for field in schema["fields"] if field.get("init", True)]
            return super().dataclass_args_schema(schema | {"fields": fields})

        def typed_dict_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401
            return _of_class(super().typed_dict_schema(schema), schema)

        def generator_schema(self, schema: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002
            # pydantic would validate its members only when they are used, after the last round of repair.
            raise TypeError("use list[…], not an Iterable or a Generator")

    return SchemaGenerator


def _of_class(written: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    cls = schema.get("cls")
    config: Mapping[str, Any] = {**schema.get("config", {}), **getattr(cls, "__pydantic_config__", {})}
    properties = written.get("properties")
    if properties is None:
        return written
    if "extra" not in config and "extra_fields_behavior" not in config:
        written.setdefault("additionalProperties", False)
    with suppress(NameError, TypeError):  # a name that only pydantic can resolve: the field gets no comment
        fields = getattr(cls, "__pydantic_fields__", {})
        for name, annotation in get_type_hints(cls, include_extras=True).items():
            field = fields.get(name)
            add_comments(
                properties.get(field.validation_alias if field and field.validation_alias else name, {}), annotation
            )
    return written


def _require_tags(schema: dict[str, Json]) -> None:
    """Require the discriminators of unions, which pydantic does not read from their defaults."""
    for part in objects_in(schema):
        tag, options = part.get("discriminator"), part.get("oneOf")
        for option in options if isinstance(options, list) and isinstance(tag, dict) and "propertyName" in tag else ():
            target = cast("dict[str, Any]", option)
            if "$ref" in target:
                target = cast("dict[str, Any]", schema["$defs"])[target["$ref"].rpartition("/")[2]]
            name, required = cast("dict[str, Any]", tag)["propertyName"], target.get("required", [])
            if name in target.get("properties", {}) and name not in required:
                target["required"] = [name, *required]


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
    classes = (part for part in objects_in(schema) if isinstance(part.get("properties"), dict))
    return all(part.get("additionalProperties") is False for part in classes)


def _refuse_calls(part: object) -> None:
    """Check that validation calls nothing that the data chooses the arguments of: pydantic calls a function that stands for a type
    with the data, and imports the module that an `ImportString` names.

    Raises:
        TypeError: it does.
    """
    if isinstance(part, (list, tuple)):
        for each in cast("Sequence[object]", part):
            _refuse_calls(each)
    if not isinstance(part, dict):
        return
    node = cast("dict[str, object]", part)
    kind = node.get("type")
    called = node.get("function")
    if isinstance(called, dict):
        called = cast("dict[str, object]", called).get("function")
    if kind == "call" and not isinstance(called, type):
        raise TypeError(f"{describe_object(called)} is not a type; only a tool is called (@taiwa.tool)")
    if getattr(called, "__module__", "").startswith("pydantic.") and getattr(called, "__name__", "") == "import_string":
        raise TypeError("ImportString imports what the answer names; use str")
    skipped = ("default", "metadata", "serialization") if isinstance(kind, str) else ()
    for key, inner in node.items():
        if key not in skipped:
            _refuse_calls(inner)


class _Text(str):
    """The text of a fraction in the place of the fraction."""

    __slots__ = ()


def _with_texts(data: Any) -> Any:  # noqa: ANN401  (of any type)
    if isinstance(data, (dict, list)):
        places = data.items() if isinstance(data, dict) else enumerate(data)
        copied = {key: _with_texts(each) for key, each in places}
        return copied if isinstance(data, dict) else [*copied.values()]
    return _Text(data.text) if isinstance(data, Digits) else data


def _texts(data: Any, read: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401  (of any type)
    """Yield the places of fractions that were read as texts, and not as decimals."""
    for key, each in data.items() if isinstance(data, dict) else enumerate(data):
        with suppress(LookupError, TypeError):
            if isinstance(each, _Text) and isinstance(read[key], str):
                yield data, key
            elif isinstance(each, (dict, list)):
                yield from _texts(each, read[key])


def _at(root: list[Json], path: tuple[str | int, ...]) -> tuple[Any, str | int]:
    """Return the container in the list of the data, and the key or index, that a path of an issue leads to."""
    holder: Any = root
    key: str | int = 0
    for step in path:
        inner = cast("Json", holder[key])
        # A step may name a branch of a union, which is not in the data.
        if (isinstance(inner, dict) and step in inner) or (isinstance(inner, list) and step in range(len(inner))):
            holder, key = inner, step
    return holder, key


def _with_integers(text: bytes, issues: tuple[ValidationIssue, ...]) -> bytes | None:
    """Return JSON text in which whole numbers such as `3.0` are integers where integers were missing; None if there is none.

    In JSON Schema a number without a fraction is an integer.
    """
    places = [issue.path for issue in issues if issue.code == "int_type"]
    if not places:
        return None
    root: list[Any] = [json.loads(text, parse_float=Decimal)]
    changed = False
    for path in places:
        holder, key = _at(root, path)
        if (whole := _whole(holder[key])) is not None:
            holder[key], changed = whole, True
    return json.dumps(root[0], ensure_ascii=False, default=float).encode() if changed else None


def _whole(number: object) -> int | None:
    """Return a fraction of the value of a whole number as an integer."""
    exact = Decimal(number) if isinstance(number, (Decimal, float, _Text)) else Decimal("NaN")
    is_whole = exact.is_finite() and exact.adjusted() < MOST_DIGITS and exact == exact.to_integral_value()
    return int(exact) if is_whole else None


MOST_DIGITS = 400
"""Digits of an integer that is written with an exponent."""
MOST_TRIES = 3


class PydanticValidator(Generic[T]):
    """Validates with pydantic in strict JSON mode: `"2"` is not a number, a date is an ISO 8601 string, `3.0` is an integer.

    An unknown key is invalid, as in TypeScript's object literals, unless the class sets `extra` itself.
    """

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401  (no static type says "a type expression")
        from pydantic import PydanticUserError, TypeAdapter
        from pydantic_core import SchemaError

        if isinstance(
            annotation, Mapping
        ):  # pydantic would take it for the inner form of a type, which can call functions
            raise InputError("a dict cannot be an output type: for a JSON Schema use OutputType.from_json_schema(…)")
        refusals = (NameError, TypeError, ValueError, AttributeError, RecursionError, SyntaxError)
        try:
            self.adapter: TypeAdapter[T] = TypeAdapter(with_bases_resolved(annotation))
            _refuse_calls(self.adapter.core_schema)
            self.schema = cast("dict[str, Json]", self.adapter.json_schema(schema_generator=_schema_generator()))
            if "propertyNames" in str(self.schema):
                from taiwa.json_schema import name_keys

                self.schema = name_keys(self.schema, numbers_as_text=True)
            if "discriminator" in str(self.schema):
                _require_tags(self.schema)
            add_comments(self.schema, annotation)
            self.checks_keys = _is_closed(self.schema)
            self._has_decimals = "'type': 'decimal'" in str(self.adapter.core_schema)
        except (PydanticUserError, SchemaError, *refusals) as error:
            first = str(error).strip().split("\n")[0]
            if isinstance(error, PydanticUserError) and error.code == REFUSED:
                first = TAKE_OTHER
            elif isinstance(annotation, str) or first.startswith("Unable to generate"):
                first = "use a dataclass, a pydantic model, a TypedDict, an enum, or a type made of those and JSON's"
            raise InputError(f"{describe_object(annotation)} cannot be an output type: {first}") from error

    def from_json(self, text: bytes) -> T:
        """Validate JSON text in UTF-8."""
        if self._has_decimals:
            with suppress(ValueError, RecursionError):
                return self.from_data(json.loads(text, parse_float=read_fraction), text)
        return self.read(text)[0]

    def from_data(self, data: Json, text: bytes) -> T:
        """Validate the data of a JSON text; a decimal has the digits of its fraction."""
        found = self._with_digits(data)
        return self.read(text)[0] if found is None else found[0]

    def _with_digits(self, data: Json) -> tuple[T, Json] | None:
        """Return the value of data, and the data with the text of each decimal; None if that needs no texts, or is not valid."""
        root = [_with_texts(data)] if self._has_decimals else []
        for _ in range(MOST_TRIES if root else 0):  # texts become decimals; elsewhere they are numbers again
            try:
                value = self._validate(json.dumps(root[0], ensure_ascii=False).encode())
                plain = [self.adapter.dump_python(value, by_alias=True)]
                issues = [(*place, "") for place in _texts(root, plain)]
                if not issues:
                    return value, root[0]
            except InvalidValueError as error:
                issues = [(*_at(root, issue.path), issue.code) for issue in error.issues]
            changes = False
            for holder, key, code in issues:
                whole = _whole(holder[key]) if code == "int_type" else None
                if whole is not None or isinstance(holder[key], _Text):
                    holder[key], changes = float(holder[key]) if whole is None else whole, True
            if not changes:
                break
        return None

    def read(self, text: bytes) -> tuple[T, bytes]:
        """Validate JSON text in UTF-8; return the value, and the text with `3` where it has `3.0` for an integer."""
        try:
            return self._validate(text), text
        except InvalidValueError as error:
            whole = _with_integers(text, error.issues)
            if whole is None:
                raise
        return self._validate(whole), whole

    def _validate(self, text: bytes) -> T:
        with _InvalidOnError():
            return self.adapter.validate_json(text, strict=True, extra="forbid" if self.checks_keys else None)

    def dump(self, value: object) -> Json:
        """Return a value as JSON data."""
        from pydantic_core import PydanticSerializationError

        try:
            return cast(
                "Json", self.adapter.dump_python(cast("T", value), mode="json", by_alias=True, warnings="error")
            )
        except (PydanticSerializationError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"the value does not have the output type: {str(error).splitlines()[0]}") from error


class FieldsValidator(PydanticValidator[Json]):
    """Validates like `PydanticValidator`, but the value is the plain JSON."""

    def from_json(self, text: bytes) -> Json:
        """Validate JSON text in UTF-8; a decimal is its text."""
        with suppress(ValueError, RecursionError):
            return self.from_data(json.loads(text, parse_float=read_fraction), text)
        return cast("Json", json.loads(self.read(text)[1]))

    def from_data(self, data: Json, text: bytes) -> Json:
        """Validate the data of a JSON text."""
        found = self._with_digits(data)
        if found is not None:
            return found[1]
        return cast("Json", json.loads(self.read(text)[1], parse_float=read_fraction))

    def dump(self, value: object) -> Json:
        """Return plain JSON unchanged if it is valid."""
        try:
            self.from_json(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
        except (ValueError, TypeError, RecursionError, InvalidValueError) as error:
            raise InputError(f"the value does not have the output type: {error}") from error
        return cast("Json", value)


class JsonSchemaValidator(FieldsValidator):
    """Validates in a bounded process, with the jsonschema library; the value is the plain JSON."""

    def __init__(self, schema: Mapping[str, Json]) -> None:
        from taiwa.json_schema import check_bounds, from_openapi
        from taiwa.structured.schema_process import ask

        self.checks_keys = True
        check_bounds(schema)
        self.schema = dict(schema) if "$schema" in schema else from_openapi(schema)
        self._text = json.dumps(self.schema)
        ask({"schema": self._text})

    def from_data(self, data: Json, text: bytes) -> Json:  # noqa: ARG002  (the signature of the class)
        """Validate the data of a JSON text."""
        return self.from_json(text)

    def from_json(self, text: bytes) -> Json:
        """Validate JSON text in UTF-8.

        Raises:
            InputError: it takes too much time or memory.
        """
        from taiwa.structured.schema_process import ask

        try:
            data: Json = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # raises for a lone surrogate, which json.loads accepts
        except (ValueError, RecursionError) as error:
            raise InvalidValueError((ValidationIssue((), str(error), "json_invalid"),), malformed=True) from None
        issues = ask({"schema": self._text, "text": text.decode()})["issues"]
        if issues:
            raise InvalidValueError(
                tuple(
                    ValidationIssue(tuple(path), message, code)
                    for path, message, code in cast("list[tuple[list[str | int], str, str]]", issues)
                )
            )
        return data


BRACKETS = b"[]{}"
NOT_BRACKETS = bytes(set(range(256)) - set(BRACKETS))
DIGITS_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
MAX_FLOAT_DIGITS = 309


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
    """Yield path and description of values that JSON cannot express: non-finite numbers, lone surrogates, other objects."""
    todo: list[tuple[tuple[str | int, ...], Json]] = [((), data)]
    while todo:
        path, here = todo.pop()
        if isinstance(here, float) and not isfinite(here):
            yield path, "is not a JSON number; use a finite number, or null where it is allowed"
        elif isinstance(here, str) and (surrogate := SURROGATE.search(here)):
            yield path, f"contains half a character (U+{ord(surrogate[0]):04X}); use whole characters"
        elif isinstance(here, dict):
            for key in here:
                if not isinstance(key, str):  # of a caller without types
                    yield path, f"has the key {key!r}, which is not a text"
                elif SURROGATE.search(key):
                    yield path, "has a key with half a character; use whole characters"
            todo.extend(((*path, key), inner) for key, inner in reversed(here.items()))
        elif isinstance(here, list):
            todo.extend(((*path, index), inner) for index, inner in reversed(list(enumerate(here))))
        elif not isinstance(here, (str, int, float, NoneType)):
            yield path, f"is not JSON but {type(here).__name__}"


REFUSED = "typed-dict-version"
"""The code of pydantic's error."""
TAKE_OTHER = (
    "on Python 3.11 a TypedDict of typing loses its type parameters and its bases, so one that is generic, refers to itself, or "
    "is a field of a dataclass must come from typing_extensions"
)


def with_bases_resolved(annotation: Any, within: tuple[type, ...] = ()) -> Any:  # noqa: ANN401  (no static type says "a type expression")
    """Return an annotation with each `typing.TypedDict` as one of typing_extensions that has the same keys.

    The class that declares a key, or its `Required` or `NotRequired`, determines whether it is required.

    Raises:
        InputError: a TypedDict has a generic base, whose argument is lost.
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
    """Create a TypedDict of typing_extensions with the keys of one of typing, including inherited ones."""
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


# --- diagnostics ------------------------------------------------------------------------------------------------------
# Diagnostics: where data does not match a type, one line per path.
#
# A walk over the type finds the mismatches that a model can repair; problems that only the validator knows follow.

Path: TypeAlias = tuple[str | int, ...]

MAX_MISMATCHES = 1_000
MAX_STEPS = 50_000
MAX_STEPS_OF_A_CHOICE = 500


@dataclass(frozen=True, slots=True)
class TypeMismatch:
    """A path where data does not match; `branch` names the member of a union that the data was matched with."""

    path: Path
    code: str
    expected: str
    got: Json = None
    branch: str = ""
    missing: tuple[str, ...] = ()
    """The missing keys of an object with an unknown key."""


@dataclass(slots=True)
class _Walk:
    type_ir: ir.TypeIR
    steps: int = MAX_STEPS
    is_open: Callable[[Json], bool] = lambda _: False
    """Whether data stands for a value that is not known yet, and so matches anything."""

    def mismatches(self, node: ir.Node, data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        self.steps -= 1
        if self.steps < 0 or self.is_open(data):
            return
        options = members(node, self.type_ir)
        if len(options) != 1 or isinstance(node, ir.UnionNode):
            yield from self.union(options, data, path, branch)
            return
        only = options[0]
        if isinstance(only, ir.ObjectNode) and isinstance(data, dict):
            yield from self.object(only, data, path, branch)
        elif isinstance(only, ir.ArrayNode) and isinstance(data, list):
            yield from self.array(only, data, path, branch)
        elif not _fits(only, data):
            name = node.name if isinstance(node, ir.RefNode) else ""
            yield TypeMismatch(path, "value", describe(only, name), data, branch)

    def object(self, node: ir.ObjectNode, data: dict[str, Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        for each in node.properties:
            if each.name in data:
                yield from self.mismatches(each.node, data[each.name], (*path, each.name), branch)
            elif each.required:
                name = each.node.name if isinstance(each.node, ir.RefNode) else ""
                expected = describe(resolve(each.node, self.type_ir), name)
                yield TypeMismatch((*path, each.name), "missing", expected, None, branch)
        known = {each.name: each for each in node.properties}
        for key, inner in data.items():
            if key in known or node.extra is None:
                continue
            if isinstance(node.extra, ir.NeverNode):
                missing = tuple(name for name in known if name not in data)
                expected = f"the keys are {join_names(known)}" if known else "no keys are allowed"
                yield TypeMismatch((*path, key), "unknown", expected, inner, branch, missing)
            else:
                yield from self.mismatches(node.extra, inner, (*path, key), branch)
        if not _is_size(len(data), node.min_properties, node.max_properties):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def array(self, node: ir.ArrayNode, data: list[Json], path: Path, branch: str) -> Iterator[TypeMismatch]:
        closed = isinstance(node.items, ir.NeverNode)
        low = max(node.min_items, len(node.prefix) if closed else 0)
        high = len(node.prefix) if closed else node.max_items
        if not _is_size(len(data), low, high):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)
        for index, item in enumerate(data):
            if index < len(node.prefix):
                yield from self.mismatches(node.prefix[index], item, (*path, index), branch)
            elif not closed:
                yield from self.mismatches(node.items, item, (*path, index), branch)
        if node.unique and any(item in data[:index] for index, item in enumerate(data[:100])):
            yield TypeMismatch(path, "size", describe(node), len(data), branch)

    def union(self, options: tuple[ir.Node, ...], data: Json, path: Path, branch: str) -> Iterator[TypeMismatch]:
        unmatched = self.unmatched_tag(options, data)
        if unmatched is not None:
            tag, expected = unmatched
            code = "value" if isinstance(data, dict) and tag in data else "missing"
            yield TypeMismatch((*path, tag), code, expected, data.get(tag) if isinstance(data, dict) else None, branch)
            return
        chosen = self.choose(options, data)
        if chosen is None:
            words = list(dict.fromkeys(describe(each, self.name(each)) for each in options))
            yield TypeMismatch(path, "value", join_or(words), data, branch)
        else:
            name = self.name(chosen)
            several = sum(_kind(each, data) for each in options) > 1
            yield from self.mismatches(chosen, data, path, name if several and name else branch)

    def unmatched_tag(self, options: tuple[ir.Node, ...], data: Json) -> tuple[str, str] | None:
        """Return the discriminator of a union of objects and its values, if data has none of these values."""
        objects = [each for each in options if isinstance(each, ir.ObjectNode)]
        if not isinstance(data, dict) or len(objects) < 2:
            return None
        for each in objects[0].properties:
            same = [other.get(each.name) for other in objects]
            nodes = [resolve(one.node, self.type_ir) for one in same if one is not None and one.required]
            tags = [node for node in nodes if isinstance(node, ir.LiteralNode)]
            if len(tags) == len(objects) and all(data.get(each.name) not in node.values for node in tags):
                return each.name, describe(ir.LiteralNode(tuple(value for node in tags for value in node.values)))
        return None

    def choose(self, options: tuple[ir.Node, ...], data: Json) -> ir.Node | None:
        """Choose a branch by its literals, then by common keys, then by the number of mismatches."""
        fitting = [each for each in options if _kind(each, data)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        scores = [self.overlap(each, data) for each in fitting]
        best = max(scores)
        close = [each for each, score in zip(fitting, scores, strict=True) if score == best]
        if len(close) == 1:
            return close[0]
        counts = [sum(1 for _ in self.mismatches(each, data, (), "")) for each in close]
        return close[counts.index(min(counts))]

    def overlap(self, node: ir.Node, data: Json) -> tuple[int, int]:
        if not isinstance(node, ir.ObjectNode) or not isinstance(data, dict):
            return (0, int(isinstance(node, ir.LiteralNode) and data in node.values))
        tags = 0
        for each in node.properties:
            inner = resolve(each.node, self.type_ir)
            if isinstance(inner, ir.LiteralNode) and each.name in data:
                tags += 1 if data[each.name] in inner.values else -1
        known = {each.name for each in node.properties}
        common = sum(key in known for key in data)
        lacking = sum(each.required and each.name not in data for each in node.properties)
        return (tags, 2 * common - lacking)

    def name(self, node: ir.Node) -> str:
        return next((name for name, named in self.type_ir.named.items() if named is node), "")


def find_mismatches(
    type_ir: ir.TypeIR, data: Json, node: ir.Node | None = None, is_open: Callable[[Json], bool] = lambda _: False
) -> list[TypeMismatch]:
    """Return the mismatches of data, at most a thousand; what `is_open` matches anything."""
    walk = _Walk(type_ir, is_open=is_open)
    return list(islice(walk.mismatches(type_ir.root if node is None else node, data, (), ""), MAX_MISMATCHES))


def branch(type_ir: ir.TypeIR, node: ir.Node, data: Json) -> ir.Node:
    """Return the member of a node that data most likely stands for; the first member if none is of its kind."""
    options = members(node, type_ir)
    return _Walk(type_ir, MAX_STEPS_OF_A_CHOICE).choose(options, data) or options[0]


def branch_name(type_ir: ir.TypeIR, node: ir.Node, data: Json) -> str:
    """Return the name of the member that data most likely stands for, or ''."""
    return _Walk(type_ir).name(branch(type_ir, node, data))


def node_at(type_ir: ir.TypeIR, data: Json, path: Path) -> ir.Node | None:
    """Return the node of a path of data; None if the type does not describe the path."""
    node: ir.Node = type_ir.root
    for part in path:
        chosen = branch(type_ir, node, data)
        if isinstance(chosen, ir.ObjectNode) and isinstance(part, str):
            named = chosen.get(part)
            inner = named.node if named else chosen.extra
            data = data.get(part) if isinstance(data, dict) else None
        elif isinstance(chosen, ir.ArrayNode) and isinstance(part, int):
            inner = chosen.prefix[part] if part < len(chosen.prefix) else chosen.items
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            return None
        if inner is None:
            return None
        node = inner
    return node


DATA_TYPES: dict[type, type] = {
    ir.AnyNode: object,
    ir.NullNode: NoneType,
    ir.BoolNode: bool,
    ir.StringNode: str,
    ir.ArrayNode: list,
    ir.ObjectNode: dict,
}


def _kind(node: ir.Node, data: Json) -> bool:
    """Return whether data has the JSON type of a node, ignoring constraints."""
    if isinstance(node, ir.LiteralNode):
        return any(
            isinstance(data, type(value)) and isinstance(data, bool) == isinstance(value, bool) for value in node.values
        )
    if isinstance(node, ir.NumberNode):
        return is_number(data)
    return isinstance(data, DATA_TYPES.get(type(node), ()))


def _fits(node: ir.Node, data: Json) -> bool:
    if isinstance(node, ir.LiteralNode):
        return any(value == data and isinstance(value, bool) == isinstance(data, bool) for value in node.values)
    if not _kind(node, data):
        return False
    if isinstance(node, ir.StringNode) and isinstance(data, str):
        return node.min_length <= len(data) and (node.max_length is None or len(data) <= node.max_length)
    if isinstance(node, ir.NumberNode) and isinstance(data, (int, float)):
        return _in_range(node, data)
    return True


def _has_rule(node: ir.Node) -> bool:
    """Return whether the description of a node states a rule that `_fits` does not check."""
    is_rule = isinstance(node, ir.StringNode) and (node.pattern or node.format)
    return bool(is_rule or (isinstance(node, ir.NumberNode) and node.multiple_of))


def _in_range(node: ir.NumberNode, data: int | float) -> bool:
    if node.integer and isinstance(data, float) and not data.is_integer():  # validators differ about 5.0
        return False
    if node.minimum is not None and (data <= node.minimum if node.exclusive_minimum else data < node.minimum):
        return False
    return not (node.maximum is not None and (data >= node.maximum if node.exclusive_maximum else data > node.maximum))


def _is_size(size: int, low: int, high: int | None) -> bool:
    return low <= size and (high is None or size <= high)


MAX_LINES = 12
MAX_VALUE_CHARS = 60
MAX_TEXT_CHARS = 200
CUSTOM = ("value_error", "assertion_error", "validator")
"""Codes of issues whose text was written by the author of a validator; other texts are replaced."""


def diagnostics(
    type_ir: ir.TypeIR,
    data: Json,
    issues: tuple[ValidationIssue, ...] = (),
    is_open: Callable[[Json], bool] = lambda _: False,
) -> tuple[str, ...]:
    """Return the diagnostics of data: at most twelve lines, and a count of the rest.

    Mismatches with the type come first, then issues that only the validator finds (patterns, formats, functions).
    """
    mismatches = find_mismatches(type_ir, data, is_open=is_open)
    known = {mismatch.path[:-1] for mismatch in mismatches if mismatch.code == "unknown"}
    # Keys that no pattern of their object allows; what their values should be is not known.
    refused = {issue.path: issue.text for issue in issues if issue.code == "additionalProperties"}
    refused = {path: text for path, text in refused.items() if path not in known}
    mismatches = [
        each for each in mismatches if not each.path or repr(each.path[-1]) not in refused.get(each.path[:-1], "")
    ]
    lines = [_line(mismatch, suggest=at < MAX_LINES) for at, mismatch in enumerate(mismatches)]
    lines += _issue_lines(type_ir, data, issues, {mismatch.path for mismatch in mismatches}, refused)
    lines = list(dict.fromkeys(lines))
    if len(lines) > MAX_LINES:
        return (*lines[:MAX_LINES], f"… and {len(lines) - MAX_LINES} more")
    return tuple(lines)


def pointer(path: Path) -> str:
    """Render a path: `$.items[0]["odd key"]`."""
    text = "$"
    for part in path:
        if isinstance(part, str) and part.isidentifier() and len(part) <= MAX_VALUE_CHARS:
            text += f".{part}"
        else:
            text += f"[{part if isinstance(part, int) else truncate(literal(part), MAX_VALUE_CHARS)}]"
    return text


def _line(mismatch: TypeMismatch, *, suggest: bool) -> str:
    branch = f" (read as {truncate(mismatch.branch, MAX_VALUE_CHARS)})" if mismatch.branch else ""
    where = pointer(mismatch.path)
    if mismatch.code == "missing":
        return f"{where}: missing ({truncate(mismatch.expected, MAX_TEXT_CHARS)}){branch}"
    if mismatch.code == "size":
        return f"{where}: has {mismatch.got}, must be {truncate(mismatch.expected, MAX_TEXT_CHARS)}{branch}"
    expected = f"{truncate(mismatch.expected, MAX_TEXT_CHARS)}{branch}"
    problem: str = Wording("must be {type}", type=expected)
    if mismatch.code == "unknown":
        near = get_close_matches(str(mismatch.path[-1])[:MAX_VALUE_CHARS], mismatch.missing, 1) if suggest else []
        problem = f"no key here; did you mean {join_names(near)}? " if near else "no key here; "
        problem += expected
    return Wording("{place} = {value}: {problem}", place=where, value=_value_text(mismatch.got), problem=problem)


def _value_text(value: Json) -> str:
    if isinstance(value, list) and value:
        return f"[…] ({len(value)} items)"
    if isinstance(value, dict) and value:
        return f"{{…}} ({', '.join(truncate(literal(key), 20) for key in list(value)[:3])}{', …' if len(value) > 3 else ''})"
    if isinstance(value, str):
        return truncate(literal(value[: MAX_VALUE_CHARS + 1]), MAX_VALUE_CHARS)
    return truncate(literal(value), MAX_VALUE_CHARS)


def _issue_lines(
    type_ir: ir.TypeIR, data: Json, issues: tuple[ValidationIssue, ...], known: set[Path], refused: Collection[Path]
) -> list[str]:
    """Render the issues at paths without a mismatch, and of keys that are `refused` at any."""
    lines: list[str] = []
    unsure: list[str] = []
    above = {path[:depth] for path in known for depth in range(len(path) + 1)}
    for issue in issues:
        path, meant = _data_path(type_ir, data, issue.path)
        reported = path in above and not (issue.code == "additionalProperties" and path in refused)
        reported = reported or any(path[:depth] in known for depth in range(len(path)))
        if reported or (known and not meant):
            continue
        node = node_at(type_ir, data, path)
        here = value_at(data, path)
        text = issue.text
        if issue.code not in CUSTOM and node is not None:
            chosen = branch(type_ir, node, here)
            if not _fits(chosen, here) or _has_rule(chosen):  # else "must be an object" would say nothing
                text = f"must be {describe(chosen, branch_name(type_ir, node, here))}"
        line = f"{pointer(path)} = {_value_text(here)}: {truncate(ir.CONTROL.sub(' ', text), MAX_TEXT_CHARS)}"
        (lines if meant and node is not None else unsure).append(line)
    return lines or unsure


def _data_path(type_ir: ir.TypeIR, data: Json, path: Path) -> tuple[Path, bool]:
    """Drop the names of union branches from a path; also return whether data most likely stands for these branches."""
    steps: list[str | int] = []
    meant = True
    for part in path:
        here = value_at(data, tuple(steps))
        if (
            (part in here)
            if isinstance(here, dict)
            else isinstance(here, list) and isinstance(part, int) and part < len(here)
        ):
            steps.append(part)
        else:
            node = node_at(type_ir, data, tuple(steps))
            tagged = isinstance(here, dict) and part in here.values()
            meant = meant and node is not None and (tagged or branch_name(type_ir, node, here) == part)
    return tuple(steps), meant


def value_at(data: Json, path: Path) -> Json:
    """Return the part of data at an existing path."""
    for part in path:
        if isinstance(data, dict):
            data = data[str(part)]
        elif isinstance(data, list):
            data = data[int(part)]
    return data
