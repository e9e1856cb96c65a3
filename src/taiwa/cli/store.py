"""Commands on the store that need no model: undo, redo, fork, switch, rename and replay conversations; fsck, gc, delete; and cost."""

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import click

from taiwa.cli.options import CommonOptions, common_options, complete_session, complete_tag, confirm
from taiwa.cli.output import print_item, print_json, print_line, print_notice, print_result, table
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.serialization import Json
from taiwa.kernel.usage_limits import format_cost
from taiwa.operations.results import CostResult

if TYPE_CHECKING:
    from taiwa.sessions.repository import Repository
    from taiwa.store import Axis

AXES = ("app", "model", "day", "session", "owner")
"""The values of `store.Axis`; the store itself is opened when the command runs."""


@click.command()
@click.argument("session_and_turns", nargs=-1, metavar="[NAME] [TURNS]", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def undo(common: CommonOptions, session_and_turns: tuple[str, ...]) -> None:
    """Take back the last turn of the conversation NAME, or TURNS of them: message, state and window together.

    redo restores them.

    \b
    taiwa undo            take back the last turn of the latest conversation
    taiwa undo chat-1 3   take back three turns of chat-1
    """
    _move(common, session_and_turns, "undo", _("back to turn {turn}"))


def _move(common: CommonOptions, words: tuple[str, ...], way: Literal["undo", "redo"], where: str) -> None:
    """Undo or redo what is given: the name of a conversation, a number of turns, or both; a number alone counts turns.

    Raises:
        UsageError: it is neither.
    """
    session = common.session
    if words and not words[0].isdecimal():
        if session not in ("", words[0]):
            raise click.UsageError(f"two conversations are given: {session!r} and {words[0]!r}")
        session, words = words[0], words[1:]
    if len(words) > 1 or any(not word.isdecimal() or int(word) < 1 for word in words):
        raise click.UsageError(f"give a number of turns, at least 1, not {' '.join(words)!r}")
    repository = common.repository()
    session = repository.session(session)
    (repository.store.undo if way == "undo" else repository.store.redo)(session, int(words[0]) if words else 1)
    _print_position(repository, session, where, as_json=common.as_json)


@click.command()
@click.argument("session_and_turns", nargs=-1, metavar="[NAME] [TURNS]", shell_complete=complete_session)
@common_options("session", "as_json", "store")
def redo(common: CommonOptions, session_and_turns: tuple[str, ...]) -> None:
    """Restore the turn of the conversation NAME that was taken back, or TURNS of them.

    \b
    taiwa redo            restore the turn that was taken back last
    taiwa redo chat-1     restore that of chat-1
    """
    _move(common, session_and_turns, "redo", _("forward to turn {turn}"))


@click.command()
@click.argument("revision", metavar="[REVISION]", required=False, shell_complete=complete_session)
@click.argument("name", metavar="NAME", required=False)
@common_options("session", "as_json", "store")
def fork(common: CommonOptions, revision: str | None, name: str | None) -> None:
    """Create the branch NAME at REVISION and make it the current conversation.

    With one argument the latest conversation is forked under that name. Neither branch can change the other.

    \b
    taiwa fork plan-b               fork the latest conversation at its last turn
    taiwa fork chat-1:2 plan-b      fork chat-1 after its second turn
    """
    if revision is None:
        raise InputError("give the branch a name: taiwa fork plan-b")
    where, called = ("", revision) if name is None else (revision, name)
    where = common.place(where)
    repository = common.repository()
    repository.fork(where, called)
    _print_position(repository, called, _("now on {session}, turn {turn}"), as_json=common.as_json)


@click.command()
@click.argument("name", shell_complete=complete_session)
@common_options("as_json", "store")
def switch(common: CommonOptions, name: str) -> None:
    """Make NAME the current conversation, which -c and other commands use.

    \b
    taiwa switch chat-1
    """
    repository = common.repository()
    tip = repository.store.refs.tip(name)
    repository.store.refs.move(name, tip, tip, "switch")
    _print_position(repository, name, _("now on {session}, turn {turn}"), as_json=common.as_json)


@click.command()
@click.argument("name", shell_complete=complete_session)
@click.argument("new")
@common_options("as_json", "store")
def rename(common: CommonOptions, name: str, new: str) -> None:
    """Give the conversation NAME the name NEW; its turns, costs and history stay.

    \b
    taiwa rename chat-1 monads
    """
    repository = common.repository()
    repository.store.refs.rename(name, new)
    _print_position(repository, new, _("{name} is now {session}", name=name, session=new), as_json=common.as_json)


@click.command()
@click.argument("name", shell_complete=complete_session)
@click.argument("tags", nargs=-1, shell_complete=complete_tag)
@click.option("--remove", multiple=True, metavar="TAG", shell_complete=complete_tag, help="Remove this tag.")
@common_options("as_json", "store")
def tag(common: CommonOptions, name: str, tags: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Tag a conversation, and print all its tags.

    \b
    taiwa tag chat-1 work "tea trade"
    taiwa log --tag "tea trade"
    """
    from taiwa.store.refs import check_tags

    refs = common.repository().store.refs
    given, removed = refs.label(name), {each.casefold(): each for each in check_tags(remove)}
    if unknown := [removed[key] for key in removed.keys() - {each.casefold() for each in given}]:
        raise InputError(f"session {name!r} does not have the tag {unknown[0]!r}")
    found = refs.label(name, tags=[*(each for each in given if each.casefold() not in removed), *tags])
    item: Json = {"session": name, "tags": [*found]}
    print_item(item, ", ".join(found) or _("{name} has no tags", name=name), as_json=common.as_json)


def _print_position(repository: "Repository", session: str, text: str, *, as_json: bool) -> None:
    here = repository.at(session)
    item: Json = {"session": session, "node": here.tip, "turn": here.count, "state": here.state}
    print_item(item, text.format(session=session, turn=here.count), as_json=as_json)


@click.command()
@click.argument("revision", required=False, default="", shell_complete=complete_session)
@common_options("session", "as_json", "verbose", "store", verbose="List the nodes with their results.")
def replay(common: CommonOptions, revision: str) -> None:
    """Repeat a conversation from its recorded calls and check every hash. No model is called.

    \b
    taiwa replay
    taiwa replay chat-1:3 -v
    """
    from taiwa.sessions.replay import replay_history

    rows = tuple(replay_history(common.repository(reading=True), common.place(revision)))
    wrong = [row for row in rows if row.difference]
    if common.as_json:
        print_result(rows)
    elif common.verbose or wrong:
        lines = [(str(row.turn), row.hash[:12], row.kind, str(row.calls), row.difference or "ok") for row in rows]
        table((_("turn"), _("node"), _("kind"), _("calls"), _("result")), lines, frozenset({0, 3}))
    if wrong:
        raise CorruptError(
            ngettext(
                "{n} turn does not give the recorded state; the program or an app has changed since",
                "{n} turns do not give the recorded state; the program or an app has changed since",
                len(wrong),
            )
        )
    if not common.as_json:
        nodes = ngettext("{n} node", "{n} nodes", len(rows))
        answers = ngettext("{n} recorded answer", "{n} recorded answers", sum(row.calls for row in rows))
        print_line(
            _("{nodes}, {answers}, 0 model calls: every state has its recorded hash", nodes=nodes, answers=answers)
        )


@click.command()
@common_options("as_json", "store")
def fsck(common: CommonOptions) -> None:
    """Check every hash, parent, name and text of the store; the exit code is 2 if there are problems. Nothing is changed.

    If there are problems, the undamaged conversations are listed.

    \b
    taiwa fsck
    """
    from taiwa.store.maintenance import without_advice

    try:
        repository = common.repository(reading=True)
    except CorruptError as error:
        damage = without_advice(error.message)
        if damage == error.message:
            raise
        raise CorruptError(
            f"{damage}: its tables cannot be opened, so no conversation can be read; restore a backup"
        ) from error
    problems = repository.fsck()
    readable = repository.readable_sessions() if problems else ()
    if common.as_json:
        found: Json = [{"where": each.where, "what": each.what} for each in problems]
        rest: dict[str, Json] = {"readable": list(readable)} if problems else {}
        print_json({"nodes": _count_nodes(repository), "problems": found, **rest})
    elif problems:
        table((_("where"), _("what")), [(problem.where, problem.what) for problem in problems])
        if readable:
            print_notice(_("readable conversations: {names}", names=", ".join(readable)))
            print_notice(_("save each of them: taiwa export {name} -o {name}.jsonl", name=readable[0]))
        else:
            print_notice(_("no conversation can be read whole"))
    else:
        print_line(
            ngettext(
                "{n} node: every hash is right", "{n} nodes: every hash is right", repository.store.nodes.count_all()
            )
        )
    if problems:
        raise CorruptError(
            ngettext(
                "the store has {n} problem; undamaged conversations can be saved with taiwa export",
                "the store has {n} problems; undamaged conversations can be saved with taiwa export",
                len(problems),
            )
        )


def _count_nodes(repository: "Repository") -> int | None:
    """Return the number of nodes; None if the damage does not let them be counted."""
    try:
        return repository.store.nodes.count_all()
    except CorruptError:
        return None


@click.command()
@click.option(
    "--keep", type=click.IntRange(min=0),
    help="Also delete turns that edit, retry and undo left, except those of the newest N moves of session names.",
)  # fmt: skip
@common_options("as_json", "dry_run", "store", dry_run="Count what would be deleted; delete nothing.")
def gc(common: CommonOptions, keep: int | None) -> None:
    """Delete nodes and attachments that no conversation reaches. Turns that edit, retry and undo replaced stay.

    \b
    taiwa gc --dry-run
    taiwa gc --keep 200   delete turns that conversations left before their last 200 moves
    """
    store = common.repository(reading=common.dry_run).store
    deleted = store.gc(keep, dry_run=common.dry_run)
    if common.as_json:
        counts = {"nodes": deleted.nodes, "apps": deleted.apps, "moves": deleted.moves}
        print_json({**counts, "attachments": deleted.attachments, "dry_run": common.dry_run})
    else:
        parts = [
            ngettext("{n} node", "{n} nodes", deleted.nodes), ngettext("{n} app", "{n} apps", deleted.apps),
            ngettext("{n} move", "{n} moves", deleted.moves),
        ]  # fmt: skip
        if deleted.attachments:
            parts.append(ngettext("{n} attachment", "{n} attachments", deleted.attachments))
        what = ", ".join(parts)
        print_line(_("would delete {what}", what=what) if common.dry_run else _("deleted {what}", what=what))


@click.command()
@click.argument("name", required=False, default="", shell_complete=complete_session)
@click.option("--batches", is_flag=True, help="Delete the stored rows of batches (map) instead.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options("as_json", "store")
def delete(common: CommonOptions, name: str, batches: bool, yes: bool) -> None:
    """Delete the conversation NAME permanently: turns, calls, bill and texts. There is no undo.

    \b
    taiwa delete chat-1 --yes
    taiwa delete --batches --yes   a batch with --resume pays for its rows again
    """
    from taiwa.cli.keyboard import scrub

    if bool(name) == batches:
        raise InputError("delete takes the name of a conversation, or --batches")
    repository = common.repository()
    if batches:
        _delete_rows(repository, common, yes=yes)
        return
    repository.store.require_session(name)
    path = repository.store.nodes.path(repository.store.refs.tip(name)) if repository.store.refs.has(name) else ()
    texts = [node.user or "" for _, node in path if node.kind == "turn"]
    _confirm(ngettext("{name} ({n} turn)", "{name} ({n} turns)", len(texts), name=name), yes=yes)
    deleted = repository.store.delete_session(name)
    scrub(repository.store.path, texts)
    if common.as_json:
        print_json({
            "session": name, "nodes": deleted.nodes, "runs": deleted.runs, "shared": deleted.shared,
            "log_emptied": deleted.log_emptied,
        })  # fmt: skip
        return
    what = ngettext("{n} node", "{n} nodes", deleted.nodes) + ", " + ngettext("{n} run", "{n} runs", deleted.runs)
    print_line(_("deleted {name}: {what}", name=name, what=what))
    if deleted.shared:
        print_line(
            ngettext(
                "{n} node stays: other conversations use it",
                "{n} nodes stay: other conversations use them",
                deleted.shared,
            )
        )
    if not deleted.log_emptied:
        print_line(
            "another program uses the store; until it ends, the log of the store may still hold what was deleted"
            if repository.store.path
            else "the log and the backups of the server hold what was deleted until its administrator removes them"
        )


def _delete_rows(repository: "Repository", common: CommonOptions, *, yes: bool) -> None:
    _confirm("the rows of all batches", yes=yes)
    rows, runs = repository.store.batches.clear(), 0
    with suppress(InputError):  # no row was run on its own
        runs = repository.store.delete_session("").runs
    what = ngettext("{n} row", "{n} rows", rows) + ", " + ngettext("{n} run", "{n} runs", runs)
    print_item({"rows": rows, "runs": runs}, _("deleted {what}", what=what), as_json=common.as_json)


def _confirm(what: str, *, yes: bool) -> None:
    confirm(f"delete {what} permanently?", f"deleting {what} cannot be undone; add --yes", yes=yes)


@click.command()
@click.argument("name", required=False, default="", shell_complete=complete_session)
@click.option("--by", type=click.Choice(AXES), help="Group by this.  [default: model]")
@click.option("--caller", default="", metavar="NAME", help="Sum the cost of this caller of `taiwa serve`.")
@common_options("as_json", "store")
def cost(common: CommonOptions, name: str, by: "Axis | None", caller: str) -> None:
    """Sum the cost of all turns, or of the conversation NAME, including failed ones. Unknown costs are shown as unknown, never as zero.

    \b
    taiwa cost
    taiwa cost chat-1
    taiwa cost --by day --json
    taiwa cost --caller ann --by day
    taiwa cost --by owner          the bills of all callers of a server
    """
    if name and by not in (None, "session"):
        raise InputError(f"the cost of {name} cannot be grouped by {by}; leave out --by, or NAME")
    by = "session" if name else by or "model"
    store = common.repository(reading=True).store.owned_by(caller)
    if name:
        store.refs.tip(name)
    lines = tuple(line for line in store.costs(by) if not name or line.name == name)
    if common.as_json:
        print_result(CostResult(by, tuple(lines)))
        return
    lines = tuple(line for line in lines if line.requests or line.cost_nano)  # without calls of tools only
    if not lines:
        print_notice(_("nothing was spent yet"))
        return
    reasoned = any(line.usage.reasoning_tokens for line in lines)
    rows = [
        (
            line.name or ("(command line)" if by == "owner" else "(in no conversation)"), str(line.requests), str(line.failed), f"{line.usage.input_tokens:,}",
            f"{line.usage.cache_read_tokens:,}", f"{line.usage.output_tokens:,}",
            *((f"{line.usage.reasoning_tokens:,}",) if reasoned else ()), format_cost(line.cost_nano),
        )
        for line in lines
    ]  # fmt: skip
    numbers = (_("requests"), _("failed"), _("input"), _("cached"), _("output"))
    axis = {"day": _("day"), "owner": _("caller"), "model": _("model"), "app": _("app"), "session": _("session")}[by]
    header = (axis, *numbers, *((_("reasoning"),) if reasoned else ()), _("cost"))
    table(header, rows, frozenset(range(1, len(header))))
    calls_without_usage = sum(line.calls_without_usage for line in lines)
    if calls_without_usage:
        print_notice(
            ngettext(
                "{n} call reported no usage; its tokens and cost are unknown",
                "{n} calls reported no usage; their tokens and cost are unknown",
                calls_without_usage,
            )
        )
