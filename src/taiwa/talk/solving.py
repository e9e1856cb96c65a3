"""Questions that are reasoned out with tools, each in a run that the store keeps: its prompt, its calls, its bill."""

from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from taiwa.apps.shots import built_in, results, usable
from taiwa.flows.asking import first_request
from taiwa.flows.protocol import Protocol
from taiwa.flows.rationale import Bounds, OnTrouble, Rationale, Way
from taiwa.flows.reason import reason, ways_for
from taiwa.flows.tagged import Tagged
from taiwa.flows.worked import ResultOf, Worked, choose, native, render
from taiwa.kernel.effects import Complete, Program
from taiwa.kernel.errors import InputError, StoreError, TaiwaError, ToolError
from taiwa.kernel.journal import Journal
from taiwa.kernel.protocols import Tool
from taiwa.kernel.records import Json, digest, record
from taiwa.kernel.run import Runtime
from taiwa.kernel.session import Asked, Done, Event, Observer
from taiwa.kernel.values import Ability, Message, Note, Request, TextDelta
from taiwa.shape import Shape
from taiwa.talk.desk import Desk
from taiwa.talk.turn import TurnOptions, Voice, sink
from taiwa.tools import builtin

__all__ = ["SHOTS", "Heard", "Solving", "solve"]

SHOTS = 5
"""Worked examples that a text protocol is shown by, where nobody says how many."""
Heard: TypeAlias = TextDelta | Note | Done[Rationale]


@dataclass(frozen=True, slots=True)
class Solving:
    """How questions are solved.

    `examples` are worked examples to show; None chooses `shots` of our own, by the `seed`: first those whose tools are
    offered, then others, in which the other tools' results are stated in words.
    `shots` None means five where calls stand in the text, and none where the model calls functions, which it knows how to, or
    where no example of ours calls any of the tools.
    `way` "text" is the better of continuing and cutting.
    """

    tools: tuple[Tool, ...]
    protocol: Protocol = field(default_factory=Tagged)
    way: Way | Literal["text"] | None = None
    shots: int | None = None
    seed: int = 0
    examples: tuple[Worked, ...] | None = None
    on_error: OnTrouble = "tell"
    on_unknown: OnTrouble = "tell"
    bounds: Bounds = field(default_factory=Bounds)
    answer: Shape[Any] | None = None

    def program(self, question: str, abilities: frozenset[Ability]) -> Program[Rationale]:
        """Solve a question with a model that has these abilities.

        Raises:
            InputError: the question is empty, there are too few examples, or one cannot be worked out.
        """
        if not question.strip():
            raise InputError("there is nothing to solve: the question is empty")
        way = self.way_for(abilities)
        return reason(
            question,
            [tool.spec for tool in self.tools],
            protocol=self.protocol,
            way=way if self.way is not None and (self.way != "text" or way == "cut") else None,
            shots=self._messages(way),
            on_error=self.on_error,
            on_unknown=self.on_unknown,
            bounds=self.bounds,
            answer=self.answer,
        )

    def way_for(self, abilities: frozenset[Ability]) -> Way:
        """Choose the way: to continue the model's text where its server can; else functions, where neither a way nor
        examples are asked for; else to cut the text.
        """
        if self.way is not None and self.way != "text":
            return self.way
        free = self.way is None and not self.shots and self.examples is None
        return ways_for(None, abilities, natively=free and bool(self.tools))[0]

    def chosen(self, way: Way) -> tuple[Worked, ...]:
        """The worked examples that are shown.

        Raises:
            InputError: there are not so many.
        """
        if self.examples is not None:
            if self.shots is not None and not 0 <= self.shots <= len(self.examples):
                raise InputError(f"there are {len(self.examples)} worked examples, and {self.shots} were asked for")
            return self.examples[: self.shots]
        if self.shots == 0 or (self.shots is None and way == "native"):
            return ()
        offered = {tool.spec.name for tool in self.tools}
        able = usable(built_in(), self._results())
        fitting = [worked for worked in able if not offered or set(worked.tools) <= offered]
        others = [worked for worked in able if worked not in fitting]
        order = (*choose(fitting, len(fitting), self.seed), *choose(others, len(others), self.seed))
        if self.shots is not None and self.shots > len(order):
            raise InputError(f"there are {len(order)} worked examples, and {self.shots} were asked for")
        if self.shots is None and offered and not any(worked.tools for worked in fitting):
            return ()  # examples that call none of the tools would teach a model to do without them
        return order[: min(SHOTS, len(fitting)) if self.shots is None else self.shots]

    def options(self, way: Way) -> dict[str, Json]:
        """All that an answer depends on beside the question and the model."""
        return {
            "tools": [tool.spec.name for tool in self.tools],
            "protocol": self.protocol.name,
            "way": way,
            "shots": digest(self._messages(way)),
            "policy": [self.on_error, self.on_unknown],
            "bounds": record(self.bounds),
            "type": None if self.answer is None else digest(self.answer.schema()),
        }

    def first_request(self, question: str, abilities: frozenset[Ability]) -> Request:
        """Give the request that is sent first; nothing is sent.

        Raises:
            TaiwaError: as `program`, or the model cannot go the way that is asked for.
        """
        return first_request(self.program(question, abilities), abilities)

    def _messages(self, way: Way) -> tuple[Message, ...]:
        given, known = self._results(), {tool.spec.name: tool.spec for tool in (*builtin().values(), *self.tools)}
        messages: list[Message] = []
        for worked in self.chosen(way):
            try:
                if way == "native":
                    messages += native(worked, given, lambda name, text: self.protocol.arguments(known[name], text))
                else:
                    messages += render(worked, self.protocol, given, {tool.spec.name for tool in self.tools})
            except ToolError as error:
                where = f"worked example {worked.id} ({worked.question[:40]!r})"
                raise InputError(f"{where} cannot be worked: {error.message}") from error
        return tuple(messages)

    def _results(self) -> ResultOf:
        """What tools give: those that are offered, and our own for examples in which they are only spoken of."""
        return results((*builtin().values(), *self.tools), self.protocol)


def solve(
    desk: Desk, voice: Voice, options: TurnOptions, solving: Solving, question: str, observers: Iterable[Observer] = ()
) -> Generator[Heard]:
    """Solve a question and give out what is said as it is said, last `Done`. Its calls are written down as they are
    answered, whatever becomes of it.

    Raises:
        TaiwaError: it cannot be solved so, or a call failed; `spent` holds the bill.
    """
    program, way = solving.program(question, voice.model.abilities), solving.way_for(voice.model.abilities)
    runs = desk.store.runs
    run = runs.begin("", None, None, question, solving.options(way))

    def note(event: Event) -> None:
        if isinstance(event, Asked) and isinstance(event.effect, Complete):
            runs.asked(run, voice.model.name)

    runtime = Runtime(
        voice.model, tools=solving.tools, limits=options.limits, price=voice.price, interrupts=options.interrupts,
        observers=(note, *observers),
    )  # fmt: skip
    try:
        yield from runtime.stream(program, Journal((), sink(desk, run, voice)))
    except TaiwaError as error:
        with suppress(StoreError):
            runs.fail(run, error)
        raise
    except BaseException:
        runs.abandon(run)
        raise
    runs.settle(run)
