"""The table of commands, the group that imports them when they run, and the mapping of errors to exit codes.

Help is printed from the table; this module imports nothing of `taiwa.operations`.
"""

import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

if TYPE_CHECKING:
    from taiwa.kernel.errors import TaiwaError

FAILED = 1
BAD_INPUT = 2
REFUSED = 4
INTERRUPTED = 130
PIPE_CLOSED = 141
CLOSED = (errno.EPIPE, errno.ESHUTDOWN)
COMPLETION = "_TAIWA_COMPLETE"


class CommandEntry(NamedTuple):
    """One command: the module that defines it, its help, and its name there if it differs."""

    module: str
    help: str
    attribute: str = ""


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Conversations": {
        "chat": CommandEntry("chat", "converse with a model or an app, line by line"),
        "say": CommandEntry("say", "send a text and print the answer"),
        "batch": CommandEntry("say", "send every line of a file, in one conversation or each on its own"),
        "resume": CommandEntry("say", "finish an interrupted turn without paying again"),
    },
    "History": {
        "undo": CommandEntry("store", "take back the last turn: message, state and window together"),
        "redo": CommandEntry("store", "restore a turn that was taken back"),
        "retry": CommandEntry("say", "send the last text again: retry the last answer, regenerate it"),
        "edit": CommandEntry("say", "go back to a turn and send another text"),
        "fork": CommandEntry("store", "create a branch of a conversation"),
        "switch": CommandEntry("store", "make a conversation the current one"),
        "rename": CommandEntry("store", "give a conversation another name"),
        "tag": CommandEntry("store", "give a conversation tags, by which log lists it"),
        "rerun": CommandEntry("say", "repeat a conversation with another model or app, on a new branch"),
        "replay": CommandEntry("store", "repeat a conversation from its recorded calls and check every hash"),
    },
    "Inspection": {
        "log": CommandEntry("log", "list conversations, or the turns of one"),
        "show": CommandEntry("log", "show a turn: texts, state, calls and cost"),
        "diff": CommandEntry("log", "compare two revisions: state and text"),
        "why": CommandEntry("state", "show which turn and call set a value"),
        "state": CommandEntry("state", "show the state, set it, and show its history"),
        "search": CommandEntry("log", "find words in all turns"),
        "cost": CommandEntry("store", "show cost and token usage, by app, model, day or session"),
    },
    "Store": {
        "export": CommandEntry("export", "write a conversation as JSONL, Markdown or HTML"),
        "import": CommandEntry("export", "read an exported conversation", "import_"),
        "fsck": CommandEntry("store", "check every hash in the store"),
        "gc": CommandEntry("store", "delete nodes and attachments that no conversation reaches"),
        "delete": CommandEntry("store", "delete a conversation permanently"),
    },
    "Types": {
        "extract": CommandEntry("extract", "extract a typed value from a text, or from every line of a file"),
        "parse": CommandEntry("extract", "parse the text of an answer as a type, with repairs; no model is called"),
        "schema": CommandEntry("extract", "print a type as models see it, with its size in tokens"),
    },
    "Constraints": {
        "explain": CommandEntry("generate", "show which tokens a constraint allows, step by step"),
        "generate": CommandEntry("generate", "generate an answer under a type, pattern, grammar or list of words"),
    },
    "Tools": {
        "solve": CommandEntry("solve", "solve a question step by step, with tools"),
        "tools": CommandEntry("solve", "list, show and call tools"),
        "mcp": CommandEntry("solve", "serve the tools to MCP clients"),
        "eval": CommandEntry("eval", "evaluate tools, models and retrieval on questions with known answers", "eval_"),
    },
    "Documents": {
        "ask": CommandEntry("ask", "answer a question from documents with citations, or ask for clarification"),
        "index": CommandEntry("index", "index a folder of documents"),
        "find": CommandEntry("index", "find the passages of documents that best match a question"),
        "user": CommandEntry("ask", "manage user profiles: facts, thresholds and feedback"),
    },
    "Server": {
        "ui": CommandEntry("serve", "chat in the browser, with state, branches and the origin of each value"),
        "serve": CommandEntry(
            "serve", "serve apps and models over the APIs of OpenAI, Anthropic, Ollama, AG-UI and MCP"
        ),
    },
    "Setup": {
        "apps": CommandEntry("apps", "list, create, check and render apps"),
        "models": CommandEntry("models", "show models and servers"),
        "probe": CommandEntry("models", "measure what a server enforces"),
        "keys": CommandEntry("config", "store the API keys of providers"),
        "prices": CommandEntry("config", "show what models cost, and fetch a table of prices"),
        "config": CommandEntry("config", "show and change settings"),
        "plugins": CommandEntry("config", "list the plug-ins of installed packages"),
        "doctor": CommandEntry("doctor", "show what this installation has and lacks"),
        "completion": CommandEntry("main", "print a completion script for bash, zsh or fish"),
        "demo": CommandEntry("demo", "watch tools, typed answers, questions to documents, and a stored history"),
    },
}
COMMANDS: dict[str, CommandEntry] = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}


