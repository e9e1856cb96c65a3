"""Dialogues before something is looked up: how clear a wish is, what to ask back, and the question that stands alone."""

from training.builtin.asking.shares import SHARES

__all__ = ["SHARES"]
