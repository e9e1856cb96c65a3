"""Unexpected keyword arguments: what to write instead of the names that other libraries use."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from typing import Any, TypeVar, cast

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

TYPE = "give the type as extract(Order, text), generate(text, Order) or session(schema=Order)"
CONSTRAINT = "give the constraint as generate(text, taiwa.Regex(…)) or generate(text, taiwa.Choice('yes', 'no'))"
STREAM = "stream(text) yields the text as it arrives, stream_extract(Order, text) the value"
MODEL = "give the model to the client, the session or the question: taiwa.Client(model), taiwa.open(model=…), generate(text, model=…)"
SYSTEM = "give instructions as system=…"
TOKENS = "limit the answer by max_tokens=…"
TEXT = "the text or the list of messages is a positional argument: generate(text), extract(Order, text)"
FILES = "give files and images as attachments=[…]"
REPAIR = "set repairs by repair=taiwa.RepairPolicy(…), and retries of calls by taiwa.Client(attempts=…)"
CLIENT = "give it to the client: taiwa.Client(model, {name}=…)"
HINTS = {
    **dict.fromkeys(("response_model", "output_type", "result_type", "response_format", "response_schema"), TYPE),
    **dict.fromkeys(("type", "format", "schema", "output_schema", "json_schema"), TYPE),
    **dict.fromkeys(("regex", "pattern", "choice", "choices", "grammar"), CONSTRAINT),
    "stream": STREAM,
    "model": MODEL,
    **dict.fromkeys(("instructions", "system_prompt"), SYSTEM),
    **dict.fromkeys(("max_output_tokens", "max_completion_tokens", "max_new_tokens"), TOKENS),
    **dict.fromkeys(("messages", "prompt", "input"), TEXT),
    **dict.fromkeys(("files", "images"), FILES),
    **dict.fromkeys(("retries", "max_retries"), REPAIR),
    **dict.fromkeys(("api_key", "base_url", "timeout", "attempts", "retry_paid", "prices"), CLIENT),
}
"""What to write instead of a name; `{name}` is the name."""


def hint_keywords(function: F) -> F:
    """Let a function raise a TypeError with a hint for an unexpected keyword argument."""
    parameters = signature(function).parameters.values()
    allowed = {
        each.name for each in parameters if each.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    }
    call: Callable[..., Any] = function

    def check(named: dict[str, Any]) -> None:
        unexpected = next((name for name in named if name not in allowed), None)
        if unexpected is not None:
            keywords = ", ".join(each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY)
            hint = HINTS.get(unexpected, f"it takes {keywords}" if keywords else "").format(name=unexpected)
            what = f"{call.__name__}() got an unexpected keyword argument {unexpected!r}"
            raise TypeError(f"{what}; {hint}" if hint else what)

    @wraps(call)
    def wrapper(*given: Any, **named: Any) -> Any:  # noqa: ANN401  (what the function takes and returns)
        check(named)
        return call(*given, **named)

    @wraps(call)
    async def coroutine(*given: Any, **named: Any) -> Any:  # noqa: ANN401  (what the function takes and returns)
        check(named)
        return await call(*given, **named)

    return cast("F", coroutine if iscoroutinefunction(call) else wrapper)


def hint_method_keywords(cls: C) -> C:
    """Apply `hint_keywords` to the public methods of a class."""
    for name, found in list(vars(cls).items()):
        if isfunction(found) and not name.startswith("_"):
            setattr(cls, name, hint_keywords(found))
    return cls
