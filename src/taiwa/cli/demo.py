"""Demonstrate the built-in model by ordinary commands in an empty home, on the terminal or on the page: demo."""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, TextIO, cast
from unicodedata import category

import click

from taiwa.cli.main import BAD_INPUT, FAILED, INTERRUPTED, cli, code_of
from taiwa.cli.output import print_line, print_notice
from taiwa.i18n import _, gettext_noop, ngettext, user_language

CONVERSATIONS: tuple[tuple[str, ...], ...] = (
    ("ask", "-s", "handbook", "How many days of annual leave do I have in Galway?"),
    ("ask", "-s", "question-back", "I have a question about leave."),
    ("say", "order", "-s", "注文", "抹茶ラテを二つと、チーズケーキを一つください。"),
    ("say", "-s", "注文", "あと、コーヒーを一つお願いします。"),
    ("edit", "2", "-s", "注文", "あと、クロワッサンを一つください。"),
    ("say", "order", "-s", "desk", "Two grande lattes with oat milk, please."),
    ("say", "-s", "desk", "Make that three, please."),
    ("fork", "desk", "finished"),
    ("say", "-s", "finished", "That's everything, thank you."),
    ("say", "-s", "desk", "And a blueberry muffin, please."),
    ("edit", "3", "-s", "desk", "And two croissants, please."),
)
"""Commands that prepare conversations with a state, branches, a fork, citations and a clarifying question."""
ASKED_BACK = 3
FORMULA = r"((Ammonia|Ethanol|Glucose|Methane|Water) is ([A-Z][a-z]?[0-9]{0,2}){1,9}|I do not know the formula of [a-z]{3,20})\."


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A command; `{text}` in it stands for a text that the user may replace.

    `shows` must occur in its output, and `code` is its exit code. A `reply` follows only if the previous step asked a
    clarifying question.
    """

    about: str
    command: str
    text: str = ""
    shows: str = ""
    code: int = 0
    reply: bool = False


@dataclass(frozen=True, slots=True)
class DemoPart:
    """Steps that belong together, and the command to try next."""

    title: str
    steps: tuple[DemoStep, ...]
    then: str


SOLVE = "taiwa solve {text}"
PROBLEMS = DemoPart(
    gettext_noop("Problems: the network writes, is interrupted where it calls a tool, and continues after the exact result."),
    (
        DemoStep(gettext_noop("Chemistry: the name gives the formula, the formula the molar mass."), SOLVE,
                 "How many grams do 3 moles of sulfuric acid weigh?", "294.2"),
        DemoStep(gettext_noop("A reaction: which of the two is used up first?"), SOLVE,
                 "2 mol of hydrogen and 3 mol of oxygen react. How many moles of water are formed?", "answer is 2 mol"),
        DemoStep(gettext_noop("Everyday life."), SOLVE,
                 "A train travels 210 km in 2.5 hours. What is its average speed in km/h?", "answer is 84 km/h"),
        DemoStep(gettext_noop("Units."), SOLVE, "How many litres are 3 gallons?", "11.356"),
        DemoStep(gettext_noop("In Japanese."), SOLVE, "1000円の20%引きはいくら?", "800"),
        DemoStep(gettext_noop("Beyond its training: it shows what it tried, and gives no answer."), SOLVE,
                 "Who wrote Hamlet?", code=4),
    ),
    'taiwa solve "What is the mass percent of oxygen in water?" --trace',
)  # fmt: skip
ORDER_DESK = DemoPart(
    gettext_noop("An order desk: a conversation with typed state. The network writes the reply and the state delta, constrained by a grammar."),
    (
        DemoStep(gettext_noop("A first order."), "taiwa say order -s desk {text}", "Two grande lattes with oat milk, please."),
        DemoStep(gettext_noop("A correction."), "taiwa say -s desk {text}", "Make that three, please."),
        DemoStep(gettext_noop("In Japanese."), "taiwa say -s desk {text}", "抹茶ラテも一つください。"),
        DemoStep(gettext_noop("The state is data, checked by its type."), "taiwa state -s desk", shows="matcha latte"),
        DemoStep(gettext_noop("Every value can be traced to the turn that set it."), "taiwa why items.1 -s desk", shows="set by turn 2"),
        DemoStep(gettext_noop("Undo moves message and state together …"), "taiwa undo -s desk", shows="2"),
        DemoStep(gettext_noop("… a fork continues on another branch from there,"), "taiwa fork desk other", shows="other"),
        DemoStep(gettext_noop("where the guest finishes the order; a tool computes the total."), "taiwa say -s other {text}",
                 "That's everything, thank you.", "12.6"),
        DemoStep(gettext_noop("The first branch is still there."), "taiwa redo -s desk", shows="3"),
        DemoStep(gettext_noop("Two branches, compared."), "taiwa diff desk other", shows='status: "open" → "confirmed"'),
        DemoStep(gettext_noop("Both histories."), "taiwa log --tree", shows="← other"),
        DemoStep(gettext_noop("A replay from the records: no model call, every hash checked."), "taiwa replay desk", shows="0 model calls"),
        DemoStep(gettext_noop("The bill."), "taiwa cost --by session", shows="desk"),
    ),
    "taiwa chat order",
)  # fmt: skip
QUESTIONS = DemoPart(
    gettext_noop("Questions about documents: the network assesses the question; the program searches, asks for clarification, and quotes."),
    (
        DemoStep(gettext_noop("An incomplete question: the program asks for clarification,"), "taiwa ask {text}",
                 "I have a question about leave.", code=ASKED_BACK),
        DemoStep(gettext_noop("and with the reply it finds an answer with its source."), "taiwa ask -c {text}", "1", "[1]", reply=True),
        DemoStep(gettext_noop("A clear question is answered at once."), "taiwa ask {text}",
                 "How many days of annual leave do I have in Galway?", "26"),
    ),
    'taiwa ask "What may a hotel in Dublin cost a night?" -v     (your documents: --in FOLDER)',
)  # fmt: skip
CONSTRAINT = DemoPart(
    gettext_noop("A constraint: at each position only tokens that can still lead to an allowed text are possible."),
    (
        DemoStep(gettext_noop("«Forced» tokens cost no pass of the network; it writes the formula itself. (--task solve marks the request as one of taiwa solve, which it was trained on.)"),
                 f'taiwa generate --task solve --regex "{FORMULA}" -v {{text}}', "What is the formula of ammonia?", "Ammonia is NH3."),
        DemoStep(gettext_noop("The masks of such a text, position by position, over the vocabulary of this network."),
                 f'taiwa explain --vocab builtin --regex "{FORMULA}" {{text}}', "Ammonia is NH3.", "accepted"),
    ),
    'taiwa explain --regex "[0-9]{1,3}%" 42% --html masks.html',
)  # fmt: skip
PARTS = (PROBLEMS, ORDER_DESK, QUESTIONS, CONSTRAINT)
PAUSE, PER_LINE, LONGEST_PAUSE = 1.2, 0.12, 3.0
"""Seconds to wait on a terminal after a command and after each line that it printed, and the maximum; a pipe has no pauses."""
LONGEST_LINE = 100_000


class _EndedError(Exception):
    """The user ended the input."""


class _Copy:
    """Standard output that records what is printed."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.text = ""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (any attribute of the output)
        return getattr(self._out, name)

    def write(self, text: str) -> int:
        """Print and record."""
        self.text += text
        return self._out.write(text)


