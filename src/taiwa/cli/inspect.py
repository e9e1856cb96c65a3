"""Inspect, export and import conversations: log, show, search, state, diff, why, export, import."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import (
    NEW_FILE,
    CommonOptions,
    Group,
    common_options,
    complete_session,
    complete_tag,
    confirm,
    read_whole,
    require_query,
)
from taiwa.cli.output import (
    bracketed,
    is_rendered,
    one_line,
    print_cut,
    print_item,
    print_line,
    print_markdown,
    print_notice,
    print_result,
    print_rows,
)
from taiwa.conversation.state import Change, format_path
from taiwa.i18n import _, gettext_noop, ngettext, user_language
from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import InputError, StoreError
from taiwa.kernel.serialization import Json, parse_json, tag_of
from taiwa.kernel.usage_limits import format_cost
from taiwa.operations import inspect
from taiwa.operations.export import answer_markdown
from taiwa.operations.export import export as export_conversation
from taiwa.operations.files import write_file
from taiwa.operations.inspect import describe_change, describe_options, format_value, said
from taiwa.operations.result_json import format_time

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.conversation.history import Conversation, Node
    from taiwa.flows.ask.provenance import ValueSource
    from taiwa.kernel.messages import Message
    from taiwa.operations.results import InterruptedTurn
    from taiwa.sessions.repository import Repository
    from taiwa.store import CallRecord

FORMATS = {".jsonl": "jsonl", ".md": "md", ".html": "html"}
FIRST_WORDS = 60
SOURCE_CHARS = 160
"""Characters of the first text of a conversation in a list."""
CUT_OFF = gettext_noop("cut off")
"""What a turn without an answer shows, which can be resumed."""
KINDS = {
    "root": gettext_noop("root"), "turn": gettext_noop("turn"), "summary": gettext_noop("summary"), "edit": gettext_noop("edit"),
    "app": gettext_noop("app"),
}  # fmt: skip
STYLES = {"added": "green", "removed": "red", "changed": "yellow"}


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@click.option(
    "--tree", is_flag=True, help="Show conversations as branches of one tree, with those that edit and undo left."
)
@click.option("-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most this many.")
@click.option("--tag", default="", shell_complete=complete_tag, help="List only conversations with this tag.")
@common_options("session", "as_json", "store")
def log(common: CommonOptions, revision: str, tree: bool, limit: int, tag: str) -> None:
    """List all conversations, or print the turns of one, those that were cut off included.

    \b
    taiwa log                list all conversations, the latest first
    taiwa log chat-1         print its turns, also as taiwa log -s chat-1
    taiwa log chat-1:9 -n 5  print the five turns up to turn 9
    taiwa log --tree         show branches, those that edit and undo left included; with a name, those of one
    """
    repository, revision = common.repository(reading=True), common.place(revision)
    if tag and (tree or revision):
        raise InputError("--tag lists conversations; give it without --tree and without a revision")
    if tree:
        _print_tree(repository, revision, as_json=common.as_json)
    elif revision:
        print_log(repository, revision, limit, as_json=common.as_json)
    else:
        _print_sessions(repository, limit, tag, as_json=common.as_json)


def _print_sessions(repository: "Repository", limit: int, tag: str, *, as_json: bool) -> None:
    entries, cut_off = inspect.sessions(repository, limit, tag=tag), () if tag else inspect.interrupted(repository)
    rows = [
        (each.run.ref, each.app, _(CUT_OFF), "", "", format_time(each.run.at_us), one_line(each.run.text, FIRST_WORDS))
        for each in cut_off
    ]
    rows += [
        (
            each.ref.name, each.ref.app, str(each.ref.turns), each.model, format_cost(each.cost),
            format_time(each.ref.at_us),
            one_line(" ".join((*(f"#{tag}" for tag in each.ref.tags), each.ref.title or each.text)), FIRST_WORDS),
        )
        for each in entries
    ]  # fmt: skip
    heads = (_("session"), _("app"), _("turns"), _("model"), _("cost"), _("last"), _("first words"))
    none = (
        _("no conversation has the tag {tag}", tag=tag)
        if tag
        else _("there are no conversations yet; begin one with `taiwa chat` or `taiwa say`")
    )
    print_rows((*cut_off, *entries), heads, rows, frozenset({2, 4}), as_json=as_json, none=none, spare=(3, 4, 1, 5))
    _mention_resume(cut_off, as_json=as_json)


def _mention_resume(cut_off: "Sequence[InterruptedTurn]", *, as_json: bool) -> None:
    if cut_off and not as_json:
        print_notice(_("taiwa resume NAME finishes a turn that was cut off, and with --discard drops it"))


def print_log(repository: "Repository", revision: str, limit: int, *, as_json: bool = False) -> None:
    """Print the turns up to a revision; after those of a session, its turns that were cut off."""
    cut_off = inspect.interrupted(repository, revision)[::-1]
    has_turns = not cut_off or repository.store.refs.has(revision)
    entries = inspect.log(repository, revision, limit) if has_turns else ()
    if as_json:
        print_result((*entries, *cut_off))
        return
    several = len({each.model for each in entries if each.model}) > 1  # show the model only if it changed
    shown = [each for each in entries if each.node.kind == "turn" or _excerpt(repository, each.node)]
    for number, each in enumerate(shown):
        if number:
            print_line("")
        place = _("turn {turn}", turn=each.turn) if each.node.kind == "turn" else _(KINDS[each.node.kind])
        when = format_time(repository.store.nodes.time(each.hash))
        print_line(" · ".join(filter(None, (place, each.hash[:12], each.model if several else "", when))), "dim")
        if each.node.kind == "turn":
            _print_turn(each.node, repository.app(each.node.app))
        else:
            print_line(_excerpt(repository, each.node))
    for turn in cut_off:
        print_line(f"{_(CUT_OFF)}: {one_line(turn.run.text, FIRST_WORDS)}", "yellow")
    _mention_resume(cut_off, as_json=as_json)


def _print_turn(node: "Node", app: "App") -> None:
    """Print the texts of a turn; on a terminal the answer is rendered, as when it was written."""
    if node.user:
        print_line(_("you: {text}", text=node.user), "bold")
    _print_attachments(node)
    if node.answer is None:
        return
    if is_rendered():
        print_line("")
        print_markdown(answer_markdown(node, app))
    else:
        print_line(f"{app.name}: {_readable(node.answer, app)}")


def _print_attachments(node: "Node") -> None:
    for each in node.files:
        print_line(_("attached: {file}", file=inspect.describe_attachment(each)), "dim")


def _readable(answer: str, app: "App") -> str:
    from taiwa.flows.solve.tool_call_formats import readable_answer

    return readable_answer(answer, app.tools) if app.tools else answer


def _print_tree(repository: "Repository", session: str, *, as_json: bool) -> None:
    """Print histories as one forest: a node with several children is a branching point."""
    found = inspect.tree(repository, session)
    if as_json:
        print_result(found)
        return
    stack = [(name, node, "", "") for name, node in reversed(list(found.children.get(None, {}).items()))]
    while stack:
        name, node, lead, stem = stack.pop()
        text = _excerpt(repository, node) or repository.app(node.app).name
        label = f"  ← {', '.join(found.names[name])}" if name in found.names else ""
        print_cut(f"{lead}{name[:12]} {_(KINDS[node.kind]):4} ", text, label)
        stack += _branches(list(found.children.get(name, {}).items()), stem)


def _branches(kin: "list[tuple[str, Node]]", stem: str) -> "list[tuple[str, Node, str, str]]":
    """Return the children of a node, the first one last, each with what is drawn before it and before its own children."""
    if len(kin) < 2:
        return [(name, node, stem, stem) for name, node in kin]
    signs = [("├─ ", "│  ")] * (len(kin) - 1) + [("└─ ", "   ")]
    return [
        (name, node, stem + here, stem + below) for (name, node), (here, below) in zip(kin, signs, strict=True)
    ][::-1]  # fmt: skip


def _excerpt(repository: "Repository", node: "Node") -> str:
    text = said(node) if node.kind == "turn" else format_value(node.delta) if node.kind == "edit" else node.answer
    if node.kind in ("root", "app"):
        app = repository.app(node.app)
        text = f"{app.name if node.kind == 'app' else ''} {describe_options(app.answer_options)}".strip()
    return one_line(text or "", FIRST_WORDS)


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@click.option("--reasoning", is_flag=True, help="Also show the reasoning of the model.")
@common_options("session", "as_json", "store")
def show(common: CommonOptions, revision: str, reasoning: bool) -> None:
    """Show the turn at REVISION: texts, delta, state, calls and cost.

    \b
    taiwa show             the last turn of the latest conversation
    taiwa show 2           its second turn
    taiwa show chat-1:2    the second turn of chat-1, also as taiwa show -s chat-1 2
    taiwa show chat-1~2    two turns before its last one
    taiwa show 3f9a12      by the beginning of its hash
    """
    found = inspect.show(common.repository(reading=True), common.place(revision), reasoning=reasoning)
    if common.as_json:
        print_result(found)
        return
    node, here = found.node, found.conversation
    place = _("{kind}, turn {turn}, app {app}", kind=_(KINDS[node.kind]), turn=here.count, app=here.app.name)
    print_line(f"{found.hash}  {place}", "bold")
    if options := inspect.describe_options(here.app.answer_options):
        heading = _("options")
        print_line(f"{heading}: {options}", "dim")
    if node.user is not None:
        print_line("\n" + _("you: {text}", text=node.user), "bold")
    _print_attachments(node)
    if found.reasoning is not None:
        heading, missing = _("reasoning"), _("none was recorded")
        print_line(f"\n{heading}: {found.reasoning or missing}", "dim")
    if node.answer is not None:
        print_line("")
        answer = _readable(node.answer, here.app)
        if is_rendered():
            print_markdown(answer_markdown(node, here.app))
        else:
            print_line(f"{here.app.name}: {answer}")
        if answer != node.answer:
            print_line("\n" + _("with its calls: {text}", text=node.answer), "dim")
    if node.delta:
        print_line("\n" + _("delta: {delta}", delta=inspect.format_value(node.delta)))
    for field, value in here.state.items():
        print_line(f"  {field}: {inspect.format_value(value)}")
    if node.model and not any(call.model for call in found.calls):  # imported
        print_line(_("answered by {model}", model=node.answered_by), "dim")
    for call in found.calls:
        print_line(_("call: {call}", call=_describe_call(call)), "dim")


@click.command()
@click.argument("text", required=False)
@click.option("-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="Show at most this many.")
@common_options("as_json", "store")
def search(common: CommonOptions, text: str | None, limit: int) -> None:
    """Find the newest turns that contain all words of TEXT, in any language; without TEXT, or with `-`, of the piped text.

    \b
    taiwa search 会議
    taiwa search "apple pie" -n 5
    """
    text = require_query(text, "search takes a TEXT, or piped text")
    try:
        repository = common.repository()  # a search adds new turns to the index if the store is writable
    except StoreError:
        repository = common.repository(reading=True)
    hits = repository.store.search(text, limit)
    rows = [(hit.hash[:12], ", ".join(hit.refs[:3]), bracketed(hit.excerpt.text, hit.excerpt.marks)) for hit in hits]
    none = _("no turn contains {text}", text=repr(text))
    print_rows(hits, (_("node"), _("session"), _("text")), rows, as_json=common.as_json, none=none)


@click.command()
@click.argument("before", shell_complete=complete_session)
@click.argument("after", required=False, default="", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def diff(common: CommonOptions, before: str, after: str) -> None:
    """Compare two revisions: their states, the texts of their turns, and the models that answered.

    AFTER defaults to the current conversation.

    \b
    taiwa diff chat-1~2            what the last two turns of chat-1 changed, if it is the current one
    taiwa diff chat-1 plan-b       two branches
    """
    print_diff(common.repository(reading=True), common.place(before), common.place(after), as_json=common.as_json)


def print_diff(repository: "Repository", before: str, after: str, *, as_json: bool = False) -> None:
    """Print what differs between two revisions."""
    import difflib

    found = inspect.diff(repository, before, after)
    if as_json:
        print_result(found)
        return
    print_changes(found.changes)
    one, other = found.before_lines, found.after_lines
    for line in difflib.unified_diff(one, other, before or "latest", after or "latest", lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            print_line(f"{line[0]} {line[1:]}", "green" if line.startswith("+") else "red")
    models = found.before_models, found.after_models
    if models[0] != models[1]:
        old, new = (", ".join(names) or _("none") for names in models)
        print_line(_("answered by {before} → {after}", before=old, after=new), STYLES["changed"])
    elif not found.changes and one == other:
        print_line(_("nothing changed"))


def print_changes(changes: Iterable[Change]) -> None:
    """Print changes of a state, a line each."""
    for change in changes:
        print_line(describe_change(change), STYLES[change.kind])


@click.command()
@click.argument("path")
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def why(common: CommonOptions, path: str, revision: str) -> None:
    """Show which turn, and which model call, set the value at PATH last.

    \b
    taiwa why topics
    taiwa why 'topics[0]' chat-1:3
    """
    print_why(common.repository(reading=True), path, common.place(revision), as_json=common.as_json)


def print_why(repository: "Repository", path: str, revision: str, *, as_json: bool = False) -> None:
    """Print the turn that set a value."""
    found = inspect.why(repository, path, revision)
    if as_json:
        print_result(found)
        return
    from rich.cells import set_cell_size

    origin, node, shown = found.origin, found.origin.node, inspect.format_value
    where, texts = format_path(found.path), {"path": format_path(found.path), "hash": origin.hash[:12]}
    by = {
        "turn": _("turn {turn}", turn=origin.turn),
        "edit": origin.node.answer or _("an edit of the state"),
        "app": _("a change of app"),
    }.get(node.kind, _("the app's start"))
    removed = _("{path} was removed", **texts)
    print_line(removed if origin.is_removed else f"{where} = {shown(origin.after)}", "bold")
    done = (
        _("removed by {by} ({hash})", by=by, **texts)
        if origin.is_removed
        else _("set by {by} ({hash})", by=by, **texts)
    )
    before = _(", before: {value}", value=shown(origin.before)) if origin.before is not None else ""
    print_line(f"  {done}{before}")
    fields = [(_("from"), _describe_source(source)) for source in found.sources]
    if node.user is not None:
        fields += [(_("you"), node.user), (_("answer"), node.answer or "")]
    if node.delta is not None:
        fields.append((_("delta"), shown(node.delta)))
    fields += [(_("call"), _describe_call(call)) for call in found.calls]
    for label, text in fields:
        print_line(f"  {set_cell_size(f'{label}:', 12)} {text}")


def _describe_source(source: "ValueSource") -> str:
    """Describe the source of a part of a value on one line."""
    part = f"{source.path}: " if source.path else ""
    words = f"“{one_line(source.words, SOURCE_CHARS)}”"
    match source.kind:
        case "tool":
            return (
                f"{part}{source.tool}({one_line(source.input, SOURCE_CHARS)}) = {one_line(source.words, SOURCE_CHARS)}"
            )
        case "passage" if source.citation is not None:
            from taiwa.flows.ask.ask_result import format_source
            from taiwa.i18n import dialogue_catalogue, user_language

            return f"{part}{format_source(source.citation, dialogue_catalogue(user_language()))}: {words}"
        case "user":
            return part + _("your words: {words}", words=words)
        case "answer":
            return part + _("the answer before: {words}", words=words)
        case _:
            return part + _("the model's own words; no source holds {words}", words=words)


def _describe_call(call: "CallRecord") -> str:
    """Describe a call on one line: model, tokens and duration."""
    if isinstance(call.answer, dict) and call.answer.get("~") == "tool-result":
        result = one_line(str(call.answer.get("text")), FIRST_WORDS)
        return _("tool, result {result}, {ms} ms", result=result, ms=call.time.ms)
    tokens = _("tokens not reported")
    if call.usage is not None:
        tokens = _("{read} in + {written} out tokens", read=call.usage.input_tokens, written=call.usage.output_tokens)
    return ", ".join((*((call.model, tokens) if call.kind == tag_of(Complete) else (call.kind,)), f"{call.time.ms} ms"))


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
@common_options("session", "as_json", "store")
def state(common: CommonOptions, ctx: click.Context) -> None:
    """Show the state or a part of it, edit it, and show its history.

    \b
    taiwa state                            the state of the latest conversation
    taiwa state get topics
    taiwa state set topics '["tea"]'       an edit is a node of its own, shown by why and reverted by undo
    taiwa state history topics             every value that the field had
    """
    if ctx.invoked_subcommand is None:
        print_state(common.repository(reading=True).at(common.session), as_json=common.as_json)


@state.command()
@click.argument("path", default="")
@click.argument("revision", default="")
@common_options("session", "as_json", "store")
def get(common: CommonOptions, path: str, revision: str) -> None:
    """Show the value at PATH, or the whole state.

    \b
    taiwa state get 'topics[0]'
    taiwa state get topics chat-1:2
    """
    here = common.repository(reading=True).at(common.place(revision))
    if not path:
        print_state(here, as_json=common.as_json)
        return
    value = inspect.value_at(dict(here.state), path)
    print_item(value, inspect.format_value(value), as_json=common.as_json)


@state.command("set")
@click.argument("path")
@click.argument("value")
@common_options("session", "as_json", "store")
def set_(common: CommonOptions, path: str, value: str) -> None:
    """Set the value at PATH to JSON; a word that is not JSON is taken as text.

    \b
    taiwa state set topics '["tea"]'
    """
    try:
        parsed: Json = parse_json(value)
    except ValueError:
        parsed = value
    found, changes = inspect.set_value(common.repository(), common.session, path, parsed)
    if common.as_json:
        print_result(found)
    else:
        print_changes(changes)


@state.command()
@click.argument("path")
@common_options("session", "as_json", "store")
def history(common: CommonOptions, path: str) -> None:
    """Show every value that PATH had, oldest first.

    \b
    taiwa state history topics
    """
    entries = inspect.value_history(common.repository(reading=True), path, common.session)
    rows = [(each.node[:12], each.by, inspect.format_value(each.value)) for each in entries]
    none = _("{path} never had a value", path=path)
    print_rows(entries, (_("node"), _("by"), _("value")), rows, as_json=common.as_json, none=none)


def print_state(here: "Conversation", *, as_json: bool) -> None:
    """Print the state of a conversation."""
    if as_json:
        print_result(here)
        return
    if not here.state:
        print_notice(_("app {app} has no state", app=here.app.name))
    for name, item in here.state.items():
        print_line(f"{name}: {format_value(item)}")


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@click.option("-o", "--output", type=NEW_FILE, help="Write a file; its suffix sets the format.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "md", "html", "verifiable", "openai", "anthropic", "sharegpt"]),
    help="Set the format; import reads jsonl and the messages of openai, anthropic and sharegpt, and verifiable is HTML whose script checks every hash.",
)
@click.option("--calls", is_flag=True, help="Include the bill of each turn (jsonl).")
@click.option("--app", is_flag=True, help="Include the app, to import into another store (jsonl).")
@click.option("--no-attachments", is_flag=True, help="Leave out the bytes of attachments (jsonl) and images (html).")
@click.option(
    "--otel", is_flag=True, help="Write the spans of its turns for OpenTelemetry (OTLP JSON lines), without texts."
)
@click.option("--otel-endpoint", metavar="URL", help="Send the spans to this OpenTelemetry collector.")
@click.option("--otel-content", is_flag=True, help="Include the texts of messages, tools and passages in the spans.")
@common_options("session", "store")
def export(
    common: CommonOptions,
    revision: str,
    output: Path | None,
    form: str | None,
    calls: bool,
    app: bool,
    no_attachments: bool,
    *,
    otel: bool,
    otel_endpoint: str | None,
    otel_content: bool,
) -> None:
    """Write the conversation at REVISION as JSONL (for import), Markdown, one HTML page, or messages of other programs.

    \b
    taiwa export chat-1 --app > chat-1.jsonl
    taiwa export chat-1 -o chat-1.html
    taiwa export chat-1 --format openai > messages.json
    taiwa export chat-1 --otel > spans.jsonl
    """
    repository, revision = common.repository(reading=True), common.place(revision)
    if otel or otel_endpoint is not None:
        if form or calls or app or no_attachments or (output is not None and otel_endpoint is not None):
            raise InputError("--otel goes with -o or --otel-endpoint, and with --otel-content, not with other options")
        _export_spans(repository, revision, output, otel_endpoint, content=otel_content)
        return
    if otel_content:
        raise InputError("--otel-content requires --otel or --otel-endpoint")
    form = form or (_format_of(output) if output else "jsonl")
    if form == "verifiable" and output is None:  # its texts may contain control codes
        raise InputError("--format verifiable requires a file: -o FILE.html")
    _write(_exported(repository, revision, form, calls=calls, app=app, attachments=not no_attachments), output)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    write_file(output, text, private=True)
    print_notice(_("written to {path}", path=output))


def _export_spans(
    repository: "Repository", revision: str, output: Path | None, endpoint: str | None, *, content: bool
) -> None:
    """Write the spans of a conversation, or send them to a collector."""
    from taiwa.operations.otel import Collector, otlp_lines

    collector = None if endpoint is None else Collector(endpoint)
    lines = tuple(otlp_lines(repository, revision, content=content))
    if not lines:
        raise InputError("cannot export spans: the journal of these turns is not in this store")
    if collector is not None:
        count = collector.send(lines)
        print_notice(ngettext("{n} turn sent", "{n} turns sent", count))
    else:
        _write("".join(f"{line}\n" for line in lines), output)


def save(repository: "Repository", revision: str, path: Path) -> None:
    """Write a conversation to a file, in the format of its suffix.

    Raises:
        InputError: the suffix is unknown, or the file cannot be written.
    """
    write_file(path, _exported(repository, revision, _format_of(path)), private=True)


def _exported(repository: "Repository", revision: str, form: str, **included: bool) -> str:
    return export_conversation(repository, revision, form, language=user_language(), **included)


def _format_of(path: Path) -> str:
    if path.suffix not in FORMATS:
        raise InputError(f"{path}: unknown suffix {path.suffix!r}; use one of {', '.join(FORMATS)}")
    return FORMATS[path.suffix]


@click.command("import")
@click.argument("file")
@click.argument("name", required=False)
@click.option("--trust", is_flag=True, help="Trust its app, after showing what it names and asking.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options("as_json", "store")
def import_(common: CommonOptions, file: str, name: str | None, trust: bool, yes: bool) -> None:
    """Read an exported conversation from FILE (`-` for standard input): check every hash, and import all of it or nothing.

    A list of messages in the form of OpenAI, Anthropic or ShareGPT is imported as a conversation of the app plain; each of
    several lists, or lines, is a conversation.

    It does not become the latest conversation. The model, tools and documents of an imported app are used only after
    you trust it, here or with taiwa apps trust.

    \b
    taiwa import chat-1.jsonl
    taiwa import chat-1.jsonl chat-from-home
    taiwa import messages.json
    """
    from taiwa.cli.apps import UNCONFIRMED, print_untrusted
    from taiwa.operations.message_lists import read_message_lists
    from taiwa.operations.untrusted_apps import untrusted_apps

    settings = common.settings()
    repository = common.repository(settings)
    text = read_whole(file)
    if (lists := read_message_lists(text)) is not None:
        _import_messages(repository, lists, name or "", as_json=common.as_json)
        return
    here = repository.import_lines(text.split("\n"), name)  # `splitlines` splits at more than line feeds
    sessions: list[Json] = [ref.name for ref in repository.store.refs.list() if ref.tip == here.tip]
    line = ngettext(
        "{names}: {n} turn, every hash is right", "{names}: {n} turns, every hash is right",
        here.count, names=", ".join(map(str, sessions)),
    )  # fmt: skip
    item: dict[str, Json] = {"node": here.tip, "turns": here.count, "sessions": sessions}
    trusted = repository.store.nodes.is_trusted(here.app.hash)
    if not trusted and (apps := untrusted_apps(repository, settings, here.app.hash)):
        if not common.as_json and (trust or apps[0].lines()):
            print_untrusted(apps)
        if trust:
            confirm("trust it?", UNCONFIRMED, yes=yes)
            repository.trust(here.app.hash)
        elif apps[0].lines():
            print_notice(
                _("this is ignored until you trust the app: taiwa apps trust {app}", app=here.app.name), "yellow"
            )
    print_item(item | {"trusted": trusted or trust}, line, as_json=common.as_json)


def _import_messages(
    repository: "Repository", lists: "Sequence[tuple[str, tuple[Message, ...]]]", name: str, *, as_json: bool
) -> None:
    """Import lists of messages, and print their names."""
    from taiwa.operations.message_lists import import_message_lists

    done = import_message_lists(repository, lists, name)
    count = sum(here.count for here in done.values())
    line = ngettext("{names}: {n} turn", "{names}: {n} turns", count, names=", ".join(done))
    print_item({"sessions": [*done], "turns": count}, line, as_json=as_json)
