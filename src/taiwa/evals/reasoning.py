"""The evaluation of reasoning with tools: its settings, one question under one setting, the counts of its rationale, its report.

The settings are those of the tables of MultiTool-CoT (Inaba et al., ACL 2023, tables 1 and 2): numbers of worked examples, tools,
and how a tool is switched off. In mode `execution`, the paper's, the prompt does not change and the model writes the results
of disabled tools. In mode `exposure` a disabled tool is removed from the instructions and from the worked examples.

Without examples and tools a question is asked by the two cues of zero-shot chain of thought (Kojima et al., NeurIPS 2022): the
first makes the model reason, the second, after what it wrote, makes it state the answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import accumulate, takewhile
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast, get_args

from taiwa.apps.examples import (
    ResultOf,
    WorkedExample,
    built_in_examples,
    render,
    render_answer_only,
    render_native,
    results,
    select_examples,
    usable,
)
from taiwa.evals.data import Item
from taiwa.evals.report import (
    Bar,
    Chart,
    Column,
    Line,
    Point,
    Proportion,
    Report,
    Series,
    Table,
    compare_settings,
    comparison_json,
    count_errors,
    count_field,
    group_by_setting,
    interval_json,
    is_exact,
    is_near,
    missing_note,
    parse_number,
    percent,
    plain,
    share_marked,
    sum_field,
    usage_and_cost,
    with_interval,
)
from taiwa.evals.run import EvalRow, Evaluation, Job, Measurement, ModelTask
from taiwa.flows.solve.rationale import (
    AnswerSource,
    CallPolicy,
    EndReason,
    ExecutedCall,
    InsertedText,
    OnToolError,
    Rationale,
    SolveLimits,
    TextPart,
    ToolMode,
)
from taiwa.flows.solve.solve import SolveOptions, last_number, numbers, read_statement, solve, tool_modes
from taiwa.flows.solve.tool_call_formats import CallText, ScanEvent, ToolCallFormat, decode, tool_call_format
from taiwa.kernel.effects import Complete, GetCapabilities, Program, notify, perform
from taiwa.kernel.errors import InputError, RefusalError
from taiwa.kernel.execution import first_request
from taiwa.kernel.messages import Message, Request, Sampling, assistant, user
from taiwa.kernel.serialization import Json, digest, value
from taiwa.kernel.text import estimate_tokens
from taiwa.kernel.usage_limits import UsageLimits
from taiwa.tools.chemical_formulas import Weights, molar_mass
from taiwa.tools.function_tool import FunctionTool
from taiwa.tools.registry import builtin_tools, find_tools

AblationMode: TypeAlias = Literal["execution", "exposure"]
Style: TypeAlias = Literal["direct", "steps", "tools"]
"""Answer directly; step by step without working tools; step by step with tools."""

TOOL_ABBREVIATIONS: Mapping[str, str] = MappingProxyType(
    {"cal": "calculator", "crp": "stoichiometry", "mml": "molar_mass"}
)
"""Abbreviations of tools, as in the paper."""
NONE, ALL = "none", "all"
PAPER_SHOTS = (5, 10, 20)
PAPER_SINGLE = ("cal", "crp", "mml")
MAX_SHOTS = 1_000


@value(tag="ablation-setting")
class Setting:
    """One line of the table. `working` tools are called, `shown` tools are in the prompt; `order` numbers the shuffles."""

    name: str
    style: Style
    shots: int
    working: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    ablate: str = ""
    mode: str = ""
    order: int = 0

    @property
    def withheld(self) -> tuple[str, ...]:
        """Tools that are shown but not called."""
        return tuple(tool for tool in self.shown if tool not in self.working)


@dataclass(frozen=True, slots=True)
class Grid:
    """The settings to measure. Without counts and ablations they are those of the paper's two tables."""

    tools: tuple[str, ...]
    shots: tuple[int, ...] | None = None
    ablations: tuple[str, ...] | None = None
    modes: tuple[AblationMode, ...] = ("execution",)
    orders: int = 1

    def settings(self) -> tuple[Setting, ...]:
        """Return each setting once, in the order of the table."""
        settings: dict[str, Setting] = {}
        for shots, ablation in self._pairs():
            for order in range(self.orders if shots else 1):
                for mode in self.modes:
                    for setting in self._made(shots, ablation, mode, order):
                        settings.setdefault(setting.name, setting)
        return tuple(settings.values())

    @property
    def full(self) -> str:
        """The reference setting: all tools and the most examples; '' if it is not among the settings."""
        with_all = [one for one in self.settings() if one.ablate == ALL and one.order == 0]
        return max(with_all, key=lambda one: one.shots).name if with_all else ""

    def _pairs(self) -> Iterable[tuple[int, str]]:
        if self.shots is None and self.ablations is None:
            most = PAPER_SHOTS[-1]
            single = [one for one in PAPER_SINGLE if TOOL_ABBREVIATIONS[one] in self.tools]
            yield from ((0, NONE), (most, NONE), *((most, one) for one in single), (most, ALL))
            yield from ((shots, ablation) for ablation in (NONE, ALL) for shots in PAPER_SHOTS[:-1])
            return
        for shots in self.shots if self.shots is not None else (PAPER_SHOTS[-1],):
            yield from ((shots, ablation) for ablation in (self.ablations or (NONE, ALL)))

    def _made(self, shots: int, ablation: str, mode: AblationMode, order: int) -> Iterable[Setting]:
        """Yield the settings of one cell; without tools, the direct answer comes first."""
        head, tail = ("Few-Shot", f"@{shots}") if shots else ("Zero-Shot", "")
        tail += f" order {order}" if order else ""
        if ablation == NONE:
            if shots in (0, self._most) and not order:
                yield Setting(f"{head}{tail}", "direct", shots, order=order)
            # Without an example the model has no result to imitate.
            shown = self.tools if shots and mode == "execution" else ()
            name = f"{head}+CoT{tail}{_suffix(mode) if shots else ''}"
            yield Setting(name, "steps", shots, (), shown, NONE, mode, order)
            return
        working = self.tools if ablation == ALL else self._named(ablation)
        whole = working == self.tools
        name = f"+{ablation.upper()}{tail}" if shots else f"{head}+{ablation.upper()}"
        name += "" if whole else _suffix(mode)
        shown = self.tools if mode == "execution" else working
        yield Setting(name, "tools", shots, working, shown, ALL if whole else ablation, mode, order)

    @property
    def _most(self) -> int:
        return max((shots for shots, _ in self._pairs()), default=0)

    def _named(self, ablation: str) -> tuple[str, ...]:
        wanted = {TOOL_ABBREVIATIONS.get(word, word) for word in ablation.split("+")}
        return tuple(tool for tool in self.tools if tool in wanted)


