"""A tool's result as MCP writes it, and back: the same text and value on both sides."""

from taiwa.kernel.errors import ToolError
from taiwa.kernel.records import Json

__all__ = ["failed", "failure", "unwrapped", "wrapped"]

ONLY = "result"


def wrapped(value: Json) -> dict[str, Json] | None:
    """A value as structured content, which must be an object; what is none goes under `result`, as Python's servers do.

    >>> wrapped("2/3"), wrapped({"a": 1}), unwrapped({"result": "2/3"})
    ({'result': '2/3'}, {'a': 1}, '2/3')
    """
    if value is None:
        return None
    return value if isinstance(value, dict) and set(value) != {ONLY} else {ONLY: value}


def unwrapped(content: Json) -> Json:
    """The inverse of `wrapped`."""
    return content[ONLY] if isinstance(content, dict) and set(content) == {ONLY} else content


def failed(error: ToolError) -> dict[str, Json]:
    """An error as structured content; its text is `said`."""
    return {"error": error.code, "message": error.message, "hint": error.hint}


def failure(content: Json, text: str, name: str) -> ToolError:
    """The error that a server tells of: ours exactly, anybody else's as its text."""
    if isinstance(content, dict) and set(content) == {"error", "message", "hint"}:
        code, message, hint = (str(content[key]) for key in ("error", "message", "hint"))
        return ToolError(message, code=code, hint=hint)
    return ToolError(text or f"{name} failed", code="remote")
