"""A law, its result, and one check with Hypothesis."""

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

LAW_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, HypothesisException, LookupError, NameError, OSError, RuntimeError,
    TaiwaError, TypeError, ValueError,
)  # fmt: skip
"""Errors that a reducer or an app may raise; each of them breaks the law that was being checked."""
EVERY_CHECK = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
MAX_COUNTEREXAMPLE = 2_000


class BrokenLawError(AssertionError):
    """A law does not hold; the message names the property that failed."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law of a subject. `holds` is called with each tuple of arguments from `examples` and raises if the law is broken."""

    name: str
    subject: str
    examples: SearchStrategy[tuple[Any, ...]]
    holds: Callable[..., None]


@value
class LawResult:
    """The result of checking a law: the number of examples tried, and the smallest counterexample found."""

    law: str
    subject: str
    ok: bool
    examples: int
    counterexample: str = ""


def require_equal(left: object, right: object, what: str) -> None:
    """Check that two values are equal.

    Raises:
        BrokenLawError: the values differ.
    """
    if left != right:
        raise BrokenLawError(f"{what}: expected {right}, got {left}")


def canonical_text(item: Json) -> str:
    """Return JSON as canonical text, in which 1, 1.0 and true differ and the order of keys does not matter."""
    return canonical(item).decode()


def check_law(law: Law, examples: int, seed: int) -> LawResult:
    """Check a law on at most `examples` examples; the same seed generates the same examples."""
    count, broken = 0, ""
    names = tuple(signature(law.holds).parameters)

    @seeded(seed)
    @settings(
        max_examples=examples, database=None, deadline=None, derandomize=False, verbosity=Verbosity.quiet,
        print_blob=False, report_multiple_bugs=False, suppress_health_check=EVERY_CHECK,
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(law.examples)
    def check(arguments: tuple[Any, ...]) -> None:
        nonlocal count, broken
        count += not broken
        try:
            law.holds(*arguments)
        except LAW_ERRORS as error:
            reason = error if isinstance(error, BrokenLawError) else f"{type(error).__name__}: {error}"
            drawn = ", ".join(f"{name}={part!r}" for name, part in zip(names, arguments, strict=True))
            broken = f"{drawn}; {reason}"
            raise

    try:
        check()
    except LAW_ERRORS as error:
        broken = broken or f"{type(error).__name__}: {error}"
    return LawResult(law.name, law.subject, not broken, count, broken[:MAX_COUNTEREXAMPLE])
