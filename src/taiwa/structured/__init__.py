"""An answer has a type: rendering, reading, diagnosing and streaming it. The only place that knows pydantic."""

from typing import Any, TypeVar, overload

from taiwa.structured.json_repair.scanner import Fix, Level
from taiwa.structured.output_type import OutputType
from taiwa.structured.parse import STANDARD, ParseOptions, ParseResult
from taiwa.structured.streaming import PartialParser, PartialUpdate
from taiwa.structured.type_notation import Annotation, parse_notation, render_notation

__all__ = [
    "Annotation",
    "Fix",
    "Level",
    "OutputType",
    "ParseOptions",
    "ParseResult",
    "PartialParser",
    "PartialUpdate",
    "parse",
    "parse_notation",
    "render_notation",
]


T = TypeVar("T")


@overload
def parse(text: str, annotation: type[T], rules: ParseOptions = STANDARD) -> ParseResult[T]: ...


@overload
def parse(text: str, annotation: object, rules: ParseOptions = STANDARD) -> ParseResult[Any]: ...


def parse(text: str, annotation: object, rules: ParseOptions = STANDARD) -> ParseResult[Any]:
    """Read the text of an answer as a type, without any model.

    >>> parse("Sure: {'size': 2}", dict[str, int]).value
    {'size': 2}

    Raises:
        ShapeError: no value of the type can be read from it.
    """
    return OutputType(annotation).read(text, rules)
