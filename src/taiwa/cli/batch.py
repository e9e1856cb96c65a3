"""`taiwa batch`: every line of a file is said."""

from pathlib import Path

import click

from taiwa.cli.options import Flags, flags

__all__ = ["batch"]

MOST_AT_ONCE = 256


@click.command()
@click.argument("app_and_file", nargs=2, metavar="APP FILE")
@click.option(
    "--mode", type=click.Choice(["fold", "map"]), required=True,
    help="fold: one conversation whose state is carried on; map: each row on its own.",
)  # fmt: skip
@click.option(
    "-j", "width", type=click.IntRange(1, MOST_AT_ONCE), default=4, help="Rows at a time (map); 4 if not said."
)
@click.option(
    "--resume", "again", is_flag=True, help="Go on where a batch ended; what was answered is not paid for again."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file.")
@flags("model", "params", "session", "json", "verbose", "dry_run", "max_cost", "no_log", "strict", "store")
def batch(
    shared: Flags, app_and_file: tuple[str, str], mode: str, width: int, again: bool, output: Path | None
) -> None:
    """Say every line of FILE (`-` for standard input) to APP; print one line of JSON per row, in the order of the file.

    A line is a text, or JSON: {"text": …, "id": …, "params": {…}}. A row that fails has an "error" and stops nothing; the
    exit code is 1 then. With -o, --json prints a summary. A fold is kept as the conversation -s NAME (APP-FILE otherwise).

    \b
    taiwa batch translate lines.txt --mode fold -p target_lang=English -o out.jsonl
    taiwa batch linguistic sentences.jsonl --mode map -j 16 -o out.jsonl --max-cost 0.50
    taiwa batch linguistic sentences.jsonl --mode map -j 16 -o out.jsonl --resume
    taiwa batch linguistic sentences.jsonl --mode map --dry-run
    """
    from taiwa.cli.batching import Batch
    from taiwa.cli.rows import read_rows

    app, file = app_and_file
    with read_rows(file) as rows:
        job = Batch(shared, app, rows, again, output)
        if shared.dry_run:
            job.foretell(mode)
        elif mode == "fold":
            job.fold()
        else:
            job.map(width)
