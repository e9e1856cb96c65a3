"""Inspect conversations: log, show, search, diff, why, state, and export as Markdown or HTML."""

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from taiwa.conversation.app import AnswerOptions
from taiwa.conversation.history import Node
from taiwa.conversation.state import MISSING, Change, Missing, diff_states, format_path, get_path, parse_path
from taiwa.flows.solve.tool_call_formats import readable_answer
from taiwa.i18n import catalogue, translator
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import GetCapabilities
from taiwa.kernel.errors import InputError
from taiwa.kernel.messages import Response, Thinking
from taiwa.kernel.records import Json, canonical, record, tag_of
from taiwa.kernel.text import inert, plain
from taiwa.operations.result_json import format_time, options_to_json
from taiwa.operations.results import (
    DiffResult,
    SessionEntry,
    SessionTree,
    ShowResult,
    StateResult,
    TurnEntry,
    ValueEntry,
    WhyResult,
)
from taiwa.sessions.repository import HistoryEntry, Repository
from taiwa.store import CallRecord

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

SIGNS = {"added": "+", "removed": "-", "changed": "~"}
EXPORT_FORMATS = ("jsonl", "md", "html", "verifiable")
END_OF_TEXT = "end"
INERT = frozenset(
    """inline text softbreak hardbreak code_inline em_open em_close strong_open strong_close paragraph_open paragraph_close fence
    bullet_list_open bullet_list_close ordered_list_open ordered_list_close list_item_open list_item_close
    blockquote_open blockquote_close""".split()
)
"""Tokens of Markdown that neither load, link nor structure a page."""
UNSAFE = re.compile(r"[<\x00]|https?:|www\.")
"""Text that some renderers take for HTML or a link."""
STYLE = """
:root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
article { margin: 1.2rem 0 }
.you { width: fit-content; max-width: 88%; margin-inline-start: auto; padding: .5rem 1rem; border-radius: 1rem 1rem .25rem 1rem }
.you { background: #44aa7722; white-space: pre-wrap; overflow-wrap: anywhere }
.answer { margin: .6rem 0; overflow-wrap: anywhere }
.answer pre { border-inline-start: .15rem solid #8888; padding-inline-start: .8rem; opacity: 1; overflow-x: auto }
table { border-collapse: collapse } td, th { border: 1px solid #8888; padding: .1rem .5rem }
figure { margin: .6rem 0 } img { max-width: 100%; max-height: 24rem } figcaption { font-size: .85rem; opacity: .6 }
pre { font-size: .85rem; opacity: .8; white-space: pre-wrap; margin: 0 }
footer, time { opacity: .6; font-size: .85rem }
"""
VERIFIABLE_STYLE = """
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
MARKUP = re.compile(r"[\\`*\[\]<>&!]")
"""Signs of Markdown and HTML within a line."""


def said(turn: Node) -> str:
    """Return what the user said in a turn: the text, or the names of what was attached without one."""
    return turn.user or ", ".join(each.label for each in turn.attachments)


def sessions(repository: Repository, limit: int | None = None, since: int = 0) -> tuple[SessionEntry, ...]:
    """Return the sessions that moved last, the latest first; those behind a number of `Refs.moves`."""
    store = repository.store
    refs = store.refs.list(since)[:limit]
    costs = {line.name: line.cost_nano for line in store.costs("session")} if refs else {}
    entries: list[SessionEntry] = []
    for ref, last in zip(refs, store.nodes.get_all([ref.tip for ref in refs]), strict=True):
        first = store.nodes.first_turn(ref.tip)
        text = "" if first is None else said(first)
        model = repository.last_model(ref.tip, ref.name)
        entries.append(SessionEntry(ref, text, model, costs.get(ref.name, 0), last.answer or ""))
    return tuple(entries)


def log(repository: Repository, revision: str, limit: int) -> tuple[TurnEntry, ...]:
    """Return the newest nodes up to a revision, oldest of them first."""
    path = list(repository.store.nodes.path(repository.store.resolve(revision)))
    number = sum(1 for _, node in path if node.kind == "turn")
    session = revision if repository.store.refs.has(revision) else ""
    entries: list[TurnEntry] = []
    for name, node in path[:limit]:
        entries.append(TurnEntry(name, node, number, repository.store.runs.model_of(name, session)))
        number -= node.kind == "turn"
    return tuple(reversed(entries))


def tree(repository: Repository) -> SessionTree:
    """Return all histories that sessions name as one forest."""
    names: dict[str, list[str]] = {}
    for ref in repository.store.refs.list():
        names.setdefault(ref.tip, []).append(ref.name)
    children: dict[str | None, dict[str, Node]] = {}
    for tip in reversed(names):
        for name, node in repository.store.nodes.path(tip):
            known = children.setdefault(node.parent, {})
            if name in known:
                break
            known[name] = node
    return SessionTree(children, names)


def show(repository: Repository, revision: str, *, reasoning: bool = False) -> ShowResult:
    """Return one node with the conversation after it and the calls that made it; on request with the model's reasoning."""
    name = repository.store.resolve(revision)
    return ShowResult(
        name,
        repository.store.nodes.get(name),
        repository.checkout(name),
        _model_calls(repository.store.runs.calls(name)),
        _reasoning(repository, name) if reasoning else None,
    )


