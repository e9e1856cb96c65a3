"""Evaluations on real models, beside the obvious ways to do the same without taiwa."""
