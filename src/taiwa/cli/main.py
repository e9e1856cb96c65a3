"""The group of all commands, and the one place where an error becomes a line and an exit code."""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

import click

from taiwa.cli.table import COMMANDS, SECTIONS

if TYPE_CHECKING:
    from taiwa.kernel.errors import TaiwaError

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "cli", "code_of", "main"]

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
PIPE_CLOSED = 141
CLOSED = (errno.EPIPE, errno.ESHUTDOWN)
COMPLETION = "_TAIWA_COMPLETE"


class Commands(click.Group):
    """Knows the names and the one-line helps of all commands; imports a command's module when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """All names, in the order of the sections."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  (the same)
        """Import a command."""
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        command: click.Command = getattr(importlib.import_module(f"taiwa.cli.{row.module}"), row.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where there is none of that name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"there is no command {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (the same)
        """List the commands by section, from the table alone."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, COMMANDS[name].help) for name in names])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error; works everywhere.")
@click.version_option(package_name="taiwa", message="taiwa %(version)s")
def cli() -> None:
    """Conversations with language models that a program can rely on.

    \b
    taiwa chat                    talk; /help shows what can be done there
    taiwa say translate -p target_lang=English "こんにちは"
    taiwa undo && taiwa why topics
    """


def main(arguments: Sequence[str] | None = None, group: click.Group | None = None, name: str = "taiwa") -> NoReturn:
    """Run a command of a group, by default of `taiwa`, and leave the process with its exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    words, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    if not debug and arguments is None:
        sys.excepthook = _confess
    _settle_streams()
    if COMPLETION in os.environ:
        _complete()
    code = 0
    try:
        with (group or cli).make_context(name, words) as ctx:
            (group or cli).invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        _complain("interrupted")
        code = INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.ClickException as error:
        _complain(_usage(error))
        code = BAD_INPUT
    except OSError as error:
        if debug and error.errno not in CLOSED:
            raise
        code = _unwritten(error)
    except _ours() as error:
        if debug:
            raise
        _complain(error.message)
        code = code_of(error)
    sys.exit(code)


def _complete() -> NoReturn:
    """Tell a shell how words go on: `eval "$(_TAIWA_COMPLETE=bash_source taiwa)"` in its start file."""
    from click.shell_completion import shell_complete

    sys.exit(shell_complete(cli, {}, "taiwa", COMPLETION, os.environ[COMPLETION]))


def _without_debug(words: list[str]) -> tuple[list[str], bool]:
    """Take `--debug` out, wherever it stands among the options."""
    end = words.index("--") if "--" in words else len(words)
    return [word for word in words[:end] if word != "--debug"] + words[end:], "--debug" in words[:end]


def _settle_streams() -> None:
    """See that what is printed goes somewhere, and that a sign that a terminal has not is shown as its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the caller has closed it
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  (until the process ends)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _ours() -> "type[TaiwaError]":
    """Imported when something was raised: help needs no error of ours."""
    from taiwa.kernel.errors import TaiwaError

    return TaiwaError


def code_of(error: "TaiwaError") -> int:
    """The exit code that an error ends a command with."""
    from taiwa.kernel.errors import ConfigError, InputError, ShapeError, StoreError

    return BAD_INPUT if isinstance(error, (InputError, ConfigError, ShapeError, StoreError)) else FAILED


def _unwritten(error: OSError) -> int:
    """Say that the output could not be written; nothing, where its reader has simply gone."""
    # What is still buffered would be written, and fail, once more when the interpreter ends.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr) if error.errno in CLOSED else (sys.stdout,):
        try:
            os.dup2(nowhere, stream.fileno())
        except (OSError, ValueError):
            continue  # not a real file: nothing is left in it
    os.close(nowhere)
    if error.errno in CLOSED:
        return PIPE_CLOSED
    where = f"{error.filename}: " if error.filename else ""
    _complain(f"{where}{error.strerror or error} (use --debug to see where)")
    return FAILED


def _usage(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    hint = f" (see {ctx.command_path} --help)" if isinstance(ctx, click.Context) else ""
    return f"{error.format_message()}{hint}"


def _complain(message: str) -> None:
    from taiwa.cli.screen import plain

    click.echo(f"taiwa: {plain(message)}", err=True)


def _confess(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    """What a person sees of a fault in this program."""
    _complain(f"this is a fault in taiwa itself ({kind.__name__}: {error}); --debug shows where, please report it")
