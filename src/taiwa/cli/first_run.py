"""The first run: where no model is set, show those within reach, ask once, and remember the answer."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from taiwa.cli.output import print_notice, table
from taiwa.i18n import _
from taiwa.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taiwa.models.discovery import FoundModel
    from taiwa.settings import Settings

MOST_SHOWN = 9


def choose_first_model(settings: "Settings", *, asking: bool) -> "Settings":
    """Return the settings with the model that the user chooses from those within reach, which the config file remembers.

    Without a terminal nothing is asked and no server is looked for; where the environment has a key, a line says so.
    """
    from taiwa.models.discovery import find_by_keys, find_servers

    by_keys = find_by_keys(settings)
    if not (asking and sys.stdin.isatty() and sys.stdout.isatty()):
        if by_keys:
            first = by_keys[0]
            print_notice(
                _(
                    "no model is set, so the built-in small model answers; {variable} is set: use -m {model}, or taiwa config set model {model}",
                    variable=first.source,
                    model=first.name,
                )
            )
        return settings
    found = (*by_keys, *find_servers(settings))[:MOST_SHOWN]
    return _ask(settings, found) if found else settings


def _ask(settings: "Settings", found: "Sequence[FoundModel]") -> "Settings":
    from taiwa.models.registry import resolve_probed
    from taiwa.settings import BUILTIN, set_value

    names = [*(each.name for each in found), BUILTIN]
    sources = [*(each.source for each in found), _("the small model that comes with taiwa")]
    print_notice(_("no model is set; these are within reach:"))
    table(("", "model", "from"), [(str(n), *row) for n, row in enumerate(zip(names, sources, strict=True), 1)])
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
