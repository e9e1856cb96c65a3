"""Generate answers under a constraint, and explain which tokens it allows: generate, explain."""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import (
    NEW_FILE,
    CommonOptions,
    common_options,
    constraint_options,
    pop_constraint,
    read_text,
    require_prompt,
    whitespace_option,
)
from taiwa.cli.output import (
    NOT_ANSWERED,
    HiddenAnswer,
    enforcement_lines,
    print_each,
    print_line,
    print_no_answer,
    print_notice,
    print_result,
    table,
)
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import UnsupportedError
from taiwa.kernel.messages import Sampling, ShownEvent, TextDelta
from taiwa.kernel.text import plain, truncate
from taiwa.operations.export import html_page
from taiwa.operations.files import write_file
from taiwa.operations.generate import (
    ExplainOptions,
    GenerateOptions,
    WrittenConstraint,
    describe_constraint,
    draw_automaton,
    token_text,
)
from taiwa.operations.generate import explain as explain_constraint
from taiwa.operations.generate import generate as generate_answers

if TYPE_CHECKING:
    from taiwa.constraints.explain import TokenStep
    from taiwa.operations.results import ExplainResult, GenerateResult


USAGE = "generate takes a TEXT, piped text, or a file (-f, -a)"
FAILED = 1


@click.command()
@click.argument("text", required=False)
@constraint_options
@click.option("--system", metavar="TEXT", default="", help="Set the instructions (system prompt).")
@click.option("--prefix", metavar="TEXT", default="", help="Begin the answer with this text.")
@click.option("--stop", metavar="TEXT", multiple=True, help="End before this text; may be given several times.")
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", default=1024, show_default=True, help="Write at most N tokens."
)
@click.option(
    "--temperature", type=click.FloatRange(0), metavar="T", default=0.0, show_default=True,
    help="Set the sampling temperature.",
)  # fmt: skip
@click.option(
    "--top-p", type=click.FloatRange(0, 1, min_open=True), metavar="P", help="Draw from the most likely tokens only."
)
@click.option("--seed", type=int, metavar="N", help="Make sampling reproducible.")
@click.option("--count", type=click.IntRange(1, 64), default=1, show_default=True, help="Write this many answers.")
@click.option("--lenient", is_flag=True, help="Instead of failing, check afterwards what cannot be enforced.")
@whitespace_option(None, "compact; bounded behind --prefix")
@common_options(
    "model", "fragments", "attachments", "attach_as_text", "no_stream", "as_json", "verbose", "max_cost", "retry_paid",
    "wire",
)  # fmt: skip
def generate(common: CommonOptions, text: str | None, **values: Any) -> None:  # noqa: ANN401  (what click parsed)
    """Print the answer of a model to TEXT (`-` for standard input), under a type, schema, pattern, grammar or list of words.

    A model in this process (local:FOLDER) is constrained token by token; other models receive the constraint with the
    request. The answer is always validated, and the exit code is 1 if it violates the constraint. -v shows the forced
    tokens and the number of forward passes. Nothing is stored.

    \b
    taiwa generate -m local:./qwen --type shop:Order "Two large lattes, please" -v
    taiwa generate --type 'name, age int' "Invent a person." --json
    taiwa generate -m local:./qwen --regex "[0-9]{4}-[0-9]{2}" --count 4 --temperature 1 --seed 1 "When?"
    taiwa generate -m vllm:qwen --grammar sum.lark - < question.txt
    taiwa generate -m vllm:qwen-vl --choice yes,no -a cat.png "Is this a cat?"
    """
    kind, source = pop_constraint("generate", values, required=False)
    attachments = common.read_attachments()
    options = GenerateOptions(
        require_prompt(text, USAGE, common.fragments, attachments),
        WrittenConstraint(kind, source, not values["lenient"], values["whitespace"]),
        values["system"], values["prefix"], values["stop"],
        Sampling(values["temperature"], values["top_p"], values["max_tokens"], values["seed"]), values["count"], attachments,
    )  # fmt: skip
    live = options.count == 1 and not common.as_json and not common.no_stream and sys.stdout.isatty()
    settings = common.with_first_model(common.settings())
    is_begun = False

    def show(event: ShownEvent) -> None:
        nonlocal is_begun
        if not live or not isinstance(event, TextDelta):
            hidden.on_event(event)
            return
        hidden.end()
        is_begun = True
        click.echo(plain(event.text), nl=False)

    try:
        with HiddenAnswer() as hidden:
            found = generate_answers(settings, options, show)
    except UnsupportedError as error:
        if options.constraint.strict and error.capability in ("regex", "grammar", "json_schema"):
            hint = _("--lenient sends the request without the constraint, and validates the answer")
            raise UnsupportedError(f"{error.message}; {hint}", capability=error.capability) from None
        raise
    except BaseException:
        if is_begun:  # reports go on a separate line
            click.echo()
        raise
    for answer in found:
        if common.as_json:
            print_result(answer)
        else:
            _print_answer(answer, is_printed=live, verbose=common.verbose)
    if any(each.response.finish == "refusal" for each in found):
        raise click.exceptions.Exit(NOT_ANSWERED)
    if any(each.fits is False for each in found):
        raise click.exceptions.Exit(FAILED)


