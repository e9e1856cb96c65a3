"""Tool-interrupted reasoning: `[Complete] → call → [CallTool] → insert result → [Complete …] → … → answer`.

After MultiTool-CoT (Inaba et al., ACL 2023): the model writes a rationale, is interrupted when it calls a tool, and
continues after the result. Text and insertions joined are the transcript, byte for byte. The answer is typed, a number
parsed from the last line, or requested in a second request as in the paper: a prompt with our own worked examples extracts
the number from the end of the rationale. `vote` takes the majority of several answers (self-consistency, Wang et al. 2023).
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, TypeVar, get_args

from taiwa.flows.extract import extract
from taiwa.flows.solve.loops import FunctionCallingLoop, RationaleBuilder, TextLoop, can_mask
from taiwa.flows.solve.rationale import (
    REPORTING,
    AnswerSource,
    CallBudget,
    CallPolicy,
    OnToolError,
    Rationale,
    SolveLimits,
    ToolMode,
)
from taiwa.flows.solve.tool_call_formats import TaggedFormat, ToolCallFormat
from taiwa.kernel.effects import GetCapabilities, Program, gather, notify, perform
from taiwa.kernel.errors import InputError, LimitError, OutputValidationError, RefusalError, UnsupportedError
from taiwa.kernel.messages import (
    Capability,
    Message,
    Request,
    RequestHints,
    Sampling,
    ToolSpec,
    assistant,
    system,
    user,
)
from taiwa.kernel.serialization import Json, canonical, value
from taiwa.structured import OutputType

MAX_LINE_CHARS = 10_000
"""Characters at the end of the last line that are read."""

SIGNS = {
    0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2013: "-", 0x2212: "-", 0xFE63: "-", 0xFF0D: "-", 0xFF0B: "+", 0xFE62: "+",
    0xFF0E: ".", 0xFF0C: ",", 0xFF0F: "/", 0x2044: "/", 0x2215: "/", 0x066B: ".", 0x066C: ",", 0xFF3E: "^",
}  # fmt: skip

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")

HALVES = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"

SCALES: Mapping[str, int] = {
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "百": 10**2, "千": 10**3, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12,
}  # fmt: skip

WIDE_SCALES = "百千万萬億亿兆"

GROUP_SCALE = 10**3
"""A scale up to this multiplies what precedes it within its group: 2千5百万 is (2000 + 500) × 10,000."""

FRACTION_OF_LATEX = re.compile(r"\\[dt]?frac\{\s*([0-9.,]+)\s*\}\{\s*([0-9.,]+)\s*\}")

COMMA = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|[\u00a0\u2009\u202f'’])(?=[0-9]{3}(?![0-9]))")

SPACED = re.compile(r"(?<![0-9])[0-9]{1,3}(?: [0-9]{3}){2,}(?![0-9])")

PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))(?:\.[0-9]+)?"
# Not \w: in "答えは25" the number follows a letter; in "H2O" it belongs to one, and in "mol-1", "m^2" and "L/100 km" to a unit.
NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_^.])(?<![A-Za-z)\]][-+/])(?P<sign>[-+]?)"
    rf"(?P<number>{PLAIN})"
    rf"(?:[eE](?P<short>[-+]?[0-9]+)"
    rf"|\s?(?:[×x*·]|\\times|\\cdot)\s?10(?:\^[{{(]?\s?(?P<power>[-+]?[0-9]+)[}})]?|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]+))"
    rf"|(?P<mixed>\s[0-9]+/[0-9]+(?![0-9/]))|\s?/\s?(?P<below>[0-9]+)(?![0-9/]))?"
    rf"(?P<scales>\s?(?:thousand|million|billion|trillion)\b|[{WIDE_SCALES}](?:[0-9,.]*[{WIDE_SCALES}])*(?:[0-9]+)?)?"
)

PART_OF_SCALE = re.compile(rf"({PLAIN})?\s?({'|'.join(SCALES)})|({PLAIN})")


def last_number(text: str) -> str:
    """Return the last number of the last non-blank line, without thousands separators; '' for none. Digits of any script count.

    >>> last_number("2 x 612.5 = 1,225.00 yen")
    '1225.00'
    >>> last_number("答えは２５個です。"), last_number("It is 7/27 of it."), last_number("−3.2 × 10⁻⁵ mol")
    ('25', '7/27', '-3.2e-5')
    """
    return ["", *numbers(_last_line(text))][-1]


def numbers(text: str) -> list[str]:
    """Return the numbers of a text, written as by `last_number`."""
    return [_written(found) for found in NUMBER.finditer(_plain(text))]


def _last_line(text: str) -> str:
    lines = text.rstrip().splitlines()
    return lines[-1][-MAX_LINE_CHARS:] if lines else ""


def _plain(line: str) -> str:
    """Convert the line to ASCII digits and signs."""
    line = line.translate(SIGNS)
    line = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in line)
    line = re.sub(rf"(?<=[0-9])\s?([{HALVES}])", lambda match: " " + _fraction(match[1]), line)
    line = re.sub(f"[{HALVES}]", lambda match: _fraction(match[0]), line)
    line = SPACED.sub(lambda match: match[0].replace(" ", ""), COMMA.sub(",", line))
    return FRACTION_OF_LATEX.sub(r"\1/\2", line)


def _fraction(char: str) -> str:
    return unicodedata.normalize("NFKC", char).replace("\u2044", "/")


def _written(match: re.Match[str]) -> str:
    sign, number = match["sign"].replace("+", ""), match["number"].replace(",", "")
    power = match["short"] or match["power"] or (match["raised"] or "").translate(RAISED)
    if match["scales"]:
        return sign + _scaled(match["number"] + match["scales"])
    if power:
        return f"{sign}{number}e{power.removeprefix('+')}"
    if match["below"]:
        return f"{sign}{number}/{match['below']}"
    if match["mixed"]:
        over, _, below = match["mixed"].strip().partition("/")
        if number.isdecimal() and int(below):
            return f"{sign}{int(number) + Fraction(int(over), int(below))}"
    return sign + number


def _scaled(text: str) -> str:
    """Write out the scale of a number: 1億2000万 is 120000000, and 1.5 million 1500000."""
    total = group = Decimal(0)
    for number, scale, rest in PART_OF_SCALE.findall(text):
        factor = SCALES.get(scale, 1)
        here = Decimal((number or rest or "0").replace(",", ""))
        if factor > GROUP_SCALE:
            total, group = total + (group + here) * factor, Decimal(0)
        else:
            group += here * factor
    total += group
    return f"{total:f}".rstrip("0").rstrip(".") if total % 1 else f"{total:.0f}"


ANSWER_LABEL = "Answer:"

STATEMENT = re.compile(
    r"^(?:[^\w\n]*answer[^\w\n:：]*[:：])+(?P<line>.*)|\\boxed\s*\{(?P<boxed>.*)", re.IGNORECASE | re.MULTILINE
)
"""A statement of the answer: the line that the instructions ask for, or the mark of models trained on mathematics."""

BOXED = re.compile(r"\\boxed\s*\{")

WORDS_OF_LATEX = re.compile(r"\\(?:text|mathrm|textbf)\s*\{([^{}]*)\}")

MARKS = " \t*_`$"

NOT_QUANTITY = re.compile(r"->|→|⟶|⇌|<=>|⇄|=>|[0-9][:：][0-9]|[0-9][-/.][0-9]+[-/.][0-9]")
"""Reactions, times and ratios, dates."""

MAX_STATEMENT_CHARS = 300

MAX_ANSWER_TOKENS = 40

NO_ANSWER = "none"

ASK_ANSWER = f"Write only the answer, as one line: `{ANSWER_LABEL} ` and the result, or `{ANSWER_LABEL} {NO_ANSWER}`."

ASK_TYPED = "Give the final answer of this solution."


def stated_answer(text: str) -> str:
    r"""Return the answer that a text states last in the form that the instructions ask for; '' for none.

    A quantity counts as its number, and any other statement is returned as it is.

    >>> stated_answer("It takes 4 h.\nAnswer: 6.67 L/100 km"), stated_answer(r"So \boxed{1{,}250}.")
    ('6.67', '1250')
    >>> stated_answer("**Answer:** 2H2 + O2 -> 2H2O"), stated_answer("The answer is 5."), stated_answer(r"Answer: \boxed{8:45 \text{PM}}")
    ('2H2 + O2 -> 2H2O', '', '8:45 PM')
    """
    return read_statement(_statement(text))


def _statement(text: str) -> str:
    found = next(reversed([*STATEMENT.finditer(text)]), None)
    if found is None:
        return ""
    if found["line"] is None:
        stated = _in_braces(found["boxed"])
    else:
        line = found["line"].strip(MARKS) or text[found.end() :].strip().partition("\n")[0].strip(MARKS)
        boxed = BOXED.search(line)
        stated = line if boxed is None else _in_braces(line[boxed.end() :])
    return WORDS_OF_LATEX.sub(r"\1", stated)


def read_statement(stated: str) -> str:
    """Return the number of a stated quantity; a statement that is not a quantity, as it is.

    >>> read_statement("3 × 31.998 = 95.994 g"), read_statement("about 5 km"), read_statement("no reaction")
    ('95.994', '5', 'no reaction')
    """
    stated = stated[:MAX_STATEMENT_CHARS]
    line = _plain(stated)
    if NOT_QUANTITY.search(line):
        return stated
    result = line.rpartition("=")[2]
    for part in (result, line):
        found = [each for each in NUMBER.finditer(part) if not part[: each.start()].endswith("·")]
        if found and (len(found) == 1 or not part[: found[0].start()].strip("([~≈$€£¥ ")):
            return _written(found[0])
    return stated


def only_number(text: str) -> str:
    """Return the number of the last line if it has exactly one; '' otherwise: of several, any may be the answer."""
    found = numbers(_last_line(text))
    return found[0] if len(found) == 1 else ""


def _in_braces(text: str) -> str:
    """Return the part of a text up to the brace that closes the one before it."""
    depth = 1
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if not depth:
            return text[:at].strip(MARKS)
    return text.strip(MARKS)


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """An answer as text ('' for none), its source, and its value as JSON if an output type was given."""

    text: str = ""
    answered_by: AnswerSource = "none"
    value: Json = None


def find_answer(
    question: Message, loop: RationaleBuilder, options: "SolveOptions", *, is_enforced: bool
) -> Program[FinalAnswer]:
    """Find the answer of a rationale in what the model wrote after the last inserted text: results and errors are not its own.

    `is_enforced` says whether the server can enforce a type.
    """
    own, by = loop.own_text, options.answer_by
    stated = _answering(loop, loop.final or _statement(own))
    line = read_statement(stated) or (only_number(own) if "prompt" in by else last_number(own))
    try:
        if options.output_type is not None and "typed" in by:
            wanted = options.output_type
            wanted = wanted if isinstance(wanted, OutputType) else OutputType[Any](wanted)
            found = yield from _typed(wanted, question, loop, (stated, line), is_enforced=is_enforced)
            if found is not None:
                return found
        if "line" in by and line:
            return FinalAnswer(line, "line")
        if "prompt" in by and loop.text.strip():
            return FinalAnswer(*((yield from _ask(loop)) or ("", "none")))
    except LimitError as error:
        yield from notify(f"the answer could not be requested: {error.message}", code="limit", warning=True)
        number = last_number(own)
        return FinalAnswer(number, "line") if "line" in by and number else FinalAnswer()
    return FinalAnswer()


def _typed(
    wanted: OutputType[Any], question: Message, loop: RationaleBuilder, stated: Sequence[str], *, is_enforced: bool
) -> Program[FinalAnswer | None]:
    """Request a value of the type: checked, and repaired if the server does not enforce it. The statement is read instead if it
    has the type and the server would not enforce it, or if the request is not supported after all.
    """
    try:
        value = None if is_enforced else _parsed(wanted, stated)
        if value is None:
            value = (yield from extract(wanted, (question, assistant(loop.text), user(ASK_TYPED)))).value
    except UnsupportedError as error:
        value = _parsed(wanted, stated)
        if value is None:
            yield from notify(f"no {wanted.name} could be requested: {error.message}", code="answer", warning=True)
            return None
    except OutputValidationError as error:
        yield from notify(error.message, code="answer", warning=True)
        return None
    except RefusalError as error:
        yield from notify(f"no {wanted.name} could be requested: {error.message}", code="answer", warning=True)
        return None
    plain = wanted.dump(value)
    if isinstance(plain, float) and math.isfinite(plain):
        return FinalAnswer(f"{plain:.15g}", "typed", plain)
    return FinalAnswer(plain if isinstance(plain, str) else canonical(plain).decode(), "typed", plain)


def _answering(loop: RationaleBuilder, stated: str) -> str:
    """Return a statement, '' if it gives no answer or only repeats an error."""
    if stated.strip(" .").lower() == NO_ANSWER:
        return ""
    errors = (call.result.text for call in loop.calls.executed if call.result.error)
    is_error = bool(stated) and read_statement(stated) == stated and any(stated in each for each in errors)
    return "" if is_error and not last_number(stated) else stated


def _parsed(wanted: OutputType[Any], stated: Sequence[str]) -> Any:  # noqa: ANN401  (a value of the type)
    for text in stated:
        with suppress(OutputValidationError):
            return wanted.parse(text).value
    return None


def _ask(loop: RationaleBuilder) -> Program[tuple[str, AnswerSource] | None]:
    """Let the model state the answer: it continues the rationale after the label, or writes the line when asked for it."""
    response = yield from loop.continue_after(ANSWER_LABEL, ASK_ANSWER, MAX_ANSWER_TOKENS)
    lines = response.text.strip().splitlines() if response.finish in ("stop", "cut") else []
    if not lines:
        return None
    stated = _answering(loop, stated_answer(response.text) or read_statement(lines[0].strip(MARKS)))
    return (stated, "prompt") if stated else None


INSTRUCTIONS = f"Solve the problem step by step. End with a line `{ANSWER_LABEL} ` and the result."

NATIVE_INSTRUCTIONS = """\
Use the tools for whatever they can work out; never make up a result of a tool yourself. Calls that do not need each other's \
results can be made together."""

