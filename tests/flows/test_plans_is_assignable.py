"""Which results fit where: a table, and the law that what fits is accepted by the type itself."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from taiwa.flows.plans import is_assignable
from taiwa.kernel.errors import OutputValidationError
from taiwa.structured import OutputType
from taiwa.structured.ir import ArrayNode
from tests.flows.apis import KINDS


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Solid:
    x: int
    y: int
    z: int = 0


@dataclass
class Solid3:
    x: int
    y: int
    z: int


class Loose(TypedDict):
    x: float


class Leaf(BaseModel):
    value: int
    next: "Leaf | None" = None


class Twig(BaseModel):
    value: float
    next: "Twig | None" = None


class Thorn(BaseModel):
    value: float
    next: "Point | None" = None


def fits(given: Any, wanted: Any) -> bool:
    form = OutputType(tuple[given, wanted]).bare_ir
    assert isinstance(form.root, ArrayNode)
    return is_assignable(form, *form.root.prefix)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (int, int), (int, float), (int, int | str), (int | str, str | int | None), (Literal["a"], str), (Literal["a"], Literal["a", "b"]),
        (Literal[1, 2], float), (Literal[True], bool), (None, int | None), (int, Any), (Point, Any), (date, date), (date, str),
        (list[int], list[float]), (tuple[int, int], tuple[float, float]), (tuple[int, int], list[int]), (list[int], list[Any]),
        (Point, Loose), (Point, dict[str, int]), (dict[str, int], dict[str, float]), (Leaf, Twig), (list[Leaf], list[Twig]), (Solid, Point),
        (int, Annotated[int, Field(ge=3)]), (str, Annotated[str, Field(max_length=3)]), (Any, Any),
        (Literal["a"], Annotated[str, Field(min_length=2)]),
    ],
)  # fmt: skip
def test_what_has_the_type_fits(given: Any, wanted: Any) -> None:
    assert fits(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (float, int), (int, str), (int, bool), (bool, int), (int | str, int), (int | None, int), (str, Literal["a"]),
        (Literal["a", "c"], Literal["a", "b"]), (Literal[1], bool), (Any, int), (str, date), (date, UUID), (Literal["a"], date),
        (list[float], list[int]), (list[int], tuple[int, int]), (tuple[int, int], tuple[int, int, int]),
        (tuple[int, int, int], tuple[int, int]), (tuple[int, str], list[int]), (list[Any], list[int]),
        (Loose, Point), (Point, Solid3), (dict[str, int], Point), (Point, dict[str, str]), (dict[str, float], dict[str, int]),
        (Twig, Leaf), (Leaf, Thorn), (Point, list[int]), (list[int], Point),
    ],
)  # fmt: skip
def test_what_may_be_of_another_type_does_not_fit(given: Any, wanted: Any) -> None:
    assert not fits(given, wanted)


@given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.randoms(use_true_random=False))
def test_every_value_of_a_type_that_fits_is_accepted_by_the_other(one: Any, two: Any, random: Any) -> None:
    (given_type, make), (wanted_type, _) = one, two
    if not fits(given_type, wanted_type):
        return
    source, target = OutputType(given_type), OutputType(wanted_type)

    for _ in range(3):
        data = source.dump(source.validate(make(random)))
        try:
            target.validate(target.narrow(data))
        except OutputValidationError as error:
            pytest.fail(f"{given_type} fits {wanted_type}, but: {error}")