def _print_answer(answer: "GenerateResult", *, is_printed: bool, verbose: bool) -> None:
    response = answer.response
    if response.finish == "refusal":
        print_no_answer(response.text)
        print_notice(_("the model refused to continue"), "yellow")
        return
    print_line("" if is_printed else response.text)
    if response.finish == "length":
        print_notice(_("cut off at the limit of tokens; raise --max-tokens for more"), "yellow")
    elif response.finish == "repetition":
        print_notice(_("the answer was ended because it repeated itself"), "yellow")
    elif not response.text.strip() and not answer.fits:
        print_notice(_("the model returned no text"), "yellow")
    if answer.fits is False and response.finish != "length":
        print_notice(f"does not fit: {answer.why}", "yellow")
    if not verbose:
        if response.decoding.enforcement is not None and response.decoding.enforcement.checked:
            print_notice(f"checked, not enforced: {', '.join(response.decoding.enforcement.checked)}")
        return
    print_each(enforcement_lines(response.decoding.enforcement))
    if answer.parts and (written := response.decoding.written) is not None:
        print_notice("".join(f"«{text}»" if forced else text for text, forced in answer.parts) + "   («forced»)")
        forced, count = sum(part[1] for part in answer.parts), len(answer.parts)
        print_notice(
            ngettext("{n} token, {forced} of them forced", "{n} tokens, {forced} of them forced", count, forced=forced)
            + "; "
            + ngettext(
                "{n} forward pass, {each} per token, {sparse} with a part of the output head",
                "{n} forward passes, {each} per token, {sparse} with a part of the output head",
                written.passes,
                each=f"{written.passes / count:.2f}",
                sparse=written.sparse_passes,
            )
        )
    if response.usage is not None:
        print_notice(
            _(
                "tokens: {input} read ({cached} cached), {output} written",
                input=f"{response.usage.input_tokens:,}",
                cached=f"{response.usage.cache_read_tokens:,}",
                output=f"{response.usage.output_tokens:,}",
            )
        )


# --- explain ----------------------------------------------------------------------------------------------------------
# Explain a constraint: which tokens it allows at each step of a text, as a table or an HTML page.

SHOWN = 72
MOST_STATES = 100
MOST_MOVES = 24
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
KEY = '<p><small><span class="token">token</span> chosen among several · <span class="token forced">token</span> forced: the only token allowed, so the model is not run · <span class="token refused">token</span> refused</small></p>'


