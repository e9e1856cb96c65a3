"""The interactive conversation: the loop of turns, slash commands, and Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

import click

from taiwa.cli.export import save
from taiwa.cli.log import print_log
from taiwa.cli.options import (
    ANSWERS,
    CALLS,
    SHOWN,
    CommonOptions,
    common_options,
    complete_app,
    open_app,
    open_session,
)
from taiwa.cli.output import (
    AnswerFormat,
    bill_line,
    one_line,
    print_kept_apart,
    print_line,
    print_notice,
    print_stream,
    table,
)
from taiwa.cli.say import app_of_options
from taiwa.cli.state import print_state, print_why
from taiwa.conversation.state import Change, State, StateField, diff_states
from taiwa.flows.ask.types import Feedback, parse_verdict
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.attachments import Attachment, is_url, read_attachments
from taiwa.kernel.errors import ConflictError, InputError, TaiwaError
from taiwa.kernel.messages import TextDelta
from taiwa.kernel.usage_limits import format_cost
from taiwa.operations.log import describe_attachment
from taiwa.operations.state_values import describe_change, format_value, value_at

if TYPE_CHECKING:
    from taiwa.cli.keyboard import Keyboard, Pipe
    from taiwa.conversation.history import Conversation
    from taiwa.kernel.execution import Event
    from taiwa.sessions.commit_turn import PricedModel
    from taiwa.sessions.session import Session, TurnEvent

YES = frozenset({"", "y", "yes", "はい", "是", "好"})
LOG_LIMIT = 20
CHECK_INTERVAL = 0.02
"""Seconds between checks of whether the program is inside the answer."""


@click.command()
@click.argument("app", default="", shell_complete=complete_app)
@common_options(
    "model", "params", *ANSWERS, "indexes", "state", *CALLS, "session", "continue_latest", *SHOWN, "max_cost", "retry_paid", "wire", "no_store",
    "strict", "store",
)  # fmt: skip
def chat(common: CommonOptions, app: str) -> None:
    """Converse with APP (default: plain), line by line. /help lists the commands.

    Ctrl-C stops an answer and keeps its text so far. From a pipe, each line is a turn; --json prints one line per turn.

    \b
    taiwa chat
    taiwa chat translate -p target_lang=English
    taiwa chat -c                      continue the latest conversation
    taiwa chat -s novel-2              continue that one, or create it
    printf '%s\\n' Hello /state | taiwa chat
    """
    from taiwa.cli.keyboard import Keyboard, Pipe, Slashes, history_of
    from taiwa.operations.open_session import model_of

    live = sys.stdin.isatty() and sys.stdout.isatty() and not common.as_json
    interrupts = InterruptHandler()
    common, made = app_of_options(common, app)
    session = open_session(common, made, interrupts="keep" if live else "raise", observers=(interrupts.watch,))
    helps = {name: slash.help for name, slash in SLASHES.items()}
    completer = Slashes(helps, lambda name: repl.arguments(name))  # noqa: PLW0108  (repl comes after it)
    lines = Keyboard(history_of(session.repository.store.path), completer) if live else Pipe()
    repl = Repl(session, lines, interrupts, shown=common.shown())

    def open_model(conversation: "Conversation", name: str, model: str = "") -> "PricedModel":
        settings = (replace(common, model=model) if model else common).settings()
        return model_of(session.repository, settings, conversation, name)

    repl.open_model = open_model
    if live:
        print_notice(
            _(
                "{app} · {model} · {session}   /help lists the commands, Ctrl-D quits",
                app=session.app.name,
                model=session.priced_model.model.name,
                session=session.name,
            )
        )
    repl.run()
    if live and repl.session.conversation.stored_tip is not None and not common.no_store:
        print_notice(_("saved as {session}; continue with: taiwa chat -s {session}", session=repl.session.name))
    if not live and repl.failed:
        raise click.exceptions.Exit(1)


class InterruptHandler:
    """End an answer on Ctrl-C and keep what was written and paid for.

    The key may be pressed while text is printed, or during a transaction of the store. The interrupt is raised only where
    the runtime of the turn expects it, within the stream of the model; elsewhere it is deferred to the next part of the
    answer, or until the program waits for one.
    """

    def __init__(self) -> None:
        self.pressed = False
        """Whether the key was pressed during the last turn."""
        self._waiting = False

    def watch(self, event: "Event") -> None:
        """Observe a turn, and end the answer if the key was pressed outside its stream."""
        if self._waiting and isinstance(event, TextDelta):
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def listening(self) -> Generator[None]:
        """Handle Ctrl-C until the turn ends.

        Signals reach only the main thread, and Windows has no timer that sends one; there, nothing is handled.
        """
        from taiwa.kernel.runtime import answer_chunks

        self.pressed = self._waiting = False
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            yield
            return

        def press(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT:
                self.pressed = self._waiting = True
            if not self._waiting:
                return
            while frame is not None:
                if frame.f_code is answer_chunks.__code__:
                    self._waiting = False
                    raise KeyboardInterrupt
                frame = frame.f_back
            signal.setitimer(signal.ITIMER_REAL, CHECK_INTERVAL)  # the model may not write anything more

        before = [(number, signal.signal(number, press)) for number in (signal.SIGINT, signal.SIGALRM)]
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before:
                signal.signal(number, handler)


@dataclass
class Repl:
    """An interactive conversation; slash commands change it."""

    session: "Session"
    lines: "Keyboard | Pipe"
    interrupts: InterruptHandler = field(default_factory=InterruptHandler)
    open_model: "Callable[..., PricedModel] | None" = None
    """Opens the model of a conversation and its session, or a model by its name; without it the session keeps its model."""
    shown: AnswerFormat = field(default_factory=AnswerFormat)
    attachments: tuple[Attachment, ...] = field(default=(), init=False)
    """What is sent with the next text."""
    draft: str = field(default="", init=False)
    failed: bool = field(default=False, init=False)
    """Whether a turn or a slash command failed."""
    is_ended: bool = field(default=False, init=False)
    announced_name: str = field(default="", init=False)
    """The announced name of a new conversation, until it has one."""

    @property
    def as_json(self) -> bool:
        """Whether answers are printed as JSON."""
        return self.shown.get("as_json", False)

    def run(self) -> None:
        """Run the conversation until the user quits."""
        self.announced_name = self.session.name if self.session.conversation.stored_tip is None else ""
        self._finish_cut_off()
        while not self.is_ended:
            try:
                text = self.lines.read(self.draft)
            except KeyboardInterrupt:
                self.draft = ""
            except EOFError:
                break
            else:
                self.draft = ""
                self.process(text)

    def process(self, text: str) -> None:
        """Process a line; print its error, if any, and continue."""
        if not text.strip():
            return
        try:
            if text.startswith("/") and not text.startswith("//"):
                command(self, text)
                return
            said = text[1:] if text.startswith("//") else text
            self.turn(self.session.stream(said, self.attachments), text)
            if not self.draft:  # a turn that failed is offered again, with its attachments
                self.attachments = ()
        except TaiwaError as error:
            self.failed = True
            print_notice(f"taiwa: {error.message}", "red")

    def turn(self, events: "Iterator[TurnEvent]", text: str) -> None:
        """Make a turn; if it fails, its text is offered again."""
        before, tip = dict(self.session.state), self.session.conversation.tip
        try:
            turn = print_stream(self._stoppable(events), **self.shown)
        except TaiwaError as error:
            self.draft = text
            if isinstance(error, ConflictError):
                self.session.conversation = self.session.repository.at(self.session.name)
            raise
        except KeyboardInterrupt:
            if not self.lines.live:
                raise
            self.draft = text
            return
        self.report_name()
        if self.interrupts.pressed and not turn.text:
            self._take_back(tip, turn.node)
            self.draft = text
            print_notice(_("stopped before the answer began; nothing changed"))
        elif not self.as_json and turn.node != tip:
            for change in visible_changes(
                self.session.app.fields, before, self.session.state, everything=self.shown.get("verbose", False)
            ):
                print_notice(f"  {describe_change(change)}")

    def report_name(self) -> None:
        """Print the name of a new conversation if it differs from the announced one."""
        if self.announced_name and self.session.name != self.announced_name:
            name = self.session.name
            print_notice(
                _(
                    "this conversation is named {session}: another process had already taken the first name",
                    session=name,
                )
            )
        self.announced_name = ""

    def _take_back(self, tip: str, node: str) -> None:
        """Take back an empty turn; its bill stays."""
        session = self.session
        if session.repository.store.refs.back(node, 1) == tip or not session.repository.store.nodes.has(tip):
            session.undo()
        else:
            session.repository.store.refs.move(session.name, tip, node, "interrupted")
            session.conversation = session.repository.checkout(tip)

    def _stoppable(self, events: "Iterator[TurnEvent]") -> "Iterator[TurnEvent]":
        if not self.lines.live:
            yield from events
            return
        with self.interrupts.listening():
            yield from events

    def _finish_cut_off(self) -> None:
        """Offer to finish a turn of this session that was cut off."""
        runs = self.session.repository.store.runs
        cut = runs.open_runs(self.session.name)
        if not cut:
            return
        text = one_line(cut[-1].text, 60)
        if not self.lines.live:
            print_notice(_("a turn was cut off ({text}); taiwa resume finishes it without paying again", text=text))
            return
        reply = self.lines.ask(_("a turn was cut off: {text}\nfinish it without paying again? [Y/n] ", text=text))
        if reply.strip().lower() in YES:
            try:
                self.turn(self.session.stream_resume(), cut[-1].text)
                print_kept_apart(self.session, cut[-1].ref)
            except TaiwaError as error:
                print_notice(f"taiwa: {error.message}", "red")
        else:
            for run in cut:
                runs.end(run.id, "abandoned")
            print_notice(_("the turn was abandoned"))

    def priced_model(self, conversation: "Conversation", name: str, model: str = "") -> "PricedModel":
        """Return the model of another conversation, or the named one; without settings the present one."""
        return self.open_model(conversation, name, model) if self.open_model else self.session.priced_model

    def arguments(self, name: str) -> Iterable[tuple[str, str]]:
        """Yield what a slash command can take, each with a description."""
        found = SLASHES.get(name)
        return () if found is None or found.choices is None else found.choices(self)


def visible_changes(
    fields: Iterable[StateField], before: State, after: State, *, everything: bool = False
) -> Iterator[Change]:
    """Return the changes of a turn to print, without those of computed fields."""
    counted = {field.name for field in fields if field.computed and not everything}
    return (change for change in diff_states(before, after) if change.path[0] not in counted)


@dataclass(frozen=True, slots=True)
class Slash:
    """A slash command: its arguments and help, the function that runs it, and what it requires."""

    arguments: str
    help: str
    run: Callable[[Repl, str], None]
    needs: Literal["", "session", "turn"] = ""
    choices: "Callable[[Repl], Iterable[tuple[str, str]]] | None" = None
    """Yields what completes the argument, each with a description."""

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
    here = repl.session.conversation
    if (found.needs and here.stored_tip is None) or (found.needs == "turn" and not here.count):
        raise InputError(_("there are no turns yet"))
    found.run(repl, rest)


def _undo(repl: Repl, rest: str) -> None:
    _move(repl.session.undo, _count(rest, "undo"), _("there is nothing to undo"))
    print_notice(_("back to turn {turn}", turn=repl.session.conversation.count))


def _redo(repl: Repl, rest: str) -> None:
    _move(repl.session.redo, _count(rest, "redo"), _("there is nothing to redo"))
    print_notice(_("forward to turn {turn}", turn=repl.session.conversation.count))


def _move(move: Callable[[int], object], count: int, nothing: str) -> None:
    try:
        move(count)
    except InputError:
        raise InputError(nothing if count == 1 else _("there are not that many turns")) from None


def _edit(repl: Repl, rest: str) -> None:
    """Replace the text of a turn; without a text the old one is offered to be edited."""
    first, _space, text = rest.partition(" ")
    last = repl.session.conversation.count
    number = _count(first, "edit") if first.isdecimal() else last
    text = text.strip() if first.isdecimal() else rest
    turns = last - number + 1
    if turns < 1:
        raise InputError(_("there are not that many turns"))
    if text:
        repl.turn(repl.session.stream_edit(text, turn=number), f"/edit {number} {text}")
    else:
        repl.draft = f"/edit {number} {repl.session.last_turn_text(turns)}"


def _attach(repl: Repl, rest: str) -> None:
    """Attach a file to the next text; without a file, take back what is attached."""
    if not rest:
        repl.attachments = ()
        print_notice(_("nothing is attached to the next text"))
        return
    path = rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "'\"" else rest
    found = Attachment.from_path(path if is_url(path) else Path(path).expanduser())
    repl.attachments = read_attachments((*repl.attachments, found))
    print_notice(_("attached to the next text: {file}", file=describe_attachment(found)))


def _fork(repl: Repl, rest: str) -> None:
    parent, spent = repl.session.name, repl.session.spent
    repl.session = repl.session.fork(rest)
    repl.session.spent = spent  # a limit of cost holds for the whole conversation, whatever its name
    print_notice(_("now on {session}; {parent} is unchanged", session=repl.session.name, parent=parent))


def _switch(repl: Repl, rest: str) -> None:
    from taiwa.sessions.session import Session

    old, repository = repl.session, repl.session.repository
    here = repository.at(repository.session(rest))
    repository.store.refs.move(rest, here.tip, here.tip, "switch")
    repl.session = Session(
        repository, rest, here, repl.priced_model(here, rest), options=old.options, observers=(repl.interrupts.watch,)
    )
    repl.session.spent, repl.announced_name = old.spent, ""
    print_notice(_("now on {session}, turn {turn}", session=rest, turn=here.count))


def _app(repl: Repl, rest: str) -> None:
    name, *params = rest.split()
    try:
        app = open_app(name, tuple(params))
    except click.Abort:
        raise InputError(_("nothing changed")) from None
    repl.session.change_app(app)
    repl.session.priced_model = repl.priced_model(repl.session.conversation, repl.session.name)
    repl.report_name()
    print_notice(_("switched to app {app}; state that fits it was kept", app=repl.session.app.name))


def _state(repl: Repl, rest: str) -> None:
    if rest:
        print_line(format_value(value_at(dict(repl.session.state), rest)))
    else:
        print_state(repl.session.conversation, as_json=repl.as_json)


def _cost(repl: Repl, _rest: str) -> None:
    limit = repl.session.options.cost_limit
    print_line(
        bill_line(repl.session.spent) + ("" if limit is None else _(" · at most {cost}", cost=format_cost(limit)))
    )


def _model(repl: Repl, rest: str) -> None:
    if rest:
        repl.session.priced_model = repl.priced_model(repl.session.conversation, repl.session.name, rest)
    print_notice(_("the model is {model}", model=repl.session.priced_model.model.name))


def _system(repl: Repl, rest: str) -> None:
    """Give the model other instructions from the next turn on; "" takes them back, and without a text they are shown."""
    from taiwa.conversation.app import AnswerOptions
    from taiwa.operations.open_session import change_options

    session = repl.session
    if rest:
        changes = AnswerOptions("" if rest == '""' else rest)
        session.conversation = change_options(session.repository, session.conversation, changes)
    print_notice(session.app.instructions or _("the model has no instructions"))


def _turns(repl: Repl) -> Iterator[tuple[str, str]]:
    for number, node in reversed([*enumerate(repl.session.turns, 1)]):
        yield str(number), one_line(node.user or "", 40)


def _sessions(repl: Repl) -> Iterator[tuple[str, str]]:
    for ref in repl.session.repository.store.refs.list():
        yield ref.name, ref.app


def _apps(_repl: Repl) -> Iterator[tuple[str, str]]:
    from taiwa.apps.catalog import apps

    return ((each.name, _(each.about)) for each in apps())


def _models(repl: Repl) -> Iterator[tuple[str, str]]:
    named = {repl.session.priced_model.model.name: ""} | dict.fromkeys(
        repl.session.repository.last_model(ref.tip, ref.name) for ref in repl.session.repository.store.refs.list()[:20]
    )
    return ((name, "") for name in named if name)


def _fields(repl: Repl) -> Iterator[tuple[str, str]]:
    return ((name, "") for name in repl.session.state)


def _files(_repl: Repl) -> Iterator[tuple[str, str]]:
    return ((path.name + ("/" if path.is_dir() else ""), "") for path in sorted(Path.cwd().iterdir()))


def _export(repl: Repl, rest: str) -> None:
    path = Path(rest).expanduser()
    save(repl.session.repository, repl.session.name, path)
    print_notice(_("written to {path}", path=path))


def _verdict(repl: Repl, text: str) -> None:
    """Store the user's verdict on the last turn, and print its effect."""
    from taiwa.flows.ask.ask_result import AskResult
    from taiwa.sessions.users import UserProfiles

    session = repl.session
    verdict = parse_verdict(text)
    ask = AskResult.of(session.conversation.turns[-1].findings)
    name = str(session.app.document_settings.get("user") or "")
    if ask is None:
        raise InputError(_("only turns of an app that searches documents can be rated: taiwa chat ask"))
    people = UserProfiles(session.repository.store)
    if not people.has(name):
        raise InputError(_("feedback is stored for a user: taiwa user set NAME, then taiwa chat ask -p user=NAME"))
    profile = people.add_feedback(name, Feedback(verdict, ask.act_name == "ask", session.conversation.tip))
    print_notice(_("recorded; clarifying questions are welcome: {welcome}", welcome=f"{profile.tolerance.mean:.0%}"))


