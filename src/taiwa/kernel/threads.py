"""Calls that block, in threads that the end of the program does not wait for."""

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

R = TypeVar("R")


def start_in_thread(call: Callable[[], R], name: str) -> "Future[R]":
    """Start a call in a daemon thread of its own, with the context of the caller; the future gets its result or error.

    The threads of `concurrent.futures` and `asyncio.to_thread` would keep the program from ending where a call never ends.
    """
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()  # a caller that is cancelled does not wait, and leaves the call to its end

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
    return future
