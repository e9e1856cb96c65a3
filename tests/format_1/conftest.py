"""The command line in a home of its own, as in the tests of commands."""

from tests.cli.conftest import place, taiwa

__all__ = ["place", "taiwa"]