ELSEWHERE = {
    **dict.fromkeys(("history", "logs", "sessions", "session", "conversations"), "log"), "new": "chat say", "start": "chat say",
    **dict.fromkeys(("prompts", "template", "templates"), "apps"), "settings": "config", "login": "keys", "run": "say chat",
    "prompt": "say apps", "aliases": "models",
}  # fmt: skip
"""The commands of ours for commands of other tools."""
OPTIONS_ELSEWHERE = {
    "-o": "--temperature --max-tokens", "-y": "--yes --approve", "--yes": "--approve", "--file": "--fragment --attach",
}  # fmt: skip
"""The options of ours, where a command has them, for options of other tools."""


class Commands(click.Group):
    """A group that lists commands from the table, and imports a command when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Return all names, in the order of the sections."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  (the same)
        """Import a command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"taiwa.cli.{entry.module}"), entry.attribute or cmd_name
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (the same)
        """List the commands by section, from the table alone."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error; allowed anywhere on the line."
)
@click.version_option(package_name="taiwa", message="taiwa %(version)s")
def cli() -> None:
    """Conversations with language models that a program can rely on.

    \b
    taiwa chat                    /help lists the commands
    taiwa say translate -p target_lang=English "こんにちは"
    taiwa undo && taiwa why topics
    """


def main(arguments: Sequence[str] | None = None, group: click.Group | None = None, name: str = "taiwa") -> NoReturn:
    """Run a command of a group, by default of `taiwa`, and exit with its code: 0 success, 1 failure, 2 bad input, 4 refused by the model, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if "--" in words else len(words)
    debug = "--debug" in words[:end]
    words = [word for word in words[:end] if word != "--debug"] + words[end:]
    if not debug and arguments is None:
        sys.excepthook = _print_internal_error
    _prepare_streams()
    if COMPLETION in os.environ:  # eval "$(_TAIWA_COMPLETE=bash_source taiwa)" in the start file of a shell
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "taiwa", COMPLETION, os.environ[COMPLETION]))
    code = 0
    try:
        with (group or cli).make_context(name, words) as ctx:
            (group or cli).invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError) as error:
        if arguments is None:  # pressed again while the program ends, the key ends it at once
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        _print_error(str(error) or "interrupted")
        code = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.ClickException as error:
        _print_error(_usage_error(error))
        code = BAD_INPUT
    except OSError as error:
        if debug and error.errno not in CLOSED:
            raise
        code = _output_error(error)
    except _taiwa_error() as error:
        if debug:
            raise
        _print_error(error.message)
        code = code_of(error)
    sys.exit(code)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and names of conversations in SHELL.

    \b
    eval "$(taiwa completion bash)"    in ~/.bashrc
    eval "$(taiwa completion zsh)"     in ~/.zshrc, after compinit
    taiwa completion fish | source     in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    source = get_completion_class(shell)
    assert source is not None, "click completes in these shells"
    click.echo(source(cli, {}, "taiwa", COMPLETION).source(), nl=False)


@contextmanager
def exit_on_error() -> Generator[None]:
    """End a script like a command: print a taiwa error as one line on standard error, and exit with 1, 2 or 4."""
    from taiwa.kernel.errors import TaiwaError

    try:
        yield
    except TaiwaError as error:
        _print_error(error.message)
        sys.exit(code_of(error))


