"""Watching a run: what it costs."""
