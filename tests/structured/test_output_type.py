import datetime
import json
import sys
import typing
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, IntEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, ImportString, WithJsonSchema
from typing_extensions import Doc, TypedDict

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.structured import OutputType, ParseResult, parse, parse_notation

T = typing.TypeVar("T")


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Coffee(BaseModel):
    size: Size
    shots: int = 1


def test_a_model_is_parsed_and_dumped_without_wrapping() -> None:
    output_type = OutputType(Coffee)

    assert not output_type.wrapped
    assert output_type.parse('{"size": "small"}') == ParseResult(Coffee(size=Size.SMALL))
    assert output_type.dump(Coffee(size=Size.LARGE, shots=2)) == {"size": "large", "shots": 2}


@pytest.mark.parametrize(
    ("annotation", "value", "wire"),
    [(int, 3, 3), (list[int], [1, 2], [1, 2]), (Size, Size.SMALL, "small"), (int | None, None, None)],
)
def test_a_type_that_is_not_an_object_is_wrapped_and_parsed_bare_as_well(
    annotation: Any, value: Any, wire: Any
) -> None:
    output_type = OutputType(annotation)

    assert output_type.wrapped
    assert output_type.dump(value) == wire
    assert output_type.validate({"value": wire}) == value
    assert output_type.validate(wire) == value
    assert list(output_type.schema()["properties"]) == ["value"]  # type: ignore[arg-type]


def test_fields_give_plain_json_and_refuse_other_keys() -> None:
    output_type = OutputType.fields(
        "Delta",
        {"topics": parse_notation("list[str]"), "mood": parse_notation("int(1..5)")},
        required=frozenset({"mood"}),
    )

    assert output_type.validate({"mood": 3}) == {"mood": 3}
    assert output_type.render() == "type Delta = {\n  topics?: string[];\n  mood: number; // integer, 1..5\n};"
    for wrong in ({}, {"mood": 9}, {"mood": 1, "other": 1}, {"mood": 1, "topics": "a"}, []):
        with pytest.raises(OutputValidationError):
            output_type.validate(wrong)  # type: ignore[arg-type]


def test_a_field_that_is_required_must_exist() -> None:
    with pytest.raises(InputError, match="requires 'b'"):
        OutputType.fields("Delta", {"a": int}, required=frozenset({"b"}))


class Named(NamedTuple):
    x: int
    y: str = ""


@dataclass
class Point:
    at: Coffee
    when: datetime.datetime | None = None


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (datetime.date, datetime.date(2024, 2, 29)),
        (datetime.datetime, datetime.datetime(2024, 2, 29, 1, 2, tzinfo=datetime.UTC)),
        (datetime.timedelta, datetime.timedelta(hours=3)),
        (Decimal, Decimal("1.10")),
        (UUID, UUID(int=7)),
        (Path, Path("a/b")),
        (bytes, b"xyz"),
        (set[int], {1, 2}),
        (frozenset[str], frozenset({"a"})),
        (tuple[int, str], (1, "a")),
        (tuple[int, ...], (1, 2, 3)),
        (Named, Named(1, "b")),
        (Point, Point(Coffee(size=Size.SMALL), datetime.datetime(2024, 1, 1))),  # noqa: DTZ001  (without a zone on purpose)
        (dict[str, list[Coffee | None]], {"a": [None, Coffee(size=Size.LARGE)]}),
        (Literal["a", 1, True, None], True),
        (int | str | list[Coffee], [Coffee(size=Size.LARGE)]),
    ],
)
def test_a_value_of_any_type_survives_dump_and_parse(annotation: Any, value: Any) -> None:
    output_type = OutputType(annotation)

    data = output_type.dump(value)
    wire = {"value": data} if output_type.wrapped else data

    assert output_type.validate(data) == output_type.validate(wire) == value
    assert output_type.parse(json.dumps(data)).value == value
    assert output_type.parse(json.dumps(wire)) == ParseResult(value)
    assert Draft202012Validator(output_type.schema()).is_valid(wire)


