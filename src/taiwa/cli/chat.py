"""The interactive conversation: the loop of turns, slash commands, and Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal, Protocol

import click

from taiwa.cli.options import Flags, flags, open_app, open_session, print_default_model
from taiwa.cli.output import bill_line, emit, print_stream, say_line, table, tell
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.errors import ConflictError, InputError, TaiwaError

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.conversation.state import State, StateField
    from taiwa.conversation.state_paths import Change
    from taiwa.kernel.execution import Event
    from taiwa.sessions.durable_turn import PricedModel
    from taiwa.sessions.session import Session, TurnEvent

__all__ = ["SLASHES", "InterruptHandler", "Lines", "Repl", "chat", "moved"]

YES = frozenset({"", "y", "yes", "はい", "是", "好"})
LOGGED = 20
AGAIN = 0.02
"""Seconds between checks whether the program is inside the answer."""


@click.command()
@click.argument("app", default="")
@flags("model", "params", "session", "go_on", "json", "verbose", "max_cost", "no_store", "strict", "store")
def chat(shared: Flags, app: str) -> None:
    """Converse with APP (default: chat), line by line. /help lists the commands.

    Ctrl-C stops an answer and keeps its text so far. From a pipe, each line is a turn; --json prints one line per turn.

    \b
    taiwa chat
    taiwa chat translate -p target_lang=English
    taiwa chat -c                      continue the latest conversation
    taiwa chat -s novel-2              continue that one, or create it
    printf '%s\\n' Hello /state | taiwa chat
    """
    from taiwa.cli.keyboard import Keyboard, Pipe, history_of
    from taiwa.sessions.session import open_priced_model

    live = sys.stdin.isatty() and sys.stdout.isatty() and not shared.as_json
    interrupts = InterruptHandler()
    talk = open_session(shared, app, interrupts="keep" if live else "raise", observers=(interrupts.watch,))
    lines = (
        Keyboard(history_of(talk.repository.store.path), {name: slash.help for name, slash in SLASHES.items()})
        if live
        else Pipe()
    )
    repl = Repl(talk, lines, interrupts, as_json=shared.as_json, verbose=shared.verbose)
    repl.voice_of = lambda new: open_priced_model(None, shared.settings(), new)
    if live:
        tell(
            _(
                "{app} · {model} · {session}   /help lists the commands, Ctrl-D quits",
                app=talk.app.name,
                model=talk.priced_model.model.name,
                session=talk.session,
            )
        )
        if not shared.verbose:
            print_default_model(shared.settings(), talk.priced_model)
    repl.run()
    if live and not repl.talk.conversation.new_nodes and not shared.no_store:
        tell(_("saved as {session}; continue with: taiwa chat -s {session}", session=repl.talk.session))
    if not live and repl.failed:
        raise click.exceptions.Exit(1)


class InterruptHandler:
    """Ctrl-C ends an answer where it is, so that what was written and paid for is kept.

    The key may be pressed while text is printed, or in the middle of a transaction of the store. The interrupt is raised only
    where the runtime of the turn expects it, within the stream of the model; pressed elsewhere, it waits for the next part of
    the answer, or until the program waits for one.
    """

    def __init__(self) -> None:
        self.pressed = False
        """Whether the key was pressed during the last turn."""
        self._waiting = False

    def watch(self, event: "Event") -> None:
        """Observe a turn, and end the answer if the key was pressed outside its stream."""
        from taiwa.kernel.messages import TextDelta

        if self._waiting and isinstance(event, TextDelta):
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def listening(self, stream: Callable[..., object]) -> Generator[None]:
        """Handle Ctrl-C until the turn ends; `stream` is the function whose frames belong to the answer.

        Signals reach the main thread only; in any other one nothing is handled.
        """
        self.pressed = self._waiting = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        code = getattr(stream, "__code__", None)

        def press(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT:
                self.pressed = self._waiting = True
            if not self._waiting:
                return
            while frame is not None:
                if frame.f_code is code:
                    self._waiting = False
                    raise KeyboardInterrupt
                frame = frame.f_back
            signal.setitimer(signal.ITIMER_REAL, AGAIN)  # the model may write nothing more

        before = [(number, signal.signal(number, press)) for number in (signal.SIGINT, signal.SIGALRM)]
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before:
                signal.signal(number, handler)


class Lines(Protocol):
    """A source of texts."""

    live: bool
    """Whether there is a terminal, so that the user can be asked."""

    def read(self, offered: str = "") -> str:
        """Return the next text; `offered` is put into the line to be edited.

        Raises:
            EOFError: there are no more texts.
            KeyboardInterrupt: the user discards the line.
        """
        ...

    def ask(self, question: str) -> str:
        """Return the answer to a question."""
        ...


@dataclass
class Repl:
    """An interactive conversation; slash commands change it."""

    talk: "Session"
    lines: Lines
    interrupts: InterruptHandler = field(default_factory=InterruptHandler)
    voice_of: "Callable[[App], PricedModel] | None" = None
    """Opens the model that an app names; without it the session keeps its model."""
    as_json: bool = False
    verbose: bool = False
    offered: str = ""
    failed: bool = False
    """Whether a turn failed."""
    left: bool = False
    expected: str = ""
    """The announced name of a new conversation, until it has one."""

    def run(self) -> None:
        """Run the conversation until the user quits."""
        self.expected = self.talk.session if self.talk.conversation.new_nodes else ""
        self._finish_cut_off()
        while not self.left:
            try:
                text = self.lines.read(self.offered)
            except KeyboardInterrupt:
                self.offered = ""
            except EOFError:
                break
            else:
                self.offered = ""
                self.take(text)

    def take(self, text: str) -> None:
        """Process a line; an error is printed, and the conversation continues."""
        if not text.strip():
            return
        try:
            if text.startswith("//"):
                self.turn(self.talk.stream(text[1:]), text)
            elif text.startswith("/"):
                command(self, text)
            else:
                self.turn(self.talk.stream(text), text)
        except TaiwaError as error:
            tell(f"taiwa: {error.message}", "red")

    def turn(self, events: "Iterator[TurnEvent]", text: str) -> None:
        """Make a turn; if it fails, its text is offered again."""
        from taiwa.operations.inspect import describe_change

        before, tip = dict(self.talk.state), self.talk.conversation.tip
        try:
            turn = print_stream(self._stoppable(events), as_json=self.as_json, verbose=self.verbose)
        except TaiwaError as error:
            self.offered, self.failed = text, True
            if isinstance(error, ConflictError):
                self.talk.conversation = self.talk.repository.at(self.talk.session)
            raise
        except KeyboardInterrupt:
            if not self.lines.live:
                raise
            self.offered = text
            return
        self.report_name()
        if self.interrupts.pressed and not turn.text:
            self._return_to(tip, turn.node)
            self.offered = text
            tell(_("stopped before the answer began; nothing changed"))
        elif not self.as_json and turn.node != tip:
            for change in moved(self.talk.app.fields, before, self.talk.state, everything=self.verbose):
                tell(f"  {describe_change(change)}")

    def report_name(self) -> None:
        """Report if a new conversation got another name than announced."""
        if self.expected and self.talk.session != self.expected:
            tell(
                _(
                    "this conversation is named {session}: another process had already taken the first name",
                    session=self.talk.session,
                )
            )
        self.expected = ""

    def _return_to(self, tip: str, node: str) -> None:
        """Take back an empty turn; its bill stays."""
        talk = self.talk
        if talk.repository.store.refs.back(node, 1) == tip or not talk.repository.store.nodes.has(tip):
            talk.undo()
        else:
            talk.repository.store.refs.move(talk.session, tip, node, "interrupted")
            talk.conversation = talk.repository.checkout(tip)

    def _stoppable(self, events: "Iterator[TurnEvent]") -> "Iterator[TurnEvent]":
        if not self.lines.live:
            yield from events
            return
        with self.interrupts.listening(type(self.talk.priced_model.model).stream):
            yield from events

    def _finish_cut_off(self) -> None:
        """Offer to finish a turn of this session that was cut off."""
        runs = self.talk.repository.store.runs
        found = runs.open_runs(self.talk.session)
        others = [run for run in runs.open_runs() if run.ref not in ("", self.talk.session)] if self.lines.live else []
        if others:
            tell(
                _(
                    "a turn was cut off ({text}); taiwa resume finishes it without paying again",
                    text=f"{others[-1].ref}: {_short(others[-1].text)}",
                )
            )
        if not found:
            return
        text = _short(found[-1].text)
        if not self.lines.live:
            tell(_("a turn was cut off ({text}); taiwa resume finishes it without paying again", text=text))
        elif (
            self.lines.ask(_("a turn was cut off: {text}\nfinish it without paying again? [Y/n] ", text=text))
            .strip()
            .lower()
            in YES
        ):
            try:
                self.turn(self.talk.resume() or iter(()), found[-1].text)
            except TaiwaError as error:
                tell(f"taiwa: {error.message}", "red")
        else:
            for run in found:
                runs.abandon(run.id)
            tell(_("the turn was abandoned"))

    def priced_model(self, app: "App") -> "PricedModel":
        """Return the model for an app: another one only where the app names another."""
        if self.voice_of is None or app.model == self.talk.app.model:
            return self.talk.priced_model
        return self.voice_of(app)

    def undo(self, steps: int) -> None:
        """Take back turns."""
        try:
            self.talk.undo(steps)
        except InputError:
            raise InputError(
                _("there is nothing to undo") if steps == 1 else _("there are not that many turns")
            ) from None

    def redo(self, steps: int) -> None:
        """Restore turns."""
        try:
            self.talk.redo(steps)
        except InputError:
            raise InputError(
                _("there is nothing to redo") if steps == 1 else _("there are not that many turns")
            ) from None


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


def moved(
    fields: "Iterable[StateField]", before: "State", after: "State", *, everything: bool = False
) -> "Iterator[Change]":
    """Return the changes of a turn that are shown: those of computed fields are omitted."""
    from taiwa.conversation.state_paths import diff_states

    counted = {field.name for field in fields if field.computed and not everything}
    return (change for change in diff_states(before, after) if change.path[0] not in counted)


@dataclass(frozen=True, slots=True)
class Slash:
    """A slash command: its arguments and help, what it does with the rest of the line, and what it requires."""

    arguments: str
    help: str
    run: Callable[[Repl, str], None]
    needs: Literal["", "session", "turn"] = ""

    def usage(self, name: str) -> str:
        """Return the usage line."""
        return f"/{name} {self.arguments}".rstrip()


def command(repl: "Repl", line: str) -> None:
    """Run a slash command.

    Raises:
        InputError: the command is unknown, or lacks an argument or a turn.
    """
    import difflib

    name, rest = (*line[1:].split(" ", 1), "")[:2]
    found = SLASHES.get(name.strip().lower())
    if found is None:
        near = difflib.get_close_matches(name.lower(), SLASHES, 1) if name.isalpha() else []
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
    if (found.needs and here.new_nodes) or (found.needs == "turn" and not here.count):
        raise InputError(_("there are no turns yet"))
    found.run(repl, rest)


def _undo(repl: Repl, rest: str) -> None:
    repl.undo(_count(rest, "undo"))
    tell(_("back to turn {turn}", turn=repl.talk.conversation.count))


def _redo(repl: Repl, rest: str) -> None:
    repl.redo(_count(rest, "redo"))
    tell(_("forward to turn {turn}", turn=repl.talk.conversation.count))


def _retry(repl: Repl, _: str) -> None:
    repl.turn(repl.talk.retry(), "/retry")


def _edit(repl: Repl, rest: str) -> None:
    """Replace the text of a turn; without a text the old one is offered to be edited."""
    first, _, text = rest.partition(" ")
    turns = _count(first, "edit") if first.isdecimal() else 1
    text = text.strip() if first.isdecimal() else rest
    if text:
        repl.turn(repl.talk.edit(text, turns=turns), f"/edit {turns} {text}")
    else:
        repl.offered = f"/edit {turns} {repl.talk.last_turn_text(turns)}"


def _fork(repl: Repl, rest: str) -> None:
    parent, spent = repl.talk.session, repl.talk.spent
    repl.talk = repl.talk.fork(rest)
    repl.talk.spent = spent  # a limit of cost holds for the whole conversation, whatever its name
    tell(_("now on {session}; {parent} is unchanged", session=repl.talk.session, parent=parent))


def _switch(repl: Repl, rest: str) -> None:
    from taiwa.sessions.session import Session

    old, repository = repl.talk, repl.talk.repository
    here = repository.at(repository.session(rest))
    repository.store.refs.move(rest, here.tip, here.tip, "switch")
    repl.talk = Session(
        repository, rest, here, repl.priced_model(here.app), options=old.options, observers=(repl.interrupts.watch,)
    )
    repl.talk.spent, repl.expected = old.spent, ""
    tell(_("now on {session}, turn {turn}", session=rest, turn=here.count))


def _app(repl: Repl, rest: str) -> None:
    from click import Abort

    name, *params = rest.split()
    try:
        app = open_app(name, tuple(params))
    except Abort:
        raise InputError(_("nothing changed")) from None
    priced_model = repl.priced_model(app)
    repl.talk.change_app(app)
    repl.talk.priced_model = priced_model
    repl.report_name()
    tell(_("switched to app {app}; state that fits it was kept", app=repl.talk.app.name))


def _state(repl: Repl, rest: str) -> None:
    from taiwa.operations.inspect import format_value, value_at

    held = dict(repl.talk.state)
    if rest:
        say_line(format_value(value_at(held, rest)))
    elif repl.as_json:
        emit({"node": repl.talk.conversation.tip, "state": held})
    elif held:
        for name, value in held.items():
            say_line(f"{name}: {format_value(value)}")
    else:
        tell(_("app {app} has no state", app=repl.talk.app.name))


def _why(repl: Repl, rest: str) -> None:
    from taiwa.cli.inspect import print_why

    print_why(repl.talk.repository, rest, repl.talk.session, as_json=repl.as_json)


def _log(repl: Repl, _: str) -> None:
    from taiwa.cli.inspect import print_log

    print_log(repl.talk.repository, repl.talk.session, LOGGED, as_json=repl.as_json)


def _cost(repl: Repl, _: str) -> None:
    say_line(bill_line(repl.talk.spent))


def _save(repl: Repl, rest: str) -> None:
    from taiwa.cli.inspect import save

    path = Path(rest).expanduser()
    save(repl.talk.repository, repl.talk.session, path)
    tell(_("written to {path}", path=path))


def _good(repl: Repl, _: str) -> None:
    _verdict(repl, "good")


def _bad(repl: Repl, rest: str) -> None:
    _verdict(repl, rest or "bad")


def _verdict(repl: Repl, text: str) -> None:
    """Store the user's verdict on the last turn, and print its effect."""
    from taiwa.ask.result import AskResult
    from taiwa.ask.types import Feedback, read_verdict
    from taiwa.sessions.users import UserProfiles

    talk = repl.talk
    verdict = read_verdict(text)
    ask = AskResult.from_delta(talk.conversation.turns[-1].delta)
    name = str(talk.app.values.get("user") or "")
    if ask is None:
        raise InputError(_("only turns of an app that searches documents can be rated: taiwa chat ask"))
    people = UserProfiles(talk.repository.store)
    if not people.has(name):
        raise InputError(_("feedback is stored for a user: taiwa user set NAME, then taiwa chat ask -p user=NAME"))
    person = people.add_feedback(name, Feedback(verdict, ask.act_name == "ask", talk.conversation.tip))
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
    "state": Slash("[PATH]", gettext_noop("show the state, or part of it"), _state),
    "why": Slash("PATH", gettext_noop("show which turn set a value"), _why, needs="session"),
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
