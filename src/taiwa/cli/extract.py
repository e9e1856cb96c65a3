"""Typed answers: extract a value from text, parse an answer, render a type as a schema."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.apps.output_types import load_output_type
from taiwa.cli.options import (
    CommonOptions,
    common_options,
    open_session,
    preview,
    read_params,
    read_whole,
    require_prompt,
    row_options,
)
from taiwa.cli.output import (
    HiddenAnswer,
    attempt_lines,
    bill_line,
    fix_lines,
    pretty,
    print_each,
    print_line,
    print_notice,
    print_result,
    table,
)
from taiwa.cli.say import run_batch
from taiwa.i18n import _
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.usage_limits import usage_of
from taiwa.operations import generate

if TYPE_CHECKING:
    from taiwa.kernel.attachments import Attachment
    from taiwa.operations.generate import SchemaStyle

USAGE = "extract takes a TYPE and a TEXT, piped text, a file (-f, -a), or --file and the name of a file of texts"
MODES = ("auto", "native", "tool", "tool_optional", "prompt")
DEFAULTS = {"max_repairs": 1, "guess": False, "mode": "auto"}
"""The defaults of the options that are parameters of the app `extract`."""


def _type_is_an_argument(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise InputError(f"TYPE is the first argument: taiwa extract {shlex.quote(given)} TEXT")


@click.command()
@click.argument("target", required=False, metavar="[TYPE]")
@click.argument("text", required=False)
@click.option(
    "--type", metavar="TYPE", hidden=True, expose_value=False, is_eager=True, callback=_type_is_an_argument,
    help="Say that TYPE is the first argument.",
)  # fmt: skip
@click.option("--file", metavar="FILE", help="Extract from every line of FILE; - is standard input.")
@click.option(
    "--max-repairs", type=click.IntRange(0, 3), default=1, show_default=True,
    help="Send an invalid answer back at most N times.",
)  # fmt: skip
@click.option(
    "--guess/--no-guess", default=False, show_default=True, help="Accept values that can be parsed only by a guess."
)
@click.option(
    "--mode", type=click.Choice(MODES), default="auto", show_default=True, help="Set how the value is requested."
)
@click.option("--strict", "stops", is_flag=True, help="Stop at a line that cannot be read, before anything is sent.")
@row_options
@common_options(
    "model", "session", "continue_latest", "system", "temperature", "max_tokens", "fragments", "attachments", "attach_as_text",
    "as_json", "verbose", "dry_run", "max_cost", "retry_paid", "requests_per_minute", "tokens_per_minute", "no_store", "store",
    system="Set the instructions (system prompt).",
)  # fmt: skip
def extract(
    common: CommonOptions,
    target: str | None,
    text: str | None,
    file: str | None,
    max_repairs: int,
    guess: bool,
    mode: Any,  # noqa: ANN401  (one of MODES)
    stops: bool,
    width: int,
    resume: bool,
    output: Path | None,
    max_failures: int,
) -> None:
    """Extract a value of TYPE from TEXT (`-` for standard input), and print it as JSON.

    TYPE is FILE.py:Type or module:Type, whose Python code is run, FILE.ts:Type for a type that a file declares in
    TypeScript, a JSON Schema in a file that ends in .json, or fields such as 'name, age: int, bio: one sentence'. -v
    shows the attempts, the repairs and the bill. With --file, one line of JSON per row is printed, in the order of the
    file (lines of text, JSON Lines, or a table in CSV whose rows keep the names of their columns); a row that fails has an "error"
    and does not stop the batch; the exit code is then 1. -c and -s continue a conversation,
    with its TYPE if no other is given, and `log`, `undo`, `fork` and `edit` work on it.

    \b
    taiwa extract 'drink, count int' "Two large lattes, please"
    taiwa extract shop:Order "Two large lattes, please"
    taiwa extract -c "And a small tea"
    taiwa extract shop:Order - -v < letter.txt
    taiwa extract shop:Order -a receipt.png
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --max-cost 0.50
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --resume
    """
    if text is None and file is None and common.continues:
        target, text = None, target
    given = {"max_repairs": max_repairs, "guess": guess, "mode": mode}
    params = tuple(f"{name}={value}" for name, value in given.items() if value != DEFAULTS[name])
    common = replace(common, schema=target, params=params)
    if file is None:
        if resume or output or stops:
            raise InputError("--resume, --strict and -o require --file")
        attachments = common.read_attachments()
        text = require_prompt(text, USAGE, common.fragments, attachments)
        if target is None and not common.continues:
            raise InputError(USAGE)
        _extract(common, text, attachments)
        return
    if text is not None or common.fragments or common.attachments or common.session or common.continue_latest:
        raise InputError(USAGE)
    from taiwa.operations.batch import BatchOptions

    options = BatchOptions(
        "extract", "map", read_params(params), "", width, resume, common.answers(), max_failures
    )  # fmt: skip
    run_batch(replace(common, strict=stops), str(file), options, output, shorten=not common.verbose)


def _extract(common: CommonOptions, text: str, attachments: "tuple[Attachment, ...]") -> None:
    from taiwa.flows.extract import ExtractError

    if common.dry_run:
        preview(common, "extract", text, attachments)
        return
    try:
        with HiddenAnswer() as hidden:
            session = open_session(common, "extract", observers=(hidden.on_event,))
            turn = session.say(text, attachments)
    except ExtractError as error:
        if common.verbose:
            print_each(attempt_lines(error.tries))
            print_notice(bill_line(usage_of(error)))
        raise
    if common.as_json:
        print_result(turn)
    else:
        click.echo(pretty(turn.reply.value))
    if common.verbose:
        print_each(attempt_lines(turn.reply.findings.attempts))
        print_notice(f"{turn.session} {turn.node[:12]} · {bill_line(turn.spent)}")


@click.command()
@click.argument("file")
@click.option(
    "--type",
    "target",
    metavar="TYPE",
    required=True,
    help="Use a type: FILE.py:Type, module:Type, FILE.ts:Type, FILE.json, 'name, age int'.",
)
@click.option(
    "--guess/--no-guess", default=True, show_default=True, help="Accept a value that can be parsed only by a guess."
)
@common_options("as_json", "verbose", verbose="Show the repairs.")
def parse(common: CommonOptions, file: str, target: str, guess: bool) -> None:
    """Parse the text of an answer in FILE (`-` for standard input) as TYPE and print its value as JSON. No model is called.

    Malformed JSON is repaired; -v shows the repairs. A text that ends before its value does is refused. The Python code of
    FILE.py:Type and module:Type is run.

    \b
    taiwa parse answer.txt --type shop:Order -v
    taiwa parse - --type schema.json --json < answer.txt
    """
    output_type = load_output_type(target)
    try:
        found = generate.parse(output_type, read_whole(file), guess=guess)
    except OutputValidationError as error:
        for line in error.diagnostics[1:] if common.verbose else ():
            print_notice(line, "yellow")
        raise InputError(error.message) from None  # the text is the input, not the answer of a model
    if common.as_json:
        print_result(found)
        return
    click.echo(pretty(found.value))
    if found.guessed:
        print_notice(_("parsed by a guess; -v shows where, --no-guess refuses it"), "yellow")
    print_each(fix_lines(found.fixes) if common.verbose else ())


@click.command()
@click.argument("target", metavar="TYPE")
@click.option(
    "--style", type=click.Choice(["typescript", "jsonschema", "openai"]), default="typescript", show_default=True,
    help="Set the style: as in prompts, as for servers that enforce a schema, or OpenAI's strict form.",
)  # fmt: skip
@click.option("--count", is_flag=True, help="Print the estimated tokens of each style.")
@common_options("as_json")
def schema(common: CommonOptions, target: str, style: "SchemaStyle", count: bool) -> None:
    """Print TYPE as a model sees it.

    TYPE is FILE.py:Type or module:Type, whose Python code is run, FILE.ts:Type, a JSON Schema in a file that ends in .json,
    or fields such as 'name, age int'.

    \b
    taiwa schema shop:Order
    taiwa schema shop:Order --style openai         also list constraints that become descriptions
    taiwa schema schema.json --count
    """
    found = generate.render_schema(load_output_type(target), style)
    if common.as_json:
        print_result(found)
        return
    if count:
        rows = [(name, f"about {number:,}") for name, number in found.tokens.items()]
        table((_("style"), _("tokens")), rows, frozenset({1}))
        return
    print_line(found.texts[style])
    if style == "openai":
        for line in found.relaxed:
            print_notice(f"stated in a description: {line}")
        for line in found.unsupported:
            print_notice(f"cannot be stated, so this form is not used: {line}", "yellow")
