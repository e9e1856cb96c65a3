"""Modules that take long to import, for tests that are collected by every worker and run by one."""

from importlib import import_module
from typing import Any

__all__ = ["Lazily"]


class Lazily:
    """A module that is imported when the first test uses something of it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> Any:
        if part.startswith("_"):  # what collecting asks of everything: __wrapped__, _mock_name
            raise AttributeError(part)
        return getattr(import_module(self._name), part)
