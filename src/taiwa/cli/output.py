"""Terminal output: results, notices, tables, streamed answers, bills and typed values.

Output is plain when piped, aligned for wide characters, and free of control codes from models and files.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Self, TypedDict

import click

from taiwa.i18n import _, gettext_noop, ngettext, translated, user_language
from taiwa.kernel.messages import Enforcement, HiddenDelta, Notice, PartialValue, TextDelta
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import estimate_tokens, inert, plain, truncate
from taiwa.kernel.usage_limits import RunUsage, format_cost

if TYPE_CHECKING:
    from rich.console import Console

    from taiwa.cli.display import AnswerDisplay
    from taiwa.cli.line_breaks import Wrapped
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.flows.extract import Attempt
    from taiwa.kernel.execution import Event
    from taiwa.models.weights.fetch import FetchEvent
    from taiwa.operations.model_files import PulledFile
    from taiwa.operations.results import RequestPreview
    from taiwa.sessions.commit_turn import TurnResult
    from taiwa.sessions.session import Session, TurnEvent
    from taiwa.settings import Settings
    from taiwa.structured import Fix

INTERRUPTED = "the answer was interrupted"
CUT_OFF = gettext_noop("the turn was cut off; taiwa resume finishes it without paying again")
MAX_PLACES = 5
MAX_CLAUSES = 6
MAX_SKIPPED = 5
"""The number of skipped rows that are shown."""
SHOWN_CHARS = 200
NARROWEST = 16
"""Width of the last column, in cells, below which complete rows are wrapped."""


@cache
def console() -> "Console":
    """Return the console of results; colours only on a terminal, where lines break between words."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


@cache
def errors() -> "Console":
    """Return the console of notices and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def print_json(item: Json) -> None:
    """Print one JSON object on one line, for programs."""
    click.echo(inert(json.dumps(item, ensure_ascii=False)))


def print_result(result: object) -> None:
    """Print the result of an operation as one JSON object on one line."""
    from taiwa.operations.result_json import to_json

    print_json(to_json(result))


def print_item(item: Json, line: str, *, as_json: bool) -> None:
    """Print an object as JSON, or else the line that describes it."""
    print_json(item) if as_json else print_line(line)


def print_line(text: str, style: str = "") -> None:
    """Print a line of a result."""
    if sys.stdout.isatty():
        console().print(_wrapping(text, style))
    else:
        click.echo(plain(text))


def print_cut(before: str, text: str, after: str) -> None:
    """Print a line of a drawing; on a terminal its text, and what follows, are cut so that it is one line."""
    from rich.cells import cell_len

    if sys.stdout.isatty():
        room = console().width - cell_len(before)
        rest = room - min(cell_len(text), NARROWEST)
        after = cut(after, rest) if rest >= NARROWEST_CELL else ""
        text = cut(text, max(room - cell_len(after), 1))
    print_line(before + text + after)


def print_notice(text: str, style: str = "dim") -> None:
    """Print a notice to standard error."""
    if sys.stderr.isatty():
        errors().print(_wrapping(text, style))
    else:
        click.echo(plain(text), err=True)


NOT_ANSWERED = 4
"""The exit code if a model refuses, or documents do not contain the answer."""


def print_no_answer(text: str) -> None:
    """Print a text in place of an answer: a pipe gets only answers, so there it goes to standard error."""
    if sys.stdout.isatty():
        print_line(text)
    else:
        print_notice(text)


def exit_if_refused(turn: "TurnResult") -> None:
    """End the command with the exit code of a refusal, if a turn is one.

    Raises:
        Exit: it is.
    """
    if turn.is_refused:
        raise click.exceptions.Exit(NOT_ANSWERED)


def print_each(lines: Iterable[str], show: Callable[[str], None] = print_notice) -> None:
    """Print several notices, or lines of a result."""
    for line in lines:
        show(line)


def print_skipped(skipped: Sequence[str]) -> None:
    """Print how many rows of a file have another form, and what is wrong with the first ones."""
    if skipped:
        rows = ngettext(
            "{n} row has another form and is skipped; --strict stops at it",
            "{n} rows have another form and are skipped; --strict stops at the first",
            len(skipped),
        )
        print_notice(f"{rows}:", "yellow")
        for line in (*skipped[:MAX_SKIPPED], *(("…",) if len(skipped) > MAX_SKIPPED else ())):
            print_notice(f"  {line}", "yellow")


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[int] = frozenset(), spare: Sequence[int] = ()
) -> None:
    """Print aligned columns; wide characters count two cells. Columns `right` are right-aligned; an empty `heads` omits the head line.

    On a narrow terminal addresses are shortened, cells are cut, the last column is wrapped, and columns of `spare` are left out, the
    first ones first; if that is not enough, a row takes several lines, each cell behind the head of its column.
    """
    from rich.cells import cell_len

    lines = [tuple(plain(cell).replace("\n", " ") for cell in row) for row in ((heads, *rows) if heads else rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    if sys.stdout.isatty() and sum(widths) + 2 * len(widths) - 2 > console().width:
        lines = [*zip(*map(_without_addresses, zip(*lines, strict=True)), strict=True)]
        lines, right = _narrowed(lines, right, spare, console().width) or (lines, right)
        widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    before = sum(widths[:-1]) + 2 * len(widths[:-1])
    room = console().width - before if sys.stdout.isatty() else sum(widths)
    for number, line in enumerate(lines):
        style = "bold" if heads and number == 0 else ""
        if room < min(NARROWEST, widths[-1]):
            if not style:
                named = zip(lines[0], line, strict=True) if heads else (("", cell) for cell in line)
                first, *others = (f"{head} {cell}".strip() for head, cell in named if cell)
                text = " · ".join(others) if heads else "  ".join(others)
                print_line("\n  ".join(_wrapped(f"{first}  {text}", console().width - 2)))
            continue
        cells: list[str] = []
        for column, cell in enumerate(line):
            pad = " " * (widths[column] - cell_len(cell))
            cells.append(pad + cell if column in right else cell + pad)
        text = "  ".join(cells).rstrip()
        if cell_len(text) > before + room:
            first, *more = _wrapped(line[-1], room)
            text = "\n".join(("  ".join((*cells[:-1], first)), *(" " * before + part for part in more)))
        print_line(text, style)


ADDRESS = re.compile(r"https?://(?:([^/#]*)[^#]*#(?=.)(.*))?")
"""The address of a server before the name of its model, or how it is reached."""
NARROWEST_CELL = 8


def cut(text: str, cells: int) -> str:
    """Cut a text that is wider than a number of cells."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1).rstrip()}…"


