"""Demonstrate taiwa by ordinary commands in an empty home, on the terminal or on the page: demo.

With the small model that is offered first, all five parts show its answers; without it, what needs no model is shown.
"""

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

import click

from taiwa.cli.main import BAD_INPUT, FAILED, INTERRUPTED, cli, code_of
from taiwa.cli.output import print_line, print_notice
from taiwa.i18n import _, gettext_noop, ngettext
from taiwa.kernel.errors import ConfigError
from taiwa.models.weights.model_files import FIRST_MODEL

CONVERSATIONS: tuple[tuple[str, ...], ...] = (
    ("ask", "-s", "handbook", "How many days of annual leave do I have in Galway?"),
    ("say", "-s", "handbook", "And in Leith?"),
    ("fork", "handbook", "hotel"),
    ("say", "-s", "hotel", "What may a hotel in Dublin cost a night?"),
    ("ask", "-s", "question-back", "I have a question about leave."),
)
"""Commands that prepare conversations with citations, a fork and a clarifying question."""
ASKED_BACK = 3


@dataclass(frozen=True, slots=True)
class DemoStep:
    """A command; `piped` is its standard input.

    `shows` must occur in its output, and `code` is its exit code. A `reply` follows only if the previous step asked a
    clarifying question.
    """

    about: str
    command: str
    shows: str = ""
    code: int = 0
    reply: bool = False
    piped: str = ""


@dataclass(frozen=True, slots=True)
class DemoPart:
    """Steps that belong together, and the command to try next."""

    title: str
    steps: tuple[DemoStep, ...]
    then: str


