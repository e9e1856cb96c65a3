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
from taiwa.cli.words import words
from taiwa.conversation.places import Absent, look, read_place
from taiwa.kernel.errors import InputError
from taiwa.talk.talk import Talk

__all__ = ["SLASHES", "command"]

LOGGED = 20


@dataclass(frozen=True, slots=True)
class Slash:
    """A command: what stands behind it, what it does with the rest of the line, and what there must be for it."""

    arguments: str
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
    name, _, rest = line[1:].partition(" ")
    found = SLASHES.get(name.strip().lower())
    if found is None:
        near = get_close_matches(name.lower(), SLASHES, 1) if name.isalpha() else []
        if near:
            raise InputError(words("near", command=f"/{name[:30]}", near=f"/{near[0]}"))
        raise InputError(words("unknown", command=f"/{name[:30]}"))
    rest = rest.strip()
    if found.arguments and not found.arguments.startswith("[") and not rest:
        raise InputError(words("usage", usage=found.usage(name)))
    here = repl.talk.conversation
    if (found.needs and here.fresh) or (found.needs == "turn" and not here.count):
        raise InputError(words("no_turn"))
    found.run(repl, rest)


def _undo(repl: Repl, rest: str) -> None:
    repl.undo(_count(rest, "undo"))
    tell(words("undone", turn=repl.talk.conversation.count))


def _redo(repl: Repl, rest: str) -> None:
    repl.redo(_count(rest, "redo"))
    tell(words("redone", turn=repl.talk.conversation.count))


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
    tell(words("forked", session=repl.talk.session, parent=parent))


def _switch(repl: Repl, rest: str) -> None:
    old, desk = repl.talk, repl.talk.desk
    here = desk.at(desk.session(rest))
    desk.store.refs.move(rest, here.tip, here.tip, "switch")
    repl.talk = Talk(desk, rest, here, repl.voice(here.app), options=old.options, observers=(repl.stopper.watch,))
    repl.talk.spent, repl.expected = old.spent, ""
    tell(words("switched", session=rest, turn=here.count))


def _app(repl: Repl, rest: str) -> None:
    from click import Abort

    from taiwa.cli.opening import open_app

    name, *params = rest.split()
    try:
        app = open_app(name, tuple(params))
    except Abort:
        raise InputError(words("nothing")) from None
    voice = repl.voice(app)
    repl.talk.change_app(app)
    repl.talk.voice = voice
    repl.see_name()
    tell(words("app", app=repl.talk.app.name))


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
        tell(words("no_state", app=repl.talk.app.name))


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
    tell(words("saved", path=path))


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
        raise InputError(words("no_verdict"))
    people = People(talk.desk.store)
    if not people.has(name):
        raise InputError(words("no_person"))
    person = people.tell(name, Feedback(verdict, act == "ask", talk.conversation.tip))
    tell(words("verdict", welcome=f"{person.patience.mean:.0%}"))


def _help(_: Repl, __: str) -> None:
    table((), [(slash.usage(name), words(f"help_{name}")) for name, slash in SLASHES.items()])
    say_line("")
    say_line(words("help_keys"))


def _quit(repl: Repl, _: str) -> None:
    repl.left = True


def _count(text: str, name: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not int(text[:9]) > 0:
        raise InputError(words("usage", usage=SLASHES[name].usage(name)))
    return int(text[:9])


SLASHES: dict[str, Slash] = {
    "undo": Slash("[n]", _undo),
    "redo": Slash("[n]", _redo),
    "retry": Slash("", _retry, needs="turn"),
    "edit": Slash("[n] [TEXT]", _edit, needs="turn"),
    "fork": Slash("NAME", _fork, needs="session"),
    "switch": Slash("NAME", _switch),
    "app": Slash("NAME [KEY=VALUE …]", _app),
    "state": Slash("[PLACE]", _state),
    "why": Slash("PLACE", _why, needs="session"),
    "log": Slash("", _log, needs="session"),
    "cost": Slash("", _cost),
    "save": Slash("FILE", _save, needs="session"),
    "good": Slash("", _good, needs="turn"),
    "bad": Slash("[ask|noask]", _bad, needs="turn"),
    "help": Slash("", _help),
    "quit": Slash("", _quit),
}
