"""Inspect conversations: log, show, search, diff, why, state, the trace of a turn, and export as Markdown or HTML."""

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import escape
from itertools import pairwise
from math import exp
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, cast

from taiwa.conversation.app import AnswerOptions, App
from taiwa.conversation.history import Node
from taiwa.conversation.state import Change, Missing, diff_states, format_path, get_path, parse_path
from taiwa.i18n import catalogue, translator
from taiwa.kernel.attachments import Attachment
from taiwa.kernel.effects import CallTool, Complete, GetCapabilities, GetEvidence, Retrieve
from taiwa.kernel.errors import InputError, TaiwaError
from taiwa.kernel.execution import Entry
from taiwa.kernel.messages import Evidence, Passage, Request, Response, Thinking, TokenLogprob, ToolResult
from taiwa.kernel.serialization import Json, canonical, record, tag_of, value
from taiwa.kernel.text import inert, plain
from taiwa.operations.result_json import format_time, members, options_to_json, passage_to_json
from taiwa.operations.results import (
    DiffResult,
    InterruptedTurn,
    SessionEntry,
    SessionTree,
    ShowResult,
    StateResult,
    TurnEntry,
    ValueEntry,
    WhyResult,
)
from taiwa.sessions.repository import HistoryEntry, Repository, value_changes
from taiwa.store import CallRecord

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

    from taiwa.kernel.runtime import AnyModel
    from taiwa.models.inprocess.decode_loop import TokenTrace, TracedToken
    from taiwa.sessions.replay import RecordedStep


SIGNS = {"added": "+", "removed": "-", "changed": "~"}
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


def said(turn: Node) -> str:
    """Return the user's text of a turn, or the names of the attachments if there is none."""
    return turn.user or ", ".join(each.label for each in turn.attachments)


def sessions(
    repository: Repository, limit: int | None = None, since: int = 0, *, placed: bool = False
) -> tuple[SessionEntry, ...]:
    """Return the sessions that moved last, the latest first; with a number of `Refs.moves`, those after it.

    `placed`: pinned ones come first, and archived ones last.
    """
    store = repository.store
    refs = store.refs.list(since)
    refs = tuple(sorted(refs, key=lambda ref: ref.archived - ref.pinned) if placed else refs)[:limit]
    costs = {line.name: line.cost_nano for line in store.costs("session")} if refs else {}
    entries: list[SessionEntry] = []
    for ref, last in zip(refs, store.nodes.get_all([ref.tip for ref in refs]), strict=True):
        first = store.nodes.first_turn(ref.tip)
        text = "" if first is None else said(first)
        model = repository.last_model(ref.tip, ref.name)
        entries.append(SessionEntry(ref, text, model, costs.get(ref.name, 0), last.answer or ""))
    return tuple(entries)


def log(repository: Repository, revision: str, limit: int) -> tuple[TurnEntry, ...]:
    """Return the newest nodes up to a revision, oldest first."""
    path = list(repository.store.nodes.path(repository.store.resolve(revision)))
    number = sum(1 for _, node in path if node.kind == "turn")
    session = revision if repository.store.refs.has(revision) else ""
    entries: list[TurnEntry] = []
    for name, node in path[:limit]:
        entries.append(TurnEntry(name, node, number, node.model or repository.store.runs.model_of(name, session)))
        number -= node.kind == "turn"
    return tuple(reversed(entries))


def interrupted(repository: Repository, session: str | None = None) -> tuple[InterruptedTurn, ...]:
    """Return the turns of all sessions, or of one, that were cut off and can be resumed; the latest first."""
    runs = [run for run in repository.store.runs.open_runs(session) if run.ref]
    return tuple(InterruptedTurn(run, repository.app(run.app).name if run.app else "") for run in reversed(runs))


