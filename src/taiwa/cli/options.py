"""Options that commands share, what they open, and the reading of texts and parameters."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from taiwa.kernel.errors import InputError

if TYPE_CHECKING:
    from taiwa.conversation.app import App, Param
    from taiwa.kernel.execution import Observer
    from taiwa.kernel.runtime import Interrupts
    from taiwa.sessions.checkout import Repository
    from taiwa.sessions.durable_turn import PricedModel, TurnOptions
    from taiwa.sessions.session import Session
    from taiwa.settings import Settings

__all__ = [
    "Flags", "ask_param", "constraint_options", "flags", "index_option", "one_of", "open_app", "open_session", "principal_option", "print_default_model", "read_params",
    "read_text", "read_whole", "turn_options",
]  # fmt: skip

R = TypeVar("R")
C = TypeVar("C", bound=Callable[..., Any])

FLAGS: dict[str, Callable[[Any], Any]] = {
    "model": click.option(
        "-m", "--model", metavar="MODEL", help="Use this model: openai:NAME, http://host:port/v1#NAME …"
    ),
    "params": click.option(
        "-p", "--param", "params", metavar="KEY=VALUE", multiple=True, help="Set a parameter of the app."
    ),
    "session": click.option("-s", "--session", metavar="NAME", default="", help="Use the conversation of this name."),
    "go_on": click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the latest conversation."),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    "verbose": click.option("-v", "--verbose", is_flag=True, help="Show calls, tokens, cost and time."),
    "dry_run": click.option("--dry-run", is_flag=True, help="Print the request and its size; send nothing."),
    "max_cost": click.option("--max-cost", metavar="AMOUNT", help="Stop before the cost exceeds this amount."),
    "no_store": click.option("--no-store", is_flag=True, help="Do not write the turn to the store."),
    "strict": click.option("--strict", is_flag=True, help="Fail the turn if its state delta cannot be read."),
    "store": click.option(
        "--store", metavar="FILE|URL", help="Use this store: a file, or postgresql://USER@HOST/DATABASE."
    ),
}
CONSTRAINTS = ("type", "schema", "regex", "grammar", "choice")


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared options of one command; those that it does not have keep their defaults."""

    model: str | None = None
    params: tuple[str, ...] = ()
    session: str = ""
    go_on: bool = False
    as_json: bool = False
    verbose: bool = False
    dry_run: bool = False
    max_cost: str | None = None
    no_store: bool = False
    strict: bool = False
    store: str | None = None

    def settings(self) -> "Settings":
        """Read the settings, with these options on top."""
        from taiwa import settings as configured

        given = {"model": self.model, "store": self.store, "max_cost": self.max_cost}
        return configured.load({name: str(item) for name, item in given.items() if item is not None})

    def repository(self, chosen: "Settings | None" = None) -> "Repository":
        """Open the store: in memory with `--no-store`."""
        from taiwa.sessions.checkout import Repository
        from taiwa.store import Store

        return Repository(Store.open(":memory:" if self.no_store else (chosen or self.settings()).store))


