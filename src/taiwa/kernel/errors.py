"""The error classes.

    TaiwaError
     ├ InputError ─ NotFoundError an argument or input is invalid, or names what does not exist
     ├ ConfigError                configuration is missing or invalid
     ├ OutputValidationError      text cannot be parsed as the output type
     ├ NoValidTokenError          a constraint allows no next token
     ├ LimitError                 a usage limit is reached
     ├ ApprovalRequiredError      a tool call needs approval, and nothing decides on it
     ├ ReplayError                a program differs from its journal
     ├ ModelError
     │  ├ RefusalError · UnsupportedError · AuthenticationError · RateLimitError
     │  └ OverloadedError · TimeoutError · ProtocolError · ContextLengthError
     ├ ToolError ─ UnknownToolError
     └ StoreError ─ ConflictError · CorruptError

A message is one line: what is wrong, where (path, line, field) and what to do next. Errors are recorded in journals, so
each can be recorded and restored. `check_argument` and `check_list` check what a caller without a type checker passes.
"""

from collections.abc import Generator, Sequence, Set
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain
from traceback import format_exception
from types import TracebackType
from typing import Any, ClassVar, Self, TypeAlias, cast

from taiwa.kernel.wording import Wording

Plain: TypeAlias = str | int | float | bool | tuple[str, ...] | None


class TaiwaError(Exception):
    """The base class of all errors of this library."""

    details: ClassVar[tuple[str, ...]] = ()
    tag: ClassVar[str] = "error"
    """The name in records, independent of the class name; a subclass without a tag of its own is recorded as its base."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.spent: object = None
        """The usage of the failed run (`kernel.usage_limits.RunUsage`), set by the runtime."""

    def record(self) -> dict[str, Plain]:
        """Return the error as plain data, the inverse of `restore_error`."""
        written: dict[str, Plain] = {"type": self.tag, "message": self.message}
        if isinstance(self.message, Wording):
            written["wording"] = (self.message.template, *chain.from_iterable(self.message.values.items()))
        return written | {name: getattr(self, name) for name in self.details}

    @classmethod
    def restore(cls, message: str, details: dict[str, Plain]) -> Self:
        """Rebuild the error without calling its constructor."""
        error = cls.__new__(cls)
        match details.get("wording"):
            case [str(template), *parts]:
                again = Wording(template, **dict(zip(parts[::2], parts[1::2], strict=False)))
                message = again if again == message else message
            case _:
                pass
        TaiwaError.__init__(error, message)
        for name in cls.details:
            setattr(error, name, details.get(name))
        return error


def error_classes(base: type[TaiwaError] = TaiwaError) -> dict[str, type[TaiwaError]]:
    """Map the tags of an error class and of all classes derived from it to the classes."""
    classes = {base.tag: base}
    for derived in base.__subclasses__():
        classes = error_classes(derived) | classes
    return classes


def restore_error(record: dict[str, Plain]) -> TaiwaError:
    """Rebuild an error from its record; an unknown tag becomes a plain `TaiwaError`."""
    cls = error_classes().get(str(record.get("type")), TaiwaError)
    return cls.restore(str(record.get("message", "")), record)


class InputError(TaiwaError):
    """An argument or input is invalid."""

    tag = "input"


class NotFoundError(InputError):
    """A session, node, turn, user, index or document does not exist."""


class ConfigError(TaiwaError):
    """Configuration is missing or invalid: a model, a key, an extra, a price, an app file."""

    tag = "config"


class OutputValidationError(TaiwaError):
    """A text cannot be parsed as the output type.

    `diagnostics` has one line per problem; `attempts` are the texts that were tried, oldest first.
    """

    tag = "output-validation"
    details: ClassVar[tuple[str, ...]] = ("text", "diagnostics", "attempts")

    def __init__(
        self, message: str, *, text: str = "", diagnostics: tuple[str, ...] = (), attempts: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.text = text
        self.diagnostics = diagnostics
        self.attempts = attempts


class NoValidTokenError(TaiwaError):
    """A constraint allows no next token; `state` describes the position."""

    tag = "no-valid-token"
    details: ClassVar[tuple[str, ...]] = ("state",)

    def __init__(self, message: str, *, state: str = "") -> None:
        super().__init__(message)
        self.state = state


def _plain(number: float) -> str:
    """Write a number without an exponent."""
    text = f"{Decimal(str(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class LimitError(TaiwaError):
    """A usage limit is reached: `amount` of `bound`, in the unit that `which` names; or it would be exceeded by the next call,
    which needs `needed`.
    """

    tag = "limit"
    details: ClassVar[tuple[str, ...]] = ("which", "amount", "bound", "needed")

    def __init__(self, which: str, amount: float, bound: float, needed: float = 0.0) -> None:
        limit = f"the limit on {which.replace('_', ' ')}"
        used = f"{_plain(amount)} of {_plain(bound)}"
        if amount >= bound or not needed:
            super().__init__(f"{limit} is reached: {used}")
        else:
            super().__init__(
                f"{limit} would be exceeded: {used} is used, and the next call may need {_plain(needed)}; "
                "raise the limit or shorten the request"
            )
        self.which = which
        self.amount = amount
        self.bound = bound
        self.needed = needed


class ApprovalRequiredError(TaiwaError):
    """A tool call needs approval, and nothing decides on it: `calls` are the `ApprovalRequest`s.

    The run ends before the calls, and answers so far stay in its journal: the turn of a session can be resumed with `approve`.
    """

    tag = "approval-required"
    calls: tuple[Any, ...] = ()

    def __init__(self, message: str, *, calls: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.calls = calls


class ReplayError(TaiwaError):
    """A program yields another effect than its journal records, so the recorded answers do not apply."""

    tag = "replay"


class ModelError(TaiwaError):
    """A model call failed. `request` is the digest of the request, `status` the HTTP status if there was one."""

    tag = "model"
    details: ClassVar[tuple[str, ...]] = ("request", "status")
    may_be_charged: bool = False
    """Whether the server may have charged the call; set by the model, not recorded."""

    def __init__(self, message: str, *, request: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.request = request
        self.status = status


class RefusalError(ModelError):
    """The model or its provider refused to answer."""

    tag = "refusal"


class UnsupportedError(ModelError):
    """The model does not support a capability that the request requires; `capability` names it."""

    tag = "unsupported"
    details: ClassVar[tuple[str, ...]] = ("request", "status", "capability")

    def __init__(self, message: str, *, capability: str, request: str = "", status: int | None = None) -> None:
        super().__init__(message, request=request, status=status)
        self.capability = capability


class AuthenticationError(ModelError):
    """The API key is missing or invalid, or not allowed to use the model."""

    tag = "authentication"


class RateLimitError(ModelError):
    """The rate limit of the server is exceeded; `retry_after` is the wait in seconds that the server requested, or None."""

    tag = "rate-limit"
    details: ClassVar[tuple[str, ...]] = ("request", "status", "retry_after")

    def __init__(
        self, message: str, *, retry_after: float | None = None, request: str = "", status: int | None = None
    ) -> None:
        super().__init__(message, request=request, status=status)
        self.retry_after = retry_after


class OverloadedError(ModelError):
    """The server cannot answer now (HTTP 5xx, 529)."""

    tag = "overloaded"


class TimeoutError(ModelError):
    """The server did not answer in time."""

    tag = "timeout"


class ProtocolError(ModelError):
    """The response of the server violates its protocol; `body` holds its start."""

    tag = "protocol"
    details: ClassVar[tuple[str, ...]] = ("request", "status", "body")

    def __init__(self, message: str, *, body: str = "", request: str = "", status: int | None = None) -> None:
        super().__init__(message, request=request, status=status)
        self.body = body


class ContextLengthError(ModelError):
    """The request is longer than the context of the model."""

    tag = "context-length"


class ToolError(TaiwaError):
    """A tool failed. Only code, message and hint are sent to the model.

    `trace` is the traceback of the tool, for the user only.
    """

    tag = "tool"
    details: ClassVar[tuple[str, ...]] = ("code", "hint", "trace")

    def __init__(self, message: str, *, code: str = "error", hint: str = "", trace: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.trace = trace


class UnknownToolError(ToolError):
    """The program has no tool of that name."""

    tag = "unknown-tool"


class StoreError(TaiwaError):
    """An operation of the store failed: it is full, read-only, newer than this program, or missing."""

    tag = "store"


class ConflictError(StoreError):
    """Another process moved the session first; nothing was lost or overwritten."""

    tag = "conflict"


class CorruptError(StoreError):
    """The data of the store does not match its hashes."""

    tag = "corrupt"


MAX_TRACE_CHARS = 8_000


class ToolErrorBoundary:
    """A context manager that maps exceptions of a tool to `ToolError`, with their traceback in `trace`.

    A context manager, because only runtimes catch every exception; here the original error is re-raised as the cause.
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
            error.trace = error.trace or _format_trace(error.__cause__) or "\n".join(notes)[-MAX_TRACE_CHARS:]
        elif isinstance(error, Exception) and not isinstance(error, TaiwaError):
            raise ToolError(f"{self._name} failed", code="internal", trace=_format_trace(error)) from error


