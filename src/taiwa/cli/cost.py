"""`taiwa cost`: what was spent."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, table, tell
from taiwa.i18n import ngettext

if TYPE_CHECKING:
    from taiwa.store import Axis

__all__ = ["AXES", "cost"]

AXES = ("app", "model", "day", "session")
"""The values of `store.Axis`; the store itself is opened when the command runs."""


@click.command()
@click.option("--by", type=click.Choice(AXES), default="model", show_default=True, help="How to add up.")
@flags("json", "store")
def cost(shared: Flags, by: "Axis") -> None:
    """Add up what was spent, failed turns included. What is not known is said, never counted as nothing.

    \b
    taiwa cost
    taiwa cost --by day --json
    """
    from taiwa.observe.prices import money

    lines = shared.desk().store.bill(by)
    if shared.as_json:
        emit(
            [
                {
                    by: line.name, "requests": line.requests, "tool_calls": line.tool_calls, "failed": line.failed,
                    "input_tokens": line.usage.input_tokens, "output_tokens": line.usage.output_tokens,
                    "cache_read_tokens": line.usage.cache_read_tokens, "unmetered": line.unmetered,
                    "cost": None if line.cost_nano is None else line.cost_nano / 1e9, "known_cost": line.known_nano / 1e9,
                }
                for line in lines
            ]
        )  # fmt: skip
        return
    if not lines:
        tell("nothing was spent yet")
        return
    rows = [
        (
            line.name or "(in no conversation)", str(line.requests), str(line.failed), f"{line.usage.input_tokens:,}",
            f"{line.usage.cache_read_tokens:,}", f"{line.usage.output_tokens:,}", money(line.cost_nano),
        )
        for line in lines
    ]  # fmt: skip
    table((by, "requests", "failed", "input", "cached", "output", "cost"), rows, frozenset(range(1, 7)))
    unmetered = sum(line.unmetered for line in lines)
    if unmetered:
        tell(
            ngettext(
                "{n} call reported no usage; its tokens and cost are unknown",
                "{n} calls reported no usage; their tokens and cost are unknown",
                unmetered,
            )
        )
