"""The evaluation of reasoning with tools: one question under one setting, and the counts of its rationale.

Without examples and tools a question is asked by the two cues of zero-shot chain of thought (Kojima et al., NeurIPS 2022): the
first makes the model reason, the second, after what it wrote, makes it state the answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import accumulate, takewhile
from typing import Any, TypeAlias

from taiwa.apps.examples import built_in_examples, results, usable
from taiwa.evals.data import Item
from taiwa.evals.grid import Setting
from taiwa.evals.report import is_exact, is_near
from taiwa.evals.run import Job, Measurement, ModelTask
from taiwa.flows.solve.examples import (
    ResultOf,
    WorkedExample,
    render,
    render_answer_only,
    render_native,
    select_examples,
)
from taiwa.flows.solve.rationale import (
    AnswerSource,
    EndReason,
    ExecutedCall,
    InsertedText,
    OnToolError,
    Rationale,
    SolveLimits,
    TextPart,
    ToolMode,
)
from taiwa.flows.solve.solve import SolveOptions, last_number, solve, tool_modes
from taiwa.flows.solve.tool_call_formats import CallText, ScanEvent, ToolCallFormat, decode, tool_call_format
from taiwa.kernel.effects import Complete, GetCapabilities, Program, notify, perform
from taiwa.kernel.errors import InputError, RefusalError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import Message, Request, Sampling, assistant, user
from taiwa.kernel.records import Json, digest
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.tools.chemical_formulas import Weights, molar_mass
from taiwa.tools.function_tool import FunctionTool
from taiwa.tools.registry import builtin_tools, find_tools

DIRECT_ANSWER = "Give the answer at once: one line that states it, with its number last, and nothing before it."
SPARE_CALLS = 10
Tool: TypeAlias = FunctionTool[Any, Any]


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """How questions are solved. `weights` are those of the molar mass tool; `examples` None means the built-in ones.

    Without a `way` the text of the model is continued or cut, as its server supports: with function calling in some
    settings only, settings could not be compared.
    """

    tools: tuple[str, ...]
    protocol: str = "tagged"
    way: ToolMode | None = None
    weights: Weights = "iupac"
    on_error: OnToolError = "report"
    bounds: SolveLimits = field(default_factory=SolveLimits)
    sampling: Sampling = Sampling()
    examples: tuple[WorkedExample, ...] | None = None
    answer_by: tuple[AnswerSource, ...] = ("line", "prompt")

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools, with the chosen weights."""
        return _tools_with_weights(self.tools, self.weights)

    def codec(self) -> ToolCallFormat:
        """Return the format of tool calls in text."""
        return tool_call_format(self.protocol)

    def pool(self) -> tuple[WorkedExample, ...]:
        """Return the worked examples whose calls all succeed."""
        return usable(built_in_examples() if self.examples is None else self.examples, self._results())

    def _results(self) -> ResultOf:
        return results((*builtin_tools().values(), *self.offered()), self.codec())

    def ordered(self, order: int) -> tuple[WorkedExample, ...]:
        """Return all examples in one order: those with tools of this evaluation first, then those whose results are stated in words.

        The first n of an order begin with the first m of it, so larger numbers only add examples.
        """
        pool = self.pool()
        fitting = [one for one in pool if set(one.tools) <= set(self.tools)]
        others = [one for one in pool if one not in fitting]
        return (*select_examples(fitting, len(fitting), order), *select_examples(others, len(others), order))

    def messages(self, setting: Setting) -> tuple[Message, ...]:
        """Return the worked examples of a setting as messages.

        Raises:
            InputError: there are too few examples.
        """
        codec, results_of_calls, messages = self.codec(), self._results(), list[Message]()
        specs = {tool.spec.name: tool.spec for tool in self.offered()}

        def parse(name: str, text: str) -> dict[str, Json]:
            return codec.parse_arguments(specs[name], text)

        examples = self.ordered(setting.order)
        if setting.shots > len(examples):
            raise InputError(f"{setting.shots} worked examples requested, but only {len(examples)} fit")
        for worked in examples[: setting.shots]:
            if setting.style == "direct":
                messages += render_answer_only(worked, results_of_calls)
            elif self.way == "native" and set(worked.tools) <= set(setting.shown):
                messages += render_native(worked, results_of_calls, parse)
            else:
                messages += render(worked, codec, results_of_calls, setting.shown)
        return tuple(messages)


@cache
def _tools_with_weights(names: tuple[str, ...], weights: Weights) -> tuple[Tool, ...]:
    preset = molar_mass.preset(weights=weights)
    return tuple(preset if tool is molar_mass else tool for tool in find_tools(names))


