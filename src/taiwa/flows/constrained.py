"""Requests under a constraint that a server may refuse."""

from collections.abc import Callable
from dataclasses import replace

from taiwa.kernel.effects import Complete, Program, Watcher, notify, perform
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Request, Response


def complete_or_downgrade(request: Request, watch: Callable[[], Watcher] | None = None) -> Program[Response]:
    """Complete a request, without its constraint if the server cannot enforce it.

    The caller checks the answer in either case.
    """
    try:
        return (yield from perform(Complete(request, watch)))
    except UnsupportedError as error:
        if request.constraint is None or error.capability not in {"json_schema", "regex", "grammar"}:
            raise
        yield from notify(f"the answer is checked against its schema afterwards: {error.message}", code="downgrade")
        return (yield from perform(Complete(replace(request, constraint=None), watch)))
