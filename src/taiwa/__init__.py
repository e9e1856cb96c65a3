"""Conversations with language models that a program can rely on."""
