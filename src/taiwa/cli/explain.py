"""`taiwa explain`: what a constraint lets through, token by token."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.cli.explaining import Subject
    from taiwa.constraints.explain import GuideTrace

__all__ = ["explain"]

ONE = ("--type", "--schema", "--regex", "--grammar", "--choice")
NEW_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("text", required=False)
@click.option("--type", "kind", metavar="TYPE", help="module:Type, or a JSON Schema in FILE.json.")
@click.option("--schema", metavar="FILE", help="A JSON Schema, as it is.")
@click.option("--regex", metavar="PATTERN", help="A regular expression for the whole text.")
@click.option("--grammar", metavar="FILE", help="A grammar in Lark's notation; it begins with start.")
@click.option("--choice", metavar="A,B,…", help="One of some words.")
@click.option(
    "--vocab",
    metavar="VOCAB",
    default="small",
    help="small, builtin (the model's), bytes, or a tokenizer's FILE; small if not said.",
)
@click.option(
    "--engine", type=click.Choice(["reference", "llguidance"]), default="reference",
    help="Who says it: the plain guides, or the engine that decoding uses.",
)  # fmt: skip
@click.option(
    "--whitespace", type=click.Choice(["bounded", "compact"]), default="bounded",
    help="Between the signs of JSON: a space or a line break with some, or nothing.",
)  # fmt: skip
@click.option("--html", "page", metavar="FILE", type=NEW_FILE, help="Write a page that loads nothing.")
@click.option("--dot", "drawing", metavar="FILE", type=NEW_FILE, help="Write the automaton for Graphviz.")
@flags("json", "verbose")
def explain(shared: Flags, text: str | None, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Show how a constraint lets TEXT (`-` for standard input) through: at each place the tokens that may come, and why.

    Without TEXT, show the start and what the whole texts are like. -v shows examples of tokens. The module of module:Type is
    run, as python -m would. A file of a tokenizer is tekken.json, tiktoken ranks, tokenizer.json, or a JSON list of texts
    with "<end>" among them.

    \b
    taiwa explain --regex "[0-9]{1,3}%" 42%
    taiwa explain --type shop:Order '{"name": "tea", "cups": 12}' --html order.html
    taiwa explain --schema order.json --whitespace compact --dot order.dot
    taiwa explain --grammar sum.lark --vocab tekken.json "1 + (2" -v
    """
    from taiwa.cli.explaining import report, subject, told
    from taiwa.cli.opening import read_text
    from taiwa.cli.screen import emit
    from taiwa.constraints.explain import trace_text

    chosen = [name for name in ONE if given["kind" if name == "--type" else name[2:]] is not None]
    if len(chosen) != 1:
        raise InputError(f"explain takes one of {', '.join(ONE)}" + (f", not {len(chosen)} of them" if chosen else ""))
    found = subject(chosen[0][2:], given)
    walk = trace_text(found.guide, None if text is None else read_text(text))
    if given["drawing"]:
        _write(given["drawing"], _drawn(found, walk))
    if given["page"]:
        from taiwa.cli.explainpage import page

        _write(given["page"], page(found, walk))
    if shared.as_json:
        emit(told(found, walk))
    elif not (given["page"] or given["drawing"]):
        report(found, walk, asked=text is not None, examples=shared.verbose)


def _drawn(found: "Subject", walk: "GuideTrace") -> str:
    from taiwa.constraints.automaton import to_dot
    from taiwa.constraints.readable_guides import RegexGuide

    if not isinstance(found.guide, RegexGuide):
        raise InputError("--dot draws an automaton: a grammar has none, and --engine llguidance shows none")
    places = (found.guide.drawn(int(step.place)) for step in walk.steps if step.place and len(walk.steps) > 1)
    return to_dot(found.guide.chars, found.title, (place for place in places if place is not None))


def _write(path: Path, text: str) -> None:
    from taiwa.cli.screen import tell

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    tell(f"wrote {path}")
