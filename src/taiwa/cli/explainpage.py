"""A constraint and the walk of a text as one HTML page that loads nothing and runs nothing."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from taiwa.cli.explaining import language, token_text
from taiwa.constraints.explain import GuideTrace, TokenStep
from taiwa.constraints.readable_guides import RegexGuide

if TYPE_CHECKING:
    from taiwa.cli.explaining import Subject

__all__ = ["page"]

MOST_STATES = 60
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
KEY = '<p><small><span class="token">token</span> chosen among others · <span class="token forced">token</span> forced: the text was certain, so no model is asked · <span class="token refused">token</span> refused</small></p>'


def page(found: "Subject", walk: GuideTrace) -> str:
    """Write the page; whatever comes from people, files and vocabularies is escaped."""
    title = escape(f"{found.kind} {found.title}")
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{title}</h1>\n{chr(10).join(_body(found, walk))}\n</body></html>\n"
    )


def _body(found: "Subject", walk: GuideTrace) -> Iterator[str]:
    yield from (f"<p>{escape(line)}</p>" for line in list(language(found))[:1])
    if len(walk.steps) > 1 or walk.refused:
        yield from _strip(found, walk)
    yield '<h2>Step by step</h2><div class="wide"><table>'
    yield "<tr><th></th><th>token</th><th>allowed</th><th>place</th><th>expected</th></tr>"
    for number, step in enumerate(walk.steps):
        yield _row(found, number, step)
    yield "</table></div>"
    yield "<h2>The constraint</h2>"
    yield from (f"<p><code>{escape(line)}</code></p>" for line in list(language(found))[1:])
    yield f"<details><summary>as it was given</summary><pre><code>{escape(found.source)}</code></pre></details>"
    yield from _maps(found)


def _strip(found: "Subject", walk: GuideTrace) -> Iterator[str]:
    """The text as a row of tokens, each a link to its place."""
    vocabulary = found.guide.vocabulary
    links = [
        f'<a class="token{_look(step)}" href="#at-{number}">{escape(_seen(token_text(vocabulary, step)))}</a>'
        for number, step in enumerate(walk.steps)
        if step.token is not None
    ]
    yield f'<div class="strip" dir="auto">{" ".join(links)}</div>'
    yield KEY
    last = walk.steps[-1]
    if last.why:
        yield f'<p class="bad">refused: {escape(last.why)}</p>'
    elif last.final:
        yield '<p class="good">it fits, and is whole</p>'
    else:
        yield "<p>so far it fits; the text cannot end here</p>"


def _look(step: TokenStep) -> str:
    return " refused" if step.why else " forced" if step.forced else ""


def _seen(shown: str) -> str:
    """A token without the quotes around it: the box shows where it ends; white space alone by a sign."""
    bare = shown[1:-1] if len(shown) > 2 and shown[0] == shown[-1] and shown[0] in "'\"" else shown
    return bare if bare.strip() else bare.replace(" ", "␣")


def _row(found: "Subject", number: int, step: TokenStep) -> str:
    shown = token_text(found.guide.vocabulary, step)
    token = f'<span class="token{_look(step)}">{escape(_seen(shown))}</span>' if shown else "the end of the text"
    examples = " ".join(f'<span class="token">{escape(_seen(each))}</span>' for each in step.told.examples)
    lines = (
        f"state {escape(step.place)}" if step.place else "",
        f"<code>{escape(step.told.pointer)}</code>" if step.told.pointer else "",
        f"<small>{escape(step.told.keyword)}</small>" if step.told.keyword else "",
    )
    place = "<br>".join(filter(None, lines))
    why = f'<br><span class="why">{escape(step.why)}</span>' if step.why else ""
    return (
        f'<tr id="at-{number}"><td class="number">{number}</td><td>{token}</td><td class="number">{step.told.count:,}</td>'
        f"<td>{place}</td><td>{escape(step.told.expected)}{why}<br>{examples}</td></tr>"
    )


def _maps(found: "Subject") -> Iterator[str]:
    """The automaton's moves by token, where there are few enough to be read."""
    guide = found.guide
    if not isinstance(guide, RegexGuide):
        return
    if len(guide.automaton.moves) > MOST_STATES:
        yield f"<p><small>The automaton has {len(guide.automaton.moves):,} states: too many to be listed here.</small></p>"
        return
    yield '<h2>From state to state by tokens</h2><div class="wide"><table><tr><th>state</th><th>token → state</th></tr>'
    for state, row in guide.states_to_token_maps.items():
        moves = [
            f'<span class="token">{escape(_seen(guide.vocabulary.show(token)))}</span>&nbsp;→&nbsp;{there}'
            for token, there in list(row.items())[:MOST_MOVES]
        ]
        more = f" and {len(row) - MOST_MOVES:,} more" if len(row) > MOST_MOVES else ""
        final = " <small>final</small>" if guide.is_end(state) else ""
        yield f'<tr><td class="number">{state}{final}</td><td>{"&ensp; ".join(moves)}{more}</td></tr>'
    yield "</table></div>"
