import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.structured import OutputType, ParseResult, parse, parse_notation


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


def test_values_are_not_coerced() -> None:
    with pytest.raises(OutputValidationError):
        parse('{"size": "small", "shots": "2"}', Coffee)


def test_an_unsupported_annotation_is_an_input_error() -> None:
    class Foreign:
        pass

    for annotation in (Foreign, "Nowhere", Callable[[int], int]):
        with pytest.raises(InputError, match="cannot be an output type"):
            OutputType(annotation)
