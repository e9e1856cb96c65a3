"""`taiwa extract`: a value of a type from a text, or from every line of a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.flows.extract import Extracted
    from taiwa.kernel.session import Done
    from taiwa.settings import Settings
    from taiwa.talk.typed import Typing

__all__ = ["extract"]

MOST_AT_ONCE = 256
MODES = ("auto", "native", "tool", "offer", "prompt")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch, and how they are done."""

    width: int
    again: bool
    output: Path | None


@click.command()
@click.argument("target", metavar="TYPE")
@click.argument("text", required=False)
@click.option("--file", metavar="FILE", help="Extract from every line of FILE instead; - is standard input.")
@click.option(
    "--repair", type=click.IntRange(0, 3), default=1, help="Rounds of repair for a bad answer; 1 if not said."
)
@click.option("--budget", type=click.IntRange(1), metavar="TOKENS", help="The most tokens for one value.")
@click.option("--guess", is_flag=True, help="Take what can be read only by a guess.")
@click.option("--mode", type=click.Choice(MODES), default="auto", help="How to ask: as the server can, if not said.")
@click.option("-j", "width", type=click.IntRange(1, MOST_AT_ONCE), default=4, help="Rows at a time; 4 if not said.")
@click.option("--resume", "again", is_flag=True, help="Go on where a batch ended; no row is paid for again.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to a file.")
@flags("model", "json", "verbose", "dry_run", "max_cost", "no_log", "store")
def extract(shared: Flags, target: str, text: str | None, file: str | None, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Print what TEXT (`-` for standard input) says as a value of TYPE, in JSON.

    TYPE is module:Type, whose module is run as python -m would, or a JSON Schema in a file that ends in .json. -v shows the
    attempts, what was mended and the bill. With --file, one line of JSON per row is printed, in the order of the file; a
    row that fails has an "error" and stops nothing, the exit code is 1 then.

    \b
    taiwa extract shop:Order "Two large lattes, please"
    taiwa extract shop:Order - -v < letter.txt
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --max-cost 0.50
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --resume
    """
    from taiwa.cli.opening import read_text
    from taiwa.cli.targets import load_shape
    from taiwa.flows.repair import Repair
    from taiwa.talk.typed import Typing

    rows = Rows(given["width"], given["again"], given["output"])
    if (text is None) == (file is None):
        raise InputError("extract takes a TEXT, or --file and the name of a file of texts")
    if file is None and (rows.again or rows.output):
        raise InputError("--resume and -o are for the rows of --file")
    repair = Repair(given["repair"], budget_tokens=given["budget"], guess=given["guess"])
    typing = Typing(load_shape(target), repair, given["mode"])
    if text is not None:
        _one(shared, typing, read_text(text))
    else:
        _many(shared, typing, str(file), rows)


def _one(shared: Flags, typing: "Typing", text: str) -> None:
    from taiwa.cli.hear import bill_line
    from taiwa.cli.opening import manner_of
    from taiwa.cli.screen import tell
    from taiwa.cli.values import attempt_lines
    from taiwa.flows.extract import ExtractError
    from taiwa.kernel.ledger import Spent
    from taiwa.talk.opening import open_voice
    from taiwa.talk.typed import extract_one

    chosen = shared.settings()
    if shared.dry_run:
        _foretell(shared, chosen, typing, text)
        return
    voice = open_voice(None, chosen)
    try:
        done = extract_one(shared.desk(chosen), voice, manner_of(shared, chosen), typing, text)
    except ExtractError as error:
        if shared.verbose:
            for line in attempt_lines(error.tries):
                tell(line)
            if isinstance(error.spent, Spent):
                tell(bill_line(error.spent))
        raise
    _print(shared, typing, done)


def _print(shared: Flags, typing: "Typing", done: "Done[Extracted[Any]]") -> None:
    from taiwa.cli.hear import bill_line, usage_of
    from taiwa.cli.screen import emit, tell
    from taiwa.cli.values import attempt_lines, pretty, told_attempt
    from taiwa.flows.extract import plain_json

    value, attempts, spent = plain_json(typing.shape, done.value.value), done.value.attempts, done.spent
    if shared.as_json:
        emit(
            {
                "value": value, "attempts": [told_attempt(each) for each in attempts], "usage": usage_of(spent),
                "cost": None if spent.cost is None else spent.cost / 1e9, "seconds": round(spent.seconds, 3),
            }
        )  # fmt: skip
    else:
        click.echo(pretty(value))
    if shared.verbose:
        for line in attempt_lines(attempts):
            tell(line)
        tell(bill_line(spent))


def _foretell(shared: Flags, chosen: "Settings", typing: "Typing", text: str) -> None:
    """Print the request that would be sent first; nothing is called."""
    from taiwa.apps.render import request_text, request_tokens
    from taiwa.cli.screen import emit, say_line
    from taiwa.kernel.records import record
    from taiwa.talk.opening import open_voice
    from taiwa.talk.typed import first_request

    request = first_request(typing, text, open_voice(None, chosen).model)
    if shared.as_json:
        emit({"digest": request.digest, "request": record(request), "tokens": request_tokens(request)})
    else:
        say_line(request_text(request))


def _many(shared: Flags, typing: "Typing", file: str, rows: Rows) -> None:
    from taiwa.cli.rows import read_rows
    from taiwa.cli.typedrows import TypedBatch

    with read_rows(file) as given:
        job = TypedBatch(shared, "", given, rows.again, rows.output)
        if shared.dry_run:
            job.foretell_types(typing)
        else:
            job.extract(typing, rows.width)
