"""Generate answers under a constraint."""

from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import (
    CommonOptions,
    common_options,
    constraint_options,
    pop_constraint,
    read_prompt,
    whitespace_option,
)
from taiwa.cli.output import enforcement_lines, print_line, print_notice, print_result
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.text import plain

if TYPE_CHECKING:
    from taiwa.operations.results import GenerateResult

FAILED = 1


@click.command()
@click.argument("text", default="")
@constraint_options
@click.option("--system", metavar="TEXT", default="", help="Give the model these instructions (system prompt).")
@click.option(
    "--task", type=click.Choice(["solve"]), help="Mark the request as this task of taiwa; builtin answers no other request."
)  # fmt: skip
@click.option("--prefix", metavar="TEXT", default="", help="Begin the answer with this text.")
@click.option("--stop", metavar="TEXT", multiple=True, help="End before this text; may be given several times.")
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", default=1024, show_default=True, help="Write at most N tokens."
)
@click.option(
    "--temperature", type=click.FloatRange(0), metavar="T", default=0.0, show_default=True,
    help="Set the temperature of sampling.",
)  # fmt: skip
@click.option(
    "--top-p", type=click.FloatRange(0, 1, min_open=True), metavar="P", help="Draw from the most likely tokens only."
)
@click.option("--seed", type=int, metavar="N", help="Make sampling reproducible.")
@click.option("--count", type=click.IntRange(1, 64), default=1, show_default=True, help="Write this many answers.")
@click.option("--lenient", is_flag=True, help="Check clauses that cannot be enforced afterwards, instead of failing.")
@whitespace_option
@common_options(
    "model", "fragments", "attachments", "attach_as_text", "no_stream", "as_json", "verbose", "max_cost", "retry_paid",
    "wire",
)  # fmt: skip
def generate(common: CommonOptions, text: str, **values: Any) -> None:  # noqa: ANN401  (what click parsed)
    """Print the answer of a model to TEXT (`-` for standard input), under a type, schema, pattern, grammar or list of words.

    A model in this process (local:FOLDER) is constrained token by token; of another model the server is asked to. Either
    way the answer is checked, and the exit code is 1 if it does not fit. -v shows the tokens that were forced and how often
    the model was run. Nothing is stored.

    \b
    taiwa generate -m local:./qwen --type shop:Order "Two large lattes, please" -v
    taiwa generate -m local:./qwen --choice tea,coffee "What do you drink?" --json
    taiwa generate -m local:./qwen --regex "[0-9]{4}-[0-9]{2}" --count 4 --temperature 1 --seed 1 "When?"
    taiwa generate -m vllm:qwen --grammar sum.lark - < question.txt
    taiwa generate -m vllm:qwen-vl --choice yes,no -a cat.png "Is this a cat?"
    """
    from taiwa.kernel.messages import Sampling
    from taiwa.operations.generate import GenerateOptions
    from taiwa.operations.generate import generate as generate_answers

    kind, source = pop_constraint("generate", values, required=False)
    attachments = common.read_attachments()
    options = GenerateOptions(
        read_prompt(text, common.fragments), kind, source, values["system"], values["prefix"], values["stop"],
        Sampling(values["temperature"], values["top_p"], values["max_tokens"], values["seed"]),
        values["count"], not values["lenient"], values["whitespace"], values["task"] or "", attachments,
    )  # fmt: skip
    live = options.count == 1 and not common.as_json and not common.no_stream
    settings = common.with_first_model(common.settings())
    written: list[str] = []

    def show(text: str) -> None:
        written.append(text)
        click.echo(plain(text), nl=False)

    try:
        found = generate_answers(settings, options, show if live else lambda _: None)
    except UnsupportedError as error:
        if options.strict and error.capability in ("regex", "grammar", "json_schema"):
            hint = _("--lenient asks without the constraint, and checks the answer")
            raise UnsupportedError(f"{error.message}; {hint}", capability=error.capability) from None
        raise
    except BaseException:
        if written:  # what is reported stands on a line of its own
            click.echo()
        raise
    for answer in found:
        if common.as_json:
            print_result(answer)
        else:
            _print_answer(answer, is_printed=live, verbose=common.verbose)
    if any(each.fits is False for each in found):
        raise click.exceptions.Exit(FAILED)


def _print_answer(answer: "GenerateResult", *, is_printed: bool, verbose: bool) -> None:
    print_line("" if is_printed else answer.text)
    if answer.finish == "length":
        print_notice(_("cut off at the limit of tokens; raise --max-tokens for more"), "yellow")
    if answer.fits is False:
        print_notice(f"does not fit: {answer.why}", "yellow")
    if not verbose:
        if answer.enforcement is not None and answer.enforcement.checked:
            print_notice(f"checked, not enforced: {', '.join(answer.enforcement.checked)}")
        return
    for line in enforcement_lines(answer.enforcement):
        print_notice(line)
    if answer.parts:
        print_notice("".join(f"«{text}»" if forced else text for text, forced in answer.parts) + "   («forced»)")
        forced, count = sum(part[1] for part in answer.parts), len(answer.parts)
        print_notice(
            ngettext("{n} token, {forced} of them forced", "{n} tokens, {forced} of them forced", count, forced=forced)
            + "; "
            + ngettext(
                "{n} forward pass, {each} per token, {sparse} with a part of the output head",
                "{n} forward passes, {each} per token, {sparse} with a part of the output head",
                answer.forwards,
                each=f"{answer.forwards / count:.2f}",
                sparse=answer.sparse,
            )
        )
    if answer.usage is not None:
        print_notice(
            _(
                "tokens: {input} read ({cached} cached), {output} written",
                input=f"{answer.usage.input_tokens:,}",
                cached=f"{answer.usage.cache_read_tokens:,}",
                output=f"{answer.usage.output_tokens:,}",
            )
        )
