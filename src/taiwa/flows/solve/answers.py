"""The answer that a finished rationale states: typed, read from its last line, or asked for once more.

The last is the step of MultiTool-CoT (Inaba et al., ACL 2023): a second prompt with worked examples reads the number from the
end of the rationale. The words of ours are our own.
"""

import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from taiwa.flows.extract import extract, plain_json
from taiwa.flows.solve.examples import EXTRACTIONS
from taiwa.flows.solve.numbers import last_number
from taiwa.flows.solve.rationale import AnswerSource
from taiwa.kernel.effects import Complete, HideOutput, Program, notify, perform
from taiwa.kernel.errors import LimitError, OutputValidationError, RefusalError, UnsupportedError
from taiwa.kernel.messages import Message, Request, Sampling, assistant, system, user
from taiwa.kernel.records import Json, canonical
from taiwa.structured import OutputType

__all__ = ["NO_ANSWER", "Finding", "find_answer"]


LAST_LINES = 4

LONGEST_LINES = 1_000

LONGEST_ANSWER = 40

NAMED = """\
You are given the last lines of a solution. Write the number that it gives as its answer, and nothing else: digits, without \
the unit. If it gives none, write none."""

FINAL = "Give the final answer of this solution."


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """An answer as text ('' for none), where it comes from, and its value as JSON where a type was asked for."""

    text: str = ""
    by: AnswerSource = "none"
    value: Json = None


NO_ANSWER = FinalAnswer()


@dataclass(frozen=True, slots=True)
class Finding:
    """How an answer is looked for: its type, the ways that may be tried, and how tokens are drawn where it is asked for.

    `held` says whether the server can be held to a type.
    """

    shape: OutputType[Any] | None
    ways: Collection[AnswerSource]
    sampling: Sampling
    held: bool


def find_answer(question: Message, text: str, finding: Finding, final: str = "") -> Program[FinalAnswer]:
    """Find the answer of a rationale; `final` is what a protocol marks as the answer."""
    try:
        if finding.shape is not None and "typed" in finding.ways:
            found = yield from _typed(finding.shape, question, text, None if finding.held else final)
            if found is not None:
                return found
        if "line" in finding.ways and (line := (last_number(final) or final) if final else last_number(text)):
            return FinalAnswer(line, "line")
        if "prompt" in finding.ways and text.strip():
            return (yield from _asked(final or text, finding.sampling))
    except LimitError as error:
        yield from notify(f"the answer could not be asked for: {error.message}", code="limit", warning=True)
        return FinalAnswer(last_number(text), "line") if "line" in finding.ways and last_number(text) else NO_ANSWER
    return NO_ANSWER


def _typed(shape: OutputType[Any], question: Message, text: str, final: str | None) -> Program[FinalAnswer | None]:
    """A value of the type: read from the end of the text, or asked for where the server can be held to it (no `final`)."""
    lines = text.strip().splitlines()
    near = final or (lines[-1] if lines else "")
    try:
        if final is not None:
            value = shape.parse(near).value
        else:
            said = (question, assistant(text), user(FINAL))
            value = yield from _asked_typed(shape, said, (near, last_number(text)))
    except (OutputValidationError, RefusalError) as error:
        yield from notify(f"no {shape.name} could be read: {error.message}", code="answer", warning=True)
        return None
    plain = plain_json(shape, value)
    return FinalAnswer(_worded(plain), "typed", plain)


def _asked_typed(shape: OutputType[Any], said: tuple[Message, ...], near: tuple[str, ...]) -> Program[Any]:
    """The value that the model writes; where it turns out that it writes none, the first that the text has `near` its end."""
    try:
        return (yield from extract(shape, said)).value
    except UnsupportedError as error:
        for words in near:
            with suppress(OutputValidationError):
                return shape.parse(words).value
        raise OutputValidationError(error.message) from error


def _worded(plain: Json) -> str:
    if isinstance(plain, float) and math.isfinite(plain):
        return f"{plain:.15g}"
    return plain if isinstance(plain, str) else canonical(plain).decode()


def _asked(text: str, sampling: Sampling) -> Program[FinalAnswer]:
    """The number that the model reads from the last lines."""
    lines = [line for line in text.strip().splitlines() if line.strip()][-LAST_LINES:]
    shots = (message for line, number in EXTRACTIONS for message in (user(line), assistant(number)))
    messages = (system(NAMED), *shots, user("\n".join(lines)[-LONGEST_LINES:]))
    drawn = Sampling(sampling.temperature, sampling.top_p, LONGEST_ANSWER, sampling.seed)
    response = yield from perform(Complete(Request(messages, sampling=drawn, task="extract_number"), HideOutput))
    number = last_number(response.text) if response.finish in ("stop", "cut") else ""
    return FinalAnswer(number, "prompt") if number else NO_ANSWER