def _without_addresses(cells: Sequence[str]) -> list[str]:
    """Shorten the addresses of a column; models of one name keep their hosts."""
    short = [ADDRESS.sub(r"\2", cell) for cell in cells]
    return short if len({*short}) == len({*cells}) else [ADDRESS.sub(r"\2 \1", cell) for cell in cells]


def _narrowed(
    lines: list[tuple[str, ...]], right: frozenset[int], spare: Sequence[int], width: int
) -> tuple[list[tuple[str, ...]], frozenset[int]] | None:
    """Return lines whose last column has room, and the columns that are aligned to the right; None if they need more room."""
    from rich.cells import cell_len

    columns = {number: list(column) for number, column in enumerate(zip(*lines, strict=True))}
    last = len(columns) - 1

    def size(number: int) -> int:
        return max(map(cell_len, columns[number]))

    def least(number: int) -> int:
        return size(number) if number in right else min(size(number), NARROWEST if number == last else NARROWEST_CELL)

    for number in spare:
        if sum(map(least, columns)) + 2 * len(columns) - 2 > width:
            del columns[number]
    while (over := sum(map(size, [*columns][:-1])) + least(last) + 2 * len(columns) - 2 - width) > 0:
        widest = max([*columns][:-1], key=lambda number: size(number) - least(number), default=last)
        if widest == last or size(widest) <= least(widest):
            return None
        most = max(size(widest) - over, least(widest))
        columns[widest] = [cut(cell, most) for cell in columns[widest]]
    places = {number: place for place, number in enumerate(columns)}
    return [*zip(*columns.values(), strict=True)], frozenset(places[number] for number in right if number in places)