@click.command()
@click.argument("text", required=False)
@constraint_options
@click.option(
    "--vocab", metavar="VOCAB", default="small", show_default=True,
    help="Use these tokens: small, bytes, a tokenizer's FILE or folder, or a GGUF file.",
)  # fmt: skip
@click.option(
    "--engine", type=click.Choice(["reference", "llguidance"]), default="reference", show_default=True,
    help="Use the readable guides, or the engine that decoding uses.",
)  # fmt: skip
@whitespace_option("bounded")
@click.option("--html", "html", metavar="FILE", type=NEW_FILE, help="Write an HTML page that loads nothing.")
@click.option("--dot", "dot", metavar="FILE", type=NEW_FILE, help="Write the automaton for Graphviz.")
@common_options("as_json", "verbose", verbose="Show examples of the allowed tokens.")
def explain(common: CommonOptions, text: str | None, html: Path | None, dot: Path | None, **values: Any) -> None:  # noqa: ANN401
    """Show how a constraint accepts TEXT (`-` for standard input): the tokens that it allows at each step, and why.

    The exit code is 1 if TEXT is refused. Without TEXT, show the first step and describe the accepted texts. -v shows examples
    of tokens. The module of module:Type is run, as python -m would. A tokenizer's file is tekken.json, tiktoken ranks,
    tokenizer.json, or a JSON list of texts that contains "<end>".

    \b
    taiwa explain --regex "[0-9]{1,3}%" 42%
    taiwa explain --type shop:Order '{"name": "tea", "cups": 12}' --html order.html
    taiwa explain --schema order.json --whitespace compact --dot order.dot
    taiwa explain --grammar sum.lark --vocab tekken.json "1 + (2" -v
    """
    kind, source = pop_constraint("explain", values, required=True)
    options = ExplainOptions(kind, source, values["vocab"], values["engine"], values["whitespace"])
    found = explain_constraint(options, None if text is None else read_text(text))
    if dot is not None:
        write_file(dot, draw_automaton(found))
        print_notice(f"wrote {dot}")
    if html is not None:
        write_file(html, page(found))
        print_notice(f"wrote {html}")
    if common.as_json:
        print_result(found)
    elif html is None and dot is None:
        _print(found, is_walked=text is not None, examples=common.verbose)
    if found.walk.refused is not None:
        raise click.exceptions.Exit(FAILED)


def _print(found: "ExplainResult", *, is_walked: bool, examples: bool) -> None:
    """Print the steps as a table with the outcome; without a text, a description of the accepted texts."""
    steps = found.walk.steps if is_walked else found.walk.steps[:1]
    if not is_walked:
        print_each(describe_constraint(found), print_line)
        print_line("")
    heads = ("", _("token"), _("allowed"), _("place"), _("expected"))
    rows = [
        (
            str(number), _token(found, step) + (" (forced)" if step.forced and not step.why else ""),
            f"{step.explanation.count:,}", _place(step), truncate(step.explanation.expected, SHOWN),
        )
        for number, step in enumerate(steps)
    ]  # fmt: skip
    table(heads, rows, frozenset({0, 2}))
    for number, step in enumerate(steps):
        if examples and step.explanation.accepts:
            print_line(f"  {number}: terminals: {' '.join(step.explanation.accepts)}")
        if examples and step.explanation.examples:
            print_line(f"  {number}: allowed: {' '.join(step.explanation.examples)}")
    if is_walked:
        print_line("")
        print_line(_outcome(found), "green" if found.walk.accepted else "yellow")


def _token(found: "ExplainResult", step: "TokenStep") -> str:
    return token_text(found.guide.vocabulary, step)


def _place(step: "TokenStep") -> str:
    parts = [f"state {step.place}" if step.place else "", step.explanation.pointer, step.explanation.keyword]
    return truncate(" ".join(filter(None, parts)), SHOWN)


def _outcome(found: "ExplainResult") -> str:
    last = found.walk.steps[-1]
    if last.why:
        return f"refused: {_token(found, last)} is not allowed at step {len(found.walk.steps) - 1}: {last.why}"
    if not last.final:
        return "accepted so far; the text cannot end here"
    return "accepted: the text is complete" + (
        "" if last.explanation.count <= len(found.guide.vocabulary.end) else "; more may follow"
    )


def page(found: "ExplainResult") -> str:
    """Write a constraint and the steps of a text as one HTML page that loads and runs nothing; all texts are escaped."""
    return html_page(escape(f"{found.kind} {found.title}"), _body(found), escape(POLICY), "masks.css")


