"""Doing turns again: retry, edit, resume, replay, rerun."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError

if TYPE_CHECKING:
    from taiwa.talk.desk import Desk

__all__ = ["edit", "replay", "rerun", "resume", "retry"]


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "strict", "store")
def retry(shared: Flags) -> None:
    """Ask the last thing again from the same state; the new answer takes the place of the old one.

    \b
    taiwa retry                          the old answer stays in the log: taiwa undo, taiwa log
    taiwa retry -m openai:gpt-x -s chat-1
    """
    from taiwa.cli.hear import hear
    from taiwa.cli.opening import open_talk

    talk = open_talk(shared, latest=True)
    hear(talk.retry(), as_json=shared.as_json, verbose=shared.verbose)


@click.command()
@click.argument("revision")
@click.argument("text")
@click.option("--fork", "name", metavar="NAME", help="Leave the conversation as it is and answer on a new branch.")
@flags("model", "json", "verbose", "max_cost", "strict", "store")
def edit(shared: Flags, revision: str, text: str, name: str | None) -> None:
    """Go back to the turn at REVISION and say TEXT instead; what came after it stays in the log.

    \b
    taiwa edit chat-1~2 "I meant the other one"
    taiwa edit chat-1~2 "What if not?" --fork what-if
    """
    from dataclasses import replace

    from taiwa.cli.hear import hear
    from taiwa.cli.opening import open_talk, read_text

    talk = open_talk(replace(shared, session=_holder(shared.desk(), revision)), latest=True)
    store = talk.desk.store
    tip = store.resolve(revision)
    turns = [name_ for name_, node in store.nodes.path(talk.conversation.tip) if node.kind == "turn"]
    if tip not in turns:
        raise InputError(f"{revision} is no turn of {talk.session}: give its name and how far back, as in chat-1~2")
    said = read_text(text)
    talk = talk.fork(name) if name else talk
    hear(talk.edit(said, turns=turns.index(tip) + 1), as_json=shared.as_json, verbose=shared.verbose)


def _holder(desk: "Desk", revision: str) -> str:
    """The session that a revision names, or the latest that holds the node that it names."""
    session = revision.partition("~")[0].partition("@")[0]
    if not session or desk.store.refs.has(session):
        return session
    tip = desk.store.resolve(revision)
    refs = desk.store.refs.list()
    return next((ref.name for ref in refs if any(name == tip for name, _ in desk.store.nodes.path(ref.tip))), session)


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "store")
def resume(shared: Flags) -> None:
    """Finish a turn that was cut off by a crash; calls that had answered are not paid for again.

    \b
    taiwa resume
    taiwa resume -s chat-1
    """
    from taiwa.cli.hear import hear
    from taiwa.cli.opening import manner_of
    from taiwa.talk.opening import open_voice
    from taiwa.talk.talk import Talk

    chosen = shared.settings()
    desk = shared.desk(chosen)
    runs = [run for run in desk.store.runs.open_runs(shared.session or None) if run.ref]
    if not runs:
        raise InputError("no turn was cut off: there is nothing to resume")
    run, others = runs[-1], {run.ref for run in runs} - {runs[-1].ref}
    here = desk.at(run.ref) if desk.store.refs.has(run.ref) else desk.start(desk.app(run.app or ""))
    talk = Talk(desk, run.ref, here, open_voice(None, chosen, here.app), options=manner_of(shared, chosen))
    hear(talk.resume() or (), as_json=shared.as_json, verbose=shared.verbose)
    if others:
        tell(f"turns were cut off in {', '.join(sorted(others))} too: taiwa resume -s NAME")


@click.command()
@click.argument("revision", required=False, default="")
@flags("json", "verbose", "store")
def replay(shared: Flags, revision: str) -> None:
    """Do a conversation again from its records and check every hash. No model is asked.

    \b
    taiwa replay
    taiwa replay chat-1~3 -v
    """
    from taiwa.talk.again import replayed

    rows = tuple(replayed(shared.desk(), revision))
    wrong = [row for row in rows if row.fault]
    if shared.as_json:
        emit(
            [
                {"node": row.hash, "kind": row.kind, "turn": row.turn, "calls": row.calls, "fault": row.fault}
                for row in rows
            ]
        )
    elif shared.verbose or wrong:
        lines = [(str(row.turn), row.hash[:12], row.kind, str(row.calls), row.fault or "ok") for row in rows]
        table(("turn", "node", "kind", "calls", "result"), lines, frozenset({0, 3}))
    if wrong:
        raise CorruptError(
            ngettext(
                "{n} turn does not end where it did; the program or an app has changed since",
                "{n} turns do not end where they did; the program or an app has changed since",
                len(wrong),
            )
        )
    if not shared.as_json:
        calls = sum(row.calls for row in rows)
        nodes = ngettext("{n} node", "{n} nodes", len(rows))
        answers = ngettext("{n} recorded answer", "{n} recorded answers", calls)
        say_line(
            _("{nodes}, {answers}, 0 model calls: every state has its recorded hash", nodes=nodes, answers=answers)
        )


@click.command()
@click.argument("revision", required=False, default="")
@click.option("-o", "--as", "name", metavar="NAME", required=True, help="The name of the new conversation.")
@click.option("--app", metavar="APP", default="", help="Another app; the old one otherwise.")
@flags("model", "params", "json", "verbose", "max_cost", "strict", "store")
def rerun(shared: Flags, revision: str, name: str, app: str) -> None:
    """Say everything of a conversation again to a model, on a new branch NAME, and compare with taiwa diff.

    With --json each turn is one line of JSON.

    \b
    taiwa rerun chat-1 -m openai:gpt-x -o other && taiwa diff chat-1 other
    taiwa rerun chat-1 --app tutor -p level=2 -o with-tutor
    """
    from taiwa.cli.hear import bill_line, told
    from taiwa.cli.opening import manner_of, open_app
    from taiwa.talk.again import rerun as said_again
    from taiwa.talk.opening import open_voice

    if shared.params and not app:
        raise InputError("-p goes with --app: the old app has its parameters already")
    chosen = shared.settings()
    desk = shared.desk(chosen)
    before = revision or desk.session()
    other = open_app(app, shared.params) if app else None
    voice = open_voice(None, chosen, other or desk.at(before).app)
    for said in said_again(desk, before, name, voice, other, manner_of(shared, chosen)):
        if shared.as_json:
            emit(told(said))
        else:
            say_line(said.text)
        for warning in said.warnings:
            tell(warning, "yellow")
        if shared.verbose:
            tell(f"{said.session} {said.node[:12]} · {bill_line(said.spent)}")
    tell(f"compare them: taiwa diff {before} {name}")
