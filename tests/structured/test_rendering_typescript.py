import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from taiwa.kernel.errors import InputError
from taiwa.structured import OutputType, parse_notation


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=0, le=9, description="lives left")


class Dog(BaseModel):
    """A dog,

    of any size.
    """

    kind: Literal["dog"]
    colour: Colour
    other: Colour | None = None


class Tree(BaseModel):
    value: float = Field(gt=0, multiple_of=0.5)
    kids: list["Tree"] = []


class Order(BaseModel):
    size: Size
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    tree: Tree
    tags: list[Annotated[str, Field(max_length=5)]] = Field(min_length=1, max_length=3, description="short words")
    prices: dict[str, Annotated[int, Field(ge=1)]] = {}
    pair: tuple[int, str]
    note: str | None = Field(None, max_length=80)
    must: str | None
    mixed: int | Cat | Literal["none"]
    odd_key: Any = Field(alias="odd key")


ORDER = """\
type Order = {
  size: "small" | "large";
  pet: Cat | Dog;
  tree: Tree;
  tags: string[]; // 1..3 items, each: max 5 chars; short words
  prices?: Record<string, number>; // values: integer, >= 1; default {}
  pair: [number, string]; // item 1: integer
  note: string | null; // max 80 chars
  must: string | null;
  mixed: number | Cat | "none"; // number: integer
  "odd key": any;
};

type Cat = {
  kind: "cat";
  lives?: number; // integer, 0..9; lives left; default 9
};

type Dog = { // A dog, of any size.
  kind: "dog";
  colour: Colour;
  other: Colour | null;
};

type Colour = "red" | "blue";

type Tree = {
  value: number; // > 0, multiple of 0.5
  kids?: Tree[]; // default []
};"""


def test_a_type_is_rendered_with_all_of_its_constraints() -> None:
    assert OutputType(Order).render() == ORDER


def test_a_recursive_root_is_named_once() -> None:
    assert OutputType(Tree).render().count("type Tree") == 1


def test_types_without_a_name_are_rendered_inline() -> None:
    output_type = OutputType(parse_notation("{items: list[{sku: str, count: int(1..5)}](max 3), at: {x: int} | null}"))

    assert output_type.render() == (
        "type Object = {\n"
        "  items: { // max 3 items\n    sku: string;\n    count: number; // integer, 1..5\n  }[];\n"
        "  at: {\n    x: number; // integer\n  } | null;\n"
        "};"
    )


@dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    id: int
    name: NotRequired[str]


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "type Answer = {\n  value: number; // integer\n};"),
        (Size, 'type Size = {\n  value: "small" | "large";\n};'),
        (list[Point], "type Answer = {\n  value: Point[];\n};\n\ntype Point = {\n  x: number; // integer\n  y?: number; // integer; default 0\n};"),
        (Row, "type Row = {\n  id: number; // integer\n  name?: string;\n};"),
        (Cat | Dog | None, None),
        (set[int], "type Answer = {\n  value: number[]; // unique items, each: integer\n};"),
        (dict[str, Any], "type Answer = {\n  [key: string]: any;\n};"),
    ],
)  # fmt: skip
def test_every_kind_of_type_is_rendered(annotation: Any, text: str | None) -> None:
    rendered = OutputType(annotation).render()

    assert rendered == text if text else "type Answer = Cat | Dog | null;" in rendered


def without_comments(text: str) -> str:
    """Drop what a TypeScript reader drops: from `//` outside of a string to the end of the line."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|[ ]*//[^\n]*', lambda found: found[1] or "", text)


HOSTILE = st.text(st.sampled_from('\n\r\t\v\f\x1c\x85\u2028\u2029\u202e*/"\\;}{<>` //ab'), max_size=30)


@given(HOSTILE, HOSTILE)
def test_descriptions_and_defaults_stay_in_their_comments(description: str, default: str) -> None:
    def schema(**words: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": {"type": "string", **words}, "b": {"type": "null"}}, **words}

    shown = OutputType.from_json_schema(schema(description=description, default=default)).render()
    plain = OutputType.from_json_schema(schema()).render()

    assert without_comments(shown) == plain
    assert len(shown.splitlines()) == len(plain.splitlines())


@given(HOSTILE, HOSTILE)
def test_keys_and_literals_stay_in_their_quotes(key: str, value: str) -> None:
    output_type = OutputType.from_json_schema(
        {"type": "object", "properties": {key: {"enum": [value, 1]}}, "title": key}
    )

    lines = output_type.render().splitlines()

    assert len(lines) == 3
    assert lines[1].endswith(" | 1;")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": ["string", "null"]}, "string | null"),
        ({"not": {"type": "string"}}, 'not {"type":"string"}'),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]}, "a: number; // integer"),
        ({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}}, 'patternProperties {"^x-"'),
        ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, "[string, ...number[]]"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/A"}}, {"const": 1}]}}}, "type A = A[] | 1;"),
        ({"minimum": 1, "exclusiveMaximum": 3}, "// >= 1 and < 3"),
        (True, None),
    ],
)  # fmt: skip
def test_a_json_schema_is_rendered(schema: Any, text: str | None) -> None:
    if text is None:
        schema, text = {}, "type Answer = any;"

    assert text in OutputType.from_json_schema(schema).render()


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ({"$ref": "#/$defs/Nowhere"}, "is not in this schema"),
        ({"$ref": "https://example.org/x.json"}, "is not in this schema"),
        ({"$ref": "#"}, "applies itself to the same value"),
        ({"type": "text"}, "not a JSON Schema"),
        ({"minimum": "1"}, "not a JSON Schema"),
    ],
)
def test_a_wrong_schema_is_an_input_error(schema: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        OutputType.from_json_schema(schema)


def test_a_schema_that_is_nested_too_deep_is_an_input_error() -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}

    with pytest.raises(InputError, match="nested too deep"):
        OutputType.from_json_schema(schema)


def test_schemas_whose_combinations_explode_are_not_expanded() -> None:
    both = {"allOf": [{"anyOf": [{"minimum": n} for n in range(40)]}, {"anyOf": [{"maximum": n} for n in range(40)]}]}
    many = {"allOf": [{"allOf": [{"minimum": n, "description": f"{m}.{n}"}]} for m in range(9) for n in range(9)]}

    assert "type Answer" in OutputType.from_json_schema(both).render()
    with pytest.raises(InputError, match="more than 64 schemas"):
        OutputType.from_json_schema(many)
