"""Benchmarks: every number is a ratio to a peer or a limit in the same run. `make bench` runs them all."""
