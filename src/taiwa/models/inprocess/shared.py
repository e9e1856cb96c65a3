"""Models that are opened several times and loaded once."""

import asyncio
from abc import ABC, abstractmethod
from threading import Lock
from typing import Self


class SharedModel(ABC):
    """A model that is released when the last of those that opened it closes it; the next request loads it again."""

    def __init__(self) -> None:
        self._openers = 0
        self._openers_lock = Lock()

    def share(self) -> Self:
        """Count one more opener, which closes it."""
        with self._openers_lock:
            self._openers += 1
        return self

    def close(self) -> None:
        """Release the model, unless another opener still has it."""
        with self._openers_lock:
            self._openers = max(self._openers - 1, 0)
            if self._openers:
                return
        self._release()

    async def aclose(self) -> None:
        """As `close`, in a thread."""
        await asyncio.to_thread(self.close)

    @abstractmethod
    def _release(self) -> None:
        """Free what the model holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
