"""The drivers of the flows, for the program of zero-shot questions."""

from tests.flows.conftest import drive

__all__ = ["drive"]
