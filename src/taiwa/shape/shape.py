"""`Shape[T]`: one type that gives the prompt its text, the constraint its schema, and the answer its value."""

import json
from collections.abc import Mapping, Set
from functools import cached_property
from typing import Any, Generic, Literal, NotRequired, TypeVar, cast, overload

from typing_extensions import TypedDict

from taiwa.kernel import InputError, Json, ShapeError
from taiwa.shape.form import AnyNode, Form, ObjectNode, Property, members
from taiwa.shape.fromschema import form_of
from taiwa.shape.judges import FieldsJudge, Judge, MisfitError, SchemaJudge, TypeJudge
from taiwa.shape.ladder import STANDARD, Rules, climb
from taiwa.shape.native import DIALECTS, Native, native
from taiwa.shape.reading import Reading
from taiwa.shape.target import WRAP, Target
from taiwa.shape.typescript import typescript

__all__ = ["Shape"]

T = TypeVar("T")
Style = Literal["typescript", "jsonschema"]


class Shape(Generic[T]):
    """A type that text can be read as.

    Takes whatever pydantic's `TypeAdapter` takes. A type that no JSON object can have (a number, a list, an enum) is
    `wrapped`: on the wire it is an object with the one key `value`; reading takes it bare as well.

    >>> Shape(list[int]).read("[1, 2]").value
    [1, 2]
    """

    @overload
    def __init__(self, annotation: type[T], *, name: str = "") -> None: ...
    @overload
    def __init__(self: "Shape[Any]", annotation: object, *, name: str = "") -> None: ...
    def __init__(self, annotation: object, *, name: str = "") -> None:
        self._set(TypeJudge[T](annotation), name or _name(annotation))

    @classmethod
    def fields(
        cls, name: str, fields: Mapping[str, object], required: Set[str] = frozenset()
    ) -> "Shape[dict[str, Json]]":
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
        shape: Shape[dict[str, Json]] = Shape.__new__(cast("Any", Shape))
        shape._set(FieldsJudge(kind), name)
        return shape

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Json], *, name: str = "") -> "Shape[Json]":
        """Make the shape of a raw JSON Schema; values come back as plain JSON.

        Raises:
            ConfigError: the extra `schema` is not installed.
            InputError: this is not a JSON Schema.
        """
        title = schema.get("title")
        shape: Shape[Json] = Shape.__new__(cast("Any", Shape))
        shape._set(SchemaJudge(schema), name or (title if isinstance(title, str) else "Answer"), raw=True)
        return shape

    def _set(self, judge: Judge[T], name: str, *, raw: bool = False) -> None:
        self.name = name
        self._judge = judge
        self.bare = form_of(judge.schema, name)
        self.wrapped = not any(isinstance(each, (ObjectNode, AnyNode)) for each in members(self.bare.root, self.bare))
        self._raw = judge.schema if raw or native(self.bare, DIALECTS["plain"]).moved else None
        self._target = Target(judge, self.bare, name, self.wrapped)

    def __repr__(self) -> str:
        return f"Shape({self.name})"

    @cached_property
    def form(self) -> Form:
        """The intermediate form of what goes over the wire."""
        if not self.wrapped:
            return self.bare
        return Form(ObjectNode((Property(WRAP, self.bare.root, required=True),)), self.name, self.bare.named)

    def schema(self) -> dict[str, Json]:
        """Give the JSON Schema of the wire form: a raw schema as it was given, of a type the shortest that says all."""
        if self._raw is None:
            return native(self.form, DIALECTS["plain"]).schema
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

    def native(self, dialect: str) -> Native:
        """Give the schema for a server's native mode, with what that mode cannot say: see `taiwa.shape.native`.

        Raises:
            InputError: no dialect has this name.
        """
        if dialect not in DIALECTS:
            raise InputError(f"no schema dialect {dialect!r}; there are {', '.join(DIALECTS)}")
        return native(self.form, DIALECTS[dialect])

    def render(self, style: Style = "typescript") -> str:
        """Write the type as a model should see it."""
        if style == "typescript":
            return typescript(self.form)
        return json.dumps(self.schema(), ensure_ascii=False, separators=(",", ":"))

    def check(self, data: Json) -> T:
        """Validate JSON data in wire form, or bare.

        Raises:
            ShapeError: it does not have the type; its diagnostics say where.
        """
        bare = self._target.bare(data)
        try:
            return self._target.accept(bare)
        except MisfitError as misfit:
            lines = self._target.diagnose(bare, misfit)
            raise ShapeError(f"not a {self.name}: {lines[0]}", diagnostics=lines) from None

    def read(self, text: str, rules: Rules = STANDARD) -> Reading[T]:
        """Read the text of an answer; see `taiwa.shape.ladder` for what is mended and what is not.

        Raises:
            ShapeError: no value of the type can be read from it, or the text ends before the value does.
        """
        return climb(self._target, text, rules)

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
