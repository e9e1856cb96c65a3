"""Guides in plain Python, small enough to be read: for learning, for explaining, and to hold the fast one against."""
