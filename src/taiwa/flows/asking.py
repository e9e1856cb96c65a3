"""Asking a model under a constraint that its server may turn out not to take, and what a program would ask first."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from taiwa.kernel.effects import Abilities, Complete, Program, Watcher, perform, tell
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.values import Ability, Request, Response

__all__ = ["asked", "first_request"]


def first_request(program: Program[Any], abilities: frozenset[Ability]) -> Request:
    """Give the request that a program sends first to a model with these abilities; nothing is sent.

    Raises:
        TaiwaError: as the program before its first request.
    """
    answer: object = None
    while True:
        effect = program.send(answer)
        if isinstance(effect, Complete):
            program.close()
            return effect.request
        answer = abilities if isinstance(effect, Abilities) else None


def asked(request: Request, watch: Callable[[], Watcher] | None = None) -> Program[Response]:
    """Ask; where the server cannot enforce the schema, ask without it and say so: the answer is checked all the same."""
    try:
        return (yield from perform(Complete(request, watch)))
    except UnsupportedError as error:
        if request.constraint is None or error.ability not in {"json_schema", "regex", "grammar"}:
            raise
        yield from tell(f"the form of the answer is checked afterwards: {error.message}", code="downgrade")
        return (yield from perform(Complete(replace(request, constraint=None), watch)))