REQUIRED_CAPABILITIES: dict[ToolMode, Capability] = {"prefill": "prefix", "native": "tools"}

DEFAULT_LIMITS = SolveLimits()


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """Options of `solve`.

    - `tool_format`: the text format of tool calls. `tool_mode`: how tool results are returned to the model (None: the best that
      its server supports).
    - `shots`: worked examples, as messages in turn. `system`: instructions that replace the built-in ones, "" for none; the
      description of the tool-call format follows them.
    - `calls`: what becomes of calls of tools. `limits`: limits of one rationale. `sampling`: how tokens are sampled.
    - `output_type`: a type of the answer. `answer_by`: allowed sources of the answer.
    """

    tool_format: ToolCallFormat = field(default_factory=TaggedFormat)
    tool_mode: ToolMode | None = None
    shots: Sequence[Message] = ()
    system: str | None = None
    calls: CallPolicy = REPORTING
    limits: SolveLimits = DEFAULT_LIMITS
    sampling: Sampling = Sampling()
    output_type: "type[Any] | OutputType[Any] | None" = None
    answer_by: Collection[AnswerSource] = ("typed", "line", "prompt")

    def check(self) -> None:
        """Check the options.

        Raises:
            InputError: an option has an unknown value, or a limit is too small.
        """
        chosen = (
            *((name, getattr(self.calls, name), get_args(OnToolError)) for name in ("on_error", "on_unknown")),
            ("tool_mode", self.tool_mode, (None, *get_args(ToolMode))), *(("answer_by", each, get_args(AnswerSource)) for each in self.answer_by),
        )  # fmt: skip
        for name, choice, known in chosen:
            if choice not in known:
                names = ", ".join(str(each) for each in known if each)
                raise InputError(f"unknown {name} {choice!r}; choose one of {names}")
        for name, least in (("max_tool_calls", 0), ("max_tokens", 1), ("max_repeats", 1), ("max_false_stops", 0)):
            number = getattr(self.limits, name)
            if number is not None and number < least:
                raise InputError(f"{name} must be at least {least}, got {number}")

    def request(self, question: str, tools: Sequence[ToolSpec], mode: ToolMode) -> Request:
        """Make the first request."""
        parts = [INSTRUCTIONS if self.system is None else self.system]
        if tools and mode == "native":
            parts.append(NATIVE_INSTRUCTIONS)
        elif tools:
            parts.append(self.tool_format.instructions(tools, forbid_own_results=self.calls.forbid_own_results))
        head = "\n\n".join(part for part in parts if part)
        opening = (*((system(head),) if head else ()), *self.shots)
        shared = len(opening) if self.system is None else 0  # not with words that the user may have written
        return Request((*opening, user(question)), sampling=self.sampling, hints=RequestHints(opening=shared))


