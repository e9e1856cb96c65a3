"""The options that evaluations share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["FILE", "FOLDER", "PLACE", "running"]

MOST_AT_ONCE = 256
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PLACE = click.Path(path_type=Path)
RUNNING = (
    click.option("-j", "width", type=click.IntRange(1, MOST_AT_ONCE), default=4, help="Rows at a time; 4 if not said."),
    click.option(
        "--on", "on", metavar="PLACE", help="Where: local, local:N or ray://HOST:PORT (Ray); here if not said."
    ),
    click.option(
        "--out", type=FOLDER, metavar="DIR", help="Keep rows, table and chart there; rows there are gone on with."
    ),
    click.option("--resume", is_flag=True, help="Go on with DIR, which must hold rows of this evaluation."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N questions only."),
    click.option("--only", metavar="KINDS", help="Questions of these types or classes only, with commas between."),
)
"""What every evaluation of a model can be told."""


def running(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that every evaluation of a model has."""
    for option in reversed(RUNNING):
        command = option(command)
    return command
