"""Conversations with language models that a program can rely on.

>>> import taiwa
>>> talk = taiwa.open("chat", model=taiwa.script("Hello!\\n@@delta\\n{}"), store=":memory:")
>>> talk.say("Hi").text
'Hello!'

Everything is imported when it is first used: `import taiwa` loads neither the HTTP client nor the store.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taiwa.apps.catalogue import find as find_app
    from taiwa.flows.api import Api
    from taiwa.flows.chat import Reply, say
    from taiwa.flows.extract import Extracted, extract
    from taiwa.flows.rationale import Rationale
    from taiwa.flows.reason import SolveOptions, solve
    from taiwa.flows.repair import Repair
    from taiwa.flows.route import route
    from taiwa.kernel.arun import AsyncRuntime
    from taiwa.kernel.effects import Program, gather, perform
    from taiwa.kernel.errors import TaiwaError
    from taiwa.kernel.journal import Journal
    from taiwa.kernel.ledger import Limits, Spent
    from taiwa.kernel.replay import replay
    from taiwa.kernel.run import Runtime
    from taiwa.kernel.session import Done
    from taiwa.kernel.values import Message, Note, Request, Response, TextDelta, Usage
    from taiwa.models.scripted import script
    from taiwa.shape import Shape, read
    from taiwa.talk.opening import open
    from taiwa.talk.running import arun, astream, run, stream
    from taiwa.talk.talk import Talk
    from taiwa.talk.turn import TurnOptions, TurnResult

__all__ = [
    "Api",
    "AsyncRuntime",
    "Done",
    "Extracted",
    "Journal",
    "Limits",
    "Message",
    "Note",
    "Program",
    "Rationale",
    "Repair",
    "Reply",
    "Request",
    "Response",
    "Runtime",
    "Shape",
    "SolveOptions",
    "Spent",
    "TaiwaError",
    "Talk",
    "TextDelta",
    "TurnOptions",
    "TurnResult",
    "Usage",
    "arun",
    "astream",
    "extract",
    "find_app",
    "gather",
    "open",
    "perform",
    "read",
    "replay",
    "route",
    "run",
    "say",
    "script",
    "solve",
    "stream",
]

__version__ = "0.1.0"

PLACES = {
    "apps.catalogue": ("find_app",),
    "flows.api": ("Api",),
    "flows.chat": ("Reply", "say"),
    "flows.extract": ("Extracted", "extract"),
    "flows.rationale": ("Rationale",),
    "flows.reason": ("SolveOptions", "solve"),
    "flows.repair": ("Repair",),
    "flows.route": ("route",),
    "kernel.arun": ("AsyncRuntime",),
    "kernel.effects": ("Program", "gather", "perform"),
    "kernel.errors": ("TaiwaError",),
    "kernel.journal": ("Journal",),
    "kernel.ledger": ("Limits", "Spent"),
    "kernel.replay": ("replay",),
    "kernel.run": ("Runtime",),
    "kernel.session": ("Done",),
    "kernel.values": ("Message", "Note", "Request", "Response", "TextDelta", "Usage"),
    "models.scripted": ("script",),
    "shape": ("Shape", "read"),
    "talk.opening": ("open",),
    "talk.running": ("arun", "astream", "run", "stream"),
    "talk.talk": ("Talk",),
    "talk.turn": ("TurnOptions", "TurnResult"),
}
MODULES = {name: module for module, names in PLACES.items() for name in names}
RENAMED = {"find_app": "find"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in MODULES:
        raise AttributeError(f"module 'taiwa' has no attribute {name!r}")
    found: object = getattr(import_module(f"taiwa.{MODULES[name]}"), RENAMED.get(name, name))
    globals()[name] = found
    return found
