"""What a tool raises: it is foreign code and may raise anything; a model may read that it failed and never why."""

from traceback import format_exception
from types import TracebackType

from taiwa.kernel.errors import TaiwaError, ToolError

__all__ = ["Foreign"]

LONGEST_TRACE = 8_000


class Foreign:
    """Makes a `ToolError` of whatever is raised in it, and puts into its `trace` all that a person needs to find the fault.

    A `with` block, because an `except` that catches everything is for the drivers alone; here nothing is kept, the error
    goes on as the cause.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ToolError):
            notes = getattr(error, "__notes__", ())
            error.trace = error.trace or _told(error.__cause__) or "\n".join(notes)[-LONGEST_TRACE:]
        elif isinstance(error, Exception) and not isinstance(error, TaiwaError):
            raise ToolError(f"{self._name} failed", code="internal", trace=_told(error)) from error


def _told(error: BaseException | None) -> str:
    return "" if error is None else "".join(format_exception(error))[-LONGEST_TRACE:]
