"""The answer that a finished rationale states: typed, read from its last line, or asked for in a second request.

The second request is that of MultiTool-CoT (Inaba et al., ACL 2023): a prompt with worked examples reads the number from the
end of the rationale. Its text is our own.
"""

import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from taiwa.flows.extract import extract
from taiwa.flows.solve.examples import ANSWER_EXAMPLES
from taiwa.flows.solve.numbers import last_number
from taiwa.flows.solve.rationale import AnswerSource
from taiwa.kernel.effects import Complete, HideOutput, Program, notify, perform
from taiwa.kernel.errors import LimitError, OutputValidationError, RefusalError, UnsupportedError
from taiwa.kernel.messages import Message, Request, Sampling, assistant, system, user
from taiwa.kernel.records import Json, canonical
from taiwa.structured import OutputType

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