@pytest.mark.parametrize(
    ("output_type", "value"),
    [
        (OutputType(Coffee), 5),
        (OutputType(list[int]), ["x"]),
        (OutputType.fields("F", {"a": int}), {"b": 1}),
        (OutputType.from_json_schema({"type": "integer"}), "1"),
    ],
)
def test_a_value_of_another_type_is_not_dumped(output_type: OutputType[Any], value: Any) -> None:
    with pytest.raises(InputError, match="does not have the output type"):
        output_type.dump(value)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"properties": {"a\ud800": {}}}, "$.properties has a key with half a character"),
        ({"type": "string", "description": "\udc00"}, "$.description contains half a character (U+DC00)"),
        ({"type": "string", "pattern": "\ud800"}, "$.pattern contains half a character (U+D800)"),
        ({"type": "number", "minimum": float("nan")}, "$.minimum is not a JSON number"),
        ({"enum": [1, b"x"]}, "$.enum[1] is not JSON but bytes"),
        ({"const": {2: 3}}, "$.const has the key 2, which is not a text"),
    ],
)
def test_a_schema_that_json_cannot_carry_is_refused_with_its_path(schema: Any, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        OutputType.from_json_schema(schema)

    assert caught.value.message.startswith(f"schema: {problem}")


def test_half_a_character_in_a_type_is_refused() -> None:
    for annotation in (Annotated[str, Field(description="\ud800")], Annotated[int, Doc("\udfff")], Literal["\ud800"]):
        with pytest.raises(InputError):
            OutputType(annotation)


@dataclass
class Quantity:
    amount: int | float


def test_a_number_of_either_kind_is_shown_as_one_and_stays_as_the_text_writes_it() -> None:
    output_type = OutputType(Quantity)

    assert "amount: number;" in output_type.render()
    assert [repr(output_type.parse(f'{{"amount": {text}}}').value.amount) for text in ("1", "1.0", "2.5")] == [
        "1",
        "1.0",
        "2.5",
    ]


@dataclass
class Latte:
    size: Literal["tall", "grande"]
    shots: int = 1


class Milk(TypedDict):
    fat: NotRequired[float]


class Cart(TypedDict):
    lattes: list[Latte]
    extra: Milk | list[Milk] | None


@pytest.mark.parametrize(
    ("annotation", "data", "line"),
    [
        (Latte, {"sise": "grande", "size": "tall"}, '$.sise = "grande": no key here; the keys are shots, size'),
        (Latte, {"size": "tall", "shot": 2}, "$.shot = 2: no key here; did you mean shots? the keys are shots, size"),
        (Coffee, {"size": "small", "shts": 2}, "$.shts = 2: no key here; did you mean shots? the keys are shots, size"),
        (Milk, {"fats": 1.5}, "$.fats = 1.5: no key here; did you mean fat? the keys are fat"),
        (Cart, {"lattes": [{"size": "tall", "sots": 1}], "extra": None}, "$.lattes[0].sots = 1: no key here"),
        (Cart, {"lattes": [], "extra": {"fat": 1, "soy": True}}, "$.extra.soy = true: no key here; the keys are fat"),
        (Cart, {"lattes": [], "extra": [{"fit": 1}]}, "$.extra[0].fit = 1: no key here; did you mean fat?"),
        (Latte | Milk, {"size": "tall", "fat": 1}, "$.fat = 1: no key here; the keys are shots, size"),
        (dict[str, Latte], {"a": {"size": "tall", "b": 1}}, "$.a.b = 1: no key here"),
    ],
)
def test_a_key_that_no_field_has_is_an_error_with_the_nearest_key(annotation: Any, data: Any, line: str) -> None:
    output_type = OutputType(annotation)

    with pytest.raises(OutputValidationError) as caught:
        output_type.parse(json.dumps(data))

    assert any(each.startswith(line) for each in caught.value.diagnostics)
    assert not Draft202012Validator(output_type.schema()).is_valid(data)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    size: str


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    coffee: Coffee | None = None
    open: Open | None = None


def test_a_class_that_sets_extra_itself_is_taken_at_its_word() -> None:
    output_type = OutputType(Ignoring)

    assert output_type.parse('{"any": 1}').value == Ignoring()
    assert output_type.parse('{"open": {"size": "x", "any": 1}}').value.open == Open.model_validate(
        {"size": "x", "any": 1}
    )
    with pytest.raises(OutputValidationError) as caught:
        output_type.parse('{"any": 1, "coffee": {"size": "small", "sots": 2}}')
    assert caught.value.diagnostics == ("$.coffee.sots = 2: no key here; did you mean shots? the keys are shots, size",)


@dataclass
class Commented:
    size: Annotated[str, Doc("small or large")]
    names: list[Annotated[str, "as they were said"]]
    cups: Annotated[int, Doc("never 0"), Field(ge=1)] = 1
    note: Annotated[str, Doc("the last")] | None = None


def test_the_comments_of_annotations_are_shown_to_the_model() -> None:
    assert OutputType(Commented).render().split("\n") == [
        "type Commented = {",
        "  size: string; // small or large",
        "  names: string[]; // each: as they were said",
        "  cups?: number; // integer, >= 1; never 0; default 1",
        "  note: string | null; // the last",
        "};",
    ]
    assert "; many" in OutputType(Annotated[list[int], Doc("many")]).render()


class Base(typing.TypedDict):
    name: str
    age: "typing.NotRequired[int]"


class Extended(Base, total=False):
    nick: "typing.Required[str]"
    tags: list[str]


class Row(typing.TypedDict, typing.Generic[T]):
    value: T


class IntRow(Row[int]):
    note: str


class Tree(typing.TypedDict):
    parts: "list[Tree]"


def test_a_typed_dict_of_typing_keeps_what_is_required() -> None:
    assert OutputType(Extended).render().split("\n") == [
        "type Extended = {",
        "  name: string;",
        "  age?: number; // integer",
        "  nick: string;",
        "  tags?: string[];",
        "};",
    ]
    data = {"name": "Aiko", "nick": "A"}
    assert OutputType(list[Extended] | None).parse(json.dumps([data])).value == [data]
    with pytest.raises(OutputValidationError, match="nick"):
        OutputType(dict[str, Extended]).validate({"a": {"name": "Aiko"}})


@dataclass
class Holder:
    row: Base


@pytest.mark.parametrize("annotation", [Row[int], IntRow, Tree, Holder])
def test_what_a_typed_dict_of_typing_loses_on_python_3_11_is_said(annotation: object) -> None:
    lost = pytest.raises(InputError, match="must come from typing_extensions")
    with lost if sys.version_info < (3, 12) else nullcontext():
        OutputType(annotation)


@pytest.mark.parametrize(
    ("annotation", "written"), [(str, "5"), (int, '"5 cups"'), (int, '"5.5"'), (bool, '"maybe"'), (float, '"NaN"')]
)
def test_values_of_another_type_are_not_coerced(annotation: type, written: str) -> None:
    with pytest.raises(OutputValidationError):
        parse(OutputType.fields("Answer", {"a": annotation}), f'{{"a": {written}}}')


def test_an_unsupported_annotation_is_an_input_error() -> None:
    class Foreign:
        pass

    inner = {
        "type": "function-plain",
        "function": {"type": "no-info", "function": print},
    }  # a type as pydantic itself writes it
    for annotation in (Foreign, "Nowhere", Callable[[int], int], {"a": "b"}, inner):
        with pytest.raises(InputError, match="cannot be an output type"):
            OutputType(annotation)


CALLED: list[str] = []


def send_mail(to: str) -> str:
    CALLED.append(to)
    return "sent"


send_all = lambda to: [send_mail(each) for each in to]  # noqa: E731


class Mailer:
    @classmethod
    def send(cls, to: str) -> str:
        return send_mail(to)


@dataclass
class Mailing:
    sent: send_mail  # type: ignore[valid-type]


@pytest.mark.parametrize(
    "annotation",
    [
        send_mail, Mailer.send, partial(send_mail), send_all, list[send_mail], Mailing,  # type: ignore[valid-type]
        Annotated[send_mail, WithJsonSchema({"type": "object"})], ImportString, list[ImportString[Any]],
    ],
)  # fmt: skip
def test_a_type_calls_and_imports_nothing_that_an_answer_names(annotation: Any) -> None:
    CALLED.clear()

    with pytest.raises(InputError, match=r"only a tool is called|ImportString imports|cannot be an output type"):
        OutputType(annotation).parse('{"to": "a@b.example"}')
    assert not CALLED


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize("within", ["properties", "if", "propertyNames", "dependentSchemas", "unevaluatedProperties"])
def test_a_schema_fetches_nothing_that_it_refers_to(keyword: str, within: str) -> None:
    reference = {keyword: "http://127.0.0.1:9/x.json"}
    inner = {"a": reference} if within in ("properties", "dependentSchemas") else reference

    with pytest.raises(InputError, match="is not in this schema"):
        OutputType.of({"type": "object", within: inner})


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "3.0", 3),
        (list[int], "[1, 2.0, 1e3]", [1, 2, 1000]),
        (dict[str, int | str], '{"a": 3.0}', {"a": 3}),
        (Coffee, '{"size": "small", "shots": 2.0}', Coffee(size=Size.SMALL, shots=2)),
        (dict[str, float], '{"a": 3.0}', {"a": 3.0}),
        (int | float, "3.0", 3.0),
    ],
)
def test_a_number_without_a_fraction_is_an_integer(annotation: Any, text: str, value: Any) -> None:
    output_type = OutputType(annotation)

    for found in (output_type.parse(text).value, output_type.validate(json.loads(text))):
        assert repr(found) == repr(value)