@dataclass
class ReasoningTask(ModelTask):
    """The task of this evaluation. Settings that name a model can be sent to another machine; an open model cannot."""

    manner: ReasoningOptions
    plan: tuple[Setting, ...]
    name: str = "reason"
    _shots: dict[str, tuple[Message, ...]] = field(default_factory=dict[str, Any], init=False, repr=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of the settings."""
        return tuple(setting.name for setting in self.plan)

    @property
    def options(self) -> Mapping[str, Json]:
        """Everything that an answer depends on besides setting, question and model."""
        manner = self.manner
        return {
            "tools": [*manner.tools], "protocol": manner.protocol, "way": manner.way, "weights": manner.weights,
            "on_error": manner.on_error, "bounds": asdict(manner.bounds), "sampling": asdict(manner.sampling),
            "examples": digest(manner.pool()), "answer_by": [*manner.answer_by],
        }  # fmt: skip

    def check(self) -> None:
        """Render every worked example before the first request.

        Raises:
            InputError: there are too few examples, or one cannot be rendered.
        """
        for setting in self.plan:
            self._messages(setting)

    def overlap(self, items: Sequence[Item]) -> tuple[str, ...]:
        """Return the ids of items whose question is also a worked example."""
        shown = {_normalized(one.question) for one in self.manner.pool()}
        return tuple(item.id for item in items if _normalized(item.text) in shown)

    def program(self, job: Job) -> Program[Rationale]:
        """Return the program of an item under a setting; without examples and tools, the zero-shot program."""
        setting, manner = self._setting(job.setting), self.manner
        if not (setting.shots or setting.shown):
            return zero_shot(
                job.item.text, steps=setting.style == "steps", sampling=manner.sampling, tokens=manner.bounds.max_tokens,
                way=None if manner.way == "native" else manner.way,
            )  # fmt: skip
        way: ToolMode | None = manner.way if setting.shown else None
        if way is None and "prefix" not in self.required_model.capabilities:
            way = "stop"
        options = SolveOptions(
            tool_format=manner.codec(), tool_mode=way, shots=self._messages(setting),
            system=DIRECT_ANSWER if setting.style == "direct" else None, on_error=manner.on_error,
            on_unknown=manner.on_error if setting.shown else "let_model_answer", simulated_tools=setting.withheld,
            forbid_own_results=False,  # the same prompt in all settings; in some the model writes results itself
            limits=manner.bounds, sampling=manner.sampling, answer_by=manner.answer_by,
        )  # fmt: skip
        specs = [tool.spec for tool in manner.offered() if tool.spec.name in setting.shown]
        return solve(job.item.text, specs, options)

    def first_request(self, job: Job) -> Request:
        """Return the first request of a job without sending it."""
        return first_request(self.program(job), self.required_model.capabilities)

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Solve one question and count its rationale."""
        setting, bounds = self._setting(job.setting), self.manner.bounds
        tools = [tool for tool in self.manner.offered() if tool.spec.name in setting.working]
        # The bounds of the rationale report how it ended; the limits of the run must not be reached first.
        most = bounds.max_tool_calls + bounds.max_false_stops + SPARE_CALLS
        limits = replace(limits, requests=most, tool_calls=most)
        done = await self.runtime(limits, tools=tools).run_result(self.program(job))
        counts = count_rationale(done.value, job.item.gold, self.manner.codec(), setting.shown)
        return Measurement(counts, done.spent)

    def _setting(self, name: str) -> Setting:
        return next(setting for setting in self.plan if setting.name == name)

    def _messages(self, setting: Setting) -> tuple[Message, ...]:
        if setting.name not in self._shots:
            self._shots[setting.name] = self.manner.messages(setting)
        return self._shots[setting.name]


def _normalized(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .?!。？")


PLAIN_NUMBER = r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
NUMERIC_RESULT = re.compile(rf"(?P<number>{PLAIN_NUMBER})(?:\s*%|\s+[^\s0-9+=→>-][^+=→>]*)?", re.IGNORECASE)
"""A result that is one number, with an optional unit."""
WRITTEN_NUMBER = re.compile(rf"(?<![A-Za-z0-9_.)\]}}])(?:{PLAIN_NUMBER})(?![A-Za-z0-9])", re.IGNORECASE)
TRUNCATED_ENDINGS = frozenset({"length", "tokens", "limit"})


def count_rationale(rationale: Rationale, gold: str, protocol: ToolCallFormat, names: Iterable[str]) -> dict[str, Json]:
    """Return the counts of a rationale as JSON; only a complete one can be right."""
    done = [called for called in rationale.calls if called.result.origin != "model"]
    followed, restated = list(_numbers_after_results(rationale)), [one for one in done if _numeric_result(one)]
    last = _numeric_result(restated[-1]) if restated else ""
    errors = Counter(called.result.error for called in rationale.calls if called.result.error not in ("", "simulated"))
    return {
        "answer": rationale.answer, "gold": gold, "answered_by": rationale.answered_by, "ending": rationale.ending, "way": rationale.tool_mode,
        "right": rationale.complete and is_exact(rationale.answer, gold), "near": rationale.complete and is_near(rationale.answer, gold),
        "calls": len(rationale.calls), "called": dict(Counter(called.name for called in rationale.calls)),
        "tool_errors": dict(errors), "model_written": len(rationale.calls) - len(done),
        "memo": sum(called.result.origin == "memo" for called in rationale.calls),
        "next_of": len(followed), "next_kept": sum(kept for kept, _ in followed), "used": sum(used for _, used in followed),
        "last_of": int(bool(last and rationale.answer)), "last_kept": int(bool(last) and is_near(rationale.answer, last)),
        "unanswered": int(not rationale.answer), "truncated": int(rationale.ending in TRUNCATED_ENDINGS),
        "false_stops": _false_stops(rationale, protocol, names), "text": rationale.text,
    }  # fmt: skip


def _numeric_result(called: ExecutedCall) -> str:
    """Return the number that a call returned; '' if it failed or returned something else."""
    text = NUMERIC_RESULT.fullmatch(called.result.text.strip())
    return text["number"].replace(",", "") if text and not called.result.error else ""


def _numbers_after_results(rationale: Rationale) -> Iterator[tuple[bool, bool]]:
    """For each numeric result followed by a number: whether the next number, and whether any, is the result."""
    results = iter([called for called in rationale.calls if called.shown and called.result.origin != "model"])
    for place, part in enumerate(rationale.parts):
        if not (isinstance(part, InsertedText) and part.kind == "result"):
            continue
        called = next(results, None)
        number = "" if called is None else _numeric_result(called)
        written = [each.replace(",", "") for each in WRITTEN_NUMBER.findall(_text_after(rationale, place))]
        if number and written:
            yield is_near(written[0], number), any(is_near(each, number) for each in written)


def _text_after(rationale: Rationale, place: int) -> str:
    """Return the text of the model after a part, up to the next result."""
    own = takewhile(lambda part: getattr(part, "kind", "") != "result", rationale.parts[place + 1 :])
    return "".join(part.text for part in own if isinstance(part, TextPart))


def _false_stops(rationale: Rationale, protocol: ToolCallFormat, names: Iterable[str]) -> int:
    """Count stops that did not close a call."""
    events = decode(rationale.text, protocol, names)
    ends = {at for at, event in zip(_ends(events), events, strict=True) if isinstance(event, CallText)}
    stops = zip(_ends(rationale.parts), rationale.parts, strict=True)
    return sum(getattr(part, "kind", "") == "stop" and at not in ends for at, part in stops)


def _ends(parts: Iterable[TextPart | InsertedText | ScanEvent]) -> Iterator[int]:
    return accumulate(len(part.text) for part in parts)


STEP_BY_STEP = "Let's think step by step."
THEREFORE = "Therefore, the answer (arabic numerals) is"
MIN_ANSWER_TOKENS = 20
"""Tokens left for the answer, however long the reasoning was."""
ZERO_SHOT_ENDINGS: dict[str, EndReason] = {"length": "length", "interrupted": "interrupted", "refusal": "refusal"}


def zero_shot(
    question: str,
    *,
    steps: bool = True,
    sampling: Sampling = Sampling(),
    tokens: int | None = None,
    way: ToolMode | None = None,
) -> Program[Rationale]:
    """Answer a question with a number: after reasoning step by step (Kojima et al. 2022), or from the question alone.

    If the server supports prefill, the cues are prefilled; otherwise, and for the `way` "stop", they are messages. `tokens`
    limits the reasoning; the answer may take a few more.

    Raises (when run):
        RefusalError: the model refused to answer.
        UnsupportedError: the `way` is "prefill", and the model does not support prefill.
    """
    chosen, *_ = tool_modes(way, (yield from perform(GetCapabilities())), allow_native=False)
    parts: list[TextPart | InsertedText] = []
    messages: list[Message] = []
    ending: EndReason = "end"
    for cue in (STEP_BY_STEP, f"\n{THEREFORE}") if steps else ("",):
        shown = cue if chosen == "prefill" or not cue else f"{cue} "
        if cue:
            parts.append(InsertedText(shown, "cue"))
            yield from notify(shown, code="cue")
        if not cue:
            request = Request((user(question),), sampling=sampling)
        elif chosen == "prefill":
            request = Request((user(question),), sampling=sampling, prefix="".join(part.text for part in parts))
        else:
            messages.append(user(cue.strip() if messages else f"{question}\n\n{cue}"))
            request = Request(tuple(messages), sampling=sampling)
        if tokens is not None:
            tokens = max(tokens, MIN_ANSWER_TOKENS)
            most = tokens if sampling.max_tokens is None else min(tokens, sampling.max_tokens)
            request = replace(request, sampling=replace(sampling, max_tokens=most))
        response = yield from perform(Complete(request))
        text = response.text.strip()
        if response.finish == "refusal" and not text and len(parts) == bool(cue):
            raise RefusalError("the model refused to answer", request=request.digest)
        parts.append(TextPart(response.text))
        if text:
            messages.append(assistant(text))
        ending = ZERO_SHOT_ENDINGS.get(response.finish, "end")
        if tokens is not None:
            tokens -= estimate_tokens(response.text) if response.usage is None else response.usage.output_tokens
            ending = "tokens" if ending == "length" else ending
        if ending != "end":
            break
    # Behind a cue, from the first line of the last answer if possible: explanations may follow.
    written = parts[-1].text.strip()
    first = last_number(written.partition("\n")[0]) if steps else ""
    answer = (first or last_number(written)) if ending == "end" else ""
    return Rationale(tuple(parts), (), ending, chosen, answer, ("prompt" if steps else "line") if answer else "none")
