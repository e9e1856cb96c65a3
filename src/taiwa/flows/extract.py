"""A typed answer: `[Complete constraint=shape] → shape.read → value | diagnostics → [Complete] …`.

The answer is validated even where the server promised its form: such promises are not always kept.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from taiwa.kernel.effects import Abilities, Complete, Hidden, Program, perform
from taiwa.kernel.errors import RefusalError, ShapeError
from taiwa.kernel.records import value
from taiwa.kernel.values import JsonSchema, Message, Request, Response, Sampling, assistant, system, user
from taiwa.shape import Shape

__all__ = ["Attempt", "Extracted", "extract"]

T = TypeVar("T")
WANTED = """\
Reply only with JSON of this type, and nothing else:

{type}"""
REPAIR = """\
Your reply does not have the wanted type:
{faults}
Reply only with the corrected JSON, whole, and nothing else."""
SHOWN_FAULTS = 12
BROKEN_OFF = {"length": "was cut off at the length limit", "interrupted": "was interrupted", "cut": "was cut off"}


@value
class Attempt:
    """One answer as the model wrote it, and what is wrong with it, one line per fault; none means that it was taken."""

    text: str
    diagnostics: tuple[str, ...] = ()


@value
class Extracted(Generic[T]):
    """A value of the wanted type and the attempts that it took, the last of them the one that was read."""

    value: T
    attempts: tuple[Attempt, ...]


def extract(
    shape: Shape[T], said: str | Sequence[Message], *, repairs: int = 1, sampling: Sampling = Sampling()
) -> Program[Extracted[T]]:
    """Ask for a value of a type.

    What cannot be read without guessing is sent back with its faults at most `repairs` times. It is not sent back when the answer was broken
    off, because the next one would be, nor when a repair has the same faults again.

    Raises (when run):
        ShapeError: no attempt could be read; it holds the last text, its diagnostics and all attempts.
        RefusalError: the model refused to answer.
    """
    able = "json_schema" in (yield from perform(Abilities()))
    constraint = JsonSchema(shape.schema(), shape.name) if able else None
    messages = _prompt(shape, (user(said),) if isinstance(said, str) else tuple(said))
    request = asked = Request(messages, constraint=constraint, sampling=sampling)
    attempts: tuple[Attempt, ...] = ()
    while True:
        response = yield from perform(Complete(request, Hidden))
        try:
            found = _read(shape, asked, response)
        except ShapeError as error:
            faults = error.diagnostics or (error.message,)
            stuck = response.finish in BROKEN_OFF or any(set(faults) == set(each.diagnostics) for each in attempts)
            attempts = (*attempts, Attempt(response.text, faults))
            if stuck or len(attempts) > repairs:
                raise _failure(shape, attempts) from None
            request = _repair(asked, attempts[-1])
        else:
            return Extracted(found, (*attempts, Attempt(response.text)))


def _prompt(shape: Shape[T], messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Put the type into the one system message, where a prefix cache keeps it."""
    wanted = WANTED.format(type=shape.render())
    if messages and messages[0].role == "system":
        return system(f"{messages[0].text.rstrip()}\n\n{wanted}"), *messages[1:]
    return system(wanted), *messages


def _read(shape: Shape[T], asked: Request, response: Response) -> T:
    if response.finish == "refusal":
        raise RefusalError("the model refused to answer", request=asked.digest)
    broken_off = BROKEN_OFF.get(response.finish)
    if broken_off is not None:
        raise ShapeError(f"the answer {broken_off}", text=response.text)
    reading = shape.read(response.text)
    if reading.guessed or not reading.complete:
        codes = ", ".join(f"{fix.code} at character {fix.position}" for fix in reading.fixes if fix.level == "guess")
        raise ShapeError(f"readable only by a guess ({codes or 'it ends early'})", text=response.text)
    return reading.value


def _repair(asked: Request, last: Attempt) -> Request:
    """Ask again: earlier attempts are dropped, so that the cost of a round does not grow."""
    lines = [f"{number}. {fault}" for number, fault in enumerate(last.diagnostics[:SHOWN_FAULTS], 1)]
    more = len(last.diagnostics) - SHOWN_FAULTS
    faults = "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])
    return replace(asked, messages=(*asked.messages, assistant(last.text), user(REPAIR.format(faults=faults))))


def _failure(shape: Shape[T], attempts: tuple[Attempt, ...]) -> ShapeError:
    last = attempts[-1]
    tried = f"{len(attempts)} attempt{'s' if len(attempts) > 1 else ''}"
    return ShapeError(
        f"no {shape.name} could be read in {tried}: {last.diagnostics[0]}",
        text=last.text,
        diagnostics=last.diagnostics,
        attempts=tuple(each.text for each in attempts),
    )
