"""Printing a turn while it happens, and its bill."""

import os
import sys
import time
from collections.abc import Iterable

import click

from taiwa.cli.screen import emit, plain, tell
from taiwa.flows.live import MARKED
from taiwa.i18n import _, gettext_noop, ngettext
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json
from taiwa.kernel.values import Note, TextDelta
from taiwa.observe.prices import money
from taiwa.talk.talk import Heard
from taiwa.talk.turn import TurnResult

__all__ = ["bill_line", "hear", "told"]

INTERRUPTED = "the answer was interrupted"
STATE_UNCHANGED = "the state was left as it was: "
WARNINGS = (
    gettext_noop("the answer was cut off at the length limit"),
    gettext_noop("the model refused to go on"),
    gettext_noop("the old turns could not be summarised; they stay in the prompt"),
)
"""Warnings of a turn that have a translation."""


def hear(events: Iterable[Heard], *, as_json: bool = False, verbose: bool = False) -> TurnResult:
    """Print an answer as it comes, warnings after it; with JSON only the committed turn at the end."""
    started, first = time.monotonic(), 0.0
    said: TurnResult | None = None
    notes: list[Note] = []
    try:
        for event in events:
            if isinstance(event, TextDelta):
                first = first or time.monotonic() - started
                if not as_json:
                    click.echo(plain(event.text), nl=False)
                    sys.stdout.flush()
            elif isinstance(event, TurnResult):
                said = event
            elif event.code in MARKED:  # a call of a tool and what it gave stand in the text
                if not as_json:
                    click.echo(_aside(event.text), nl=False)
            else:
                notes.append(event)
    except KeyboardInterrupt:
        tell("\n" + _("the turn was cut off; taiwa resume finishes it without paying again"))
        raise
    finally:
        if said is None and first and not as_json:
            click.echo()
    assert said is not None, "a stream of a turn ends with the turn"
    if as_json:
        emit(told(said))
    else:
        click.echo("" if first else plain(said.text))
    _remark([note for note in notes if said.text or note.text != INTERRUPTED], verbose=verbose)
    if verbose:
        waited = _("first word after {seconds} s", seconds=f"{first:.2f}")
        tell(f"{said.session} {said.node[:12]} · {bill_line(said.spent)} · {waited}")
    return said


def _aside(text: str) -> str:
    colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return click.style(plain(text), dim=True) if colours else plain(text)


def _remark(notes: list[Note], *, verbose: bool) -> None:
    """Print what a person should know of a turn; that an interrupted answer has no delta goes without saying."""
    interrupted = any(note.text == INTERRUPTED for note in notes)
    for note in notes:
        if interrupted and note.code == "turn" and note.text != INTERRUPTED:
            continue
        if note.level == "warning" or verbose:
            tell(_warning(note.text), "yellow")


def _warning(text: str) -> str:
    """Translate a warning of a turn; an unknown one stays as it is."""
    if text == INTERRUPTED:
        return _("stopped; the answer so far is kept")
    if text.startswith(STATE_UNCHANGED):
        return _("the state was left as it was: {why}", why=text.removeprefix(STATE_UNCHANGED))
    return _(text)


def bill_line(spent: Spent) -> str:
    """A bill in one line."""
    usage = spent.usage
    tokens = _("{input} in ({cached} cached) + {output} out tokens",
        input=f"{usage.input_tokens:,}", cached=f"{usage.cache_read_tokens:,}", output=f"{usage.output_tokens:,}",
    )  # fmt: skip
    most, cost = spent.usage + spent.estimated, money(spent.cost)
    if spent.unmetered and spent.estimated.input_tokens:  # a call that was cut is known from above
        tokens = _(
            "at most {input} in + {output} out tokens", input=f"{most.input_tokens:,}", output=f"{most.output_tokens:,}"
        )
        cost = f"≤ {money(spent.cost_at_most)}" if spent.cost_at_most else money(spent.cost_at_most)
    elif spent.unmetered and not usage.input_tokens:
        tokens = _("tokens not reported")
    return _(
        "{calls} · {tokens} · {cost} · {seconds} s",
        calls=ngettext("{n} call", "{n} calls", spent.requests),
        tokens=tokens,
        cost=cost,
        seconds=f"{spent.seconds:.2f}",
    )


def told(said: TurnResult) -> dict[str, Json]:
    """A turn as JSON, with what programs need to go on."""
    spent = said.spent
    return {
        "session": said.session,
        "node": said.node,
        "parent": said.parent,
        "text": said.text,
        "delta": said.delta,
        "warnings": list(said.warnings),
        "usage": usage_of(spent),
        "cost": None if spent.cost is None else spent.cost / 1e9,
        "seconds": round(spent.seconds, 3),
    }


def usage_of(spent: Spent) -> dict[str, Json] | None:
    """What was used, or None where a call did not say."""
    if spent.unmetered:
        return None
    usage = spent.usage
    return {
        "requests": spent.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
