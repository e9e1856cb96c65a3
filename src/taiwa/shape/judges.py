"""Who decides whether JSON has the wanted type: pydantic for Python types, jsonschema for a raw schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, SchemaError

from taiwa.kernel import ConfigError, InputError, Json, TaiwaError

__all__ = ["Complaint", "FieldsJudge", "Judge", "MisfitError", "SchemaJudge", "TypeJudge"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

UNUSABLE = (PydanticUserError, SchemaError, NameError, TypeError, ValueError, AttributeError, RecursionError)
"""What pydantic raises for a type that it cannot take."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One fault as the judge words it; `path` may hold names of union branches beside keys and indices."""

    path: tuple[str | int, ...]
    text: str
    code: str = ""


class MisfitError(Exception):
    """The JSON does not have the type. `malformed` means that it is not JSON at all."""

    def __init__(self, complaints: tuple[Complaint, ...], *, malformed: bool = False) -> None:
        super().__init__("; ".join(complaint.text for complaint in complaints))
        self.complaints = complaints
        self.malformed = malformed


class Judge(Protocol[T_co]):
    """Decides, and never coerces: JSON text in, the value out, or `MisfitError`."""

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
        if isinstance(error, Exception) and not isinstance(error, (TaiwaError, MisfitError)):
            text = f"a validator raised {type(error).__name__}: {error}"
            raise MisfitError((Complaint((), text, "validator"),)) from error


def _invalid(error: ValidationError) -> MisfitError:
    rows = error.errors(include_url=False, include_input=False)
    complaints = tuple(Complaint(row["loc"], _worded(row), row["type"]) for row in rows)
    return MisfitError(complaints, malformed=any(row["type"] == "json_invalid" for row in rows))


def _worded(row: Mapping[str, Any]) -> str:
    raised = row.get("ctx", {}).get("error")
    return str(raised) if isinstance(raised, Exception) else str(row["msg"])


class TypeJudge(Generic[T]):
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


class FieldsJudge:
    """Judges like a type and gives the plain JSON back, not a Python value made of it."""

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401
        self.inner: TypeJudge[Any] = TypeJudge(annotation)
        self.schema = self.inner.schema

    def from_json(self, text: bytes) -> dict[str, Json]:
        """Validate JSON text in UTF-8."""
        self.inner.from_json(text)
        return cast("dict[str, Json]", json.loads(text))

    def dump(self, value: object) -> Json:
        """Give the plain JSON as it is, once it is judged."""
        return _dumped(self, value)


def _dumped(judge: "Judge[Json] | Judge[dict[str, Json]]", value: object) -> Json:
    try:
        judge.from_json(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, TypeError, RecursionError, MisfitError) as error:
        raise InputError(f"this value does not have the type of the shape: {error}") from error
    return cast("Json", value)


class SchemaJudge:
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
            raise MisfitError((Complaint((), str(error), "json_invalid"),), malformed=True) from None
        with _Foreign():
            errors = list(self.validator.iter_errors(data))
        if errors:
            raise MisfitError(
                tuple(Complaint(tuple(each.absolute_path), each.message, str(each.validator)) for each in errors)
            )
        return data

    def dump(self, value: object) -> Json:
        """Give the plain JSON as it is, once it is judged."""
        return _dumped(self, value)
