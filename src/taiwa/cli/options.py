"""The flags that commands share, and what they open: settings, a store, a voice."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from taiwa.settings import Settings
    from taiwa.talk.desk import Desk

__all__ = ["Flags", "flags", "read_params"]

R = TypeVar("R")

FLAGS: dict[str, Callable[[Any], Any]] = {
    "model": click.option("-m", "--model", metavar="MODEL", help="The model: openai:NAME, http://host:port/v1#NAME …"),
    "params": click.option(
        "-p", "--param", "params", metavar="KEY=VALUE", multiple=True, help="A parameter of the app."
    ),
    "session": click.option("-s", "--session", metavar="NAME", default="", help="The conversation of that name."),
    "go_on": click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the latest conversation."),
    "json": click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
    "verbose": click.option("-v", "--verbose", is_flag=True, help="Show calls, tokens, cost and time."),
    "dry_run": click.option("--dry-run", is_flag=True, help="Show the exact request and its size; call nothing."),
    "max_cost": click.option("--max-cost", metavar="AMOUNT", help="Spend at most this much."),
    "no_log": click.option("--no-log", is_flag=True, help="Keep nothing on disk."),
    "strict": click.option("--strict", is_flag=True, help="A reply whose state cannot be read fails the turn."),
    "store": click.option("--store", metavar="FILE|URL", help="The store: a file, or postgresql://USER@HOST/DATABASE."),
}


@dataclass(frozen=True, slots=True)
class Flags:
    """The shared flags of one command; what a command does not have keeps its default."""

    model: str | None = None
    params: tuple[str, ...] = ()
    session: str = ""
    go_on: bool = False
    as_json: bool = False
    verbose: bool = False
    dry_run: bool = False
    max_cost: str | None = None
    no_log: bool = False
    strict: bool = False
    store: str | None = None

    def settings(self) -> "Settings":
        """Read the settings, once, with these flags on top."""
        from taiwa import settings as configured  # `--help` must not pay for YAML

        given = {"model": self.model, "store": self.store, "max_cost": self.max_cost}
        return configured.load({name: str(item) for name, item in given.items() if item is not None})

    def desk(self, chosen: "Settings | None" = None) -> "Desk":
        """Open the store: in memory with `--no-log`."""
        from taiwa.store import Store
        from taiwa.talk.desk import Desk

        return Desk(Store.open(":memory:" if self.no_log else (chosen or self.settings()).store))


def flags(*names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a command some of the shared flags; they arrive as its first argument, a `Flags`."""

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def run(*context: Any, **given: Any) -> R:  # noqa: ANN401  (click hands over what it parsed)
            shared = {name: given.pop(name) for name in Flags.__dataclass_fields__ if name in given}
            return command(Flags(**shared), *context, **given)

        for name in reversed(names):
            run = FLAGS[name](run)
        return run

    return decorate


def read_params(given: tuple[str, ...]) -> dict[str, str]:
    """Read `KEY=VALUE` words.

    Raises:
        InputError: one has no `=`.
    """
    from taiwa.kernel.errors import InputError

    pairs: dict[str, str] = {}
    for word in given:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise InputError(f"-p takes KEY=VALUE, and {word!r} is not of that form")
        pairs[name.strip()] = text
    return pairs
