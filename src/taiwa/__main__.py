"""`python -m taiwa`."""

from taiwa.cli import main

main()