def tree(repository: Repository, session: str = "") -> SessionTree:
    """Return the histories of all sessions, or of one, as one forest; what a session left, by an edit or undo, is in it.

    The end of a branch without a session has the revision `name@{n}` as its name.

    Raises:
        InputError: there is no such session.
    """
    refs = repository.store.refs
    if session:
        refs.tip(session)
    names: dict[str, list[str]] = {}
    for ref in refs.list():
        if not session or ref.name == session:
            names.setdefault(ref.tip, []).append(ref.name)
    left = [(revision, tip) for revision, tip in refs.left() if not session or revision.rpartition("@")[0] == session]
    children: dict[str | None, dict[str, Node]] = {}
    placed: set[str] = set()

    def place(tip: str) -> None:
        for name, node in repository.store.nodes.path(tip):
            if name in placed:
                break
            placed.add(name)
            children.setdefault(node.parent, {})[name] = node

    for tip in reversed(list(names)):
        place(tip)
    for revision, tip in left:
        if tip not in placed:
            names[tip] = [revision]
            place(tip)
    return SessionTree(children, names)


def show(repository: Repository, revision: str, *, reasoning: bool = False) -> ShowResult:
    """Return one node with the conversation after it and its calls; on request with the model's reasoning."""
    name = repository.store.resolve(revision)
    return ShowResult(
        name,
        repository.store.nodes.get(name),
        repository.checkout(name),
        _model_calls(repository.store.runs.calls(name, repository.store.refs.session_of(revision))),
        _reasoning(repository, name) if reasoning else None,
    )


def _reasoning(repository: Repository, node: str) -> str:
    """Return the reasoning before the answers of a turn, from the journal of its run."""
    answers = (entry.answer for entry in repository.store.runs.journal_of(node))
    parts = (part for answer in answers if isinstance(answer, Response) for part in answer.message.parts)
    thoughts = (part.text.strip() for part in parts if isinstance(part, Thinking))
    return "\n\n".join(thought for thought in thoughts if thought)


def diff(repository: Repository, before: str, after: str) -> DiffResult:
    """Compare two revisions: their states, the texts of their turns, and the models that answered."""
    left, right = repository.store.resolve(before), repository.store.resolve(after)
    old, new = repository.checkout(left), repository.checkout(right)
    found = tuple(diff_states(dict(old.state), dict(new.state)))
    texts, models = (
        (_texts(repository, left), _texts(repository, right)),
        (_models(repository, left), _models(repository, right)),
    )
    return DiffResult(left, right, found, *texts, *models)


def why(repository: Repository, path: str, revision: str) -> WhyResult:
    """Return the node that set a value of the state last, and its calls.

    Raises:
        InputError: the path is invalid, or the state never had a value there.
    """
    where = parse_path(path)
    store = repository.store
    tip = store.resolve(revision)
    origin = repository.find_origin(tip, where)
    if origin is None:
        app = repository.app(store.nodes.get(tip).app).name
        name = revision or repository.session()
        raise InputError(
            f"no value at {format_path(where)} in {name!r} (app {app}); `taiwa log` lists the conversations"
        )
    calls = _model_calls(store.runs.calls(origin.hash, store.refs.session_of(revision)))
    return WhyResult(where, origin, calls, repository.sources(origin))


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
    changes = value_changes(repository.walk(repository.store.resolve(revision)), where)
    return tuple(
        ValueEntry(entry.hash, f"{entry.node.kind} {entry.after.count}", value)
        for entry, _, value in changes
        if not isinstance(value, Missing)
    )


