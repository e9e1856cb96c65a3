"""Options shared by several commands, the sessions and stores that they open, and the reading of texts and parameters."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from pathlib import Path
from select import select
from stat import S_ISFIFO, S_ISREG, S_ISSOCK
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from taiwa.cli.output import (
    AnswerFormat,
    one_line,
    print_notice,
    print_preview,
    pull_with_display,
    suspended_display,
    table,
)
from taiwa.i18n import _
from taiwa.kernel.approval import ApprovalRequest, Approve, Decision
from taiwa.kernel.attachments import Attachment, decode, open_file, path_kind, read_bytes, read_file
from taiwa.kernel.errors import ConfigError, InputError, StoreError, TaiwaError
from taiwa.kernel.messages import JsonSchema, Regex, Sampling
from taiwa.kernel.text import plain
from taiwa.operations import files

if TYPE_CHECKING:
    from taiwa.constraints.guide import Whitespace
    from taiwa.conversation.app import AnswerOptions, App, Param
    from taiwa.kernel.execution import Observer
    from taiwa.kernel.runtime import Interrupts, Tool
    from taiwa.models.providers import FoundModel
    from taiwa.sessions.commit_turn import TurnOptions
    from taiwa.sessions.repository import Repository
    from taiwa.sessions.session import Session
    from taiwa.settings import Settings
    from taiwa.structured import OutputType

R = TypeVar("R")
C = TypeVar("C", bound=Callable[..., Any])


def complete_session(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the conversations whose names begin with a text, for the completion of a shell."""
    with suppress(TaiwaError):  # completion is silent if the store cannot be read
        refs = CommonOptions().repository(reading=True).store.refs.list()
        return [ref.name for ref in refs if ref.name.startswith(begun)]
    return []


