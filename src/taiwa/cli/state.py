"""Show and set the state, its history, and where a value came from: state, why."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.log import describe_call, print_changes
from taiwa.cli.options import CommonOptions, Group, common_options, complete_session
from taiwa.cli.output import one_line, print_item, print_line, print_notice, print_result, print_rows
from taiwa.conversation.state import format_path
from taiwa.i18n import _
from taiwa.kernel.serialization import Json, parse_json
from taiwa.operations import state_values as values
from taiwa.operations.state_values import format_value

if TYPE_CHECKING:
    from taiwa.conversation.history import Conversation
    from taiwa.flows.ask.provenance import ValueSource
    from taiwa.sessions.repository import Repository

COMMANDLINE = click.core.ParameterSource.COMMANDLINE

SOURCE_CHARS = 160
"""Characters of the words that a value came from."""


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
    found = values.why(repository, path, revision)
    if as_json:
        print_result(found)
        return
    from rich.cells import set_cell_size

    origin, node, shown = found.origin, found.origin.node, format_value
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
    fields = [(_("from"), _describe_source(source)) for source in origin.sources]
    if node.user is not None:
        fields += [(_("you"), node.user), (_("answer"), node.answer or "")]
    if node.delta is not None:
        fields.append((_("delta"), shown(node.delta)))
    fields += [(_("call"), describe_call(call)) for call in found.calls]
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
        case "stated":
            return part + _("your words, as the model understood them: {words}", words=words)
        case "computed":
            return _("computed: {name}", name=source.words)
        case "unknown":
            return part + _("not known; what the turn read is not in this store: {words}", words=words)
        case "program":
            return part + _("the program's own words; no source holds {words}", words=words)
        case _:
            return part + _("the model's own words; no source holds {words}", words=words)


class OfConversation(Group):
    """A group of commands about a conversation, whose name or revision may stand before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read a first word that is not a command as the conversation, if nothing or a command follows."""
        words = self.make_parser(ctx).parse_args([*args])[1]
        following = self.make_parser(ctx).parse_args(words[1:])[1][:1]  # behind the options of the group
        if words and words[0] not in self.commands and all(each in self.commands for each in following):
            args = [*args[: len(args) - len(words)], "-s", *words]
        rest = super().parse_args(ctx, args)
        given = {name: part for name, part in ctx.params.items() if ctx.get_parameter_source(name) is COMMANDLINE}
        ctx.default_map = dict.fromkeys(self.commands, given)  # what stands before a command holds for it
        return rest


@click.group(cls=OfConversation, invoke_without_command=True, subcommand_metavar="[REVISION] [COMMAND] [ARGS]...")
@click.pass_context
@common_options("session", "as_json", "store")
def state(common: CommonOptions, ctx: click.Context) -> None:
    """Show the state or a part of it, edit it, and show its history.

    \b
    taiwa state                            the state of the latest conversation
    taiwa state chat-1:2                   that of another one, after its second turn
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
    value = values.value_at(dict(here.state), path)
    print_item(value, format_value(value), as_json=common.as_json)


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
    found, changes = values.set_value(common.repository(), common.session, path, parsed)
    if common.as_json:
        print_result(found)
    else:
        print_changes(changes)


@state.command()
@click.argument("path")
@click.argument("revision", default="")
@common_options("session", "as_json", "store")
def history(common: CommonOptions, path: str, revision: str) -> None:
    """Show every value that PATH had, oldest first.

    \b
    taiwa state history topics
    taiwa state history topics chat-1
    """
    entries = values.value_history(common.repository(reading=True), path, common.place(revision))
    rows = [(each.node[:12], each.by, format_value(each.value)) for each in entries]
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