def set_value(
    repository: Repository, session: str, path: str, new: Json, *, author: str = "", at: str = ""
) -> tuple[StateResult, tuple[Change, ...]]:
    """Set a value of the state by hand, as a node of its own; return the new state and the changes.

    `author` is who did it; with `at` the session continues from that node.

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
    """Describe the options of a conversation's answers, as the options of `say` that set them.

    >>> describe_options(AnswerOptions("Be brief.", tools=("calculator",)))
    "--system 'Be brief.' --tool calculator"
    """
    words: list[str] = []
    for name, given in options_to_json(options).items():
        flag = "--tool" if name == "tools" else f"--{name.replace('_', '-')}"
        words += [f"{flag} {shlex.quote(f'{each}')}" for each in (given if isinstance(given, list) else [given])]
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
    """Write a conversation as `jsonl` (which can be imported), `md`, `html`, or `verifiable`: HTML that verifies itself; or as the
    messages of `openai`, `anthropic` or `sharegpt`.

    In `jsonl`, `calls` adds the bill of each turn, and `app` the app, with its instructions and parameters. Without
    `attachments`, their bytes are left out, in `html` the images. `language` is that of the headings, of `LANGUAGES`.
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
        return as_verifiable_html(entries, revision, language)
    written = {
        entry.hash: " · ".join(
            filter(None, (store.runs.model_of(entry.hash), format_time(store.nodes.time(entry.hash))))
        )
        for entry in entries
    }
    if form == "md":
        return plain(as_markdown(entries, revision, written, language))
    return plain(as_html(entries, revision, store.blobs.fill if attachments else tuple, written, language))


