"""The group of all commands, and the one place where an error becomes a line and an exit code."""

import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from taiwa.cli.table import COMMANDS, SECTIONS
from taiwa.kernel.errors import ConfigError, InputError, ShapeError, StoreError, TaiwaError

__all__ = ["cli", "main"]

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141


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
            ctx.fail(
                f"there is no command {args[0]!r}" + (f"; did you mean {near[0]!r}?" if near else "; see taiwa --help")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (the same)
        """List the commands by section, from the table alone."""
        for section, names in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, COMMANDS[name].help) for name in names])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="taiwa", message="taiwa %(version)s")
def cli() -> None:
    """Conversations with language models that a program can rely on.

    \b
    taiwa chat                    talk; /help shows what can be done there
    taiwa say translate -p target_lang=English "こんにちは"
    taiwa undo && taiwa why topics
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and leave the process with its exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    try:
        code = cli.main([word for word in words if word != "--debug"], "taiwa", standalone_mode=False)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.Abort:
        code = INTERRUPTED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = PIPE_CLOSED
    except click.ClickException as error:
        _complain(_usage(error))
        code = BAD_INPUT
    except TaiwaError as error:
        if debug:
            raise
        _complain(error.message)
        code = BAD_INPUT if isinstance(error, (InputError, ConfigError, ShapeError, StoreError)) else FAILED
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    hint = f" (see {ctx.command_path} --help)" if isinstance(ctx, click.Context) else ""
    return f"{error.format_message()}{hint}"


def _complain(message: str) -> None:
    click.echo(f"taiwa: {message}", err=True)