def _reasoning(repository: Repository, node: str) -> str:
    """Return what the model thought before it wrote the answers of a turn, from the journal of its run."""
    answers = (entry.answer for entry in repository.store.runs.journal_of(node))
    parts = (part for answer in answers if isinstance(answer, Response) for part in answer.message.parts)
    thoughts = (part.text.strip() for part in parts if isinstance(part, Thinking))
    return "\n\n".join(thought for thought in thoughts if thought)


def diff(repository: Repository, before: str, after: str) -> DiffResult:
    """Compare two revisions: their states, and the texts of their turns."""
    left, right = repository.store.resolve(before), repository.store.resolve(after)
    old, new = repository.checkout(left), repository.checkout(right)
    found = tuple(diff_states(dict(old.state), dict(new.state)))
    return DiffResult(left, right, found, _texts(repository, left), _texts(repository, right))


def why(repository: Repository, path: str, revision: str) -> WhyResult:
    """Return the node that set a value of the state last, and its calls.

    Raises:
        InputError: the path is invalid, or the state never had a value there.
    """
    where = parse_path(path)
    store = repository.store
    origin = repository.origin(store.resolve(revision), where)
    return WhyResult(where, origin, _model_calls(store.runs.calls(origin.hash, store.refs.session_of(revision))))


def value_at(state: Json, path: str) -> Json:
    """Return the value at a path of a state.

    Raises:
        InputError: the state has no value there.
    """
    value = dict(state) if isinstance(state, dict) else {}
    found = get_path(value, parse_path(path))
    if isinstance(found, Missing):
        raise InputError(f"no value at {path}; fields: {', '.join(value) or 'none'}")
    return found


def value_history(repository: Repository, path: str, revision: str) -> tuple[ValueEntry, ...]:
    """Return every value that a path of the state had, oldest first."""
    where = parse_path(path)
    entries: list[ValueEntry] = []
    last: Json | Missing = MISSING
    for entry in repository.walk(repository.store.resolve(revision)):
        value = get_path(dict(entry.after.state), where)
        if not isinstance(value, Missing) and value != last:
            entries.append(ValueEntry(entry.hash, f"{entry.node.kind} {entry.after.count}", value))
        last = value
    return tuple(entries)


def set_value(
    repository: Repository, session: str, path: str, new: Json, *, author: str = "", at: str = ""
) -> tuple[StateResult, tuple[Change, ...]]:
    """Set a value of the state by hand, as a node of its own; return the new state and the changes.

    `author` is who did it; with `at` the session goes on from that node.

    Raises:
        InputError: the path does not exist, or the value does not fit the field.
    """
    session = repository.session(session)
    before = repository.at(at or session)
    where = parse_path(path)
    field = str(where[0])
    values = {field: put_value(before.state.get(field), where[1:], new)}
    after = repository.set_state(session, values, author=author, at=before.tip)
    return StateResult(after, session, before.tip), tuple(diff_states(dict(before.state), dict(after.state)))


def put_value(value: Json, path: Sequence[str | int], new: Json) -> Json:
    """Return a copy of a value with a new value at a path inside it.

    Raises:
        InputError: the path does not exist.
    """
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        return value | {str(step): put_value(value.get(str(step)), rest, new)}
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        at = step % len(value)
        return [*value[:at], put_value(value[at], rest, new), *value[at + 1 :]]
    raise InputError(f"{step!r} not found in {format_value(value)[:60]}")


def describe_options(options: AnswerOptions) -> str:
    """Describe what is set for the answers of a conversation beside its app, as the options of `say` that would set it.

    >>> describe_options(AnswerOptions("Be brief.", tools=("calculator",)))
    "--system 'Be brief.' --tool calculator"
    """
    words: list[str] = []
    for name, value in options_to_json(options).items():
        flag = "--tool" if name == "tools" else f"--{name.replace('_', '-')}"
        words += [f"{flag} {shlex.quote(f'{each}')}" for each in (value if isinstance(value, list) else [value])]
    return " ".join(words)


