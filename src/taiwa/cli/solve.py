"""Solve a question step by step, with tools; list and call tools, and serve them over MCP: solve, tools, mcp."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from taiwa.cli.options import (
    CALLS,
    NEW_FILE,
    CommonOptions,
    Group,
    common_options,
    open_session,
    preview,
    read_text,
    require_prompt,
)
from taiwa.cli.output import (
    NOT_ANSWERED,
    bill_line,
    one_line,
    pretty,
    print_each,
    print_item,
    print_json,
    print_line,
    print_no_answer,
    print_notice,
    print_rows,
    table,
    wait_text,
)
from taiwa.flows.solve.tool_call_formats import TaggedFormat
from taiwa.i18n import _, gettext_noop
from taiwa.kernel.effects import CallTool
from taiwa.kernel.errors import ConfigError, InputError, ToolError, ToolErrorBoundary
from taiwa.kernel.execution import EffectFinished, Event
from taiwa.kernel.messages import Notice, PartialValue, Response, TextDelta, ToolResult
from taiwa.kernel.serialization import Json
from taiwa.kernel.text import plain
from taiwa.operations.result_json import cost_of, reported_usage_to_json, to_json

if TYPE_CHECKING:
    from taiwa.conversation.app import App
    from taiwa.flows.solve.rationale import EndReason, ExecutedCall, Rationale
    from taiwa.kernel.runtime import Tool
    from taiwa.sessions.commit_turn import TurnResult
    from taiwa.sessions.session import TurnEvent


USAGE = "solve takes a QUESTION, piped text, or a file (-f)"
FAILED, INTERRUPTED = 1, 130
TOOL_FORMATS = ("tagged", "inline", "gsm", "react", "fence", "native")
TOOL_MODES = ("auto", "prefill", "stop", "native")
ON_ERROR = click.Choice(("report", "let-model-answer", "stop"))
NO_TOOLS = "none"
PASSAGES, PASSAGE_CHARACTERS = 2, 400
"""Passages of a search, and characters of each, that fit into a tool result."""
CALL_COLOUR, RESULT_COLOUR, ERROR_COLOUR = "cyan", "green", "red"
LONGEST_MARK = 30
"""Characters within which the text of a failed result begins, after the marker of its tool-call format."""
ENDINGS: "Mapping[EndReason, str]" = {
    "calls": gettext_noop(
        "the limit of tool calls was reached before the end; the answer is unreliable (raise the limit with --max-tool-calls)"
    ),
    "repeat": gettext_noop("stopped: the model requested the same call repeatedly"),
    "tool": gettext_noop("stopped because a call failed, as configured"),
    "stops": gettext_noop("stopped: too many markers did not form a call"),
    "tokens": gettext_noop("the token limit was reached before the end (raise it with --max-tokens)"),
    "limit": gettext_noop("a limit was reached before the end"),
    "length": gettext_noop("the answer was cut off at the length limit"),
    "interrupted": gettext_noop("stopped; `taiwa cost` lists the calls that were paid for"),
    "refusal": gettext_noop("the model refused to continue"),
    "repetition": gettext_noop("the answer was ended because it repeated itself"),
}


# What `taiwa eval reason` has too.
tool_mode_option = click.option(
    "--tool-mode", type=click.Choice(TOOL_MODES), default="auto", show_default=True,
    help="Set how tool results are returned to the model.",
)  # fmt: skip
on_error_option = click.option(
    "--on-error", type=ON_ERROR, default="report", show_default=True, help="Set what to do when a tool call fails."
)
answer_by_option = click.option(
    "--answer-by", type=click.Choice(("auto", "line", "prompt")), default="auto", show_default=True,
    help="Take the answer from the last line, or request it separately; auto requests it if the line has none.",
)  # fmt: skip


@click.command()
@click.argument("question", required=False)
@click.option(
    "--tools", "names", metavar="NAMES", help="Use these tools, separated by commas; none for none.  [default: all]"
)
@click.option(
    "--tool", "more_names", metavar="NAME|FILE.py:NAME", multiple=True,
    help="Use this tool; may be given several times, and adds to --tools.",
)  # fmt: skip
@click.option(
    "--in", "indexes", metavar="FOLDER|FILE|INDEX", multiple=True,
    help="Let the model search this index, or this folder or file, which is indexed first; may be given several times.",
)  # fmt: skip
@click.option(
    "--tool-format", type=click.Choice(TOOL_FORMATS), help="Set the text format of tool calls.  [default: tagged]"
)
@tool_mode_option
@click.option(
    "--shots", type=click.IntRange(0), metavar="N", help="Show N worked examples.  [default: 5, none if native]"
)
@click.option("--examples", type=NEW_FILE, metavar="FILE", help="Show your own worked examples.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Select other built-in examples.")
@on_error_option
@click.option(
    "--on-unknown", type=ON_ERROR, default="report", show_default=True, help="Set what to do when a tool is unknown."
)
@click.option(
    "--max-tool-calls", type=click.IntRange(0), default=10, show_default=True, metavar="N", help="Make at most N tool calls."
)  # fmt: skip
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", help="Write at most N tokens of rationale.  [default: 2000]"
)
@click.option(
    "--weights", type=click.Choice(("iupac", "integer")), default="iupac", show_default=True,
    help="Set the atomic weights of molar masses: standard ones, or whole numbers as in school books.",
)  # fmt: skip
@click.option(
    "--round", "decimals", type=click.IntRange(0, 15), metavar="N", help="Round the calculator's results to N decimals."
)
@answer_by_option
@click.option("--type", "target", metavar="TYPE", help="Return the answer as a value of TYPE, as for taiwa extract.")
@click.option("--trace", is_flag=True, help="Show each step with times and tokens.")
@common_options(
    "model", "session", "continue_latest", "system", "temperature", *CALLS, "fragments", "as_json", "verbose", "dry_run", "max_cost", "retry_paid", "wire",
    "no_store", "store", system="Replace the built-in instructions (system prompt).",
)  # fmt: skip
def solve(common: CommonOptions, question: str | None, trace: bool, **values: Any) -> None:  # noqa: ANN401
    """Solve QUESTION step by step; tools do the calculations.

    Piped text is appended to QUESTION after an empty line; without QUESTION, or with `-`, it is the question. The rationale is
    printed while it is written, and the answer last, on a line of its own. The exit code is 1 if
    there is no answer, or none of the --type, or if the rationale was cut off. Ctrl-C ends the answer and keeps what was paid
    for. -v shows the calls and the bill. -c continues the conversation; `log`, `undo`, `fork`, `edit` and `why` work on it.

    \b
    taiwa solve "What does a quarter of a mole of Epsom salt weigh?"
    taiwa solve -c "And half a mole?"
    taiwa solve --tools calculator,molar_mass --shots 8 < question.txt
    taiwa solve "How many moles of O2 burn 12 mol of NH3 to NO?" --tool-format inline --examples my_shots.txt
    taiwa solve "1,000 yen at 3 % for 5 years?" --tool-mode native --json
    taiwa solve "What is 108 km/h in m/s?" --trace --max-tool-calls 3
    taiwa solve "What is the mass percentage of N in N2O5?" --weights integer --round 2 --answer-by prompt
    taiwa solve "Who is on duty tonight?" --tools none --mcp-server "my-mcp-server --stdio"
    taiwa solve "How many days of leave do three years give?" --in ~/handbook
    """
    text = require_prompt(question, USAGE, common.fragments)
    with ExitStack() as stack:
        more = _more_tools(common, values, stack)
        common = replace(common, schema=values["target"])
        common, app = _app(common, values, more)
        if common.dry_run:
            preview(common, app, text, tools=more)
            return
        _solve(common, app, text, more, print_trace=trace)


PARAMS = (
    "tool_mode",
    "shots",
    "seed",
    "on_error",
    "on_unknown",
    "max_tool_calls",
    "max_tokens",
    "weights",
    "answer_by",
)
"""The options that are parameters of the app `solve` with the same name."""


def _app(common: CommonOptions, values: Mapping[str, Any], more: "Sequence[Tool]") -> "tuple[CommonOptions, App | str]":
    """Return the app `solve` with the options as its parameters, and the common options with the tools that it lacks.

    Raises:
        InputError: an option cannot be used; an existing conversation keeps what it was begun with.
    """
    from taiwa.apps.catalog import load_app
    from taiwa.conversation.app import AnswerOptions
    from taiwa.tools.registry import find_tools

    form, mode, names = values["tool_format"] or "", values["tool_mode"], values["names"]
    if form == "native" and mode not in ("auto", "native"):
        raise InputError(f"--tool-format native requires --tool-mode native, not {mode}")
    app = load_app("solve")
    given: dict[str, Json] = {name: values[name] for name in PARAMS}
    given |= {"tool_format": form, "round": values["decimals"], "examples": _examples(values["examples"])}
    own = values["more_names"]
    if names is not None or own:
        listed = [each.strip() for each in (names or "").split(",") if each.strip() not in ("", NO_TOOLS)]
        by_name = dict(zip((tool.spec.name for tool in find_tools((*listed, *own))), (*listed, *own), strict=True))
        given["only"] = [name for name in by_name if name in app.tools]
        own = tuple(address for name, address in by_name.items() if name not in app.tools)
    common = replace(common, tool_names=own)
    defaults = {param.name: param.default for param in app.params}
    params = {name: value for name, value in given.items() if value != defaults[name]}
    if common.continues:
        if params or more:
            raise InputError("an existing conversation keeps its tools and how it calls them; remove these options")
        return common, "solve"
    return common, app.with_params(params).with_options(AnswerOptions(tools=tuple(tool.spec.name for tool in more)))


def _more_tools(common: CommonOptions, values: Mapping[str, Any], stack: ExitStack) -> "tuple[Tool, ...]":
    """Return the tools of MCP servers, and the one that searches documents."""
    tools = common.served_tools()
    if values["indexes"]:
        from taiwa.cli.index import reporter
        from taiwa.operations.documents import find_indexes, open_library
        from taiwa.retrieval import ScopedRetriever
        from taiwa.tools.registry import search_tool

        library = stack.enter_context(open_library(common.settings()))
        indexes = find_indexes(library, values["indexes"], common.settings(), reporter())
        tools = (*tools, search_tool(ScopedRetriever(indexes), PASSAGES, PASSAGE_CHARACTERS))
    return tools


def _examples(path: Path | None) -> str:
    """Return the text of the user's worked examples; a result that the tool does not return is reported."""
    if path is None:
        return ""
    from taiwa.apps.examples import read_shots, results, shots_text, wrong_results
    from taiwa.tools.registry import builtin_tools

    examples = read_shots(path)
    for worked, step, result in wrong_results(examples, results(builtin_tools().values(), TaggedFormat())):
        text = _(
            "{where}: {call} returns {result}, but the example has {expected}",
            where=f"{path}:{worked.id}", call=f"{step.tool}: {step.input}", expected=step.result, result=result,
        )  # fmt: skip
        print_notice(text, "yellow")
    return shots_text(path)


