"""Worked examples: a question, the reasoning with its tool calls, and the answer.

An example holds calls without results: rendering executes the real tools, so an example shows what a tool returns. Text and
inputs refer to results, so a number cannot disagree with the call that it comes from: `{2}` is the first number of the second
result, `{2:3}` that number with three decimals, and `{1:O2}` the number before O2 in the first result. A literal `{` before a
digit is written `{{`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeAlias

from taiwa.flows.solve.tool_call_formats import ToolCallFormat
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Message, Text, ToolCall, ToolResult, assistant, user
from taiwa.kernel.records import Json, canonical, digest, value

ResultOf: TypeAlias = Callable[[str, str], str]
"""Executes a tool: (name, input) -> result as a model reads it."""

ArgumentsOf: TypeAlias = Callable[[str, str], dict[str, Json]]
"""Parses the input of a tool: (name, input) -> arguments."""

REFERENCE = re.compile(r"\{\{|\{(?P<number>[1-9][0-9]?)(?::(?P<what>[^{}\s]+))?\}")

NUMBER = re.compile(r"(?<![A-Za-z0-9_)\]}])-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e-?[0-9]+)?")

MAX_DECIMALS = 9

COLON = "{input}: {result}"
STATEMENTS = {"calculator": "{input} = {result}", "molar_mass": COLON, "unit_conversion": COLON}
"""How a call that is not shown as one is stated as text; for other tools the result stands alone."""

ANSWER_EXAMPLES: tuple[tuple[str, str], ...] = (
    ("Therefore, the two pumps together need 3.6 hours.", "3.6"),
    ("Of the 48 seats 17 stayed empty, and that is what was asked.", "17"),
    ("So 1,250 kg of gravel are delivered in 2 loads.", "1250"),
    ("The temperature falls to −4.5 °C after 6 hours.", "-4.5"),
    ("Nitrogen makes up 35.00 % of the mass of NH4NO3.", "35.00"),
    ("したがって、6回分の料金は合計で8,400円です。", "8400"),
    ("因此，每分钟流过的水是 0.75 升。", "0.75"),
    ("The question cannot be answered without the length of the bridge.", "none"),
)
"""Last lines of rationales, and the number that each gives as its answer."""


@value(tag="example-call")
class ExampleCall:
    """One call. A recorded `result` is shown as it is; without one the tool is executed."""

    tool: str
    input: str
    result: str = ""


@value(tag="worked-example")
class WorkedExample:
    """A worked example.

    `parts` joined are the rationale, whose last line states the answer; text contains its own line ends, a call has none.
    Where the example was read from a transcript, `written` is that text, and `notation` the name of its tool-call format.
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
        """The names of the tools that it calls, each once."""
        return tuple(dict.fromkeys(part.tool for part in self.parts if isinstance(part, ExampleCall)))


def select_examples(examples: Iterable[WorkedExample], n: int, seed: int = 0) -> tuple[WorkedExample, ...]:
    """Select n examples: the first n of an order that only the seed decides, in which the kinds alternate.

    So a selection begins with every smaller one of its seed, and the order in which the examples are given does not matter.

    Raises:
        InputError: there are fewer than n examples.
    """
    kinds: dict[str, list[WorkedExample]] = {}
    for example in sorted(examples, key=lambda each: digest((seed, each.id))):
        kinds.setdefault(example.kind, []).append(example)
    rounds = max(map(len, kinds.values()), default=0)
    order = [each[turn] for turn in range(rounds) for each in kinds.values() if turn < len(each)]
    if not 0 <= n <= len(order):
        raise InputError(f"n must be 0 to {len(order)}, the number of worked examples that fit; got {n}")
    return tuple(order[:n])


def evaluate_parts(example: WorkedExample, result_of: ResultOf) -> tuple[str | ExampleCall, ...]:
    """Evaluate the parts of an example: replace references by numbers, and give every call its result.

    Raises:
        InputError: a reference names a later call, or something that is not in the result.
        ToolError: a tool rejects an input.
    """
    results: list[str] = []
    done: list[str | ExampleCall] = []
    for part in example.parts:
        if isinstance(part, str):
            done.append(_resolve(part, results, example.id))
            continue
        text = _resolve(part.input, results, example.id)
        call = ExampleCall(part.tool, text, part.result or result_of(part.tool, text))
        results.append(call.result)
        done.append(call)
    return tuple(done)


