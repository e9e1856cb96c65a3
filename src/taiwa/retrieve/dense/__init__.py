"""Passages found by meaning, beside those found by words, where a check on a person's own questions shows a gain."""

from taiwa.retrieve.dense.check import gain_of
from taiwa.retrieve.dense.embedder import Embedder, Vectors
from taiwa.retrieve.dense.fusing import Fused, reciprocal_ranks

__all__ = ["Embedder", "Fused", "Vectors", "gain_of", "reciprocal_ranks"]
