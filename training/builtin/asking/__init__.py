"""Samples of dialogues before a search: clarity scores, clarifying questions and standalone questions."""

from training.builtin.asking.shares import SHARES

__all__ = ["SHARES"]