def _body(found: "ExplainResult") -> Iterator[str]:
    yield from (f"<p>{escape(line)}</p>" for line in list(describe_constraint(found))[:1])
    if len(found.walk.steps) > 1 or found.walk.refused:
        yield from _strip(found)
    yield '<h2>Step by step</h2><div class="wide"><table>'
    yield "<tr><th></th><th>token</th><th>allowed</th><th>place</th><th>expected</th></tr>"
    for number, step in enumerate(found.walk.steps):
        yield _row(found, number, step)
    yield "</table></div>"
    yield "<h2>The constraint</h2>"
    yield from (f"<p><code>{escape(line)}</code></p>" for line in list(describe_constraint(found))[1:])
    yield f"<details><summary>source</summary><pre><code>{escape(found.source)}</code></pre></details>"
    yield from _maps(found)


def _strip(found: "ExplainResult") -> Iterator[str]:
    """Write the text as a row of tokens, each a link to its step."""
    links = [
        f'<a class="token{_look(step)}" href="#at-{number}">{escape(_seen(_token(found, step)))}</a>'
        for number, step in enumerate(found.walk.steps)
        if step.token is not None
    ]
    yield f'<div class="strip" dir="auto">{" ".join(links)}</div>'
    yield KEY
    last = found.walk.steps[-1]
    yield f'<p class="{"bad" if last.why else "good" if last.final else ""}">{escape(_outcome(found))}</p>'


def _look(step: "TokenStep") -> str:
    return " refused" if step.why else " forced" if step.forced else ""


def _seen(shown: str) -> str:
    """Return a token without its quotes, spaces alone as a visible character."""
    bare = shown[1:-1] if len(shown) > 2 and shown[0] == shown[-1] and shown[0] in "'\"" else shown
    return bare if bare.strip() else bare.replace(" ", "␣")


def _row(found: "ExplainResult", number: int, step: "TokenStep") -> str:
    shown = _token(found, step)
    token = f'<span class="token{_look(step)}">{escape(_seen(shown))}</span>' if shown else "the end of the text"
    examples = " ".join(f'<span class="token">{escape(_seen(each))}</span>' for each in step.explanation.examples)
    lines = (
        f"state {escape(step.place)}" if step.place else "",
        f"<code>{escape(step.explanation.pointer)}</code>" if step.explanation.pointer else "",
        f"<small>{escape(step.explanation.keyword)}</small>" if step.explanation.keyword else "",
        f"<small>terminals: {escape(' '.join(step.explanation.accepts))}</small>" if step.explanation.accepts else "",
    )
    place = "<br>".join(filter(None, lines))
    why = f'<br><span class="why">{escape(step.why)}</span>' if step.why else ""
    return (
        f'<tr id="at-{number}"><td class="number">{number}</td><td>{token}</td><td class="number">{step.explanation.count:,}</td>'
        f"<td>{place}</td><td>{escape(step.explanation.expected)}{why}<br>{examples}</td></tr>"
    )


def _maps(found: "ExplainResult") -> Iterator[str]:
    """Write the transitions of the automaton by token, if there are few."""
    from taiwa.constraints.readable_guides import RegexGuide

    guide = found.guide
    if not isinstance(guide, RegexGuide):
        return
    if len(guide.automaton.moves) > MOST_STATES:
        yield f"<p><small>The automaton has {len(guide.automaton.moves):,} states, too many to list here.</small></p>"
        return
    yield '<h2>Transitions by tokens</h2><div class="wide"><table><tr><th>state</th><th>token → state</th></tr>'
    for state, row in guide.states_to_token_maps.items():
        moves = [
            f'<span class="token">{escape(_seen(guide.vocabulary.show(token)))}</span>&nbsp;→&nbsp;{there}'
            for token, there in list(row.items())[:MOST_MOVES]
        ]
        more = f" and {len(row) - MOST_MOVES:,} more" if len(row) > MOST_MOVES else ""
        final = " <small>final</small>" if guide.is_end(state) else ""
        yield f'<tr><td class="number">{state}{final}</td><td>{"&ensp; ".join(moves)}{more}</td></tr>'
    yield "</table></div>"
