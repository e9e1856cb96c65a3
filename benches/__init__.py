"""Benchmarks: every figure is compared with a peer or a limit in the same run. `make bench` runs them all."""
