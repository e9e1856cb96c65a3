"""Write conversations for people and other programs: JSON lines, Markdown, HTML, HTML that verifies itself, messages of other APIs."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from taiwa.conversation.app import App
from taiwa.conversation.history import Node
from taiwa.conversation.state import diff_states
from taiwa.i18n import catalogue, translator
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.errors import ConfigError
from taiwa.kernel.serialization import Json, canonical, record
from taiwa.kernel.text import inert, plain
from taiwa.operations.log import describe_attachment
from taiwa.operations.result_json import format_time
from taiwa.operations.state_values import describe_change
from taiwa.sessions.repository import HistoryEntry, Repository

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

END_OF_TEXT = "end"
INERT = frozenset(
    """inline text softbreak hardbreak code_inline em_open em_close strong_open strong_close s_open s_close link_open link_close
    heading_open heading_close paragraph_open paragraph_close fence hr blockquote_open blockquote_close bullet_list_open
    bullet_list_close ordered_list_open ordered_list_close list_item_open list_item_close table_open table_close thead_open
    thead_close tbody_open tbody_close tr_open tr_close th_open th_close td_open td_close""".split()
)
"""Markdown tokens that load nothing; a link is followed only by a reader, and headings are checked to be below those of turns."""
UNSAFE = re.compile(r"<(?=[a-zA-Z/!?])|\x00|\]\(")
"""Text that some renderers interpret as HTML, or as a link that ours refused."""
SAFE_LINK = re.compile("https?://|mailto:")
BRACKETS = re.compile(r"\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
"""Mathematics as models write it, whose backslashes Markdown removes."""
LANGUAGE = re.compile(r"[\w+#.-]*")
BELOW_TURNS = 2
"""Levels that the headings of an answer are lowered by: those of an export are the title, and a turn's number."""
MARKUP = re.compile(r"[\\`*\[\]<>&!]")
"""Markdown and HTML syntax within a line."""


def export(
    repository: Repository,
    revision: str,
    form: str,
    *,
    calls: bool = False,
    app: bool = True,
    attachments: bool = True,
    language: str = "en",
    title: str = "",
) -> str:
    """Write a conversation as `jsonl` (which can be imported), `md`, `html`, or `verifiable`: HTML that verifies itself; or as the
    messages of `openai`, `anthropic` or `sharegpt`.

    In `jsonl`, `calls` adds the bill of each turn, and `app` the app, with its instructions and parameters. Without
    `attachments`, their bytes are left out, in `html` the images. `language` is that of the headings, of `LANGUAGES`, and `title` the first of
    them, by default the revision.
    """
    store = repository.store
    if form == "jsonl":
        lines = store.export(revision, calls=calls, apps=app, attachments=attachments)
        return inert("".join(f"{line}\n" for line in lines))
    entries = tuple(repository.walk(store.resolve(revision)))
    if form not in ("md", "html", "verifiable"):
        from taiwa.operations.message_lists import write_messages

        turns = [entry.after.turns[-1].all_messages for entry in entries if entry.node.kind == "turn"]
        return inert(write_messages(entries[-1].after, turns, form))
    if form == "verifiable":
        return as_verifiable_html(entries, title or revision, language)
    written = {
        entry.hash: " · ".join(
            filter(None, (store.runs.model_of(entry.hash), format_time(store.nodes.time(entry.hash))))
        )
        for entry in entries
    }
    if form == "md":
        return plain(as_markdown(entries, title or revision, written, language))
    return plain(as_html(entries, title or revision, store.blobs.fill if attachments else tuple, written, language))


def as_markdown(
    entries: Sequence[HistoryEntry],
    title: str,
    written: Mapping[str, str] = MappingProxyType({}),
    language: str = "en",
) -> str:
    """Write a history as Markdown in which no text of a user or a model adds a turn, HTML or an image; `written` is as for `as_html`."""
    sentence = translator("cli", language)
    head, summarised, state_title = sentence("Conversation"), sentence("Earlier turns, summarised:"), sentence("State")
    lines = [f"# {_escaped_markup(title) or head}", ""]
    for entry, delta in _with_changes(entries):
        node = entry.node
        if node.kind == "turn":
            quoted = "\n".join(f"> {line}" for line in inert_markdown(node.user or "").splitlines())
            files = "".join(f"\n> `{describe_attachment(each, language).replace('`', ' ')}`" for each in node.files)
            lines += [f"## {entry.after.count}", "", (quoted + files).lstrip("\n"), ""]
            lines += [inert_markdown(answer_markdown(node, entry.after.app)), ""]
        elif node.kind == "summary":
            lines += [f"*{summarised}*", "", inert_markdown(node.answer or ""), ""]
        if delta:
            fence = "`" * max(3, *(line.count("`") + 1 for line in delta))
            lines += [f"{fence}diff", *delta, fence, ""]
        if node.kind == "turn" and entry.hash in written:
            lines += [f"*{_escaped_markup(written[entry.hash])}*", ""]
    if entries and entries[-1].after.state:
        state = json.dumps(entries[-1].after.state, ensure_ascii=False, indent=1)
        lines += [f"## {state_title}", "", "~~~json", state, "~~~", ""]
    return "\n".join(lines)


