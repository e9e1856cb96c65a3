"""Evaluations: rows, reports and statistics, and four evaluations of a user's own questions."""
