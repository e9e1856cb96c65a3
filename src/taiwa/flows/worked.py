"""Worked examples: a question, a way to its answer with calls of tools in it, and the answer.

An example holds calls and never their results: whoever renders it gives a function that calls the real tools, so what an
example shows is what a tool says. Words and inputs may refer to results, so a number cannot disagree with the call that it
came from: `{2}` is the first number of the second result, `{2:3}` that number with three decimals, and `{1:O2}` the number
that stands before O2 in the first result. A lone `{` before a digit is written `{{`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol, TypeAlias

from taiwa.kernel.errors import InputError
from taiwa.kernel.records import Json, canonical, digest, value
from taiwa.kernel.values import Message, Text, ToolCall, ToolResult, assistant, user

__all__ = [
    "EXTRACTIONS",
    "Notation",
    "ResultOf",
    "Step",
    "Worked",
    "answer_only",
    "choose",
    "literal",
    "native",
    "render",
    "solved",
    "steps",
]

ResultOf: TypeAlias = Callable[[str, str], str]
"""What a tool gives for an input, as a model reads it: (name, input) -> text."""
ArgumentsOf: TypeAlias = Callable[[str, str], dict[str, Json]]
"""The arguments that an input of a tool means: (name, input) -> arguments."""

REFERENCE = re.compile(r"\{\{|\{(?P<number>[1-9][0-9]?)(?::(?P<what>[^{}\s]+))?\}")
NUMBER = re.compile(r"-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:e-?[0-9]+)?")
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


class Notation(Protocol):
    """How a text shows a call and its result; every protocol of tool calls is one."""

    def call(self, name: str, text: str) -> str:
        """Write a call."""
        ...

    def splice(self, result: str) -> str:
        """Write what stands behind it."""
        ...


@value
class Step:
    """One call. A `result` that was recorded together with it is shown as it is; otherwise the tool is asked."""

    tool: str
    input: str
    result: str = ""


@value
class Worked:
    """A worked example; `parts` are lines of words and calls, and the last one states the answer."""

    id: str
    kind: str
    question: str
    parts: tuple[str | Step, ...]
    answer: str

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools it calls, each once."""
        return tuple(dict.fromkeys(part.tool for part in self.parts if isinstance(part, Step)))


def choose(examples: Iterable[Worked], n: int, seed: int = 0) -> tuple[Worked, ...]:
    """Choose n examples: the first n of one order that the seed alone decides, in which the kinds take turns.

    So a choice begins with every smaller one of its seed, whatever the order in which the examples are given.

    Raises:
        InputError: there are not so many.
    """
    kinds: dict[str, list[Worked]] = {}
    for one in sorted(examples, key=lambda one: digest((seed, one.id))):
        kinds.setdefault(one.kind, []).append(one)
    rounds = max(map(len, kinds.values()), default=0)
    order = [each[turn] for turn in range(rounds) for each in kinds.values() if turn < len(each)]
    if not 0 <= n <= len(order):
        raise InputError(f"there are {len(order)} worked examples that fit, and {n} were asked for")
    return tuple(order[:n])


def steps(worked: Worked, result_of: ResultOf) -> tuple[str | Step, ...]:
    """Work an example out: every reference is its number, and every step has its result.

    Raises:
        InputError: a reference names no result, or nothing that is in it.
        ToolError: a tool refuses an input.
    """
    results: list[str] = []
    done: list[str | Step] = []
    for part in worked.parts:
        if isinstance(part, str):
            done.append(_resolved(part, results, worked.id))
            continue
        given = _resolved(part.input, results, worked.id)
        step = Step(part.tool, given, part.result or result_of(part.tool, given))
        results.append(step.result)
        done.append(step)
    return tuple(done)


def render(
    worked: Worked, notation: Notation, result_of: ResultOf, shown: Collection[str] | None = None
) -> tuple[Message, Message]:
    """Render an example as a question and its rationale. A tool that is not among `shown` (None: all are) is not called
    in it: what it gives is stated as if the writer had known it.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    text = ""
    for part in steps(worked, result_of):
        text += "\n" if text and not text.endswith("\n") else ""
        if isinstance(part, str):
            text += part
        elif shown is None or part.tool in shown:
            text += notation.call(part.tool, part.input) + notation.splice(part.result)
        else:
            text += SPOKEN.get(part.tool, "{result}").format(input=part.input, result=part.result)
    return user(worked.question), assistant(text)


def native(worked: Worked, result_of: ResultOf, arguments_of: ArgumentsOf) -> tuple[Message, ...]:
    """Render an example as messages with calls: the words before a call stand in the message that makes it.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    messages = [user(worked.question)]
    words: list[str] = []
    for number, part in enumerate(steps(worked, result_of), 1):
        if isinstance(part, str):
            words.append(part)
            continue
        name = f"{worked.id}-{number}"
        call = ToolCall(part.tool, canonical(arguments_of(part.tool, part.input)).decode(), name)
        said = (Text("\n".join(words)),) if words else ()
        messages += [Message("assistant", (*said, call)), Message("tool", (ToolResult(part.result, part.tool, name),))]
        words = []
    return (*messages, assistant("\n".join(words)))


def answer_only(worked: Worked, result_of: ResultOf) -> tuple[Message, Message]:
    """Render an example as a question and the last line of its rationale.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    last = steps(worked, result_of)[-1]
    return user(worked.question), assistant(last.result if isinstance(last, Step) else last.rpartition("\n")[2])


def solved(worked: Worked, result_of: ResultOf) -> str:
    """The number that an example comes to with these tools: that of its last line.

    Raises:
        InputError: a reference names no result.
        ToolError: a tool refuses an input.
    """
    numbers = NUMBER.findall(answer_only(worked, result_of)[1].text)
    return numbers[-1].replace(",", "") if numbers else ""


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
