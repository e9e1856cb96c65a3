"""The overhead of a tool call without the model: finding or receiving it, running it and inserting its result; beside the tool
turns of peers.

Every library runs the same dialogue with a model that returns scripted text without delay: a number of calls of one trivial tool,
then the answer. The cost per call is the difference to a dialogue without calls, divided by their number.
"""

import json
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import ClassVar

from benches.measure import Subject, timed
from taiwa import tool
from taiwa.flows.solve.rationale import SolveLimits, ToolMode
from taiwa.flows.solve.solve import SolveOptions, solve
from taiwa.kernel.messages import Message, Response, ToolCall
from taiwa.kernel.runtime import Runtime
from taiwa.models.scripted import scripted_model

CALLS = 8
ROUNDS = 15
REPEATS = 6
WAYS: tuple[ToolMode, ...] = ("prefill", "stop", "native")
MOST_US = 2_000
Dialogue = Callable[[int], str]
"""Runs a dialogue with the given number of calls and returns the answer."""
WORDS = "The train takes a while, so the distance has to be worked out first. "
LAST = "So the answer is 42."


@tool(isolated=False)
def echo(number: int) -> str:
    """Give the number back."""
    return str(number)


def taiwa(way: ToolMode) -> Dialogue:
    limits = SolveLimits(max_tool_calls=CALLS + 1, max_tokens=None)

    def turn(number: int) -> str | Response:
        if way != "native":
            return f"{WORDS}<<echo: {number}>>"
        call = ToolCall("echo", json.dumps({"number": number}), f"call_{number}")
        return Response(Message("assistant", (call,)), "tool_calls")

    def talk(calls: int) -> str:
        model = scripted_model(*map(turn, range(calls)), LAST, chunk=len(WORDS))
        found = Runtime(model, tools=(echo,)).run(solve("?", (echo.spec,), SolveOptions(tool_mode=way, limits=limits)))
        assert len(found.calls) == calls
        return found.text

    return talk


def pydantic_ai() -> Dialogue:
    ai, messages = import_module("pydantic_ai"), import_module("pydantic_ai.messages")
    function_model = import_module("pydantic_ai.models.function").FunctionModel

    def talk(calls: int) -> str:
        turn = count()

        def say(_: object, __: object) -> object:
            if (number := next(turn)) < calls:
                part = messages.ToolCallPart("echo", {"number": number}, f"call_{number}")
            else:
                part = messages.TextPart(LAST)
            return messages.ModelResponse(parts=[part])

        agent = ai.Agent(function_model(say))
        agent.tool_plain(echo.function)
        result = agent.run_sync("?")
        assert next(turn) == calls + 1
        return str(result.output)

    return talk


def smolagents() -> Dialogue:
    smol = import_module("smolagents")
    models = import_module("smolagents.models")

    class Scripted(models.Model):  # type: ignore[name-defined,misc]
        def __init__(self, calls: int) -> None:
            super().__init__(model_id="scripted")
            self.calls, self.turn = calls, count()

        def generate(self, *_: object, **__: object) -> object:
            number = next(self.turn)
            name, given = ("echo", {"number": number}) if number < self.calls else ("final_answer", {"answer": LAST})
            function = models.ChatMessageToolCallFunction(name=name, arguments=given)
            call = models.ChatMessageToolCall(id=f"call_{number}", type="function", function=function)
            return models.ChatMessage(role="assistant", content="", tool_calls=[call])

    class Echo(smol.Tool):  # type: ignore[name-defined,misc]
        name = "echo"
        description = "Give the number back."
        inputs: ClassVar = {"number": {"type": "integer", "description": "the number"}}
        output_type = "string"

        def forward(self, number: int) -> str:
            return str(number)

    def talk(calls: int) -> str:
        agent = smol.ToolCallingAgent(tools=[Echo()], model=Scripted(calls), max_steps=calls + 2, verbosity_level=0)
        return str(agent.run("?"))

    return talk


def an_interruption(talk: Dialogue) -> list[float]:
    """Return the CPU microseconds per call, several times."""
    assert LAST in talk(CALLS)
    assert LAST in talk(0)

    def taken(calls: int) -> float:
        return timed(lambda: [talk(calls) for _ in range(REPEATS)]) / REPEATS

    return [(taken(CALLS) - taken(0)) / CALLS * 1e6 for _ in range(ROUNDS)]


def main() -> None:
    subject = Subject(
        "interrupts",
        f"microseconds of CPU for one call of a tool in the middle of a rationale, without the model; {CALLS} calls each",
        peers=("pydantic-ai-slim", "smolagents"),
    )
    own = [an_interruption(taiwa(way)) for way in WAYS]
    for what, values in zip(("continued text", "cut text", "by function calls"), own, strict=True):
        subject.median(f"taiwa: {what}", values, "µs")
    native = sorted(own[-1])[ROUNDS // 2]
    for name, peer in (("pydantic-ai", pydantic_ai), ("smolagents, ToolCallingAgent", smolagents)):
        subject.median(f"{name}: by function calls", an_interruption(peer()), "µs", ours=native)
    for what, values in zip(("continued", "stop", "native"), own, strict=True):
        subject.target(f"taiwa, {what}", sorted(values)[ROUNDS // 2], MOST_US, "µs")
    subject.write()
