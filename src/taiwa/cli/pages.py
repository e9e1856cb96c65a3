"""A conversation as a document for people: Markdown, or one HTML page that loads nothing and runs nothing."""

import json
from collections.abc import Sequence
from html import escape

from taiwa.cli.look import change_line
from taiwa.conversation.places import changes
from taiwa.kernel.records import Json
from taiwa.talk.desk import Stop

__all__ = ["as_html", "as_markdown"]

STYLE = """
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
article { margin: 1.2rem 0 }
.you { border-inline-start: .25rem solid #4a7; padding-inline-start: .8rem; white-space: pre-wrap }
.answer { white-space: pre-wrap; margin: .6rem 0 }
pre { font-size: .85rem; opacity: .8; white-space: pre-wrap; margin: 0 }
footer, time { opacity: .6; font-size: .85rem }
"""


def as_markdown(stops: Sequence[Stop], title: str) -> str:
    """Write a history as Markdown; a fence is longer than any inside it."""
    lines = [f"# {title or 'Conversation'}", ""]
    for stop, delta in _with_changes(stops):
        node = stop.node
        if node.kind == "turn":
            quoted = "\n".join(f"> {line}" for line in (node.user or "").splitlines())
            lines += [f"## {stop.after.count}", "", quoted, "", node.answer or "", ""]
        elif node.kind == "summary":
            lines += [f"*earlier turns, in short:* {node.answer}", ""]
        if delta:
            fence = "`" * max(3, *(line.count("`") + 1 for line in delta))
            lines += [f"{fence}diff", *delta, fence, ""]
    if stops:
        state = json.dumps(stops[-1].after.state, ensure_ascii=False, indent=1)
        lines += ["## State", "", "~~~json", state, "~~~", ""]
    return "\n".join(lines)


def as_html(stops: Sequence[Stop], title: str) -> str:
    """Write a history as one page; all text of people and models is escaped."""
    body: list[str] = []
    for stop, delta in _with_changes(stops):
        node = stop.node
        parts: list[str] = []
        if node.kind == "turn":
            parts += [f'<div class="you" dir="auto">{escape(node.user or "")}</div>']
            parts += [f'<div class="answer" dir="auto">{escape(node.answer or "")}</div>']
        elif node.kind == "summary":
            parts += [f"<p><em>{escape(node.answer or '')}</em></p>"]
        if delta:
            parts += [f"<pre>{escape(chr(10).join(delta))}</pre>"]
        if parts:
            body += [f'<article id="{stop.hash[:12]}">', *parts, "</article>"]
    state = escape(json.dumps(stops[-1].after.state, ensure_ascii=False, indent=1)) if stops else ""
    head = escape(title or "Conversation")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{head}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{head}</h1>\n{chr(10).join(body)}\n"
        f"<details><summary>State</summary><pre>{state}</pre></details></body></html>\n"
    )


def _with_changes(stops: Sequence[Stop]) -> list[tuple[Stop, list[str]]]:
    rows: list[tuple[Stop, list[str]]] = []
    before: dict[str, Json] = {}
    for stop in stops:
        after = dict(stop.after.state)
        moved = () if stop.node.kind == "root" else changes(before, after)
        rows.append((stop, [change_line(change)[0] for change in moved]))
        before = after
    return rows
