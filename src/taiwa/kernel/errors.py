"""Every error a caller may meet.

    TaiwaError
     ├ InputError                 what a person or program handed in cannot be used
     ├ ConfigError                something must be set up first
     ├ OutputValidationError      text does not read as the wanted type
     ├ NoValidTokenError          a constraint leaves no next token
     ├ LimitError                 a program reached one of its limits
     ├ ReplayError                a program asks for something else than was recorded
     ├ ModelError
     │  ├ RefusalError · UnsupportedError · AuthenticationError · RateLimitError
     │  └ OverloadedError · TimeoutError · ProtocolError
     ├ ToolError ─ UnknownToolError
     └ StoreError ─ ConflictError · CorruptError

A message is one line: what happened, where (path, line, field) and what to do next. Errors are recorded in journals, so
every one can be written as a record and revived from it.
"""

from traceback import format_exception
from types import TracebackType
from typing import ClassVar, Self, TypeAlias

__all__ = [
    "AuthenticationError",
    "ConfigError",
    "ConflictError",
    "CorruptError",
    "InputError",
    "LimitError",
    "ModelError",
    "NoValidTokenError",
    "OutputValidationError",
    "OverloadedError",
    "ProtocolError",
    "RateLimitError",
    "RefusalError",
    "ReplayError",
    "StoreError",
    "TaiwaError",
    "TimeoutError",
    "ToolError",
    "ToolErrorBoundary",
    "UnknownToolError",
    "UnsupportedError",
    "restore_error",
]


Plain: TypeAlias = str | int | float | bool | tuple[str, ...] | None


class TaiwaError(Exception):
    """The root: `except TaiwaError` catches all that this project raises on purpose."""

    details: ClassVar[tuple[str, ...]] = ()
    tag: ClassVar[str] = "error"
    """Its name in records, the same whatever the class is called; a subclass without one is recorded as its base."""
    known: ClassVar[dict[str, type["TaiwaError"]]] = {}

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.spent: object = None
        """The bill of the run that failed (`kernel.session.Spent`), set by the driver that ran it."""

    def __init_subclass__(cls, tag: str = "") -> None:
        if not tag:
            return
        known = TaiwaError.known.setdefault(tag, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"the error tag {tag!r} of {cls.__qualname__} is taken by {known.__qualname__}; choose another"
            )
        TaiwaError.known[tag] = cls
        cls.tag = tag

    def record(self) -> dict[str, Plain]:
        """Write the error as plain data; `restore_error` reads it back."""
        return {"type": self.tag, "message": self.message} | {name: getattr(self, name) for name in self.details}

    @classmethod
    def revive(cls, message: str, details: dict[str, Plain]) -> Self:
        """Make the error again without running its constructor's checks."""
        error = cls.__new__(cls)
        TaiwaError.__init__(error, message)
        for name in cls.details:
            setattr(error, name, details.get(name))
        return error


def restore_error(record: dict[str, Plain]) -> TaiwaError:
    """Read an error back from its record; an unknown tag comes back as a plain `TaiwaError`."""
    cls = TaiwaError.known.get(str(record.get("type")), TaiwaError)
    return cls.revive(str(record.get("message", "")), record)


class InputError(TaiwaError, tag="input"):
    """What a person or a program handed in cannot be used as it is."""


class ConfigError(TaiwaError, tag="config"):
    """Something must be set up first: a model, a key, an extra, a price, an app file."""


class OutputValidationError(TaiwaError, tag="output-validation"):
    """A text does not read as the wanted type, and no allowed repair mended it.

    `diagnostics` has one line per fault, `attempts` the texts that were tried, oldest first.
    """

    details: ClassVar[tuple[str, ...]] = ("text", "diagnostics", "attempts")

    def __init__(
        self, message: str, *, text: str = "", diagnostics: tuple[str, ...] = (), attempts: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.text = text
        self.diagnostics = diagnostics
        self.attempts = attempts


class NoValidTokenError(TaiwaError, tag="no-valid-token"):
    """A constraint leaves no next token; `state` names the place."""

    details: ClassVar[tuple[str, ...]] = ("state",)

    def __init__(self, message: str, *, state: str = "") -> None:
        super().__init__(message)
        self.state = state


class LimitError(TaiwaError, tag="limit"):
    """A program reached a limit: `spent` of `bound` in the unit that `which` names."""

    details: ClassVar[tuple[str, ...]] = ("which", "amount", "bound")

    def __init__(self, which: str, amount: float, bound: float) -> None:
        super().__init__(f"the limit on {which.replace('_', ' ')} is reached: {amount:g} of {bound:g}")
        self.which = which
        self.amount = amount
        self.bound = bound


class ReplayError(TaiwaError, tag="replay"):
    """A program asks for something else than its journal holds, so the recorded answers do not apply."""


class ModelError(TaiwaError, tag="model"):
    """A model call failed. `request` is the digest of the request, `status` the HTTP status where there was one."""

    details: ClassVar[tuple[str, ...]] = ("request", "status")

    def __init__(self, message: str, *, request: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.request = request
        self.status = status


class RefusalError(ModelError, tag="refusal"):
    """The model or its provider refused to answer."""


class UnsupportedError(ModelError, tag="unsupported"):
    """The model cannot do what the request needs; `capability` names it."""

    details: ClassVar[tuple[str, ...]] = ("request", "status", "capability")

    def __init__(self, message: str, *, capability: str, request: str = "", status: int | None = None) -> None:
        super().__init__(message, request=request, status=status)
        self.capability = capability


class AuthenticationError(ModelError, tag="authentication"):
    """The key is missing, wrong, or may not use this model."""


class RateLimitError(ModelError, tag="rate-limit"):
    """Too many calls; `retry_after` is the wait in seconds that the server asked for, or None."""

    details: ClassVar[tuple[str, ...]] = ("request", "status", "retry_after")

    def __init__(
        self, message: str, *, retry_after: float | None = None, request: str = "", status: int | None = None
    ) -> None:
        super().__init__(message, request=request, status=status)
        self.retry_after = retry_after


class OverloadedError(ModelError, tag="overloaded"):
    """The server is there and cannot answer now (5xx, 529)."""


class TimeoutError(ModelError, tag="timeout"):
    """No answer in the time allowed."""


class ProtocolError(ModelError, tag="protocol"):
    """The server said something that is not in its protocol; `body` holds the start of it."""

    details: ClassVar[tuple[str, ...]] = ("request", "status", "body")

    def __init__(self, message: str, *, body: str = "", request: str = "", status: int | None = None) -> None:
        super().__init__(message, request=request, status=status)
        self.body = body


class ToolError(TaiwaError, tag="tool"):
    """The only thing a model may read of a tool's failure: a code, a message, a hint.

    `trace` is for people alone: where the tool itself broke, line by line.
    """

    details: ClassVar[tuple[str, ...]] = ("code", "hint", "trace")

    def __init__(self, message: str, *, code: str = "error", hint: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.trace = trace


class UnknownToolError(ToolError, tag="unknown-tool"):
    """No tool has that name."""


class StoreError(TaiwaError, tag="store"):
    """The store cannot do what was asked: full, read-only, newer than this program, missing."""


class ConflictError(StoreError, tag="conflict"):
    """Somebody else moved the session first; nothing of yours was lost, nothing of theirs overwritten."""


class CorruptError(StoreError, tag="corrupt"):
    """What the store holds does not match its own hashes."""


LONGEST_TRACE = 8_000


class ToolErrorBoundary:
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
