"""Clarifying questions, query rewriting, retrieval and answers on recorded dialogues."""