def format_value(value: Json) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def describe_change(change: Change) -> str:
    """Write a change of the state on one line."""
    sign, where = SIGNS[change.kind], format_path(change.path)
    if change.kind == "changed":
        return f"{sign} {where}: {format_value(change.before)} → {format_value(change.after)}"
    return f"{sign} {where}: {format_value(change.after if change.kind == 'added' else change.before)}"


def export(
    repository: Repository,
    revision: str,
    form: str,
    *,
    calls: bool = False,
    app: bool = False,
    attachments: bool = True,
    language: str = "en",
) -> str:
    """Write a conversation as `jsonl` (which can be imported), `md`, `html`, or `verifiable`: HTML that verifies itself.

    In `jsonl`, `calls` adds the bill of each turn, and `app` the app, with its instructions and parameters. Without
    `attachments`, their bytes are left out, in `html` the images. `language` is that of the headings, of `LANGUAGES`.
    """
    store = repository.store
    if form == "jsonl":
        lines = store.export(revision, calls=calls, apps=app, attachments=attachments)
        return inert("".join(f"{line}\n" for line in lines))
    entries = tuple(repository.walk(store.resolve(revision)))
    if form == "md":
        return plain(as_markdown(entries, revision, language))
    if form == "verifiable":
        return as_verifiable_html(entries, revision, language)
    written = {
        entry.hash: " · ".join(
            filter(None, (store.runs.model_of(entry.hash), format_time(store.nodes.time(entry.hash))))
        )
        for entry in entries
    }
    return plain(as_html(entries, revision, store.blobs.fill if attachments else tuple, written, language))