def print_rows(
    result: object, heads: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset(),
    *, as_json: bool, none: str = "", spare: Sequence[int] = (),
) -> None:  # fmt: skip
    """Print a result as JSON, or its rows as a table; without rows print `none`."""
    if as_json:
        print_result(result)
    elif rows or not none:
        table(heads, rows, right, spare)
    else:
        print_notice(none)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text between words, and words that are longer than a line."""
    from rich.text import Text

    from taiwa.cli.line_breaks import wrap

    return [line.plain for line in wrap(Text(text), width)]


def _wrapping(text: str, style: str) -> "Wrapped":
    """Return a text that a terminal breaks between words."""
    from rich.text import Text

    from taiwa.cli.line_breaks import Wrapped

    return Wrapped(Text(plain(text), style))


class AnswerFormat(TypedDict, total=False):
    """How an answer is printed: as JSON, with its bill, as raw Markdown, or only when it is complete."""

    as_json: bool
    verbose: bool
    raw: bool
    no_stream: bool


class RawDisplay:
    """A display that prints an answer unrendered as it arrives, for pipes."""

    def __init__(self) -> None:
        self._is_begun = False

    def __enter__(self) -> Self:
        self._is_begun = False
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_begun:
            click.echo()

    def feed(self, text: str) -> None:
        """Print the next part of the answer."""
        self._is_begun = True
        click.echo(text, nl=False)
        sys.stdout.flush()

    def wait(self, text: str) -> None:
        """Print what the answer waits for."""
        print_notice(text)


def is_rendered() -> bool:
    """Whether answers are rendered: on a terminal, unless it cannot show them."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def print_markdown(text: str) -> None:
    """Print Markdown, rendered."""
    from taiwa.cli.display import print_block

    print_block(console(), plain(text))


def answer_display(*, raw: bool) -> "RawDisplay | AnswerDisplay":
    """Return the display of an answer: rendered on a terminal, raw elsewhere."""
    if raw or not is_rendered():
        return RawDisplay()
    from taiwa.cli.display import AnswerDisplay

    return AnswerDisplay(console())


_DISPLAYS: "list[RawDisplay | AnswerDisplay]" = []
"""The displays of the answers that are written now, the innermost last."""


@contextmanager
def displayed(display: "RawDisplay | AnswerDisplay") -> "Generator[RawDisplay | AnswerDisplay]":
    """Show an answer on a display."""
    with display:
        _DISPLAYS.append(display)
        try:
            yield display
        finally:
            _DISPLAYS.remove(display)


@contextmanager
def suspended_display() -> Generator[None]:
    """Remove the display of an answer, so that a question can be asked, and show it again."""
    display = _DISPLAYS[-1] if _DISPLAYS else None
    if display is not None:
        display.__exit__(None, None, None)
    try:
        yield
    finally:
        if display is not None:
            display.__enter__()


class HiddenAnswer:
    """Shows, on a terminal, the seconds and the size of an answer that is not shown while it is written."""

    def __init__(self) -> None:
        self._display: AnswerDisplay | None = None
        self._text = ""

    def __enter__(self) -> Self:
        if errors().is_terminal and os.environ.get("TERM") != "dumb":
            from taiwa.cli.display import AnswerDisplay

            self._display = AnswerDisplay(errors()).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def on_event(self, event: "Event") -> None:
        """Count the text of an answer; show what it waits for."""
        if isinstance(event, (TextDelta, HiddenDelta)):
            self._text += event.text
            if self._display is not None:
                self._display.wait(ngettext("about {n} token", "about {n} tokens", estimate_tokens(self._text)))
        elif isinstance(event, Notice) and event.code == "waiting":
            (print_notice if self._display is None else self._display.wait)(wait_text(event))

    def end(self) -> None:
        """Remove what is shown."""
        display, self._display = self._display, None
        if display is not None:
            display.__exit__(None, None, None)


