"""Reasoning with tools: the model calls tools in its chain of thought and continues after their results."""
