"""Commands that are run in this process, in a home where nothing of the user's is read or written."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from taiwa.cli.main import BAD_INPUT, cli, code_of
from taiwa.cli.output import print_notice


@contextmanager
def at_home(folder: Path) -> Generator[None]:
    """Use an empty home: settings, keys and conversations of the user are neither read nor written, and nothing is asked."""
    before, stdin = dict(os.environ), sys.stdin
    for name in [name for name in os.environ if name.startswith("TAIWA_") and name != "TAIWA_LANG"]:
        del os.environ[name]
    store = str(folder / "demo.db")
    os.environ |= {"XDG_CONFIG_HOME": str(folder), "TAIWA_STORE": store, "TAIWA_MODEL": "builtin"}
    try:
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            sys.stdin = nothing
            yield
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ |= before


def run_command(arguments: Sequence[str]) -> int:
    """Run a command in this process; return its exit code."""
    from taiwa.kernel.errors import TaiwaError

    try:
        code = cli.main(list(arguments), "taiwa", standalone_mode=False)
    except (TaiwaError, click.ClickException) as error:
        code = code_of(error) if isinstance(error, TaiwaError) else BAD_INPUT
        print_notice(f"taiwa: {error.message}", "yellow")
    return code if isinstance(code, int) else 0