def _model_calls(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
    """Return the calls without recorded queries of capabilities."""
    return tuple(call for call in calls if call.kind != tag_of(GetCapabilities))


def _texts(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the lines of the texts of all turns up to a node."""
    lines: list[str] = []
    for _, node in reversed(tuple(repository.store.nodes.path(tip))):
        if node.kind == "turn":
            lines += [f"> {line}" for line in (node.user or "").splitlines()]
            lines += [f"  {line}" for line in (node.answer or "").splitlines()]
    return tuple(lines)


def _models(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the models that answered up to a node, the first one first."""
    path = reversed(tuple(repository.store.nodes.path(tip)))
    return tuple(dict.fromkeys(str(node.answered_by) for _, node in path if node.kind == "turn" and node.model))


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
            files = "".join(
                f"\n> `{describe_attachment(each, language).replace('`', ' ')}`" for each in node.attachments
            )
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
    # What defines references is no block, and may change the text of other turns; blocks that were changed may join.
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
    from taiwa.operations.markdown_html import to_html

    sentence, body = translator("cli", language), list[str]()
    summarised, state_title = escape(sentence("Earlier turns, summarised:")), escape(sentence("State"))
    for entry, delta in _with_changes(entries):
        node = entry.node
        parts: list[str] = []
        if node.kind == "turn":
            parts += [f'<div class="you" dir="auto">{escape(node.user or "")}</div>']
            parts += (_figure(each, language) for each in fill(node.attachments))
            parts += [f'<div class="answer" dir="auto">{to_html(answer_markdown(node, entry.after.app))}</div>']
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


# --- trace ------------------------------------------------------------------------------------------------------------
# Trace a turn: its calls of models and tools with what they were given, its searches and scores, and the tokens of its answers.
#
# Everything is read from the journal. The tokens of a model in this process are found by reading its answer again.

DECISION = ("act", "policy", "reasons", "numbers", "scores", "evidence", "query", "queries")
NOT_SAMPLED = "the text was not sampled from a network, or is not kept as it was sampled"
DIGITS = 6
MOST_ALTERNATIVES = 20


@value
class TraceResult:
    """The steps of a turn as JSON objects, each with its `kind`: `model`, `tool`, `search` or `evidence`.

    `decision` is the decision of a turn of the flow `ask`. `whole` is False if the inputs of the steps are unknown, because
    the turn cannot be replayed.
    """

    node: str
    steps: tuple[Mapping[str, Json], ...]
    decision: Mapping[str, Json]
    whole: bool


@value
class AnswerTokens:
    """The tokens of one answer of a model.

    `source` is `model` if the model read the answer again, `recorded` if its server reported log probabilities, else "", and
    `note` says why. `exact` says that the tokens are the sampled ones. `prefix` is the prefilled beginning, which `text`
    does not include.
    """

    role: str
    model: str
    text: str
    source: str
    exact: bool
    note: str
    tokens: tuple[Mapping[str, Json], ...]
    prefix: str = ""


@value
class TokensResult:
    """The tokens of the answers of a node, in the order of its calls."""

    node: str
    answers: tuple[AnswerTokens, ...]


def trace(repository: Repository, revision: str) -> TraceResult:
    """Return the calls, tools, searches and scores of a node, without calling anything.

    Raises:
        InputError: the revision does not exist.
    """
    from taiwa.sessions.replay import recorded_steps

    name = repository.store.resolve(revision)
    from taiwa.flows.ask.ask_result import documents_of

    decided = documents_of(repository.store.nodes.get(name).findings) or {}
    steps: list[Mapping[str, Json]] = []
    last: Request | None = None
    found = recorded_steps(repository, name)
    for step in found:
        request = step.effect.request if isinstance(step.effect, Complete) else None
        if (written := _step(step, last)) is not None:
            steps.append(written)
        last = request or last
    decision = {key: decided[key] for key in DECISION if key in decided}
    return TraceResult(name, tuple(steps), decision, all(step.effect is not None for step in found))


def _step(step: "RecordedStep", last: Request | None) -> dict[str, Json] | None:
    """Write one step; None for effects that a trace omits, such as the capabilities of a model."""
    answer, effect, entry = step.entry.answer, step.effect, step.entry
    if isinstance(effect, Complete) or isinstance(answer, Response):
        asked = effect if isinstance(effect, Complete) else None
        return _model_step(asked, answer if isinstance(answer, Response) else None, last) | _ending(entry)
    if isinstance(effect, CallTool) or isinstance(answer, ToolResult):
        called = effect if isinstance(effect, CallTool) else None
        result = answer if isinstance(answer, ToolResult) else None
        return {
            "kind": "tool",
            "name": called.name if called else (result.name if result else ""),
            "arguments": dict(called.arguments) if called else None,
            "text": result.text if result else None,
            "value": result.value if result else None,
            **_ending(entry),
        }
    if isinstance(effect, Retrieve):
        passages = cast("tuple[Passage, ...]", answer or ())
        return {
            "kind": "search",
            "query": effect.query,
            "passages": list(map(passage_to_json, passages)),
            **_ending(entry),
        }
    if isinstance(effect, GetEvidence) and isinstance(answer, Evidence):
        return {"kind": "evidence", "query": effect.query, "figures": record(answer), **_ending(entry)}
    return None


def _model_step(asked: Complete | None, response: Response | None, last: Request | None) -> dict[str, Json]:
    written: dict[str, Json] = {"kind": "model"}
    if asked is not None:
        constraint = asked.request.constraint
        kind = None if constraint is None else tag_of(type(constraint))
        written |= {"role": asked.role, "repair": _repairs(asked.request, last), "constraint": kind}
    if response is not None:
        written |= {
            **members(response, "model text"),
            "reasoning": "".join(part.text for part in response.message.thinking) or None,
            "tool_calls": [members(call, "id name arguments") for call in response.message.tool_calls],
            **members(response, "finish enforcement usage"),
        }
    return written


def _repairs(request: Request, last: Request | None) -> bool:
    """Return whether a request repeats the last one, with its answer and the diagnostics."""
    if last is None:
        return False
    sent, before = request.messages, last.messages
    roles = [message.role for message in sent[len(before) :]]
    return sent[: len(before)] == before and roles == ["assistant", "user"]


def _ending(entry: Entry) -> dict[str, Json]:
    error = entry.error.message if isinstance(entry.error, TaiwaError) else None
    if error is None and isinstance(entry.answer, ToolResult) and entry.answer.error:
        error = entry.answer.error
    return {"error": error, "ms": round(entry.seconds * 1000)}


def tokens(
    repository: Repository, revision: str, model_named: Callable[[str], "AnyModel | None"], most: int = 5
) -> TokensResult:
    """Return the tokens of the answers of a node, with the `most` likeliest ones at each position.

    A model in this process reads its answer again under the same constraint; for others the reported log probabilities are
    used. `model_named` returns a model by its name, or None.

    Raises:
        InputError: the revision does not exist, or `most` is out of range.
        ConfigError: a model cannot be loaded.
    """
    from taiwa.sessions.replay import recorded_steps

    if not 0 <= most <= MOST_ALTERNATIVES:
        raise InputError(f"the number of alternatives must be from 0 to {MOST_ALTERNATIVES}, got {most}")
    name = repository.store.resolve(revision)
    asked = repository.store.runs.model_of(name)
    found: list[AnswerTokens] = []
    for step in recorded_steps(repository, name):
        if isinstance(step.entry.answer, Response):
            effect = step.effect if isinstance(step.effect, Complete) else None
            answer = _tokens_of(effect, step.entry.answer, asked, model_named, most)
            found.append(answer if effect is None else replace(answer, prefix=effect.request.prefix))
    return TokensResult(name, tuple(found))


def _tokens_of(
    effect: Complete | None, response: Response, asked: str, model_named: Callable[[str], "AnyModel | None"], most: int
) -> AnswerTokens:
    request, role = (None, "") if effect is None else (effect.request, effect.role)
    name = response.model or asked
    model = model_named(name) or model_named(asked)
    note = _missing(request, model, name)
    if request is not None and model is not None:
        try:
            found = _read_again(model, request, response.text, most)
        except TaiwaError as error:
            note = f"{NOT_SAMPLED}: {error.message}"
        else:
            if found is not None:
                written = tuple(map(_traced, found.tokens))
                return AnswerTokens(role, name, response.text, "model", found.exact, found.refused, written)
    if response.logprobs:
        listed = tuple(_recorded(token, most) for token in response.logprobs)
        return AnswerTokens(role, name, response.text, "recorded", True, "", listed)
    return AnswerTokens(role, name, response.text, "", False, note, ())


def _read_again(model: "AnyModel", request: Request, text: str, most: int) -> "TokenTrace | None":
    """Let a model read its answer again; None for one that does not run in this process."""
    from taiwa.models.providers import in_process

    inside = in_process(model)
    return None if inside is None else inside.trace(request, text, most)


def _missing(request: Request | None, model: "AnyModel | None", name: str) -> str:
    if request is None:
        return "the turn cannot be replayed from its journal"
    if model is None:
        return f"the model {name!r} is not served here, and its answer has no log probabilities"
    return f"{name} does not run in this process, and its answer has no log probabilities"


def _traced(token: "TracedToken") -> dict[str, Json]:
    alternatives: list[Json] = [
        {
            **_text(each.text), "allowed": each.allowed,
            "probability": round(each.probability, DIGITS), "unmasked": round(each.unmasked, DIGITS),
        }
        for each in token.alternatives
    ]  # fmt: skip
    return {
        **_text(token.text), "forced": token.forced, "probability": round(token.probability, DIGITS),
        "unmasked": round(token.unmasked, DIGITS), "allowed": token.allowed,
        **members(token.here, "pointer keyword expected"), "alternatives": alternatives,
    }  # fmt: skip


def _recorded(token: TokenLogprob, most: int) -> dict[str, Json]:
    alternatives: list[Json] = [
        {"text": text, "allowed": None, "probability": round(exp(logprob), DIGITS), "unmasked": None}
        for text, logprob in token.top_logprobs[:most]
    ]
    return {
        "text": token.token, "forced": False, "probability": round(exp(token.logprob), DIGITS), "unmasked": None,
        "allowed": None, "pointer": "", "keyword": "", "expected": "", "alternatives": alternatives,
    }  # fmt: skip


def _text(written: bytes) -> dict[str, Json]:
    """Write a token; one that is not valid UTF-8 has its bytes too."""
    try:
        return {"text": written.decode()}
    except UnicodeDecodeError:
        return {"text": written.decode("utf-8", "replace"), "bytes": list(written)}
