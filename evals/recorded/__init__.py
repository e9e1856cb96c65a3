"""Recorded tool-call texts of real models, replayed as streams."""