BROKEN = 'Here you are: {"name": "tea", cups: 2, "note": None,}'
EXACT = DemoPart(
    gettext_noop("Exact tools, which a model calls for what it cannot work out."),
    (
        DemoStep(gettext_noop("Arithmetic."), 'taiwa tools call calculator "3*(17.5+2)^2"', "1140.75"),
        DemoStep(gettext_noop("Chemistry."), 'taiwa tools call molar_mass H2SO4', "98.072 g/mol"),
        DemoStep(gettext_noop("Units."), 'taiwa tools call unit_conversion "3 gallons to l"', "11.356"),
    ),
    "taiwa tools list",
)  # fmt: skip
TYPED = DemoPart(
    gettext_noop("Typed answers: text becomes a value of a type, or an error that says what is wrong."),
    (
        DemoStep(gettext_noop("An answer that is not quite JSON is repaired; -v says how."),
                 "taiwa parse - -v --type 'name, cups int, note?'", shows='"cups": 2', piped=BROKEN),
        DemoStep(gettext_noop("A constraint: at each position only the tokens are possible that can still lead to an allowed text."),
                 'taiwa explain --regex "[0-9]{1,3}%" "42%"', "accepted"),
    ),
    'taiwa explain --regex "[0-9]{1,3}%" 42% --html masks.html',
)  # fmt: skip
QUESTIONS = DemoPart(
    gettext_noop("Questions about documents: without a model, the program searches, asks back, and quotes."),
    (
        DemoStep(gettext_noop("An incomplete question: the program asks for clarification,"), 'taiwa ask -s desk "I have a question about leave."', code=ASKED_BACK),
        DemoStep(gettext_noop("and with the reply it finds an answer with its source."), 'taiwa ask -c 1', "[1]", reply=True),
        DemoStep(gettext_noop("A clear question is answered at once."), 'taiwa ask -s galway "How many days of annual leave do I have in Galway?"', "26"),
    ),
    'taiwa ask "What may a hotel in Dublin cost a night?" -v     (your documents: --in FOLDER)',
)  # fmt: skip
HISTORY = DemoPart(
    gettext_noop("A conversation is stored as hashed nodes: every change can be undone, and every state checked."),
    (
        DemoStep(gettext_noop("Undo moves to the turn before …"), "taiwa undo -s galway", shows="0"),
        DemoStep(gettext_noop("… and redo back."), "taiwa redo -s galway", shows="1"),
        DemoStep(gettext_noop("All histories."), "taiwa log --tree", shows="← galway"),
        DemoStep(gettext_noop("A replay from the records: no model call, every hash checked."), "taiwa replay galway", shows="0 model calls"),
        DemoStep(gettext_noop("A check of the whole store."), "taiwa fsck", shows="every hash is right"),
    ),
    "taiwa show galway",
)  # fmt: skip
PARTS = (EXACT, TYPED, QUESTIONS, HISTORY)
"""What needs no model."""
APP_FILE = "trip.md"
APP = """\
---
taiwa: 1
name: trip
state:
  city:   { type: str, description: city to travel to }
  people: { type: "int(1..20)", description: number of travellers }
  plan:   { type: "dict[str, str | null]", reduce: table, description: what is planned for each day }
sampling: { temperature: 0.0 }
---
You help to plan a trip. Answer in one or two sentences.
"""
STATEFUL = DemoPart(
    gettext_noop("A conversation with typed state, made by one file; a message, its answer and the state are one node."),
    (
        DemoStep(gettext_noop("The file trip.md holds the fields and two sentences of instructions."), f"taiwa apps check {APP_FILE}", shows="no errors"),
        DemoStep(gettext_noop("A first message: the model is asked what it changes, then answers."), f'taiwa say {APP_FILE} -s trip "I want to go to Lisbon with my sister in May."'),
        DemoStep(gettext_noop("Another."), 'taiwa say -s trip "On Friday we would like to see a football match."'),
        DemoStep(gettext_noop("The state is data, checked by its type."), "taiwa state -s trip", shows="people: 2"),
        DemoStep(gettext_noop("Every value can be traced to the turn that set it."), "taiwa why plan.Friday -s trip", shows="set by turn 2"),
        DemoStep(gettext_noop("A fork continues on another branch …"), "taiwa fork trip three", shows="three"),
        DemoStep(gettext_noop("… from the same state."), 'taiwa say -s three "Actually there are three of us, my brother is coming too."'),
        DemoStep(gettext_noop("Two branches, compared."), "taiwa diff trip three", shows="people: 2 → 3"),
        DemoStep(gettext_noop("A replay from the records: no model call, every hash checked."), "taiwa replay trip", shows="0 model calls"),
    ),
    f"taiwa chat {APP_FILE}",
)  # fmt: skip
SOLVED = DemoPart(
    gettext_noop("Reasoning with tools: the model is interrupted where it calls one, and continues after the exact result."),
    (
        DemoStep(gettext_noop("Chemistry."), 'taiwa solve "How many grams do 3 moles of sulfuric acid weigh?"', "294.2"),
        DemoStep(gettext_noop("Everyday life."), 'taiwa solve "A train travels 210 km in 2.5 hours. What is its average speed in km/h?"', "84"),
    ),
    'taiwa solve "A pen costs 3 dollars. How much change is there from 50 dollars for 12 pens?" --trace',
)  # fmt: skip
EXTRACTED = DemoPart(
    gettext_noop("A typed answer: the text becomes a value of a type; the grammar of the type masks every token that does not fit."),
    (
        DemoStep(gettext_noop("Fields from a sentence."), 'taiwa extract \'name, people int, day\' "A table for four on Friday evening, please. The name is Tanaka."', '"people": 4'),
        DemoStep(gettext_noop("A pattern: the model chooses among what fits, and forced tokens cost no pass of the model."),
                 'taiwa generate --regex "(Paris|Kyoto|Tokyo|Rome|Milan) is the capital of (France|Japan|Italy)\\." -v "What is the capital of Japan?"', "Tokyo is the capital of Japan."),
    ),
    'taiwa extract "name, people int, day" -f letter.txt',
)  # fmt: skip
ASKED = DemoPart(
    gettext_noop(
        "Questions about documents: unclear ones are asked back, and what is shown as supported are words of a source."
    ),
    QUESTIONS.steps,
    QUESTIONS.then,
)
MODEL_PARTS = (STATEFUL, SOLVED, EXTRACTED, ASKED)
"""What the small model shows."""
PAUSE, PER_LINE, LONGEST_PAUSE = 1.2, 0.12, 3.0
"""Seconds to wait on a terminal after a command and after each line that it printed, and the maximum; a pipe has no pauses."""
KEPT_SECONDS = 120
"""Seconds that the model stays loaded after a command; it is released at the end."""


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

    def __init__(self) -> None:
        self.failed = self.steps = 0

    def part(self, number: int, part: DemoPart) -> None:
        """Run the steps of a part."""
        print_line(f"\n{number}. {_(part.title)}", "bold")
        code = 0
        for step in part.steps:
            if step.reply and code != ASKED_BACK:
                continue
            print_line(f"\n{_(step.about)}")
            code = self._step(step)
        print_line("")
        print_line(_("try next: {command}", command=part.then), "green")

    def _step(self, step: DemoStep) -> int:
        """Run a command and check its output."""
        print_line(f"$ {f'echo {shlex.quote(step.piped)} | ' if step.piped else ''}{step.command}", "cyan")
        code, printed = _run(step.command, step.piped)
        if code == INTERRUPTED:
            raise click.Abort
        self.steps += 1
        if wrong := code != step.code:
            print_notice(_("unexpected exit code {code}; {wanted} was expected", code=code, wanted=step.code), "yellow")
        elif step.shows not in printed:
            print_notice(_("unexpected output: {wanted} was expected", wanted=repr(step.shows)), "yellow")
        self.failed += wrong or step.shows not in printed
        if sys.stdout.isatty():
            time.sleep(min(PAUSE + PER_LINE * printed.count("\n"), LONGEST_PAUSE))
        return code


