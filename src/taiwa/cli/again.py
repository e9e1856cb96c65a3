"""Doing turns again: retry, edit, resume, replay, rerun."""

import click

from taiwa.cli.hear import hear, told
from taiwa.cli.opening import desk_of, manner_of, open_app, open_talk, read_text
from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.kernel.errors import CorruptError, InputError
from taiwa.talk.again import replayed
from taiwa.talk.again import rerun as said_again
from taiwa.talk.opening import open_voice
from taiwa.talk.talk import Talk

__all__ = ["edit", "replay", "rerun", "resume", "retry"]


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "strict", "store")
def retry(shared: Flags) -> None:
    """Ask the last thing again from the same state; the new answer takes the place of the old one.

    \b
    taiwa retry                          the old answer stays in the log: taiwa undo, taiwa log
    taiwa retry -m openai:gpt-x -s chat-1
    """
    hear(_latest(shared).retry(), as_json=shared.as_json, verbose=shared.verbose)


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
    desk = desk_of(shared)
    session = revision.partition("~")[0].partition("@")[0]
    if not desk.store.refs.has(session):
        raise InputError("edit goes back in a conversation: give its name and how far, as in chat-1~2")
    tip, here = desk.store.resolve(revision), desk.store.refs.tip(session)
    if not any(name_ == tip for name_, _ in desk.store.nodes.path(here)):
        raise InputError(f"{revision} is not on the way to where {session} stands")
    turns = desk.checkout(here).count - desk.checkout(tip).count + 1
    chosen = shared.settings()
    talk = Talk(desk, session, desk.checkout(here), open_voice(None, chosen), manner=manner_of(shared, chosen))
    talk = talk.fork(name) if name else talk
    hear(talk.edit(read_text(text), turns=turns), as_json=shared.as_json, verbose=shared.verbose)


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "store")
def resume(shared: Flags) -> None:
    """Finish a turn that was cut off by a crash; calls that had answered are not paid for again.

    \b
    taiwa resume
    taiwa resume -s chat-1
    """
    chosen = shared.settings()
    desk = desk_of(shared, chosen)
    runs = desk.store.runs.open_runs(shared.session or None)
    if not runs:
        raise InputError("no turn was cut off: there is nothing to resume")
    session = runs[-1].ref
    here = desk.at(session) if desk.store.refs.has(session) else desk.start(desk.app(runs[-1].app or ""))
    talk = Talk(desk, session, here, open_voice(None, chosen), manner=manner_of(shared, chosen))
    events = talk.resume()
    if events is None:
        raise InputError("no turn was cut off: there is nothing to resume")
    hear(events, as_json=shared.as_json, verbose=shared.verbose)


@click.command()
@click.argument("revision", required=False, default="")
@flags("json", "verbose", "store")
def replay(shared: Flags, revision: str) -> None:
    """Do a conversation again from its records and check every hash. No model is asked.

    \b
    taiwa replay
    taiwa replay chat-1~3 -v
    """
    rows = tuple(replayed(desk_of(shared), revision))
    wrong = [row for row in rows if row.fault]
    if shared.as_json:
        emit(
            [
                {"node": row.hash, "kind": row.kind, "turn": row.turn, "calls": row.calls, "fault": row.fault}
                for row in rows
            ]
        )
    else:
        if shared.verbose or wrong:
            lines = [(str(row.turn), row.hash[:12], row.kind, str(row.calls), row.fault or "ok") for row in rows]
            table(("turn", "node", "kind", "calls", "result"), lines, frozenset({0, 3}))
        calls = sum(row.calls for row in rows)
        say_line(f"{len(rows)} nodes, {calls} recorded answers, 0 model calls: every state has its recorded hash")
    if wrong:
        raise CorruptError(f"{len(wrong)} turn(s) do not end where they did; the program or an app has changed since")


@click.command()
@click.argument("revision", required=False, default="")
@click.option("-o", "--as", "name", metavar="NAME", required=True, help="The name of the new conversation.")
@click.option("--app", metavar="APP", default="", help="Another app; the old one otherwise.")
@flags("model", "params", "json", "verbose", "max_cost", "strict", "store")
def rerun(shared: Flags, revision: str, name: str, app: str) -> None:
    """Say everything of a conversation again to a model, on a new branch NAME, and compare with taiwa diff.

    \b
    taiwa rerun chat-1 -m openai:gpt-x -o other && taiwa diff chat-1 other
    """
    chosen = shared.settings()
    desk = desk_of(shared, chosen)
    other = open_app(app, shared.params) if app else None
    if shared.params and not app:
        raise InputError("-p goes with --app: the old app has its parameters already")
    for said in said_again(desk, revision, name, open_voice(None, chosen), other, manner_of(shared, chosen)):
        if shared.as_json:
            emit(told(said))
        else:
            say_line(said.text)
    tell(f"compare them: taiwa diff {revision or 'the old one'} {name}")


def _latest(shared: Flags) -> Talk:
    """The conversation that the flags name, or the latest."""
    from dataclasses import replace

    return open_talk(shared if shared.session else replace(shared, go_on=True))
