"""Several answers to one question, and the one that most of them agree on."""

from collections.abc import Callable
from typing import Generic, TypeVar

from taiwa.kernel.effects import Program, gather
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.records import value

__all__ = ["Vote", "vote"]

A = TypeVar("A")


@value(tag="vote")
class Vote(Generic[A]):
    """The winner, how many voted for it, and every answer in order; `spoilt` counts those that could not be read."""

    winner: A
    count: int
    ballots: tuple[A, ...]
    spoilt: int = 0


def vote(ballot: Callable[[int], Program[A]], n: int, *, by: Callable[[A], object] | None = None) -> Program[Vote[A]]:
    """Run `ballot(0)` … `ballot(n - 1)` side by side and take the majority; of equal counts, the one that came first.

    `by` names what must agree, for instance only an answer's number. The number given to a ballot may become its seed.

    Raises (when run):
        InputError: n is not positive.
        ShapeError: no ballot could be read; it is the error of the first.
    """
    if n < 1:
        raise InputError(f"a vote needs at least one ballot, not {n}")
    outcomes = yield from gather(_cast(ballot(index)) for index in range(n))
    ballots = tuple(outcome[0] for outcome in outcomes if isinstance(outcome, tuple))
    errors = [outcome for outcome in outcomes if isinstance(outcome, OutputValidationError)]
    if not ballots:
        raise errors[0]
    groups = _groups(ballots, by)
    most = max(groups, key=len)
    return Vote(most[0], len(most), ballots, len(errors))


def _cast(ballot: Program[A]) -> Program[tuple[A] | OutputValidationError]:
    """A ballot that cannot be read is spoilt; any other failure ends the vote."""
    try:
        return ((yield from ballot),)
    except OutputValidationError as error:
        return error


def _groups(ballots: tuple[A, ...], by: Callable[[A], object] | None) -> list[list[A]]:
    """Gather equal ballots, in the order of their first; compared by `==`, because not every value can be hashed."""
    keys: list[object] = []
    groups: list[list[A]] = []
    for ballot in ballots:
        key = ballot if by is None else by(ballot)
        if key in keys:
            groups[keys.index(key)].append(ballot)
        else:
            keys.append(key)
            groups.append([ballot])
    return groups
