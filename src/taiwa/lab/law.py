"""A law: what it is about, on which examples it is tried, and what must hold. The only place that starts Hypothesis."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

from taiwa.kernel.errors import TaiwaError
from taiwa.kernel.records import Json, canonical, value

__all__ = ["BrokenLawError", "Law", "LawResult", "demand", "tried", "written"]

FAULTS = (
    ArithmeticError, AssertionError, AttributeError, HypothesisException, LookupError, NameError, OSError, RuntimeError,
    TaiwaError, TypeError, ValueError,
)  # fmt: skip
"""What a reducer or an app may raise when it is asked for more than it can do; that breaks a law like any other answer."""
EVERY_CHECK = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
LONGEST = 2_000


class BrokenLawError(AssertionError):
    """A law does not hold; the message says for what."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law of a subject. `holds` takes the arguments that `examples` gives, and raises where it does not hold."""

    name: str
    subject: str
    examples: SearchStrategy[tuple[Any, ...]]
    holds: Callable[..., None]


@value
class LawResult:
    """How a law fared: on how many examples it was tried, and the smallest one found that breaks it."""

    law: str
    subject: str
    ok: bool
    examples: int
    counterexample: str = ""


def demand(left: object, right: object, what: str) -> None:
    """See that two things are the same.

    Raises:
        BrokenLawError: they differ.
    """
    if left != right:
        raise BrokenLawError(f"{what}: {left} is not {right}")


def written(item: Json) -> str:
    """JSON as canonical text: in it 1, 1.0 and true differ, and the order of keys makes no difference."""
    return canonical(item).decode()


def tried(law: Law, examples: int, seed: int) -> LawResult:
    """Try a law on so many examples; the same seed gives the same ones."""
    count, broken = 0, ""
    names = tuple(signature(law.holds).parameters)

    @seeded(seed)
    @settings(
        max_examples=examples, database=None, deadline=None, derandomize=False, verbosity=Verbosity.quiet,
        print_blob=False, report_multiple_bugs=False, suppress_health_check=EVERY_CHECK,
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(law.examples)
    def trial(arguments: tuple[Any, ...]) -> None:
        nonlocal count, broken
        count += not broken
        try:
            law.holds(*arguments)
        except FAULTS as error:
            said = error if isinstance(error, BrokenLawError) else f"{type(error).__name__}: {error}"
            drawn = ", ".join(f"{name}={part!r}" for name, part in zip(names, arguments, strict=True))
            broken = f"{drawn}; {said}"
            raise

    try:
        trial()
    except FAULTS as error:
        broken = broken or f"{type(error).__name__}: {error}"
    return LawResult(law.name, law.subject, not broken, count, broken[:LONGEST])
