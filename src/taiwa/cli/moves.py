"""Going back and forth between places of a conversation. No model is asked."""

from typing import TYPE_CHECKING

import click

from taiwa.cli.options import Flags, flags
from taiwa.cli.screen import emit, say_line
from taiwa.i18n import _

if TYPE_CHECKING:
    from taiwa.talk.desk import Desk

__all__ = ["fork", "redo", "switch", "undo"]


@click.command()
@click.argument("turns", type=click.IntRange(min=1), default=1)
@flags("session", "json", "store")
def undo(shared: Flags, turns: int) -> None:
    """Go back TURNS turns: message, state and window move together; redo goes forward again.

    \b
    taiwa undo               take back the last turn of the latest conversation
    taiwa undo 3 -s chat-1   take back three turns of chat-1
    """
    desk = shared.desk()
    session = desk.session(shared.session)
    desk.store.refs.undo(session, turns)
    _arrived(desk, session, _("back to turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("turns", type=click.IntRange(min=1), default=1)
@flags("session", "json", "store")
def redo(shared: Flags, turns: int) -> None:
    """Go forward again over TURNS turns that were taken back.

    \b
    taiwa redo               the newest turn taken back is there again
    """
    desk = shared.desk()
    session = desk.session(shared.session)
    desk.store.refs.redo(session, turns)
    _arrived(desk, session, _("forward to turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("revision")
@click.argument("name", required=False)
@flags("json", "store")
def fork(shared: Flags, revision: str, name: str | None) -> None:
    """Give the place REVISION a second name, NAME, and make it the current conversation.

    With one word the latest conversation is forked under that name. Neither branch can change the other.

    \b
    taiwa fork plan-b               fork the latest conversation where it stands
    taiwa fork chat-1~2 plan-b      fork chat-1 as it was two turns ago
    """
    where, called = ("", revision) if name is None else (revision, name)
    desk = shared.desk()
    desk.fork(where, called)
    _arrived(desk, called, _("now on {session}, turn {turn}"), as_json=shared.as_json)


@click.command()
@click.argument("name")
@flags("json", "store")
def switch(shared: Flags, name: str) -> None:
    """Make NAME the current conversation, the one that -c and the other commands take.

    \b
    taiwa switch chat-1
    """
    desk = shared.desk()
    tip = desk.store.refs.tip(name)
    desk.store.refs.move(name, tip, tip, "switch")
    _arrived(desk, name, _("now on {session}, turn {turn}"), as_json=shared.as_json)


def _arrived(desk: "Desk", session: str, text: str, *, as_json: bool) -> None:
    here = desk.at(session)
    if as_json:
        emit({"session": session, "node": here.tip, "turn": here.count, "state": here.state})
    else:
        say_line(text.format(session=session, turn=here.count))
