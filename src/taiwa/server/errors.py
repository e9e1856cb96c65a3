"""Errors of requests, independent of the protocol; each wire writes them in its own format."""

from dataclasses import dataclass
from math import ceil

from taiwa.kernel.errors import (
    ConfigError,
    ConflictError,
    InputError,
    LimitError,
    ModelError,
    NoValidTokenError,
    OutputValidationError,
    OverloadedError,
    RateLimitError,
    RefusalError,
    TaiwaError,
    TimeoutError,
    UnsupportedError,
)
from taiwa.kernel.serialization import Json
from taiwa.sessions.repository import BudgetError

INVALID = "invalid_request_error"
SERVER = "server_error"


@dataclass
class ApiError(Exception):
    """An error with its HTTP status, the type and code by which clients recognise it, and the field that it is about."""

    status: int
    message: str
    type: str = INVALID
    code: str | None = None
    param: str | None = None
    retry_after: int | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        headers = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return headers | ({"www-authenticate": 'Bearer realm="taiwa"'} if self.status == 401 else {})


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """Return the error of an invalid field."""
    return ApiError(400, message, code=code, param=param)


def too_many(message: str) -> ApiError:
    """Return the error of a temporary limit of this server."""
    return ApiError(429, message, "rate_limit_error", "rate_limit_exceeded", retry_after=1)


INTERNAL = ApiError(500, "internal error; the log of the server has its traceback", SERVER, "internal_error")
STOPPING = ApiError(503, "the server is stopping; the turn can be resumed", SERVER, "stopping", retry_after=5)


def api_error(error: TaiwaError) -> ApiError:
    """Map an error of the library to one of a request. An error of the model's server is not the client's fault."""
    text = error.message
    if isinstance(error, RateLimitError):
        wait = None if error.retry_after is None else ceil(error.retry_after)
        return ApiError(429, text, "rate_limit_error", "rate_limit_exceeded", retry_after=1 if wait is None else wait)
    if isinstance(error, BudgetError):
        return ApiError(429, text, "insufficient_quota", "insufficient_quota", retry_after=error.retry_after)
    if isinstance(error, LimitError):
        return ApiError(429, text, "insufficient_quota", "insufficient_quota")
    if isinstance(error, (UnsupportedError, NoValidTokenError)):
        return ApiError(400, text, code="unsupported_parameter")
    if isinstance(error, RefusalError):
        return ApiError(400, text, code="content_filter")
    if isinstance(error, OverloadedError):
        return ApiError(503, text, SERVER, "overloaded")
    if isinstance(error, TimeoutError):
        return ApiError(504, text, SERVER, "timeout")
    if isinstance(error, (ModelError, OutputValidationError)):
        return ApiError(502, text, SERVER, "model_error")
    if isinstance(error, InputError):
        return ApiError(400, text)
    if isinstance(error, ConflictError):
        return ApiError(409, text, "conflict_error", "conflict")
    if isinstance(error, ConfigError):
        return ApiError(500, text, SERVER, "configuration_error")
    return ApiError(500, text, SERVER, error.tag)


def error_to_json(error: ApiError) -> dict[str, Json]:
    """Write an error as OpenAI does, and as the server's own API does."""
    return {"error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code}}
