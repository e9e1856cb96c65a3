"""Structured answers: output types rendered for prompts, parsed leniently, diagnosed and streamed. Only this package uses pydantic."""

from typing import Any, TypeVar, overload

from taiwa.kernel.errors import check_argument
from taiwa.structured.lenient_scanner import Fix, Level
from taiwa.structured.output_type import DEFAULT_OPTIONS, OutputType, ParseOptions, ParseResult
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
def parse(output: type[T], text: str, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[T]: ...


@overload
def parse(output: object, text: str, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[Any]: ...


def parse(output: object, text: str, options: ParseOptions = DEFAULT_OPTIONS) -> ParseResult[Any]:
    """Parse the text of an answer as a type, or as what `OutputType.of` takes; no model is called.

    >>> parse(dict[str, int], "Sure: {'size': 2}").value
    {'size': 2}

    Raises:
        OutputValidationError: the text holds no value of the type.
    """
    hint = "a text; the type comes first: parse(Order, text)" if isinstance(output, str) else "a text"
    check_argument("text", text, str, hint)
    return OutputType.of(output).parse(text, options)