def _solve(common: CommonOptions, app: "App | str", text: str, more: "Sequence[Tool]", *, print_trace: bool) -> None:
    from taiwa.cli.chat import InterruptHandler

    interrupts, trace = InterruptHandler(), Trace()
    observers = (interrupts.watch, trace.watch)
    session = open_session(common, app, interrupts="keep", observers=observers, tools=more)
    notes: list[Notice] = []
    try:
        with interrupts.listening():
            done = _print_rationale(session.stream(text), notes, silent=common.as_json)
            found = done.reply.findings.rationale
            assert found is not None, "a turn of the app solve has a rationale"
            trace.end(found)
    finally:
        if print_trace:
            print_each(trace.lines)
    _print_remarks(done, found, notes, verbose=common.verbose)
    if common.as_json:
        bill = {"usage": reported_usage_to_json(done.spent), "max_cost": cost_of(done.spent.max_cost)}
        print_json({**to_json(done), **bill})
    elif found.answer and not done.is_refused:
        print_line("")
        is_json = found.answered_by == "typed" and not isinstance(found.value, str)
        print_line(pretty(found.value) if is_json else found.answer, "bold")
    is_untyped = session.app.output_type is not None and found.answered_by != "typed"
    if found.ending == "refusal":
        raise click.exceptions.Exit(NOT_ANSWERED)
    if interrupts.pressed or not found.complete or not found.answer or is_untyped:
        raise click.exceptions.Exit(INTERRUPTED if interrupts.pressed else FAILED)


