"""The answer that a finished rationale states: typed, a number read from its last line, or asked for in a second request.

The second request is that of MultiTool-CoT (Inaba et al., ACL 2023): a prompt with worked examples reads the number from the
end of the rationale. Its text is our own.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from taiwa.flows.extract import extract
from taiwa.flows.solve.examples import ANSWER_EXAMPLES
from taiwa.flows.solve.rationale import AnswerSource
from taiwa.kernel.effects import Complete, HideOutput, Program, notify, perform
from taiwa.kernel.errors import LimitError, OutputValidationError, RefusalError, UnsupportedError
from taiwa.kernel.messages import Message, Request, Sampling, assistant, system, user
from taiwa.kernel.records import Json, canonical
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
"""A scale up to this multiplies what stands before it within its group: 2千5百万 is (2000 + 500) × 10,000."""

FRACTION_OF_LATEX = re.compile(r"\\[dt]?frac\{\s*([0-9.,]+)\s*\}\{\s*([0-9.,]+)\s*\}")

COMMA = re.compile(r"(?<=[0-9])(?:\{,\}|\\,|[\u00a0\u2009\u202f'’])(?=[0-9]{3}(?![0-9]))")

SPACED = re.compile(r"(?<![0-9])[0-9]{1,3}(?: [0-9]{3}){2,}(?![0-9])")

PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))(?:\.[0-9]+)?"
# Not \w: in "答えは25" the number follows a letter; in "H2O" it belongs to one, and in "mol-1" and "m^2" to a unit.
NUMBER = re.compile(
    rf"(?<![A-Za-z0-9_^.])(?<![A-Za-z)\]][-+])(?P<sign>[-+]?)"
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
    lines = text.rstrip().splitlines()
    line = _plain(lines[-1][-MAX_LINE_CHARS:]) if lines else ""
    found = list(NUMBER.finditer(line))
    return _written(found[-1]) if found else ""


def _plain(line: str) -> str:
    """Write the line in ASCII digits and signs."""
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


LAST_LINES = 4

MAX_LAST_CHARS = 1_000

MAX_ANSWER_TOKENS = 40

NUMBER_INSTRUCTIONS = """\
You are given the last lines of a solution. Write the number that it gives as its answer, and nothing else: digits, without \
the unit. If it gives none, write none."""

ASK_TYPED = "Give the final answer of this solution."


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """An answer as text ('' for none), where it comes from, and its value as JSON where an output type was given."""

    text: str = ""
    answered_by: AnswerSource = "none"
    value: Json = None


def find_answer(
    question: Message,
    text: str,
    output_type: "type[Any] | OutputType[Any] | None",
    answer_by: Collection[AnswerSource],
    sampling: Sampling,
    *,
    is_enforced: bool,
    final: str = "",
) -> Program[FinalAnswer]:
    """Find the answer of a rationale.

    `final` is what the tool-call format marks as the answer; `is_enforced` says whether the server can enforce a type.
    """
    line = (last_number(final) or final) if final else last_number(text)
    try:
        if output_type is not None and "typed" in answer_by:
            wanted = output_type if isinstance(output_type, OutputType) else OutputType[Any](output_type)
            found = yield from _typed(wanted, question, text, final, is_enforced=is_enforced)
            if found is not None:
                return found
        if "line" in answer_by and line:
            return FinalAnswer(line, "line")
        if "prompt" in answer_by and text.strip():
            return (yield from _ask_number(final or text, sampling))
    except LimitError as error:
        yield from notify(f"the answer could not be asked for: {error.message}", code="limit", warning=True)
        number = last_number(text)
        return FinalAnswer(number, "line") if "line" in answer_by and number else FinalAnswer()
    return FinalAnswer()


def _typed(
    wanted: OutputType[Any], question: Message, text: str, final: str, *, is_enforced: bool
) -> Program[FinalAnswer | None]:
    """Ask for a value of the type where the server can enforce it; else read it from the end of the text."""
    lines = text.strip().splitlines()
    last = lines[-1] if lines else ""
    try:
        if is_enforced:
            messages = (question, assistant(text), user(ASK_TYPED))
            value = yield from _ask_typed(wanted, messages, (last, last_number(text)))
        else:
            value = wanted.parse(final or last).value
    except (OutputValidationError, RefusalError) as error:
        yield from notify(f"no {wanted.name} could be read: {error.message}", code="answer", warning=True)
        return None
    plain = wanted.dump(value)
    if isinstance(plain, float) and math.isfinite(plain):
        return FinalAnswer(f"{plain:.15g}", "typed", plain)
    return FinalAnswer(plain if isinstance(plain, str) else canonical(plain).decode(), "typed", plain)


def _ask_typed(wanted: OutputType[Any], messages: tuple[Message, ...], fallbacks: tuple[str, ...]) -> Program[Any]:
    """Ask for a value; where the server turns out not to support it, read the first of `fallbacks` that holds one."""
    try:
        return (yield from extract(wanted, messages)).value
    except UnsupportedError as error:
        for text in fallbacks:
            with suppress(OutputValidationError):
                return wanted.parse(text).value
        raise OutputValidationError(error.message) from error


def _ask_number(text: str, sampling: Sampling) -> Program[FinalAnswer]:
    """Ask the model for the number that the last lines give."""
    lines = [line for line in text.strip().splitlines() if line.strip()][-LAST_LINES:]
    shots = (message for line, number in ANSWER_EXAMPLES for message in (user(line), assistant(number)))
    messages = (system(NUMBER_INSTRUCTIONS), *shots, user("\n".join(lines)[-MAX_LAST_CHARS:]))
    sampling = Sampling(sampling.temperature, sampling.top_p, MAX_ANSWER_TOKENS, sampling.seed)
    response = yield from perform(Complete(Request(messages, sampling=sampling, task="extract_number"), HideOutput))
    number = last_number(response.text) if response.finish in ("stop", "cut") else ""
    return FinalAnswer(number, "prompt") if number else FinalAnswer()
