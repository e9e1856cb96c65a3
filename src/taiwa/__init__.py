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
    from taiwa import programs as programs
    from taiwa.apps.catalog import load_app as load_app
    from taiwa.cli.main import exit_on_error as exit_on_error
    from taiwa.client.clients import (
        AsyncClient as AsyncClient,
        Client as Client,
        ask as ask,
        extract as extract,
        find as find,
        generate as generate,
        open as open,
        route as route,
        run as run,
        solve as solve,
        stream as stream,
        stream_extract as stream_extract,
        try_extract as try_extract,
    )
    from taiwa.client.results import (
        Extraction as Extraction,
        Generation as Generation,
        SessionInfo as SessionInfo,
    )
    from taiwa.conversation.app import App as App
    from taiwa.conversation.reducers import Reducer as Reducer
    from taiwa.flows.ask.ask_result import AskResult as AskResult
    from taiwa.flows.extract import (
        ExtractError as ExtractError,
        RepairPolicy as RepairPolicy,
    )
    from taiwa.flows.plans import Api as Api
    from taiwa.flows.program_turn import AskUser as AskUser
    from taiwa.flows.solve.rationale import Rationale as Rationale
    from taiwa.flows.solve.solve import SolveOptions as SolveOptions
    from taiwa.flows.turn import Reply as Reply
    from taiwa.kernel.approval import ApprovalRequest as ApprovalRequest
    from taiwa.kernel.async_runtime import AsyncRuntime as AsyncRuntime
    from taiwa.kernel.attachments import Attachment as Attachment
    from taiwa.kernel.effects import (
        Effect as Effect,
        Program as Program,
        gather as gather,
        perform as perform,
    )
    from taiwa.kernel.errors import (
        ApprovalRequiredError as ApprovalRequiredError,
        AuthenticationError as AuthenticationError,
        ConfigError as ConfigError,
        ConflictError as ConflictError,
        ContextLengthError as ContextLengthError,
        InputError as InputError,
        LimitError as LimitError,
        ModelError as ModelError,
        NoValidTokenError as NoValidTokenError,
        OutputValidationError as OutputValidationError,
        OverloadedError as OverloadedError,
        ProtocolError as ProtocolError,
        RateLimitError as RateLimitError,
        RefusalError as RefusalError,
        StoreError as StoreError,
        TaiwaError as TaiwaError,
        TimeoutError as TimeoutError,
        ToolError as ToolError,
        UnsupportedError as UnsupportedError,
    )
    from taiwa.kernel.execution import (
        Journal as Journal,
        RunResult as RunResult,
        replay as replay,
    )
    from taiwa.kernel.messages import (
        Choice as Choice,
        Grammar as Grammar,
        JsonSchema as JsonSchema,
        Message as Message,
        Notice as Notice,
        PartialValue as PartialValue,
        Passage as Passage,
        Regex as Regex,
        Request as Request,
        Response as Response,
        TextDelta as TextDelta,
        ToolCall as ToolCall,
        Usage as Usage,
        assistant as assistant,
        system as system,
        user as user,
    )
    from taiwa.kernel.runtime import (
        AsyncStream as AsyncStream,
        Runtime as Runtime,
        Stream as Stream,
    )
    from taiwa.kernel.serialization import value as value
    from taiwa.kernel.usage_limits import (
        Limits as Limits,
        Prices as Prices,
        RunUsage as RunUsage,
    )
    from taiwa.models.scripted import (
        FunctionModel as FunctionModel,
        function_model as function_model,
        scripted_model as scripted_model,
    )
    from taiwa.operations.files import document_text as document_text
    from taiwa.sessions.commit_turn import (
        TurnOptions as TurnOptions,
        TurnResult as TurnResult,
    )
    from taiwa.sessions.session import (
        AsyncSession as AsyncSession,
        Session as Session,
    )
    from taiwa.structured import (
        OutputType as OutputType,
        parse as parse,
    )
    from taiwa.tools.function_tool import tool as tool

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
__all__ = [*PLACES, "programs"]  # noqa: PLE0604  (texts; a type checker reads the imports `X as X` above)


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
