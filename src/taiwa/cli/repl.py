"""The conversation on a terminal, or over a pipe: lines in, answers out, and what went wrong in one line."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from taiwa.cli.hear import hear
from taiwa.cli.look import change_line
from taiwa.cli.screen import tell
from taiwa.cli.stopping import Stopper
from taiwa.conversation.app import App
from taiwa.conversation.fields import Field
from taiwa.conversation.places import Change, changes
from taiwa.conversation.state import State
from taiwa.i18n import _
from taiwa.kernel.errors import ConflictError, InputError, TaiwaError
from taiwa.talk.talk import Heard, Talk
from taiwa.talk.turn import Voice

__all__ = ["Lines", "Repl", "moved"]

YES = frozenset({"", "y", "yes", "はい", "是", "好"})


class Lines(Protocol):
    """Where texts come from."""

    live: bool
    """Whether a person sits there, who can be asked."""

    def read(self, offered: str = "") -> str:
        """Return the next text; `offered` stands there to be changed.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: the person wants to begin the line anew.
        """
        ...

    def ask(self, question: str) -> str:
        """Return the answer to a question."""
        ...


@dataclass
class Repl:
    """A conversation while it is held; slash commands (`slash.py`) change it."""

    talk: Talk
    lines: Lines
    stopper: Stopper = field(default_factory=Stopper)
    voice_of: Callable[[App], Voice] | None = None
    """Opens the model that an app asks for; without it the talk keeps the one it has."""
    as_json: bool = False
    verbose: bool = False
    offered: str = ""
    failed: bool = False
    """Whether a turn failed."""
    left: bool = False
    expected: str = ""
    """The name that a new conversation was said to have, until it has one."""

    def run(self) -> None:
        """Hold the conversation until the person leaves."""
        self.expected = self.talk.session if self.talk.conversation.fresh else ""
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
        """Do what a line says; a failure is a line, and the conversation goes on."""
        if not text.strip():
            return
        try:
            if text.startswith("//"):
                self.hear(self.talk.stream(text[1:]), text)
            elif text.startswith("/"):
                from taiwa.cli.slash import command

                command(self, text)
            else:
                self.hear(self.talk.stream(text), text)
        except TaiwaError as error:
            tell(f"taiwa: {error.message}", "red")

    def hear(self, events: Iterator[Heard], text: str) -> None:
        """Have a turn; one that fails offers its text again."""
        before, tip = dict(self.talk.state), self.talk.conversation.tip
        try:
            said = hear(self._stoppable(events), as_json=self.as_json, verbose=self.verbose)
        except TaiwaError as error:
            self.offered, self.failed = text, True
            if isinstance(error, ConflictError):
                self.talk.conversation = self.talk.desk.at(self.talk.session)
            raise
        except KeyboardInterrupt:
            if not self.lines.live:
                raise
            self.offered = text
            return
        self.see_name()
        if self.stopper.pressed and not said.text:
            self._return_to(tip, said.node)
            self.offered = text
            tell(_("stopped before the answer began; nothing changed"))
        elif not self.as_json and said.node != tip:
            for change in moved(self.talk.app.fields, before, self.talk.state, everything=self.verbose):
                tell(f"  {change_line(change)[0]}")

    def see_name(self) -> None:
        """Say it when a new conversation got another name than it was said to have."""
        if self.expected and self.talk.session != self.expected:
            tell(
                _(
                    "this conversation is named {session}: another process had already taken the first name",
                    session=self.talk.session,
                )
            )
        self.expected = ""

    def _return_to(self, tip: str, node: str) -> None:
        """Leave a turn that holds nothing; its bill stays."""
        talk = self.talk
        if talk.desk.store.refs.back(node, 1) == tip or not talk.desk.store.nodes.has(tip):
            talk.undo()
        else:
            talk.desk.store.refs.move(talk.session, tip, node, "interrupted")
            talk.conversation = talk.desk.checkout(tip)

    def _stoppable(self, events: Iterator[Heard]) -> Iterator[Heard]:
        if not self.lines.live:
            yield from events
            return
        with self.stopper.listening(type(self.talk.voice.model).stream):
            yield from events

    def _finish_cut_off(self) -> None:
        """Offer to finish a turn of this session that a crash cut off."""
        runs = self.talk.desk.store.runs
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
                self.hear(self.talk.resume() or iter(()), found[-1].text)
            except TaiwaError as error:
                tell(f"taiwa: {error.message}", "red")
        else:
            for run in found:
                runs.abandon(run.id)
            tell(_("the turn was abandoned"))

    def voice(self, app: App) -> Voice:
        """The model for an app: another one only where the app asks for another."""
        if self.voice_of is None or app.model == self.talk.app.model:
            return self.talk.voice
        return self.voice_of(app)

    def undo(self, steps: int) -> None:
        """Go back."""
        try:
            self.talk.undo(steps)
        except InputError:
            raise InputError(
                _("there is nothing to undo") if steps == 1 else _("there are not that many turns")
            ) from None

    def redo(self, steps: int) -> None:
        """Go forward again."""
        try:
            self.talk.redo(steps)
        except InputError:
            raise InputError(
                _("there is nothing to redo") if steps == 1 else _("there are not that many turns")
            ) from None


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


def moved(fields: Iterable[Field], before: State, after: State, *, everything: bool = False) -> Iterator[Change]:
    """The changes of a turn that a person may want to see: what the program only counts is left out."""
    counted = {field.name for field in fields if field.derive and not everything}
    return (change for change in changes(before, after) if change.place[0] not in counted)
