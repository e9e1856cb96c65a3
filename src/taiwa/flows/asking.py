"""Asking a model under a constraint that its server may turn out not to take."""

from collections.abc import Callable
from dataclasses import replace

from taiwa.kernel.effects import Complete, Program, Watcher, perform, tell
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.values import Request, Response

__all__ = ["asked"]


def asked(request: Request, watch: Callable[[], Watcher] | None = None) -> Program[Response]:
    """Ask; where the server cannot enforce the schema, ask without it and say so: the answer is checked all the same."""
    try:
        return (yield from perform(Complete(request, watch)))
    except UnsupportedError as error:
        if request.constraint is None or error.ability not in {"json_schema", "regex", "grammar"}:
            raise
        yield from tell(f"the form of the answer is checked afterwards: {error.message}", code="downgrade")
        return (yield from perform(Complete(replace(request, constraint=None), watch)))