def _suffix(mode: AblationMode) -> str:
    return " exposure" if mode == "exposure" else ""


def parse_shots(text: str) -> tuple[int, ...]:
    """Parse numbers of worked examples, such as `0,5,10,20`.

    Raises:
        InputError: an element is not a number in range.
    """
    words = _split_list(text)
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) <= 6 and int(word) <= MAX_SHOTS):
            raise InputError(f"invalid --shots {word!r}; expected numbers from 0 to {MAX_SHOTS:,}, separated by commas")
    return tuple(dict.fromkeys(map(int, words)))


def parse_ablations(text: str, tools: Sequence[str]) -> tuple[str, ...]:
    """Parse the tools that are switched on: `none,cal,crp,mml,all`, names of tools, or several as `cal+mml`.

    Raises:
        InputError: an element is not a tool of this evaluation.
    """
    shorts = {tool: short for short, tool in TOOL_ABBREVIATIONS.items()}
    ablations: list[str] = []
    for word in _split_list(text.lower()):
        if word in (NONE, ALL):
            ablations.append(word)
            continue
        wanted = {TOOL_ABBREVIATIONS.get(name, name): name for name in word.split("+")}
        strange = next((name for tool, name in wanted.items() if tool not in tools), None)
        if strange is not None:
            known = ", ".join((NONE, *(shorts[tool] for tool in tools if tool in shorts), *tools, ALL))
            raise InputError(f"--tools-on: unknown tool {strange!r}; choose one of {known}")
        # Canonical names: cal and calculator are one setting, and so are mml+cal and cal+mml.
        ablations.append("+".join(shorts.get(tool, tool) for tool in tools if tool in wanted))
    return tuple(dict.fromkeys(ablations))


def parse_modes(text: str) -> tuple[AblationMode, ...]:
    """Parse modes: `execution`, `exposure`, or both with a comma.

    Raises:
        InputError: an element is unknown.
    """
    words = _split_list(text)
    unknown = next((word for word in words if word not in get_args(AblationMode)), None)
    if unknown is not None:
        raise InputError(f"unknown --mode {unknown!r}; choose execution, exposure, or both with a comma")
    return tuple(dict.fromkeys(cast("tuple[AblationMode, ...]", words)))


