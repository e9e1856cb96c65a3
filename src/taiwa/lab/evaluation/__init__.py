"""Evaluations: items under settings, each measured once, kept row by row in a file that a killed run goes on with."""
