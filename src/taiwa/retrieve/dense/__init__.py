"""Passages found by meaning, beside those found by words, where a check on a person's own questions shows a gain."""

from taiwa.retrieve.dense.check import Asked, gain_of, own_sentences
from taiwa.retrieve.dense.embedder import Embedder, Vectors, unit_rows
from taiwa.retrieve.dense.fusing import Fused
from taiwa.retrieve.ranks import reciprocal_ranks

__all__ = ["Asked", "Embedder", "Fused", "Vectors", "gain_of", "own_sentences", "reciprocal_ranks", "unit_rows"]
