"""List conversations and their turns, show one, compare two, and find words in all: log, show, diff, search."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import CommonOptions, common_options, complete_session, complete_tag, require_query
from taiwa.cli.output import (
    bracketed,
    is_rendered,
    one_line,
    print_cut,
    print_line,
    print_markdown,
    print_notice,
    print_result,
    print_rows,
)
from taiwa.conversation.state import Change
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.effects import Complete
from taiwa.kernel.errors import InputError
from taiwa.kernel.serialization import tag_of
from taiwa.kernel.usage_limits import format_cost
from taiwa.operations import log as read
from taiwa.operations.export import answer_markdown
from taiwa.operations.log import describe_options, said
from taiwa.operations.result_json import format_time
from taiwa.operations.state_values import describe_change, format_value

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.conversation.history import Node
    from taiwa.operations.results import InterruptedTurn
    from taiwa.sessions.repository import Repository
    from taiwa.store import CallRecord

FIRST_WORDS = 60
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
    """List all conversations, or print the turns of one, including those that were cut off.

    \b
    taiwa log                list all conversations, the latest first
    taiwa log chat-1         print its turns, also as taiwa log -s chat-1
    taiwa log chat-1:9 -n 5  print the five turns up to turn 9
    taiwa log --tree         show branches, also those that edit and undo left; with a name, those of one
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
    entries, cut_off = read.sessions(repository, limit, tag=tag), () if tag else read.interrupted(repository)
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
    cut_off = read.interrupted(repository, revision)[::-1]
    has_turns = not cut_off or repository.store.refs.has(revision)
    entries = read.log(repository, revision, limit) if has_turns else ()
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
        print_line(_("attached: {file}", file=read.describe_attachment(each)), "dim")


def _readable(answer: str, app: "App") -> str:
    from taiwa.flows.solve.tool_call_formats import readable_answer

    return readable_answer(answer, app.tools) if app.tools else answer


def _print_tree(repository: "Repository", session: str, *, as_json: bool) -> None:
    """Print histories as one forest: a node with several children is a branching point."""
    found = read.tree(repository, session)
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
    found = read.show(common.repository(reading=True), common.place(revision), reasoning=reasoning)
    if common.as_json:
        print_result(found)
        return
    node, here = found.node, found.conversation
    place = _("{kind}, turn {turn}, app {app}", kind=_(KINDS[node.kind]), turn=here.count, app=here.app.name)
    print_line(f"{found.hash}  {place}", "bold")
    if options := describe_options(here.app.answer_options):
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
        print_line("\n" + _("delta: {delta}", delta=format_value(node.delta)))
    for field, value in here.state.items():
        print_line(f"  {field}: {format_value(value)}")
    if node.by.model and not any(call.model for call in found.calls):  # imported
        print_line(_("answered by {model}", model=node.by), "dim")
    for call in found.calls:
        print_line(_("call: {call}", call=describe_call(call)), "dim")


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
    hits = common.repository(reading=True).store.search(text, limit)
    rows = [
        (hit.hash[:12], ", ".join((hit.refs or hit.left)[:3]), bracketed(hit.excerpt.text, hit.excerpt.marks))
        for hit in hits
    ]
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

    found = read.diff(repository, before, after)
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


def describe_call(call: "CallRecord") -> str:
    """Describe a call on one line: model, tokens, error and duration."""
    if isinstance(call.answer, dict) and call.answer.get("~") == "tool-result":
        name, result = (one_line(str(call.answer.get(key)), FIRST_WORDS) for key in ("name", "text"))
        return _("{name}, result {result}, {ms} ms", name=name, result=result, ms=call.time.ms)
    tokens = _("tokens not reported")
    if call.usage is not None:
        tokens = _("{read} in + {written} out tokens", read=call.usage.input_tokens, written=call.usage.output_tokens)
    made = (call.model, tokens) if call.kind == tag_of(Complete) else (call.kind,)
    failed = (one_line(str(call.error.get("message")), FIRST_WORDS),) if isinstance(call.error, dict) else ()
    return ", ".join((*made, *failed, f"{call.time.ms} ms"))
