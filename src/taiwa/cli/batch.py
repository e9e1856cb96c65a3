"""Batches of turns, and what batches of extractions share: output, progress, and the summary."""

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from taiwa.cli.options import ANSWERS, CommonOptions, ask_param, common_options, read_params, row_options, turn_options
from taiwa.cli.output import bill_line, print_json, print_line, print_notice, print_skipped, progress_bar, progress_text
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.operations.batch import BatchMode, BatchPreview, Counts, OnRow

FAILED, INTERRUPTED = 1, 130


@click.command()
@click.argument("app_and_file", nargs=-1, required=True, metavar="[APP] FILE")
@click.option(
    "--mode", type=click.Choice(["map", "fold"]), default="map", show_default=True,
    help="Run each row on its own (map), or one conversation whose state is carried on (fold).",
)  # fmt: skip
@row_options
@common_options(
    "model", "params", *ANSWERS, "session", "as_json", "verbose", "dry_run", "max_cost", "retry_paid", "no_store",
    "strict", "store",
)  # fmt: skip
def batch(
    common: CommonOptions,
    app_and_file: tuple[str, ...],
    mode: "BatchMode",
    width: int,
    resume: bool,
    output: Path | None,
) -> None:
    """Send every line of FILE (`-` for standard input) to APP, by default plain; print one line of JSON per row, in the order of the file.

    A line is a text, or JSON: {"text": …, "id": …, "params": {…}, "attachments": ["cat.png"]}. A row that fails has an "error" and does not stop the batch; the
    exit code is 1 then. With --strict, a line that cannot be read stops it before anything is sent. With -o, --json prints a summary. A fold is stored as the conversation -s NAME (default: APP-FILE).

    \b
    taiwa batch lines.txt -j 8 -o answers.jsonl
    taiwa batch translate lines.txt --mode fold -p target_lang=English -o out.jsonl
    taiwa batch linguistic sentences.jsonl -j 16 -o out.jsonl --max-cost 0.50
    taiwa batch linguistic sentences.jsonl -j 16 -o out.jsonl --resume
    taiwa batch linguistic sentences.jsonl --dry-run
    """
    from taiwa.operations.batch import BatchOptions, open_rows, preview_turns, run_turns

    if len(app_and_file) > 2:
        raise click.UsageError(f"expected an app and a file, got {len(app_and_file)} arguments")
    app, file = ("plain", *app_and_file)[-2:]
    options = BatchOptions(app, mode, read_params(common.params), common.session, width, resume, common.answers())
    with open_rows(file) as rows:
        unreadable = rows.unreadable()
        stop_at(unreadable if common.strict else ())
        if common.dry_run:
            more = "" if mode == "map" else ", and before each row the texts of the rows before it"
            print_batch_preview(preview_turns(options, rows), as_json=common.as_json, more=more)
            return
        print_skipped(unreadable)
        settings = common.settings()
        repository, turns = common.repository(settings), turn_options(common, settings)

        def run(on_row: "OnRow") -> "Counts":
            return run_turns(repository, settings, turns, options, rows, on_row, ask=ask_param())

        write_rows(common, output, rows.count, run, resume=resume)


def stop_at(unreadable: Sequence[str]) -> None:
    """Stop at the first line that cannot be read, before anything is sent.

    Raises:
        InputError: there is one.
    """
    if unreadable:
        raise InputError(unreadable[0])


def print_batch_preview(preview: "BatchPreview", *, as_json: bool, more: str = "") -> None:
    """Print what a batch would send."""
    for number, message in preview.errors:
        print_notice(f"{number}: {message}", "yellow")
    if as_json:
        print_json({"rows": preview.rows, "bad": len(preview.errors), "tokens": preview.tokens})
        return
    print_line(
        ngettext(
            "{n} row can be sent, {bad} cannot; about {tokens} tokens to read",
            "{n} rows can be sent, {bad} cannot; about {tokens} tokens to read",
            preview.rows,
            bad=len(preview.errors),
            tokens=f"{preview.tokens:,}",
        )
        + more
    )


def write_rows(
    common: CommonOptions, output: Path | None, count: int, run: "Callable[[OnRow], Counts]", *,
    resume: bool, shorten: bool = False,
) -> None:  # fmt: skip
    """Run a batch: write its rows as they come, and print its summary. `shorten` replaces lists of attempts by their number.

    Raises:
        Exit: not every row was answered.
    """
    from taiwa.operations.result_json import to_json

    # Without a bar where the rows themselves are on the terminal.
    with _opened(output, resume=resume) as out, progress_bar(count, is_shown=not out.isatty()) as update:

        def write(row: Any, counts: "Counts") -> None:  # noqa: ANN401  (a row of either kind)
            written: Any = to_json(row)
            if shorten:
                written["attempts"] = len(written["attempts"])
            out.write(f"{json.dumps(written, ensure_ascii=False)}\n")
            out.flush()
            update(advance=1, description=progress_text(_("rows"), counts.failed, counts.spent.cost))

        counts = run(write)
    _print_summary(common, output, counts)
    if counts.stopped or counts.failed:
        raise click.exceptions.Exit(INTERRUPTED if counts.stopped == "interrupted" else FAILED)


def _print_summary(common: CommonOptions, output: Path | None, counts: "Counts") -> None:
    why = _reason(counts)
    if output is not None and common.as_json:
        from taiwa.operations.result_json import BILL, members

        print_json({**members(counts, f"session? done failed kept {BILL}"), "stopped": why or None})
        return
    print_notice(
        ngettext(
            "{n} row answered, {failed} failed, {kept} kept from before",
            "{n} rows answered, {failed} failed, {kept} kept from before",
            counts.done,
            failed=counts.failed,
            kept=counts.kept,
        ),
        "red" if counts.failed else "dim",
    )
    print_notice(bill_line(counts.spent))
    if why:
        print_notice(_("stopped: {why}; finished rows are saved, --resume continues", why=why), "yellow")


def _reason(counts: "Counts") -> str:
    """Say why a batch stopped early."""
    if counts.stopped == "interrupted":
        return _("interrupted")
    if counts.stopped == "cost":
        return _("the cost limit was reached ({why})", why=counts.reason)
    if counts.stopped == "unavailable":
        return ngettext(
            "the server did not answer {n} row ({error})",
            "the server did not answer {n} rows in a row ({error})",
            counts.unavailable,
            error=counts.reason,
        )
    return ""


@contextmanager
def _opened(output: Path | None, *, resume: bool) -> Generator[TextIO]:
    """Open the file of rows; an existing one is only overwritten when a batch is resumed."""
    if output is None:
        yield sys.stdout
        return
    try:
        # A lone surrogate is written as its escape, which means the same in JSON.
        out = output.open("w" if resume else "x", encoding="utf-8", errors="backslashreplace", newline="\n")
    except FileExistsError:
        raise InputError(f"{output} already exists; --resume continues it, or choose another name") from None
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None
    with out:
        yield out
