"""Majority vote over several answers to one question (self-consistency, Wang et al. 2023)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from taiwa.kernel.effects import Program, gather
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.records import value

A = TypeVar("A")


@value(tag="vote")
class Vote(Generic[A]):
    """The most frequent answer, its count, all answers in order, and how many programs `failed` with an invalid answer."""

    winner: A
    count: int
    answers: tuple[A, ...]
    failed: int = 0


def vote(program: Callable[[int], Program[A]], n: int, *, by: Callable[[A], object] | None = None) -> Program[Vote[A]]:
    """Run `program(0)` … `program(n - 1)` in parallel and take the majority; of equal counts, the answer that is first.

    `by` returns what must be equal, such as only the number of an answer. The argument of `program` may serve as its seed.

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
    keys: list[object] = []  # compared by `==`, because not every value can be hashed
    groups: list[list[A]] = []
    for answer in answers:
        key = answer if by is None else by(answer)
        if key in keys:
            groups[keys.index(key)].append(answer)
        else:
            keys.append(key)
            groups.append([answer])
    most = max(groups, key=len)
    return Vote(most[0], len(most), answers, len(errors))


def _answer(program: Program[A]) -> Program[tuple[A] | OutputValidationError]:
    """Return an invalid answer as its error; any other error ends the vote."""
    try:
        return ((yield from program),)
    except OutputValidationError as error:
        return error
