"""Explain a constraint: which tokens it allows at each step of a text, as a table or an HTML page."""

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
    whitespace_option,
)
from taiwa.cli.output import print_line, print_notice, print_result, table
from taiwa.kernel.text import truncate

if TYPE_CHECKING:
    from taiwa.constraints.explain import TokenStep
    from taiwa.operations.results import ExplainResult

FAILED = 1
SHOWN = 72
MOST_STATES = 100
MOST_MOVES = 24
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; font: 16px/1.6 system-ui, "Noto Sans CJK JP", sans-serif; --line: #8885; --good: #2a7d46; --bad: #b3362b; --sure: #8a6a00 }
@media (prefers-color-scheme: dark) { :root { --good: #6fce8f; --bad: #ff8f80; --sure: #e3c15a } }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin-top: 2rem }
code, .token { font-family: ui-monospace, "Noto Sans Mono CJK JP", monospace; font-size: .9rem; white-space: pre-wrap; overflow-wrap: anywhere }
pre { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; max-height: 20rem }
.strip { line-height: 2.2; margin: 1rem 0 }
.token { border: 1px solid var(--line); border-radius: .3rem; padding: .1rem .3rem; text-decoration: none; color: inherit }
.token.forced { border-style: dashed; color: var(--sure) }
.token.refused { border-color: var(--bad); color: var(--bad); text-decoration: line-through }
.good { color: var(--good) } .bad { color: var(--bad) }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: start; vertical-align: top; padding: .35rem .6rem; border-top: 1px solid var(--line) }
td.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap }
tr:target { background: #8882 }
small { opacity: .75 }
.why { color: var(--bad) }
"""
KEY = '<p><small><span class="token">token</span> chosen among several · <span class="token forced">token</span> forced: the only token allowed, so the model is not run · <span class="token refused">token</span> refused</small></p>'


@click.command()
@click.argument("text", required=False)
@constraint_options
@click.option(
    "--vocab", metavar="VOCAB", default="small", show_default=True,
    help="Use these tokens: small, builtin (the built-in model's), bytes, or a tokenizer's FILE.",
)  # fmt: skip
@click.option(
    "--engine", type=click.Choice(["reference", "llguidance"]), default="reference", show_default=True,
    help="Use the readable guides, or the engine that decoding uses.",
)  # fmt: skip
@whitespace_option
@click.option("--html", "html", metavar="FILE", type=NEW_FILE, help="Write an HTML page that loads nothing.")
@click.option("--dot", "dot", metavar="FILE", type=NEW_FILE, help="Write the automaton for Graphviz.")
@common_options("as_json", "verbose", verbose="Show examples of the allowed tokens.")
def explain(common: CommonOptions, text: str | None, html: Path | None, dot: Path | None, **values: Any) -> None:  # noqa: ANN401
    """Show how a constraint accepts TEXT (`-` for standard input): the tokens that it allows at each step, and why.

    The exit code is 1 if TEXT is refused. Without TEXT, show the first step and describe the accepted texts. -v shows examples of tokens. The module of module:Type is
    run, as python -m would. A tokenizer's file is tekken.json, tiktoken ranks, tokenizer.json, or a JSON list of texts that
    contains "<end>".

    \b
    taiwa explain --regex "[0-9]{1,3}%" 42%
    taiwa explain --type shop:Order '{"name": "tea", "cups": 12}' --html order.html
    taiwa explain --schema order.json --whitespace compact --dot order.dot
    taiwa explain --grammar sum.lark --vocab tekken.json "1 + (2" -v
    """
    from taiwa.operations import generate
    from taiwa.operations.files import write_file

    kind, source = pop_constraint("explain", values, required=True)
    options = generate.ExplainOptions(kind, source, values["vocab"], values["engine"], values["whitespace"])
    found = generate.explain(options, None if text is None else read_text(text))
    if dot is not None:
        write_file(dot, generate.draw_automaton(found))
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
    """Print the walk as a table with its outcome; without a text, a description of the accepted texts."""
    from taiwa.operations.generate import describe_constraint

    steps = found.walk.steps if is_walked else found.walk.steps[:1]
    if not is_walked:
        for line in describe_constraint(found):
            print_line(line)
        print_line("")
    heads = ("", "token", "allowed", "place", "expected")
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
    from taiwa.operations.generate import token_text

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
    """Write a constraint and the walk of a text as one HTML page that loads and runs nothing; all texts are escaped."""
    title = escape(f"{found.kind} {found.title}")
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{title}</h1>\n{chr(10).join(_body(found))}\n</body></html>\n"
    )


def _body(found: "ExplainResult") -> Iterator[str]:
    from taiwa.operations.generate import describe_constraint

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
