"""Conversations with language models that a program can rely on.

>>> import taiwa
>>> client = taiwa.Client(taiwa.scripted_model("Hello!", '{"drink": "tea"}'))
>>> client.generate("Hi").text
'Hello!'
>>> client.extract(dict[str, str], "A tea, please.")
{'drink': 'tea'}

Public names are imported when they are first used: `import taiwa` loads neither the HTTP client nor the store.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taiwa import programs
    from taiwa.apps.catalog import load_app
    from taiwa.cli.main import exit_on_error
    from taiwa.client.clients import (
        AsyncClient,
        Client,
        ask,
        extract,
        find,
        generate,
        open,
        route,
        run,
        solve,
        stream,
        stream_extract,
        try_extract,
    )
    from taiwa.client.results import Extraction, Generation, SessionInfo
    from taiwa.conversation.app import App
    from taiwa.conversation.reducers import Reducer
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.flows.extract import ExtractError, RepairPolicy
    from taiwa.flows.plans import Api
    from taiwa.flows.program_turn import AskUser
    from taiwa.flows.solve.rationale import Rationale
    from taiwa.flows.solve.solve import SolveOptions
    from taiwa.flows.turn import Reply
    from taiwa.kernel.approval import ApprovalRequest
    from taiwa.kernel.async_runtime import AsyncRuntime
    from taiwa.kernel.attachments import Attachment
    from taiwa.kernel.effects import Effect, Program, gather, perform
    from taiwa.kernel.errors import (
        ApprovalRequiredError,
        AuthenticationError,
        ConfigError,
        ConflictError,
        ContextLengthError,
        InputError,
        LimitError,
        ModelError,
        NoValidTokenError,
        OutputValidationError,
        OverloadedError,
        ProtocolError,
        RateLimitError,
        RefusalError,
        StoreError,
        TaiwaError,
        TimeoutError,
        ToolError,
        UnsupportedError,
    )
    from taiwa.kernel.execution import Journal, RunResult, replay
    from taiwa.kernel.messages import (
        Choice,
        Grammar,
        JsonSchema,
        Message,
        Notice,
        PartialValue,
        Passage,
        Regex,
        Request,
        Response,
        TextDelta,
        ToolCall,
        Usage,
        assistant,
        system,
        user,
    )
    from taiwa.kernel.runtime import AsyncStream, Runtime, Stream
    from taiwa.kernel.serialization import value
    from taiwa.kernel.usage_limits import Limits, Prices, RunUsage
    from taiwa.models.scripted import FunctionModel, function_model, scripted_model
    from taiwa.operations.files import document_text
    from taiwa.sessions.commit_turn import TurnOptions, TurnResult
    from taiwa.sessions.session import AsyncSession, Session
    from taiwa.structured import OutputType, parse
    from taiwa.tools.function_tool import tool

__all__ = [
    "Api",
    "App",
    "ApprovalRequest",
    "ApprovalRequiredError",
    "AskResult",
    "AskUser",
    "AsyncClient",
    "AsyncRuntime",
    "AsyncSession",
    "AsyncStream",
    "Attachment",
    "AuthenticationError",
    "Choice",
    "Client",
    "ConfigError",
    "ConflictError",
    "ContextLengthError",
    "Effect",
    "ExtractError",
    "Extraction",
    "FunctionModel",
    "Generation",
    "Grammar",
    "InputError",
    "Journal",
    "JsonSchema",
    "LimitError",
    "Limits",
    "Message",
    "ModelError",
    "NoValidTokenError",
    "Notice",
    "OutputType",
    "OutputValidationError",
    "OverloadedError",
    "PartialValue",
    "Passage",
    "Prices",
    "Program",
    "ProtocolError",
    "RateLimitError",
    "Rationale",
    "Reducer",
    "RefusalError",
    "Regex",
    "RepairPolicy",
    "Reply",
    "Request",
    "Response",
    "RunResult",
    "RunUsage",
    "Runtime",
    "Session",
    "SessionInfo",
    "SolveOptions",
    "StoreError",
    "Stream",
    "TaiwaError",
    "TextDelta",
    "TimeoutError",
    "ToolCall",
    "ToolError",
    "TurnOptions",
    "TurnResult",
    "UnsupportedError",
    "Usage",
    "ask",
    "assistant",
    "document_text",
    "exit_on_error",
    "extract",
    "find",
    "function_model",
    "gather",
    "generate",
    "load_app",
    "open",
    "parse",
    "perform",
    "programs",
    "replay",
    "route",
    "run",
    "scripted_model",
    "solve",
    "stream",
    "stream_extract",
    "system",
    "tool",
    "try_extract",
    "user",
    "value",
]

__version__ = "0.1.0"

MODULES = {
    "apps.catalog": "load_app",
    "flows.ask.ask_result": "AskResult",
    "cli.main": "exit_on_error",
    "client.clients": "AsyncClient Client ask extract find generate open route run solve stream stream_extract try_extract",
    "client.results": "Extraction Generation SessionInfo",
    "conversation.app": "App",
    "conversation.reducers": "Reducer",
    "flows.plans": "Api",
    "flows.program_turn": "AskUser",
    "flows.turn": "Reply",
    "flows.extract": "ExtractError RepairPolicy",
    "flows.solve.rationale": "Rationale",
    "flows.solve.solve": "SolveOptions",
    "kernel.approval": "ApprovalRequest",
    "kernel.async_runtime": "AsyncRuntime",
    "kernel.attachments": "Attachment",
    "kernel.effects": "Effect Program gather perform",
    "kernel.errors": "ApprovalRequiredError AuthenticationError ConfigError ConflictError ContextLengthError InputError LimitError ModelError NoValidTokenError OutputValidationError OverloadedError ProtocolError RateLimitError RefusalError StoreError TaiwaError TimeoutError ToolError UnsupportedError",
    "kernel.execution": "Journal RunResult replay",
    "kernel.messages": "Choice Grammar JsonSchema Message Notice PartialValue Passage Regex Request Response TextDelta ToolCall Usage assistant system user",
    "kernel.serialization": "value",
    "kernel.runtime": "AsyncStream Runtime Stream",
    "kernel.usage_limits": "Limits Prices RunUsage",
    "models.scripted": "FunctionModel function_model scripted_model",
    "operations.files": "document_text",
    "sessions.commit_turn": "TurnOptions TurnResult",
    "sessions.session": "AsyncSession Session",
    "structured": "OutputType parse",
    "tools.function_tool": "tool",
}
PLACES = {name: module for module, names in MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name == "programs":
        return import_module("taiwa.programs")
    if name not in PLACES:
        raise AttributeError(f"module 'taiwa' has no attribute {name!r}")
    found: object = getattr(import_module(f"taiwa.{PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
