"""A lenient JSON parser for answers of language models."""
