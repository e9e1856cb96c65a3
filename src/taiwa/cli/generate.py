"""`taiwa generate`: one answer of a model under a constraint."""

from typing import Any

import click

from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError

__all__ = ["generate"]

ONE = ("--type", "--schema", "--regex", "--grammar", "--choice")
FAILED = 1
MOST_AT_ONCE = 64


@click.command()
@click.argument("text")
@click.option("--type", "kind", metavar="TYPE", help="module:Type, or a JSON Schema in FILE.json.")
@click.option("--schema", metavar="FILE", help="A JSON Schema, as it is.")
@click.option("--regex", metavar="PATTERN", help="A regular expression for the whole answer.")
@click.option("--grammar", metavar="FILE", help="A grammar in Lark's notation; it begins with start.")
@click.option("--choice", metavar="A,B,…", help="One of some words.")
@click.option("--system", metavar="TEXT", default="", help="Instructions before the text.")
@click.option("--prefix", metavar="TEXT", default="", help="How the answer begins; the model goes on from there.")
@click.option("--stop", metavar="TEXT", multiple=True, help="End before this text; may be given again.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="The most tokens to write.")
@click.option(
    "--temperature", type=click.FloatRange(0), metavar="T", default=0.0, help="0, if not said: the likeliest."
)
@click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), metavar="P", help="Draw from the likeliest only.")
@click.option("--seed", type=int, metavar="N", help="Draw the same again.")
@click.option(
    "--count", type=click.IntRange(1, MOST_AT_ONCE), default=1, help="So many answers side by side; 1 if not said."
)
@click.option("--lenient", is_flag=True, help="Leave out what cannot be enforced, and check it afterwards.")
@click.option(
    "--whitespace", type=click.Choice(["bounded", "compact"]), default="bounded",
    help="Between the signs of JSON: a space or a line break with some, or nothing.",
)  # fmt: skip
@flags("model", "json", "verbose", "max_cost")
def generate(shared: Flags, text: str, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Print what a model writes to TEXT (`-` for standard input), held to a type, a schema, a pattern, a grammar or words.

    A model in this process (local:FOLDER) is held to it token by token; any other is asked to be, in the words of its server.
    Either way the answer is checked, and the exit code is 1 if it does not fit. -v shows the tokens that were forced and how
    often the model was run. No conversation is kept.

    \b
    taiwa generate -m local:./qwen --type shop:Order "Two large lattes, please" -v
    taiwa generate -m local:./qwen --choice tea,coffee "What do you drink?" --json
    taiwa generate -m local:./qwen --regex "[0-9]{4}-[0-9]{2}" --count 4 --temperature 1 --seed 1 "When?"
    taiwa generate -m vllm:qwen --grammar sum.lark - < question.txt
    """
    from taiwa.cli.generating import answers, report, wanted
    from taiwa.cli.opening import read_text

    chosen = [name for name in ONE if given["kind" if name == "--type" else name[2:]] is not None]
    if len(chosen) > 1:
        raise InputError(f"generate takes one of {', '.join(ONE)}, not {len(chosen)} of them")
    wish = wanted(chosen[0][2:] if chosen else "", read_text(text), given)
    found = answers(shared, wish, given["count"])
    report(shared, found)
    if any(each.fits is False for each in found):
        raise click.exceptions.Exit(FAILED)
