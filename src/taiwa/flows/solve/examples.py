"""Worked examples: a question, the way to its answer with calls of tools in it, and the answer.

An example holds calls and never their results: whoever renders it gives a function that calls the real tools, so what an
example shows is what a tool says. Words and inputs may refer to results, so a number cannot disagree with the call that it
came from: `{2}` is the first number of the second result, `{2:3}` that number with three decimals, and `{1:O2}` the number
that stands before O2 in the first result. A lone `{` before a digit is written `{{`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeAlias

from taiwa.flows.solve.numbers import last_number
from taiwa.flows.solve.tool_call_formats import ToolCallFormat
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text, ToolCall, ToolResult, assistant, user
from taiwa.kernel.records import Json, canonical, digest, value

__all__ = [
    "EXTRACTIONS",
    "ExampleCall",
    "ResultOf",
    "WorkedExample",
    "answer_only",
    "evaluate_example",
    "literal",
    "native",
    "render",
    "select_examples",
    "steps",
]


ResultOf: TypeAlias = Callable[[str, str], str]
"""What a tool gives for an input, as a model reads it: (name, input) -> text."""

ArgumentsOf: TypeAlias = Callable[[str, str], dict[str, Json]]
"""The arguments that an input of a tool means: (name, input) -> arguments."""

REFERENCE = re.compile(r"\{\{|\{(?P<number>[1-9][0-9]?)(?::(?P<what>[^{}\s]+))?\}")

NUMBER = re.compile(r"(?<![A-Za-z0-9_)\]}])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e-?[0-9]+)?")

MOST_DECIMALS = 9

SPOKEN = {"calculator": "{input} = {result}", "molar_mass": "{input}: {result}", "unit_conversion": "{input}: {result}"}
"""How the step of a tool that is not shown as one reads; of any other the result stands alone."""

EXTRACTIONS: tuple[tuple[str, str], ...] = (
    ("Therefore, the two pumps together need 3.6 hours.", "3.6"),
    ("Of the 48 seats 17 stayed empty, and that is what was asked.", "17"),
    ("So 1,250 kg of gravel are delivered in 2 loads.", "1250"),
    ("The temperature falls to −4.5 °C after 6 hours.", "-4.5"),
    ("Nitrogen makes up 35.00 % of the mass of NH4NO3.", "35.00"),
    ("したがって、6回分の料金は合計で8,400円です。", "8400"),
    ("因此，每分钟流过的水是 0.75 升。", "0.75"),
    ("The question cannot be answered without the length of the bridge.", "none"),
)
"""Last lines of rationales, and the number that each of them gives as the answer."""


@value(tag="example-call")
class ExampleCall:
    """One call. A `result` that was recorded together with it is shown as it is; otherwise the tool is asked."""

    tool: str
    input: str
    result: str = ""


@value(tag="worked-example")
class WorkedExample:
    """A worked example. `parts` joined are the rationale, whose last line states the answer: words bring their own line
    ends, a call brings none. Where the example was read from a text, `written` is that text, and `notation` the protocol
    that it is written in.
    """

    id: str
    kind: str
    question: str
    parts: tuple[str | ExampleCall, ...]
    answer: str = ""
    notation: str = ""
    written: str = ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools it calls, each once."""
        return tuple(dict.fromkeys(part.tool for part in self.parts if isinstance(part, ExampleCall)))


def select_examples(examples: Iterable[WorkedExample], n: int, seed: int = 0) -> tuple[WorkedExample, ...]:
    """Choose n examples: the first n of one order that the seed alone decides, in which the kinds take turns.

    So a choice begins with every smaller one of its seed, whatever the order in which the examples are given.

    Raises:
        InputError: there are not so many.
    """
    kinds: dict[str, list[WorkedExample]] = {}
    for one in sorted(examples, key=lambda one: digest((seed, one.id))):
        kinds.setdefault(one.kind, []).append(one)
    rounds = max(map(len, kinds.values()), default=0)
    order = [each[turn] for turn in range(rounds) for each in kinds.values() if turn < len(each)]
    if not 0 <= n <= len(order):
        raise InputError(f"there are {len(order)} worked examples that fit, and {n} were asked for")
    return tuple(order[:n])


def steps(worked: WorkedExample, result_of: ResultOf) -> tuple[str | ExampleCall, ...]:
    """Work an example out: every reference is its number, and every step has its result.

    Raises:
        InputError: a reference names no result, or nothing that is in it.
        ToolError: a tool refuses an input.
    """
    results: list[str] = []
    done: list[str | ExampleCall] = []
    for part in worked.parts:
        if isinstance(part, str):
            done.append(_resolved(part, results, worked.id))
            continue
        given = _resolved(part.input, results, worked.id)
        step = ExampleCall(part.tool, given, part.result or result_of(part.tool, given))
        results.append(step.result)
        done.append(step)
    return tuple(done)