def print_stream(
    events: "Iterable[TurnEvent]",
    *,
    as_json: bool = False,
    verbose: bool = False,
    raw: bool = False,
    no_stream: bool = False,
) -> "TurnResult":
    """Print an answer while it is written, then its warnings; with JSON only the committed turn.

    A pipe gets the answer when it is complete, and none if the model refuses.
    """
    from taiwa.flows.solve.loops import TRANSCRIPT_CODES
    from taiwa.flows.solve.tool_call_formats import ReadableText, readable_answer

    started, first = time.monotonic(), 0.0
    written, behind_calls, is_shown = ReadableText(), list[str](), False
    is_held = as_json or no_stream or not sys.stdout.isatty()
    with displayed(answer_display(raw=raw or as_json)) as display:

        def show(text: str) -> None:
            nonlocal is_shown
            is_shown = is_shown or bool(text)
            if not is_held:
                display.feed(plain(text))

        def on_text(text: str) -> None:
            nonlocal first
            first = first or time.monotonic() - started
            behind_calls.append(text)
            show(written.text(text))

        def on_result(text: str) -> None:
            behind_calls.clear()
            show(written.result(text))

        turn, notes = wait_for_turn(events, on_text, on_result, display.wait)
        show(written.end())
        if not as_json:
            whole = readable_answer(turn.text, [call.name for call in turn.calls])
            last = "".join(behind_calls).strip()
            if (
                last and whole == turn.text and whole.endswith(last)
            ):  # text before function calls is not part of the answer
                whole = last
            if is_held and turn.is_refused:
                print_no_answer(whole)
            elif is_held or not is_shown:
                display.feed(plain(whole))
    notes = [note for note in notes if note.code not in TRANSCRIPT_CODES]  # the call itself is in the trace
    if as_json:
        print_result(turn)
    if turn.text or all(
        note.text != INTERRUPTED for note in notes
    ):  # otherwise nothing was stored that needs a warning
        _print_notes(notes, verbose=verbose)
    for line in ask_details(turn.ask) if verbose and turn.ask is not None else ():
        print_notice(line)
    if verbose:
        waited = [_("first word after {seconds} s", seconds=f"{first:.2f}")] if first else []
        print_notice(" · ".join((f"{turn.session} {turn.node[:12]}", bill_line(turn.spent), *waited)))
    return turn


def ask_details(result: "AskResult") -> list[str]:
    """Describe the act with its reasons, the scores, the evidence, the queries and the passages, a line each."""
    decision = result.decision
    lines = [f"{decision.policy}: {result.act_name} ({', '.join(decision.reasons)})"]
    for name, value in (("numbers", dict(decision.numbers)), ("scores", result.scores), ("evidence", result.evidence)):
        if value:
            lines.append(f"{name}: " + ", ".join(f"{key} {_figure(each)}" for key, each in value.items()))
    lines += [f"searched for: {query}" for query in result.look_up.queries]
    for passage in result.passages:
        lines.append(f"  {passage.score:>8}  {format_place(passage.source, passage.heading, passage.page)}")
    return lines


def _figure(value: Json) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def print_kept_apart(session: "Session", interrupted: str) -> None:
    """Report that an interrupted turn was kept as a branch, because its session has moved since."""
    if session.name != interrupted:
        print_notice(
            _(
                "{session} has moved since this turn was cut off; the turn is kept as {branch}",
                session=interrupted,
                branch=session.name,
            ),
            "yellow",
        )


def wait_for_turn(
    events: "Iterable[TurnEvent]",
    on_text: Callable[[str], None] = lambda _: None,
    on_result: Callable[[str], None] = lambda _: None,
    on_wait: Callable[[str], None] = print_notice,
) -> "tuple[TurnResult, list[Notice]]":
    """Return the result of a turn and its notices; pass on its text, tool results and waits."""
    from taiwa.sessions.commit_turn import TurnResult

    turn: TurnResult | None = None
    notes: list[Notice] = []
    ends_line = True
    try:
        for event in events:
            if isinstance(event, TurnResult):
                turn = event
            elif isinstance(event, TextDelta):
                ends_line = event.text.endswith("\n") if event.text else ends_line
                on_text(event.text)
            elif isinstance(event, PartialValue):
                continue
            elif event.code == "waiting":
                if ends_line:  # a wait within an answer would stand in its line
                    on_wait(wait_text(event))
            elif event.code == "result":
                ends_line = event.text.endswith("\n")
                on_result(event.text)
            else:
                notes.append(event)
    except KeyboardInterrupt:
        is_kept = not click.get_current_context().params.get("no_store")
        raise KeyboardInterrupt(_(CUT_OFF) if is_kept else "") from None
    assert turn is not None, "the events of a turn end with its result"
    return turn, notes


def print_preview(preview: "RequestPreview", *, as_json: bool) -> None:
    """Print the request that would be sent."""
    from taiwa.operations.request_preview import request_text

    if as_json:
        print_result(preview)
        return
    print_line(request_text(preview.request))
    if preview.cached_tokens:
        print_notice(
            f"about {preview.cached_tokens:,} of them are the prefix of the last request, which a prefix cache holds"
        )


