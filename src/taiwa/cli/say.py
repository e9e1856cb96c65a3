"""Turns and the moves between them: say, retry, edit, resume, replay, rerun, undo, redo, fork, switch."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, ask_param, flags, open_app, open_session, read_params, read_text, turn_options
from taiwa.cli.output import bill_line, emit, print_preview, print_stream, say_line, table, tell
from taiwa.i18n import _, ngettext
from taiwa.kernel.errors import CorruptError, InputError

if TYPE_CHECKING:
    from taiwa.sessions.checkout import Repository

__all__ = ["edit", "fork", "redo", "replay", "rerun", "resume", "retry", "say", "switch", "undo"]


@click.command()
@click.argument("words", nargs=-1, metavar="[APP] TEXT")
@flags("model", "params", "session", "go_on", "json", "verbose", "dry_run", "max_cost", "no_store", "strict", "store")
def say(shared: Flags, words: tuple[str, ...]) -> None:
    """Send TEXT and print the answer; `-` reads it from standard input.

    One argument is the text, two are an app and the text. Without -c or -s a new conversation is created.

    \b
    taiwa say "What is a monad?"
    taiwa say translate -p target_lang=English "文(sentence)です。"
    taiwa say -c "And shorter?"             continue the latest conversation
    git diff | taiwa say code -             read the text from standard input
    taiwa say --dry-run -c "What if?"       print the request and its size, send nothing
    """
    if len(words) not in (1, 2):
        raise InputError('say takes a text, or an app and a text: taiwa say [APP] "TEXT" (quote the text)')
    app, text = ("", words[0]) if len(words) == 1 else words
    text = read_text(text)
    if shared.dry_run:
        _preview(shared, app, text)
        return
    print_stream(open_session(shared, app).stream(text), as_json=shared.as_json, verbose=shared.verbose)


def _preview(shared: Flags, app: str, text: str) -> None:
    from taiwa.models.http_api.probe_server import probed
    from taiwa.operations.say import SayOptions, find_or_create_session, preview_turn

    chosen = shared.settings()
    options = SayOptions(app, shared.session, shared.go_on, read_params(shared.params))
    _session, conversation = find_or_create_session(shared.repository(chosen), options, ask_param())
    model = chosen.model or conversation.app.model
    print_preview(preview_turn(conversation, text, probed(model, chosen) if model else None), as_json=shared.as_json)


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "strict", "store")
def retry(shared: Flags) -> None:
    """Send the text of the last turn again, from the same state; the new answer replaces the old one.

    \b
    taiwa retry                          the old answer stays in the log: taiwa undo, taiwa log
    taiwa retry -m openai:gpt-x -s chat-1
    """
    talk = open_session(shared, latest=True)
    print_stream(talk.retry(), as_json=shared.as_json, verbose=shared.verbose)


@click.command()
@click.argument("revision")
@click.argument("text")
@click.option("--fork", "name", metavar="NAME", help="Answer on a new branch and leave the conversation unchanged.")
@flags("model", "json", "verbose", "max_cost", "strict", "store")
def edit(shared: Flags, revision: str, text: str, name: str | None) -> None:
    """Go back to the turn at REVISION and send TEXT instead; later turns stay in the log.

    \b
    taiwa edit chat-1~2 "I meant the other one"
    taiwa edit chat-1~2 "What if not?" --fork what-if
    """
    from dataclasses import replace

    from taiwa.operations.say import find_turn

    session, turns = find_turn(shared.repository(), revision)
    talk = open_session(replace(shared, session=session))
    text = read_text(text)
    talk = talk.fork(name) if name else talk
    print_stream(talk.edit(text, turns=turns), as_json=shared.as_json, verbose=shared.verbose)


@click.command()
@flags("session", "model", "json", "verbose", "max_cost", "store")
def resume(shared: Flags) -> None:
    """Finish a turn that was cut off; calls that were answered are not paid for again.

    \b
    taiwa resume
    taiwa resume -s chat-1
    """
    from taiwa.operations.say import open_interrupted

    chosen = shared.settings()
    talk, others = open_interrupted(shared.repository(chosen), chosen, turn_options(shared, chosen), shared.session)
    print_stream(talk.resume() or (), as_json=shared.as_json, verbose=shared.verbose)
    if others:
        tell(f"turns of {', '.join(others)} were cut off too; finish them with taiwa resume -s NAME")


@click.command()
@click.argument("revision", required=False, default="")
@flags("json", "verbose", "store")
def replay(shared: Flags, revision: str) -> None:
    """Repeat a conversation from its recorded calls and check every hash. No model is called.

    \b
    taiwa replay
    taiwa replay chat-1~3 -v
    """
    from taiwa.operations.results import to_json
    from taiwa.sessions.replay import replay_history

    rows = tuple(replay_history(shared.repository(), revision))
    wrong = [row for row in rows if row.difference]
    if shared.as_json:
        emit(to_json(rows))
    elif shared.verbose or wrong:
        lines = [(str(row.turn), row.hash[:12], row.kind, str(row.calls), row.difference or "ok") for row in rows]
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
        nodes = ngettext("{n} node", "{n} nodes", len(rows))
        answers = ngettext("{n} recorded answer", "{n} recorded answers", sum(row.calls for row in rows))
        say_line(
            _("{nodes}, {answers}, 0 model calls: every state has its recorded hash", nodes=nodes, answers=answers)
        )


@click.command()
@click.argument("revision", required=False, default="")
@click.option("-o", "--as", "name", metavar="NAME", required=True, help="Name the new conversation.")
@click.option("--app", metavar="APP", default="", help="Use another app.")
@flags("model", "params", "json", "verbose", "max_cost", "strict", "store")
def rerun(shared: Flags, revision: str, name: str, app: str) -> None:
    """Send every text of a conversation to a model again, on a new branch NAME; compare with taiwa diff.

    With --json each turn is one line of JSON.

    \b
    taiwa rerun chat-1 -m openai:gpt-x -o other && taiwa diff chat-1 other
    taiwa rerun chat-1 --app tutor -p level=2 -o with-tutor
    """
    from taiwa.operations.results import to_json
    from taiwa.sessions.replay import rerun as run_again
    from taiwa.sessions.session import open_priced_model

    if shared.params and not app:
        raise InputError("-p requires --app; the present app has its parameters")
    chosen = shared.settings()
    repository = shared.repository(chosen)
    before = revision or repository.session()
    other = open_app(app, shared.params) if app else None
    priced_model = open_priced_model(None, chosen, other or repository.at(before).app)
    for turn in run_again(repository, before, name, priced_model, other, turn_options(shared, chosen)):
        if shared.as_json:
            emit(to_json(turn))
        else:
            say_line(turn.text)
        for warning in turn.warnings:
            tell(warning, "yellow")
        if shared.verbose:
            tell(f"{turn.session} {turn.node[:12]} · {bill_line(turn.spent)}")
    tell(f"compare them: taiwa diff {before} {name}")


@click.command()
@click.argument("turns", type=click.IntRange(min=1), default=1)
@flags("session", "json", "store")
def undo(shared: Flags, turns: int) -> None:
    """Take back the last TURNS turns: message, state and window together; redo restores them.

    \b
    taiwa undo               take back the last turn of the latest conversation
    taiwa undo 3 -s chat-1   take back three turns of chat-1
    """
    repository = shared.repository()
    session = repository.session(shared.session)
    repository.store.undo(session, turns)
    _print_position(repository, session, _("back to turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("turns", type=click.IntRange(min=1), default=1)
@flags("session", "json", "store")
def redo(shared: Flags, turns: int) -> None:
    """Restore TURNS turns that were taken back.

    \b
    taiwa redo               restore the turn that was taken back last
    """
    repository = shared.repository()
    session = repository.session(shared.session)
    repository.store.redo(session, turns)
    _print_position(repository, session, _("forward to turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("revision")
@click.argument("name", required=False)
@flags("json", "store")
def fork(shared: Flags, revision: str, name: str | None) -> None:
    """Create the branch NAME at REVISION and make it the current conversation.

    With one argument the latest conversation is forked under that name. Neither branch can change the other.

    \b
    taiwa fork plan-b               fork the latest conversation at its last turn
    taiwa fork chat-1~2 plan-b      fork chat-1 two turns before its last one
    """
    where, called = ("", revision) if name is None else (revision, name)
    repository = shared.repository()
    repository.fork(where, called)
    _print_position(repository, called, _("now on {session}, turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("name")
@flags("json", "store")
def switch(shared: Flags, name: str) -> None:
    """Make NAME the current conversation, which -c and other commands use.

    \b
    taiwa switch chat-1
    """
    repository = shared.repository()
    tip = repository.store.refs.tip(name)
    repository.store.refs.move(name, tip, tip, "switch")
    _print_position(repository, name, _("now on {session}, turn {turn}"), as_json=shared.as_json)


def _print_position(repository: "Repository", session: str, text: str, *, as_json: bool) -> None:
    here = repository.at(session)
    if as_json:
        emit({"session": session, "node": here.tip, "turn": here.count, "state": here.state})
    else:
        say_line(text.format(session=session, turn=here.count))