DEFAULT_OPTIONS = SolveOptions()


def solve(question: str, tools: Iterable[ToolSpec] = (), options: SolveOptions = DEFAULT_OPTIONS) -> Program[Rationale]:
    """Answer a question step by step, with tool results inserted where the text calls tools.

    Depending on the server, the model continues its own text; or, without worked examples, it calls functions; or its text
    is stopped at a call and it is asked to continue. Stop strings are sent to servers that support them, which saves tokens;
    correctness does not depend on it, because the text is watched and cut here.

    Raises (when run):
        InputError: an option has an unknown value.
        UnsupportedError: `tool_mode` is set, and the model does not support it.
        RefusalError: the model refused at once.
    """
    specs = tuple(tools)
    options.check()
    capabilities = yield from perform(GetCapabilities())
    loop, mode = yield from _run_loop(question, specs, options, capabilities)
    parts, calls = loop.parts, tuple(loop.calls.executed)
    has_failed = bool(calls and calls[-1].result.error and calls[-1].result.origin != "model")
    if has_failed and options.calls.retry_without_tools and loop.ending in ("end", "repeat", "repetition"):
        # What follows a failed call is a guess: models answer with its error, or with nothing better.
        yield from notify("the last call failed; solving the question without tools", code="without_tools")
        yield from loop.insert("\n\n", "cue")
        loop = yield from _run_without_tools(question, options, loop, capabilities)
    ending = loop.ending or "end"
    answer = FinalAnswer()
    if ending in ("end", "calls", "repeat"):
        is_enforced = "json_schema" in capabilities or "tools" in capabilities
        answer = yield from find_answer(user(question), loop, options, is_enforced=is_enforced)
    parts = parts if parts is loop.parts else [*parts, *loop.parts]
    return Rationale(tuple(parts), calls, ending, mode, answer.text, answer.answered_by, answer.value)


