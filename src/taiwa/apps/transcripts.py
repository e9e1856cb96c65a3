"""Worked examples as the files of MultiTool-CoT (Inaba et al., ACL 2023) hold them: `Q:` and `A:`, with `<< Tool >>` in the answers.

What stands before the first question, in such a file the instructions, is left out: ours are written by the protocol. An
example keeps its text as it was, for the protocol in which it was written, and is read as calls for every other one.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from taiwa.apps.faults import Fault, quoted
from taiwa.flows.inline import Inline
from taiwa.flows.numbers import last_number
from taiwa.flows.protocol import Call, Event, Result, decode
from taiwa.flows.worked import ResultOf, Step, Worked, literal
from taiwa.kernel.errors import InputError, TaiwaError

__all__ = ["differing", "read_transcripts"]

QUESTION = re.compile(r"[QＱ][:：]")
ANSWER = re.compile(r"[AＡ][:：]")
OPENED = re.compile(r"<<(?![^<>\n]*>>)")
BEHIND = re.compile(r"[\s:：=＝]*\Z")
CLOSE_ENOUGH = 0.005
NAMES = tuple(name for _, name in Inline().aliases)


@dataclass(slots=True)
class _Block:
    """A question with its answer, and their lines in the file."""

    line: int
    question: list[str] = field(default_factory=list[str])
    answer: list[str] = field(default_factory=list[str])
    answered: int = 0


def read_transcripts(text: str, where: str) -> tuple[Worked, ...]:
    """Read a text of questions and answers; each example is called by the line of its question.

    A last question whose answer is empty is where a prompt puts its own, and is left out.

    Raises:
        InputError: a question or an answer is missing, or a call is not closed: `where:line: what; mend`.
    """
    blocks = list(_blocks(text, where))
    if blocks and not _joined(blocks[-1].answer):
        blocks.pop()
    made = tuple(_worked(block, where) for block in blocks)
    if not made:
        raise InputError(f"{where}: there is no worked example in it; write `Q: …` and below it `A: …`")
    return made


def differing(examples: Iterable[Worked], result_of: ResultOf) -> Iterator[tuple[Worked, Step, str]]:
    """Find recorded results that are not what the tools give, with that; half a hundredth more or less is the same.

    An example that contradicts its tool teaches a model not to trust it.
    """
    for worked in examples:
        for part in worked.parts:
            if isinstance(part, str) or not part.result:
                continue
            try:
                given = result_of(part.tool, part.input)
            except TaiwaError as error:
                given = f"error: {error.message}"
            if not _agree(part.result, given):
                yield worked, part, given


def _blocks(text: str, where: str) -> Iterator[_Block]:
    block: _Block | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if found := QUESTION.match(line):
            if block is not None:
                yield _checked(block, where)
            block = _Block(number, [line[found.end() :].removeprefix(" ")])
        elif found := ANSWER.match(line):
            if block is None or block.answered:
                raise _fault(where, number, "an answer without its question", "begin the question with `Q:`")
            block.answered = number
            block.answer.append(line[found.end() :].removeprefix(" "))
        elif block is not None:
            (block.answer if block.answered else block.question).append(line)
    if block is not None:
        yield _checked(block, where, last=True)


def _checked(block: _Block, where: str, *, last: bool = False) -> _Block:
    if not _joined(block.question):
        raise _fault(where, block.line, "an empty question", "write it behind `Q:`")
    if not _joined(block.answer) and not last:
        raise _fault(where, block.line, "a question without its answer", "write the answer below it, behind `A:`")
    for number, line in enumerate(block.answer, block.answered):
        if found := OPENED.search(line):
            words = quoted(line[found.start() :])
            raise _fault(where, number, f"a call that is not closed: {words}", "write it as << Calculator >>")
    return block


def _worked(block: _Block, where: str) -> Worked:
    text = _joined(block.answer)
    parts = _parts(decode(text, Inline(), NAMES))
    if not any(isinstance(part, str) and part.strip() for part in parts):
        raise _fault(where, block.answered, "an answer without a word", "end it with a line that states the number")
    return Worked(str(block.line), "", _joined(block.question), parts, last_number(text), Inline().name, text)


def _parts(events: Iterable[Event]) -> tuple[str | Step, ...]:
    """Words and calls: the input of a call is taken out of the words before it, its result of those behind."""
    parts: list[str | Step] = []
    for event in events:
        last = parts[-1] if parts else ""
        if isinstance(event, Call):
            if isinstance(last, str) and parts:
                parts[-1] = _without(last, event.input)
            parts.append(Step(event.name, event.input))
        elif isinstance(event, Result):
            parts[-1:] = _with_result(last, event.text)
        elif isinstance(last, str) and parts:
            parts[-1] = last + event.text
        elif isinstance(last, Step) and not last.result:
            # The original predicts a reaction on the line below its call.
            words = event.text.lstrip()
            parts[-1:] = _with_result(last, words if "\n" in words else f"{words}\n")
        else:
            parts.append(event.text)
    return tuple(literal(part) if isinstance(part, str) else part for part in parts if part)


def _with_result(step: str | Step, text: str) -> list[str | Step]:
    line, end, rest = text.partition("\n")
    if isinstance(step, str) or not line.strip():
        return [step]
    return [Step(step.tool, step.input, line.strip()), end + rest]


def _without(words: str, given: str) -> str:
    """Words without the input that ends them: on the last line, or as the last two lines."""
    head, newline, line = words.rstrip("\n").rpartition("\n")
    at = line.rfind(given)
    if given and at >= 0 and BEHIND.match(line, at + len(given)):
        return f"{head}{newline}{line[:at]}"
    if " -> " in given and line.strip() and head:
        above, newline, _ = head.rpartition("\n")
        return f"{above}{newline}"
    return words


def _joined(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _agree(recorded: str, given: str) -> bool:
    """Whether two results say the same; the terms of an equation may stand in any order."""
    one, other = (sorted(re.findall(r"[^\s+,→⟶>-]+|-(?=\d)[^\s,]+", text)) for text in (recorded, given))
    return len(one) == len(other) and all(_close(*pair) for pair in zip(one, other, strict=True))


def _close(one: str, other: str) -> bool:
    try:
        return abs(float(one) - float(other)) <= CLOSE_ENOUGH * abs(float(other))
    except ValueError:
        return one == other


def _fault(where: str, line: int, message: str, mend: str) -> InputError:
    return InputError(Fault(line, 1, message, mend).told(where))