def _escaped_markup(text: str) -> str:
    return MARKUP.sub(r"\\\g<0>", text)


def answer_markdown(node: Node, app: App) -> str:
    """Return the answer of a turn as Markdown for people: one of a type as indented JSON, others without the calls of tools."""
    from taiwa.flows.solve.tool_call_formats import readable_answer

    answer = readable_answer(node.answer or "", app.tools)
    if app.output_type is None:
        return answer
    try:
        return _fenced(json.dumps(json.loads(answer), ensure_ascii=False, indent=2), "json")
    except (ValueError, RecursionError):
        return answer


def inert_markdown(text: str) -> str:
    """Return Markdown with its headings lowered, and with blocks of HTML, images and unusual links in fences.

    >>> inert_markdown("*Two* teas")
    '*Two* teas'
    >>> print(inert_markdown("# Mine\\n<b>"))
    ### Mine
    <BLANKLINE>
    ```text
    <b>
    ```
    """
    references: dict[str, object] = {}
    lines, blocks = text.split("\n"), list[str]()
    tokens = _parser().parse(text, references)
    for token, inner in pairwise((*tokens, None)):
        if token is None or token.level or token.nesting < 0 or token.map is None:
            continue
        source = "\n".join(lines[slice(*token.map)]).rstrip("\n")
        if token.type == "heading_open" and inner is not None:
            block = f"{'#' * min(int(token.tag[1]) + BELOW_TURNS, 6)} {' '.join(inner.content.split())}"
        elif token.type in ("fence", "code_block"):
            block = _fenced(token.content.removesuffix("\n"), token.info.strip())
        else:
            block = source if "`" in source else BRACKETS.sub(_dollars, source)
        blocks.append(block if _is_inert(block) else _fenced(source))
    whole = "\n\n".join(blocks)
    # A definition of references is not a block, and may change the text of other turns; blocks that were changed may join.
    return whole if not references and _is_inert(whole) else _fenced(text)


def _dollars(found: re.Match[str]) -> str:
    return f"${found[1].strip()}$" if found[1] else f"$${found[2]}$$"


def _fenced(text: str, language: str = "text") -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language if LANGUAGE.fullmatch(language) else 'text'}\n{text}\n{fence}"


def _is_inert(text: str) -> bool:
    """Whether Markdown ends with its last block and has only tokens that load nothing and begin no turn."""
    references: dict[str, object] = {}
    tokens = _parser().parse(f"{text}\n\n{END_OF_TEXT}", references)
    parts = [*tokens, *(part for token in tokens for part in token.children or ())]
    words = "".join(part.content for part in parts if part.type == "text")
    # The end is a paragraph of its own unless a fence or a list was left open.
    closed = not text or (len(tokens) > 2 and tokens[-3].level == 0 and tokens[-2].content == END_OF_TEXT)
    return (
        closed
        and not references
        and {part.type for part in parts} <= INERT
        and all(SAFE_LINK.match(str(part.attrGet("href"))) for part in parts if part.type == "link_open")
        and all(int(part.tag[1]) > BELOW_TURNS for part in parts if part.type == "heading_open")
        and not UNSAFE.search(words)
    )


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["strikethrough", "table"])


def _figure(attachment: Attachment, language: str) -> str:
    """Return an attachment as HTML: an image as a data URI, others by their names."""
    described = escape(describe_attachment(attachment, language))
    if attachment.kind != "images" or not attachment.data:
        return f"<p>{described}</p>"
    return f'<figure><img src="{attachment.data_uri}" alt="{escape(attachment.label)}"><figcaption>{described}</figcaption></figure>'


Fill: TypeAlias = Callable[[Iterable[Attachment]], tuple[Attachment, ...]]
"""Returns attachments with their bytes."""


def asset(name: str) -> str:
    """Return a style sheet or a script of the pages that are written."""
    from importlib.resources import files

    return (files("taiwa.operations") / name).read_text(encoding="utf-8")