def tool_modes(
    mode: ToolMode | None, capabilities: frozenset[Capability], *, allow_native: bool
) -> tuple[ToolMode, ...]:
    """List the tool modes to try, best first; only `mode` if it is set.

    Raises:
        UnsupportedError: the model does not support `mode`.
    """
    supported = [each for each in get_args(ToolMode) if REQUIRED_CAPABILITIES.get(each) in (None, *capabilities)]
    if mode is not None:
        if mode not in supported:
            why = f"the model does not support tool mode {mode!r}; supported: {', '.join(supported)}"
            raise UnsupportedError(why, capability=REQUIRED_CAPABILITIES[mode])
        return (mode,)
    order: tuple[ToolMode, ...] = ("prefill", "native", "stop")
    return tuple(each for each in order if each in supported and (allow_native or each != "native"))


def _run_loop(
    question: str, tools: Sequence[ToolSpec], options: SolveOptions, capabilities: frozenset[Capability]
) -> Program[tuple[RationaleBuilder, ToolMode]]:
    """Run the loop of the first tool mode that the server does not refuse.

    A server may refuse a mode only at its second request, the first one that continues a text or contains results. The next
    mode then continues with the text so far.
    """
    allow_native = not options.shots and bool(tools)
    modes: list[ToolMode] = list(tool_modes(options.tool_mode, capabilities, allow_native=allow_native))
    refused: RationaleBuilder | None = None
    while True:
        mode = modes.pop(0)
        request = options.request(question, tools, mode)
        calls = CallBudget(tools, options.limits, options.calls)
        loop: TextLoop | FunctionCallingLoop
        if mode == "native":
            loop = FunctionCallingLoop(request, calls, options.tool_format)
        else:
            prefill, stops = mode == "prefill", "stop" in capabilities
            masks = can_mask(capabilities)
            loop = TextLoop(
                request, calls, options.tool_format, prefill=prefill, stops=stops, masks=masks, ends_lines=True
            )
            if refused is not None:
                yield from loop.take_over(refused)
        yield from notify(f"tool mode: {mode}", code="tool_mode")
        try:
            yield from loop.run()
        except UnsupportedError as error:
            if loop.parts:
                refused, modes = loop, [each for each in modes if each != "native"]  # a text contains no function calls
            if not modes:
                raise
            yield from notify(f"tool mode {mode} was refused; trying {modes[0]}: {error.message}", code="downgrade")
            continue
        except LimitError as error:
            if not loop.parts:
                raise
            yield from notify(f"{error.message}; the rationale ends here", code="limit", warning=True)
            loop.ending = "limit"
        return loop, mode


