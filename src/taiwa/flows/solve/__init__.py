"""Reasoning interrupted by tools: the model calls a tool in its chain of thought, and goes on behind the result."""
