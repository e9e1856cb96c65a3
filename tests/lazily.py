"""Deferred imports of slow modules, for tests that every worker collects and one runs."""

from importlib import import_module
from typing import Any

__all__ = ["Lazily"]


class Lazily:
    """A module that is imported at the first attribute access."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> Any:
        if part.startswith("_"):  # what collection asks of every object: __wrapped__, _mock_name
            raise AttributeError(part)
        return getattr(import_module(self._name), part)
