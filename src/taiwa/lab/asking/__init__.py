"""Measuring the dialogue before retrieval: when to ask back, what to look up, what is found, and what is answered from it."""