class Demo:
    """Runs the steps, and counts those with unexpected output."""

    def __init__(self, *, interactive: bool = False) -> None:
        self._interactive = interactive
        self._lines = sys.stdin
        self.failed = self.steps = 0

    def part(self, number: int, part: DemoPart) -> None:
        """Run the steps of a part."""
        print_line(f"\n{number}. {_(part.title)}", "bold")
        code, free = 0, False
        for step in part.steps:
            if step.reply and code != ASKED_BACK:
                continue
            print_line(f"\n{_(step.about)}")
            text = self._read_text(step)
            free = free or text != step.text
            code = self._step(step, text, free=free)
        print_line("")
        print_line(_("try next: {command}", command=part.then), "green")

    def _step(self, step: DemoStep, text: str, *, free: bool) -> int:
        """Run a command; with a text of the user its output is not checked."""
        command = step.command.replace("{text}", _quoted(text))
        print_line(f"$ {command}", "cyan")
        code, printed = _run(command)
        if code == INTERRUPTED:
            raise click.Abort
        if not free:
            self.steps += 1
            wrong = code != step.code
            if wrong:
                print_notice(
                    _("unexpected exit code {code}; {wanted} was expected", code=code, wanted=step.code), "yellow"
                )
            elif step.shows not in printed:
                print_notice(_("unexpected output: {wanted} was expected", wanted=repr(step.shows)), "yellow")
            self.failed += wrong or step.shows not in printed
        if sys.stdout.isatty() and not self._interactive:
            time.sleep(min(PAUSE + PER_LINE * printed.count("\n"), LONGEST_PAUSE))
        return code

    def _read_text(self, step: DemoStep) -> str:
        """Return the text that the user types, or the example."""
        if not self._interactive or not step.text:
            return step.text
        print_line(_("example: {text}", text=step.text))
        while True:
            click.echo("> ", nl=False)
            raw = self._lines.buffer.readline(LONGEST_LINE)
            if not raw:
                print_line("")
                raise _EndedError
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                print_notice(_("that line is not UTF-8; type it again"), "yellow")
                continue
            text = "".join(sign for sign in line if category(sign) != "Cc").strip()
            if not self._lines.isatty():  # a terminal has already echoed it
                print_line(text)
            return text if text.strip("-") else step.text


