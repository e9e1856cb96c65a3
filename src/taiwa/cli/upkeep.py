"""Looking after the store."""

import sys

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.kernel.records import Json

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
        say_line(f"{desk.store.nodes.count()} nodes: every hash is right")
    if faults:
        raise CorruptError(f"the store has {len(faults)} fault(s); what is whole can be saved with taiwa export")


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
        verb = "would delete" if shared.dry_run else "deleted"
        say_line(f"{verb} {swept.nodes} nodes, {swept.apps} apps, {swept.moves} moves, {dropped} snapshots")


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@flags("json", "store")
def forget(shared: Flags, name: str, yes: bool) -> None:
    """Delete the conversation NAME for good: turns, calls, bill and words. There is no undo.

    \b
    taiwa forget chat-1
    """
    from taiwa.cli.keyboard import scrub

    desk = shared.desk()
    path = desk.store.nodes.path(desk.store.refs.tip(name)) if desk.store.refs.has(name) else ()
    said = [node.user or "" for _, node in path if node.kind == "turn"]
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(f"forgetting {name!r} cannot be undone: add --yes")
        click.confirm(f"delete {name} ({len(said)} turns) for good?", abort=True, err=True)
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
    say_line(f"forgot {name}: {gone.nodes} nodes, {gone.runs} runs")
    if gone.shared:
        say_line(f"{gone.shared} nodes stay: other conversations hold them")
    if not gone.log_emptied:
        say_line("another program uses the store: until it ends, its log may still hold what was deleted")
