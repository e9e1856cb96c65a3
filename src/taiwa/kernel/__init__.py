"""Values, effects, programs and the two runtimes. Standard library only."""
