"""A rationale as a person sees it while it comes, as programs get it, and what happened on the way."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TextIO

import click

from taiwa.cli.hear import bill_line, usage_of
from taiwa.cli.screen import plain, tell
from taiwa.cli.values import pretty
from taiwa.flows.live import MARKED
from taiwa.flows.rationale import Called, Ending, Rationale
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.effects import CallTool
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json
from taiwa.kernel.session import Done, Event, Got
from taiwa.kernel.values import Note, Response, TextDelta, ToolResult
from taiwa.talk.solving import Heard

__all__ = ["Trace", "call_lines", "remark", "show", "told_rationale"]

ENDINGS: Mapping[Ending, str] = {
    "calls": gettext_noop(
        "the limit of tool calls was reached before the end; the answer is unreliable (raise the limit with --calls)"
    ),
    "repeat": gettext_noop("stopped: the model requested the same call repeatedly"),
    "tool": gettext_noop("stopped because a call failed, as configured"),
    "stops": gettext_noop("stopped: too many markers did not form a call"),
    "tokens": gettext_noop("the token limit was reached before the end (raise it with --tokens)"),
    "limit": gettext_noop("a limit was reached before the end"),
    "length": gettext_noop("the answer was cut off at the length limit"),
    "interrupted": gettext_noop("stopped; `taiwa cost` lists the calls that were paid for"),
    "refusal": gettext_noop("the model refused to go on"),
}
"""What is printed of a rationale that did not end by itself."""

CALLED, GIVEN, FAILED = "cyan", "green", "red"
SHOWN_CHARS = 100
LONGEST_MARK = 30
"""Characters within which the words of a failed result begin, whatever a protocol writes before them."""


def show(events: Iterable[Heard], notes: list[Note], *, silent: bool = False) -> Done[Rationale]:
    """Print a rationale as it comes, calls and results in colour; remarks go to `notes`. Nothing is printed if `silent`."""
    done: Done[Rationale] | None = None
    ended = True
    try:
        for event in events:
            if isinstance(event, Done):
                done = event
            elif isinstance(event, Note) and event.code not in MARKED:
                notes.append(event)
            elif not silent:
                ended = event.text.endswith("\n") if event.text else ended
                click.echo(_painted(event), nl=False)
                sys.stdout.flush()
    finally:
        if not ended:
            click.echo()
    assert done is not None, "a stream of a run ends with its end"
    return done


def _painted(event: TextDelta | Note) -> str:
    text = plain(event.text)
    if isinstance(event, TextDelta) or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    if event.code != "result":
        return click.style(text, fg=CALLED)
    return click.style(text, fg=FAILED if "error:" in text[:LONGEST_MARK] else GIVEN)


def told_rationale(done: Done[Rationale]) -> dict[str, Json]:
    """A rationale for programs."""
    found, spent = done.value, done.spent
    return {
        "answer": found.answer,
        "answered_by": found.answered_by,
        "value": found.value,
        "ending": found.ending,
        "way": found.way,
        "text": found.text,
        "calls": [_told_call(called) for called in found.calls],
        "usage": _usage(spent),
        "cost": _amount(spent.cost),
        "cost_at_most": _amount(spent.cost_at_most),
        "milliseconds": round(spent.seconds * 1000),
    }


def _usage(spent: Spent) -> dict[str, Json]:
    """What was used, as far as it was told; of a call that was cut, a server does not say it, and there is a bound."""
    return {
        **(usage_of(replace(spent, unmetered=0)) or {}),
        "unmetered": spent.unmetered,
        "unmetered_input_tokens_at_most": spent.estimated.input_tokens,
        "unmetered_output_tokens_at_most": spent.estimated.output_tokens,
    }


def _amount(nano: int | None) -> float | None:
    return None if nano is None else nano / 1e9


def _told_call(called: Called) -> dict[str, Json]:
    result = called.result
    return {
        "tool": called.name,
        "input": called.input,
        "text": result.text,
        "value": result.value,
        "origin": result.origin,
        "error": result.error,
    }


def remark(done: Done[Rationale], notes: Iterable[Note], *, verbose: bool) -> None:
    """Print what a person should know beside the answer: always how it ended badly, on wish the calls and the bill."""
    found = done.value
    for note in notes:
        if note.level == "warning" or (verbose and note.code != "way"):
            tell(note.text, "yellow" if note.level == "warning" else "dim")
    if not found.complete:
        tell(_(ENDINGS[found.ending]), "yellow")
    elif not found.answer:
        tell(_("no answer was found in the text"), "yellow")
    if verbose:
        for line in call_lines(found.calls):
            tell(line)
        source = _("answer: {by}", by=found.answered_by)
        tell(f"{found.way} · {source} · {bill_line(done.spent)}")


def answer_text(found: Rationale) -> str:
    """The answer as it is printed last: a typed one as JSON, any other as it is."""
    return pretty(found.value) if found.answered_by == "typed" and not isinstance(found.value, str) else found.answer


def call_lines(calls: Iterable[Called]) -> list[str]:
    """Say what each call gave, and where that comes from if not from the tool."""
    lines: list[str] = []
    for number, called in enumerate(calls, 1):
        result = called.result
        mark = "" if result.origin == "tool" and not result.error else f" [{result.error or result.origin}]"
        mark = " [model]" if result.origin == "model" else mark
        lines.append(f"call {number}: {called.name}: {_short(called.input)} → {_short(result.text)}{mark}")
    return lines


@dataclass
class Trace:
    """Writes down what happens in a run, with times and tokens: each row at once to `file`, all of them for a person."""

    file: TextIO | None = None
    clock: Callable[[], float] = time.monotonic
    rows: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]], init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def watch(self, event: Event) -> None:
        """Observe a run."""
        if isinstance(event, Note):
            name = "failure" if event.code == "tool" else event.code or "note"  # a tool's own row is that of its call
            self.add({"event": name, "text": event.text})
        elif isinstance(event, Got):
            effect, answer, error = event.entry.effect, event.entry.answer, event.entry.error
            failed: Json = None if error is None else str(error)
            timed: dict[str, Json] = {"seconds": round(event.entry.seconds, 6), "error": failed}
            if isinstance(answer, Response):
                self.add({"event": "model", **_told_response(answer), **timed})
            elif isinstance(effect, CallTool):
                given = answer.text if isinstance(answer, ToolResult) else ""
                called: dict[str, Json] = {"tool": effect.name, "arguments": dict(effect.arguments), "text": given}
                detail: Json = (getattr(error, "trace", "") or None) if error is not None else None
                self.add({"event": "tool", **called, **timed, "detail": detail})

    def end(self, found: Rationale, spent: Spent) -> None:
        """Write how it ended."""
        self.add(
            {
                "event": "end", "ending": found.ending, "way": found.way, "answer": found.answer,
                "answered_by": found.answered_by, "usage": _usage(spent),
            }
        )  # fmt: skip

    def add(self, row: dict[str, Json]) -> None:
        """Add a row."""
        row = {"at": round(self.clock() - self._began, 6), **row}
        self.rows.append(row)
        if self.file is not None:
            self.file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self.file.flush()

    def lines(self) -> list[str]:
        """The rows for a person, who has read the words."""
        return [_line(row) for row in self.rows if row["event"] not in MARKED]


def _told_response(response: Response) -> dict[str, Json]:
    usage, bound = response.usage, response.at_most
    calls: list[Json] = [{"tool": call.name, "arguments": call.arguments} for call in response.message.tool_calls]
    return {
        "text": response.text,
        "calls": calls,
        "finish": response.finish,
        "stop": response.stop,
        "input_tokens": None if usage is None else usage.input_tokens,
        "cached_tokens": None if usage is None else usage.cache_read_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "input_tokens_at_most": None if bound is None else bound.input_tokens,
        "output_tokens_at_most": None if bound is None else bound.output_tokens,
    }


def _line(row: dict[str, Json]) -> str:
    event = str(row["event"])
    if event == "model":
        stop = f" at {row['stop']!r}" if row["stop"] else ""
        tokens = "tokens not reported"
        if row["input_tokens_at_most"] is not None:
            tokens = f"at most {row['input_tokens_at_most']:,} in + {row['output_tokens_at_most']:,} out"
        if row["input_tokens"] is not None:
            tokens = f"{row['input_tokens']:,} in ({row['cached_tokens']:,} cached) + {row['output_tokens']:,} out"
        about = f"{_seconds(row)} · {tokens} · {row['finish']}{stop}"
    elif event == "tool":
        given = " ".join(str(part) for part in row["arguments"].values()) if isinstance(row["arguments"], dict) else ""
        about = f"{_seconds(row)} · {row['tool']}: {_short(given)} → {_short(str(row['error'] or row['text']))}"
    elif event == "end":
        about = f"{row['ending']} · {row['way']} · {row['answer'] or '-'} ({row['answered_by']})"
    else:
        about = _short(str(row["text"]))
    return f"{float(str(row['at'])):7.3f} s  {event:<9} {about}"


def _seconds(row: dict[str, Json]) -> str:
    return f"{float(str(row['seconds'])):.3f} s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
