"""`OutputType[T]`: one type for the text of the prompt, the schema of the constraint and the value of the answer."""

import json
import re
from collections.abc import Mapping, Set
from copy import deepcopy
from functools import cached_property
from typing import Any, Generic, Literal, NotRequired, TypeVar, cast, overload

from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import JsonSchema
from taiwa.kernel.records import Json
from taiwa.structured.diagnostics import find_mismatches, pointer, value_at
from taiwa.structured.from_json_schema import type_ir_from_schema
from taiwa.structured.ir import AnyNode, ObjectNode, Property, TypeIR, members
from taiwa.structured.parse import DEFAULT_OPTIONS, WRAP, ParseOptions, ParseResult, ParseTarget, parse_answer
from taiwa.structured.rendering import DIALECTS, ServerSchema, to_json_schema, to_typescript
from taiwa.structured.type_notation import parse_fields
from taiwa.structured.validators import (
    FieldsValidator,
    InvalidValueError,
    JsonSchemaValidator,
    PydanticValidator,
    Validator,
    not_json,
)

T = TypeVar("T")

FIELDS = re.compile(r"[\s,]")
"""What stands in fields, and not in a word."""

RenderStyle = Literal["typescript", "jsonschema"]


class OutputType(Generic[T]):
    """The type of an answer: anything that pydantic's `TypeAdapter` accepts.

    A type that is not a JSON object (a number, a list, an enum) is `wrapped`: the wire form is an object with the single key
    `value`. Parsing accepts the bare value as well.

    >>> OutputType(list[int]).parse("[1, 2]").value
    [1, 2]
    """

    @overload
    def __init__(self, annotation: type[T], *, name: str = "") -> None: ...
    @overload
    def __init__(self: "OutputType[Any]", annotation: object, *, name: str = "") -> None: ...
    def __init__(self, annotation: object, *, name: str = "") -> None:
        self._set(PydanticValidator[T](annotation), name or _name(annotation))

    @classmethod
    def of(cls, wanted: object) -> "OutputType[Any]":
        """Return the output type of a type, of a JSON Schema as a dict or a `JsonSchema`, or of fields: `"name, age int"`.

        >>> OutputType.of("name, age int").parse('{"name": "Aiko", "age": 7}').value
        {'name': 'Aiko', 'age': 7}

        Raises:
            InputError: it is none of these.
        """
        if isinstance(wanted, OutputType):
            return wanted  # pyright: ignore[reportUnknownVariableType]
        if isinstance(wanted, JsonSchema):
            return cls.from_json_schema(wanted.schema, name=wanted.name)
        if isinstance(wanted, Mapping):
            return cls.from_json_schema(cast("Mapping[str, Json]", wanted))
        if isinstance(wanted, str) and FIELDS.search(wanted.strip()):
            return cls.fields("Answer", *parse_fields(wanted))
        return OutputType[Any](wanted)

    @classmethod
    def fields(
        cls, name: str, fields: Mapping[str, object], required: Set[str] = frozenset()
    ) -> "OutputType[dict[str, Json]]":
        """Return the type of an object with these keys and no other; its values are plain JSON.

        Raises:
            InputError: `required` names a key that is not a field.
        """
        missing = sorted(set(required) - set(fields))
        if missing:
            raise InputError(f"{name} requires {missing[0]!r}, which is not one of its fields")
        layout = {key: part if key in required else NotRequired[cast("Any", part)] for key, part in fields.items()}
        annotation = cast("Any", TypedDict)(name if name.isidentifier() else "Fields", layout)
        annotation.__pydantic_config__ = {"extra": "forbid"}
        output_type: OutputType[dict[str, Json]] = OutputType.__new__(cast("Any", OutputType))
        output_type._set(FieldsValidator(annotation), name)
        return output_type

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Json], *, name: str = "") -> "OutputType[Json]":
        """Return the type of a JSON Schema; its values are plain JSON.

        Raises:
            InputError: the mapping is not a JSON Schema.
        """
        _check_json(schema)
        title = schema.get("title")
        output_type: OutputType[Json] = OutputType.__new__(cast("Any", OutputType))
        name = name or (title if isinstance(title, str) else "Answer")
        output_type._set(JsonSchemaValidator(schema), name, from_schema=True)
        return output_type

    @classmethod
    def from_typescript(cls, text: str, name: str) -> "OutputType[Json]":
        """Return the type `name` that TypeScript declares; its values are plain JSON. Comments are shown to the model.

        Raises:
            ConfigError: the extra `typescript` is not installed.
            InputError: a `TypeScriptError` with line and column: the text is not TypeScript, does not declare the type, or uses
                what JSON has no types for.
        """
        from taiwa.structured.from_typescript import schema_from_typescript

        return cls.from_json_schema(schema_from_typescript(text, name), name=name)

    def _set(self, validator: Validator[T], name: str, *, from_schema: bool = False) -> None:
        _check_json(validator.schema)
        bare = type_ir_from_schema(validator.schema, name)
        self.name = name
        self.bare_ir = bare
        """The intermediate representation of the type itself, not wrapped."""
        self.wrapped = not any(isinstance(node, (ObjectNode, AnyNode)) for node in members(bare.root, bare))
        self._validator = validator
        self._source = validator.schema if from_schema or to_json_schema(bare, DIALECTS["plain"]).relaxed else None
        self._target = ParseTarget(validator, bare, name, self.wrapped)

    def __repr__(self) -> str:
        return f"OutputType({self.name})"

    @cached_property
    def type_ir(self) -> TypeIR:
        """The intermediate representation of the wire form."""
        if not self.wrapped:
            return self.bare_ir
        return TypeIR(ObjectNode((Property(WRAP, self.bare_ir.root, required=True),)), self.name, self.bare_ir.named)

    def schema(self) -> dict[str, Json]:
        """Return the JSON Schema of the wire form: the schema that the type was made of, or the shortest equivalent one."""
        if self._source is None:
            return to_json_schema(self.type_ir, DIALECTS["plain"]).schema
        bare = dict(self._source)
        if not self.wrapped:
            return bare
        shared = {key: bare.pop(key) for key in ("$defs", "definitions", "$schema") if key in bare}
        wrapping: dict[str, Json] = {
            "type": "object",
            "properties": {WRAP: _move_references(bare)},
            "required": [WRAP],
            "additionalProperties": False,
        }
        return wrapping | {key: part if key == "$schema" else _move_references(part) for key, part in shared.items()}

    def server_schema(self, dialect: str) -> ServerSchema:
        """Return the schema in a dialect of `taiwa.structured.rendering`, with what the dialect cannot express.

        Raises:
            InputError: the dialect is unknown.
        """
        if dialect not in DIALECTS:
            raise InputError(f"unknown schema dialect {dialect!r}; choose one of {', '.join(DIALECTS)}")
        return to_json_schema(self.type_ir, DIALECTS[dialect])

    def render(self, style: RenderStyle = "typescript") -> str:
        """Render the type as text for a prompt."""
        if style == "typescript":
            return to_typescript(self.type_ir)
        return json.dumps(self.schema(), ensure_ascii=False, separators=(",", ":"))

    def validate(self, data: Json) -> T:
        """Validate JSON data, wrapped or bare, and return the value.

        Raises:
            OutputValidationError: the data does not have the type; the diagnostics name the paths.
        """
        bare = self._target.unwrap(data)
        try:
            return self._target.validate(bare)
        except InvalidValueError as error:
            lines = self._target.diagnose(bare, error)
            raise OutputValidationError(
                f"not of the type {self.name}: {'; '.join(lines[:3])}", diagnostics=lines
            ) from None

    def narrow(self, data: Json) -> Json:
        """Return a copy of bare JSON data without the keys that the type excludes, as a value of a wider type is passed on.

        >>> OutputType.fields("Point", {"x": int}).narrow({"x": 1, "y": 2})
        {'x': 1}
        """
        narrowed = deepcopy(data)
        for mismatch in find_mismatches(self.bare_ir, data):
            if mismatch.code == "unknown":
                del cast("dict[str, Json]", value_at(narrowed, mismatch.path[:-1]))[str(mismatch.path[-1])]
        return narrowed

    def parse(self, text: str, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[T]:
        """Parse the text of an answer; see `taiwa.structured.parse` for what is repaired.

        Raises:
            OutputValidationError: the text holds no value of the type, or ends before the value does.
        """
        return parse_answer(self._target, text, options)

    def dump(self, value: T) -> Json:
        """Return a value as JSON data, not wrapped.

        >>> OutputType(list[int]).dump([1, 2])
        [1, 2]

        Raises:
            InputError: the value does not have the type.
        """
        return self._validator.dump(value)


def _check_json(schema: Mapping[str, Json]) -> None:
    """Check that a schema can be sent: models, servers and files take JSON only.

    Raises:
        InputError: it contains half a character, a number that is not finite, or what is not JSON.
    """
    for path, problem in not_json(dict(schema)):
        raise InputError(f"schema: {pointer(path)} {problem}")


def _name(annotation: object) -> str:
    name = getattr(annotation, "__name__", "")
    return name if isinstance(annotation, type) and name.isidentifier() and name[:1].isupper() else "Answer"


def _move_references(schema: Json) -> Json:
    """Point references to the root of a schema to its place inside the wrapping object."""
    if isinstance(schema, list):
        return [_move_references(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _move_references(part) for key, part in schema.items()}
    target = moved.get("$ref")
    if isinstance(target, str) and target.startswith("#") and not target.startswith(("#/$defs/", "#/definitions/")):
        moved["$ref"] = f"#/properties/{WRAP}{target[1:]}"
    return moved
