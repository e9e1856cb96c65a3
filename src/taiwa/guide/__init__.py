"""Constraints compiled for a vocabulary, and decoding under them."""

from taiwa.guide.guide import Choice, Guide, Logits, State, compile, decode  # noqa: A004  (called guide.compile)

__all__ = ["Choice", "Guide", "Logits", "State", "compile", "decode"]