def _run_without_tools(
    question: str, options: SolveOptions, failed: RationaleBuilder, capabilities: frozenset[Capability]
) -> Program[RationaleBuilder]:
    """Solve the question again step by step, without tools and their examples, with the tokens that are left."""
    request = replace(options, shots=()).request(question, (), "stop")
    prefill, stops = "prefix" in capabilities, "stop" in capabilities
    loop = TextLoop(request, CallBudget((), options.limits), options.tool_format, prefill=prefill, stops=stops)
    loop.output_tokens = failed.output_tokens
    try:
        yield from loop.run()
    except LimitError as error:
        yield from notify(f"{error.message}; the rationale ends here", code="limit", warning=True)
        loop.ending = "limit"
    return loop


A = TypeVar("A")


@value(tag="vote")
class Vote(Generic[A]):
    """The most frequent answer, its count, all answers in order, and how many programs `failed` with an invalid answer."""

    winner: A
    count: int
    answers: tuple[A, ...]
    failed: int = 0


def vote(program: Callable[[int], Program[A]], n: int, *, by: Callable[[A], object] | None = None) -> Program[Vote[A]]:
    """Run `program(0)` … `program(n - 1)` in parallel and take the majority; among equal counts, the first answer.

    `by` returns the part to compare, such as the number of an answer. The argument of `program` may serve as its seed.

    Raises (when run):
        InputError: n is less than 1.
        OutputValidationError: every answer was invalid; this is the error of the first.
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    outcomes = yield from gather(_answer(program(index)) for index in range(n))
    answers = tuple(outcome[0] for outcome in outcomes if isinstance(outcome, tuple))
    errors = [outcome for outcome in outcomes if isinstance(outcome, OutputValidationError)]
    if not answers:
        raise errors[0]
    keys = [answer if by is None else by(answer) for answer in answers]  # not every value can be hashed
    first = max(range(len(keys)), key=lambda at: keys.count(keys[at]))
    return Vote(answers[first], keys.count(keys[first]), answers, len(errors))


def _answer(program: Program[A]) -> Program[tuple[A] | OutputValidationError]:
    """Return the error of an invalid answer; any other error ends the vote."""
    try:
        return ((yield from program),)
    except OutputValidationError as error:
        return error
