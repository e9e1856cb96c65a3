"""`taiwa solve`: a question reasoned out step by step, interrupted by tools."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taiwa.cli.options import Flags, flags
from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.flows.worked import Worked
    from taiwa.kernel.protocols import Tool
    from taiwa.settings import Settings
    from taiwa.talk.solving import Solving

__all__ = ["solve"]

FAILED, INTERRUPTED = 1, 130
PROTOCOLS = ("tagged", "inline", "gsm", "react", "fence", "native")
WAYS = ("auto", "continue", "cut", "native")
TROUBLE = click.Choice(("tell", "model_writes", "stop"))
NO_TOOLS = "none"
PASSAGES, PASSAGE_CHARACTERS = 2, 400
"""What fits into the room that a result has in a text."""


@dataclass(frozen=True, slots=True)
class Given:
    """What was said beside the question and the shared flags."""

    names: str | None
    mounts: tuple[str, ...]
    places: tuple[str, ...]
    protocol: str | None
    way: str
    shots: int | None
    shots_file: Path | None
    seed: int
    on_error: Any
    on_unknown: Any
    calls: int
    tokens: int | None
    target: str | None
    trace: bool
    trace_file: Path | None


@click.command()
@click.argument("question")
@click.option(
    "--tools", "names", metavar="NAMES", help="The tools, with commas between; all if not said, none for none."
)
@click.option(
    "--mount", "mounts", metavar="COMMAND", multiple=True, help="Tools of the MCP server that COMMAND starts."
)
@click.option(
    "--in", "places", metavar="FOLDER|INDEX", multiple=True, help="Look documents up, too: in an index, or a folder."
)
@click.option("--protocol", type=click.Choice(PROTOCOLS), help="How calls stand in the text; tagged if not said.")
@click.option("--way", type=click.Choice(WAYS), default="auto", help="How the model goes on behind a result.")
@click.option("--shots", type=click.IntRange(0), metavar="N", help="Worked examples; 5 if not said, none if native.")
@click.option(
    "--shots-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Your own examples."
)
@click.option("--seed", type=int, default=0, metavar="N", help="Which of our examples are chosen.")
@click.option("--on-error", type=TROUBLE, default="tell", help="What follows a failed call; tell if not said.")
@click.option("--on-unknown", type=TROUBLE, default="tell", help="What follows a call of no tool; tell if not said.")
@click.option("--calls", type=click.IntRange(0), default=10, metavar="N", help="At most so many calls; 10 if not said.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="At most so many tokens of rationale.")
@click.option("--type", "target", metavar="TYPE", help="Give the answer as a value of TYPE, as for taiwa extract.")
@click.option("--trace", is_flag=True, help="Show what happened, with times and tokens.")
@click.option(
    "--trace-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write it as JSONL."
)
@flags("model", "json", "verbose", "dry_run", "max_cost", "no_log", "store")
def solve(shared: Flags, question: str, **given: Any) -> None:  # noqa: ANN401  (click's)
    """Solve QUESTION (`-` for standard input) step by step; what can be worked out is worked out by tools.

    The rationale is printed as it comes, and the answer last, on a line of its own. Where there is none, or none of
    the --type, or the rationale did not come to its end, the exit code is 1. Ctrl-C ends the answer there and keeps what
    was paid. -v shows the calls and the bill.

    \b
    taiwa solve "What does a quarter of a mole of Epsom salt weigh?"
    taiwa solve - --tools calculator,molar_mass --shots 8 < question.txt
    taiwa solve "How many moles of O2 burn 12 mol of NH3 to NO?" --protocol inline --shots-file my_shots.txt
    taiwa solve "1,000 yen at 3 % for 5 years?" --way native --json
    taiwa solve "What is 108 km/h in m/s?" --trace --calls 3
    taiwa solve "Who is on duty tonight?" --tools none --mount "my-mcp-server --stdio"
    taiwa solve "How many days of leave do three years give?" --in ~/handbook
    """
    from taiwa.cli.opening import read_text

    text = read_text(question)
    with ExitStack() as stack:
        options = Given(**given)
        solving = _solving(shared, options, stack)
        chosen = shared.settings()
        if shared.dry_run:
            _foretell(shared, chosen, solving, text)
        else:
            _solve(shared, chosen, solving, text, (options, stack))


def _solving(shared: Flags, given: Given, stack: ExitStack) -> "Solving":
    from taiwa.cli.targets import load_shape
    from taiwa.flows.protocol import protocol
    from taiwa.flows.rationale import Bounds
    from taiwa.talk.solving import Solving

    native = given.protocol == "native"
    if native and given.way not in ("auto", "native"):
        raise InputError(f"--protocol native goes the way native, not {given.way}")
    way: Any = "native" if native else given.way if given.way != "auto" else "text" if given.protocol else None
    bounds = Bounds(calls=given.calls) if given.tokens is None else Bounds(calls=given.calls, tokens=given.tokens)
    codec = protocol(given.protocol if given.protocol and not native else "tagged")
    return Solving(
        _tools(shared, given, stack), codec, way, given.shots, given.seed, _examples(given), given.on_error, given.on_unknown,
        bounds, None if given.target is None else load_shape(given.target),
    )  # fmt: skip


def _tools(shared: Flags, given: Given, stack: ExitStack) -> "tuple[Tool, ...]":
    """The tools that were named, or all that are set up; those of mounted servers, and one that looks documents up."""
    from importlib.util import find_spec

    from taiwa.tools import builtin, find

    tools: tuple[Tool, ...]
    if given.names is None:
        tools = tuple(tool for name, tool in builtin().items() if name != "unit_conversion" or find_spec("pint"))
    elif given.names.strip() == NO_TOOLS:
        tools = ()
    else:
        tools = find(name.strip() for name in given.names.split(",") if name.strip())
    if given.mounts:
        from taiwa.tools.mcp import mounted

        tools = (*tools, *stack.enter_context(mounted(*given.mounts)))
    if given.places:
        from taiwa.cli.indexing import chosen, open_library
        from taiwa.retrieve import Within
        from taiwa.tools import searching

        library = stack.enter_context(open_library(shared))
        tools = (
            *tools,
            searching(Within(chosen(library, given.places, shared.settings())), PASSAGES, PASSAGE_CHARACTERS),
        )
    return tools


def _examples(given: Given) -> "tuple[Worked, ...] | None":
    """The examples of a person's own file; a result in it that a tool does not give is told."""
    if given.shots_file is None:
        return None
    from taiwa.apps.shots import read_shots, results
    from taiwa.apps.transcripts import differing
    from taiwa.cli.screen import tell
    from taiwa.flows.tagged import Tagged
    from taiwa.i18n import _
    from taiwa.tools import builtin

    examples = read_shots(given.shots_file)
    for worked, step, result in differing(examples, results(builtin().values(), Tagged())):
        where = f"{given.shots_file}:{worked.id}"
        tell(
            _(
                "{where}: {call} returns {given}, but the example says {said}",
                where=where,
                call=f"{step.tool}: {step.input}",
                said=step.result,
                given=result,
            ),
            "yellow",
        )
    return examples


