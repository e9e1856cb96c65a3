"""What can be done in a conversation besides talking: the commands that begin with a slash."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from taiwa.cli.hear import bill_line
from taiwa.cli.look import print_why, shown
from taiwa.cli.repl import Repl
from taiwa.cli.screen import emit, say_line, table, tell
from taiwa.conversation.places import Absent, look, read_place
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.errors import InputError
from taiwa.talk.talk import Talk

__all__ = ["SLASHES", "command"]

LOGGED = 20


@dataclass(frozen=True, slots=True)
class Slash:
    """A command: what stands behind it, what it does with the rest of the line, and what there must be for it."""

    arguments: str
    help: str
    run: Callable[[Repl, str], None]
    needs: Literal["", "session", "turn"] = ""

    def usage(self, name: str) -> str:
        """How it is written."""
        return f"/{name} {self.arguments}".rstrip()


def command(repl: Repl, line: str) -> None:
    """Do what a line with a slash says.

    Raises:
        InputError: there is no such command, or it needs something else; the nearest one is named.
    """
    name, rest = (*line[1:].split(" ", 1), "")[:2]
    found = SLASHES.get(name.strip().lower())
    if found is None:
        near = get_close_matches(name.lower(), SLASHES, 1) if name.isalpha() else []
        if near:
            raise InputError(
                _("unknown command {command}; did you mean {near}?", command=f"/{name[:30]}", near=f"/{near[0]}")
            )
        raise InputError(
            _(
                "unknown command {command}; /help lists the commands, and //text sends a text that begins with a slash",
                command=f"/{name[:30]}",
            )
        )
    rest = rest.strip()
    if found.arguments and not found.arguments.startswith("[") and not rest:
        raise InputError(_("usage: {usage}", usage=found.usage(name)))
    here = repl.talk.conversation
    if (found.needs and here.fresh) or (found.needs == "turn" and not here.count):
        raise InputError(_("there are no turns yet"))
    found.run(repl, rest)


def _undo(repl: Repl, rest: str) -> None:
    repl.undo(_count(rest, "undo"))
    tell(_("back to turn {turn}", turn=repl.talk.conversation.count))


def _redo(repl: Repl, rest: str) -> None:
    repl.redo(_count(rest, "redo"))
    tell(_("forward to turn {turn}", turn=repl.talk.conversation.count))


def _retry(repl: Repl, _: str) -> None:
    repl.hear(repl.talk.retry(), "/retry")


def _edit(repl: Repl, rest: str) -> None:
    """Without a text the old one is put before the person, to be changed."""
    first, _, text = rest.partition(" ")
    turns = _count(first, "edit") if first.isdecimal() else 1
    text = text.strip() if first.isdecimal() else rest
    if text:
        repl.hear(repl.talk.edit(text, turns=turns), f"/edit {turns} {text}")
    else:
        repl.offered = f"/edit {turns} {repl.talk.said(turns)}"


def _fork(repl: Repl, rest: str) -> None:
    parent, spent = repl.talk.session, repl.talk.spent
    repl.talk = repl.talk.fork(rest)
    repl.talk.spent = spent  # a limit of cost holds for the whole conversation, whatever its name
    tell(_("now on {session}; {parent} is unchanged", session=repl.talk.session, parent=parent))


def _switch(repl: Repl, rest: str) -> None:
    old, desk = repl.talk, repl.talk.desk
    here = desk.at(desk.session(rest))
    desk.store.refs.move(rest, here.tip, here.tip, "switch")
    repl.talk = Talk(desk, rest, here, repl.voice(here.app), options=old.options, observers=(repl.stopper.watch,))
    repl.talk.spent, repl.expected = old.spent, ""
    tell(_("now on {session}, turn {turn}", session=rest, turn=here.count))


def _app(repl: Repl, rest: str) -> None:
    from click import Abort

    from taiwa.cli.opening import open_app

    name, *params = rest.split()
    try:
        app = open_app(name, tuple(params))
    except Abort:
        raise InputError(_("nothing changed")) from None
    voice = repl.voice(app)
    repl.talk.change_app(app)
    repl.talk.voice = voice
    repl.see_name()
    tell(_("switched to app {app}; state that fits it was kept", app=repl.talk.app.name))


def _state(repl: Repl, rest: str) -> None:
    held = dict(repl.talk.state)
    if rest:
        found = look(held, read_place(rest))
        if isinstance(found, Absent):
            raise InputError(f"nothing stands at {rest}; fields: {', '.join(held) or 'none'}")
        say_line(shown(found))
    elif repl.as_json:
        emit({"node": repl.talk.conversation.tip, "state": held})
    elif held:
        for name, value in held.items():
            say_line(f"{name}: {shown(value)}")
    else:
        tell(_("app {app} has no state", app=repl.talk.app.name))


def _why(repl: Repl, rest: str) -> None:
    print_why(repl.talk.desk, rest, repl.talk.session, as_json=repl.as_json)


def _log(repl: Repl, _: str) -> None:
    from taiwa.cli.log import print_log

    print_log(repl.talk.desk, repl.talk.session, LOGGED, as_json=repl.as_json)


def _cost(repl: Repl, _: str) -> None:
    say_line(bill_line(repl.talk.spent))


def _save(repl: Repl, rest: str) -> None:
    from taiwa.cli.exchange import save

    path = Path(rest).expanduser()
    save(repl.talk.desk, repl.talk.session, path)
    tell(_("written to {path}", path=path))


def _good(repl: Repl, _: str) -> None:
    _verdict(repl, "good")


def _bad(repl: Repl, rest: str) -> None:
    _verdict(repl, rest or "bad")


def _verdict(repl: Repl, text: str) -> None:
    """Keep what the person says of the last turn, and tell what that has taught."""
    from taiwa.flows.person import Feedback, read_verdict
    from taiwa.talk.people import People

    talk = repl.talk
    verdict = read_verdict(text)
    delta = talk.conversation.turns[-1].delta
    act = delta.get("act") if isinstance(delta, dict) else None
    name = str(talk.app.values.get("user") or "")
    if act is None:
        raise InputError(_("only turns of an app that searches documents can be rated: taiwa chat ask"))
    people = People(talk.desk.store)
    if not people.has(name):
        raise InputError(_("feedback is stored for a user: taiwa person set NAME, then taiwa chat ask -p person=NAME"))
    person = people.tell(name, Feedback(verdict, act == "ask", talk.conversation.tip))
    tell(_("recorded; how welcome questions back are: {welcome}", welcome=f"{person.patience.mean:.0%}"))


def _help(_repl: Repl, _rest: str) -> None:
    table((), [(slash.usage(name), _(slash.help)) for name, slash in SLASHES.items()])
    say_line("")
    say_line(
        _(
            'Enter sends, Alt-Enter (or Esc, Enter) starts a new line, """ opens and closes a text of several lines, Ctrl-C stops an answer; //text sends a text that begins with a slash.'
        )
    )


