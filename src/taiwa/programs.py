"""The methods of a client as generators, to combine in programs of your own: `value = yield from programs.extract(Order, text)`.

A program does no I/O. `Client.run` and `AsyncClient.run` run one.
"""

from taiwa.flows.ask.consult import Clarified, ask, clarify
from taiwa.flows.ask.types import ClarifyOptions
from taiwa.flows.extract import TypedAnswer, extract
from taiwa.flows.plans import Confirm, PlanResult, execute_plan
from taiwa.flows.program_turn import AskUser, DefaultTurn, show
from taiwa.flows.route import NeedsClarification, Routed, route
from taiwa.flows.solve.solve import solve, vote
from taiwa.flows.turn import say
from taiwa.kernel.effects import CallTool, Complete, Effect, Program, gather, notify, perform

__all__ = [
    "AskUser",
    "CallTool",
    "Clarified",
    "ClarifyOptions",
    "Complete",
    "Confirm",
    "DefaultTurn",
    "Effect",
    "NeedsClarification",
    "PlanResult",
    "Program",
    "Routed",
    "TypedAnswer",
    "ask",
    "clarify",
    "execute_plan",
    "extract",
    "gather",
    "notify",
    "perform",
    "route",
    "say",
    "show",
    "solve",
    "vote",
]
