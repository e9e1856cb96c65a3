"""Ctrl-C while a model answers."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from taiwa.kernel.session import Event
from taiwa.kernel.values import TextDelta

__all__ = ["Stopper"]

AGAIN = 0.02
"""Seconds until it is looked again whether the program is within the answer."""


class Stopper:
    """Ends an answer where it is, so that what was said and paid for is kept.

    A key may be pressed at any moment: while a word is printed, or in the middle of a transaction of the store. The
    interrupt is raised only where the driver of the turn expects it, within the stream of the model; pressed elsewhere,
    it waits for the next word of the answer, or until the program waits for one.
    """

    def __init__(self) -> None:
        self.pressed = False
        """Whether the key was pressed during the last turn."""
        self._waiting = False

    def watch(self, event: Event) -> None:
        """Observe a turn, and end the answer if the key was pressed outside its stream."""
        if self._waiting and isinstance(event, TextDelta):
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def listening(self, stream: Callable[..., object]) -> Generator[None]:
        """Take the key until the turn ends; `stream` is the function whose frames belong to the answer.

        Only the main thread of a program is told of keys; in any other one nothing is taken.
        """
        self.pressed = self._waiting = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        code = getattr(stream, "__code__", None)

        def press(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT:
                self.pressed = self._waiting = True
            if not self._waiting:
                return
            while frame is not None:
                if frame.f_code is code:
                    self._waiting = False
                    raise KeyboardInterrupt
                frame = frame.f_back
            signal.setitimer(signal.ITIMER_REAL, AGAIN)  # the model may say no further word

        before = [(number, signal.signal(number, press)) for number in (signal.SIGINT, signal.SIGALRM)]
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before:
                signal.signal(number, handler)