def test_a_number_without_a_fraction_is_an_integer_among_fields_too() -> None:
    assert repr(OutputType.of("n: int, x: float").parse('{"n": 3.0, "x": 2.0}').value) == "{'n': 3, 'x': 2.0}"


@pytest.mark.parametrize(("annotation", "text"), [(int, "3.5"), (bool, "1.0"), (str, "3.0")])
def test_other_numbers_are_no_integers(annotation: Any, text: str) -> None:
    with pytest.raises(OutputValidationError):
        OutputType(annotation).validate(json.loads(text))


class Level(IntEnum):
    LOW = 1
    HIGH = 2


def test_a_dict_with_known_keys_is_an_object_with_these_keys() -> None:
    sizes, levels = OutputType(dict[Size, int]), OutputType(dict[Level, bool])

    assert sizes.parse('{"small": 3}').value == {Size.SMALL: 3}
    assert levels.parse('{"1": true}').value == {Level.LOW: True}
    assert list(sizes.schema()["properties"]) == ["small", "large"]  # type: ignore[arg-type]
    assert "propertyNames" not in sizes.render() + levels.render()
    with pytest.raises(OutputValidationError, match="the keys are"):
        sizes.parse('{"medium": 3}')


def test_the_tag_of_a_union_is_required_though_it_has_a_default() -> None:
    class Leaf(BaseModel):
        kind: Literal["leaf"] = "leaf"
        size: int

    class Tree(BaseModel):
        kind: Literal["tree"] = "tree"
        parts: "list[Annotated[Leaf | Tree, Field(discriminator='kind')]]" = []

    output_type = OutputType(Tree)

    assert output_type.parse('{"parts": [{"kind": "leaf", "size": 1}]}').value == Tree(parts=[Leaf(size=1)])
    assert output_type.schema()["$defs"]["Leaf"]["required"] == ["kind", "size"]
    with pytest.raises(OutputValidationError, match=r"parts\[0\].kind: missing"):
        output_type.parse('{"parts": [{"size": 1}]}')


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (dict[str, Decimal], '{"a": 12345678901234567890.12, "b": 1.5}', {"a": Decimal("12345678901234567890.12"), "b": Decimal("1.5")}),
        (dict[str, Decimal | None], '{"a": -0.1234567890123456789, "b": null}', {"a": Decimal("-0.1234567890123456789"), "b": None}),
        (dict[str, tuple[float, Decimal]], '{"a": [0.1234567890123456789, 0.1234567890123456789]}',
         {"a": (0.1234567890123456789, Decimal("0.1234567890123456789"))}),
        (tuple[Decimal, list[float | str]], "[1, [0.1234567890123456789]]", (Decimal(1), [0.1234567890123456789])),
        (dict[str, int], '{"a": 1e30, "b": 9007199254740993.0}', {"a": 10**30, "b": 9007199254740993}),
        (list[Decimal], '[1.10, "1.10", 1.0, 100, 2.50]', [Decimal(text) for text in ("1.10", "1.10", "1.0", "100", "2.50")]),
        (tuple[Decimal, int, float], "[12345678901234567890.10, 3.0, 2.50]", (Decimal("12345678901234567890.10"), 3, 2.5)),
        (dict[str, Decimal], "{price: 1.10, sum: 12345678901234567890.10}", {"price": Decimal("1.10"), "sum": Decimal("12345678901234567890.10")}),
        (Decimal, '"1.10".', Decimal("1.10")),
        (Decimal, "1.10.", Decimal("1.10")),
    ],
)  # fmt: skip
def test_no_digit_of_a_decimal_or_an_integer_is_lost(annotation: Any, text: str, value: object) -> None:
    found = OutputType[Any](annotation).parse(text).value

    assert repr(found) == repr(value)  # 1.1 and 1.10 are equal


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (datetime.datetime, "2024-02-29", "2024-02-29 00:00:00"),
        (datetime.date, "2024-02-29T00:00:00Z", "2024-02-29"),
        (datetime.datetime | str, "2024-02-29", "2024-02-29"),
        (datetime.datetime | datetime.date, "2024-02-29", "2024-02-29"),
    ],
)
def test_a_date_is_its_midnight_where_a_time_is_missing(annotation: Any, text: str, value: str) -> None:
    assert str(OutputType[Any](annotation).parse(f'"{text}"').value) == value


def test_an_integer_of_too_many_digits_is_refused() -> None:
    with pytest.raises(OutputValidationError):
        OutputType(dict[str, int]).parse('{"a": 1e100000000}')


@dataclass
class Slug:
    name: str
    slug: str = field(init=False)

    def __post_init__(self) -> None:
        self.slug = self.name.lower()


def test_a_field_that_a_dataclass_computes_is_not_asked_for() -> None:
    output = OutputType(Slug)

    assert "slug" not in str(output.json_schema.schema)
    assert output.parse('{"name": "Ann"}').value.slug == "ann"
