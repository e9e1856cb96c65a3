"""Looking after the store."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json

if TYPE_CHECKING:
    from taiwa.talk.desk import Desk

__all__ = ["forget", "fsck", "gc"]


@click.command()
@flags("json", "store")
def fsck(shared: Flags) -> None:
    """Check every hash, parent, name and word of the store. Nothing is changed; faults give exit code 2.

    \b
    taiwa fsck
    """
    desk = shared.desk()
    faults = desk.fsck()
    if shared.as_json:
        rows: list[Json] = [{"where": fault.where, "what": fault.what} for fault in faults]
        emit({"nodes": desk.store.nodes.count(), "faults": rows})
    elif faults:
        table(("where", "what"), [(fault.where, fault.what) for fault in faults])
    else:
        say_line(ngettext("{n} node: every hash is right", "{n} nodes: every hash is right", desk.store.nodes.count()))
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
    "--keep", type=click.IntRange(min=0), default=200, show_default=True, help="Moves of names that still count."
)
@click.option("--snapshots", is_flag=True, help="Delete the snapshots of states too; they are made anew when needed.")
@flags("json", "dry_run", "store")
def gc(shared: Flags, keep: int, snapshots: bool) -> None:
    """Delete what neither a conversation nor one of the newest moves leads to.

    \b
    taiwa gc --dry-run
    """
    store = shared.desk().store
    swept = store.gc(keep, dry_run=shared.dry_run)
    dropped = store.snaps.drop() if snapshots and not shared.dry_run else 0
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
@click.option("--batches", is_flag=True, help="Delete instead what was kept of the rows of batches (map).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@flags("json", "store")
def forget(shared: Flags, name: str, batches: bool, yes: bool) -> None:
    """Delete the conversation NAME for good: turns, calls, bill and words. There is no undo.

    \b
    taiwa forget chat-1
    taiwa forget --batches         a batch with --resume asks for its rows anew
    """
    from taiwa.cli.keyboard import scrub

    if bool(name) == batches:
        raise InputError("forget takes the name of a conversation, or --batches")
    desk = shared.desk()
    if batches:
        _forget_rows(desk, shared, yes=yes)
        return
    path = desk.store.nodes.path(desk.store.refs.tip(name)) if desk.store.refs.has(name) else ()
    said = [node.user or "" for _, node in path if node.kind == "turn"]
    _confirm(ngettext("{name} ({n} turn)", "{name} ({n} turns)", len(said), name=name), yes=yes)
    gone = desk.store.forget(name)
    scrub(desk.store.path, said)
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
            if desk.store.path
            else "the server's log and its backups hold what was deleted until its keeper lets go of them"
        )


def _forget_rows(desk: "Desk", shared: Flags, *, yes: bool) -> None:
    _confirm("the rows of all batches", yes=yes)
    rows, runs = desk.store.items.clear(), 0
    with suppress(InputError):  # no row was ever said on its own
        runs = desk.store.forget("").runs
    if shared.as_json:
        emit({"rows": rows, "runs": runs})
    else:
        what = ngettext("{n} row", "{n} rows", rows) + ", " + ngettext("{n} run", "{n} runs", runs)
        say_line(_("deleted {what}", what=what))


def _confirm(what: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"forgetting {what} cannot be undone: add --yes")
    click.confirm(f"delete {what} for good?", abort=True, err=True)