def _solve(shared: Flags, chosen: "Settings", solving: "Solving", text: str, rest: tuple[Given, ExitStack]) -> None:
    from taiwa.cli.opening import manner_of, mention
    from taiwa.cli.rationale import Trace, answer_text, remark, show, told_rationale
    from taiwa.cli.screen import emit, say_line, tell
    from taiwa.cli.stopping import Stopper
    from taiwa.kernel.values import Note
    from taiwa.talk import solving as solved
    from taiwa.talk.opening import open_voice

    given, stack = rest
    voice, stopper = open_voice(None, chosen), Stopper()
    if shared.verbose:
        mention(chosen, voice)
    trace = Trace(stack.enter_context(_opened(given.trace_file)) if given.trace_file else None)
    notes: list[Note] = []
    events = solved.solve(
        shared.desk(chosen), voice, manner_of(shared, chosen, "keep"), solving, text, (stopper.watch, trace.watch)
    )
    try:
        with stopper.listening(type(voice.model).stream):
            done = show(events, notes, silent=shared.as_json)
            trace.end(done.value, done.spent)
    finally:
        if given.trace:
            for line in trace.lines():
                tell(line)
    found = done.value
    remark(done, notes, verbose=shared.verbose)
    if shared.as_json:
        emit(told_rationale(done))
    elif found.answer:
        say_line("")
        say_line(answer_text(found), "bold")
    untyped = solving.answer is not None and found.answered_by != "typed"
    if stopper.pressed or not found.complete or not found.answer or untyped:
        raise click.exceptions.Exit(INTERRUPTED if stopper.pressed else FAILED)


def _opened(path: Path) -> Any:  # noqa: ANN401  (a text file)
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _foretell(shared: Flags, chosen: "Settings", solving: "Solving", text: str) -> None:
    """Print the request that would be sent first; nothing is called."""
    from taiwa.apps.render import request_text, request_tokens
    from taiwa.cli.screen import emit, say_line
    from taiwa.kernel.records import record
    from taiwa.talk.opening import open_voice

    request = solving.first_request(text, open_voice(None, chosen).model.abilities)
    if shared.as_json:
        emit({"digest": request.digest, "request": record(request), "tokens": request_tokens(request)})
    else:
        say_line(request_text(request))
