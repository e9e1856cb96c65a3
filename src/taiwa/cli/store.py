"""The bill, and maintenance of the store: cost, fsck, gc, delete."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.output import emit, print_result, say_line, table, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.sessions.checkout import Repository
    from taiwa.store import Axis

__all__ = ["AXES", "cost", "delete", "fsck", "gc"]

AXES = ("app", "model", "day", "session")
"""The values of `store.Axis`; the store itself is opened when the command runs."""


@click.command()
@flags("json", "store")
def fsck(shared: Flags) -> None:
    """Check every hash, parent, name and text of the store; the exit code is 2 if there are faults. Nothing is changed.

    \b
    taiwa fsck
    """
    repository = shared.repository()
    faults = repository.fsck()
    if shared.as_json:
        rows: list[Json] = [{"where": fault.where, "what": fault.what} for fault in faults]
        emit({"nodes": repository.store.nodes.count(), "faults": rows})
    elif faults:
        table(("where", "what"), [(fault.where, fault.what) for fault in faults])
    else:
        say_line(
            ngettext("{n} node: every hash is right", "{n} nodes: every hash is right", repository.store.nodes.count())
        )
    if faults:
        raise CorruptError(
            ngettext(
                "the store has {n} fault; undamaged conversations can be saved with taiwa export",
                "the store has {n} faults; undamaged conversations can be saved with taiwa export",
                len(faults),
            )
        )


@click.command()
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Keep the nodes of this many moves of session names.",
)
@click.option(
    "--snapshots", is_flag=True, help="Delete the snapshots of states too; they are created again when needed."
)
@flags("json", "dry_run", "store")
def gc(shared: Flags, keep: int, snapshots: bool) -> None:
    """Delete nodes that neither a conversation nor one of the newest moves reaches.

    \b
    taiwa gc --dry-run
    """
    store = shared.repository().store
    swept = store.gc(keep, dry_run=shared.dry_run)
    dropped = store.snapshots.clear() if snapshots and not shared.dry_run else 0
    if shared.as_json:
        emit(
            {
                "nodes": swept.nodes,
                "apps": swept.apps,
                "moves": swept.moves,
                "snapshots": dropped,
                "dry_run": shared.dry_run,
            }
        )
    else:
        swept_parts = (
            ngettext("{n} node", "{n} nodes", swept.nodes), ngettext("{n} app", "{n} apps", swept.apps),
            ngettext("{n} move", "{n} moves", swept.moves), ngettext("{n} snapshot", "{n} snapshots", dropped),
        )  # fmt: skip
        what = ", ".join(swept_parts)
        say_line(_("would delete {what}", what=what) if shared.dry_run else _("deleted {what}", what=what))


@click.command()
@click.argument("name", required=False, default="")
@click.option("--batches", is_flag=True, help="Delete the stored rows of batches (map) instead.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@flags("json", "store")
def delete(shared: Flags, name: str, batches: bool, yes: bool) -> None:
    """Delete the conversation NAME permanently: turns, calls, bill and texts. There is no undo.

    \b
    taiwa delete chat-1
    taiwa delete --batches         a batch with --resume pays for its rows again
    """
    from taiwa.cli.keyboard import scrub

    if bool(name) == batches:
        raise InputError("delete takes the name of a conversation, or --batches")
    repository = shared.repository()
    if batches:
        _delete_rows(repository, shared, yes=yes)
        return
    path = repository.store.nodes.path(repository.store.refs.tip(name)) if repository.store.refs.has(name) else ()
    said = [node.user or "" for _, node in path if node.kind == "turn"]
    _confirm(ngettext("{name} ({n} turn)", "{name} ({n} turns)", len(said), name=name), yes=yes)
    gone = repository.store.delete_session(name)
    scrub(repository.store.path, said)
    if shared.as_json:
        emit(
            {
                "session": name,
                "nodes": gone.nodes,
                "runs": gone.runs,
                "shared": gone.shared,
                "log_emptied": gone.log_emptied,
            }
        )
        return
    what = ngettext("{n} node", "{n} nodes", gone.nodes) + ", " + ngettext("{n} run", "{n} runs", gone.runs)
    say_line(_("deleted {name}: {what}", name=name, what=what))
    if gone.shared:
        say_line(
            ngettext(
                "{n} node stays: other conversations use it",
                "{n} nodes stay: other conversations use them",
                gone.shared,
            )
        )
    if not gone.log_emptied:
        say_line(
            "another program uses the store: until it ends, its log may still hold what was deleted"
            if repository.store.path
            else "the server's log and its backups hold what was deleted until its keeper lets go of them"
        )


def _delete_rows(repository: "Repository", shared: Flags, *, yes: bool) -> None:
    _confirm("the rows of all batches", yes=yes)
    rows, runs = repository.store.batches.clear(), 0
    with suppress(InputError):  # no row was ever sent on its own
        runs = repository.store.delete_session("").runs
    if shared.as_json:
        emit({"rows": rows, "runs": runs})
    else:
        what = ngettext("{n} row", "{n} rows", rows) + ", " + ngettext("{n} run", "{n} runs", runs)
        say_line(_("deleted {what}", what=what))


def _confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"deleting {what} cannot be undone; add --yes")
    click.confirm(f"delete {what} permanently?", abort=True, err=True)


@click.command()
@click.option("--by", type=click.Choice(AXES), default="model", show_default=True, help="Add up by this.")
@flags("json", "store")
def cost(shared: Flags, by: "Axis") -> None:
    """Add up what was spent, failed turns included. Unknown costs are shown as unknown, never as zero.

    \b
    taiwa cost
    taiwa cost --by day --json
    """
    from taiwa.models.pricing import format_cost
    from taiwa.operations.results import CostResult

    lines = shared.repository().store.costs(by)
    if shared.as_json:
        print_result(CostResult(by, tuple(lines)))
        return
    if not lines:
        tell("nothing was spent yet")
        return
    rows = [
        (
            line.name or "(in no conversation)", str(line.requests), str(line.failed), f"{line.usage.input_tokens:,}",
            f"{line.usage.cache_read_tokens:,}", f"{line.usage.output_tokens:,}", format_cost(line.cost_nano),
        )
        for line in lines
    ]  # fmt: skip
    table((by, "requests", "failed", "input", "cached", "output", "cost"), rows, frozenset(range(1, 7)))
    calls_without_usage = sum(line.calls_without_usage for line in lines)
    if calls_without_usage:
        tell(
            ngettext(
                "{n} call reported no usage; its tokens and cost are unknown",
                "{n} calls reported no usage; their tokens and cost are unknown",
                calls_without_usage,
            )
        )
