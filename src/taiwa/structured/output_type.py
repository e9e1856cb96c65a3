"""`OutputType[T]`: one type that gives the prompt its text, the constraint its schema, and the answer its value."""

import json
from collections.abc import Mapping, Set
from functools import cached_property
from typing import Any, Generic, Literal, NotRequired, TypeVar, cast, overload

from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.records import Json
from taiwa.structured.from_json_schema import form_of
from taiwa.structured.ir import AnyNode, ObjectNode, Property, TypeIR, members
from taiwa.structured.parse import STANDARD, WRAP, ParseOptions, ParseResult, Target, parse_answer
from taiwa.structured.rendering import DIALECTS, ServerSchema, to_json_schema, to_typescript
from taiwa.structured.validators import (
    FieldsValidator,
    InvalidValueError,
    JsonSchemaValidator,
    PydanticValidator,
    Validator,
)

__all__ = ["OutputType"]


T = TypeVar("T")

RenderStyle = Literal["typescript", "jsonschema"]


class OutputType(Generic[T]):
    """A type that text can be read as.

    Takes whatever pydantic's `TypeAdapter` takes. A type that no JSON object can have (a number, a list, an enum) is
    `wrapped`: on the wire it is an object with the one key `value`; reading takes it bare as well.

    >>> OutputType(list[int]).read("[1, 2]").value
    [1, 2]
    """

    @overload
    def __init__(self, annotation: type[T], *, name: str = "") -> None: ...
    @overload
    def __init__(self: "OutputType[Any]", annotation: object, *, name: str = "") -> None: ...
    def __init__(self, annotation: object, *, name: str = "") -> None:
        self._set(PydanticValidator[T](annotation), name or _name(annotation))

    @classmethod
    def fields(
        cls, name: str, fields: Mapping[str, object], required: Set[str] = frozenset()
    ) -> "OutputType[dict[str, Json]]":
        """Make the shape of an object with these keys; an unknown key is a fault. Values come back as plain JSON.

        Raises:
            InputError: `required` names a key that is not there.
        """
        missing = sorted(set(required) - set(fields))
        if missing:
            raise InputError(f"{name} requires {missing[0]!r}, which is not one of its fields")
        layout = {key: part if key in required else NotRequired[cast("Any", part)] for key, part in fields.items()}
        kind = cast("Any", TypedDict)(name if name.isidentifier() else "Fields", layout)
        kind.__pydantic_config__ = {"extra": "forbid"}
        shape: OutputType[dict[str, Json]] = OutputType.__new__(cast("Any", OutputType))
        shape._set(FieldsValidator(kind), name)
        return shape

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Json], *, name: str = "") -> "OutputType[Json]":
        """Make the shape of a raw JSON Schema; values come back as plain JSON.

        Raises:
            ConfigError: the extra `schema` is not installed.
            InputError: this is not a JSON Schema.
        """
        title = schema.get("title")
        shape: OutputType[Json] = OutputType.__new__(cast("Any", OutputType))
        shape._set(JsonSchemaValidator(schema), name or (title if isinstance(title, str) else "Answer"), raw=True)
        return shape

    def _set(self, judge: Validator[T], name: str, *, raw: bool = False) -> None:
        self.name = name
        self._judge = judge
        self.bare = form_of(judge.schema, name)
        self.wrapped = not any(isinstance(each, (ObjectNode, AnyNode)) for each in members(self.bare.root, self.bare))
        self._raw = judge.schema if raw or to_json_schema(self.bare, DIALECTS["plain"]).moved else None
        self._target = Target(judge, self.bare, name, self.wrapped)

    def __repr__(self) -> str:
        return f"Shape({self.name})"

    @cached_property
    def form(self) -> TypeIR:
        """The intermediate form of what goes over the wire."""
        if not self.wrapped:
            return self.bare
        return TypeIR(ObjectNode((Property(WRAP, self.bare.root, required=True),)), self.name, self.bare.named)

    def schema(self) -> dict[str, Json]:
        """Give the JSON Schema of the wire form: a raw schema as it was given, of a type the shortest that says all."""
        if self._raw is None:
            return to_json_schema(self.form, DIALECTS["plain"]).schema
        bare = dict(self._raw)
        if not self.wrapped:
            return bare
        shared = {key: bare.pop(key) for key in ("$defs", "definitions", "$schema") if key in bare}
        whole: dict[str, Json] = {
            "type": "object",
            "properties": {WRAP: _deeper(bare)},
            "required": [WRAP],
            "additionalProperties": False,
        }
        return whole | {key: part if key == "$schema" else _deeper(part) for key, part in shared.items()}

    def native(self, dialect: str) -> ServerSchema:
        """Give the schema for a server's native mode, with what that mode cannot say: see `taiwa.structured.rendering`.

        Raises:
            InputError: no dialect has this name.
        """
        if dialect not in DIALECTS:
            raise InputError(f"no schema dialect {dialect!r}; there are {', '.join(DIALECTS)}")
        return to_json_schema(self.form, DIALECTS[dialect])

    def render(self, style: RenderStyle = "typescript") -> str:
        """Write the type as a model should see it."""
        if style == "typescript":
            return to_typescript(self.form)
        return json.dumps(self.schema(), ensure_ascii=False, separators=(",", ":"))

    def check(self, data: Json) -> T:
        """Validate JSON data in wire form, or bare.

        Raises:
            ShapeError: it does not have the type; its diagnostics say where.
        """
        bare = self._target.bare(data)
        try:
            return self._target.accept(bare)
        except InvalidValueError as invalid_value:
            lines = self._target.diagnose(bare, invalid_value)
            raise OutputValidationError(f"not a {self.name}: {lines[0]}", diagnostics=lines) from None

    def read(self, text: str, rules: ParseOptions = STANDARD) -> ParseResult[T]:
        """Read the text of an answer; see `taiwa.structured.parse` for what is mended and what is not.

        Raises:
            ShapeError: no value of the type can be read from it, or the text ends before the value does.
        """
        return parse_answer(self._target, text, rules)

    def dump(self, value: T) -> Json:
        """Write a value in wire form.

        Raises:
            InputError: the value does not have the type.
        """
        data = self._judge.dump(value)
        return {WRAP: data} if self.wrapped else data


def _name(annotation: object) -> str:
    name = getattr(annotation, "__name__", "")
    return name if isinstance(annotation, type) and name.isidentifier() and name[:1].isupper() else "Answer"


def _deeper(schema: Json) -> Json:
    """Point references to the root of a schema to where it lies inside of its wrapping."""
    if isinstance(schema, list):
        return [_deeper(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _deeper(part) for key, part in schema.items()}
    target = made.get("$ref")
    if isinstance(target, str) and target.startswith("#") and not target.startswith(("#/$defs/", "#/definitions/")):
        made["$ref"] = f"#/properties/{WRAP}{target[1:]}"
    return made