def html_page(title: str, body: Iterable[str], policy: str, style: str, language: str = "en") -> str:
    """Write a page with a style sheet inside of it; `title` and the parts of the body are HTML."""
    parts = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width"><style>\n{asset(style)}</style></head>\n'
        f"<body><h1>{title}</h1>\n{parts}</body></html>\n"
    )


def as_html(
    entries: Sequence[HistoryEntry],
    title: str,
    fill: Fill = tuple,
    written: Mapping[str, str] = MappingProxyType({}),
    language: str = "en",
) -> str:
    """Write a history as one HTML page without scripts; answers are rendered, with remote images as text.

    `fill` returns attachments with their bytes, of which images are shown; nothing is loaded from elsewhere. `written` has
    the model and time of nodes.
    """
    sentence, body = translator("cli", language), list[str]()
    summarised, state_title = escape(sentence("Earlier turns, summarised:")), escape(sentence("State"))
    for entry, delta in _with_changes(entries):
        node = entry.node
        parts: list[str] = []
        if node.kind == "turn":
            parts += [f'<div class="you" dir="auto">{escape(node.user or "")}</div>']
            parts += (_figure(each, language) for each in fill(node.files))
            parts += [f'<div class="answer" dir="auto">{_answer_html(answer_markdown(node, entry.after.app))}</div>']
        elif node.kind == "summary":
            parts += [f"<p>{summarised} <em>{escape(node.answer or '')}</em></p>"]
        if delta:
            parts += [f'<pre class="changes">{escape(chr(10).join(delta))}</pre>']
        if node.kind == "turn" and entry.hash in written:
            parts += [f"<footer>{escape(written[entry.hash])}</footer>"]
        if parts:
            body += [f'<article id="{entry.hash[:12]}">', *parts, "</article>"]
    head = escape(title or sentence("Conversation"))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if entries and entries[-1].after.state:
        state = escape(json.dumps(entries[-1].after.state, ensure_ascii=False, indent=1))
        body += [f"<details open><summary>{state_title}</summary><pre>{state}</pre></details>"]
    return html_page(head, body, policy, "conversation.css", language)


def _answer_html(text: str) -> str:
    from taiwa.operations.markdown_html import plain_html, to_html

    try:
        return to_html(text)
    except ConfigError:  # Windows cannot bound the process that renders
        return plain_html(text)


def _with_changes(entries: Sequence[HistoryEntry]) -> list[tuple[HistoryEntry, list[str]]]:
    """Return each entry with what it changed, without the fields that the program counts, which change with each turn."""
    rows: list[tuple[HistoryEntry, list[str]]] = []
    before: dict[str, Json] = {}
    for entry in entries:
        after = dict(entry.after.state)
        computed = {field.name for field in entry.after.app.fields if field.computed}
        moved = () if entry.node.kind == "root" else diff_states(before, after)
        rows.append((entry, [describe_change(change) for change in moved if change.path[0] not in computed]))
        before = after
    return rows


def as_verifiable_html(entries: Sequence[HistoryEntry], title: str, language: str = "en") -> str:
    """Write a history as one HTML file that verifies itself, without a server and without this package; it loads nothing.

    The file contains the canonical record of each node and of each state. Its script computes their BLAKE2b hashes (RFC 7693),
    follows the parents from the last node to the root, and compares every text that is shown with its record.
    """
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
                f'<div class="you" data-field="user" dir="auto">{_escaped_text(node.user)}</div>',
                f'<div class="answer" data-field="answer" dir="auto">{_escaped_text(node.answer)}</div></article>',
            ]
    script = asset("verify.js")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    head = escape(title or sentence("Conversation"))
    off, state_title = escape(sentence("not verified: scripts are off")), escape(sentence("State"))
    data, texts = _script_json(rows), _script_json(_script_texts(language))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    parts = (
        f'<p id="verdict" role="status">{off}</p>',
        *body,
        f"<details><summary>{state_title}</summary><pre data-state></pre></details>",
        f'<script type="application/json" id="records">{data}</script>',
        f'<script type="application/json" id="texts">{texts}</script>\n<script>{script}</script>',
    )
    return html_page(head, parts, policy, "verifiable.css", language)


def _script_json(data: Json) -> str:
    """Write JSON for a script element of a page; `<` is escaped, because it could end the element or open a comment."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _script_texts(language: str) -> dict[str, Json]:
    """Return the texts of the script; counts in singular and plural."""
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


def _escaped_text(text: str | None) -> str:
    return escape(text or "").replace("\r", "&#13;")  # otherwise an HTML parser drops it
