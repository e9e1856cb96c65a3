"""How a batch is run from the command line: its rows written as they come, its progress, and how it ends."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import click

from taiwa.apps.catalogue import find
from taiwa.apps.params import convert_params
from taiwa.apps.render import request_tokens
from taiwa.cli.hear import bill_line, usage_of
from taiwa.cli.opening import manner_of, open_app
from taiwa.cli.options import Flags, read_params
from taiwa.cli.rows import RowFile, open_output, told_row
from taiwa.cli.screen import emit, errors, say_line, tell
from taiwa.conversation.app import App
from taiwa.conversation.history import begin
from taiwa.conversation.layout import turn_request
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import InputError, LimitError, TaiwaError
from taiwa.kernel.ledger import Spent
from taiwa.kernel.records import Json, digest
from taiwa.observe.prices import money
from taiwa.talk.desk import Desk
from taiwa.talk.fold import fold, said_before
from taiwa.talk.map import Map
from taiwa.talk.opening import open_voice
from taiwa.talk.rows import Counted
from taiwa.talk.sidebyside import SideBySide
from taiwa.talk.talk import Talk

__all__ = ["Batch"]

FAILED, INTERRUPTED = 1, 130
MOST_OPENED = 256
MOST_SILENT = 10
SILENT = frozenset({"OverloadedError", "TimeoutError", "RateLimitError"})
"""What a server that is not there looks like; so many rows of it in a row end a batch."""
UNFIT = re.compile(r"[~@{}\s\x00-\x1f\x7f]+")


class SilentServerError(TaiwaError):
    """The server did not answer row after row."""


@dataclass
class Tally:
    """What came of the rows so far."""

    done: int = 0
    failed: int = 0
    kept: int = 0
    spent: Spent = field(default_factory=Spent)
    silent: int = 0

    def add(self, row: Counted) -> None:
        """Count a row.

        Raises:
            SilentServerError: too many rows in a row met a server that does not answer.
        """
        kind = row.error.get("type") if isinstance(row.error, dict) else None
        self.silent = self.silent + 1 if kind in SILENT else 0
        self.kept += row.kept
        self.failed += row.error is not None
        self.done += row.error is None and not row.kept
        if not row.kept:
            self.spent = self.spent + row.spent
        if self.silent >= MOST_SILENT:
            assert isinstance(row.error, dict)
            raise SilentServerError(
                ngettext(
                    "the server did not answer {n} row ({error})",
                    "the server did not answer {n} rows in a row ({error})",
                    self.silent,
                    error=row.error["message"],
                )
            )


@dataclass
class Batch:
    """One run of a batch."""

    shared: Flags
    app: str
    rows: RowFile
    again: bool = False
    output: Path | None = None
    tally: Tally = field(default_factory=Tally)
    session: str = ""

    def foretell(self, mode: str) -> None:
        """Say what the batch would send; nothing is called."""
        opened = Opening(self.app, self.shared.params)
        good = bad = tokens = 0
        for given in self.rows:
            try:
                if given.error:
                    raise InputError(given.error)
                app = opened(given.params if mode == "map" else None)
                tokens += request_tokens(turn_request(begin(app), given.text))
                good += 1
            except InputError as error:
                bad += 1
                tell(f"{given.index}: {error.message}", "yellow")
        if self.shared.as_json:
            emit({"rows": good, "bad": bad, "tokens": tokens})
            return
        more = "" if mode == "map" else ", and before each row what was said so far"
        say_line(
            ngettext(
                "{n} row can be sent, {bad} cannot; about {tokens} tokens to read",
                "{n} rows can be sent, {bad} cannot; about {tokens} tokens to read",
                good,
                bad=bad,
                tokens=f"{tokens:,}",
            )
            + more
        )

    def fold(self) -> None:
        """Say the rows in one conversation."""
        chosen = self.shared.settings()
        desk = self.shared.desk(chosen)
        app = open_app(self.app, self.shared.params)
        self.session = self.shared.session or self._name(desk, app)
        here = desk.at(self.session) if desk.store.refs.has(self.session) else desk.start(app)
        if here.app.hash != app.hash:
            raise InputError(f"{self.session} was begun with another app or with other params: choose another -s NAME")
        talk = Talk(desk, self.session, here, open_voice(None, chosen, app), options=manner_of(self.shared, chosen))
        before = said_before(talk, self.rows) if self.again else ()
        with self._writing() as write:
            for row in fold(talk, self.rows, before):
                write(row)

    def _name(self, desk: Desk, app: App) -> str:
        """The conversation of a fold is called like its file, so that going on with the file finds it."""
        if self.rows.name == "-":
            if self.again:
                raise InputError("--resume of rows from standard input needs the name of their conversation: -s NAME")
            return desk.new_name(app)
        name = f"{app.name}-{UNFIT.sub('-', Path(self.rows.name).stem)[:60]}"
        if desk.store.refs.has(name) and not self.again:
            raise InputError(f"there is a conversation {name}: --resume goes on with it, -s NAME begins another")
        return name

    def map(self, width: int) -> None:
        """Say each row on its own, so many at a time."""
        chosen = self.shared.settings()
        opened = Opening(self.app, self.shared.params)
        if not self.rows.as_json:
            opened(None)  # a param that is missing is missing in every row
        voice = open_voice(None, chosen, opened.app)
        desk, manner = self.shared.desk(chosen), manner_of(self.shared, chosen)
        self._side_by_side(Map(desk, voice, manner, opened=opened, width=width, resume=self.again))

    def _side_by_side(self, job: SideBySide[Any, Any]) -> None:
        with self._writing() as write:
            asyncio.run(_drained(job.rows(self.rows), write))

    def told(self, row: Any) -> dict[str, Json]:  # noqa: ANN401  (the row of the job that is run)
        """A row as it is written."""
        return told_row(row)

    @contextmanager
    def _writing(self) -> Generator[Callable[[Counted], None]]:
        """Write rows as they come, and say how it ended.

        Raises:
            Exit: not all rows were answered.
        """
        why, code = "", 0
        with closing_output(self.output, again=self.again) as out, progress(self.rows.count, out) as advance:

            def write(row: Counted) -> None:
                out.write(f"{json.dumps(self.told(row), ensure_ascii=False)}\n")
                out.flush()
                self.tally.add(row)
                advance(self.tally)

            try:
                yield write
            except KeyboardInterrupt:
                why, code = _("interrupted"), INTERRUPTED
            except SilentServerError as error:
                why, code = error.message, FAILED
            except LimitError as error:
                why, code = _("the cost limit was reached ({why})", why=error.message), FAILED
        self._sum_up(why)
        if code or self.tally.failed:
            raise click.exceptions.Exit(code or FAILED)

    def _sum_up(self, why: str) -> None:
        tally = self.tally
        if self.output is not None and self.shared.as_json:
            cost = tally.spent.cost
            emit(
                {
                    "session": self.session or None, "done": tally.done, "failed": tally.failed, "kept": tally.kept,
                    "usage": usage_of(tally.spent), "cost": None if cost is None else cost / 1e9, "stopped": why or None,
                }
            )  # fmt: skip
            return
        tell(
            ngettext(
                "{n} row answered, {failed} failed, {kept} kept from before",
                "{n} rows answered, {failed} failed, {kept} kept from before",
                tally.done,
                failed=tally.failed,
                kept=tally.kept,
            ),
            "red" if tally.failed else "dim",
        )
        tell(bill_line(tally.spent))
        if why:
            tell(_("stopped: {why}; finished rows are saved, --resume continues", why=why), "yellow")


class Opening:
    """Opens an app with the params of a row on top of those of the command."""

    def __init__(self, name: str, params: tuple[str, ...]) -> None:
        self.app = find(name)
        self._params = convert_params(self.app, read_params(params))
        self._opened: dict[str, App] = {}

    def __call__(self, params: Json) -> App:
        """Return the app of a row; rows with the same params share it.

        Raises:
            InputError: a param is unknown, missing or does not fit.
        """
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise InputError("params are an object of names and values")
        name = digest(params)
        if name not in self._opened:
            if len(self._opened) >= MOST_OPENED:
                self._opened.clear()
            self._opened[name] = self.app.opened(self._params | params)
        return self._opened[name]


async def _drained(rows: AsyncGenerator[Counted], write: Callable[[Counted], None]) -> None:
    async with aclosing(rows):
        async for row in rows:
            write(row)


@contextmanager
def closing_output(output: Path | None, *, again: bool) -> Generator[TextIO]:
    """Where rows go; a file is closed at the end."""
    out = open_output(output, again=again)
    try:
        yield out
    finally:
        if output is not None:
            out.close()


@contextmanager
def progress(count: int, out: TextIO) -> Generator[Callable[[Tally], None]]:
    """Show a bar to a person who does not see the rows themselves."""
    if not sys.stderr.isatty() or out.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors(), transient=True) as shown:
        task = shown.add_task(_("rows"), total=count)

        def advance(tally: Tally) -> None:
            more = " · " + _("{failed} failed", failed=tally.failed) if tally.failed else ""
            shown.update(task, advance=1, description=_("rows") + f"{more} · {money(tally.spent.cost)}")

        yield advance
