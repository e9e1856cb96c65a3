"""Typed answers: extract a value from text, parse an answer, render a type as a schema."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import CommonOptions, common_options, read_whole, require_prompt, row_options, turn_options
from taiwa.cli.output import (
    HiddenAnswer,
    attempt_lines,
    bill_line,
    fix_lines,
    pretty,
    print_each,
    print_line,
    print_notice,
    print_preview,
    print_result,
    print_skipped,
    table,
)
from taiwa.cli.say import print_batch_preview, stop_at, write_rows
from taiwa.kernel.errors import InputError, OutputValidationError
from taiwa.kernel.messages import Sampling
from taiwa.kernel.usage_limits import RunUsage
from taiwa.operations import generate

if TYPE_CHECKING:
    from taiwa.flows.extract import StyleChoice
    from taiwa.kernel.attachments import Attachment
    from taiwa.operations.batch import Counts, OnRow
    from taiwa.operations.generate import SchemaStyle
    from taiwa.sessions.batch import ExtractRun

USAGE = "extract takes a TEXT, piped text, a file (-f, -a), or --file and the name of a file of texts"
MODES = ("auto", "native", "tool", "tool_optional", "prompt")


def _type_is_an_argument(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise InputError(f"TYPE is the first argument: taiwa extract {shlex.quote(given)} TEXT")


@click.command()
@click.argument("target", metavar="TYPE")
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
    "--repair-budget", type=click.IntRange(1), metavar="TOKENS", help="Stop repairs of a value after N tokens."
)
@click.option(
    "--guess/--no-guess", default=False, show_default=True, help="Accept values that can be parsed only by a guess."
)
@click.option(
    "--mode", type=click.Choice(MODES), default="auto", show_default=True, help="Set how the value is requested."
)
@click.option(
    "--style",
    type=click.Choice(("auto", "plain", "after", "typechat", "name")),
    default="auto",
    show_default=True,
    help="Show the type in the system message (plain), after the text, as TypeChat does, or only its name.",
)
@click.option("--strict", "stops", is_flag=True, help="Stop at a line that cannot be read, before anything is sent.")
@row_options
@common_options(
    "model", "system", "temperature", "max_tokens", "fragments", "attachments", "attach_as_text",
    "as_json", "verbose", "dry_run", "max_cost", "retry_paid", "requests_per_minute", "tokens_per_minute", "no_store", "store",
    system="Set the instructions (system prompt).",
)  # fmt: skip
def extract(
    common: CommonOptions,
    target: str,
    text: str | None,
    file: str | None,
    max_repairs: int,
    repair_budget: int | None,
    guess: bool,
    mode: Any,  # noqa: ANN401  (one of MODES)
    style: "StyleChoice",
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
    file (lines of text, JSON Lines, or a table in CSV whose rows keep the names of their columns); a row that fails has an "error" and does not stop the batch; the exit code is then 1.

    \b
    taiwa extract 'drink, count int' "Two large lattes, please"
    taiwa extract shop:Order "Two large lattes, please"
    taiwa extract shop:Order - -v < letter.txt
    taiwa extract shop:Order -a receipt.png
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --max-cost 0.50
    taiwa extract shop:Order --file lines.txt -j 8 -o orders.jsonl --resume
    """
    from taiwa.flows.extract import RepairPolicy
    from taiwa.operations.generate import load_output_type
    from taiwa.sessions.batch import ExtractRun

    if file is not None and (text is not None or common.fragments or common.attachments):
        raise InputError(USAGE)
    if file is None and (resume or output or stops):
        raise InputError("--resume, --strict and -o require --file")
    repair = RepairPolicy(max_repairs, budget_tokens=repair_budget, guess=guess)
    sampling = Sampling(0.0 if common.temperature is None else common.temperature, max_tokens=common.max_tokens)
    extract_run = ExtractRun(load_output_type(target), repair, mode, style, common.system or "", sampling)
    if file is None:
        attachments = common.read_attachments()
        text = require_prompt(text, USAGE, common.fragments, attachments)
        _extract_one(common, extract_run, text, attachments)
        return
    from taiwa.operations.batch import open_rows, preview_extractions, run_extractions

    with open_rows(str(file)) as rows:
        unreadable = rows.unreadable()
        stop_at(unreadable if stops else ())
        settings = common.with_first_model(common.settings())
        if common.dry_run:
            print_batch_preview(preview_extractions(settings, extract_run, rows), as_json=common.as_json)
            return
        print_skipped(unreadable)
        repository, turns = common.repository(settings), turn_options(common, settings)

        def run(on_row: "OnRow") -> "Counts":
            return run_extractions(
                repository, settings, turns, extract_run, rows, on_row,
                width=width, resume=resume, max_failures=max_failures,
            )  # fmt: skip

        write_rows(common, output, rows.count, run, resume=resume, shorten=not common.verbose)


def _extract_one(
    common: CommonOptions, extract_run: "ExtractRun", text: str, attachments: "tuple[Attachment, ...]"
) -> None:
    from taiwa.flows.extract import ExtractError
    from taiwa.operations import say

    settings = common.with_first_model(common.settings())
    if common.dry_run:
        print_preview(say.preview_extraction(settings, extract_run, text, attachments), as_json=common.as_json)
        return
    try:
        turns = turn_options(common, settings)
        repository = common.repository(settings)
        with HiddenAnswer() as shown:
            result = generate.extract(repository, settings, turns, extract_run, text, attachments, shown.on_event)
    except ExtractError as error:
        if common.verbose:
            print_each(attempt_lines(error.tries))
            if isinstance(error.spent, RunUsage):
                print_notice(bill_line(error.spent))
        raise
    if common.as_json:
        print_result(result)
    else:
        click.echo(pretty(result.value))
    if common.verbose:
        print_each(attempt_lines(result.attempts))
        print_notice(bill_line(result.spent))


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
    output_type = generate.load_output_type(target)
    try:
        found = generate.parse(output_type, read_whole(file), guess=guess)
    except OutputValidationError as error:
        for line in error.diagnostics[1:] if common.verbose else ():
            print_notice(line, "yellow")
        raise
    if common.as_json:
        print_result(found)
        return
    click.echo(pretty(found.value))
    if found.guessed:
        print_notice("parsed by a guess; -v shows where, --no-guess refuses it", "yellow")
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
    found = generate.render_schema(generate.load_output_type(target), style)
    if common.as_json:
        print_result(found)
        return
    if count:
        rows = [(name, f"about {number:,}") for name, number in found.tokens.items()]
        table(("style", "tokens"), rows, frozenset({1}))
        return
    print_line(found.texts[style])
    if style == "openai":
        for line in found.relaxed:
            print_notice(f"stated in a description: {line}")
        for line in found.unsupported:
            print_notice(f"cannot be stated, so this form is not used: {line}", "yellow")
