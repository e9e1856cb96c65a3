"""What a guide can be compiled from, besides the constraints of a request (`JsonSchema`, `Regex`, `Grammar`) and a type."""

from typing import Any, Literal, TypeAlias, get_args, get_origin

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import value
from taiwa.kernel.values import Grammar, JsonSchema, Regex, ToolSpec

__all__ = ["Choice", "Source", "Tools", "Whitespace"]

Whitespace: TypeAlias = Literal["bounded", "compact", "free"]
"""Between the parts of a JSON text: one space, or a line break and at most 24 spaces · nothing · as much as JSON allows."""


@value
class Choice:
    """The answer must be one of these words."""

    options: tuple[str, ...]

    @classmethod
    def of(cls, annotation: Any) -> "Choice":  # noqa: ANN401  (no static type says "a type expression")
        """Read the words of a `Literal`.

        Raises:
            InputError: it is no `Literal` of strings.
        """
        words = get_args(annotation)
        if get_origin(annotation) is not Literal or not all(isinstance(word, str) for word in words):
            raise InputError(f"{annotation!r} is not a Literal of strings")
        return cls(words)


@value(tag="tools-source")
class Tools:
    """Free text in which tools may be called, up to the end of the first call.

    Nothing but a call of one of these tools can follow the opening of a call, and its input has the tool's own syntax: the
    bare text of its one needed parameter (with its pattern, its words or its type), or a JSON object of all parameters.
    The call is captured as its tool's name and its input. Where it ends the text is complete: run the tool, write the result
    behind it, and start again.

    `opening` and `closing` stand around a call: `{name}` is the tool's name. `free_text` False leaves out all text but the
    call. `accepts` and `refuses` are whole texts that must pass and must not; with what the specifications say themselves
    they are tried when the guide is compiled.
    """

    specs: tuple[ToolSpec, ...]
    free_text: bool = True
    opening: str = "<<{name}: "
    closing: str = ">>"
    accepts: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


Source: TypeAlias = JsonSchema | Regex | Grammar | Choice | Tools
"""What can be compiled, a type or a `Shape` apart."""
