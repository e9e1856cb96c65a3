"""`taiwa demo`: the model that comes along at work, through the commands that a person would type."""

import io
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO
from unicodedata import category

import click

from taiwa.cli.demosteps import ASKED_BACK, PARTS, Part, Step
from taiwa.cli.main import BAD_INPUT, FAILED, INTERRUPTED, cli, code_of
from taiwa.cli.screen import say_line, tell
from taiwa.i18n import _, ngettext, user_language

__all__ = ["Show", "at_home", "demo"]

PAUSE, PER_LINE, LONGEST_PAUSE = 1.2, 0.12, 3.0
"""Seconds for a person who watches: for each command, for each line that it printed, and at most; a pipe waits for nothing."""
LONGEST_LINE = 100_000


class _EndedError(Exception):
    """The person wants no more."""


class _Copy(io.TextIOBase):
    """Standard output that remembers what was printed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.text = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the output."""
        return self._out.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the output."""
        return self._out.errors

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """Whether a person sees it."""
        return self._out.isatty()

    def fileno(self) -> int:
        """That of the output."""
        return self._out.fileno()

    def write(self, text: str) -> int:
        """Print, and remember."""
        self.text += text
        return self._out.write(text)

    def flush(self) -> None:
        """Print at once."""
        self._out.flush()


class Show:
    """Runs the steps, and counts those that went otherwise than was meant."""

    def __init__(self, *, interactive: bool = False) -> None:
        self._interactive = interactive
        self._watched = sys.stdout.isatty() and not interactive
        self._lines = sys.stdin
        self.failed = self.steps = 0

    def part(self, number: int, part: Part) -> None:
        """Run the steps of a part."""
        say_line(f"\n{number}. {_(part.title)}", "bold")
        code, free = 0, False
        for step in part.steps:
            if step.reply and code != ASKED_BACK:
                continue
            say_line(f"\n{_(step.about)}")
            said = self._said(step)
            free = free or said != step.said
            code = self._step(step, said, free=free)
        say_line("")
        say_line(_("try next: {command}", command=part.then), "green")

    def _step(self, step: Step, said: str, *, free: bool) -> int:
        """Run a command; with a person's own words nothing is expected of it."""
        command = step.command.replace("{said}", _quoted(said))
        say_line(f"$ {command}", "cyan")
        code, printed = _run(command)
        if code == INTERRUPTED:
            raise click.Abort
        if not free:
            self.steps += 1
            wrong = code != step.code
            if wrong or step.shows not in printed:
                self.failed += 1
                if wrong:
                    text = _("unexpected exit code {code}; {wanted} was expected", code=code, wanted=step.code)
                else:
                    text = _("unexpected output: {wanted} was expected", wanted=repr(step.shows))
                tell(text, "yellow")
        if self._watched:
            time.sleep(min(PAUSE + PER_LINE * printed.count("\n"), LONGEST_PAUSE))
        return code

    def _said(self, step: Step) -> str:
        """What the person types in place of the example, if anything."""
        if not self._interactive or not step.said:
            return step.said
        say_line(_("example: {said}", said=step.said))
        while True:
            click.echo("> ", nl=False)
            raw = self._lines.buffer.readline(LONGEST_LINE)
            if not raw:
                say_line("")
                raise _EndedError
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                tell(_("that line is not UTF-8; type it again"), "yellow")
                continue
            said = "".join(sign for sign in line if category(sign) != "Cc").strip()
            if not self._lines.isatty():  # nobody has seen it while it was typed
                say_line(said)
            return said if said.strip("-") else step.said


@click.command()
@click.option("-i", "--interactive", is_flag=True, help="Type your own questions and orders.")
def demo(*, interactive: bool) -> None:
    """Watch the small model that comes along: problems solved with tools, an order desk, questions to a handbook, a constraint.

    No key, no network, no input needed, about a minute; in a pipe it prints plainly and waits for nothing. It keeps nothing,
    and touches no conversation of yours. The exit code is 1 if a step went otherwise than was meant.

    \b
    taiwa demo
    taiwa demo --interactive
    """
    say_line(
        _(
            "A small neural network of {size} parameters, built into taiwa, writes the text below on this machine:\n"
            "no key, no download, no network. It can solve problems about quantities and chemistry, take orders at a café (English,\n"
            "Japanese), and judge what a question to documents lacks; nothing else, and it can be wrong. `taiwa models show builtin` says\n"
            "how often. Each command is what you would type. Calculations, passages and checks come from the program, not the network.",
            size=_size(),
        )
    )
    if interactive:
        say_line(_("Type your own text at >; an empty line takes the example, Ctrl-D ends."))
    show = Show(interactive=interactive)
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder)), suppress(_EndedError):
        for number, part in enumerate(PARTS, 1):
            show.part(number, part)
    if show.failed:
        failed = ngettext(
            "{failed} of {n} step gave an unexpected result", "{failed} of {n} steps gave an unexpected result",
            show.steps, failed=show.failed,
        )  # fmt: skip
        tell(f"\n{failed}", "yellow")
    say_line("")
    say_line(
        _(
            "Now try it yourself. With this small model:\n"
            "  taiwa demo --interactive\n"
            "  taiwa chat order\n"
            "and with a larger one (`taiwa models list` shows the names):\n"
            "  taiwa config set model http://127.0.0.1:8080/v1#name\n"
            "  taiwa chat"
        )
    )
    if show.failed:
        raise click.exceptions.Exit(FAILED)


def _size() -> str:
    """How many parameters the model has, as the person's language counts.

    Raises:
        ConfigError: it is not there, or broken.
    """
    from taiwa.models.builtin.loading import DATA
    from taiwa.models.builtin.weights import loaded

    count = loaded(DATA / "weights.safetensors").count
    return f"{count / 1e6:.1f} million" if user_language() == "en" else f"{count / 1e4:,.0f} 万"


def _quoted(said: str) -> str:
    """A text as a word of a shell's line."""
    if said.isalnum():
        return said
    word = shlex.quote(said) if set(said) & set('"$`\\!') else f'"{said}"'
    return f"-- {word}" if said.startswith("-") else word


def _run(command: str) -> tuple[int, str]:
    """Run a command line as `taiwa` would, in this process; its exit code, and what it printed."""
    from taiwa.kernel.errors import TaiwaError

    sys.stdout.flush()
    copy = _Copy(sys.stdout)
    try:
        with redirect_stdout(copy):
            code = cli.main(shlex.split(command)[1:], "taiwa", standalone_mode=False)
    except TaiwaError as error:
        code = _told(error.message, code_of(error))
    except click.ClickException as error:
        code = _told(error.format_message(), BAD_INPUT)
    copy.flush()
    return code if isinstance(code, int) else 0, copy.text


def _told(message: str, code: int) -> int:
    tell(f"taiwa: {message}", "yellow")
    return code


@contextmanager
def at_home(folder: Path) -> Generator[None]:
    """A home of its own: nothing of the person's settings, keys or conversations is read or written, and nothing is asked."""
    kept, stdin = dict(os.environ), sys.stdin
    for name in [name for name in os.environ if name.startswith("TAIWA_") and name != "TAIWA_LANG"]:
        del os.environ[name]
    os.environ |= {
        "XDG_CONFIG_HOME": str(folder),
        "TAIWA_STORE": str(folder / "demo.db"),
        "TAIWA_MODEL": "builtin",
    }
    try:
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            sys.stdin = nothing
            yield
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ |= kept