@click.command()
@click.option("-i", "--interactive", is_flag=True, help="Type your own questions and orders.")
@click.option("--page", is_flag=True, help="Show conversations of the model in the browser instead.")
@click.option("--no-browser", is_flag=True, help="With --page, print the address without opening a browser.")
@click.option(
    "--minutes",
    type=click.IntRange(1, 1440),
    default=30,
    show_default=True,
    help="With --page, end after this many minutes.",
)
def demo(*, interactive: bool, page: bool, no_browser: bool, minutes: int) -> None:
    """Watch the built-in model solve problems with tools, take orders, answer from a handbook, and obey a constraint.

    No key, no network and no input is needed; it takes about a minute, and does not pause in a pipe. Nothing is stored, and your
    conversations are not touched. The exit code is 1 if a step has an unexpected outcome.

    \b
    taiwa demo
    taiwa demo --interactive
    taiwa demo --page
    """
    if page:
        show_page(minutes, no_browser=no_browser)
        return
    print_line(
        _(
            "A small neural network of {size} parameters, built into taiwa, writes the text below on this machine:\n"
            "no key, no download, no network. It can solve problems about quantities and chemistry, take orders at a café (English,\n"
            "Japanese), and judge what a question to documents lacks; nothing else, and it can be wrong. `taiwa models show builtin` says\n"
            "how often. Each command is what you would type. Calculations, passages and checks come from the program, not the network.",
            size=_size(),
        )
    )
    if interactive:
        print_line(_("Type your own text at >; an empty line takes the example, Ctrl-D ends."))
    show = Demo(interactive=interactive)
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder)), suppress(_EndedError):
        for number, part in enumerate(PARTS, 1):
            show.part(number, part)
    if show.failed:
        failed = ngettext(
            "{failed} of {n} step gave an unexpected result", "{failed} of {n} steps gave an unexpected result",
            show.steps, failed=show.failed,
        )  # fmt: skip
        print_notice(f"\n{failed}", "yellow")
    print_line("")
    print_line(
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
    """Write the number of parameters of the model in the user's language.

    Raises:
        ConfigError: the weights are missing or damaged.
    """
    from taiwa.models.builtin.model import DATA
    from taiwa.models.builtin.network import load_weights

    count = load_weights(DATA / "weights.safetensors").count
    return f"{count / 1e6:.1f} million" if user_language() == "en" else f"{count / 1e4:,.0f} 万"


def _quoted(text: str) -> str:
    """Quote a text for a shell."""
    if text.isalnum():
        return text
    word = shlex.quote(text) if set(text) & set('"$`\\!') else f'"{text}"'
    return f"-- {word}" if text.startswith("-") else word


def _run(command: str) -> tuple[int, str]:
    """Run a command line in this process; return its exit code and its output."""
    sys.stdout.flush()
    copy = _Copy(sys.stdout)
    with redirect_stdout(cast("TextIO", copy)):
        code = run_command(shlex.split(command)[1:])
    copy.flush()
    return code, copy.text


@contextmanager
def at_home(folder: Path) -> Generator[None]:
    """Use an empty home: do not read or write settings, keys and conversations of the user, and do not prompt."""
    before, stdin = dict(os.environ), sys.stdin
    for name in [name for name in os.environ if name.startswith("TAIWA_") and name != "TAIWA_LANG"]:
        del os.environ[name]
    store = str(folder / "demo.db")
    os.environ |= {"XDG_CONFIG_HOME": str(folder), "TAIWA_STORE": store, "TAIWA_MODEL": "builtin"}
    try:
        with Path(os.devnull).open(encoding="utf-8") as nothing:
            sys.stdin = nothing
            yield
    finally:
        sys.stdin = stdin
        os.environ.clear()
        os.environ |= before


def run_command(arguments: Sequence[str]) -> int:
    """Run a command in this process; return its exit code."""
    from taiwa.kernel.errors import TaiwaError

    try:
        code = cli.main(list(arguments), "taiwa", standalone_mode=False)
    except (TaiwaError, click.ClickException) as error:
        code = code_of(error) if isinstance(error, TaiwaError) else BAD_INPUT
        print_notice(f"taiwa: {error.message}", "yellow")
    return code if isinstance(code, int) else 0


def show_page(minutes: int, *, no_browser: bool = False) -> None:
    """Prepare the conversations and serve them until Ctrl-C, or for some minutes."""
    from threading import Timer

    from taiwa.cli import serve
    from taiwa.cli.options import CommonOptions
    from taiwa.cli.serve import check_installed

    check_installed()
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder)):
        print_line(_("The built-in model prepares some conversations …"))
        prepare()
        common = CommonOptions()
        settings = common.settings()
        server = serve.page_server(common.repository(settings), settings, 0)
        serve.print_page(server, opens=not no_browser and serve.has_browser())
        print_line(_("The demonstration ends after {n} minutes, and what it stored is deleted.", n=minutes))
        timer = Timer(minutes * 60, server.stop)
        timer.daemon = True
        timer.start()
        try:
            server.run(None if no_browser else serve.opener(server))
        finally:
            timer.cancel()


def prepare() -> None:
    """Make the conversations by ordinary commands."""
    for command in CONVERSATIONS:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            run_command(command)