def _print_notes(notes: list[Notice], *, verbose: bool) -> None:
    """Print the warnings of a turn, except that an interrupted answer has no delta."""
    interrupted = any(note.text == INTERRUPTED for note in notes)
    for note in notes:
        if interrupted and note.code == "turn" and note.text != INTERRUPTED:
            continue
        if note.level == "warning" or verbose:
            print_notice(_warning(note.text), "yellow")


def wait_text(notice: Notice) -> str:
    """Describe what an answer waits for, in the language of the user."""
    return plain(translated(str(notice), user_language()))


def _warning(text: str) -> str:
    """Translate a warning of a turn."""
    return _("stopped; the answer so far is kept") if text == INTERRUPTED else translated(text, user_language())


def bill_line(spent: RunUsage) -> str:
    """Write a bill on one line, with the tokens written per second if the calls took a second or more."""
    usage = spent.usage
    tokens = _("{input} in ({cached} cached) + {output} out tokens",
        input=f"{usage.input_tokens:,}", cached=f"{usage.cache_read_tokens:,}", output=f"{usage.output_tokens:,}",
    )  # fmt: skip
    if usage.reasoning_tokens:
        tokens = _("{input} in ({cached} cached) + {output} out ({reasoning} reasoning) tokens",
            input=f"{usage.input_tokens:,}", cached=f"{usage.cache_read_tokens:,}", output=f"{usage.output_tokens:,}",
            reasoning=f"{usage.reasoning_tokens:,}",
        )  # fmt: skip
    most, cost = spent.usage + spent.estimated, format_cost(spent.cost)
    # For a call that was cut off only an upper bound is known.
    if spent.calls_without_usage and spent.estimated.input_tokens:
        tokens = _(
            "at most {input} in + {output} out tokens", input=f"{most.input_tokens:,}", output=f"{most.output_tokens:,}"
        )
        cost = f"≤ {format_cost(spent.max_cost)}" if spent.max_cost else format_cost(spent.max_cost)
    elif spent.calls_without_usage and not usage.input_tokens:
        tokens = _("tokens not reported")
    bill = _(
        "{calls} · {tokens} · {cost} · {seconds} s",
        calls=ngettext("{n} call", "{n} calls", spent.requests),
        tokens=tokens,
        cost=cost,
        seconds=f"{spent.seconds:.2f}",
    )
    if spent.seconds < 1 or not usage.output_tokens:
        return bill
    rate = _("{n} tokens/s", n=f"{usage.output_tokens / spent.seconds:.1f}")
    return f"{bill} · {rate}"


@contextmanager
def progress_bar(rows: int | None, *, is_shown: bool = True) -> Generator[Callable[..., None]]:
    """Show a progress bar on a terminal; the function that is returned updates it, as `rich.progress.Progress.update`."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not is_shown or not errors().is_terminal
    with Progress(*columns, console=errors(), transient=True, disable=hidden) as bar:
        yield partial(bar.update, bar.add_task("" if rows is None else _("rows"), total=rows))


@contextmanager
def download_bar(*, is_shown: bool = True) -> Generator[Callable[[int, int], None]]:
    """Show a bar of bytes on a terminal; the function that is returned takes the bytes that are here, and all of them."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    hidden = not is_shown or not errors().is_terminal
    with Progress(*columns, console=errors(), transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def pull_with_display(name: str, settings: "Settings", *, mirror: str = "", is_shown: bool = True) -> "PulledFile":
    """Fetch a model and show the progress; see `pull_model`.

    Raises:
        InputError, ConfigError: see `pull_model`.
        KeyboardInterrupt: the user interrupted it; the message says how to continue.
    """
    from taiwa.operations.model_files import pull_model

    try:
        with download_bar(is_shown=is_shown) as update:
            return pull_model(name, settings, PullDisplay(name, update), mirror=mirror)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_("interrupted; to continue: taiwa models pull {name}", name=name)) from None