def complete_tag(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the tags that begin with a text."""
    with suppress(TaiwaError):
        tags = CommonOptions().repository(reading=True).store.refs.tags()
        return [tag for tag in tags if tag.startswith(begun)]
    return []


def complete_app(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the apps whose names begin with a text."""
    from taiwa.apps.catalog import apps

    return [app.name for app in apps() if app.name.startswith(begun)]


ANSWERS = ("system", "temperature", "max_tokens", "tool_names", "schema")
"""The options of answers that a conversation keeps."""
CALLS = ("servers", "trust_mcp", "approve")
"""The options of calls of tools."""
SETTINGS = ("model", "store", "max_cost", "retry_paid", "requests_per_minute", "tokens_per_minute")
"""The options that take the place of a setting."""
SHOWN = ("raw", "no_stream", "as_json", "verbose")
"""How an answer is printed."""
PATIENCE = 1.0
"""Seconds after which a command prints that it is waiting for standard input."""
MOST_OF_TEXT = 60
"""Characters of a user's text in a notice."""
MOST_MODELS = 9
"""Models from which the first one is chosen."""
WHOLE = 1_000
"""Maximum characters of a summary; longer ones are shortened."""
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
CONSTRAINTS = ("type", "schema", "regex", "grammar", "choice")


def output_option(about: str) -> Callable[[C], C]:
    """Return the option `-o FILE`; `-` is standard output, as without it."""
    return click.option(
        "-o", "--output", type=NEW_FILE, help=about, callback=lambda *given: None if given[2] == Path("-") else given[2]
    )


def option(*names: str, **attributes: Any) -> Any:  # noqa: ANN401  (a field of any type)
    """Return a field of a dataclass that an option of a command fills, as `click.option`."""
    empty = () if "multiple" in attributes else False if "is_flag" in attributes else None
    return field(default=attributes.get("default", empty), metadata={"names": names, "attributes": attributes})


def filled_by_options(
    options: type, names: tuple[str, ...], helps: Mapping[str, str]
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add the options of some fields of a dataclass to a command, which gets the dataclass as its first argument.

    `helps` override the help of options whose meaning differs in this command.
    """
    known = {each.name: each.metadata for each in fields(options)}

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(*context: Any, **values: Any) -> R:  # noqa: ANN401  (what click parsed)
            return command(options(**{name: values.pop(name) for name in names}), *context, **values)

        for name in reversed(names):
            attributes = known[name]["attributes"]
            click.option(*known[name]["names"], name, **attributes | {"help": helps.get(name, attributes["help"])})(run)
        return run

    return decorate


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """The common options of one command; options that the command lacks have their defaults."""

    model: str | None = option(
        "-m", "--model", metavar="MODEL", help="Use this model, such as openai:NAME or http://host:port/v1#NAME."
    )
    params: tuple[str, ...] = option(
        "-p", "--param", metavar="KEY=VALUE", multiple=True, help="Set a parameter of the app."
    )
    session: str = option(
        "-s",
        "--session",
        metavar="NAME",
        default="",
        help="Use the conversation of this name.",
        shell_complete=complete_session,
    )
    continue_latest: bool = option("-c", "--continue", is_flag=True, help="Continue the latest conversation.")
    system: str | None = option(
        "--system",
        metavar="TEXT",
        help="Set the instructions (system prompt); apps with instructions of their own refuse this.",
    )
    temperature: float | None = option(
        "--temperature", type=click.FloatRange(0, 2), metavar="T", help="Set the sampling temperature."
    )
    max_tokens: int | None = option(
        "--max-tokens", type=click.IntRange(1), metavar="N", help="Write at most N tokens in an answer."
    )
    tool_names: tuple[str, ...] = option(
        "--tool",
        metavar="NAME|FILE.py:NAME",
        multiple=True,
        help="Let the model call this tool (function calling); may be given several times.",
    )
    servers: tuple[str, ...] = option(
        "--mcp-server", metavar="COMMAND", multiple=True, help="Add the tools of the MCP server that COMMAND starts."
    )
    trust_mcp: bool = option(
        "--trust-mcp",
        is_flag=True,
        help="Call tools that only read or destroy nothing, as their MCP server says, without approval.",
    )
    approve: str = option(
        "--approve",
        type=click.Choice(["ask", "always", "never"]),
        default="ask",
        show_default=True,
        help="Decide on calls of tools that need approval; without a terminal such a call ends the turn.",
    )
    schema: str | None = option(
        "--type",
        "--schema",
        metavar="TYPE",
        help="Answer in JSON of this type (structured output): FILE.json, FILE.ts:Type, FILE.py:Type, 'name, age int', or none.",
    )
    indexes: tuple[str, ...] = option(
        "--in",
        metavar="FOLDER|FILE|INDEX",
        multiple=True,
        help="Search these documents before each answer, which gives its sources; may be given several times.",
    )
    state: str = option(
        "--state",
        metavar="FIELDS",
        default="",
        help="Keep these facts from turn to turn: 'city str, nights int, notes list[str]'.",
    )
    fragments: tuple[str, ...] = option(
        "-f",
        "--fragment",
        metavar="FILE",
        multiple=True,
        help="Append a text file to the prompt (- for standard input); may be given several times.",
    )
    raw: bool = option("--raw", is_flag=True, help="Print raw Markdown, even on a terminal.")
    no_stream: bool = option(
        "--no-stream", is_flag=True, help="Print the answer when it is complete, without streaming."
    )
    attachments: tuple[str, ...] = option(
        "-a",
        "--attach",
        metavar="FILE",
        multiple=True,
        help="Attach an image, a PDF or a text file (- for standard input); may be given several times.",
    )
    attach_as_text: bool = option(
        "--attach-as-text", is_flag=True, help="Attach the text of PDF, DOCX and HTML files in place of the files."
    )
    as_json: bool = option("--json", is_flag=True, help="Print JSON.")
    verbose: bool = option("-v", "--verbose", is_flag=True, help="Show calls, tokens, cost and time.")
    dry_run: bool = option(
        "--dry-run", is_flag=True, help="Print the request and its size in the context window; send nothing."
    )
    max_cost: str | None = option(
        "--max-cost",
        metavar="AMOUNT",
        help="Stop before this command costs more than AMOUNT; or AMOUNT/call, /conversation, /day; none for no limit.",
    )
    retry_paid: bool = option(
        "--retry-paid",
        is_flag=True,
        help="Retry a failed call even if it may have been charged; rate limits are always waited for.",
    )
    requests_per_minute: int | None = option(
        "--requests-per-minute",
        type=click.IntRange(1),
        metavar="N",
        help="Send at most N requests to a model in a minute.",
    )
    tokens_per_minute: int | None = option(
        "--tokens-per-minute",
        type=click.IntRange(1),
        metavar="N",
        help="Let a model read and write at most N tokens in a minute.",
    )
    wire: str | None = option(
        "--wire",
        type=click.Choice(["chat", "responses", "completions", "messages"]),
        help="Use /v1/chat/completions, /v1/responses, /v1/completions or /v1/messages; the default depends on the provider.",
    )
    no_store: bool = option("--no-store", is_flag=True, help="Write nothing to the store.")
    strict: bool = option("--strict", is_flag=True, help="Fail the turn if its state delta cannot be read.")
    store: str | None = option(
        "--store", metavar="FILE|URL", help="Use this store: a file, or postgresql://USER@HOST/DATABASE."
    )

    def settings(self) -> "Settings":
        """Read the settings, with these options on top."""
        from taiwa import settings as configured

        given = {name: getattr(self, name) for name in SETTINGS}
        arguments = {name: value for name, value in given.items() if value not in (None, False)}
        settings = configured.load(arguments, are_flags=True)
        if self.wire is not None:
            from taiwa.models.http_api.provider_interface import add_options

            named = add_options(settings.chosen_model(), f"wire={self.wire}")
            settings = configured.load(arguments | {"model": named}, are_flags=True)
        return settings

    def with_first_model(self, settings: "Settings") -> "Settings":
        """Return the settings with a model; if none is set, ask the user once which available model to use."""
        if settings.model is not None or self.dry_run:
            return settings
        return choose_first_model(settings, asking=not self.as_json)

    def shown(self) -> AnswerFormat:
        """Return how an answer is printed."""
        return {"as_json": self.as_json, "verbose": self.verbose, "raw": self.raw, "no_stream": self.no_stream}

    def answers(self) -> "AnswerOptions":
        """Return the options of answers, which a conversation keeps.

        Raises:
            InputError: a tool or a type is not found.
        """
        from taiwa.conversation.app import AnswerOptions

        schema = None if self.schema is None else JsonSchema({})
        for output_type in self.types():
            schema = output_type.json_schema
        names = tuple(tool.spec.name for tool in self.tools())
        return AnswerOptions(self.system, Sampling(self.temperature, max_tokens=self.max_tokens), names, schema)

    def types(self) -> "tuple[OutputType[Any], ...]":
        """Load the type of answers.

        Raises:
            InputError: it is not found.
        """
        if self.schema in (None, "none"):
            return ()
        from taiwa.apps.output_types import load_output_type

        return (load_output_type(self.schema),)

    @property
    def continues(self) -> bool:
        """Whether they name a conversation that exists."""
        named = self.session and self.repository(reading=True).store.refs.has(self.session)
        return self.continue_latest or bool(named)

    def tools(self) -> "tuple[Tool, ...]":
        """Find the tools that the model may call.

        Raises:
            InputError: one is not found.
        """
        if not (self.tool_names or self.servers):
            return ()
        from taiwa.tools.registry import find_tools

        return (*find_tools(self.tool_names), *self.served_tools())

    def served_tools(self) -> "tuple[Tool, ...]":
        """Start the MCP servers, once and until the command ends, and return their tools."""
        context = click.get_current_context()
        if self.servers and __name__ not in context.meta:
            from taiwa.tools.mcp_client import mcp_tools

            context.meta[__name__] = context.with_resource(mcp_tools(*self.servers, trusted=self.trust_mcp))
        return cast("tuple[Tool, ...]", context.meta.get(__name__, ()))

    def tool_files(self) -> tuple[str, ...]:
        """Record the tools, and the type, of Python files, so that the conversation can load them again."""
        tools, types = (
            [each for each in names if each.rpartition(":")[0].endswith(".py")]
            for names in (self.tool_names, (self.schema or "",))
        )
        if not (tools or types):
            return ()
        from taiwa.tools.registry import remember_tool, remember_type

        return tuple(dict.fromkeys((*map(remember_tool, tools), *map(remember_type, types))))

    def place(self, place: str) -> str:
        """Return the revision of a turn in the conversation of `-s`; without `-s` the argument is a revision itself.

        Raises:
            InputError: the argument names a conversation too.
        """
        if not self.session or not place:
            return place or self.session
        if place[0] not in ":~@" and not place.isdecimal():
            raise InputError(f"name the conversation once: -s {self.session}, or in {place!r}")
        return f"{self.session}:{place}" if place.isdecimal() else f"{self.session}{place}"

    def read_attachments(self) -> tuple[Attachment, ...]:
        """Read the files to attach.

        Raises:
            InputError: one cannot be read, or is neither an image, a PDF nor text.
        """
        if not self.attachments:
            return ()
        return files.read_files(self.attachments, sys.stdin.buffer, as_text=self.attach_as_text)

    def repository(self, settings: "Settings | None" = None, *, reading: bool = False) -> "Repository":
        """Open the store: in memory with `--no-store`. Reading needs no write access; a missing store is empty."""
        from taiwa.sessions.repository import Repository
        from taiwa.store import Store

        place = (settings or self.settings()).store
        missing = reading and isinstance(place, Path) and not path_kind(place)
        store: Store | None = None
        if self.no_store or missing:
            store = Store.open(":memory:")
        elif reading and not isinstance(place, Path):
            with suppress(StoreError):  # on a database server an older format is migrated first
                store = Store.open(place, readonly=True)
        repository = Repository(store or Store.open(place, readonly=reading and isinstance(place, Path)))
        repository.may_load_tools = True
        return repository


def choose_first_model(settings: "Settings", *, asking: bool) -> "Settings":
    """Return the settings with the model that the user chooses from those within reach, which the config file remembers.

    If there is none, offer to fetch a small one. Without a terminal, do not ask or look for servers.

    Raises:
        NoModelError: there is no terminal, or the user declines; a key in the environment, or a fetched model, is mentioned.
        ConfigError: the model cannot be fetched.
    """
    from taiwa.models.providers import FoundModel, find_by_keys, find_servers
    from taiwa.operations.model_files import fetched_models, list_models
    from taiwa.settings import NoModelError

    by_keys = find_by_keys(settings)
    fetched = [FoundModel(name, _("this machine")) for name in fetched_models()]
    if not (asking and sys.stdin.isatty() and sys.stdout.isatty()):
        if by_keys:
            first = by_keys[0]
            raise NoModelError(
                _(
                    "no model is set; {variable} is set: use -m {model}, or taiwa config set model {model}",
                    variable=first.source,
                    model=first.name,
                )
            )
        if fetched:
            raise NoModelError(
                _("no model is set; use -m {model}, or taiwa config set model {model}", model=fetched[0].name)
            )
        raise NoModelError
    others = [FoundModel(each.model, each.program) for each in list_models().found]
    found = (*by_keys, *find_servers(settings), *fetched, *others)[:MOST_MODELS]
    return _ask_model(settings, found) if found else _fetch_first_model(settings)


def _fetch_first_model(settings: "Settings") -> "Settings":
    """Ask whether to fetch the small model that taiwa suggests, and set it.

    Raises:
        NoModelError: the user declines.
        ConfigError: it cannot be fetched.
    """
    from taiwa.models.weights.model_files import FIRST_MODEL, MODEL_FILES, format_size
    from taiwa.settings import NoModelError, set_value

    file = MODEL_FILES[FIRST_MODEL]
    question = _(
        "no model is set; fetch {model} ({size}, {licence}), which runs on this machine?",
        model=file.name, size=format_size(file.size), licence=file.licence,
    )  # fmt: skip
    if not click.confirm(question, default=True, err=True):
        raise NoModelError
    pulled = pull_with_display(file.name, settings)
    set_value(settings.path, "model", pulled.model)
    print_notice(_("the model is set to {model} in {file}", model=pulled.model, file=settings.path))
    return replace(settings, model=pulled.model)


def _ask_model(settings: "Settings", found: "Sequence[FoundModel]") -> "Settings":
    from taiwa.models.providers import resolve_probed
    from taiwa.models.weights.model_files import SUFFIX
    from taiwa.settings import set_value

    names = [each.name for each in found]
    print_notice(_("no model is set; these are available:"))
    shown = [Path(name).name if name.endswith(SUFFIX) else name for name in names]  # a path would be cut before its end
    table(("", _("model"), _("from")), [(str(n), shown[n - 1], each.source) for n, each in enumerate(found, 1)])
    while True:
        reply: str = click.prompt(_("model to use from now on (a number, or any name)"), default="1", err=True).strip()
        name = names[int(reply) - 1] if reply.isdecimal() and 1 <= int(reply) <= len(names) else reply
        try:
            resolve_probed(name, settings)
        except ConfigError as error:
            print_notice(error.message, "yellow")
            continue
        set_value(settings.path, "model", name)
        print_notice(_("the model is set to {model} in {file}", model=name, file=settings.path))
        return replace(settings, model=name)


def common_options(*names: str, **helps: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add some of the common options to a command, by default all; it gets them as its first argument, a `CommonOptions`."""
    return filled_by_options(CommonOptions, names or tuple(each.name for each in fields(CommonOptions)), helps)


class Group(click.Group):
    """A group that lists each command with the complete first sentence of its help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.commands[name].get_short_help_str(WHOLE)) for name in self.list_commands(ctx)]
            )


def add_options(*options: Callable[[Any], Any]) -> Callable[[C], C]:
    """Return a decorator that adds options to a command."""

    def decorate(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


principal_option = click.option(
    "--as", "audience", metavar="NAME", multiple=True,
    help="Search as this principal: user:ann, group:hr; without it only public documents.",
)  # fmt: skip
index_option = click.option(
    "--in", "indexes", metavar="FOLDER|FILE|INDEX", multiple=True,
    help="Search this index, or this folder or file, which is indexed first; may be given several times.",
)  # fmt: skip
constraint_options = add_options(
    click.option(
        "--type",
        metavar="TYPE",
        help="Use a type: FILE.py:Type, module:Type, FILE.ts:Type, FILE.json, 'name, age int'.",
    ),
    click.option(
        "--schema", metavar="TYPE", help="Same as --type; a JSON Schema in FILE.json is used unchanged (JSON mode)."
    ),
    click.option("--regex", metavar="PATTERN", help="Use a regular expression for the whole text."),
    click.option("--grammar", metavar="FILE", help="Use a grammar in Lark's notation, whose first rule is `start`."),
    click.option("--choice", metavar="A,B,…", help="Use one of these words."),
)
row_options = add_options(
    click.option(
        "-j", "width", type=click.IntRange(1, 256), default=4, show_default=True, help="Run this many rows at a time."
    ),
    click.option("--resume", is_flag=True, help="Continue a batch; rows that were answered are not paid for again."),
    output_option("Write the rows to a file."),
    click.option(
        "--max-failures",
        type=click.IntRange(1),
        default=10,
        show_default=True,
        metavar="N",
        help="Stop after N consecutive rows that failed for the same reason of the server.",
    ),
)


def pop_constraint(command: str, values: dict[str, Any], *, required: bool) -> tuple[Any, str]:
    """Remove the constraint options from the values of a command; return the kind and the source of the one that is set.

    Raises:
        InputError: several are set, or none where one is required.
    """
    chosen = [(name, source) for name in CONSTRAINTS if (source := values.pop(name)) is not None]
    if len(chosen) > 1 or (required and not chosen):
        known = ", ".join(f"--{name}" for name in CONSTRAINTS)
        raise InputError(f"{command} takes one of {known}" + (f", not {len(chosen)} of them" if chosen else ""))
    kind, source = chosen[0] if chosen else ("", "")
    is_file = source.endswith(".json") or bool(path_kind(source))
    return ("type" if kind == "schema" and not is_file else kind), source


def whitespace_option(default: str | None, shown: str | bool = True) -> Callable[[C], C]:
    """Add the option `--whitespace`, a mode or a pattern of white space in JSON."""
    return click.option(
        "--whitespace", metavar="MODE", callback=_read_whitespace, default=default, show_default=shown,
        help="Allow in JSON a space or a line break (bounded), none (compact), one after commas and colons (spaced), any (free), or a regular expression.",
    )  # fmt: skip


def _read_whitespace(_context: click.Context, _parameter: click.Parameter, text: str | None) -> "Whitespace | None":
    modes: dict[str, Whitespace] = {"bounded": "bounded", "compact": "compact", "spaced": "spaced", "free": "free"}
    return None if text is None else modes.get(text) or Regex(text)


def approver(mode: str) -> Approve | None:
    """Return who decides on calls that need approval; None if the user cannot be asked, so that such a call ends the run."""
    if mode == "always":
        return "always"
    if mode == "never":
        return "never"
    return ask_user if sys.stdin.isatty() and sys.stderr.isatty() else None


def ask_user(request: ApprovalRequest) -> Decision:
    """Show a call with all its arguments, and ask whether to make it; the end of the input means no."""
    with suspended_display():
        print_notice(_("the model wants to call a tool that needs approval:"), "yellow")
        click.echo(f"  {plain(request.name)}", err=True)
        for name, value in request.arguments.items():
            click.echo(f"    {plain(name)}: {plain(json.dumps(value, ensure_ascii=False))}", err=True)
        try:
            return click.confirm(_("call it?"), default=False, err=True)
        except click.Abort:  # the end of the input, or an interrupt
            return False


def turn_options(
    common: CommonOptions, settings: "Settings", interrupts: "Interrupts" = "raise", *, asks: bool = True
) -> "TurnOptions":
    """Return the options of turns under the common options; without `asks` the user is not asked to approve calls."""
    from taiwa.sessions.commit_turn import TurnOptions

    return TurnOptions(
        strict=common.strict,
        limits=settings.limits,
        interrupts=interrupts,
        tools=common.tools(),
        types=common.types(),
        approve=approver(common.approve) if asks or common.approve != "ask" else None,
    )


def open_session(
    common: CommonOptions,
    app: "str | App" = "",
    *,
    latest: bool = False,
    interrupts: "Interrupts" = "raise",
    observers: "tuple[Observer, ...]" = (),
    tools: "Sequence[Tool]" = (),
) -> "Session":
    """Open the conversation that the common options name, or create one; with `latest` only one that exists. `tools` are further
    ones that its app may name.

    Raises:
        TaiwaError: the app, the model or the store cannot be opened.
    """
    from taiwa.operations import open_session

    settings = common.settings()
    repository = common.repository(settings)
    name = repository.session(common.session) if latest else common.session
    turns = turn_options(common, settings, interrupts)
    turns = replace(turns, tools=(*turns.tools, *tools))
    limits = None if common.max_cost is None else turns.limits
    answers = replace(common.answers(), limits=limits, tool_files=common.tool_files())
    options = open_session.SayOptions(app, name, common.continue_latest, read_params(common.params), answers)
    session = open_session.open_session(
        repository, settings, options, turns,
        observers=observers, ask=ask_param(), choose_model=common.with_first_model,
    )  # fmt: skip
    if not repository.store.nodes.is_trusted(session.app.hash):
        _warn_of_untrusted(repository, settings, session.app)
    elif session.conversation.stored_tip is not None:
        _mention_edited_app(session, app if isinstance(app, str) and (os.sep in app or app.endswith(".md")) else "")
    return session


def preview(
    common: CommonOptions,
    app: "str | App",
    text: str,
    attachments: Sequence[Attachment] = (),
    tools: "Sequence[Tool]" = (),
) -> None:
    """Print the request that a turn of the conversation that the common options name, or of a new one, would send first.

    `tools` are those of `open_session`.
    """
    from taiwa.operations import open_session, request_preview

    settings = common.settings()
    repository = common.repository(settings)
    repository.add_tools((*common.tools(), *tools))
    options = open_session.SayOptions(
        app, common.session, common.continue_latest, read_params(common.params), common.answers()
    )
    session, conversation = open_session.find_or_create_session(repository, options, ask_param())
    repository.check_trust(conversation.app)
    shown = request_preview.preview_turn(
        repository.with_attachments(conversation), text, repository.tools_of(conversation.app),
        open_session.target_of(repository, settings, conversation, session), attachments,
    )  # fmt: skip
    print_preview(shown, as_json=common.as_json)


def mention_passed_over(session: "Session") -> None:
    """Report an interrupted turn that the next turn of a conversation abandons."""
    from taiwa.operations.open_session import find_passed_over

    passed = find_passed_over(session)
    if passed is not None:
        print_notice(
            _(
                "a turn of {session} was cut off: {text}; the conversation goes on without it, taiwa resume {session} keeps it as a branch",
                session=session.name,
                text=one_line(passed.text, MOST_OF_TEXT),
            ),
            "yellow",
        )


def _mention_edited_app(session: "Session", path: str) -> None:
    """Report that an app file has changed since the conversation began, which continues with the old text."""
    from taiwa.apps.catalog import BUILT_IN, find_path
    from taiwa.operations.open_session import edited_app

    try:
        # A file that was opened by its path may have the name of a built-in app, which no user changes.
        if (not path and find_path(session.app.name).parent == BUILT_IN) or edited_app(session.app, path) is None:
            return
    except InputError:
        pass
    except ConfigError:
        if path:
            raise
        return
    print_notice(
        _(
            "the file of the app {app} was changed; {session} keeps the old text until: taiwa apps update {place}",
            app=session.app.name,
            session=session.name,
            place=shlex.join(filter(None, (session.name, path))),
        ),
        "yellow",
    )


def _warn_of_untrusted(repository: "Repository", settings: "Settings", app: "App") -> None:
    """Print that an imported app is untrusted, if it names a model, tools or documents."""
    from taiwa.operations.apps import untrusted_apps

    if any(each.lines() for each in untrusted_apps(repository, settings, app.hash)):
        text = _(
            "the app {app} is not trusted: its model, tools and documents are ignored; see taiwa apps trust",
            app=app.name,
        )
        print_notice(text, "yellow")


def open_app(name: str, params: tuple[str, ...]) -> "App":
    """Open an app; on a terminal, ask for the parameters that are missing."""
    from taiwa.operations import open_session

    return open_session.open_app(name, read_params(params), ask_param())


def ask_param() -> "Callable[[Param], str] | None":
    """Return a function that asks the user for a parameter; None without a terminal."""
    if not sys.stdin.isatty():
        return None
    return lambda param: click.prompt(_(param.ask) or param.name, err=True)


def confirm(question: str, refusal: str, *, yes: bool) -> None:
    """Ask the user to confirm; without a terminal only `--yes` does, and `refusal` says so.

    Raises:
        InputError: there is no terminal, and no `--yes`.
        Abort: the user declined.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(refusal)
    click.confirm(question, abort=True, err=True)


def read_params(words: tuple[str, ...], what: str = "-p") -> dict[str, str]:
    """Read `KEY=VALUE` words; `what` names them in errors.

    Raises:
        InputError: one has no `=`.
    """
    pairs: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise InputError(f"{what} must be KEY=VALUE, got {word!r}")
        pairs[name.strip()] = text
    return pairs


def read_text(text: str) -> str:
    """Return a text argument, or standard input for `-`.

    Raises:
        InputError: it is not UTF-8, or too large.
    """
    if text != "-":
        try:
            text.encode()  # the shell passes bytes, and Python escapes those that are not UTF-8 as surrogates
        except UnicodeEncodeError as error:
            raise InputError(f"the text is not UTF-8 at character {error.start + 1:,}") from None
        return text
    from taiwa.sessions.commit_turn import MAX_TEXT_CHARS

    max_bytes = 4 * MAX_TEXT_CHARS
    raw = sys.stdin.buffer.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise InputError(f"standard input is too large; a turn has at most {MAX_TEXT_CHARS:,} characters")
    return decode(raw, "standard input").rstrip("\n")


def read_prompt(prompt: str, fragments: tuple[str, ...] = ()) -> str:
    """Return the text of a turn: the prompt, then the fragments, then piped input; `-` stands for piped input alone.

    Several fragments are each headed by their name.

    Raises:
        InputError: one is not text, or too large.
    """
    texts = [read_fragment(each) for each in fragments]
    if len(texts) > 1:
        texts = [f"{name}:\n{text}" for name, text in zip(fragments, texts, strict=True)]
    if prompt == "-" and "-" not in fragments:
        return "\n\n".join(part for part in (*texts, read_text("-")) if part)
    prompt = "" if prompt == "-" else read_text(prompt)
    piped = read_text("-") if "-" not in fragments and _is_piped() else ""
    return "\n\n".join(part for part in (prompt, *texts, piped) if part)


def require_prompt(
    prompt: str | None, usage: str, fragments: tuple[str, ...] = (), attachments: tuple[Attachment, ...] = ()
) -> str:
    """Return the text of a turn as `read_prompt` does; without a prompt, something else must be given.

    Raises:
        InputError: nothing is given, as `usage` says; or it is not text, or too large.
    """
    text = read_prompt(prompt or "", fragments)
    if prompt is None and not (text or fragments or attachments):
        raise InputError(usage)
    return text


def require_query(query: str | None, usage: str) -> str:
    """Return a query; without one, or for `-`, piped text. Unlike a prompt, a query is not joined with piped text.

    Raises:
        InputError: nothing is given, as `usage` says; or it is not UTF-8, or too large.
    """
    return require_prompt(None, usage) if query is None else read_text(query)


def read_fragment(file: str) -> str:
    """Read a text file, or standard input for `-`, in any common encoding.

    Raises:
        InputError: it cannot be read, or is not text.
    """
    if file == "-":
        return files.read_fragment(sys.stdin.buffer, "standard input").rstrip("\n")
    with open_file(Path(file)) as stream:
        return files.read_fragment(stream, file).rstrip("\n")


def _is_piped() -> bool:
    """Return whether standard input is a pipe, a socket or a file; a notice says if nothing comes."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # not a real file, as in a program that calls `main`
        return True
    if not (S_ISFIFO(mode) or S_ISSOCK(mode)):
        return S_ISREG(mode)
    if not select([sys.stdin], [], [], PATIENCE)[0]:
        print_notice(_("waiting for the end of standard input; < /dev/null passes none"))
    return True


def read_whole(file: str) -> str:
    """Read a text file, or standard input for `-`.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    if file != "-":
        return read_file(Path(file))
    return decode(read_bytes(sys.stdin.buffer, "standard input"), "standard input")
