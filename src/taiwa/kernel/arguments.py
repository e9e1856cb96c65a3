"""Checks of arguments that a caller without a type checker gets wrong: each fails at once, with a sentence."""

from collections.abc import Sequence, Set
from typing import Any, cast

from taiwa.kernel.errors import InputError


def check_argument(name: str, given: object, due: Any, what: str) -> None:  # noqa: ANN401  (what isinstance takes)
    """Check that an argument is an instance of a type; `what` says in words what is due.

    Raises:
        InputError: it is not.
    """
    kinds: tuple[object, ...] = cast("tuple[object, ...]", due) if isinstance(due, tuple) else (due,)
    if not isinstance(given, due) or (isinstance(given, bool) and int in kinds):
        raise InputError(f"{name} must be {what}, got {describe(given)}")


def check_list(name: str, given: object, due: Any, what: str) -> None:  # noqa: ANN401  (what isinstance takes)
    """Check that an argument is a list or the like of instances of a type; a text is not the list of its characters.

    Raises:
        InputError: it is not.
    """
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, Set)):
        raise InputError(f"{name} must be a list of {what}, got {describe(given)}; write {name}=[…]")
    for each in cast("Sequence[object]", given):
        check_argument(f"each of {name}", each, due, what)


def describe(argument: object) -> str:
    """Name an argument by what it is: `a str`, `the class Order`, `the function ask`."""
    name = getattr(argument, "__name__", "")
    if isinstance(argument, type):
        return f"the class {name}"
    if callable(argument) and name:
        return f"the function {name}"
    kind = type(argument).__name__
    return "None" if argument is None else f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"