@click.command()
@click.option("--fetch", is_flag=True, help="Fetch the small model first if it is not here, without a question.")
@click.option("--page", is_flag=True, help="Show conversations in the browser instead.")
@click.option("--no-browser", is_flag=True, help="With --page, print the address without opening a browser.")
def demo(*, fetch: bool, page: bool, no_browser: bool) -> None:
    """Watch a small model keep a state, solve with tools, fill in types and answer from documents, on this machine.

    It uses the small model that taiwa suggests; if that was not fetched, it shows what needs no model. No key and no input
    is needed, and there are no pauses in a pipe. Nothing is stored, and your conversations are not touched. The exit code is 1
    if a step has an unexpected outcome.

    \b
    taiwa demo
    taiwa demo --page
    """
    if page:
        show_page(no_browser=no_browser)
        return
    model = small_model(fetch=fetch)
    if model:
        print_line(
            _("{model} writes the answers below, on this machine; each command is what you would type.", model=model)
        )
    else:
        print_line(_("This is what taiwa does without a language model; each command is what you would type."))
    show = Demo()
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder), model):
        for number, part in enumerate(MODEL_PARTS if model else PARTS, 1):
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
            "Now set a model (`taiwa models list` and `taiwa models providers` show the names), and talk:\n"
            "  taiwa models pull {model} --use\n"
            "  taiwa chat order",
            model=FIRST_MODEL,
        )
    )
    if show.failed:
        raise click.exceptions.Exit(FAILED)


def small_model(*, fetch: bool) -> str:
    """Return the name of the model that the demonstration uses; '' if it is not here, or llama.cpp is not installed.

    With `fetch` it is fetched first; if that fails, a line says why.
    """
    from importlib.util import find_spec

    from taiwa.cli.output import pull_with_display
    from taiwa.operations.model_files import fetched_models
    from taiwa.settings import load

    if find_spec("xllamacpp") is None:
        return ""
    here = FIRST_MODEL in fetched_models()
    if not here and fetch:
        try:
            pull_with_display(FIRST_MODEL, load())
        except ConfigError as error:
            print_notice(error.message, "yellow")
        else:
            here = True
    return FIRST_MODEL if here else ""


def _run(command: str, piped: str = "") -> tuple[int, str]:
    """Run a command line in this process; return its exit code and its output."""
    sys.stdout.flush()
    copy, stdin = _Copy(sys.stdout), sys.stdin
    if piped:
        sys.stdin = TextIOWrapper(BytesIO(piped.encode()), "utf-8")
    try:
        with redirect_stdout(cast("TextIO", copy)):
            code = run_command(shlex.split(command)[1:])
    finally:
        sys.stdin = stdin
    copy.flush()
    return code, copy.text


@contextmanager
def at_home(folder: Path, model: str = "") -> Generator[None]:
    """Use an empty home and working directory: do not read or write settings, keys and conversations of the user, and do not
    prompt. The model stays loaded from command to command, and is released at the end.
    """
    before, stdin = dict(os.environ), sys.stdin
    for name in [name for name in os.environ if name.startswith("TAIWA_") and name != "TAIWA_LANG"]:
        del os.environ[name]
    store = str(folder / "demo.db")
    os.environ |= {"XDG_CONFIG_HOME": str(folder), "TAIWA_STORE": store}
    if model:
        os.environ |= {"XDG_RUNTIME_DIR": str(folder), "TAIWA_MODEL": model, "TAIWA_KEEP_LOADED": str(KEPT_SECONDS)}
        (folder / APP_FILE).write_text(APP, encoding="utf-8")
    try:
        with Path(os.devnull).open(encoding="utf-8") as nothing, chdir(folder):
            sys.stdin = nothing
            yield
    finally:
        if model:
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                run_command(("models", "stop"))
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


def show_page(*, no_browser: bool = False) -> None:
    """Prepare the conversations and serve them until Ctrl-C."""
    from taiwa.cli import serve
    from taiwa.cli.options import CommonOptions
    from taiwa.cli.serve import check_installed

    check_installed()
    with tempfile.TemporaryDirectory(prefix="taiwa-") as folder, at_home(Path(folder)):
        prepare()
        common = CommonOptions()
        settings = common.settings()
        server = serve.page_server(common.repository(settings), settings, 0)
        serve.print_page(server, opens=not no_browser and serve.has_browser())
        server.run(None if no_browser else serve.opener(server))


def prepare() -> None:
    """Make the conversations by ordinary commands."""
    for command in CONVERSATIONS:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            run_command(command)
