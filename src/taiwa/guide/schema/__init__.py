"""JSON Schemas read for decoding: what can be enforced, said in the words that the engine enforces exactly."""

from taiwa.guide.schema.rewrite import Rewritten, rewrite

__all__ = ["Rewritten", "rewrite"]
