"""Printing a turn while it happens, and its bill."""

import sys
import time
from collections.abc import Iterable

import click

from taiwa.cli.screen import emit, plain, tell
from taiwa.cli.words import words
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json
from taiwa.kernel.values import TextDelta
from taiwa.observe.prices import money
from taiwa.talk.talk import Heard
from taiwa.talk.turn import Said

__all__ = ["bill_line", "hear", "told"]


def hear(events: Iterable[Heard], *, as_json: bool = False, verbose: bool = False) -> Said:
    """Print an answer as it comes, warnings apart; with JSON only the committed turn at the end."""
    started, first = time.monotonic(), 0.0
    said: Said | None = None
    for event in events:
        if isinstance(event, TextDelta):
            first = first or time.monotonic() - started
            if not as_json:
                click.echo(plain(event.text), nl=False)
                sys.stdout.flush()
        elif isinstance(event, Said):
            said = event
        elif event.level == "warning" or verbose:
            tell(f"\n{event.text}" if first and not as_json else event.text, "yellow")
    assert said is not None, "a stream of a turn ends with the turn"
    if as_json:
        emit(told(said))
        return said
    click.echo()
    if verbose:
        tell(f"{said.session} {said.node[:12]} · {bill_line(said.spent)} · {words('first', seconds=f'{first:.2f}')}")
    return said


def bill_line(spent: Spent) -> str:
    """A bill in one line."""
    usage = spent.usage
    tokens = words("tokens", input=usage.input_tokens, cached=usage.cache_read_tokens, output=usage.output_tokens)
    if spent.unmetered and not usage.input_tokens:
        tokens = words("tokens_unknown")
    return words("cost", requests=spent.requests, tokens=tokens, cost=money(spent.cost), seconds=f"{spent.seconds:.2f}")


def told(said: Said) -> Json:
    """A turn as JSON, with what programs need to go on."""
    spent, usage = said.spent, said.spent.usage
    return {
        "session": said.session,
        "node": said.node,
        "parent": said.parent,
        "text": said.text,
        "delta": said.delta,
        "warnings": list(said.warnings),
        "usage": None
        if spent.unmetered
        else {
            "requests": spent.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
        },
        "cost": None if spent.cost is None else spent.cost / 1e9,
        "seconds": round(spent.seconds, 3),
    }