def _model_calls(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
    """Return the calls without recorded look-ups of capabilities."""
    return tuple(call for call in calls if call.kind != tag_of(GetCapabilities))


def _texts(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the lines of the texts of all turns up to a node."""
    lines: list[str] = []
    for _, node in reversed(tuple(repository.store.nodes.path(tip))):
        if node.kind == "turn":
            lines += [f"> {line}" for line in (node.user or "").splitlines()]
            lines += [f"  {line}" for line in (node.answer or "").splitlines()]
    return tuple(lines)


def as_markdown(entries: Sequence[HistoryEntry], title: str, language: str = "en") -> str:
    """Write a history as Markdown, in which no text of a user or a model adds headings, HTML, links or images."""
    sentence = translator("cli", language)
    head, summarised, state_title = sentence("Conversation"), sentence("Earlier turns, summarised:"), sentence("State")
    lines = [f"# {MARKUP.sub(_escaped, title) or head}", ""]
    for entry, delta in _with_changes(entries):
        node = entry.node
        if node.kind == "turn":
            quoted = "\n".join(f"> {line}" for line in inert_markdown(node.user or "").splitlines())
            files = "".join(
                f"\n> `{describe_attachment(each, language).replace('`', ' ')}`" for each in node.attachments
            )
            lines += [
                f"## {entry.after.count}",
                "",
                (quoted + files).lstrip("\n"),
                "",
                inert_markdown(readable_answer(node.answer or "", entry.after.app.tools)),
                "",
            ]
        elif node.kind == "summary":
            lines += [f"*{summarised}*", "", inert_markdown(node.answer or ""), ""]
        if delta:
            fence = "`" * max(3, *(line.count("`") + 1 for line in delta))
            lines += [f"{fence}diff", *delta, fence, ""]
    if entries:
        state = json.dumps(entries[-1].after.state, ensure_ascii=False, indent=1)
        lines += [f"## {state_title}", "", "~~~json", state, "~~~", ""]
    return "\n".join(lines)


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


def inert_markdown(text: str) -> str:
    """Return Markdown of paragraphs, lists, emphasis and code as it is, and any other text in a fence.

    >>> inert_markdown("*Two* teas")
    '*Two* teas'
    >>> print(inert_markdown("# Mine"))
    ```text
    # Mine
    ```
    """
    from markdown_it import MarkdownIt

    references: dict[str, object] = {}
    tokens = MarkdownIt("commonmark").parse(f"{text}\n\n{END_OF_TEXT}", references)
    types = {token.type for token in tokens} | {part.type for token in tokens for part in token.children or ()}
    plain = "".join(part.content for token in tokens for part in token.children or () if part.type == "text")
    # The end is a paragraph of its own unless a fence or a list was left open.
    closed = len(tokens) > 2 and tokens[-3].level == 0 and tokens[-2].content == END_OF_TEXT
    if closed and types <= INERT and not references and not UNSAFE.search(plain):
        return text
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}text\n{text}\n{fence}"


def describe_attachment(attachment: Attachment, language: str = "en") -> str:
    """Name an attachment with its type and size.

    >>> describe_attachment(Attachment.from_bytes(b"two teas", "order.txt"))
    'order.txt (text/plain, 8 bytes)'
    """
    sentence = translator("cli", language)
    size = sentence("{size} bytes", size=f"{attachment.size:,}")
    return f"{attachment.label} ({attachment.media_type}, {size})"


def _figure(attachment: Attachment, language: str) -> str:
    """Return an attachment as HTML: an image as a data URI, others by their names."""
    described = escape(describe_attachment(attachment, language))
    if attachment.kind != "images" or not attachment.data:
        return f"<p>{described}</p>"
    return f'<figure><img src="{attachment.data_uri}" alt="{escape(attachment.label)}"><figcaption>{described}</figcaption></figure>'


Fill: TypeAlias = Callable[[Iterable[Attachment]], tuple[Attachment, ...]]
"""Returns attachments with their bytes."""


def as_html(
    entries: Sequence[HistoryEntry],
    title: str,
    fill: Fill = tuple,
    written: Mapping[str, str] = MappingProxyType({}),
    language: str = "en",
) -> str:
    """Write a history as one HTML page without scripts; answers are rendered, with links and remote images as text.

    `fill` returns attachments with their bytes, of which images are shown; nothing is loaded from elsewhere. `written` says of
    nodes which model wrote them, and when.
    """
    sentence, body = translator("cli", language), list[str]()
    summarised, state_title = escape(sentence("Earlier turns, summarised:")), escape(sentence("State"))
    for entry, delta in _with_changes(entries):
        node = entry.node
        parts: list[str] = []
        if node.kind == "turn":
            parts += [f'<div class="you" dir="auto">{escape(node.user or "")}</div>']
            parts += (_figure(each, language) for each in fill(node.attachments))
            answer = readable_answer(node.answer or "", entry.after.app.tools)
            parts += [f'<div class="answer" dir="auto">{_rendered().render(answer)}</div>']
        elif node.kind == "summary":
            parts += [f"<p>{summarised} <em>{escape(node.answer or '')}</em></p>"]
        if delta:
            parts += [f'<pre class="changes">{escape(chr(10).join(delta))}</pre>']
        if node.kind == "turn" and entry.hash in written:
            parts += [f"<footer>{escape(written[entry.hash])}</footer>"]
        if parts:
            body += [f'<article id="{entry.hash[:12]}">', *parts, "</article>"]
    state = escape(json.dumps(entries[-1].after.state, ensure_ascii=False, indent=1)) if entries else ""
    head = escape(title or sentence("Conversation"))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{head}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{head}</h1>\n{chr(10).join(body)}\n"
        f"<details><summary>{state_title}</summary><pre>{state}</pre></details></body></html>\n"
    )


@cache
def _rendered() -> "MarkdownIt":
    """Return the renderer of answers: no HTML, and nothing that loads or leads elsewhere."""
    from markdown_it import MarkdownIt

    rules = ["link", "image", "autolink", "reference"]
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["strikethrough", "table"]).disable(rules)


def _with_changes(entries: Sequence[HistoryEntry]) -> list[tuple[HistoryEntry, list[str]]]:
    rows: list[tuple[HistoryEntry, list[str]]] = []
    before: dict[str, Json] = {}
    for entry in entries:
        after = dict(entry.after.state)
        moved = () if entry.node.kind == "root" else diff_states(before, after)
        rows.append((entry, [describe_change(change) for change in moved]))
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
    script = (files("taiwa.operations") / "verify.js").read_text(encoding="utf-8")
    allowed = b64encode(sha256(script.encode()).digest()).decode()
    head = escape(title or sentence("Conversation"))
    off, state_title = escape(sentence("not verified: scripts are off")), escape(sentence("State"))
    data, texts = _script_json(rows), _script_json(_script_texts(language))
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{head}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{VERIFIABLE_STYLE}</style></head>\n'
        f'<body><h1>{head}</h1>\n<p id="verdict" role="status">{off}</p>\n{chr(10).join(body)}\n'
        f"<details><summary>{state_title}</summary><pre data-state></pre></details>\n"
        f'<script type="application/json" id="records">{data}</script>\n'
        f'<script type="application/json" id="texts">{texts}</script>\n<script>{script}</script></body></html>\n'
    )


def _script_json(data: Json) -> str:
    """Write JSON for an element of a page: `<` would end the element or open a comment in it."""
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


def _script_texts(language: str) -> dict[str, Json]:
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


def _escaped_text(text: str | None) -> str:
    return escape(text or "").replace("\r", "&#13;")  # a parser of HTML drops it otherwise
