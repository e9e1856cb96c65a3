"""`taiwa eval order`: what a model writes down at the order desk, beside what was ordered."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.evaloptions import FILE, running
from taiwa.cli.options import Flags, flags
from taiwa.i18n import ngettext

if TYPE_CHECKING:
    from taiwa.lab.evaluation.items import DataSet
    from taiwa.lab.ordering.orders import Ordering

__all__ = ["order_"]

MOST_REPAIRS = 5


@click.command("order", short_help="Measure what is written down at the order desk.")
@click.option(
    "--data", type=FILE, required=True, metavar="FILE", help="Requests: rows with id and input, and perhaps a domain."
)
@click.option("--key", type=FILE, required=True, metavar="FILE", help="What each of them orders, by id: YAML or JSON.")
@click.option(
    "--repairs", type=click.IntRange(0, MOST_REPAIRS), default=0, metavar="N",
    help="Ask again so often for a delta that cannot be read; 0 if not said.",
)  # fmt: skip
@running
@flags("model", "json", "verbose", "dry_run", "max_cost")
def order_(shared: Flags, data: Path, key: Path, repairs: int, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Measure what a model writes down at the order desk: the app `order`, each request in a conversation of its own.

    A key holds under the id of a request the lines that it orders, each with name, quantity (1 if not said), size and options.
    Lines are right by name and quantity, whatever their order; case, accents, plurals, the order of words and other names
    of one thing do not count. Requests that the key does not know are left out.

    \b
    taiwa eval order --data requests.jsonl --key key.yaml -m ollama:qwen3
    taiwa eval order --data requests.jsonl --key key.yaml --only coffeeShop --out runs/order --json
    """
    from taiwa.cli.evaluating import Asked, conclude, conduct_of, run
    from taiwa.cli.output import bill_line, tell
    from taiwa.lab.evaluation.conduct import Evaluation
    from taiwa.lab.ordering.key import read_key
    from taiwa.lab.ordering.orders import Ordering, read_requests
    from taiwa.lab.ordering.reports import chart_of, report_of

    asked = Asked(given.pop("width"), given.pop("on"), given.pop("out"), given.pop("resume"))
    known = read_key(key)
    items, notes = read_requests(
        data, known, {word.strip() for word in (given["only"] or "").split(",") if word.strip()}
    )
    items = _first(items, given["limit"])
    work = Ordering(known.digest, shared.settings(), repairs)
    if shared.dry_run:
        _foretell(shared, work, items)
        return
    with Evaluation(work, items, conduct_of(shared, asked)) as evaluation:
        ended = run(evaluation, quiet=shared.as_json)
        if shared.verbose:
            tell(bill_line(evaluation.spent))
        report = report_of(evaluation, notes)
        conclude(evaluation, report, chart_of(report), ended, as_json=shared.as_json)


def _first(items: "DataSet", limit: int | None) -> "DataSet":
    from dataclasses import replace

    return replace(items, items=items.items[:limit])


def _foretell(shared: Flags, work: "Ordering", items: "DataSet") -> None:
    """Say what would be asked; nothing is called."""
    from taiwa.cli.output import emit, say_line
    from taiwa.kernel.records import record
    from taiwa.lab.evaluation.running import Job
    from taiwa.operations.say import request_text, request_tokens

    first = work.first_request(Job(work.settings[0], items.items[0]))
    if shared.as_json:
        emit({"rows": len(items.items), "tokens": request_tokens(first), "request": record(first)})
        return
    say_line(
        ngettext(
            "{n} request, the first of {tokens} tokens",
            "{n} requests, the first of {tokens} tokens",
            len(items.items),
            tokens=f"{request_tokens(first):,}",
        )
    )
    if shared.verbose:
        say_line(request_text(first))
