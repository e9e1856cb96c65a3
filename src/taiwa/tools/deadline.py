"""A deadline for what runs in this process."""

from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from types import TracebackType
from typing import Generic, TypeVar

from taiwa.kernel.errors import ToolError

__all__ = ["in_time"]

R = TypeVar("R")


def in_time(act: Callable[[], R], seconds: float, name: str) -> R:
    """Do something in a thread of its own and wait so long.

    A thread cannot be killed: what is late goes on unseen, and what never lets another thread run is not even late.

    Raises:
        ToolError: `timeout`; or what the act raised.
    """
    outcome: _Outcome[R] = _Outcome(act)
    Thread(target=copy_context().run, args=(outcome.run,), name=f"tool {name}", daemon=True).start()
    if not outcome.done.wait(seconds):
        raise ToolError(f"{name} timed out", code="timeout")
    return outcome.given(name)


class _Outcome(Generic[R]):
    """What an act gave or raised, for another thread: kept in a `with` block, because it may raise anything."""

    def __init__(self, act: Callable[[], R]) -> None:
        self.done = Event()
        self._act = act
        self._given: list[R] = []
        self._raised: BaseException | None = None

    def run(self) -> None:
        with self:
            self._given.append(self._act())

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._raised = error
        self.done.set()
        return True

    def given(self, name: str) -> R:
        if isinstance(self._raised, SystemExit):
            raise ToolError(f"{name} failed", code="crashed") from self._raised
        if self._raised is not None:
            raise self._raised
        return self._given[0]