class PullDisplay:
    """Shows what happens while a model is fetched: a bar on a terminal, a line for each quarter elsewhere."""

    def __init__(self, name: str, update: Callable[[int, int], None]) -> None:
        self._name = name
        self._update = update
        self._quarter: int | None = None
        self._has_bar = errors().is_terminal

    def __call__(self, event: "FetchEvent") -> None:
        """Show an event."""
        from taiwa.models.weights.model_files import format_size

        if event.kind == "progress":
            self._update(event.done, event.total)
            quarter = 4 * event.done // event.total
            if self._quarter is not None and quarter > self._quarter and not self._has_bar:
                print_notice(f"{self._name}: {25 * quarter} % ({format_size(event.total)})")
            self._quarter = quarter
        else:
            print_notice(self._words(event))

    def _words(self, event: "FetchEvent") -> str:
        match event.kind:
            case "source":
                return _("{name} from {source}", name=self._name, source=event.source)
            case "failed":
                return f"{event.source} {event.reason}"
            case "waiting":
                return _("another process is fetching {name}; waiting for it", name=self._name)
            case _:
                return _("the file of {name} on this machine is damaged; it is fetched again", name=self._name)


def progress_text(name: str, failed: int, cost: int | None) -> str:
    """Describe rows for a progress bar: how many of them failed, and what all of them cost."""
    return name + (" · " + _("{failed} failed", failed=failed) if failed else "") + f" · {format_cost(cost)}"


def one_line(text: str, limit: int) -> str:
    """Write a text on one line of at most `limit` characters."""
    return truncate(" ".join(text.split()), limit)


def bracketed(text: str, marks: Iterable[tuple[int, int]]) -> str:
    """Put the ranges of a text that match in brackets."""
    for start, end in sorted(marks, reverse=True):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


def format_place(source: str, heading: Sequence[str], page: int) -> str:
    """Write the location of a passage: path, headings and page.

    >>> format_place("a.pdf", ("Leave", "Sick"), 3)
    'a.pdf › Leave › Sick, page 3'
    """
    return " › ".join((source, *heading)) + (f", page {page}" if page else "")


def pretty(value: Json) -> str:
    """Write a value as JSON on several lines, with control codes escaped.

    >>> pretty(["a\\x9b", 1])
    '[\\n  "a\\\\u009b",\\n  1\\n]'
    """
    return inert(json.dumps(value, ensure_ascii=False, indent=2))


def fix_lines(fixes: "Iterable[Fix]") -> list[str]:
    """Describe repairs, a line for each kind."""
    lines: list[str] = []
    kinds = sorted(fixes, key=lambda fix: (fix.level, fix.code, fix.position))
    for (level, code), group in groupby(kinds, key=lambda fix: (fix.level, fix.code)):
        places = [f"{fix.position:,}" for fix in group]
        more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
        lines.append(f"repaired ({level}): {code} at character {', '.join(places[:MAX_PLACES])}{more}")
    return lines


def attempt_lines(attempts: "Sequence[Attempt]") -> list[str]:
    """Describe attempts: the output mode, the usage, repairs and errors of each."""
    lines: list[str] = []
    for number, each in enumerate(attempts, 1):
        usage = each.usage
        tokens = "tokens not reported" if usage is None else f"{usage.input_tokens:,} in + {usage.output_tokens:,} out"
        asked = each.mode if each.form == "whole" else f"{each.mode}, {each.form}"
        lines += [f"downgrade: {why}" for why in each.downgrades]
        lines.append(f"attempt {number} ({asked}): {'invalid' if each.diagnostics else 'valid'} · {tokens}")
        lines += [f"  {line}" for line in enforcement_lines(each.enforcement)]
        lines += [f"  {line}" for line in fix_lines(each.fixes)]
        if each.diagnostics:
            lines.append(f"  text: {one_line(each.text, SHOWN_CHARS)}")
            lines += [f"  {line}" for line in each.diagnostics]
    return lines


def enforcement_lines(enforcement: Enforcement | None) -> list[str]:
    """Describe which clauses of a constraint were enforced while decoding, and which were checked: by JSON pointer and keyword."""
    if enforcement is None:
        return []
    method = f"sent as {enforcement.method}" if enforcement.method else "not sent to the server"
    lines = [f"enforced: {_listed(enforcement.enforced)} · {method}"]
    if enforcement.promised:
        lines.append(f"promised by the server, not probed: {_listed(enforcement.promised)}")
    if enforcement.checked:
        lines.append(f"only checked: {_listed(enforcement.checked)}")
    if enforcement.broken:
        lines.append(f"violated by the answer: {_listed(enforcement.broken)}")
    return lines


def _listed(clauses: Sequence[str]) -> str:
    more = f" and {len(clauses) - MAX_CLAUSES} more" if len(clauses) > MAX_CLAUSES else ""
    return (", ".join(clauses[:MAX_CLAUSES]) or "nothing") + more
