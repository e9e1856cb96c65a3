from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from taiwa.kernel import InputError, ShapeError
from taiwa.shape import Reading, Shape, parse_notation, read


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Coffee(BaseModel):
    size: Size
    shots: int = 1


def test_a_model_is_read_and_dumped_in_its_own_form() -> None:
    shape = Shape(Coffee)

    assert not shape.wrapped
    assert shape.read('{"size": "small"}') == Reading(Coffee(size=Size.SMALL))
    assert shape.dump(Coffee(size=Size.LARGE, shots=2)) == {"size": "large", "shots": 2}


@pytest.mark.parametrize(
    ("annotation", "value", "wire"),
    [(int, 3, 3), (list[int], [1, 2], [1, 2]), (Size, Size.SMALL, "small"), (int | None, None, None)],
)
def test_what_no_object_can_be_is_wrapped_on_the_wire_and_read_bare_as_well(
    annotation: Any, value: Any, wire: Any
) -> None:
    shape = Shape(annotation)

    assert shape.wrapped
    assert shape.dump(value) == {"value": wire}
    assert shape.check({"value": wire}) == value
    assert shape.check(wire) == value
    assert list(shape.schema()["properties"]) == ["value"]  # type: ignore[arg-type]


def test_fields_give_plain_json_and_know_no_other_key() -> None:
    shape = Shape.fields(
        "Delta",
        {"topics": parse_notation("list[str]"), "mood": parse_notation("int(1..5)")},
        required=frozenset({"mood"}),
    )

    assert shape.check({"mood": 3}) == {"mood": 3}
    assert shape.render() == "type Delta = {\n  topics?: string[];\n  mood: number; // integer, 1..5\n};"
    for wrong in ({}, {"mood": 9}, {"mood": 1, "other": 1}, {"mood": 1, "topics": "a"}, []):
        with pytest.raises(ShapeError):
            shape.check(wrong)  # type: ignore[arg-type]


def test_a_field_that_is_required_must_exist() -> None:
    with pytest.raises(InputError, match="requires 'b'"):
        Shape.fields("Delta", {"a": int}, required=frozenset({"b"}))


def test_nothing_is_coerced() -> None:
    with pytest.raises(ShapeError):
        read('{"size": "small", "shots": "2"}', Coffee)


def test_a_type_that_cannot_be_a_shape_is_an_input_error() -> None:
    class Foreign:
        pass

    for annotation in (Foreign, "Nowhere", Callable[[int], int]):
        with pytest.raises(InputError, match="cannot be a shape"):
            Shape(annotation)
