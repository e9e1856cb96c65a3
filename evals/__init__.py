"""Evaluations on published research corpora: `python -m evals --help`."""
