"""The command line. Commands are imported when they are used, so that `taiwa --help` is quick."""

from taiwa.cli.main import main

__all__ = ["main"]
