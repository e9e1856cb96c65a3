"""An answer has a type: rendering, reading, diagnosing and streaming it. The only place that knows pydantic."""

from typing import Any, TypeVar, overload

from taiwa.shape.ladder import STANDARD, Rules
from taiwa.shape.notation import Annotation, parse_notation, render_notation
from taiwa.shape.reading import Fix, Level, Reading
from taiwa.shape.shape import Shape
from taiwa.shape.stream import Change, Stream

__all__ = [
    "Annotation",
    "Change",
    "Fix",
    "Level",
    "Reading",
    "Rules",
    "Shape",
    "Stream",
    "parse_notation",
    "read",
    "render_notation",
]

T = TypeVar("T")


@overload
def read(text: str, annotation: type[T], rules: Rules = STANDARD) -> Reading[T]: ...
@overload
def read(text: str, annotation: object, rules: Rules = STANDARD) -> Reading[Any]: ...
def read(text: str, annotation: object, rules: Rules = STANDARD) -> Reading[Any]:
    """Read the text of an answer as a type, without any model.

    >>> read("Sure: {'size': 2}", dict[str, int]).value
    {'size': 2}

    Raises:
        ShapeError: no value of the type can be read from it.
    """
    return Shape(annotation).read(text, rules)
