"""Costs, and maintenance of the store: cost, fsck, gc, delete."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import CommonOptions, common_options, complete_session, confirm
from taiwa.cli.output import print_item, print_json, print_line, print_notice, print_result, table
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError

if TYPE_CHECKING:
    from taiwa.sessions.repository import Repository
    from taiwa.store import Axis

AXES = ("app", "model", "day", "session", "owner")
"""The values of `store.Axis`; the store itself is opened when the command runs."""


@click.command()
@common_options("as_json", "store")
def fsck(common: CommonOptions) -> None:
    """Check every hash, parent, name and text of the store; the exit code is 2 if there are problems. Nothing is changed.

    \b
    taiwa fsck
    """
    from taiwa.operations.result_json import members

    repository = common.repository(reading=True)
    problems = repository.fsck()
    if common.as_json:
        print_json(
            {"nodes": repository.store.nodes.count(), "problems": [members(each, "where what") for each in problems]}
        )
    elif problems:
        table(("where", "what"), [(problem.where, problem.what) for problem in problems])
    else:
        print_line(
            ngettext("{n} node: every hash is right", "{n} nodes: every hash is right", repository.store.nodes.count())
        )
    if problems:
        raise CorruptError(
            ngettext(
                "the store has {n} problem; undamaged conversations can be saved with taiwa export",
                "the store has {n} problems; undamaged conversations can be saved with taiwa export",
                len(problems),
            )
        )


@click.command()
@click.option(
    "--keep", type=click.IntRange(min=0), default=200, show_default=True,
    help="Keep the nodes of this many moves of session names.",
)  # fmt: skip
@click.option(
    "--snapshots", is_flag=True, help="Delete the snapshots of states too; they are created again when needed."
)
@common_options("as_json", "dry_run", "store", dry_run="Count what would be deleted; delete nothing.")
def gc(common: CommonOptions, keep: int, snapshots: bool) -> None:
    """Delete nodes and attachments that neither a conversation nor one of the newest moves reaches.

    \b
    taiwa gc --dry-run
    """
    store = common.repository(reading=common.dry_run).store
    deleted = store.gc(keep, dry_run=common.dry_run)
    dropped = store.snapshots.clear() if snapshots and not common.dry_run else 0
    if common.as_json:
        counts = {"nodes": deleted.nodes, "apps": deleted.apps, "moves": deleted.moves, "snapshots": dropped}
        print_json({**counts, "attachments": deleted.attachments, "dry_run": common.dry_run})
    else:
        parts = [
            ngettext("{n} node", "{n} nodes", deleted.nodes), ngettext("{n} app", "{n} apps", deleted.apps),
            ngettext("{n} move", "{n} moves", deleted.moves), ngettext("{n} snapshot", "{n} snapshots", dropped),
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
    from taiwa.operations.result_json import members

    if bool(name) == batches:
        raise InputError("delete takes the name of a conversation, or --batches")
    repository = common.repository()
    if batches:
        _delete_rows(repository, common, yes=yes)
        return
    path = repository.store.nodes.path(repository.store.refs.tip(name)) if repository.store.refs.has(name) else ()
    texts = [node.user or "" for _, node in path if node.kind == "turn"]
    _confirm(ngettext("{name} ({n} turn)", "{name} ({n} turns)", len(texts), name=name), yes=yes)
    deleted = repository.store.delete_session(name)
    scrub(repository.store.path, texts)
    if common.as_json:
        print_json({"session": name, **members(deleted, "nodes runs shared log_emptied")})
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
@click.option("--by", type=click.Choice(AXES), default="model", show_default=True, help="Add up by this.")
@click.option("--caller", default="", metavar="NAME", help="Add up what this caller of `taiwa serve` spent.")
@common_options("as_json", "store")
def cost(common: CommonOptions, by: "Axis", caller: str) -> None:
    """Add up what was spent, failed turns included. Unknown costs are shown as unknown, never as zero.

    \b
    taiwa cost
    taiwa cost --by day --json
    taiwa cost --caller ann --by day
    taiwa cost --by owner          the bills of all callers of a server with several
    """
    from taiwa.kernel.usage_limits import format_cost
    from taiwa.operations.results import CostResult

    lines = common.repository(reading=True).store.owned_by(caller).costs(by)
    if common.as_json:
        print_result(CostResult(by, tuple(lines)))
        return
    lines = tuple(line for line in lines if line.requests or line.cost_nano)  # without calls of tools only
    if not lines:
        print_notice("nothing was spent yet")
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
    header = (by, "requests", "failed", "input", "cached", "output", *(("reasoning",) if reasoned else ()), "cost")
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