def _help(_repl: Repl, _rest: str) -> None:
    table((), [(slash.usage(name), _(slash.help)) for name, slash in SLASHES.items()])
    print_line("")
    print_line(
        _(
            'Enter sends, Alt-Enter (or Esc, Enter) starts a new line, """ opens and closes a text of several lines, Ctrl-C stops an answer; //text sends a text that begins with a slash.'
        )
    )


def _quit(repl: Repl, _: str) -> None:
    repl.is_ended = True


def _count(text: str, name: str) -> int:
    if not text:
        return 1
    if not text.isdecimal() or not int(text[:9]) > 0:
        raise InputError(_("usage: {usage}", usage=SLASHES[name].usage(name)))
    return int(text[:9])


SLASHES: dict[str, Slash] = {
    "undo": Slash("[n]", gettext_noop("take back the last turn, or the last n"), _undo),
    "redo": Slash("[n]", gettext_noop("restore turns that were taken back"), _redo),
    "retry": Slash("", gettext_noop("ask the last question again"),
        lambda repl, _: repl.turn(repl.session.stream_retry(), "/retry"), needs="turn"),
    "edit": Slash("[n] [TEXT]", gettext_noop("replace the text of the last turn, or of turn n as /log counts"), _edit,
        needs="turn", choices=_turns),
    "attach": Slash("[FILE]", gettext_noop("attach an image, a PDF or a text file to the next text"), _attach, choices=_files),
    "model": Slash("[NAME]", gettext_noop("show the model, or change it"), _model, choices=_models),
    "system": Slash("[TEXT]", gettext_noop("show or set the instructions (system prompt)"), _system),
    "fork": Slash("NAME", gettext_noop("continue on a new branch called NAME"), _fork, needs="session"),
    "switch": Slash("NAME", gettext_noop("switch to another conversation"), _switch, choices=_sessions),
    "app": Slash("NAME [KEY=VALUE …]", gettext_noop("continue with another app"), _app, choices=_apps),
    "state": Slash("[PATH]", gettext_noop("show the state, or part of it"), _state, choices=_fields),
    "why": Slash("PATH", gettext_noop("show which turn set a value"),
        lambda repl, path: print_why(repl.session.repository, path, repl.session.name, as_json=repl.as_json),
        needs="session", choices=_fields),
    "log": Slash("", gettext_noop("list the turns"),
        lambda repl, _: print_log(repl.session.repository, repl.session.name, LOG_LIMIT, as_json=repl.as_json), needs="session"),
    "cost": Slash("", gettext_noop("show the cost since this program started"), _cost),
    "export": Slash("FILE", gettext_noop("write the conversation to FILE (.md, .html, .jsonl)"), _export, needs="session"),
    "good": Slash("", gettext_noop("rate the last turn as right (apps that ask clarifying questions learn from it)"),
        lambda repl, _: _verdict(repl, "good"), needs="turn"),
    "bad": Slash("[ask|noask]", gettext_noop("rate it as wrong; ask: a clarifying question was needed, noask: it was not needed"),
        lambda repl, verdict: _verdict(repl, verdict or "bad"), needs="turn"),
    "help": Slash("", gettext_noop("show this help"), _help),
    "quit": Slash("", gettext_noop("quit (like Ctrl-D)"), _quit),
}  # fmt: skip