def render(
    worked: WorkedExample, protocol: ToolCallFormat, result_of: ResultOf, shown: Collection[str] | None = None
) -> tuple[Message, Message]:
    """Render an example as a question and its rationale.

    A call of a tool that is not among `shown` (None: all are), or that the protocol cannot write, becomes words: what the
    tool gives is stated as if the writer had known it.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    if worked.written and worked.notation == protocol.name and (shown is None or set(worked.tools) <= set(shown)):
        return user(worked.question), assistant(worked.written)
    writing = _Writing(protocol, worked.tools if shown is None else shown)
    for part in steps(worked, result_of):
        if isinstance(part, str):
            writing.say(part)
        elif not writing.call(part):
            writing.say(SPOKEN.get(part.tool, "{result}").format(input=part.input, result=part.result))
    return user(worked.question), assistant(writing.text)


class _Writing:
    """A rationale that is being written: each part begins a line, and each call is read back as the model's will be."""

    def __init__(self, protocol: ToolCallFormat, names: Collection[str]) -> None:
        self.text = ""
        self._protocol = protocol
        self._names = names
        self._scanner = protocol.scanner(names)
        self._count = 0

    def say(self, words: str) -> None:
        if self.text.endswith("\n"):
            words = words.removeprefix("\n")
        self.text += words
        while trigger := self._scanner.feed(words):
            words = words[trigger.end :]

    def call(self, step: ExampleCall) -> bool:
        """Write a call and its result; False, and nothing is written, where it would not be read as that call."""
        if step.tool not in self._names:
            return False
        written = self._protocol.call(step.tool, step.input, self.text, str(self._count + 1))
        trial = copy(self._scanner)
        trigger = trial.feed(written)
        if trigger is None or (trigger.name, trigger.input, trigger.end) != (step.tool, step.input, len(written)):
            return False
        result = self._protocol.splice(step.result, trigger.mark)
        trial.skip(result)
        self._scanner, self.text, self._count = trial, self.text + written + result, self._count + 1
        return True


def native(worked: WorkedExample, result_of: ResultOf, arguments_of: ArgumentsOf) -> tuple[Message, ...]:
    """Render an example as messages with calls: the words before a call stand in the message that makes it.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    messages = [user(worked.question)]
    words = ""
    for number, part in enumerate(steps(worked, result_of), 1):
        if isinstance(part, str):
            words += part
            continue
        name = f"{worked.id}-{number}"
        call = ToolCall(part.tool, canonical(arguments_of(part.tool, part.input)).decode(), name)
        said = (Text(words.strip()),) if words.strip() else ()
        messages += [Message("assistant", (*said, call)), Message("tool", (ToolResult(part.result, part.tool, name),))]
        words = ""
    return (*messages, assistant(words.strip()))


def answer_only(worked: WorkedExample, result_of: ResultOf) -> tuple[Message, Message]:
    """Render an example as a question and the last line of its rationale.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    last = steps(worked, result_of)[-1]
    text = last.result if isinstance(last, ExampleCall) else last
    return user(worked.question), assistant(text.strip().rpartition("\n")[2])


def evaluate_example(worked: WorkedExample, result_of: ResultOf) -> str:
    """The number that an example comes to with these tools: that of its last line.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    return last_number(answer_only(worked, result_of)[1].text)


def literal(text: str) -> str:
    """Write a text so that nothing of it is a reference.

    >>> literal("{1} and {x}")
    '{{1} and {x}'
    """
    return re.sub(r"\{(?=[{0-9])", "{{", text)


def _resolved(text: str, results: Sequence[str], name: str) -> str:
    return REFERENCE.sub(lambda found: _number(found, results, name), text)


def _number(found: re.Match[str], results: Sequence[str], name: str) -> str:
    if found[0] == "{{":
        return "{"
    place, what = int(found["number"]), found["what"] or ""
    if place > len(results):
        raise InputError(
            f"worked example {name}: {found[0]} names call {place}, and only {len(results)} come before it"
        )
    result = results[place - 1]
    number = _first(result) if not what or what.isdecimal() else _before(result, what)
    if number is None:
        raise InputError(f"worked example {name}: {found[0]} is not in the result {result[:80]!r}")
    return _with_decimals(number, int(what)) if what.isdecimal() else number


def _first(result: str) -> str | None:
    number = NUMBER.search(result)
    return None if number is None else number[0].replace(",", "")


def _before(result: str, word: str) -> str | None:
    """The number before a word, as in `4Fe + 3O2`; a word that stands alone counts once."""
    found = re.search(rf"(?<![^\s])(?P<count>[0-9][0-9./]*)?\s?{re.escape(word)}(?![^\s,;.])", result)
    return None if found is None else found["count"] or "1"


def _with_decimals(number: str, decimals: int) -> str:
    step = Decimal(1).scaleb(-min(decimals, MOST_DECIMALS))
    return f"{Decimal(number).quantize(step, ROUND_HALF_UP):f}"
