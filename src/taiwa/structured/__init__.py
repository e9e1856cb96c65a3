"""Structured answers: output types rendered for prompts, parsed leniently, diagnosed and streamed. Only this package uses pydantic."""

from typing import Any, TypeVar, overload

from taiwa.structured.json_repair.scanner import Fix, Level
from taiwa.structured.output_type import OutputType
from taiwa.structured.parse import DEFAULT_OPTIONS, ParseOptions, ParseResult
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
def parse(text: str, annotation: type[T], options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[T]: ...


@overload
def parse(text: str, annotation: object, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[Any]: ...


def parse(text: str, annotation: object, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[Any]:
    """Parse the text of an answer as a type, without a model.

    >>> parse("Sure: {'size': 2}", dict[str, int]).value
    {'size': 2}

    Raises:
        OutputValidationError: the text holds no value of the type.
    """
    return OutputType(annotation).parse(text, options)