def _quit(repl: Repl, _: str) -> None:
    repl.left = True


def _count(text: str, name: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not int(text[:9]) > 0:
        raise InputError(_("usage: {usage}", usage=SLASHES[name].usage(name)))
    return int(text[:9])


SLASHES: dict[str, Slash] = {
    "undo": Slash("[n]", gettext_noop("take back the last turn, or the last n"), _undo),
    "redo": Slash("[n]", gettext_noop("restore turns that were taken back"), _redo),
    "retry": Slash("", gettext_noop("ask the last question again"), _retry, needs="turn"),
    "edit": Slash(
        "[n] [TEXT]", gettext_noop("replace the text of the last turn, or of the n-th last"), _edit, needs="turn"
    ),
    "fork": Slash("NAME", gettext_noop("continue on a new branch called NAME"), _fork, needs="session"),
    "switch": Slash("NAME", gettext_noop("switch to another conversation"), _switch),
    "app": Slash("NAME [KEY=VALUE …]", gettext_noop("continue with another app"), _app),
    "state": Slash("[PLACE]", gettext_noop("show the state, or part of it"), _state),
    "why": Slash("PLACE", gettext_noop("show which turn set a value"), _why, needs="session"),
    "log": Slash("", gettext_noop("list the turns"), _log, needs="session"),
    "cost": Slash("", gettext_noop("show the cost since this program started"), _cost),
    "save": Slash("FILE", gettext_noop("write the conversation to FILE (.md, .html, .jsonl)"), _save, needs="session"),
    "good": Slash(
        "", gettext_noop("rate the last turn as right (apps that ask back learn from it)"), _good, needs="turn"
    ),
    "bad": Slash(
        "[ask|noask]",
        gettext_noop("rate it as wrong; ask: it should have asked back, noask: it should not have"),
        _bad,
        needs="turn",
    ),
    "help": Slash("", gettext_noop("show this help"), _help),
    "quit": Slash("", gettext_noop("quit (like Ctrl-D)"), _quit),
}