def _print_rationale(events: "Iterable[TurnEvent]", notes: list[Notice], *, silent: bool) -> "TurnResult":
    """Print a rationale, on a terminal while it streams, calls and results in colour; other notices go to `notes`.

    A pipe gets it when it is complete, and none if the model refuses.
    """
    from taiwa.flows.solve.loops import TRANSCRIPT_CODES
    from taiwa.sessions.commit_turn import TurnResult

    done: TurnResult | None = None
    ended, held = True, list[str]()
    is_live = sys.stdout.isatty()
    try:
        for event in events:
            if isinstance(event, TurnResult):
                done = event
            elif isinstance(event, Notice) and event.code == "waiting":
                print_notice(wait_text(event))
            elif isinstance(event, Notice) and event.code not in TRANSCRIPT_CODES:
                notes.append(event)
            elif not silent and not isinstance(event, PartialValue):
                ended = event.text.endswith("\n") if event.text else ended
                if is_live:
                    click.echo(_coloured(event), nl=False)
                    sys.stdout.flush()
                else:
                    held.append(plain(event.text))
    finally:
        if held and done is not None and done.is_refused:
            print_no_answer("".join(held).rstrip("\n"))
        elif held or not ended:
            click.echo("".join(held), nl=not ended)
    assert done is not None, "the events of a turn end with its result"
    return done