def flags(*names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command some of the shared options; it gets them as its first argument, a `Flags`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(*context: Any, **given: Any) -> R:  # noqa: ANN401  (what click parsed)
            shared = {name: given.pop(name) for name in Flags.__dataclass_fields__ if name in given}
            return command(Flags(**shared), *context, **given)

        for name in reversed(names):
            run = FLAGS[name](run)
        return run

    return decorate


def principal_option(command: C) -> C:
    """Give a command the option that names for whom documents are searched."""
    words = "Search as this principal: user:ann, group:hr; only public documents without it."
    return click.option("--as", "audience", metavar="NAME", multiple=True, help=words)(command)


def index_option(command: C) -> C:
    """Give a command the option that names where documents are searched."""
    words = "Search this index, or this folder, which is indexed first; all indexes without it."
    return click.option("--in", "indexes", metavar="FOLDER|INDEX", multiple=True, help=words)(command)


def constraint_options(command: C) -> C:
    """Give a command the options of which one names a constraint."""
    for option in reversed(
        (
            click.option("--type", metavar="TYPE", help="Use a type: module:Type, or a JSON Schema in FILE.json."),
            click.option("--schema", metavar="FILE", help="Use a JSON Schema as it is."),
            click.option("--regex", metavar="PATTERN", help="Use a regular expression for the whole text."),
            click.option("--grammar", metavar="FILE", help="Use a grammar in Lark's notation that begins with start."),
            click.option("--choice", metavar="A,B,…", help="Use one of these words."),
        )
    ):
        command = option(command)
    return command


def one_of(command: str, given: dict[str, Any], *, required: bool) -> tuple[Any, str]:
    """Take the constraint options out of what was given, and return the one that is set: its kind and its source.

    Raises:
        InputError: more than one is set, or none where one is required.
    """
    chosen = [(name, source) for name in CONSTRAINTS if (source := given.pop(name)) is not None]
    if len(chosen) > 1 or (required and not chosen):
        known = ", ".join(f"--{name}" for name in CONSTRAINTS)
        raise InputError(f"{command} takes one of {known}" + (f", not {len(chosen)} of them" if chosen else ""))
    return chosen[0] if chosen else ("", "")


def turn_options(shared: Flags, chosen: "Settings", interrupts: "Interrupts" = "raise") -> "TurnOptions":
    """Return the options of turns under the shared options."""
    from taiwa.kernel.usage_limits import UsageLimits
    from taiwa.sessions.durable_turn import TurnOptions

    return TurnOptions(strict=shared.strict, limits=UsageLimits(cost=chosen.max_cost_nano), interrupts=interrupts)


def open_session(
    shared: Flags,
    app: "str | App" = "",
    *,
    latest: bool = False,
    interrupts: "Interrupts" = "raise",
    observers: "tuple[Observer, ...]" = (),
) -> "Session":
    """Open the conversation that the shared options name, or create one; with `latest` only one that exists.

    Raises:
        TaiwaError: the app, the model or the store cannot be opened.
    """
    from taiwa.operations import say

    chosen = shared.settings()
    repository = shared.repository(chosen)
    session = repository.session(shared.session) if latest else shared.session
    options = say.SayOptions(app, session, shared.go_on, read_params(shared.params))
    turns = turn_options(shared, chosen, interrupts)
    talk = say.open_session(repository, chosen, options, turns, observers=observers, ask=ask_param())
    if shared.verbose:
        print_default_model(chosen, talk.priced_model)
    return talk


def open_app(name: str, params: tuple[str, ...]) -> "App":
    """Open an app; on a terminal, ask for the parameters that are missing."""
    from taiwa.operations import say

    return say.open_app(name, read_params(params), ask_param())


def ask_param() -> "Callable[[Param], str] | None":
    """Return what asks the user for a parameter; None where there is no terminal."""
    if not sys.stdin.isatty():
        return None
    return lambda param: click.prompt(param.ask or param.name, err=True)


def print_default_model(chosen: "Settings", priced_model: "PricedModel") -> None:
    """Tell that the built-in model answers, where no model is set, and how to set one."""
    from taiwa.cli.output import tell
    from taiwa.i18n import _
    from taiwa.settings import BUILTIN

    if chosen.model is None and priced_model.model.name == BUILTIN:
        tell(
            _(
                "no model is set, so the built-in small model answers; to set a larger one: taiwa config set model NAME (see `taiwa models`)"
            )
        )


def read_params(given: tuple[str, ...]) -> dict[str, str]:
    """Read `KEY=VALUE` words.

    Raises:
        InputError: one has no `=`.
    """
    pairs: dict[str, str] = {}
    for word in given:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise InputError(f"-p must be KEY=VALUE, got {word!r}")
        pairs[name.strip()] = text
    return pairs


def read_text(given: str) -> str:
    """Return a text argument, or standard input for `-`.

    Raises:
        InputError: it is not UTF-8, or too large.
    """
    from taiwa.flows.chat import MAX_TEXT_CHARS
    from taiwa.operations.text_files import decode

    if given != "-":
        try:
            given.encode()  # the shell passes bytes, and Python marks those that are not UTF-8
        except UnicodeEncodeError as error:
            raise InputError(f"the text is not UTF-8 at character {error.start + 1:,}") from None
        return given
    most = 4 * MAX_TEXT_CHARS
    raw = sys.stdin.buffer.read(most + 1)
    if len(raw) > most:
        raise InputError(f"standard input is too large; a turn can have {MAX_TEXT_CHARS:,} characters")
    return decode(raw, "standard input").rstrip("\n")


def read_whole(file: str) -> str:
    """Read a text file, or standard input for `-`.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    from pathlib import Path

    from taiwa.operations.text_files import decode, read_file

    return decode(sys.stdin.buffer.read(), "standard input") if file == "-" else read_file(Path(file))