def _prepare_streams() -> None:
    """Replace closed streams; let other streams escape characters that their encoding lacks."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            from pathlib import Path

            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _taiwa_error() -> "type[TaiwaError]":
    """Import the base class of our errors only after something was raised; help does not need it."""
    from taiwa.kernel.errors import TaiwaError

    return TaiwaError


def code_of(error: "TaiwaError") -> int:
    """Return the exit code of an error."""
    from taiwa.kernel.errors import (
        ApprovalRequiredError,
        ConfigError,
        InputError,
        RefusalError,
        StoreError,
        UnsupportedError,
    )

    if isinstance(error, RefusalError):
        return REFUSED
    bad = (ApprovalRequiredError, InputError, ConfigError, StoreError, UnsupportedError)
    return BAD_INPUT if isinstance(error, bad) else FAILED


def _output_error(error: OSError) -> int:
    """Report that the output cannot be written; silently if its reader has closed it."""
    # Otherwise the interpreter would write buffered output again at exit, and fail again.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr) if error.errno in CLOSED else (sys.stdout,):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue  # not a real file: it has no buffer
    os.close(nowhere)
    if error.errno in CLOSED:
        return PIPE_CLOSED
    where = f"{error.filename}: " if error.filename else ""
    _print_error(f"{where}{error.strerror or error} (use --debug to see where)")
    return FAILED


def _usage_error(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    hint = f" (see {ctx.command_path} --help)" if isinstance(ctx, click.Context) else ""
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and isinstance(ctx, click.Context):
        near = _options_like(ctx.command, error.option_name)
        if isinstance(ctx.command, Commands) and (say := ctx.command.get_command(ctx, "say")):
            own = {each for option in say.params for each in option.opts}
            near = near or [f"say {error.option_name}"] * (error.option_name in own)
        message = f"unknown option {error.option_name!r}" + (f"; did you mean {' or '.join(near)}?" if near else "")
        if not error.option_name.strip("-")[:1].isalpha():
            message += f"; write `{ctx.command_path} --` before a text that begins with -"
    if isinstance(error, click.NoSuchCommand) and isinstance(ctx, click.Context):
        hinted = _commands_like(ctx.command, error.command_name)
        message = f"unknown command {error.command_name!r}" + (f"; {hinted}" if hinted else "")
    for name, plain_name in (("integer range", "whole number"), ("float range", "number"), ("integer", "whole number")):
        message = message.replace(f"is not a valid {name}.", f"is not a {plain_name}.")
    message = re.sub(r"\. (\w)", lambda begun: f"; {begun[1].lower()}", message.removesuffix("."))
    return f"{message[:1].lower()}{message[1:]}{hint}"


def _commands_like(group: click.Command, name: str) -> str:
    """Suggest the command that is spelt like a name, else those whose help contains it; of a group of a few commands name all."""
    import difflib

    if not isinstance(group, Commands):
        listed = group.commands.items() if isinstance(group, click.Group) else ()
        return f"choose one of {', '.join(known for known, command in listed if not command.hidden)}"
    word = name.lower()
    spelt = partial(difflib.get_close_matches, word, COMMANDS, 1)
    told = [known for known, entry in COMMANDS.items() if word in re.findall(r"\w+", entry.help)]
    own = [each for option in group.params for each in option.opts if each == f"--{word}"]
    own += ["say"] * any(map(str.isspace, word))
    near = own or ELSEWHERE.get(word, "").split() or spelt(0.9) or told[:3] or spelt()
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def _options_like(command: click.Command, name: str) -> list[str]:
    """Return the options of a command that a name may stand for: by its spelling, a word of their help, or its first letter."""
    import difflib

    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    names = {each: max(each.opts, key=len) for each in options}
    word = name.lstrip("-").lower()
    if known := [each for each in OPTIONS_ELSEWHERE.get(name, "").split() if each in names.values()]:
        return known
    if len(word) < 2:
        return [long for long in names.values() if long.startswith(f"--{word}")][:3]
    spelt = difflib.get_close_matches(name, [*names.values()], 1, 0.8)
    return spelt or [long for each, long in names.items() if word in re.findall(r"\w+", (each.help or "").lower())][:3]


def _print_error(message: str) -> None:
    from taiwa.cli.output import print_notice
    from taiwa.i18n import translated, user_language

    print_notice(f"taiwa: {translated(message, user_language())}", "")


def _print_internal_error(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    """Print an unexpected error as one line: of a plug-in, or of taiwa."""
    from taiwa.plugins import package_of

    what, who = f"{kind.__name__}: {' '.join(str(error).split())}", package_of(error)
    _print_error(
        f"internal error in taiwa ({what}); --debug shows the traceback, please report it"
        if who is None
        else f"the package {who} failed: {what}; --debug shows the traceback"
    )