def _coloured(event: TextDelta | Notice) -> str:
    text = plain(event.text)
    if isinstance(event, TextDelta) or os.environ.get("NO_COLOR"):
        return text
    if event.code != "result":
        return click.style(text, fg=CALL_COLOUR)
    return click.style(text, fg=ERROR_COLOUR if "error:" in text[:LONGEST_MARK] else RESULT_COLOUR)


def _print_remarks(done: "TurnResult", found: "Rationale", notes: Iterable[Notice], *, verbose: bool) -> None:
    """Print warnings, and how a rationale ended unless by itself; with `verbose` also the calls and the bill."""
    for note in notes:
        if note.level == "warning" or (verbose and note.code != "tool_mode"):
            print_notice(note.text, "yellow" if note.level == "warning" else "dim")
    if not found.complete:
        print_notice(_(ENDINGS[found.ending]), "yellow")
    elif not found.answer:
        print_notice(_("no answer was found in the text"), "yellow")
    if verbose:
        print_each(call_lines(found.calls))
        source = _("answer: {by}", by=found.answered_by)
        print_notice(f"{found.tool_mode} · {source} · {bill_line(done.spent)}")


def call_lines(calls: "Iterable[ExecutedCall]") -> list[str]:
    """Describe the result of each call, and its origin if it is not the tool."""
    lines: list[str] = []
    for number, called in enumerate(calls, 1):
        result = called.result
        why = (
            "model" if result.origin == "model" else result.error or ("" if result.origin == "tool" else result.origin)
        )
        mark = f" [{why}]" if why else ""
        lines.append(
            f"call {number}: {called.name}: {one_line(called.input, 100)} → {one_line(result.as_text, 100)}{mark}"
        )
    return lines


