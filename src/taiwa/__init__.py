"""Conversations with language models that a program can rely on.

>>> import taiwa
>>> session = taiwa.open("chat", model=taiwa.scripted_model("Hello!\\n@@delta\\n{}"), store=":memory:")
>>> session.say("Hi").text
'Hello!'

Public names are imported when they are first used: `import taiwa` loads neither the HTTP client nor the store.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taiwa.apps.catalog import load_app
    from taiwa.cli.main import exit_on_error
    from taiwa.flows.api import Api
    from taiwa.flows.chat import Reply, say
    from taiwa.flows.extract import Extraction, extract
    from taiwa.flows.retry_invalid_output import RepairPolicy
    from taiwa.flows.route import route
    from taiwa.flows.solve.rationale import Rationale
    from taiwa.flows.solve.solve import SolveOptions, solve
    from taiwa.kernel.async_runtime import AsyncRuntime
    from taiwa.kernel.effects import Program, gather, perform
    from taiwa.kernel.errors import TaiwaError
    from taiwa.kernel.execution import RunResult, replay
    from taiwa.kernel.journal import Journal
    from taiwa.kernel.messages import Message, Notice, Request, Response, TextDelta, Usage
    from taiwa.kernel.runtime import Runtime
    from taiwa.kernel.usage_limits import RunUsage, UsageLimits
    from taiwa.models.scripted import scripted_model
    from taiwa.sessions.durable_turn import TurnOptions, TurnResult
    from taiwa.sessions.session import Session, arun, astream, open, run, stream
    from taiwa.structured import OutputType, parse
    from taiwa.tools.function_tool import tool

__all__ = [
    "Api",
    "AsyncRuntime",
    "Extraction",
    "Journal",
    "Message",
    "Notice",
    "OutputType",
    "Program",
    "Rationale",
    "RepairPolicy",
    "Reply",
    "Request",
    "Response",
    "RunResult",
    "RunUsage",
    "Runtime",
    "Session",
    "SolveOptions",
    "TaiwaError",
    "TextDelta",
    "TurnOptions",
    "TurnResult",
    "Usage",
    "UsageLimits",
    "arun",
    "astream",
    "exit_on_error",
    "extract",
    "gather",
    "load_app",
    "open",
    "parse",
    "perform",
    "replay",
    "route",
    "run",
    "say",
    "scripted_model",
    "solve",
    "stream",
    "tool",
]

__version__ = "0.1.0"

MODULES = {
    "apps.catalog": "load_app",
    "cli.main": "exit_on_error",
    "flows.api": "Api",
    "flows.chat": "Reply say",
    "flows.extract": "Extraction extract",
    "flows.retry_invalid_output": "RepairPolicy",
    "flows.route": "route",
    "flows.solve.rationale": "Rationale",
    "flows.solve.solve": "SolveOptions solve",
    "kernel.async_runtime": "AsyncRuntime",
    "kernel.effects": "Program gather perform",
    "kernel.errors": "TaiwaError",
    "kernel.execution": "RunResult replay",
    "kernel.journal": "Journal",
    "kernel.messages": "Message Notice Request Response TextDelta Usage",
    "kernel.runtime": "Runtime",
    "kernel.usage_limits": "RunUsage UsageLimits",
    "models.scripted": "scripted_model",
    "sessions.durable_turn": "TurnOptions TurnResult",
    "sessions.session": "Session arun astream open run stream",
    "structured": "OutputType parse",
    "tools.function_tool": "tool",
}
PLACES = {name: module for module, names in MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in PLACES:
        raise AttributeError(f"module 'taiwa' has no attribute {name!r}")
    found: object = getattr(import_module(f"taiwa.{PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
