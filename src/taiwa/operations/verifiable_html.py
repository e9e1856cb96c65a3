"""A conversation as one HTML file that verifies itself, without a server and without this package.

The file contains the canonical record of each node and of each state. Its script computes their BLAKE2b hashes (RFC 7693),
follows the parents from the last node to the root, and compares every text that is shown with its record.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from taiwa.i18n import catalogue, translator
from taiwa.kernel.records import Json, canonical, record
from taiwa.sessions.repository import HistoryEntry

STYLE = """
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
.you, .answer { white-space: pre-wrap; overflow-wrap: anywhere }
.you { width: fit-content; max-width: 88%; margin: 0 0 .6rem auto; padding: .5rem 1rem; border-radius: 1rem 1rem .25rem 1rem; background: #44aa7722 }
pre { white-space: pre-wrap; font-size: .85rem }
details { margin-top: 1.5rem }
#verdict { position: sticky; top: 0; padding: .4rem .8rem; border-radius: .5rem; background: Canvas; border: 2px solid GrayText; overflow-wrap: anywhere }
#verdict.good { border-color: #1d6b40 }
#verdict.bad { border-color: #a8322a }
h2 { font-size: 1rem; opacity: .6; margin-bottom: .2rem }
"""


def as_verifiable_html(entries: Sequence[HistoryEntry], title: str, language: str = "en") -> str:
    """Write a history as one HTML file whose script verifies it; it loads nothing."""
    sentence = translator("cli", language)
    rows: list[Json] = []
    body: list[str] = []
    for entry in entries:
        node = entry.node
        state = canonical(record(entry.after.state)).decode()
        rows.append({"hash": entry.hash, "node": canonical(record(node)).decode(), "state": state})
        if node.kind == "turn":
            body += [
                f'<article data-node="{entry.hash}"><h2>{entry.after.count}</h2>',
                f'<div class="you" data-field="user" dir="auto">{_escaped(node.user)}</div>',
                f'<div class="answer" data-field="answer" dir="auto">{_escaped(node.answer)}</div></article>',
            ]
    script = (files("taiwa.operations") / "verify.js").read_text(encoding="utf-8")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    head = escape(title or sentence("Conversation"))
    off, state_title = escape(sentence("not verified: scripts are off")), escape(sentence("State"))
    data, texts = _json(rows), _json(_texts(language))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{head}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f'<body><h1>{head}</h1>\n<p id="verdict" role="status">{off}</p>\n{chr(10).join(body)}\n'
        f"<details><summary>{state_title}</summary><pre data-state></pre></details>\n"
        f'<script type="application/json" id="records">{data}</script>\n'
        f'<script type="application/json" id="texts">{texts}</script>\n<script>{script}</script></body></html>\n'
    )


def _json(data: Json) -> str:
    """Write JSON for an element of a page: `<` would end the element or open a comment in it."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _texts(language: str) -> dict[str, Json]:
    """Return the words of the script; counts for one and for many."""
    sentence, ngettext = translator("cli", language), catalogue("cli", language).ngettext
    return {
        "verified": sentence("verified: {turns}, {hashes}, last node {node}"),
        "turns": [ngettext("{n} turn", "{n} turns", n) for n in (1, 2)],
        "hashes": [ngettext("{n} hash", "{n} hashes", n) for n in (1, 2)],
        "failed": sentence("not verified: {problem}"),
        "record": sentence("the record of node {node} was changed"),
        "parent": sentence("node {node} follows another node"),
        "state": sentence("the state after node {node} was changed"),
        "hidden": sentence("the turn of node {node} is not shown"),
        "text": sentence("the text of node {node} was changed"),
        "added": sentence("a turn is shown that has no record"),
    }


def _escaped(text: str | None) -> str:
    return escape(text or "").replace("\r", "&#13;")  # a parser of HTML drops it otherwise