@dataclass
class Trace:
    """What happens in a run as lines with times and tokens, without calls and results, which are in the rationale."""

    clock: Callable[[], float] = time.monotonic
    lines: list[str] = field(default_factory=list[str], init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def watch(self, event: Event) -> None:
        """Observe a run."""
        from taiwa.flows.solve.loops import TRANSCRIPT_CODES

        if isinstance(event, Notice):
            if event.code not in TRANSCRIPT_CODES:
                # The line of the tool is also that of its call.
                self._add("failure" if event.code == "tool" else event.code or "note", one_line(event.text, 100))
        elif isinstance(event, EffectFinished):
            effect, answer, error = event.entry.effect, event.entry.answer, event.entry.error
            seconds = f"{event.entry.seconds:.3f} s"
            if isinstance(answer, Response):
                stop = f" at {answer.stop!r}" if answer.stop else ""
                self._add("model", f"{seconds} · {_tokens(answer)} · {answer.finish}{stop}")
            elif isinstance(effect, CallTool):
                arguments = " ".join(map(str, effect.arguments.values()))
                text = str(error) if error is not None else answer.text if isinstance(answer, ToolResult) else ""
                self._add("tool", f"{seconds} · {effect.name}: {one_line(arguments, 100)} → {one_line(text, 100)}")

    def end(self, found: "Rationale") -> None:
        """Add how the run ended."""
        self._add("end", f"{found.ending} · {found.tool_mode} · {found.answer or '-'} ({found.answered_by})")

    def _add(self, event: str, about: str) -> None:
        self.lines.append(f"{self.clock() - self._began:7.3f} s  {event:<9} {about}")


def _tokens(answer: Response) -> str:
    if (used := answer.usage) is not None:
        return f"{used.input_tokens:,} in ({used.cache_read_tokens:,} cached) + {used.output_tokens:,} out"
    if (most := answer.max_usage) is not None:
        return f"at most {most.input_tokens:,} in + {most.output_tokens:,} out"
    return "tokens not reported"


# --- tools ------------------------------------------------------------------------------------------------------------
# List, show and call tools, and serve them over MCP: tools, mcp.


@click.group(cls=Group)
def tools() -> None:
    """List, show and call tools. The built-in tools are exact, and their running time is bounded.

    NAME is a built-in tool, one of your own as FILE.py:NAME or MODULE:NAME, or one of an MCP server that --mcp-server starts.

    \b
    taiwa tools list
    taiwa tools call calculator "1,000 × 5%"
    taiwa tools call molar_mass "CuSO4·5H2O"
    taiwa tools call molar_mass '{"formula": "NaCl", "weights": "integer"}'
    taiwa tools call stoichiometry "Fe + O2 -> Fe2O3"
    taiwa tools call unit_conversion "108 km/h to m/s"
    taiwa tools call my_tools.py:look_up "a word"
    taiwa tools list --mcp-server "npx some-server"
    """


@tools.command("list")
@common_options("servers", "as_json")
def list_(common: CommonOptions) -> None:
    """List the tools.

    \b
    taiwa tools list --json
    """
    from taiwa.tools.registry import find_tools, tool_names

    own: list[Tool] = []
    for name in tool_names():
        try:
            own += find_tools([name])
        except ConfigError as error:  # a plug-in that cannot be used; the others can
            print_notice(error.message)
    specs = [tool.spec for tool in (*own, *common.served_tools())]
    rows = [(spec.name, spec.description.partition("\n")[0]) for spec in specs]
    item = [{"tool": name, "about": about} for name, about in rows]
    print_rows(item, (_("tool"), _("about")), rows, as_json=common.as_json)


@tools.command("show")
@click.argument("name")
@common_options("servers", "as_json")
def show_(common: CommonOptions, name: str) -> None:
    """Show the tool NAME as models see it: its description and its parameters.

    \b
    taiwa tools show calculator
    """
    spec = _found(name, common).spec
    if common.as_json:
        print_json({"tool": spec.name, "description": spec.description, "parameters": dict(spec.parameters)})
        return
    print_line(spec.name, "bold")
    print_each(spec.description.splitlines(), print_line)
    print_line("")
    properties = cast("Mapping[str, Mapping[str, Json]]", spec.parameters["properties"])
    needed = cast("list[str]", spec.parameters.get("required", []))
    rows = [
        (each, _kind(part), "required" if each in needed else str(part.get("default", "")))
        for each, part in properties.items()
    ]
    table((_("parameter"), _("type"), _("default")), rows)


# A word that begins with a minus is an input here: taiwa tools call calculator "-2^2".
@tools.command("call", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("input", metavar="INPUT")
@common_options("servers", "as_json")
def call_(common: CommonOptions, name: str, input: str) -> None:  # noqa: A002  (what click shows in the help)
    """Call the tool NAME with INPUT.

    INPUT is the text that the tool needs, a JSON object of all its parameters, or - for standard input.

    \b
    taiwa tools call calculator "1,000 × 5%"
    """
    try:
        with ToolErrorBoundary(name):
            tool = _found(name, common)
            result = tool.call(TaggedFormat().parse_arguments(tool.spec, read_text(input)))
    except ToolError as error:
        if common.as_json:
            print_json({"tool": name, "error": error.code, "message": error.message, "hint": error.hint})
        # Unlike a model, the user may see what went wrong inside a tool.
        more = error.hint or next(iter(error.trace.strip().splitlines()[-1:]), "")
        raise InputError(f"{name}: {error.message}" + (f" ({more})" if more else "")) from error
    print_item({"tool": name, "text": result.text, "value": result.value}, result.as_text, as_json=common.as_json)


def _found(name: str, common: CommonOptions) -> "Tool":
    from taiwa.tools.registry import find_tools

    return next((tool for tool in common.served_tools() if tool.spec.name == name), None) or find_tools([name])[0]


def _kind(part: Mapping[str, Json]) -> str:
    choices = part.get("enum")
    if isinstance(choices, list):
        return " | ".join(f'"{choice}"' for choice in choices)
    return str(part.get("type", "any"))


@click.command()
@click.option("--tools", "names", metavar="NAMES", help="Serve only these of taiwa's own tools, separated by commas.")
@click.option("--tool", "own", metavar="FILE.py:NAME", multiple=True, help="Serve your own tool too; also MODULE:NAME.")
@common_options("model", "max_cost", "store")
def mcp(common: CommonOptions, names: str | None, own: tuple[str, ...]) -> None:
    """Serve the tools over MCP on standard input and output, until the input ends.

    Besides the built-in tools it offers `ask` and `find`, which search the indexed documents, and `extract`. A tool named
    with --tool runs in a separate process, which is killed at its deadline.

    \b
    taiwa mcp
    taiwa mcp --tools calculator,molar_mass
    taiwa mcp --tools ask,find -m ollama:qwen3
    taiwa mcp --tool my_tools.py:look_up

    \b
    In the settings of a program that starts MCP servers:
    {"mcpServers": {"taiwa": {"command": "taiwa", "args": ["mcp"]}}}
    """
    from taiwa.operations.mcp_tools import serve_mcp
    from taiwa.tools.mcp_client import require_mcp

    require_mcp()
    from taiwa.operations.mcp_tools import NAMES, local_context, operation_tools, passage_reader
    from taiwa.tools.registry import builtin_tools, find_tools

    if sys.stdin.isatty():
        click.echo("waiting for an MCP client on standard input; Ctrl-D quits", err=True)
    chosen = (
        [*builtin_tools(), *NAMES] if names is None else [name.strip() for name in names.split(",") if name.strip()]
    )
    operations: tuple[Tool, ...] = ()
    read = None
    if set(chosen) & set(NAMES):
        settings = common.settings()
        context = local_context(common.repository(settings), settings)
        operations, read = operation_tools(context), passage_reader(context)
    simple = find_tools([*(name for name in chosen if name not in NAMES), *own])
    serve_mcp([*simple, *(tool for tool in operations if tool.spec.name in chosen)], read)