def _split_list(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not all(words):
        raise InputError(f"invalid list {text!r}; separate words with commas")
    return words


DIRECT_ANSWER = "Give the answer at once: one line that states it, with its number last, and nothing before it."
SPARE_CALLS = 10
Tool: TypeAlias = FunctionTool[Any, Any]


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """How questions are solved. `weights` are those of the molar mass tool; `examples` None means the built-in ones.

    Without a `tool_mode`, prefill or stop is used, whichever the server supports: if only some settings used function calling,
    settings could not be compared.
    """

    tools: tuple[str, ...]
    tool_format: str = "tagged"
    tool_mode: ToolMode | None = None
    weights: Weights = "iupac"
    on_error: OnToolError = "report"
    limits: SolveLimits = field(default_factory=SolveLimits)
    sampling: Sampling = Sampling()
    examples: tuple[WorkedExample, ...] | None = None
    answer_by: tuple[AnswerSource, ...] = ("line", "prompt")

    def offered(self) -> tuple[Tool, ...]:
        """Return the tools, with the chosen weights."""
        return _tools_with_weights(self.tools, self.weights)

    def codec(self) -> ToolCallFormat:
        """Return the format of tool calls in text."""
        return tool_call_format(self.tool_format)

    def pool(self) -> tuple[WorkedExample, ...]:
        """Return the worked examples whose calls all succeed."""
        return usable(built_in_examples() if self.examples is None else self.examples, self._results())

    def _results(self) -> ResultOf:
        return results((*builtin_tools().values(), *self.offered()), self.codec())

    def ordered(self, order: int) -> tuple[WorkedExample, ...]:
        """Return all examples in one order: those with tools of this evaluation first, then those whose results are stated in words.

        A larger number of examples only adds to a smaller one.
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
            elif self.tool_mode == "native" and set(worked.tools) <= set(setting.shown):
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
    """The task of this evaluation. Settings with the name of a model can be sent to another machine; an open model cannot."""

    solving: ReasoningOptions
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
        solving = self.solving
        return {
            "tools": [*solving.tools], "protocol": solving.tool_format, "way": solving.tool_mode, "weights": solving.weights,
            "on_error": solving.on_error, "bounds": asdict(solving.limits), "sampling": asdict(solving.sampling),
            "examples": digest(solving.pool()), "answer_by": [*solving.answer_by],
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
        shown = {_normalized(one.question) for one in self.solving.pool()}
        return tuple(item.id for item in items if _normalized(item.text) in shown)

    def program(self, job: Job) -> Program[Rationale]:
        """Return the program of an item under a setting; without examples and tools, the zero-shot program."""
        setting, solving = self._setting(job.setting), self.solving
        if not (setting.shots or setting.shown):
            return zero_shot(
                job.item.text, steps=setting.style == "steps", sampling=solving.sampling, tokens=solving.limits.max_tokens,
                tool_mode=None if solving.tool_mode == "native" else solving.tool_mode,
            )  # fmt: skip
        tool_mode = solving.tool_mode if setting.shown else None
        if tool_mode is None and "prefix" not in self.required_model.capabilities:
            tool_mode = "stop"
        calls = CallPolicy(
            solving.on_error, solving.on_error if setting.shown else "let_model_answer", setting.withheld,
            forbid_own_results=False,  # the same prompt in all settings; in some the model writes results itself
        )  # fmt: skip
        options = SolveOptions(
            tool_format=solving.codec(), tool_mode=tool_mode, shots=self._messages(setting),
            system=DIRECT_ANSWER if setting.style == "direct" else None, calls=calls, limits=solving.limits, sampling=solving.sampling, answer_by=solving.answer_by,
        )  # fmt: skip
        specs = [tool.spec for tool in solving.offered() if tool.spec.name in setting.shown]
        return solve(job.item.text, specs, options)

    def first_request(self, job: Job) -> Request:
        """Return the first request of a job without sending it."""
        return first_request(self.program(job), self.required_model.capabilities)

    async def measure(self, job: Job, limits: UsageLimits) -> Measurement:
        """Solve one question and count its rationale."""
        setting, most = self._setting(job.setting), self.solving.limits
        tools = [tool for tool in self.solving.offered() if tool.spec.name in setting.working]
        # The limits of the rationale decide how it ends; the limits of the run must not be reached first.
        calls = most.max_tool_calls + most.max_false_stops + SPARE_CALLS
        limits = replace(limits, requests=calls, tool_calls=calls)
        done = await self.runtime(limits, tools=tools).run_result(self.program(job))
        counts = count_rationale(done.value, job.item.gold, self.solving.codec(), setting.shown)
        return Measurement(counts, done.spent)

    def _setting(self, name: str) -> Setting:
        return next(setting for setting in self.plan if setting.name == name)

    def _messages(self, setting: Setting) -> tuple[Message, ...]:
        if setting.name not in self._shots:
            self._shots[setting.name] = self.solving.messages(setting)
        return self._shots[setting.name]


def _normalized(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(" .?!。？")


TRUNCATED_ENDINGS = frozenset({"length", "tokens", "limit"})


def count_rationale(
    rationale: Rationale, gold: str, tool_format: ToolCallFormat, names: Iterable[str]
) -> dict[str, Json]:
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
        "false_stops": _false_stops(rationale, tool_format, names), "text": rationale.text,
    }  # fmt: skip


def _numeric_result(called: ExecutedCall) -> str:
    """Return the number that a call returned; '' if it failed or returned something else."""
    number = "" if called.result.error else read_statement(called.result.text.strip())
    return "" if parse_number(number) is None else number


def _numbers_after_results(rationale: Rationale) -> Iterator[tuple[bool, bool]]:
    """For each numeric result followed by a number: whether the next number, and whether any, is the result."""
    results = iter([called for called in rationale.calls if called.shown and called.result.origin != "model"])
    for place, part in enumerate(rationale.parts):
        if not (isinstance(part, InsertedText) and part.kind == "result"):
            continue
        called = next(results, None)
        number = "" if called is None else _numeric_result(called)
        written = numbers(_text_after(rationale, place))
        if number and written:
            yield is_near(written[0], number), any(is_near(each, number) for each in written)


def _text_after(rationale: Rationale, place: int) -> str:
    """Return the text of the model after a part, up to the next result."""
    own = takewhile(lambda part: getattr(part, "kind", "") != "result", rationale.parts[place + 1 :])
    return "".join(part.text for part in own if isinstance(part, TextPart))


def _false_stops(rationale: Rationale, tool_format: ToolCallFormat, names: Iterable[str]) -> int:
    """Count stops that did not close a call."""
    events = decode(rationale.text, tool_format, names)
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
    tool_mode: ToolMode | None = None,
) -> Program[Rationale]:
    """Answer a question with a number: after reasoning step by step (Kojima et al. 2022), or from the question alone.

    If the server supports prefill, the cues are prefilled; otherwise, and for the tool mode "stop", they are messages. `tokens`
    limits the reasoning; the answer may take a few more.

    Raises (when run):
        RefusalError: the model refused to answer.
        UnsupportedError: the tool mode is "prefill", and the model does not support prefill.
    """
    chosen, *_ = tool_modes(tool_mode, (yield from perform(GetCapabilities())), allow_native=False)
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
    # After a cue, read the first line of the last answer if possible: explanations may follow.
    written = parts[-1].text.strip()
    first = last_number(written.partition("\n")[0]) if steps else ""
    answer = (first or last_number(written)) if ending == "end" else ""
    return Rationale(tuple(parts), (), ending, chosen, answer, ("prompt" if steps else "line") if answer else "none")


EXACT, TOLERANT = "right", "near"
MAX_CLASSES = 12
REASONING_FIGURES = frozenset(
    {
        "right", "accuracy", "interval", "accuracy_tolerant", "interval_tolerant", "mcnemar", "mcnemar_tolerant", "classes",
        "faithful_next", "faithful_used", "faithful_last",
    }
)  # fmt: skip


def _p_value(line: Line) -> str:
    test = line.get("mcnemar")
    return "–" if not isinstance(test, Mapping) else f"{test['p']:.2g}"


def _cost_text(line: Line) -> str:
    cost, most = line.get("cost"), line.get("max_cost")
    if isinstance(cost, (int, float)) or most == 0:
        return f"{cost or 0:g}"
    return f"≤ {most:g}" if isinstance(most, (int, float)) else "–"


def _tokens_text(line: Line) -> str:
    parts = [line.get(name) for name in ("input_tokens", "cached_tokens", "output_tokens")]
    most = line.get("tokens_at_most")
    if None in parts:
        return "–" if most is None else f"≤ {most:,}"
    return " / ".join(f"{part:,}" for part in parts)


REASONING_COLUMNS = (
    Column("setting", plain("setting")),
    Column("n", plain("n")),
    Column("exact %", with_interval("accuracy", "interval"), figure=True),
    Column("±0.5 %", with_interval("accuracy_tolerant", "interval_tolerant"), figure=True),
    Column("p", _p_value, figure=True),
    Column("calls", plain("calls")),
    Column("tool errors", plain("tool_errors_total"), main=False),
    Column("by model", plain("model_written")),
    Column("kept next %", lambda line: percent(line.get("faithful_next"), 1), figure=True, main=False),
    Column("kept last %", lambda line: percent(line.get("faithful_last"), 1), figure=True, main=False),
    Column("no answer", plain("extraction_failures")),
    Column("cut", plain("truncations")),
    Column("false stops", plain("false_stops"), main=False),
    Column("failed", plain("failed")),
    Column("tokens in / cached / out", _tokens_text, main=False),
    Column("cost", _cost_text),
    Column("s/item", lambda line: "–" if (ms := line.get("ms_per_item")) is None else f"{float(str(ms)) / 1000:.2f}"),
)


def reasoning_lines(
    rows: Iterable[EvalRow], replaced: Iterable[EvalRow], plan: Sequence[Setting], full: str
) -> tuple[Line, ...]:
    """Return a line for each setting that has rows; `full` is the reference setting."""
    groups, paid = group_by_setting(rows, ()), group_by_setting(replaced, ())
    return tuple(
        _reasoning_line(setting, groups[setting.name], groups.get(full, []), full)
        | usage_and_cost(groups[setting.name], paid.get(setting.name, []))
        for setting in plan
        if setting.name in groups
    )


def _reasoning_line(setting: Setting, rows: list[EvalRow], whole: list[EvalRow], full: str) -> dict[str, Json]:
    exact, near = share_marked(rows, EXACT), share_marked(rows, TOLERANT)
    errors = count_field(rows, "tool_errors")
    compared = bool(whole) and setting.name != full
    return {
        "setting": setting.name, "shots": setting.shots, "ablate": setting.ablate or None, "mode": setting.mode or None,
        "order": setting.order, "tools": [*setting.working], "n": len(rows),
        "right": exact.count, "accuracy": exact.share, "interval": interval_json(exact.interval),
        "accuracy_tolerant": near.share, "interval_tolerant": interval_json(near.interval),
        "mcnemar": comparison_json(compare_settings(rows, whole, EXACT), full) if compared else None,
        "mcnemar_tolerant": comparison_json(compare_settings(rows, whole, TOLERANT), full) if compared else None,
        "calls": sum_field(rows, "calls"), "called": count_field(rows, "called"), "memo": sum_field(rows, "memo"),
        "tool_errors": errors, "tool_errors_total": sum(number for number in errors.values() if isinstance(number, int)),
        "model_written": sum_field(rows, "model_written"),
        **_faithfulness(rows),
        "answered_by": count_field(rows, "answered_by"), "endings": count_field(rows, "ending"), "ways": count_field(rows, "way"),
        "extraction_failures": sum_field(rows, "unanswered"), "truncations": sum_field(rows, "truncated"),
        "false_stops": sum_field(rows, "false_stops"),
        "failed": sum(row.error is not None for row in rows), "errors": count_errors(rows),
        "classes": _class_lines(rows),
    }  # fmt: skip


def _faithfulness(rows: Sequence[EvalRow]) -> dict[str, Json]:
    """Return how often the model used the results of its tools; null without a result."""
    behind, last = sum_field(rows, "next_of"), sum_field(rows, "last_of")
    return {
        "faithful_next": Proportion(sum_field(rows, "next_kept"), behind).share,
        "faithful_used": Proportion(sum_field(rows, "used"), behind).share,
        "faithful_last": Proportion(sum_field(rows, "last_kept"), last).share,
        "faithful_next_of": behind, "faithful_last_of": last,
    }  # fmt: skip


def _class_lines(rows: Iterable[EvalRow]) -> list[Json]:
    """Return the shares of each class of questions, the largest first."""
    groups: dict[str, list[EvalRow]] = {}
    for row in rows:
        groups.setdefault(row.kind, []).append(row)
    shares = [(kind, share_marked(those, EXACT), share_marked(those, TOLERANT)) for kind, those in groups.items()]
    return [
        {"class": kind, "n": exact.of, "accuracy": exact.share, "interval": interval_json(exact.interval), "accuracy_tolerant": near.share}
        for kind, exact, near in sorted(shares, key=lambda one: (-one[1].of, one[0]))
    ]  # fmt: skip


def reasoning_report(evaluation: Evaluation, grid: Grid, notes: Sequence[str] = ()) -> Report:
    """Return the report of the rows measured so far."""
    lines = reasoning_lines(evaluation.measured, evaluation.rows.paid, grid.settings(), grid.full)
    all_notes = (*notes, *_reasoning_notes(lines, evaluation, grid))
    more = _class_table(evaluation.measured, lines)
    return Report(evaluation.header, lines, REASONING_COLUMNS, REASONING_FIGURES, all_notes, evaluation.programs, more)


def _class_table(rows: Iterable[EvalRow], lines: Sequence[Line]) -> tuple[Table, ...]:
    """Return a table of the shares of the largest classes; () if all questions are of one class."""
    sizes = Counter({row.id: row.kind for row in rows}.values())
    kinds = sorted(filter(None, sizes), key=lambda kind: (-sizes[kind], kind))[:MAX_CLASSES]
    if len(sizes) < 2 or not kinds:
        return ()
    body: list[tuple[str, ...]] = []
    for line in lines:
        by_kind = {one["class"]: one for one in cast("list[dict[str, Json]]", line["classes"])}
        body.append((str(line["setting"]), *(_exact_and_tolerant(by_kind.get(kind, {})) for kind in kinds)))
    heads = ("setting", *(f"{kind} (n {sizes[kind]})" for kind in kinds))
    return (Table("By class: exact % / within 0.5 %", heads, tuple(body)),)


def _exact_and_tolerant(one: Line) -> str:
    return f"{percent(one.get('accuracy'), 1)} / {percent(one.get('accuracy_tolerant'), 1)}"


def _reasoning_notes(lines: Sequence[Line], evaluation: Evaluation, grid: Grid) -> list[str]:
    notes = missing_note(evaluation)
    if any(line["mcnemar"] for line in lines):
        notes.append(f"p: exact two-sided McNemar test on pairs, against {grid.full}. Intervals: Wilson, 95 %.")
    spread = _order_spread(lines)
    if spread:
        notes.append(f"Orders of worked examples, lowest to highest exact %: {spread}.")
    return notes


def _order_spread(lines: Iterable[Line]) -> str:
    """Return the range of the figures of each setting over the orders of its examples."""
    groups: dict[str, list[float]] = {}
    for line in lines:
        if isinstance(share := line["accuracy"], float):
            groups.setdefault(str(line["setting"]).replace(f" order {line['order']}", ""), []).append(share)
    several = ((name, min(shares), max(shares)) for name, shares in groups.items() if len(shares) > 1)
    return ", ".join(f"{name} {percent(low)} to {percent(high)}" for name, low, high in several)


def reasoning_chart(report: Report) -> Chart:
    """Return bars for all settings, and a line over the numbers of examples for each kind with several."""
    fit = report.without_scripted_figures()
    lines = [line for line in fit.lines if isinstance(line["accuracy"], float)]
    bars = (Bar(str(line["setting"]), _point(line, 0), 100 * float(str(line["accuracy_tolerant"]))) for line in lines)
    groups: dict[str, list[Line]] = {}
    for line in lines:
        if line["shots"] and not line["order"]:
            groups.setdefault(str(line["setting"]).replace(f"@{line['shots']}", ""), []).append(line)
    series: list[Series] = []
    for name, those in groups.items():
        if len(those) > 1:
            points = (_point(line, float(str(line["shots"]))) for line in those)
            series.append(Series(name, tuple(sorted(points, key=lambda one: one.at))))
    title = f"{report.header.data}, {report.header.model}"
    legend = ("exact (95 % interval)", "within 0.5 %")
    return Chart(title, "right answers, %", tuple(bars), tuple(series), "worked examples", legend)


def _point(line: Line, at: float) -> Point:
    low, high = line["interval"] if isinstance(line["interval"], list) else (0, 0)
    return Point(at, *(100 * float(str(part)) for part in (line["accuracy"], low, high)))