def _format_trace(error: BaseException | None) -> str:
    return "" if error is None else "".join(format_exception(error))[-MAX_TRACE_CHARS:]


@contextmanager
def file_errors(doing: str, raised: type[TaiwaError] = ConfigError) -> Generator[None]:
    """Raise the errors of the system, and of a text that is not UTF-8, as errors that say what cannot be done: "read notes.txt"."""
    try:
        yield
    except OSError as error:
        raise raised(f"cannot {doing}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise raised(f"cannot {doing}: not UTF-8 at byte {error.start:,}") from None


def check_argument(name: str, given: object, due: Any, what: str) -> None:  # noqa: ANN401  (what isinstance takes)
    """Check that an argument is an instance of a type; `what` describes the expected argument.

    Raises:
        InputError: it is not.
    """
    kinds: tuple[object, ...] = cast("tuple[object, ...]", due) if isinstance(due, tuple) else (due,)
    if not isinstance(given, due) or (isinstance(given, bool) and int in kinds):
        raise InputError(f"{name} must be {what}, got {describe(given)}")


def check_list(name: str, given: object, due: Any, what: str) -> None:  # noqa: ANN401  (what isinstance takes)
    """Check that an argument is a list or similar of instances of a type; a string does not count as a list.

    Raises:
        InputError: it is not.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, Set)):
        raise InputError(f"{name} must be a list of {what}, got {describe(given)}; write {name}=[…]")
    for each in cast("Sequence[object]", given):
        check_argument(f"each of {name}", each, due, what)


def describe(argument: object) -> str:
    """Describe an argument: `a str`, `the class Order`, `the function ask`."""
    name = getattr(argument, "__name__", "")
    if isinstance(argument, type):
        return f"the class {name}"
    if callable(argument) and name:
        return f"the function {name}"
    kind = type(argument).__name__
    return "None" if argument is None else f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"
