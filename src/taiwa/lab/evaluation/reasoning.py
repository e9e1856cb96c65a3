"""The evaluation of tool-interrupted reasoning: one question under one setting, by any model, on any machine."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

from taiwa.apps.shots import built_in, results, usable
from taiwa.flows.asking import first_request
from taiwa.flows.protocol import Protocol, protocol
from taiwa.flows.rationale import Bounds, OnTrouble, Rationale, Way
from taiwa.flows.reason import SolveOptions, solve
from taiwa.flows.worked import ResultOf, Worked, answer_only, choose, native, render
from taiwa.flows.zeroshot import zero_shot
from taiwa.kernel.arun import AsyncRuntime
from taiwa.kernel.effects import Program
from taiwa.kernel.errors import InputError
from taiwa.kernel.ledger import Limits
from taiwa.kernel.records import Json, digest
from taiwa.kernel.values import Message, Request, Sampling
from taiwa.lab.evaluation.ablation import Setting
from taiwa.lab.evaluation.faithful import counted_of
from taiwa.lab.evaluation.items import Item
from taiwa.lab.evaluation.running import Job, Measured
from taiwa.lab.evaluation.voiced import Voiced
from taiwa.settings import Settings
from taiwa.talk.turn import Speaker, Voice
from taiwa.tools import FunctionTool, builtin, find, molar_mass
from taiwa.tools.elements import Weights

__all__ = ["Manner", "Reasoning"]

AT_ONCE = "Give the answer at once: one line that states it, with its number last, and nothing before it."
SPARE = 10
Tool: TypeAlias = FunctionTool[Any, Any]


@dataclass(frozen=True, slots=True)
class Manner:
    """How questions are reasoned out. `weights` are those of the molar mass tool; `examples` None means our own.

    Without a `way` the model's text is continued or cut, as its server can: settings with and without examples, which may
    be called by functions, could not be compared.
    """

    tools: tuple[str, ...]
    protocol: str = "tagged"
    way: Way | None = None
    weights: Weights = "iupac"
    on_error: OnTrouble = "report"
    bounds: Bounds = field(default_factory=Bounds)
    sampling: Sampling = Sampling()
    examples: tuple[Worked, ...] | None = None

    def offered(self) -> tuple[Tool, ...]:
        """The tools, with the weights that were asked for."""
        return _offered(self.tools, self.weights)

    def codec(self) -> Protocol:
        """How calls stand in the text."""
        return protocol(self.protocol)

    def pool(self) -> tuple[Worked, ...]:
        """The worked examples that there are to choose from: those whose tools, ours all among them, take their inputs."""
        return usable(built_in() if self.examples is None else self.examples, self._results())

    def _results(self) -> ResultOf:
        return results((*builtin().values(), *self.offered()), self.codec())

    def ordered(self, order: int) -> tuple[Worked, ...]:
        """All examples in one order: first those whose tools are there, then others, whose results are stated in words.

        The first n of an order begin with the first m of it, so that more examples are never others.
        """
        pool = self.pool()
        fitting = [one for one in pool if set(one.tools) <= set(self.tools)]
        others = [one for one in pool if one not in fitting]
        return (*choose(fitting, len(fitting), order), *choose(others, len(others), order))

    def messages(self, setting: Setting) -> tuple[Message, ...]:
        """The worked examples of a setting, as its model sees them.

        Raises:
            InputError: there are not so many.
        """
        codec, given, found = self.codec(), self._results(), list[Message]()
        specs = {tool.spec.name: tool.spec for tool in self.offered()}
        examples = self.ordered(setting.order)
        if setting.shots > len(examples):
            raise InputError(f"there are {len(examples)} worked examples that fit, and {setting.shots} were asked for")
        for worked in examples[: setting.shots]:
            if setting.style == "direct":
                found += answer_only(worked, given)
            elif self.way == "native" and set(worked.tools) <= set(setting.shown):
                found += native(worked, given, lambda name, text: codec.arguments(specs[name], text))
            else:
                found += render(worked, codec, given, setting.shown)
        return tuple(found)


@cache
def _offered(names: tuple[str, ...], weights: Weights) -> tuple[Tool, ...]:
    preset = molar_mass.preset(weights=weights)
    return tuple(preset if tool is molar_mass else tool for tool in find(names))


@dataclass
class Reasoning(Voiced):
    """The work of this evaluation. A model is given as settings that name it, which can be sent to another machine."""

    manner: Manner
    plan: tuple[Setting, ...]
    chosen: Settings | None = None
    speaker: Speaker | None = None
    name: str = "reason"
    _voice: Voice | None = field(default=None, init=False, repr=False)
    _shots: dict[str, tuple[Message, ...]] = field(
        default_factory=dict[str, "tuple[Message, ...]"], init=False, repr=False
    )

    @property
    def voice(self) -> Voice:
        """The model, opened where it is first needed."""
        found = self.opened()
        assert found is not None, "an evaluation of reasoning has a model, or settings that name one"
        return found

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings."""
        return tuple(setting.name for setting in self.plan)

    @property
    def options(self) -> Mapping[str, Json]:
        """All that an answer depends on beside the setting, the question and the model."""
        manner = self.manner
        return {
            "tools": [*manner.tools], "protocol": manner.protocol, "way": manner.way, "weights": manner.weights,
            "on_error": manner.on_error, "bounds": asdict(manner.bounds), "sampling": asdict(manner.sampling),
            "examples": digest(manner.pool()),
        }  # fmt: skip

    def check(self) -> None:
        """Render every worked example, so that what is wrong with one is known before anything is asked.

        Raises:
            InputError: there are too few, or one cannot be rendered.
        """
        for setting in self.plan:
            self._messages(setting)

    def overlap(self, items: Sequence[Item]) -> tuple[str, ...]:
        """The ids of items whose question is that of a worked example."""
        shown = {_folded(one.question) for one in self.manner.pool()}
        return tuple(item.id for item in items if _folded(item.text) in shown)

    def program(self, job: Job) -> Program[Rationale]:
        """Reason about an item under a setting; without examples and tools by the paper's two cues."""
        setting, manner = self._setting(job.setting), self.manner
        abilities = self.voice.model.abilities
        if not (setting.shots or setting.shown):
            return zero_shot(
                job.item.text, steps=setting.style == "steps", sampling=manner.sampling, tokens=manner.bounds.tokens,
                way=None if manner.way == "native" else manner.way,
            )  # fmt: skip
        how: dict[str, Any] = {
            "tool_format": manner.codec(), "shots": self._messages(setting), "withheld": setting.withheld,
            "on_error": manner.on_error, "on_unknown": manner.on_error if setting.shown else "let_model_answer",
            "bounds": manner.bounds, "sampling": manner.sampling,
            "guarded": False,  # one prompt for all, and in some settings the model is to write results
        }  # fmt: skip
        way: Way | None = manner.way if setting.shown else None
        if way is not None or "prefix" not in abilities:
            how["tool_mode"] = way or "stop"
        if setting.style == "direct":
            how["system"] = AT_ONCE
        specs = [tool.spec for tool in manner.offered() if tool.spec.name in setting.shown]
        return solve(job.item.text, specs, SolveOptions(**how))

    def first_request(self, job: Job) -> Request:
        """Give the request that is sent first for a job; nothing is sent."""
        return first_request(self.program(job), self.voice.model.abilities)

    async def measure(self, job: Job, limits: Limits) -> Measured:
        """Reason once, and count what came of it."""
        setting, bounds = self._setting(job.setting), self.manner.bounds
        tools = [tool for tool in self.manner.offered() if tool.spec.name in setting.working]
        # A rationale has bounds of its own, which say more of how it ended than a limit of the run.
        most = bounds.calls + bounds.false_stops + SPARE
        limits = replace(limits, requests=most, tool_calls=most)
        runtime = AsyncRuntime(self.voice.model, tools=tools, limits=limits, price=self.voice.price)
        done = await runtime.done(self.program(job))
        found = counted_of(done.value, job.item.gold, self.manner.codec(), setting.shown)
        return Measured(found, done.spent)

    def _setting(self, name: str) -> Setting:
        return next(setting for setting in self.plan if setting.name == name)

    def _messages(self, setting: Setting) -> tuple[Message, ...]:
        if setting.name not in self._shots:
            self._shots[setting.name] = self.manner.messages(setting)
        return self._shots[setting.name]


def _folded(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .?!。？")