def render(
    example: WorkedExample, tool_format: ToolCallFormat, result_of: ResultOf, shown: Collection[str] | None = None
) -> tuple[Message, Message]:
    """Render an example as a question and its rationale.

    A call of a tool that is not in `shown` (None: all are), or that the format cannot write, becomes text that states the
    result.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    if example.written and example.notation == tool_format.name and (shown is None or set(example.tools) <= set(shown)):
        return user(example.question), assistant(example.written)
    writer = _Writer(tool_format, example.tools if shown is None else shown)
    for part in evaluate_parts(example, result_of):
        if isinstance(part, str):
            writer.add_text(part)
        elif not writer.add_call(part):
            writer.add_text(STATEMENTS.get(part.tool, "{result}").format(input=part.input, result=part.result))
    return user(example.question), assistant(writer.text)


class _Writer:
    """Writes a rationale: each part begins a line, and each call is read back like the model's."""

    def __init__(self, tool_format: ToolCallFormat, names: Collection[str]) -> None:
        self.text = ""
        self._format = tool_format
        self._names = names
        self._scanner = tool_format.scanner(names)
        self._count = 0

    def add_text(self, text: str) -> None:
        if self.text.endswith("\n"):
            text = text.removeprefix("\n")
        self.text += text
        while call := self._scanner.feed(text):
            text = text[call.end :]

    def add_call(self, example: ExampleCall) -> bool:
        """Write a call and its result; write nothing and return False where it would not be read as that call."""
        if example.tool not in self._names:
            return False
        written = self._format.write_call(example.tool, example.input, self.text, str(self._count + 1))
        scanner = copy(self._scanner)
        call = scanner.feed(written)
        if call is None or (call.name, call.input, call.end) != (example.tool, example.input, len(written)):
            return False
        result = self._format.write_result(example.result, call.number)
        scanner.skip(result)
        self._scanner, self.text, self._count = scanner, self.text + written + result, self._count + 1
        return True


def render_native(example: WorkedExample, result_of: ResultOf, arguments_of: ArgumentsOf) -> tuple[Message, ...]:
    """Render an example as messages with function calls: the text before a call stands in the message that makes it.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    messages = [user(example.question)]
    text = ""
    for number, part in enumerate(evaluate_parts(example, result_of), 1):
        if isinstance(part, str):
            text += part
            continue
        call = ToolCall(part.tool, canonical(arguments_of(part.tool, part.input)).decode(), f"{example.id}-{number}")
        before = (Text(text.strip()),) if text.strip() else ()
        messages.append(Message("assistant", (*before, call)))
        messages.append(Message("tool", (ToolResult(part.result, part.tool, call.id),)))
        text = ""
    return (*messages, assistant(text.strip()))


def render_answer_only(example: WorkedExample, result_of: ResultOf) -> tuple[Message, Message]:
    """Render an example as a question and the last line of its rationale.

    Raises:
        InputError: as `evaluate_parts`.
        ToolError: a tool rejects an input.
    """
    last = evaluate_parts(example, result_of)[-1]
    text = last.result if isinstance(last, ExampleCall) else last
    return user(example.question), assistant(text.strip().rpartition("\n")[2])


def escape_references(text: str) -> str:
    """Escape a text so that nothing in it is a reference.

    >>> escape_references("{1} and {x}")
    '{{1} and {x}'
    """
    return re.sub(r"\{(?=[{0-9])", "{{", text)


def _resolve(text: str, results: Sequence[str], name: str) -> str:
    def resolve_one(match: re.Match[str]) -> str:
        if match[0] == "{{":
            return "{"
        place, what = int(match["number"]), match["what"] or ""
        if place > len(results):
            why = f"{match[0]} names call {place}, and only {len(results)} come before it"
            raise InputError(f"worked example {name}: {why}")
        result = results[place - 1]
        number = _first_number(result) if not what or what.isdecimal() else _number_before(result, what)
        if number is None:
            raise InputError(f"worked example {name}: {match[0]} is not in the result {result[:80]!r}")
        return _with_decimals(number, int(what)) if what.isdecimal() else number

    return REFERENCE.sub(resolve_one, text)


def _first_number(result: str) -> str | None:
    number = NUMBER.search(result)
    return None if number is None else number[0].replace(",", "")


def _number_before(result: str, word: str) -> str | None:
    """Return the number before a word, as in `4Fe + 3O2`; a word without one counts as 1."""
    match = re.search(rf"(?<![^\s])(?P<count>[0-9][0-9./]*)?\s?{re.escape(word)}(?![^\s,;.])", result)
    return None if match is None else match["count"] or "1"


def _with_decimals(number: str, decimals: int) -> str:
    step = Decimal(1).scaleb(-min(decimals, MAX_DECIMALS))
    return f"{Decimal(number).quantize(step, ROUND_HALF_UP):f}"
